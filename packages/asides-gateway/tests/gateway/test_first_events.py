"""The times of the first events of a request."""

from __future__ import annotations

import time

from asides.values.events import ReplyStarted, TextDelta, ThinkingDelta, ToolCallDelta
from asides_gateway.first_events import FirstEvents


class _Counted(FirstEvents):
    __slots__ = ("begun",)

    def __init__(self, started: float) -> None:
        super().__init__(started)
        self.begun = 0

    def begin_reply(self) -> None:
        self.begun += 1


def test_each_kind_is_noted_once_and_the_answer_ends_it() -> None:
    seen = _Counted(time.monotonic() - 1)
    seen.see_events([])
    assert not seen.times
    seen.see_events([ReplyStarted()])
    seen.see_events([ThinkingDelta("a")])
    thought = seen.times["first_thought"]
    seen.see_events([ThinkingDelta("b")])
    assert "first_answer" not in seen.times
    seen.see_events([ThinkingDelta("c"), TextDelta("d")])
    answer = seen.times["first_answer"]
    seen.see_events([TextDelta("e"), ThinkingDelta("f")])
    assert seen.times["first_thought"] == thought
    assert seen.times["first_answer"] == answer
    assert 1 <= seen.times["first_event"] <= thought <= answer
    assert seen.begun == 1


def test_a_call_is_an_answer() -> None:
    seen = FirstEvents(time.monotonic())
    seen.see_events([ToolCallDelta(0, arguments="{}")])
    assert set(seen.times) == {"first_event", "first_answer"}
