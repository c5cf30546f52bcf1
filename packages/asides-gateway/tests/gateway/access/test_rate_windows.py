"""The arithmetic of rate windows, against an exact log of what passed."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given, settings
from hypothesis import strategies as st

from asides_gateway.access.memory_windows import MemoryWindows
from asides_gateway.access.rate_windows import BUCKET_MS, WINDOW_MS, KeyWindow, count_left, fit_tokens, open_windows
from asides_gateway.access.redis_link import RedisLink
from asides_gateway.access.redis_windows import RedisWindows

STEPS = st.lists(
    st.tuples(st.sampled_from((0, 1, 37, 499, 500, 900, 5_000, 20_000, 59_999, 60_000, 61_000)), st.integers(0, 60)),
    max_size=80,
)
LIMITS = st.one_of(st.none(), st.integers(1, 12))


def _sum_since(log: list[tuple[int, int]], first: int) -> tuple[int, int]:
    """The requests and tokens of the log after a time."""
    place = bisect_right(log, (first, 1 << 60))
    return len(log) - place, sum(tokens for _, tokens in log[place:])


@settings(max_examples=300)
@given(STEPS, LIMITS, st.one_of(st.none(), st.integers(1, 150)))
def test_no_minute_sees_more_than_the_limit_and_little_is_refused(
    steps: list[tuple[int, int]], rpm: int | None, tpm: int | None
) -> None:
    window = KeyWindow()
    now = 1_700_000_000_123
    log: list[tuple[int, int]] = []
    for pause, tokens in steps:
        now += pause
        tokens = fit_tokens(tokens, tpm)
        wait, requests, counted = window.take(now, rpm, tpm, tokens)
        assert 0 <= wait <= WINDOW_MS
        if wait == 0:
            log.append((now, tokens))
            assert requests >= 1
            assert counted >= tokens
        else:
            # It would also be refused by a log that forgets a bucket later.
            more, sum_ = _sum_since(log, now - WINDOW_MS - BUCKET_MS)
            assert (rpm is not None and more >= rpm) or (tpm is not None and sum_ + tokens > tpm)
            # What it names is enough to wait, and not much more than is needed.
            more, sum_ = _sum_since(log, now + wait - WINDOW_MS)
            assert rpm is None or more < rpm
            assert tpm is None or sum_ + tokens <= tpm
        # The minute that ends now is the fullest that ends here.
        passed, total = _sum_since(log, now - WINDOW_MS)
        assert rpm is None or passed <= rpm
        assert tpm is None or total <= tpm


@given(STEPS, st.integers(1, 8))
def test_the_wait_is_enough_and_exact_for_few_requests(steps: list[tuple[int, int]], rpm: int) -> None:
    window = KeyWindow()
    now = 0
    log: list[tuple[int, int]] = []
    for pause, _ in steps:
        now += pause + BUCKET_MS  # at most one in a bucket
        wait, _, _ = window.take(now, rpm, None, 0)
        if wait:
            assert _sum_since(log, now + wait - 1 - WINDOW_MS)[0] >= rpm, "one millisecond less would not do"
            now += wait
            assert window.take(now, rpm, None, 0)[0] == 0
        log.append((now, 0))


def test_a_bucket_counts_whole_until_its_last_request_is_a_minute_old() -> None:
    window = KeyWindow()
    assert [window.take(at, 2, None, 0)[0] for at in (1000, 1400)] == [0, 0]
    assert window.take(1499, 2, None, 0)[0] == 1400 + WINDOW_MS - 1499
    assert window.take(1399 + WINDOW_MS, 2, None, 0)[0] == 1
    assert window.take(1400 + WINDOW_MS, 2, None, 0)[0] == 0


def test_tokens_are_given_back_to_their_own_bucket() -> None:
    window = KeyWindow()
    assert window.take(0, None, 100, 80)[0] == 0
    assert window.take(30_000, None, 100, 20)[0] == 0
    window.correct(40_000, 0, counted=80, used=10)
    assert window.take(40_000, None, 100, 70)[0] == 0
    # The 10 are gone after a minute, and no more than they: what was given back does not count for others.
    assert window.take(60_000, None, 100, 11)[0] > 0
    assert window.take(60_000, None, 100, 10)[0] == 0


def test_what_was_given_back_too_late_changes_nothing() -> None:
    window = KeyWindow()
    assert window.take(0, None, 100, 80)[0] == 0
    assert window.take(70_000, None, 100, 100)[0] == 0
    window.correct(70_001, 0, counted=80, used=0)
    assert window.take(70_002, None, 100, 1)[0] > 0


def test_tokens_beyond_the_reserved_count_from_then_on() -> None:
    window = KeyWindow()
    assert window.take(0, None, 100, 10)[0] == 0
    window.correct(50_000, 0, counted=10, used=110)
    assert window.take(60_500, None, 100, 1)[0] == 50_000 + WINDOW_MS - 60_500


def test_a_clock_that_goes_back_blocks_nobody_for_longer_than_a_minute() -> None:
    window = KeyWindow()
    assert window.take(3_600_000, 1, None, 0)[0] == 0
    assert window.take(0, 1, None, 0)[0] == WINDOW_MS
    assert window.take(WINDOW_MS, 1, None, 0)[0] == 0


def test_a_key_takes_few_buckets_however_many_requests() -> None:
    window = KeyWindow()
    for at in range(0, 200_000, 70):
        window.take(at, None, 10**9, 1)
    assert len(window._buckets) <= WINDOW_MS // BUCKET_MS + 1


def test_a_limit_of_nothing_lets_nothing_pass() -> None:
    assert KeyWindow().take(0, 0, None, 0)[0] == WINDOW_MS


def test_an_estimate_above_the_limit_takes_the_whole_limit() -> None:
    assert fit_tokens(500, 100) == 100
    assert fit_tokens(-5, 100) == 0
    assert fit_tokens(500, None) == 500
    assert count_left(5, 7) == 0
    assert count_left(None, 7) is None


def test_windows_are_shared_if_there_is_a_server() -> None:
    assert isinstance(open_windows(None), MemoryWindows)
    assert isinstance(open_windows(RedisLink("redis://127.0.0.1:1")), RedisWindows)
