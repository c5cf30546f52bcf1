"""One request as the inspector keeps it: `SeenRequest`, an observer of the relay, and its summary and detail as JSON.

It holds figures, names and reasons. Content is kept only where bodies are captured (`BodyCapture`), blacked out, and
never a key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.flows.call import Call
from asides.history.plan import Decision
from asides.providers.credentials import collect_secrets
from asides.relay.observer import RelayObserver
from asides.relay.relay_request import RelayMode
from asides.relay.state.turn_state import RestoredTurn
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    ReplyStarted,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.messages import Prompt
from asides.values.notices import Notice, escape_controls
from asides.values.redaction import Redact, build_redactor
from asides.values.usage import Cost, Usage, find_cost
from asides.values.visibility import Readable
from asides_gateway.black_out import SentHead, black_out
from asides_gateway.page_messages import show_cost
from asides_gateway.repeat_as_curl import select_repeated
from asides_gateway.watcher import RequestEnd, RequestInfo

State = Literal["waiting", "thinking", "answering", "done", "failed", "left"]
Json = dict[str, Any]

MOST_BODY = 1024 * 1024
"""The most bytes of a body that is captured."""
_MOST_DECISIONS = 500
_MOST_ATTEMPTS = 20
_MOST_SPANS = 24
_MOST_NOTICES = 50
_MOST_CHARACTERS = 2000
_MOST_NAME = 200
# What a request takes in memory without decisions and bodies, about; and one decision.
_PLAIN_SIZE, _DECISION_SIZE = 3000, 200

_STATES: dict[type, State] = {
    ThinkingDelta: "thinking",
    TextDelta: "answering",
    TextReclassified: "thinking",
    CommentaryDelta: "answering",
    RefusalDelta: "answering",
    ToolCallDelta: "answering",
    PartArrived: "answering",
}
_WHY_RESTORED = {
    "vault": "the client did not send the state of this turn; the vault had it, found by what the turn says",
    "envelope": "the client carried the state of this turn in an encrypted envelope, and gave it back",
    "": "no state was found for this turn: it was made without thinking, or elsewhere, or was changed, or is too old",
}


class BodyCapture(msgspec.Struct, frozen=True):
    """How bodies are kept: which thinking may be seen in them, and which secrets are taken out."""

    shows: tuple[Readable, ...]
    secrets: tuple[str, ...] = ()


class CapturedBody:
    """A body that is kept. It is blacked out when it is first looked at, which takes a while for a large one."""

    __slots__ = ("_raw", "_redact", "_shown", "_shows", "size")

    def __init__(self, body: bytes, capture: BodyCapture, redact: Redact) -> None:
        self.size = len(body) if len(body) <= MOST_BODY else 0
        """The bytes that it takes in memory, about."""
        self._raw: bytes | None = body if self.size else None
        self._shows = capture.shows
        self._redact = redact
        self._shown: Any = f"(not kept: {len(body)} bytes, and at most {MOST_BODY} are)" if body else None

    def show(self) -> Any:
        """The body as JSON that may be shown; a sentence in place of one that is too large, or no JSON; None if it is
        empty. May run in another thread.
        """
        if (raw := self._raw) is not None:
            try:
                self._shown = msgspec.Raw(msgspec.json.encode(black_out(raw, shows=self._shows, redact=self._redact)))
            except ValueError:
                self._shown = f"(not kept: {len(raw)} bytes that are no JSON)"
            self._raw = None
        return self._shown

    def __repr__(self) -> str:
        return f"CapturedBody(<{self.size} bytes>)"


class SeenRequest(RelayObserver):
    """What was seen of one request. `changed` is called whenever its summary is another one."""

    def __init__(
        self, info: RequestInfo, changed: Callable[[SeenRequest], None], capture: BodyCapture | None = None
    ) -> None:
        self.id = info.id
        self.tenant = info.tenant
        self.at = info.at
        self.state: State = "waiting"
        self.revision = 0
        """The number of its last change among those of all requests."""
        self._info = msgspec.structs.replace(info, request=None)
        self._changed = changed
        self._capture = capture
        self._redact: Redact = build_redactor(capture.secrets) if capture else str
        self.received = 0 if info.request is None else len(info.request.body)
        """The bytes of its body."""
        self.repeated = select_repeated(info.request)
        self._asked: Json = {}
        self._mode: RelayMode = "own"
        self._reason = ""
        self._model = ""
        self._target: Json = {}
        self._priced_by: str | None = None
        self._models: tuple[str, ...] = ()
        self._usage = Usage()
        self._cost: Cost | None = None
        self._is_priced = False
        self._first: dict[str, float] = {}
        self._spans: list[tuple[State, float]] = [("waiting", 0.0)]
        self._events: dict[type, int] = {}
        self._turns: tuple[RestoredTurn, ...] = ()
        self._decisions: tuple[Decision, ...] = ()
        self._sent: list[SentHead] = []
        self._last = 0
        self._attempts = 0
        self._repairs = 0
        self._notices: tuple[Notice, ...] = ()
        self._error: Json | None = None
        self._status = 0
        self._total: float | None = None
        self._sent_bytes = 0
        self._request_body: CapturedBody | None = None
        self._sent_bodies: list[CapturedBody] = []
        if capture is not None and info.request is not None:
            self._request_body = CapturedBody(info.request.body, capture, self._redact)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._total is not None

    @property
    def size(self) -> int:
        """The bytes that it takes in memory, about."""
        size = _PLAIN_SIZE + _DECISION_SIZE * len(self._decisions)
        if self._capture is None:
            return size
        kept = 0 if self._request_body is None else self._request_body.size
        return size + kept + sum(body.size for body in self._sent_bodies)

    @property
    def path(self) -> str:
        """The path as it was asked for."""
        return self._info.path

    @property
    def method(self) -> str:
        """The method."""
        return self._info.method

    @property
    def dialect(self) -> str:
        """The dialect of the client."""
        return self._info.dialect

    @property
    def request_body(self) -> Any:
        """The captured body: raw JSON, a sentence in its place, or None."""
        return None if self._request_body is None else self._request_body.show()

    def black_out(self) -> None:
        """Black the bodies out. Takes a while for large ones, and may run in another thread."""
        for body in (self._request_body, *self._sent_bodies):
            if body is not None:
                body.show()

    def forget_bodies(self) -> None:
        """Drop what was captured, and capture no more."""
        self._capture, self._request_body = None, None
        self._sent_bodies.clear()

    # --- what the relay shows ---------------------------------------------------------------------------------------

    def see_asked(self, asked: ServedRequest) -> None:  # noqa: D102 - as in RelayObserver
        prompt = asked.prompt
        self._asked = {
            "model": _cut(asked.model),
            "stream": asked.stream,
            "messages": len(prompt.messages),
            "has_system": bool(prompt.system),
            "tools": len(prompt.tools),
            "thinking": _describe_thinking(prompt),
            "max_tokens": prompt.max_tokens,
        }
        self._changed(self)

    def see_restored(self, turns: Sequence[RestoredTurn]) -> None:  # noqa: D102
        self._turns = tuple(turns[-_MOST_DECISIONS:])

    def see_target(self, call: Call, mode: RelayMode, reason: str) -> None:  # noqa: D102
        target = call.target
        self._mode, self._reason, self._model = mode, reason, _cut(call.model)
        self._target = {"provider": target.provider.title or target.provider.name, "dialect": target.dialect}
        self._priced_by, self._models = target.provider.prices, (target.model,)
        self._decisions = ()
        self._last = 0
        if self._capture is not None:
            self._redact = build_redactor((*self._capture.secrets, *collect_secrets(target, call.key)))
        self._changed(self)

    def see_plan(self, decisions: Sequence[Decision]) -> None:  # noqa: D102
        self._decisions = tuple(decisions[-_MOST_DECISIONS:])

    def see_request(self, request: HttpRequest) -> None:  # noqa: D102
        self._attempts += 1
        # The same request is sent again as the same object; a repaired one is another while the first still lives.
        is_repaired = self._last not in (0, id(request))
        self._last = id(request)
        self._repairs += is_repaired
        if self._attempts <= _MOST_ATTEMPTS:
            figures = {"bytes": len(request.body), "after": self._elapsed(), "repaired": is_repaired}
            self._sent.append(SentHead(request.method, request.url, request.headers, self._model, figures))
            if self._capture is not None:
                self._sent_bodies.append(CapturedBody(request.body, self._capture, self._redact))
        self._changed(self)

    def see_events(self, events: Sequence[Event]) -> None:  # noqa: D102
        counts = self._events
        if not self._first:
            self._first["event"] = self._elapsed()
        for event in events:
            kind = type(event)
            counts[kind] = counts.get(kind, 0) + 1
            state = _STATES.get(kind)
            if state is not None:
                if state is not self.state:
                    self._move(state)
            elif isinstance(event, UsageReported):
                self._usage = self._usage.merge(event.usage)
            elif isinstance(event, ReplyStarted):
                origin = event.origin.model if event.origin is not None else None
                self._models = tuple(model for model in (event.model, origin, *self._models) if model)

    def _move(self, state: State) -> None:
        elapsed = self._elapsed()
        self.state = state
        self._first.setdefault(state, elapsed)
        if len(self._spans) < _MOST_SPANS:
            self._spans.append((state, elapsed))
        self._changed(self)

    def end(self, end: RequestEnd) -> None:
        """Take how it ended."""
        outcome = end.outcome
        self.state = "failed" if end.how == "refused" else end.how
        self._status, self._sent_bytes, self._total = end.status, end.sent_bytes, round(end.seconds, 4)
        if outcome is not None:
            self._mode, self._reason = outcome.mode, outcome.reason
            self._model = _cut(outcome.model) or self._model
            self._notices = tuple(dict.fromkeys(outcome.notices))[:_MOST_NOTICES]
            if outcome.reply is not None:
                self._usage = outcome.reply.usage
            if (error := outcome.error) is not None:
                message = escape_controls(str(error))[:_MOST_CHARACTERS]
                self._error = {"message": message, "code": type(error).__name__}
        self._changed(self)

    def _elapsed(self) -> float:
        return round(time.monotonic() - self._info.started, 4)

    # --- what the inspector shows -----------------------------------------------------------------------------------

    def price(self) -> None:
        """Find out what it cost. Takes a moment, the first time more, and may run in another thread."""
        if self.is_over and not self._is_priced:
            self._cost = find_cost(self._usage, list(self._models), self._priced_by)
            self._is_priced = True

    @property
    def needs_price(self) -> bool:
        """Whether its price was not looked up yet."""
        return self.is_over and not self._is_priced and self._usage.output is not None

    def to_summary(self) -> Json:
        """The line of the list."""
        info, usage, first = self._info, self._usage, self._first
        summary: Json = {
            "id": self.id,
            "at": info.at,
            "method": info.method,
            "path": _cut(info.path),
            "dialect": info.dialect,
            "client": _cut(info.client),
            "model_asked": self._asked.get("model", ""),
            "model": self._model,
            "provider": self._target.get("provider", ""),
            "target_dialect": self._target.get("dialect", ""),
            "mode": self._mode,
            "reason": self._reason,
            "status": self._status,
            "state": self.state,
            "timing": {
                "first_event": first.get("event"),
                "first_thought": first.get("thinking"),
                "first_answer": first.get("answering"),
                "total": self._total,
            },
            "spans": [[state, since] for state, since in self._spans],
            "elapsed": self._elapsed() if self._total is None else self._total,
            "usage": {
                "input": usage.input,
                "output": usage.output,
                "thinking": usage.thinking,
                "cached": usage.cached,
            },
            "cost": show_cost(self._cost),
            "cost_origin": None if self._cost is None else self._cost.origin,
            "restored": sum(turn.is_found for turn in self._turns),
            "missed": sum(not turn.is_found for turn in self._turns),
            "attempts": self._attempts,
            "repairs": self._repairs,
            "notices": list(dict.fromkeys(notice.code for notice in self._notices)),
        }
        if self._error is not None:
            summary["error"] = self._error
        return summary

    def to_detail(self) -> Json:
        """Everything that was seen."""
        detail: Json = {
            **self.to_summary(),
            "asked": {**self._asked, "bytes": self.received, "headers": self.repeated.headers},
            "decisions": [*map(_write_turn, self._turns), *map(_write_decision, self._decisions)],
            "notices": [_write_notice(notice) for notice in self._notices],
            "events": {_name_event(kind): count for kind, count in self._events.items()},
            "sent": [sent.show() for sent in self._sent],
            "sent_bytes": self._sent_bytes,
            "has_bodies": self._capture is not None,
        }
        if self._capture is not None:
            detail |= {"request_body": self.request_body, "sent_bodies": [body.show() for body in self._sent_bodies]}
        return detail


# --- forms ------------------------------------------------------------------------------------------------------------


def _cut(text: str) -> str:
    return escape_controls(text[:_MOST_NAME])


def _describe_thinking(prompt: Prompt) -> str:
    thinking = prompt.thinking
    if thinking.effort is not None:
        return thinking.effort
    if thinking.budget is not None:
        return f"{thinking.budget} tokens"
    return thinking.mode or ""


def _name_event(kind: type) -> str:
    return str(kind.__struct_config__.tag)  # type: ignore[attr-defined]


def _write_decision(decision: Decision) -> Json:
    return msgspec.structs.asdict(decision)


def _write_turn(turn: RestoredTurn) -> Json:
    action = "restore" if turn.is_found else "miss"
    place = {"action": action, "what": "state", "message": turn.message, "part": None}
    return {**place, "why": _WHY_RESTORED[turn.source], "since": "", "source": turn.source}


def _write_notice(notice: Notice) -> Json:
    return {"code": notice.code, "detail": notice.detail, "setting": notice.setting}
