"""A history while it is put into words: the walk over its messages, and a word about whatever cannot be said.

Not here: the words of any dialect. A dialect subclasses `MessageEncoder`, or `FlatMessageEncoder` where a
history is a flat list.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, TypeAlias

import msgspec

from asides.values.errors import Unsupported
from asides.values.messages import Image, Message, Part, Prompt, Text, ToolCall, ToolResult, UnknownPart
from asides.values.notices import Notice

Wire: TypeAlias = dict[str, Any]

STAND_IN = "skip_thought_signature_validator"
"""The documented signature of a call, where its provider wants one and this model did not make it."""

OPENING = "(The conversation begins here.)"
"""What a person says first where the history begins with the model and its provider wants a person to begin."""


class MessageEncoder:
    """One history, while it is put into words. What a dialect cannot carry is told in `notices`, once."""

    def __init__(self, prompt: Prompt, notices: list[Notice]) -> None:
        self.prompt = prompt
        self.notices = notices

    @property
    def _preamble(self) -> str | None:
        """The system prompt, unless it is blank."""
        system = self.prompt.system
        return system if system and system.strip() else None

    def _note(self, code: str, detail: str) -> None:
        notice = Notice(code, detail, "messages")
        if notice not in self.notices:
            self.notices.append(notice)

    def _left_out(self, part: Part, role: str) -> None:
        what = self._kind_of(part)
        self._note("part_not_sent", f"{what} in the words of the {role} cannot be sent in this dialect")

    def _kind_of(self, part: Part) -> str:
        return f"a part of type {type(part).__name__}"

    def _leave_out_all_but_text(self, message: Message) -> None:
        for part in message.parts:
            if not isinstance(part, Text):
                self._left_out(part, message.role)

    def _native(self, part: Part, role: str) -> msgspec.Raw | None:
        """A part that this dialect has no words for: as it was written, where the caller wrote it in the dialect's own
        form (whoever writes a native part means it), else left out.
        """
        if isinstance(part, UnknownPart) and part.origin is None:
            return msgspec.Raw(part.json.encode())
        self._left_out(part, role)
        return None


class FlatMessageEncoder(MessageEncoder):
    """A history as a flat list, results in front of the words that were said with them.

    A subclass has `_assistant`, `_result` and `_said`, and may say the others in its own way.
    """

    system_role = "system"

    def run(self) -> list[Wire]:
        """Every message of the prompt, in order."""
        spelled = self._first()
        for message in self.prompt.messages:
            match message.role:
                case "system":
                    spelled += self._system(message)
                case "assistant":
                    spelled += self._assistant(message)
                case "user" | "tool":
                    spelled += self._results(message)
                    spelled += self._user(message)
        return spelled

    def _first(self) -> list[Wire]:
        """The system prompt, as a message of its own."""
        preamble = self._preamble
        return [] if preamble is None else [{"role": self.system_role, "content": preamble}]

    def _system(self, message: Message) -> list[Wire]:
        text = message.text
        return [{"role": self.system_role, "content": text}] if text.strip() else []

    def _assistant(self, message: Message) -> list[Wire]:
        raise NotImplementedError

    def _results(self, message: Message) -> list[Wire]:
        return [self._result(part) for part in message.parts if isinstance(part, ToolResult)]

    def _result(self, result: ToolResult) -> Wire:
        raise NotImplementedError

    def _user(self, message: Message) -> list[Wire]:
        said: list[Part] = [part for part in message.parts if not isinstance(part, ToolResult)]
        if not said and (message.parts or message.role == "tool"):
            return []
        if message.role == "tool":
            raise Unsupported("a message of role 'tool' holds ToolResult parts; put other words into a user message.")
        return [{"role": "user", **self._said(said)}]

    def _said(self, parts: list[Part]) -> Wire:
        """The fields that hold what a person said."""
        raise NotImplementedError


def plain_content(spelled: list[Any], text_type: str) -> str | list[Any]:
    """Content that is nothing but one text as a string, and everything else as the list of its parts."""
    match spelled:
        case []:
            return ""
        case [{"type": kind, "text": str() as text}] if kind == text_type:
            return text
        case _:
            return spelled


def encode_arguments(call: ToolCall) -> str:
    """The arguments of a call where they travel as text: as they came, where they are no JSON object."""
    raw = call.raw_arguments
    return msgspec.json.encode(call.arguments).decode() if raw is None else raw


def data_url(media_type: str, data: bytes) -> str:
    """The bytes as an address of themselves."""
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def image_address(image: Image) -> str:
    """Where the image is, which may be in the address itself."""
    if image.data is not None:
        return data_url(image.media_type, image.data)
    if image.url is not None:
        return image.url
    raise Unsupported("an image has neither data nor an address; give Image(data=…) or Image(url=…).")
