"""Interactions on the stage: signatures of thoughts, put on replies and checked when they come back, and the
interactions that the stage has stored.

A reply carries a signature on its first thought, or on a thought without text before it. One that comes back must have
been made for this model and this key, or be the documented placeholder.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from hashlib import blake2b
from itertools import chain
from uuid import uuid4

import msgspec

from asides.dialects.gemini.rules import PLACEHOLDERS
from asides.dialects.gemini_interactions import rules
from asides.dialects.gemini_interactions.wire import SIGNATURE
from asides.dialects.rulebook import BrokenRule, Wire, WireRequest, as_objects
from asides.values.events import Event, ReplyStarted, ThinkingDelta, ThoughtSealed, ToolCallDelta
from asides.values.thinking import Seal
from asides.wire.lenient import read_base64
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules import RequestRules, read_account, read_wire, refuse_broken
from asides_stage.stage.rules.hosts import find_target

_DIALECT = "gemini_interactions"
_MAC_SIZE = 16


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    return _InteractionsRules(secret, today)


class _InteractionsRules:
    def __init__(self, secret: bytes, today: date) -> None:
        self._secret = secret
        self._today = today
        self._stored: dict[str, tuple[str, ...]] = {}
        """The ids of the calls of each stored interaction."""
        self._scripted: set[str] = set()
        """Signatures from the script itself."""

    # --- refusing -----------------------------------------------------------------------------------------------------

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        wire = read_wire(request, self._today)
        target = find_target(_DIALECT, request.path, _read_model(wire.body))
        found = chain(rules.check(wire, target), self._check_previous(wire.body), self._check_signatures(wire, request))
        broken = next(found, None)
        return None if broken is None else refuse_broken(broken)

    def _check_previous(self, body: Wire) -> Iterator[BrokenRule]:
        """Check that an earlier interaction is there, and that results belong to its calls."""
        previous = body.get("previous_interaction_id")
        if not previous:
            return
        if previous not in self._stored:
            yield rules.UNKNOWN_PREVIOUS.broken("previous_interaction_id", id=previous)
            return
        steps = as_objects(body.get("input"))
        known = {step.get("id") for step in steps} | set(self._stored[str(previous)])
        for place, result in rules.list_results(steps):
            if result.get("call_id") not in known:
                yield rules.RESULT_WITHOUT_CALL.broken(f"input[{place}]", id=result.get("call_id"))

    def _check_signatures(self, wire: WireRequest, request: Request) -> Iterator[BrokenRule]:
        own = self._sign(_read_model(wire.body), request)
        for path, signature in rules.list_signatures(as_objects(wire.body.get("input"))):
            data = read_base64(signature)
            is_placeholder = signature in PLACEHOLDERS or (data or b"").decode("latin-1") in PLACEHOLDERS
            if not (is_placeholder or signature in self._scripted or hmac.compare_digest(signature.encode(), own)):
                yield rules.INVALID_SIGNATURE.broken(path)

    # --- sealing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the signature of a reply, unless the script signed it, and remember the reply if it is stored."""
        body: Wire = msgspec.json.decode(request.body)
        is_stored = body.get("store") is not False
        if isinstance(events[0], ReplyStarted):
            own = (events[0].id or f"v1_{uuid4().hex[:12]}") if is_stored else ""
            events = [msgspec.structs.replace(events[0], id=own, stored=is_stored), *events[1:]]
            if own:
                self._stored[own] = tuple(
                    event.id for event in events if isinstance(event, ToolCallDelta) and event.id is not None
                )
        seals = [event.seal.value for event in events if isinstance(event, ThoughtSealed)]
        self._scripted.update(seals)
        return events if any(seals) else self._add_signature(events, _read_model(body), request)

    def _add_signature(self, events: list[Event], model: str, request: Request) -> list[Event]:
        seal = Seal(SIGNATURE, self._sign(model, request).decode())
        thought = next((event.block for event in events if isinstance(event, ThinkingDelta)), None)
        if thought is None:
            later = [
                event
                if (block := getattr(event, "block", None)) is None
                else msgspec.structs.replace(event, block=block + 1)
                for event in events
            ]
            return [later[0], ThoughtSealed(seal, 0, "hidden", "block"), *later[1:]]
        last = max(
            place for place, event in enumerate(events) if isinstance(event, ThinkingDelta) and event.block == thought
        )
        return [*events[: last + 1], ThoughtSealed(seal, thought, "hidden", "block"), *events[last + 1 :]]

    def _sign(self, model: str, request: Request) -> bytes:
        content = msgspec.json.encode([model, read_account(request)])
        return b64encode(blake2b(content, key=self._secret, digest_size=_MAC_SIZE).digest() + content)


def _read_model(body: Wire) -> str:
    return str(body.get("model") or body.get("agent") or "").removeprefix("models/")
