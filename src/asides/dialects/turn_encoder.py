"""A history as turns of content blocks, with the system prompt beside them: `TurnEncoder`.

Assistant turns go back as they came, block for block. Not here: the form of any block, which is a dialect's.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from asides.dialects.message_encoder import OPENING, MessageEncoder, Wire
from asides.values.messages import (
    File,
    Image,
    Message,
    Part,
    Prompt,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from asides.values.notices import Notice
from asides.values.thinking import Seal, Thought

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


class TurnEncoder(MessageEncoder):
    """One history, while it is put into turns. A subclass has the forms of the blocks, and says who begins a turn."""

    def __init__(self, prompt: Prompt, notices: list[Notice]) -> None:
        super().__init__(prompt, notices)
        self.system: list[Any] = []
        self.turns: list[Wire] = []
        self.last = False
        """Whether the message that is being spelled is the last one."""
        self._ids: dict[str, str] = {}
        """The ids that calls go by here, by those that they were given."""
        self._used: set[str] = set()

    def walk(self) -> None:
        """Every message of the prompt, in order: into `system` and `turns`."""
        if (preamble := self._preamble) is not None:
            self.system.append(self._words(preamble))
        for place, message in enumerate(self.prompt.messages):
            self.last = place == len(self.prompt.messages) - 1
            match message.role:
                case "system":
                    if self.turns:
                        self._note("system_moved", "system words have one place here; they were moved to the front")
                    self.system += self._system(message)
                case "assistant":
                    blocks = self._assistant(message)
                    if blocks and not self.turns:
                        self._note("turn_added", "a conversation begins with a person here; a word of one was added")
                        self._add("user", [self._words(OPENING)])
                    if blocks:
                        self._add("assistant", blocks)
                case "user" | "tool":
                    blocks = self._user(message)
                    if blocks:
                        self._add("user", blocks)

    def _system(self, message: Message) -> list[Any]:
        self._leave_out_all_but_text(message)
        return [block for part in message.parts if isinstance(part, Text) for block in self._user_part(part)]

    def _user(self, message: Message) -> list[Any]:
        spelled = [block for part in message.parts for block in self._user_part(part)]
        if not spelled and message.role == "user":
            self._note("message_not_sent", "a message without content was left out")
        return spelled

    def _user_part(self, part: Part) -> list[Any]:
        match part:
            case Text():
                # Blank text is refused.
                return self._marked(self._words(part.text), part.cache) if part.text.strip() else []
            case Image():
                return self._marked(self._image(part), part.cache)
            case File():
                return self._marked(self._file(part), part.cache)
            case ToolResult():
                return self._marked(self._result(part), part.cache)
            case _:
                native = self._native(part, "user")
                return [] if native is None else [native]

    def _assistant(self, message: Message) -> list[Any]:
        spelled: list[Any] = []
        waiting: list[Any] = []
        for part in message.parts:
            if isinstance(part, Thought):
                waiting += self._thought(part)
                continue
            before = len(spelled)
            match part:
                case Text():
                    # Some replies hold a block of blanks, which is refused when it comes back.
                    if part.text.strip():
                        spelled += self._marked(self._answer(part), part.cache)
                case ToolCall():
                    if part.raw_arguments is not None:
                        self._note("arguments_not_sent", "arguments that are no JSON object went back as an empty one")
                    spelled.append(self._call(part))
                case ServerTool() | UnknownPart():
                    spelled.append(msgspec.Raw(part.json.encode()))
                case Refusal():
                    pass  # the provider's words about the reply, not the model's in it
                case _:
                    self._left_out(part, "assistant")
            if len(spelled) > before:
                spelled[before:before] = waiting
                waiting = []
        if waiting:
            # A turn that ends with thinking is refused.
            self._note("reasoning_not_sent", "a thought that nothing followed cannot go back")
        return spelled

    def _asking(self, call_id: str) -> str:
        """The id that a call goes by. Hosts that count their calls from zero give the same in every reply, and here an
        id is refused that an earlier turn has.
        """
        accepted, times = accepted_call_id(call_id), 1
        name = accepted
        while name in self._used:
            times += 1
            name = f"{accepted[:56]}_{times}"
        self._used.add(name)
        self._ids[call_id] = name
        return name

    def _answering(self, call_id: str) -> str:
        """The id of the call that a result answers: the latest that was given this one."""
        return self._ids.get(call_id) or accepted_call_id(call_id)

    # --- a dialect's own --------------------------------------------------------------------------------------------

    def _add(self, role: str, blocks: list[Any]) -> None:
        """A turn, or more of the last one."""
        raise NotImplementedError

    def _marked(self, block: Wire, cache: bool) -> list[Any]:
        """The block, with a mark of the cache behind it where one is wanted."""
        raise NotImplementedError

    def _words(self, text: str) -> Wire:
        raise NotImplementedError

    def _image(self, image: Image) -> Wire:
        raise NotImplementedError

    def _file(self, file: File) -> Wire:
        raise NotImplementedError

    def _result(self, result: ToolResult) -> Wire:
        raise NotImplementedError

    def _thought(self, thought: Thought) -> list[Wire]:
        """The blocks that a thought came as."""
        raise NotImplementedError

    def _answer(self, part: Text) -> Wire:
        """Words of the model, with what they cite."""
        raise NotImplementedError

    def _call(self, call: ToolCall) -> Wire:
        raise NotImplementedError


def accepted_call_id(call_id: str) -> str:
    """An id that is accepted: another provider's may hold other characters. Always the same for the same id."""
    if _CALL_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.blake2b(call_id.encode(), digest_size=12).hexdigest()}"


def inline_data(url: str) -> tuple[str, str] | None:
    """The media type and the base64 of an address that holds what it names; None where it does not."""
    inline = _DATA_URL.fullmatch(url)
    return None if inline is None else (inline[1], inline[2])


def kept_entry(seals: tuple[Seal, ...], kind: str) -> msgspec.Raw | None:
    """What stood beside a block, verbatim, where it came with a seal of this kind."""
    entry = next((seal.entry for seal in seals if seal.kind == kind and seal.entry is not None), None)
    return None if entry is None else msgspec.Raw(entry.encode())
