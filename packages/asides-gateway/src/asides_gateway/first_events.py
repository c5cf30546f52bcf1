"""When the first thinking and the first of the answer of a request came: `FirstEvents`, an observer of the relay."""

from __future__ import annotations

import time
from collections.abc import Sequence

from asides.relay.observer import RelayObserver
from asides.values.events import Event, TextDelta, ThinkingDelta, ToolCallDelta


class FirstEvents(RelayObserver):
    """The seconds from the arrival of a request to its first events, by name: first_event, first_thought and
    first_answer, which is the first word of the answer or the first call."""

    __slots__ = ("_started", "times")

    def __init__(self, started: float) -> None:
        """`started`: by the monotonic clock."""
        self._started = started
        self.times: dict[str, float] = {}

    def see_events(self, events: Sequence[Event]) -> None:
        """Note the times."""
        times = self.times
        if "first_answer" in times or not events:
            return
        seconds = time.monotonic() - self._started
        if not times:
            times["first_event"] = seconds
            self.begin_reply()
        for event in events:
            if isinstance(event, ThinkingDelta):
                times.setdefault("first_thought", seconds)
            elif isinstance(event, (TextDelta, ToolCallDelta)):
                times["first_answer"] = seconds
                return

    def begin_reply(self) -> None:
        """The first event has come."""
