"""Messages in the words of Converse: the history as turns of content blocks, and the system prompt beside them.

Assistant turns go back as they came, block for block; a thought only with its signature, since what is not signed
would turn up in the answer. Not here: which thoughts go back (plan), and the rest of the request (encode).
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, REDACTED, SIGNATURE
from asides.dialects.message_encoder import Wire
from asides.dialects.turn_encoder import TurnEncoder, inline_data, kept_entry
from asides.values.errors import Unsupported
from asides.values.messages import File, Image, Prompt, Text, ToolCall, ToolResult
from asides.values.notices import Notice
from asides.values.thinking import Thought

_CACHE_POINT: Wire = {"cachePoint": {"type": "default"}}
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


def encode_messages(prompt: Prompt, notices: list[Notice]) -> Spelled:
    """Every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, notices).run()


class _Speller(TurnEncoder):
    """One history, while it is put into the words of Converse."""

    def run(self) -> Spelled:
        self.walk()
        return Spelled(self.system, self.turns)

    def _add(self, role: str, blocks: list[Any]) -> None:
        """A turn, or more of the last one: who speaks twice in a row is refused."""
        if self.turns and self.turns[-1]["role"] == role:
            self.turns[-1]["content"] += blocks
        else:
            self.turns.append({"role": role, "content": blocks})

    def _marked(self, block: Wire, cache: bool) -> list[Any]:
        return [block, _CACHE_POINT] if cache else [block]

    def _words(self, text: str) -> Wire:
        return {"text": text}

    # --- user and tools ---------------------------------------------------------------------------------------------

    def _result(self, result: ToolResult) -> Wire:
        parts: tuple[Text | Image | File, ...] = (
            (Text(result.content),) if isinstance(result.content, str) else result.content
        )
        content = [block for part in parts for block in self._user_part(part)]
        told: Wire = {"toolUseId": self._answering(result.call_id), "content": content}
        if result.is_error:
            told["status"] = "error"
        return {"toolResult": told}

    def _image(self, image: Image) -> Wire:
        return {"image": _media(image.media_type, image.data, image.url)}

    def _file(self, file: File) -> Wire:
        media = _media(file.media_type, file.data, file.url)
        if file.media_type.startswith("video/"):
            return {"video": media}
        if file.media_type.startswith("image/"):
            return {"image": media}
        name = _NOT_IN_NAMES.sub(" ", file.name.rpartition(".")[0] or file.name).strip() or "file"
        return {"document": {"name": name, **media}}

    # --- assistant --------------------------------------------------------------------------------------------------

    def _thought(self, thought: Thought) -> list[Wire]:
        """The blocks that a thought came as, byte for byte."""
        spelled: list[Wire] = []
        for seal in thought.seals:
            if seal.kind == REDACTED:
                spelled.append({"reasoningContent": {"redactedContent": seal.value}})
            elif seal.kind == SIGNATURE:
                told = {"text": thought.text, "signature": seal.value}
                spelled.append({"reasoningContent": {"reasoningText": told}})
        return spelled

    def _answer(self, part: Text) -> Wire:
        words = self._words(part.text)
        citations = kept_entry(part.seals, CITATIONS)
        return words if citations is None else {"citationsContent": {"content": [words], "citations": citations}}

    def _call(self, call: ToolCall) -> Wire:
        return {"toolUse": {"toolUseId": self._asking(call.id), "name": call.name, "input": call.arguments}}


def _media(media_type: str, data: bytes | None, url: str | None) -> Wire:
    inline = inline_data(url) if url is not None else None
    kind = inline[0] if inline is not None else media_type
    form = _FORMATS.get(kind) or kind.rpartition("/")[2]
    if data is not None:
        return {"format": form, "source": {"bytes": b64encode(data).decode()}}
    if inline is not None:
        return {"format": form, "source": {"bytes": inline[1]}}
    if url is not None and url.startswith("s3://"):
        return {"format": form, "source": {"s3Location": {"uri": url}}}
    raise Unsupported("pictures and files are taken by their bytes, or from s3:// addresses; give data=….")
