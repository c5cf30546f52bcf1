"""`VercelWriter`: the UI message stream of Vercel's AI SDK (npm package `ai`, versions 5 to 7, read 2026-11-16).

start (start-step (reasoning-* | text-* | tool-* | file)* finish-step)* (finish | abort | error)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asides.integrations.ui_parts import (
    MARKED,
    Chunk,
    UiCall,
    UiPart,
    WriterOptions,
    list_result_parts,
    make_url,
    read_output,
)
from asides.integrations.ui_writer import UiWriter
from asides.values.events import StopKind, find_stop_word
from asides.values.parts import File, Image, ServerTool, Text, ToolResult
from asides.values.usage import Usage

METADATA_KEY: Final = "asides"
"""The key of our own facts in `providerMetadata`."""

# The words of the SDK that all its versions have.
_FINISH_REASONS: dict[StopKind, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "content_filter": "content-filter",
    "error": "error",
}
_NAMES = {"thinking": "reasoning", "text": "text", "commentary": "text", "refusal": "text"}


class VercelWriter(UiWriter):
    """Writes the chunks of one assistant message."""

    def __init__(
        self, options: WriterOptions, *, message_id: str | None, metadata: Mapping[str, Any] | None, usage: bool
    ) -> None:
        super().__init__(options)
        self._message_id = message_id
        self._metadata = metadata
        self._writes_usage = usage
        self._server_tools: dict[str, str | None] = {}

    def _write_begin(self) -> None:
        """Begin the message. Without an id, the front end gives it one, or continues its last message."""
        chunk: Chunk = {"type": "start"}
        if self._message_id is not None:
            chunk["messageId"] = self._message_id
        if self._metadata is not None:
            chunk["messageMetadata"] = dict(self._metadata)
        self.out.append(chunk)

    def _write_step_start(self) -> None:
        self.out.append({"type": "start-step"})

    def _write_step_end(self) -> None:
        for id_, status in self._server_tools.items():
            output = {"status": status or "completed"}
            chunk = {"type": "tool-output-available", "toolCallId": id_, "output": output, "providerExecuted": True}
            self.out.append(chunk)
        self._server_tools.clear()
        self.out.append({"type": "finish-step"})

    def _write_part_start(self, part: UiPart) -> None:
        chunk: Chunk = {"type": f"{_NAMES[part.kind]}-start", "id": part.id}
        if part.kind in MARKED:
            chunk["providerMetadata"] = {METADATA_KEY: {part.kind: True}}
        elif part.kind == "thinking":
            chunk["providerMetadata"] = {METADATA_KEY: {"kind": part.thought_kind}}
        self.out.append(chunk)

    def _write_part_delta(self, part: UiPart, text: str) -> None:
        kind = "reasoning-delta" if part.kind == "thinking" else "text-delta"
        self.out.append({"type": kind, "id": part.id, "delta": text})

    def _write_part_end(self, part: UiPart, token: str | None) -> None:
        chunk: Chunk = {"type": f"{_NAMES[part.kind]}-end", "id": part.id}
        if token is not None:
            facts = {"kind": part.thought_kind} if part.kind == "thinking" else {}
            chunk["providerMetadata"] = {METADATA_KEY: {**facts, "state": token}}
        if part.moved:
            chunk["providerMetadata"] = {METADATA_KEY: {"moved": True}}
        self.out.append(chunk)

    def _write_hidden(self, id_: str, token: str) -> None:
        state = {METADATA_KEY: {"state": token}}
        self.out.append({"type": "reasoning-start", "id": id_, "providerMetadata": state})
        self.out.append({"type": "reasoning-end", "id": id_})

    def _write_call_start(self, call: UiCall) -> None:
        chunk: Chunk = {"type": "tool-input-start", "toolCallId": call.id, "toolName": call.name}
        if call.custom:
            chunk["inputEncoding"] = "text"
        self.out.append(chunk)

    def _write_call_delta(self, call: UiCall, text: str) -> None:
        self.out.append({"type": "tool-input-delta", "toolCallId": call.id, "inputTextDelta": text})

    def _write_call_end(self, call: UiCall, token: str | None) -> None:
        chunk: Chunk = {"type": "tool-input-available", "toolCallId": call.id, "toolName": call.name}
        if call.custom:
            chunk["input"] = call.raw
        elif call.arguments is not None:
            chunk["input"] = call.arguments
        else:
            words = "The model sent arguments that are not a JSON object."
            chunk |= {"type": "tool-input-error", "input": call.raw, "errorText": words}
        if token is not None:
            chunk["providerMetadata"] = {METADATA_KEY: {"state": token}}
        self.out.append(chunk)

    def _write_result(self, call: UiCall, result: ToolResult) -> None:
        if result.is_error:
            self.out.append({"type": "tool-output-error", "toolCallId": call.id, "errorText": result.text})
            return
        parts = list_result_parts(result)
        output = [_describe_part(part) for part in parts] if parts else read_output(result.text)
        self.out.append({"type": "tool-output-available", "toolCallId": call.id, "output": output})

    def _write_server_tool(self, part: ServerTool, id_: str, is_new: bool, token: str | None) -> None:
        self._server_tools[id_] = part.status
        if not is_new and token is None:
            return
        chunk: Chunk = {"type": "tool-input-available", "toolCallId": id_, "toolName": part.name, "input": {}}
        chunk["providerExecuted"] = True
        if token is not None:
            chunk["providerMetadata"] = {METADATA_KEY: {"state": token}}
        self.out.append(chunk)

    def _write_file(self, part: Image | File) -> None:
        if (url := make_url(part)) is not None:
            self.out.append({"type": "file", "url": url, "mediaType": part.media_type})

    def _write_finish(self) -> None:
        chunk: Chunk = {"type": "finish"}
        if self.outcome in ("limit", "failed"):
            chunk["finishReason"] = "error"
        elif self.stop is not None:
            chunk["finishReason"] = find_stop_word(_FINISH_REASONS, self.stop) or "other"
        if self._writes_usage and self.usage is not None:
            chunk["messageMetadata"] = {"usage": write_usage(self.usage)}
        self.out.append(chunk)

    def _write_abort(self) -> None:
        self.out.append({"type": "abort"})

    def _write_error(self, words: str, code: str) -> None:  # noqa: ARG002 - there is no place for it
        self.out.append({"type": "error", "errorText": words})


def write_usage(usage: Usage) -> dict[str, int]:
    """The tokens in the words that Vercel and AG-UI share; those that are not known are left out."""
    counts = {
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "totalTokens": usage.total,
        "reasoningTokens": usage.thinking,
        "cachedInputTokens": usage.cached,
    }
    return {name: count for name, count in counts.items() if count is not None}


def _describe_part(part: Text | Image | File) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "file", "mediaType": part.media_type, "url": make_url(part)}
