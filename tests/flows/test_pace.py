"""How a list of questions slows down, speeds up again, and ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import asides
from asides.flows.build_call import CallBuilder
from asides.flows.exchange import Exchange
from asides.flows.pace import Pace, RunEnded
from asides.flows.steps import Allow, Head, Now, Open, Read, Sleep, Step


def limit(pace: Pace, now: float, error: asides.AsidesError, *, limited: int = 1, max_wait: float = 60.0) -> bool:
    return pace.note_limit(error, now, limited=limited, max_wait=max_wait)


def test_a_limit_halves_what_is_sent_at_once_and_replies_bring_it_back() -> None:
    pace = Pace(8)
    assert limit(pace, 100.0, asides.RateLimited("slow", retry_after=4.0))
    assert 104.0 <= pace.paused_until <= 105.0
    assert (pace.limit, pace.limited_since) == (4, 100.0)
    # Those that were open with it are not news.
    limit(pace, 100.1, asides.RateLimited("slow", retry_after=1.0))
    assert (pace.limit, pace.paused_until >= 104.0) == (4, True)
    for _ in range(4):
        pace.note_reply()
    assert (pace.limit, pace.limited_since) == (4, None)
    for _ in range(100):
        pace.note_reply()
    assert pace.limit == 8


def test_without_advice_the_pauses_grow_to_a_minute() -> None:
    pace, now = Pace(8), 0.0
    waits: list[float] = []
    for _ in range(9):
        assert limit(pace, now, asides.Overloaded("busy", status=529), max_wait=900.0)
        waits.append(pace.paused_until - now)
        now = pace.paused_until
    assert waits[0] < 1.3
    assert waits[1] >= 2.0
    assert 60.0 <= waits[-1] <= 61.0
    assert pace.limit == 1


def test_a_long_wait_and_a_long_stall_end_the_run() -> None:
    busy = asides.Overloaded("busy", status=529)
    pace = Pace(8)
    assert limit(pace, 0.0, busy)
    assert limit(pace, 119.0, busy)
    assert not limit(pace, 121.0, busy)
    assert pace.error is busy
    late = asides.RateLimited("tomorrow", retry_after=61.0)
    pace = Pace(8)
    assert not limit(pace, 0.0, late)
    assert pace.error is late
    # One that is unlucky twenty times fails alone.
    pace = Pace(8)
    assert limit(pace, 0.0, busy, limited=20)
    assert not limit(pace, 0.0, busy, limited=21)
    assert pace.error is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (asides.RateLimited("x", status=429), True),
        (asides.RateLimited("x", status=429, code="insufficient_quota"), False),
        (asides.RateLimited("x", status=429, code="insufficient_quota", retry_after=2), True),
        (asides.RateLimited("x", status=402), False),
        (asides.Overloaded("x", status=529), True),
        (asides.Overloaded("x", status=503), True),
        (asides.Overloaded("x", status=500, retry_after=1), True),
        (asides.Overloaded("x", status=500), False),
        (asides.BadRequest("x", status=400), False),
        (asides.ConnectionLost("x"), False),
    ],
)
def test_what_is_a_limit(error: asides.AsidesError, expected: bool) -> None:
    assert Pace.is_limit(error) is expected


@pytest.mark.parametrize(
    ("error", "at_first", "later"),
    [
        (asides.AuthError("x", status=401), 1, 10),
        (asides.NotFound("x", status=404), 1, 10),
        (asides.RateLimited("x", status=402), 1, 10),
        (asides.RateLimited("x", status=429, code="insufficient_quota"), 1, 10),
        (asides.AuthError("x", status=403), 10, 10),  # Some hosts refuse single prompts so.
        (asides.Overloaded("x", status=500), 20, 20),
        (asides.ConnectionLost("x"), 20, 20),
        (asides.BadRequest("x", status=400), None, None),
        (asides.ContentFiltered("x", status=403), None, None),
        (asides.ConfigError("x"), None, None),
        (asides.RateLimited("x", status=429), None, None),
    ],
)
@pytest.mark.parametrize("has_answers", [False, True])
def test_how_many_failures_in_a_row_end_a_run(
    error: asides.AsidesError, at_first: int | None, later: int | None, has_answers: bool
) -> None:
    pace = Pace(4, has_answers=has_answers)
    expected = later if has_answers else at_first
    ended = next((count for count in range(1, 50) if pace.note_failure(error)), None)
    assert ended == expected
    assert pace.error is (None if expected is None else error)


def test_a_reply_between_failures_begins_the_count_again() -> None:
    pace = Pace(4)
    for _ in range(5):
        for _ in range(9):
            assert not pace.note_failure(asides.AuthError("x", status=403))
        pace.note_reply()
    assert pace.error is None


def test_the_error_of_a_model_of_its_own_or_of_a_fallback_concerns_one_question() -> None:
    pace = Pace(4)
    assert not pace.note_failure(asides.AuthError("x", status=401), has_own_model=True)
    last = asides.AuthError("x", status=401)
    last.earlier = (asides.Overloaded("x", status=503),)
    assert not pace.note_failure(last)
    last.earlier = (asides.NotFound("x", status=404),)
    assert pace.note_failure(last)


# --- a request of a list ------------------------------------------------------------------------------------------


class Clock:
    """Drives the flow of one request against statuses, with a clock that only its sleeps move."""

    def __init__(
        self, pace: Pace, *statuses: int, after_two_sleeps: Callable[[], None] | None = None, **options: Any
    ) -> None:
        self._after_two_sleeps = after_two_sleeps
        builder = CallBuilder(settings=asides.Settings()).with_pace(pace)
        options = {"base_url": "http://127.0.0.1:1/v1", **options}
        self.call = builder.build("openai-compatible:m", "?", options, stream=False)  # type: ignore[arg-type]
        self.now = 0.0
        self.sent: list[float] = []
        self.allowed: list[float | None] = []
        self.slept: list[float] = []
        self._statuses = iter(statuses)

    def run(self) -> None:
        flow, value = Exchange(self.call).steps(), None
        while True:
            step: Step = flow.send(value)
            value = self._carry_out(step)

    def _carry_out(self, step: Step) -> Any:
        match step:
            case Now():
                return self.now
            case Sleep(seconds):
                self.slept.append(seconds)
                self.now += seconds
                if len(self.slept) == 2 and self._after_two_sleeps is not None:
                    self._after_two_sleeps()
            case Open():
                self.sent.append(self.now)
                status = next(self._statuses)
                return Head(status, {} if status == 500 else {"retry-after": "3"})
            case Read():
                return b""
            case Allow(seconds):
                self.allowed.append(seconds)
            case _:
                raise AssertionError(step)
        return None


def test_a_request_that_is_asked_to_wait_keeps_its_attempts() -> None:
    clock = Clock(Pace(4), 429, 429, 529, 500, 429, 500, retries=1, timeout=asides.Timeout(total=30))
    with pytest.raises(asides.Overloaded, match="Given up after 2 attempts"):
        clock.run()
    waits = [after - before for before, after in zip(clock.sent, clock.sent[1:], strict=False)]
    assert len(clock.sent) == 6
    assert all(3.0 <= wait <= 4.0 for wait in (*waits[:3], waits[4]))
    assert waits[3] <= 0.5
    # The pauses of the list are not the time of the request.
    assert clock.allowed == [None, 30] * 4
    assert max(clock.slept) <= 1.0


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_request_that_waits_hears_that_the_run_has_ended(is_stopped: bool) -> None:
    pace = Pace(4)

    def end() -> None:
        if is_stopped:
            pace.stop()
        else:
            pace.note_failure(asides.AuthError("no", status=401))

    clock = Clock(pace, 429, after_two_sleeps=end)
    with pytest.raises(RunEnded if is_stopped else asides.AuthError):
        clock.run()
    assert (len(clock.sent), len(clock.slept)) == (1, 2)


def test_only_the_last_of_several_models_is_waited_for() -> None:
    builder = CallBuilder(settings=asides.Settings()).with_pace(pace := Pace(4))
    names = ["openai-compatible:a", "openai-compatible:b", "openai-compatible:c"]
    call = builder.build(names, "?", {"base_url": "http://127.0.0.1:1/v1"}, stream=False)
    assert [one.policy.pace for one in (call, *call.fallbacks)] == [None, None, pace]
