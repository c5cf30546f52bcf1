"""Messages in the words of Messages: the history as turns of content blocks, and the system prompt beside them.

Assistant turns go back as they came, block for block. Not here: which thoughts go back (plan has taken out the others),
and the rest of the request (encode).
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from typing import Any, TypeAlias

import msgspec

from asides.dialects.anthropic.blocks import CALLER, CITATIONS, REDACTED, SIGNATURE
from asides.errors import Unsupported
from asides.messages import (
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
    Unknown,
)
from asides.notices import Notice
from asides.thinking import Seal, Thought

Wire: TypeAlias = dict[str, Any]

FILES = "files-api-2025-04-14"
"""The beta that files by their id need."""

_CACHED: Wire = {"type": "ephemeral"}
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


class Spelled(msgspec.Struct):
    """A history in this dialect's words."""

    system: str | list[Wire] | None
    messages: list[Wire]
    betas: list[str]


def spell_messages(prompt: Prompt, notices: list[Notice]) -> Spelled:
    """Every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, notices).run()


class _Speller:
    """One history, while it is put into words."""

    def __init__(self, prompt: Prompt, notices: list[Notice]) -> None:
        self.prompt = prompt
        self.notices = notices
        self.betas: list[str] = []
        self.turns: list[Wire] = []

    def run(self) -> Spelled:
        system: list[Wire] = [_text(self.prompt.system)] if self.prompt.system and self.prompt.system.strip() else []
        for place, message in enumerate(self.prompt.messages):
            match message.role:
                case "system":
                    if self.turns:
                        self._note("system_moved", "system words have one place here; they were moved to the front")
                    system += self._system(message)
                case "assistant":
                    self._add("assistant", self._assistant(message, last=place == len(self.prompt.messages) - 1))
                case "user" | "tool":
                    self._add("user", self._user(message))
        for turn in self.turns:
            turn["content"] = _content(turn)
        plain = len(system) == 1 and "cache_control" not in system[0]
        return Spelled((system[0]["text"] if plain else system) if system else None, self.turns, self.betas)

    def _add(self, role: str, blocks: list[Any]) -> None:
        """A turn, or more of the last one: what people and tools say in a row is one turn, results in front."""
        if not blocks:
            return
        if role == "user" and self.turns and self.turns[-1]["role"] == "user":
            blocks = [*self.turns.pop()["content"], *blocks]
        if role == "user":
            blocks.sort(key=lambda block: not (isinstance(block, dict) and block["type"] == "tool_result"))
        self.turns.append({"role": role, "content": blocks})

    def _note(self, code: str, detail: str) -> None:
        notice = Notice(code, detail, "messages")
        if notice not in self.notices:
            self.notices.append(notice)

    def _left_out(self, part: Part, role: str) -> None:
        what = f"a part of type {type(part).__name__}"
        self._note("part_not_sent", f"{what} in the words of the {role} cannot be sent in this dialect")

    def _system(self, message: Message) -> list[Wire]:
        spelled: list[Wire] = []
        for part in message.parts:
            if not isinstance(part, Text):
                self._left_out(part, "system")
            elif part.text.strip():
                spelled.append(_marked(_text(part.text), part.cache))
        return spelled

    # --- user and tools ---------------------------------------------------------------------------------------------

    def _user(self, message: Message) -> list[Any]:
        spelled = [wire for part in message.parts if (wire := self._user_part(part)) is not None]
        if not spelled and message.role == "user":
            self._note("message_not_sent", "a message without content was left out")
        return spelled

    def _user_part(self, part: Part) -> Any:
        match part:
            case Text():
                # Blank text is refused.
                return _marked(_text(part.text), part.cache) if part.text.strip() else None
            case Image():
                return _marked(_image(part), part.cache)
            case File():
                return _marked(self._file(part), part.cache)
            case ToolResult():
                return _marked(self._result(part), part.cache)
            case Unknown(origin=None):
                # Written by the caller in this dialect's own form; whoever writes a native part means it.
                return msgspec.Raw(part.json.encode())
            case _:
                self._left_out(part, "user")
                return None

    def _result(self, result: ToolResult) -> Wire:
        content: str | list[Any] = result.content if isinstance(result.content, str) else []
        if not isinstance(result.content, str):
            content = [wire for part in result.content if (wire := self._user_part(part)) is not None]
        spelled: Wire = {"type": "tool_result", "tool_use_id": _call_id(result.call_id), "content": content}
        if result.is_error:
            spelled["is_error"] = True
        return spelled

    def _file(self, file: File) -> Wire:
        spelled: Wire = {"type": "document", "source": self._file_source(file)}
        if file.name != "file":
            spelled["title"] = file.name
        return spelled

    def _file_source(self, file: File) -> Wire:
        if file.id is not None:
            if FILES not in self.betas:
                self.betas.append(FILES)
            return {"type": "file", "file_id": file.id}
        if file.data is not None and file.media_type == "text/plain":
            return {"type": "text", "media_type": "text/plain", "data": file.data.decode("utf-8", "replace")}
        if file.data is not None and file.media_type == "application/pdf":
            return {"type": "base64", "media_type": file.media_type, "data": b64encode(file.data).decode()}
        if file.data is not None:
            raise Unsupported(f"files are PDF or plain text here, not {file.media_type}; convert it first.")
        if file.url is None:
            raise Unsupported("a file has neither data nor an address nor an id; give File(data=…).")
        return _source(file.url)

    # --- assistant --------------------------------------------------------------------------------------------------

    def _assistant(self, message: Message, *, last: bool) -> list[Any]:
        spelled: list[Any] = []
        for part in message.parts:
            match part:
                case Thought():
                    spelled += _thought(part)
                case Text():
                    # Some replies hold a block of blanks, which is refused when it comes back.
                    if part.text.strip():
                        spelled.append(_marked(_answer(part), part.cache))
                case ToolCall():
                    if part.raw_arguments is not None:
                        self._note("arguments_not_sent", "arguments that are no JSON object went back as an empty one")
                    spelled.append(_call(part))
                case ServerTool() | Unknown():
                    spelled.append(msgspec.Raw(part.json.encode()))
                case Refusal():
                    pass  # the provider's words about the reply, not the model's in it
                case _:
                    self._left_out(part, "assistant")
        if last and spelled and isinstance(spelled[-1], dict) and spelled[-1]["type"] == "text":
            # What the model is to go on with may not end in blanks.
            spelled[-1]["text"] = spelled[-1]["text"].rstrip()
        return spelled


def _content(turn: Wire) -> str | list[Any]:
    """Plain words as a string, everything else as the list of its blocks."""
    match turn["content"]:
        case [{"type": "text", "text": str() as text, **more}] if not more and turn["role"] == "user":
            return text
        case blocks:
            return list(blocks)


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


def _marked(spelled: Wire, cache: bool) -> Wire:
    return {**spelled, "cache_control": _CACHED} if cache else spelled


def _entry(seals: tuple[Seal, ...], kind: str) -> msgspec.Raw | None:
    entry = next((seal.entry for seal in seals if seal.kind == kind and seal.entry is not None), None)
    return None if entry is None else msgspec.Raw(entry.encode())


def _answer(part: Text) -> Wire:
    citations = _entry(part.seals, CITATIONS)
    return _text(part.text) if citations is None else {**_text(part.text), "citations": citations}


def _thought(thought: Thought) -> list[Wire]:
    """The blocks that a thought came as. Where nothing was signed, the field is there and empty."""
    redacted = [seal.value for seal in thought.seals if seal.kind == REDACTED]
    signature = next((seal.value for seal in thought.seals if seal.kind == SIGNATURE), "")
    spelled: list[Wire] = [{"type": "redacted_thinking", "data": data} for data in redacted]
    if signature or (thought.text and not redacted):
        spelled.append({"type": "thinking", "thinking": thought.text, "signature": signature})
    return spelled


def _call(call: ToolCall) -> Wire:
    spelled: Wire = {"type": "tool_use", "id": _call_id(call.id), "name": call.name, "input": call.arguments}
    caller = _entry(call.seals, CALLER)
    return spelled if caller is None else {**spelled, "caller": caller}


def _call_id(call_id: str) -> str:
    """An id that is accepted: another provider's may hold other characters. Always the same for the same id."""
    if _CALL_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.blake2b(call_id.encode(), digest_size=12).hexdigest()}"


def _image(image: Image) -> Wire:
    if image.data is not None:
        data = b64encode(image.data).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}
    if image.url is None:
        raise Unsupported("an image has neither data nor an address; give Image(data=…) or Image(url=…).")
    return {"type": "image", "source": _source(image.url)}


def _source(url: str) -> Wire:
    inline = _DATA_URL.fullmatch(url)
    if inline is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": inline[1], "data": inline[2]}
