"""Messages in the words of Converse: the history as turns of content blocks, and the system prompt beside them.

Assistant turns go back as they came, block for block; a thought only with its signature, since what is not signed
would turn up in the answer. Not here: which thoughts go back (plan), and the rest of the request (encode).
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from typing import Any, TypeAlias

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE
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
from asides.thinking import Thought

Wire: TypeAlias = dict[str, Any]

_CACHE_POINT: Wire = {"cachePoint": {"type": "default"}}
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9\s\-()\[\]]+|\s{2,}")

_FORMATS = {
    "image/jpg": "jpeg",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/plain": "txt",
    "text/markdown": "md",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "video/3gpp": "three_gp",
}


class Spelled(msgspec.Struct):
    """A history in this dialect's words."""

    system: list[Wire]
    messages: list[Wire]


def spell_messages(prompt: Prompt, notices: list[Notice]) -> Spelled:
    """Every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, notices).run()


class _Speller:
    """One history, while it is put into words."""

    def __init__(self, prompt: Prompt, notices: list[Notice]) -> None:
        self.prompt = prompt
        self.notices = notices
        self.turns: list[Wire] = []

    def run(self) -> Spelled:
        system: list[Wire] = []
        if self.prompt.system and self.prompt.system.strip():
            system.append({"text": self.prompt.system})
        for message in self.prompt.messages:
            match message.role:
                case "system":
                    if self.turns:
                        self._note("system_moved", "system words have one place here; they were moved to the front")
                    system += self._system(message)
                case "assistant":
                    self._add("assistant", self._assistant(message))
                case "user" | "tool":
                    self._add("user", self._user(message))
        return Spelled(system, self.turns)

    def _add(self, role: str, blocks: list[Any]) -> None:
        """A turn, or more of the last one: who speaks twice in a row is refused."""
        if not blocks:
            return
        if self.turns and self.turns[-1]["role"] == role:
            self.turns[-1]["content"] += blocks
        else:
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
                spelled += _marked({"text": part.text}, part.cache)
        return spelled

    # --- user and tools ---------------------------------------------------------------------------------------------

    def _user(self, message: Message) -> list[Any]:
        spelled: list[Any] = []
        for part in message.parts:
            spelled += self._user_part(part)
        if not spelled and message.role == "user":
            self._note("message_not_sent", "a message without content was left out")
        return spelled

    def _user_part(self, part: Part) -> list[Any]:
        match part:
            case Text():
                # Blank text is refused.
                return _marked({"text": part.text}, part.cache) if part.text.strip() else []
            case Image():
                return _marked({"image": _media(part.media_type, part.data, part.url)}, part.cache)
            case File():
                return _marked(_file(part), part.cache)
            case ToolResult():
                return _marked(self._result(part), part.cache)
            case Unknown(origin=None):
                # Written by the caller in this dialect's own form; whoever writes a native part means it.
                return [msgspec.Raw(part.json.encode())]
            case _:
                self._left_out(part, "user")
                return []

    def _result(self, result: ToolResult) -> Wire:
        parts: tuple[Text | Image | File, ...] = (
            (Text(result.content),) if isinstance(result.content, str) else result.content
        )
        content = [block for part in parts for block in self._user_part(part)]
        told: Wire = {"toolUseId": _call_id(result.call_id), "content": content}
        if result.is_error:
            told["status"] = "error"
        return {"toolResult": told}

    # --- assistant --------------------------------------------------------------------------------------------------

    def _assistant(self, message: Message) -> list[Any]:
        spelled: list[Any] = []
        for part in message.parts:
            match part:
                case Thought():
                    spelled += _thought(part)
                case Text():
                    # Some replies hold a block of blanks, which is refused when it comes back.
                    if part.text.strip():
                        spelled += _marked(_answer(part), part.cache)
                case ToolCall():
                    if part.raw_arguments is not None:
                        self._note("arguments_not_sent", "arguments that are no JSON object went back as an empty one")
                    told = {"toolUseId": _call_id(part.id), "name": part.name, "input": part.arguments}
                    spelled.append({"toolUse": told})
                case ServerTool() | Unknown():
                    spelled.append(msgspec.Raw(part.json.encode()))
                case Refusal():
                    pass  # the provider's words about the reply, not the model's in it
                case _:
                    self._left_out(part, "assistant")
        return spelled


def _marked(block: Wire, cache: bool) -> list[Any]:
    return [block, _CACHE_POINT] if cache else [block]


def _thought(thought: Thought) -> list[Wire]:
    """The blocks that a thought came as, byte for byte."""
    spelled: list[Wire] = []
    for seal in thought.seals:
        if seal.kind == REDACTED:
            spelled.append({"reasoningContent": {"redactedContent": seal.value}})
        elif seal.kind == SIGNATURE:
            told = {"text": thought.text, "signature": seal.value}
            spelled.append({"reasoningContent": {"reasoningText": told}})
    return spelled


def _answer(part: Text) -> Wire:
    entry = next((seal.entry for seal in part.seals if seal.kind == CITATIONS and seal.entry is not None), None)
    if entry is None:
        return {"text": part.text}
    return {"citationsContent": {"content": [{"text": part.text}], "citations": msgspec.Raw(entry.encode())}}


def _call_id(call_id: str) -> str:
    """An id that is accepted: another provider's may hold other characters. Always the same for the same id."""
    if _CALL_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.blake2b(call_id.encode(), digest_size=12).hexdigest()}"


def _file(file: File) -> Wire:
    media = _media(file.media_type, file.data, file.url)
    if file.media_type.startswith("video/"):
        return {"video": media}
    if file.media_type.startswith("image/"):
        return {"image": media}
    name = _NOT_IN_NAMES.sub(" ", file.name.rpartition(".")[0] or file.name).strip() or "file"
    return {"document": {"name": name, **media}}


def _media(media_type: str, data: bytes | None, url: str | None) -> Wire:
    inline = _DATA_URL.fullmatch(url) if url is not None else None
    kind = inline[1] if inline is not None else media_type
    form = _FORMATS.get(kind) or kind.rpartition("/")[2]
    if data is not None:
        return {"format": form, "source": {"bytes": b64encode(data).decode()}}
    if inline is not None:
        return {"format": form, "source": {"bytes": inline[2]}}
    if url is not None and url.startswith("s3://"):
        return {"format": form, "source": {"s3Location": {"uri": url}}}
    raise Unsupported("pictures and files are taken by their bytes, or from s3:// addresses; give data=….")
