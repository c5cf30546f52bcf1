"""The two forms of a chat completion, from the same deltas: chunks of a stream (`Chunks`), and one document
(`WholeCompletion`).

Not here: the deltas of a reply (write_reply).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.dialects.openai_chat.encode_messages import DETAILS
from asides.values.events import ReplyStarted

Delta: TypeAlias = dict[str, Any]

encode_text = msgspec.json.Encoder().encode
# Most chunks are a head, one text, and this.
TAIL = b'},"finish_reason":null}]}\n\n'
ARGUMENTS = b',"function":{"arguments":'
CALL_TAIL = b"}}]" + TAIL


class Chunks:
    """Deltas as server-sent events."""

    def __init__(self) -> None:
        self._head = b""
        self.text_head = b""
        """A chunk up to the text of an answer."""
        self.call_head = b""
        """A chunk up to the index of a call."""
        self._thinking_heads: dict[str | None, bytes] = {}

    def find_head(self, field: str | None) -> bytes:
        """Return a chunk up to the text of a field."""
        head = self._thinking_heads.get(field)
        if head is None:
            head = b'%b,"choices":[{"index":0,"delta":{%b:' % (self._head, msgspec.json.encode(field))
            self._thinking_heads[field] = head
        return head

    def begin(self, started: ReplyStarted, created: int) -> bytes:
        """Write the first chunk, which names the role."""
        head = {
            "id": started.id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": started.model,
        }
        # The same for every chunk, so it is written once.
        self._head = b"data: " + msgspec.json.encode(head)[:-1]
        self.text_head = self.find_head("content")
        self.call_head = self.find_head("tool_calls") + b'[{"index":'
        return self.add({"role": "assistant", "content": ""})

    def add(self, delta: Delta) -> bytes:
        """Write a chunk with this delta."""
        return self._write_chunk(msgspec.json.encode(delta), b"null")

    def end(self, finish_reason: str | None, usage: dict[str, Any] | None) -> bytes:
        """Write the last chunks."""
        finish = self._write_chunk(b"{}", msgspec.json.encode(finish_reason))
        if usage is not None:
            finish += b'%b,"choices":[],"usage":%b}\n\n' % (self._head, msgspec.json.encode(usage))
        return finish + b"data: [DONE]\n\n"

    def _write_chunk(self, delta: bytes, finish_reason: bytes) -> bytes:
        choice = b'{"index":0,"delta":%b,"finish_reason":%b}' % (delta, finish_reason)
        return b'%b,"choices":[%b]}\n\n' % (self._head, choice)


class WholeCompletion:
    """Deltas joined into one document."""

    def __init__(self) -> None:
        self._created = 0
        self._started = ReplyStarted()
        self._texts: dict[str, list[str]] = {"content": []}
        self._calls: list[dict[str, Any]] = []
        self._arguments: list[list[str]] = []
        self._objects: dict[str, Any] = {}

    def begin(self, started: ReplyStarted, created: int) -> bytes:
        """Take what is known at the start."""
        self._started, self._created = started, created
        return b""

    def add(self, delta: Delta) -> bytes:
        """Add a delta to the message."""
        for name, value in delta.items():
            if name == "tool_calls":
                self._add_call(value[0])
            elif name == DETAILS:
                self._objects.setdefault(name, []).extend(value)
            elif name in ("extra_content", "thought_signature"):
                self._objects[name] = value
            else:
                self._texts.setdefault(name, []).append(value)
        return b""

    def _add_call(self, piece: dict[str, Any]) -> None:
        if "id" in piece:
            kind = piece["type"]
            self._calls.append({"id": piece["id"], "type": kind, kind: {}})
            self._arguments.append([])
        call, arguments = self._calls[piece["index"]], self._arguments[piece["index"]]
        if "custom" in piece:
            call["custom"] |= {name: value for name, value in piece["custom"].items() if name != "input"}
            arguments.append(piece["custom"]["input"])
            return
        if "extra_content" in piece:
            call["extra_content"] = piece["extra_content"]
        function = piece.get("function", {})
        if "name" in function:
            call["function"].setdefault("name", function["name"])
        if "arguments" in function:
            arguments.append(function["arguments"])

    def end(self, finish_reason: str | None, usage: dict[str, Any] | None) -> bytes:
        """Write the document."""
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        message: dict[str, Any] = {"role": "assistant", **texts, **self._objects}
        message["content"] = message["content"] or None
        if self._calls:
            for call, arguments in zip(self._calls, self._arguments, strict=True):
                is_custom = call["type"] == "custom"
                call[call["type"]]["input" if is_custom else "arguments"] = "".join(arguments)
            message["tool_calls"] = self._calls
        document: dict[str, Any] = {
            "id": self._started.id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._started.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        }
        if usage is not None:
            document["usage"] = usage
        return msgspec.json.encode(document)
