"""The ids of tool calls between a provider and a caller: which of the provider's pass, and which are replaced.

Callers find their results by these ids, and the vault finds a turn by them. An id has to be unlike any other for that:
some servers count their calls from zero in every reply.
"""

from __future__ import annotations

import re
import secrets
from string import ascii_letters, digits

import msgspec

from asides.values.events import Event, ToolCallDelta

_PASSES = re.compile(r"[A-Za-z0-9_-]{9,40}")
_WORDS = re.compile(r"(?:[A-Za-z]+[_-])*")
_RUNS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
# A name or a number has one or two runs of small letters, capitals and digits; so few are rare in nine random ones.
_FEWEST_RUNS = 4
_FEWEST_RANDOM = 8
_ALPHABET = ascii_letters + digits
_LENGTH = 24


def can_pass(call_id: str) -> bool:
    """Whether an id of a provider is good for a caller too: every dialect takes it, and it looks random."""
    if _PASSES.fullmatch(call_id) is None:
        return False
    random = _WORDS.sub("", call_id, count=1)
    return len(random) >= _FEWEST_RANDOM and len(_RUNS.findall(random)) >= _FEWEST_RUNS


def mint_call_id() -> str:
    """Make an id unlike any other: 29 characters that every dialect takes."""
    return "call_" + "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


class CallerIds:
    """Replaces the ids of one reply that cannot pass, in its events."""

    def __init__(self) -> None:
        self.originals: dict[str, str] = {}
        """By the id that the caller gets: the provider's, where they differ. "": the provider gave none."""
        self._ids: dict[int, str] = {}
        """The id of each call, by its block."""
        self._given: set[str] = set()

    def fit(self, events: list[Event]) -> list[Event]:
        """Return the events with the ids for the caller; the same events if nothing is replaced."""
        fitted: list[Event] | None = None
        for place, event in enumerate(events):
            if type(event) is ToolCallDelta and (new := self._fit_call(event)) is not event:
                fitted = list(events) if fitted is None else fitted
                fitted[place] = new
        return events if fitted is None else fitted

    def _fit_call(self, event: ToolCallDelta) -> ToolCallDelta:
        known = self._ids.get(event.block)
        if known is not None:
            # An id that comes late: the caller has one already.
            if event.id and event.id != known:
                self.originals[known] = self.originals.get(known) or event.id
                return msgspec.structs.replace(event, id=known)
            return event
        call_id = event.id or ""
        if not can_pass(call_id) or call_id in self._given:
            call_id = mint_call_id()
            self.originals[call_id] = event.id or ""
        self._ids[event.block] = call_id
        self._given.add(call_id)
        return event if call_id == event.id else msgspec.structs.replace(event, id=call_id)
