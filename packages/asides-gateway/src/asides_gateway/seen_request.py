"""One request as the inspector keeps it: `SeenRequest`, whose summary and detail as JSON are written from its record.

It holds figures, names and reasons. Content is kept only where bodies are captured (`BodyCapture`), blacked out, and
never a key.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from asides.history.plan import Decision
from asides.relay.relay_request import RelayRequest
from asides.relay.state.turn_state import RestoredTurn
from asides.values.notices import Notice, escape_controls
from asides.values.redaction import build_redactor
from asides.values.usage import Cost, find_cost
from asides_gateway.captured_body import BodyCapture, CapturedBody
from asides_gateway.page_messages import show_cost
from asides_gateway.repeat_as_curl import select_repeated
from asides_gateway.request_record import RequestDetails, RequestRecord

Json = dict[str, Any]

_MAX_NAME = 200
# Estimated bytes: a request without decisions and bodies; one decision.
_PLAIN_SIZE, _DECISION_SIZE = 3000, 200

_WHY_RESTORED = {
    "vault": "the client did not send the state of this turn; the vault had it, found by what the turn says",
    "envelope": "the client carried the state of this turn in an encrypted envelope, and gave it back",
    "": "no state was found for this turn: it was made without thinking, or elsewhere, or was changed, or is too old",
}


class SeenRequest:
    """A request in the inspector. From now on its record gets the details that only an inspector shows."""

    def __init__(
        self, record: RequestRecord, request: RelayRequest | None = None, capture: BodyCapture | None = None
    ) -> None:
        self.record = record
        self.revision = 0
        """The number of its last change among those of all requests."""
        self.repeated = select_repeated(request)
        self._cost: Cost | None = None
        self._is_priced = False
        self._details = record.details = RequestDetails(capture, stretches=[("waiting", 0.0)])
        if capture is not None:
            self._details.redact = build_redactor(capture.secrets)
            if request is not None:
                self._details.request_body = CapturedBody(request.body, capture, self._details.redact)

    @property
    def id(self) -> str:
        """Its id."""
        return self.record.id

    @property
    def tenant(self) -> str:
        """Its owner."""
        return self.record.tenant

    @property
    def size(self) -> int:
        """The bytes that it takes in memory, about."""
        details = self._details
        size = _PLAIN_SIZE + _DECISION_SIZE * len(details.decisions)
        if details.capture is None:
            return size
        kept = 0 if details.request_body is None else details.request_body.size
        return size + kept + sum(body.size for body in details.sent_bodies)

    @property
    def request_body(self) -> Any:
        """The captured body: raw JSON, a sentence in its place, or None."""
        return None if self._details.request_body is None else self._details.request_body.show()

    def black_out(self) -> None:
        """Black the bodies out. Takes a while for large ones, and may run in another thread."""
        for body in (self._details.request_body, *self._details.sent_bodies):
            if body is not None:
                body.show()

    def forget_bodies(self) -> None:
        """Drop what was captured, and capture no more."""
        self._details.capture = self._details.request_body = None
        self._details.sent_bodies.clear()

    def price(self) -> None:
        """Find out what it cost. Takes a moment, the first time more, and may run in another thread."""
        record = self.record
        if record.ended is not None and not self._is_priced:
            self._cost = find_cost(record.usage, list(record.models), record.priced_by)
            self._is_priced = True

    @property
    def needs_price(self) -> bool:
        """Whether its price was not looked up yet."""
        return self.record.ended is not None and not self._is_priced and self.record.usage.output is not None

    def to_summary(self) -> Json:
        """The line of the list."""
        record, usage, provider = self.record, self.record.usage, self.record.provider
        total = None if record.ended is None else round(record.seconds, 4)
        summary: Json = {
            "id": record.id,
            "at": record.at,
            "method": record.method,
            "path": _cut(record.path),
            "dialect": record.dialect,
            "client": _cut(record.client),
            "model_asked": _cut(record.asked),
            "model": _cut(record.model),
            "provider": "" if provider is None else provider.title or provider.name,
            "target_dialect": record.target_dialect,
            "mode": record.mode or "own",
            "reason": record.reason,
            "status": record.status,
            "state": record.state,
            "timing": {
                "first_event": _round(record.first_event),
                "first_thought": _round(record.first_thought),
                "first_answer": _round(record.first_answer),
                "total": total,
            },
            "spans": [[state, _round(since)] for state, since in self._details.stretches],
            "elapsed": round(time.monotonic() - record.started, 4) if total is None else total,
            "usage": {
                "input": usage.input,
                "output": usage.output,
                "thinking": usage.thinking,
                "cached": usage.cached,
            },
            "cost": show_cost(self._cost),
            "cost_origin": None if self._cost is None else self._cost.origin,
            "restored": record.restored,
            "missed": record.missed,
            "attempts": record.attempts,
            "repairs": record.repairs,
            "notices": list(dict.fromkeys(notice.code for notice in record.notices)),
        }
        if (error := record.error) is not None:
            summary["error"] = {"message": escape_controls(error.message), "code": error.name}
        return summary

    def to_detail(self) -> Json:
        """Everything that was seen."""
        record, details = self.record, self._details
        asked = {"model": _cut(record.asked), **details.asked} if details.asked else {}
        detail: Json = {
            **self.to_summary(),
            "asked": {**asked, "bytes": record.received, "headers": self.repeated.headers},
            "decisions": [*map(_write_turn, details.turns), *map(_write_decision, details.decisions)],
            "notices": [_write_notice(notice) for notice in record.notices],
            "events": {_name_event(kind): count for kind, count in details.events.items()},
            "sent": [sent.show() for sent in details.sent],
            "sent_bytes": record.sent_bytes,
            "has_bodies": details.capture is not None,
        }
        if details.capture is not None:
            detail |= {"request_body": self.request_body, "sent_bodies": [body.show() for body in details.sent_bodies]}
        return detail


# --- forms ------------------------------------------------------------------------------------------------------------


def _cut(text: str) -> str:
    return escape_controls(text[:_MAX_NAME])


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


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
