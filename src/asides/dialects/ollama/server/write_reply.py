"""Write replies (`ChatLineWriter`, `GenerateLineWriter` for `/api/generate`) and errors (`write_error`) like Ollama."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from asides.dialects.server_half import ContentEvent, ReplyWriter, name_stop
from asides.values.events import (
    PartArrived,
    RefusalDelta,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.fold import fold
from asides.values.parts import Image, ToolCall

_BETWEEN_THOUGHTS = "\n\n"
_encode_text = msgspec.json.Encoder().encode
# No model has this name.
_MARK = "<asides text>"


def write_error(status: int, message: str, kind: str | None = None) -> bytes:  # noqa: ARG001 - all errors have one form
    """Write an error body."""
    return msgspec.json.encode({"error": message})


class ChatLineWriter(ReplyWriter):
    """Events of one reply in, chat lines out, or one document.

    The dialect has one field for thinking and one for the answer: blocks are joined, thoughts with a blank line between
    them. Calls are written whole, at the end. Seals are not written; of whole parts, only images are.
    """

    parts = (Image,)

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = "application/x-ndjson" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream, stream=stream)
        self._texts: dict[str, list[str]] = {"content": [], "thinking": []}
        self._images: list[bytes] = []
        self._calls: list[ToolCallDelta] = []
        self._last_thought: int | None = None
        self._around: dict[str, tuple[bytes, bytes]] = {}

    def _write_event(self, event: ContentEvent) -> bytes:
        match event:
            case TextDelta() | RefusalDelta():
                return self._write_field("content", event.text)
            case ThinkingDelta():
                return self._write_thought(event)
            case ToolCallDelta():
                self._calls.append(event)
            case PartArrived():
                if isinstance(event.part, Image) and event.part.data is not None:
                    self._images.append(event.part.data)
            case ThoughtSealed():
                pass
        return b""

    def _write_thought(self, event: ThinkingDelta) -> bytes:
        text = event.text
        if text and event.block != self._last_thought:
            text = text if self._last_thought is None else _BETWEEN_THOUGHTS + text
            self._last_thought = event.block
        return self._write_field("thinking", text)

    def _write_field(self, field: str, text: str) -> bytes:
        if not text:
            return b""
        if not self._stream:
            self._texts[field].append(text)
            return b""
        around = self._around.get(field)
        if around is None:
            around = self._around[field] = self._split_line(field)
        return b"%b%b%b" % (around[0], _encode_text(text), around[1])

    def _split_line(self, field: str) -> tuple[bytes, bytes]:
        """Return a line before and after its text: it is the same for all texts of a field."""
        message = {"role": "assistant", "content": ""} | {field: _MARK}
        head, _, tail = self._write_line({**self._encode_message(message), "done": False}).partition(
            b'"%b"' % _MARK.encode()
        )
        return head, tail

    def _write_end(self, stop: StopReason) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts["content"])}
        if thinking := "".join(self._texts["thinking"]):
            message["thinking"] = thinking
        if calls := fold([self._started, *self._calls]).tool_calls:
            message["tool_calls"] = [_encode_call(index, call) for index, call in enumerate(calls)]
        if self._images:
            message["images"] = [msgspec.to_builtins(data) for data in self._images]
        ending: dict[str, Any] = {"done": True}
        if stop != StopReason():
            ending["done_reason"] = _encode_stop(stop)
        ending |= self._encode_usage()
        if not self._stream:
            return self._write_line({**self._encode_message(message), **ending}).rstrip(b"\n")
        last = self._write_line({**self._encode_message({"role": "assistant", "content": ""}), **ending})
        has_more = len(message) > 2
        return self._write_line({**self._encode_message(message), "done": False}) + last if has_more else last

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        body = write_error(status, message, kind)
        return body + b"\n" if self._stream else body

    def write_ping(self) -> bytes:
        """Write a line without content: clients parse every line."""
        if self._ended or not self._stream:
            return b""
        return self._write_line({**self._encode_message({"role": "assistant", "content": ""}), "done": False})

    def _encode_message(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"message": message}

    def _encode_usage(self) -> dict[str, int]:
        usage = self._shown_usage
        if usage is None:
            return {}
        counts = {"prompt_eval_count": usage.input, "eval_count": usage.output}
        return {name: count for name, count in counts.items() if count is not None}

    def _write_line(self, fields: dict[str, Any]) -> bytes:
        head = {"model": self._started.model, "created_at": datetime.fromtimestamp(self.created, UTC)}
        return msgspec.json.encode({**head, **fields}) + b"\n"


class GenerateLineWriter(ChatLineWriter):
    """As the lines of a chat, but the answer is in `response`, and the thinking beside it."""

    def _encode_message(self, message: dict[str, Any]) -> dict[str, Any]:
        beside = {name: value for name, value in message.items() if name not in ("role", "content")}
        return {"response": message["content"], **beside}


def _encode_stop(stop: StopReason) -> str:
    return name_stop(stop, ("stop", "length", "load", "unload"), {"length": "length"}, complete="stop")


def _encode_call(index: int, call: ToolCall) -> dict[str, Any]:
    arguments: Any = call.arguments if call.raw_arguments is None else call.raw_arguments
    return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": arguments}}
