"""`AgUiWriter`: the events of AG-UI (PyPI package `ag-ui-protocol`, npm package `@ag-ui/client`, 1.0, read 2026-11-16).

    RUN_STARTED (STEP_STARTED (REASONING_* | TEXT_MESSAGE_* | TOOL_CALL_*)* STEP_FINISHED)* (RUN_FINISHED | RUN_ERROR)

A client makes messages of them. Thinking, and what follows it, are messages of their own, so that their order stays;
the ids of all messages of a step begin alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from asides.history.turns import CallIds
from asides.integrations.ui_parts import MARKED, Chunk, UiCall, UiPart, WriterOptions, list_result_parts, make_url
from asides.integrations.ui_writer import UiWriter
from asides.integrations.vercel_ui import METADATA_KEY, write_usage
from asides.values.parts import File, Image, ServerTool, Text, ToolResult

PROTOCOL_VERSION = "1.0"
ACTIVITY_FILE = "file"
ACTIVITY_TOOL = "server_tool"
EVENT_MOVED = "asides.text_moved"
"""The custom event that names a message whose text is not an answer: it is sent again as reasoning."""


class AgUiWriter(UiWriter):
    """Writes the events of one run."""

    def __init__(self, options: WriterOptions, *, thread_id: str, run_id: str, taken: Iterable[str]) -> None:
        """`taken` are the ids of the calls that the client has. It takes a second call of one id for the first."""
        super().__init__(options)
        self.call_ids = CallIds(taken=taken)
        self._thread_id = thread_id
        self._run_id = run_id
        self._message: str | None = None
        """The assistant message that texts and calls go to."""
        self._open_calls: dict[str, None] = {}

    def _make_message_id(self) -> str:
        return f"{self._run_id}:{self.make_part_id()}"

    def _write_begin(self) -> None:
        """Begin the run."""
        ids = {"threadId": self._thread_id, "runId": self._run_id}
        self.out.append({"type": "RUN_STARTED", **ids, "protocolVersion": PROTOCOL_VERSION})

    def _write_step_start(self) -> None:
        self._message = None
        self.out.append({"type": "STEP_STARTED", "stepName": f"step {self.step}"})

    def _write_step_end(self) -> None:
        self.out.append({"type": "STEP_FINISHED", "stepName": f"step {self.step}"})

    def _write_part_start(self, part: UiPart) -> None:
        if part.kind == "thinking":
            self._message = None  # what follows is a new message, so that it stays behind this thought
            part.id = self._make_message_id()
            self.out.append({"type": "REASONING_START", "messageId": part.id})
            chunk: Chunk = {"type": "REASONING_MESSAGE_START", "messageId": part.id, "role": "reasoning"}
            chunk["metadata"] = {METADATA_KEY: {"kind": part.thought_kind}}
            self.out.append(chunk)
            return
        if self._message is None or part.kind in MARKED:
            self._message = self._make_message_id()
        part.id = self._message
        chunk = {"type": "TEXT_MESSAGE_START", "messageId": part.id, "role": "assistant"}
        if part.kind in MARKED:
            chunk["metadata"] = {METADATA_KEY: {part.kind: True}}
            self._message = None
        self.out.append(chunk)

    def _write_part_delta(self, part: UiPart, text: str) -> None:
        kind = "REASONING_MESSAGE_CONTENT" if part.kind == "thinking" else "TEXT_MESSAGE_CONTENT"
        self.out.append({"type": kind, "messageId": part.id, "delta": text})

    def _write_part_end(self, part: UiPart, token: str | None) -> None:
        if part.kind == "thinking":
            self.out.append({"type": "REASONING_MESSAGE_END", "messageId": part.id})
            self._write_token("message", part.id, token)
            self.out.append({"type": "REASONING_END", "messageId": part.id})
        else:
            self.out.append({"type": "TEXT_MESSAGE_END", "messageId": part.id})
            if part.moved:
                self.out.append({"type": "CUSTOM", "name": EVENT_MOVED, "value": {"messageId": part.id}})
                self._message = None
            self._write_token("message", part.id, token)
            if token is not None:
                self._message = None  # a message holds one token

    def _write_token(self, subtype: str, entity_id: str, token: str | None) -> None:
        if token is not None:
            chunk = {"type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": entity_id}
            self.out.append({**chunk, "encryptedValue": token})

    def _write_hidden(self, id_: str, token: str) -> None:
        self._message = None
        id_ = self._make_message_id()
        self.out.append({"type": "REASONING_START", "messageId": id_})
        self.out.append({"type": "REASONING_MESSAGE_START", "messageId": id_, "role": "reasoning"})
        self.out.append({"type": "REASONING_MESSAGE_END", "messageId": id_})
        self._write_token("message", id_, token)
        self.out.append({"type": "REASONING_END", "messageId": id_})

    def _write_call_start(self, call: UiCall) -> None:
        if self._message is None:
            self._message = self._make_message_id()
        self._open_calls[call.id] = None
        chunk = {"type": "TOOL_CALL_START", "toolCallId": call.id, "toolCallName": call.name}
        self.out.append({**chunk, "parentMessageId": self._message})

    def _write_call_delta(self, call: UiCall, text: str) -> None:
        self.out.append({"type": "TOOL_CALL_ARGS", "toolCallId": call.id, "delta": text})

    def _write_call_end(self, call: UiCall, token: str | None) -> None:
        self._open_calls.pop(call.id, None)
        chunk: Chunk = {"type": "TOOL_CALL_END", "toolCallId": call.id}
        if call.custom:
            chunk["metadata"] = {METADATA_KEY: {"custom": True}}
        self.out.append(chunk)
        self._write_token("tool-call", call.id, token)

    def _write_result(self, call: UiCall, result: ToolResult) -> None:
        parts = list_result_parts(result)
        content: Any = [_describe_part(part) for part in parts] if parts else result.text
        chunk: Chunk = {"type": "TOOL_CALL_RESULT", "messageId": self._make_message_id(), "toolCallId": call.id}
        chunk |= {"content": content, "role": "tool"}
        if result.is_error:
            chunk["metadata"] = {METADATA_KEY: {"error": True}}
        self.out.append(chunk)

    def _write_server_tool(self, part: ServerTool, id_: str, is_new: bool, token: str | None) -> None:  # noqa: ARG002
        # A call without a result would be one that the client has to run.
        content = {"name": part.name, "status": part.status or "completed"}
        self._write_activity(f"{self._run_id}:{id_}", ACTIVITY_TOOL, content)
        if token is not None:
            self._write_hidden("", token)

    def _write_file(self, part: Image | File) -> None:
        if (url := make_url(part)) is not None:
            content = {"url": url, "mediaType": part.media_type}
            self._write_activity(self._make_message_id(), ACTIVITY_FILE, content)

    def _write_activity(self, id_: str, kind: str, content: dict[str, str]) -> None:
        self.out.append({"type": "ACTIVITY_SNAPSHOT", "messageId": id_, "activityType": kind, "content": content})

    def _write_finish(self) -> None:
        """End the run. Calls that have no result are the client's to run."""
        outcome: Chunk = {"type": "success"}
        if self.unanswered and "tool_calls" in (self.stop, self.outcome):
            outcome["pendingToolCallIds"] = list(self.unanswered)
        self._write_run_end(outcome)

    def _write_abort(self) -> None:
        for id_ in self._open_calls:
            self.out.append({"type": "TOOL_CALL_END", "toolCallId": id_})
        self._write_run_end({"type": "cancelled"})

    def _write_run_end(self, outcome: Chunk) -> None:
        ids = {"threadId": self._thread_id, "runId": self._run_id}
        chunk: Chunk = {"type": "RUN_FINISHED", **ids, "outcome": outcome}
        if self.usage is not None:
            chunk["usage"] = [write_usage(self.usage)]
        self.out.append(chunk)

    def _write_error(self, words: str, code: str) -> None:
        self.out.append({"type": "RUN_ERROR", "message": words, "code": code})


def _describe_part(part: Text | Image | File) -> Chunk:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    kind = part.media_type.partition("/")[0]
    kind = kind if kind in ("image", "audio", "video") else "document"
    if part.data is not None:
        url = make_url(part) or ""
        return {"type": kind, "source": {"type": "data", "value": url.partition(",")[2], "mimeType": part.media_type}}
    return {"type": kind, "source": {"type": "url", "value": part.url or "", "mimeType": part.media_type}}
