"""Messages in the words of Messages: the history as turns of content blocks, and the system prompt beside them.

Assistant turns go back as they came, block for block. Not here: which thoughts go back (plan has taken out the others),
and the rest of the request (encode).
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from asides.dialects.anthropic.blocks import CALLER, CITATIONS, REDACTED, SIGNATURE
from asides.dialects.message_encoder import Wire
from asides.dialects.turn_encoder import TurnEncoder, inline_data, kept_entry
from asides.values.errors import Unsupported
from asides.values.messages import File, Image, Message, Prompt, Text, ToolCall, ToolResult
from asides.values.notices import Notice
from asides.values.thinking import Thought

FILES = "files-api-2025-04-14"
"""The beta that files by their id need."""

_CACHED: Wire = {"type": "ephemeral"}


class Spelled(msgspec.Struct):
    """A history in this dialect's words."""

    system: str | list[Wire] | None
    messages: list[Wire]
    betas: list[str]


def encode_messages(prompt: Prompt, notices: list[Notice]) -> Spelled:
    """Every message of the prompt, in order; a longer history begins with the same list as a shorter one."""
    return _Speller(prompt, notices).run()


class _Speller(TurnEncoder):
    """One history, while it is put into the words of Messages."""

    def __init__(self, prompt: Prompt, notices: list[Notice]) -> None:
        super().__init__(prompt, notices)
        self.betas: list[str] = []

    def run(self) -> Spelled:
        self.walk()
        for turn in self.turns:
            turn["content"] = _content(turn)
        system = self.system
        plain = len(system) == 1 and "cache_control" not in system[0]
        return Spelled((system[0]["text"] if plain else system) if system else None, self.turns, self.betas)

    def _add(self, role: str, blocks: list[Any]) -> None:
        """A turn, or more of the last one: what people and tools say in a row is one turn, results in front."""
        if role == "user" and self.turns and self.turns[-1]["role"] == "user":
            blocks = [*self.turns.pop()["content"], *blocks]
        if role == "user":
            blocks.sort(key=lambda block: not (isinstance(block, dict) and block["type"] == "tool_result"))
        self.turns.append({"role": role, "content": blocks})

    def _marked(self, block: Wire, cache: bool) -> list[Any]:
        return [{**block, "cache_control": _CACHED} if cache else block]

    def _words(self, text: str) -> Wire:
        return {"type": "text", "text": text}

    # --- user and tools ---------------------------------------------------------------------------------------------

    def _result(self, result: ToolResult) -> Wire:
        content: str | list[Any] = result.content if isinstance(result.content, str) else []
        if not isinstance(result.content, str):
            content = [block for part in result.content for block in self._user_part(part)]
        spelled: Wire = {"type": "tool_result", "tool_use_id": self._answering(result.call_id), "content": content}
        if result.is_error:
            spelled["is_error"] = True
        return spelled

    def _image(self, image: Image) -> Wire:
        if image.data is not None:
            data = b64encode(image.data).decode()
            return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}
        if image.url is None:
            raise Unsupported("an image has neither data nor an address; give Image(data=…) or Image(url=…).")
        return {"type": "image", "source": _source(image.url)}

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

    def _assistant(self, message: Message) -> list[Any]:
        spelled = super()._assistant(message)
        if self.last and spelled and isinstance(spelled[-1], dict) and spelled[-1]["type"] == "text":
            # What the model is to go on with may not end in blanks.
            spelled[-1]["text"] = spelled[-1]["text"].rstrip()
        return spelled

    def _thought(self, thought: Thought) -> list[Wire]:
        """The blocks that a thought came as. Where nothing was signed, the field is there and empty."""
        redacted = [seal.value for seal in thought.seals if seal.kind == REDACTED]
        signature = next((seal.value for seal in thought.seals if seal.kind == SIGNATURE), "")
        spelled: list[Wire] = [{"type": "redacted_thinking", "data": data} for data in redacted]
        if signature or (thought.text and not redacted):
            spelled.append({"type": "thinking", "thinking": thought.text, "signature": signature})
        return spelled

    def _answer(self, part: Text) -> Wire:
        words = self._words(part.text)
        citations = kept_entry(part.seals, CITATIONS)
        return words if citations is None else {**words, "citations": citations}

    def _call(self, call: ToolCall) -> Wire:
        spelled: Wire = {
            "type": "tool_use",
            "id": self._asking(call.id),
            "name": call.name,
            "input": call.arguments,
        }
        caller = kept_entry(call.seals, CALLER)
        return spelled if caller is None else {**spelled, "caller": caller}


def _content(turn: Wire) -> str | list[Any]:
    """Plain words as a string, everything else as the list of its blocks."""
    match turn["content"]:
        case [{"type": "text", "text": str() as text, **more}] if not more and turn["role"] == "user":
            return text
        case blocks:
            return list(blocks)


def _source(url: str) -> Wire:
    inline = inline_data(url)
    if inline is None:
        return {"type": "url", "url": url}
    media_type, data = inline
    return {"type": "base64", "media_type": media_type, "data": data}
