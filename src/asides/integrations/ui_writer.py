"""`UiWriter`: the events of a reply or a run as the parts that a front end shows. The protocols (vercel_ui, ag_ui) say
how each part is written; which parts there are, when they begin and end and what may be seen is decided here, once.

Nothing is buffered but the arguments of calls, which end with their reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from asides.history.turns import CallIds
from asides.integrations.ui_parts import MARKED, Chunk, PartKind, PartWriter, UiCall, UiPart, WriterOptions
from asides.integrations.ui_state import TurnTokens
from asides.values.events import (
    CommentaryDelta,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopKind,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, ToolResult, UnknownPart, read_arguments
from asides.values.result import RunEnded, RunEvent, RunOutcome, StepEnded, StepStarted, ToolFinished, ToolStarted
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage


class UiWriter(PartWriter):
    """Turns events into chunks. `begin` once, `feed` for each batch, then `end` or `fail`; each returns chunks."""

    def __init__(self, options: WriterOptions) -> None:
        super().__init__()
        self.step = 0
        """The number of the current step, from 1."""
        self.usage: Usage | None = None
        """The tokens of all replies so far."""
        self.stop: StopKind | None = None
        """Why the last reply ended."""
        self.outcome: RunOutcome | None = None
        """The outcome of a run that has ended."""
        self.unanswered: dict[str, UiCall] = {}
        """The calls that have no result, by their ids."""
        self._options = options
        sealed = options.visibility.allows("app", "sealed")
        self._tokens = TurnTokens(options.carry, options.find_reply) if options.carry is not None and sealed else None
        self._current: UiPart | None = None
        self._current_type: type | None = None
        self._calls: dict[int, UiCall] = {}
        self._step_calls: dict[str, UiCall] = {}
        self._seen: set[int] = set()
        self._unsealed: set[int] = set()
        """Blocks of commentary and refusals: a front end carries no state of them."""
        self._late: dict[int, list[Seal]] = {}
        self.call_ids = CallIds()
        self._run_calls: dict[str, UiCall] = {}
        self._reply_usage: Usage | None = None
        self._part_count = 0
        self._in_step = self._in_run = self._in_reply = False

    # --- what a stream calls ------------------------------------------------------------------------------------------

    def begin(self) -> list[Chunk]:
        """The chunks before the first event."""
        self._write_begin()
        return self._take()

    def feed(self, events: Iterable[RunEvent]) -> list[Chunk]:
        """The chunks of the next events."""
        for event in events:
            kind = type(event)
            part = self._current
            if kind is self._current_type and part is not None and event.block == part.block:  # type: ignore[union-attr]
                self._add_text(part, event.text)  # type: ignore[union-attr]
                continue
            handle = _HANDLERS.get(kind)
            if handle is None:
                raise TypeError(
                    f"{kind.__name__} is not an event. Pass the events of stream(), of a Conversation or of an "
                    "Agent's stream()."
                )
            handle(self, event)
        return self._take()

    def end(self) -> list[Chunk]:
        """The chunks after the last event. A stream that was closed before its end is aborted."""
        is_cut = self._in_reply or (self._in_run and self.outcome is None)
        self._close_part()
        if is_cut:
            self._close_step()
            self._write_abort()
        else:
            self._end_reply()
            self._close_step()
            self._write_finish()
        return self._take()

    def fail(self, words: str, code: str) -> list[Chunk]:
        """The chunks of an error, in words for the reader."""
        self._close_part()
        self._write_error(words, code)
        return self._take()

    def _take(self) -> list[Chunk]:
        chunks, self.out = self.out, []
        return chunks

    # --- texts and thoughts -------------------------------------------------------------------------------------------

    def _add_delta(self, event: ThinkingDelta | TextDelta | CommentaryDelta | RefusalDelta) -> None:
        part = self._current
        if type(event) is ThinkingDelta:
            # A seal may have come before the text of its thought.
            if part is None or part.block != event.block or part.kind != "thinking":
                part = self._open_part("thinking", event.block)
            part.shown = self._options.thinking and self._options.visibility.allows("user", event.kind)
            part.thought_kind, part.source, part.via = event.kind, event.source, event.via
        else:
            part = self._open_part(_KINDS[type(event)], event.block)
        self._current_type = type(event)
        self._add_text(part, event.text)

    def _add_text(self, part: UiPart, text: str) -> None:
        if part.pieces is not None:
            part.pieces.append(text)
        if not part.begun:
            if not part.shown or not text:
                return
            if part.kind == "thinking":
                text = part.waiting + text
                if text.isspace():
                    part.waiting = text
                    return
            part.begun = True
            self._write_part_start(part)
        if text:
            self._write_part_delta(part, text)

    def _move_text(self, event: TextReclassified) -> None:
        """Mark a text as not an answer for the front end, and rewrite it as a thought or commentary."""
        if (part := self._current) is not None and (part.kind, part.block) == ("text", event.block):
            part.moved = True
        self._close_part()
        self._add_delta(event.build_delta())
        self._close_part()

    def _open_part(self, kind: PartKind, block: int) -> UiPart:
        self._close_part()
        self._open_step()
        self._in_reply = True
        self._seen.add(block)
        part = UiPart(kind, block, self.make_part_id())
        if kind in MARKED:
            self._unsealed.add(block)
        elif self._tokens is not None:
            part.pieces = []
        self._current = part
        return part

    def make_part_id(self) -> str:
        """An id for a part that no other part here has."""
        self._part_count += 1
        return f"{self.step}-{self._part_count}"

    def _close_part(self) -> None:
        part, self._current, self._current_type = self._current, None, None
        if part is None:
            return
        token = self._seal_part(part)
        if part.begun:
            self._write_part_end(part, token)
        elif token is not None:
            self._write_hidden(part.id, token)

    def _add_seal(self, event: ThoughtSealed) -> None:
        if self._tokens is None or event.block in self._unsealed:
            return
        part, call = self._current, self._calls.get(event.block)
        if call is not None:
            call.seals.append(event.seal)
        elif event.block in self._seen and (part is None or part.block != event.block):
            self._late.setdefault(event.block, []).append(event.seal)
        else:
            if part is None or part.block != event.block:
                part = self._open_part("thinking", event.block)
                part.thought_kind, part.source = event.kind, event.source
            part.seals = [*(part.seals or ()), event.seal]

    def _seal_part(self, part: UiPart) -> str | None:
        if self._tokens is None or part.pieces is None or part.moved:
            return None
        text, seals = "".join(part.pieces), tuple(part.seals or ())
        if part.kind == "text":
            return self._tokens.make_token(Text(text, seals), part.block)
        kind = part.thought_kind if text.strip() else "hidden"
        thought = Thought(text, kind, part.source, None, seals, part.via)
        return self._tokens.make_thought_token(thought, part.block, is_shown=part.begun)

    def _make_token(self, part: Text | ToolCall | ServerTool | UnknownPart, block: int) -> str | None:
        return None if self._tokens is None else self._tokens.make_token(part, block)

    # --- calls --------------------------------------------------------------------------------------------------------

    def _add_call(self, event: ToolCallDelta) -> None:
        call = self._calls.get(event.block)
        if call is None:
            self._close_part()
            self._open_step()
            self._in_reply = True
            self._seen.add(event.block)
            call = self._calls[event.block] = UiCall(event.block)
        call.model_id = call.model_id or event.id or ""
        call.name = call.name or event.name or ""
        call.custom = call.custom or event.custom
        if event.arguments:
            call.pieces.append(event.arguments)
        if call.id:
            if event.arguments:
                self._write_call_delta(call, event.arguments)
        elif call.model_id and call.name:
            self._start_call(call)

    def _start_call(self, call: UiCall) -> None:
        # As a run does, so that its results find their calls.
        call.id = self.call_ids.take(call.model_id or f"call_{self.make_part_id()}")
        call.name = call.name or "unnamed"
        self.unanswered[call.id] = call
        self._write_call_start(call)
        if call.pieces:
            self._write_call_delta(call, call.raw)

    def _finish_calls(self) -> None:
        for block in sorted(self._calls):
            call = self._calls[block]
            if not call.id:
                self._start_call(call)
            call.arguments = None if call.custom else read_arguments(call.raw)
            seals = tuple(call.seals) + tuple(self._late.pop(block, ()))
            raw = call.raw if call.arguments is None else None
            part = ToolCall(call.id, call.name, call.arguments or {}, raw, seals, custom=call.custom)
            self._write_call_end(call, self._make_token(part, block))
            self._step_calls[call.id] = call
        self._calls.clear()

    def _start_tool(self, event: ToolStarted) -> None:
        self._end_reply()
        self._run_calls[event.call.id] = self._match_call(event.call)

    def _match_call(self, call: ToolCall) -> UiCall:
        """The call of this step that a run has started. A run may have given it another id."""
        found = self._step_calls.get(call.id)
        if found is None or found.matched or found.name != call.name:
            same = [each for each in self._step_calls.values() if not each.matched and each.name == call.name]
            alike = (each for each in same if each.model_id and f"{call.id}_".startswith(f"{each.model_id}_"))
            found = next(alike, None) or next(iter(same), None) or self._write_whole_call(call)
        found.matched = True
        return found

    def _write_whole_call(self, call: ToolCall) -> UiCall:
        """Write a call whose deltas were not among the events."""
        self._open_step()
        raw = call.raw_arguments
        if raw is None:
            raw = msgspec.json.encode(call.arguments).decode()
        written = UiCall(-1, call.id, name=call.name, custom=call.custom, pieces=[raw])
        self._start_call(written)
        written.arguments = None if call.raw_arguments is not None else call.arguments
        self._write_call_end(written, None)
        return written

    def _finish_tool(self, event: ToolFinished) -> None:
        call = self._run_calls.pop(event.call.id, None)
        if call is None:
            self._end_reply()
            call = self._match_call(event.call)
        call.answered = True
        self.unanswered.pop(call.id, None)
        self._write_result(call, event.result)

    # --- other parts --------------------------------------------------------------------------------------------------

    def _add_whole_part(self, event: PartArrived) -> None:
        self._close_part()
        self._open_step()
        self._in_reply = True
        is_new = event.block not in self._seen
        self._seen.add(event.block)
        part = event.part
        if isinstance(part, ServerTool):
            id_ = f"{part.id or 'server'}-{self.step}-{event.block}"
            self._write_server_tool(part, id_, is_new, self._make_token(part, event.block))
        elif isinstance(part, (Image, File)):
            self._write_file(part)
        elif (token := self._make_token(part, event.block)) is not None:
            self._write_hidden(self.make_part_id(), token)

    # --- replies, steps and runs --------------------------------------------------------------------------------------

    def _start_reply(self, event: ReplyStarted) -> None:
        self._end_reply()
        self._open_step()
        self._in_reply = True
        if self._tokens is not None:
            self._tokens.begin(event)

    def _add_usage(self, event: UsageReported) -> None:
        self._reply_usage = event.usage if self._reply_usage is None else self._reply_usage.merge(event.usage)

    def _finish_reply(self, event: ReplyEnded) -> None:
        self.stop = event.stop.reason
        if self._tokens is not None and event.started is not None:
            self._tokens.add_facts(event.started)
        self._close_part()
        self._end_reply()
        if not self._in_run:
            self._close_step()

    def _end_reply(self) -> None:
        """Write what a reply still owes. Does nothing the second time."""
        self._close_part()
        self._finish_calls()
        for block, seals in self._late.items():
            if self._tokens is not None:
                self._write_hidden(self.make_part_id(), self._tokens.make_late_token(block, seals))
        self._late.clear()
        self._seen.clear()
        if self._reply_usage is not None:
            self.usage = self._reply_usage if self.usage is None else self.usage + self._reply_usage
            self._reply_usage = None
        self._in_reply = False

    def _open_step(self) -> None:
        if not self._in_step:
            self._in_step = True
            self.step += 1
            self._step_calls.clear()
            self._run_calls.clear()
            self._write_step_start()

    def _close_step(self) -> None:
        if self._in_step:
            self._in_step = False
            self._write_step_end()

    def _start_step(self, _: StepStarted) -> None:
        self._end_reply()
        self._close_step()
        self._in_run = True
        self._open_step()

    def _finish_step(self, _: StepEnded) -> None:
        self._end_reply()
        self._close_step()

    def _finish_run(self, event: RunEnded) -> None:
        self._in_run = True
        self.outcome, self.usage, self._reply_usage = event.outcome, event.usage, None
        if event.outcome not in ("limit", "failed", "cancelled"):
            self._end_reply()
            if event.outcome == "answered":
                self._accept_answer()
            self._close_step()

    def _accept_answer(self) -> None:
        """Give a result to calls that carried the answer. They need not run, and a run reports no result for them."""
        for call in self.unanswered.values():
            is_last = call.id in self._step_calls
            words = "ok" if is_last else "The answer was asked for once more."
            self._write_result(call, ToolResult(call.id, words, call.name, is_error=not is_last))
        self.unanswered.clear()

    def _ignore(self, _: Warned) -> None:
        """Notices are for the program: `reply.warnings` has them."""


_KINDS: dict[type, PartKind] = {TextDelta: "text", CommentaryDelta: "commentary", RefusalDelta: "refusal"}
_HANDLERS: dict[type, Callable[[UiWriter, Any], None]] = {
    ThinkingDelta: UiWriter._add_delta,
    TextDelta: UiWriter._add_delta,
    TextReclassified: UiWriter._move_text,
    CommentaryDelta: UiWriter._add_delta,
    RefusalDelta: UiWriter._add_delta,
    ThoughtSealed: UiWriter._add_seal,
    ToolCallDelta: UiWriter._add_call,
    PartArrived: UiWriter._add_whole_part,
    UsageReported: UiWriter._add_usage,
    Warned: UiWriter._ignore,
    ReplyStarted: UiWriter._start_reply,
    ReplyEnded: UiWriter._finish_reply,
    StepStarted: UiWriter._start_step,
    ToolStarted: UiWriter._start_tool,
    ToolFinished: UiWriter._finish_tool,
    StepEnded: UiWriter._finish_step,
    RunEnded: UiWriter._finish_run,
}
