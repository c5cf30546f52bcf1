"""Write replies (`InteractionsWriter`) and errors (`write_error`) as a server of Interactions does: one step for each
block of the reply. A whole interaction is built from the same steps as a stream.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from asides.dialects.gemini_interactions.wire import CITED, MEDIA, SIGNATURE, STATUSES, map_status
from asides.dialects.server_half import ContentEvent, ReplyWriter
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    find_stop_word,
)
from asides.values.parts import File, Image, ServerTool, UnknownPart, read_arguments
from asides.values.usage import Usage
from asides.wire.lenient import read_part_json

Wire: TypeAlias = dict[str, Any]

# By status; unsure: the codes besides invalid_request, content_blocked and not_found.
_CODES = {
    400: "invalid_request",
    401: "unauthenticated",
    403: "permission_denied",
    404: "not_found",
    429: "resource_exhausted",
    500: "internal",
    503: "unavailable",
    504: "deadline_exceeded",
}
_STATUS: dict[StopKind, str] = {"stop": "completed", "tool_calls": "requires_action"}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:
    """Write an error body; clients match on `kind`."""
    code = kind or _CODES.get(status, "internal" if status >= 500 else "invalid_request")
    return msgspec.json.encode({"error": {"message": message, "code": code}})


class _Step:
    """A step while it is written."""

    __slots__ = ("annotations", "block", "ended", "fields", "index", "kind", "pieces", "signature")

    def __init__(self, index: int, block: int, kind: str, fields: Wire) -> None:
        self.index = index
        self.block = block
        self.kind = kind
        self.fields = fields
        """The whole of a step that arrives in one piece; of a call its id and name."""
        self.pieces: list[str] = []
        self.annotations: list[Any] = []
        self.signature = ""
        self.ended = False

    def encode(self) -> Wire:
        """Encode the whole step."""
        text = "".join(self.pieces)
        match self.kind:
            case "thought":
                step: Wire = {"type": "thought"}
                if self.signature:
                    step["signature"] = self.signature
                if text or "summary" in self.fields:
                    step["summary"] = self.fields.get("summary") or [{"type": "text", "text": text}]
                return step
            case "model_output" if "content" not in self.fields:
                content: Wire = {"type": "text", "text": text}
                if self.annotations:
                    content["annotations"] = self.annotations
                return {"type": "model_output", "content": [content]}
            case "function_call":
                arguments = read_arguments(text)
                step = {"type": "function_call", **self.fields}
                step["arguments"] = text if arguments is None else arguments
                return {**step, "signature": self.signature} if self.signature else step
            case _:
                return self.fields


class InteractionsWriter(ReplyWriter):
    """Events of one reply in, an interaction out. Refusals are written as text; seals of other dialects are not
    written. A block whose step has ended continues in a step of its own, only calls stay open to the end.
    """

    parts = (ServerTool, UnknownPart, Image, File)
    # A comment, which every reader of events skips.
    ping = b": ping\n\n"
    id_prefix = "v1_"

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream, stream=stream)
        self._steps: list[_Step] = []
        self._open: _Step | None = None
        """The step of the newest block, unless it is a call."""
        self._calls: dict[int, _Step] = {}
        self._begun = False

    # --- steps ------------------------------------------------------------------------------------------------------

    def _write_event(self, event: ContentEvent) -> bytes:
        match event:
            case TextDelta() | RefusalDelta():
                return self._add("model_output", event.block, event.text, {"type": "text", "text": event.text})
            case ThinkingDelta():
                content = {"type": "text", "text": event.text}
                return self._add("thought", event.block, event.text, {"type": "thought_summary", "content": content})
            case ToolCallDelta():
                return self._add_call(event)
            case ThoughtSealed():
                return self._add_seal(event)
            case PartArrived():
                fields = _encode_part(event.part)
                if fields is None:
                    return b""
                written = self._begin_step(str(fields["type"]), event.block, fields)
                return written + self._end_open()

    def _add(self, kind: str, block: int, text: str, delta: Wire) -> bytes:
        """Add text to the open step, or to a new one."""
        written = b""
        opened = self._open
        if opened is None or opened.block != block or opened.kind != kind:
            written = self._begin_step(kind, block, {})
            opened = self._open
        if opened is None or not text:
            return written
        opened.pieces.append(text)
        return written + self._frame("step.delta", index=opened.index, delta=delta)

    def _add_call(self, event: ToolCallDelta) -> bytes:
        written, call = b"", self._calls.get(event.block)
        if call is None:
            fields = {"id": event.id or f"call_{len(self._steps)}", "name": event.name or ""}
            written = self._begin_step("function_call", event.block, fields)
            call = self._calls[event.block] = self._steps[-1]
            self._open = None
        else:
            late = {"id": event.id, "name": event.name}
            call.fields |= {name: value for name, value in late.items() if value is not None}
        if not event.arguments:
            return written
        call.pieces.append(event.arguments)
        delta = {"type": "arguments_delta", "arguments": event.arguments}
        return written + self._frame("step.delta", index=call.index, delta=delta)

    def _add_seal(self, event: ThoughtSealed) -> bytes:
        seal = event.seal
        call = self._calls.get(event.block)
        if seal.kind == CITED and call is None and seal.entry is not None:
            return self._add_annotations(event.block, seal.entry)
        if seal.kind != SIGNATURE or not seal.value:
            return b""
        written = b""
        step = call or self._open
        if step is None or step.block != event.block or step.kind == "model_output":
            written = self._begin_step("thought", event.block, {})
            step = self._steps[-1]
        step.signature = seal.value
        if seal.entry is not None and step.kind == "thought":
            summary = msgspec.json.decode(seal.entry)
            if isinstance(summary, list):
                step.fields["summary"] = summary
                for item in summary:
                    if isinstance(item, dict) and item.get("type") != "text":
                        delta = {"type": "thought_summary", "content": item}
                        written += self._frame("step.delta", index=step.index, delta=delta)
        return written + self._frame(
            "step.delta", index=step.index, delta={"type": "thought_signature", "signature": seal.value}
        )

    def _add_annotations(self, block: int, entry: str) -> bytes:
        found, opened = msgspec.json.decode(entry), self._open
        is_own = isinstance(found, list) and all(isinstance(item, dict) and "type" in item for item in found)
        if opened is None or opened.block != block or opened.kind != "model_output" or not is_own:
            return b""
        opened.annotations += found
        delta = {"type": "text_annotation_delta", "annotations": found}
        return self._frame("step.delta", index=opened.index, delta=delta)

    def _begin_step(self, kind: str, block: int, fields: Wire) -> bytes:
        written = self._end_open()
        step = self._open = _Step(len(self._steps), block, kind, fields)
        self._steps.append(step)
        start = {"type": kind, **fields, "arguments": {}} if kind == "function_call" else {"type": kind, **fields}
        return written + self._frame("step.start", index=step.index, step=start)

    def _end_open(self) -> bytes:
        step, self._open = self._open, None
        return b"" if step is None else self._frame("step.stop", index=step.index)

    def _write_one(self, event: Event) -> bytes:
        if isinstance(event, ReplyEnded) and event.started is not None and event.started.stored and event.started.id:
            # The reply took several interactions, and the next turn continues the last one.
            self.use_reply_id(event.started.id)
        return super()._write_one(event)

    # --- the interaction --------------------------------------------------------------------------------------------

    def _write_end(self, stop: StopReason) -> bytes:
        written = self._end_open()
        for call in self._calls.values():
            written += self._frame("step.stop", index=call.index)
        ended = self._describe(_encode_stop(stop, has_calls=bool(self._calls)))
        if self._shown_usage is not None:
            ended["usage"] = _encode_usage(self._shown_usage)
            ended["service_tier"] = self._shown_usage.tier or ended["service_tier"]
        if self._stream:
            return self._begin() + written + self._frame("interaction.completed", interaction=ended) + _DONE
        steps = [step.encode() for step in self._steps]
        return msgspec.json.encode({**ended, "steps": steps})

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        body = write_error(status, message, kind)
        if not self._stream:
            return body
        return self._begin() + self._frame("error", error=msgspec.json.decode(body)["error"])

    def _describe(self, status: str) -> Wire:
        """Describe the interaction. Its id is empty where nothing is stored."""
        request = self.request
        is_stored = self._started.stored and (request is None or request.prompt.state.store is not False)
        made: Wire = {"id": self.reply_id if is_stored else "", "object": "interaction"}
        named = "agent" if request is not None and "agent" in request.prompt.extra else "model"
        made |= {named: self._started.model, "status": status}
        if status != "in_progress":
            time = datetime.fromtimestamp(self.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            made |= {"created": time, "updated": time, "service_tier": "standard"}
        return made

    def _begin(self) -> bytes:
        """Write the first events of a stream, once."""
        if self._begun:
            return b""
        self._begun = True
        created = self._describe("in_progress")
        update = {"interaction_id": created["id"], "status": "in_progress"}
        return _frame("interaction.created", {"interaction": created}) + _frame("interaction.status_update", update)

    def _frame(self, kind: str, **fields: Any) -> bytes:
        if not self._stream:
            return b""
        return self._begin() + _frame(kind, fields)


_DONE = b"event: done\ndata: [DONE]\n\n"


def _frame(kind: str, fields: Wire) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"event_type": kind, **fields}))


def _encode_part(part: ServerTool | Image | File | UnknownPart) -> Wire | None:
    if isinstance(part, (Image, File)):
        kind = part.media_type.partition("/")[0]
        content: Wire = {"type": kind if kind in MEDIA else "document", "mime_type": part.media_type}
        if part.data is not None:
            content["data"] = b64encode(part.data).decode()
        else:
            content["uri"] = part.url or (part.id if isinstance(part, File) else None) or ""
        return {"type": "model_output", "content": [content]}
    step = read_part_json(part.json)
    return step if isinstance(step, dict) and isinstance(step.get("type"), str) else None


def _encode_stop(stop: StopReason, *, has_calls: bool) -> str:
    raw = stop.raw or ""
    if raw in STATUSES and map_status(raw, has_calls=has_calls) == stop.reason:
        return raw
    return find_stop_word(_STATUS, stop.reason) or "incomplete"


def _encode_usage(usage: Usage) -> Wire:
    """Encode the counts by this dialect's names. Its output excludes thinking. A missing count is absent, not zero."""
    output = usage.output
    if output is not None and usage.thinking is not None:
        output = max(output - usage.thinking, 0)
    counts = {
        "total_tokens": usage.total,
        "total_input_tokens": usage.input,
        "total_cached_tokens": usage.cached,
        "total_output_tokens": output,
        "total_thought_tokens": usage.thinking,
        "grounding_tool_count": None
        if usage.tool_requests is None
        else [{"type": "google_search", "count": usage.tool_requests}],
    }
    return {name: count for name, count in counts.items() if count is not None}
