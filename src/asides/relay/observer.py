"""`RelayObserver`: sees a relayed request under way, for example for an inspector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from asides.relay.relay_request import RelayMode

if TYPE_CHECKING:
    from asides.dialects.dialect import HttpRequest, ServedRequest
    from asides.flows.call import Call
    from asides.history.plan import Decision
    from asides.relay.state.turn_state import RestoredTurn
    from asides.values.events import Event


class RelayObserver:
    """Sees one relayed request. Every method does nothing here; it is called in the order of what happens, and must be
    fast. If an observer raises, it is dropped; the reply is unaffected."""

    def see_asked(self, asked: ServedRequest) -> None:
        """What the caller asked for, as it was read: the first thing that is seen of a request for a reply."""

    def see_target(self, call: Call, mode: RelayMode, reason: str) -> None:
        """A target was chosen, and how it is asked. Again for each fallback."""

    def see_restored(self, turns: Sequence[RestoredTurn]) -> None:
        """State of earlier turns was looked for. Called before any target is chosen, if there are such turns."""

    def see_plan(self, decisions: Sequence[Decision]) -> None:
        """What the plan decided about the parts of earlier turns. Called before each translated request."""

    def see_request(self, request: HttpRequest) -> None:
        """A request leaves for the provider, without its key. Again for each attempt."""

    def see_events(self, events: Sequence[Event]) -> None:
        """Events of the reply, as they were decoded: thinking that the caller may not see is among them."""
