"""Seconds and tokens: the live line, `--elapsed` and `--usage`."""

from __future__ import annotations

import pytest

from asides.cli.terminal import Stopwatch, describe_elapsed, describe_usage
from asides.testing.stage import OpenStage, Say
from asides.values.events import TextDelta, ThinkingDelta, UsageReported
from asides.values.reply import Reply
from asides.values.usage import Usage
from tests.cli.children import ask


def test_the_stopwatch_counts_seconds_and_tokens() -> None:
    now = [10.0]
    stopwatch = Stopwatch(lambda: now[0])
    now[0] = 12.5
    assert stopwatch.status_line() == "waiting… 2 s"
    stopwatch.record([ThinkingDelta("x" * 48)])
    now[0] = 15.0
    assert stopwatch.status_line() == "thinking… 2 s, ~12 tokens"
    stopwatch.record([UsageReported(Usage(thinking=31))])
    assert stopwatch.status_line() == "thinking… 2 s, 31 tokens"
    stopwatch.record([TextDelta("y")])
    assert stopwatch.status_line() == "answering… 5 s"
    now[0] = 16.0
    stopwatch.stop()
    now[0] = 99.0
    assert stopwatch.seconds == {"thinking": 2.5, "first_word": 5.0, "total": 6.0}
    assert describe_elapsed(stopwatch) == "time: thinking 2.5 s, first word after 5.0 s, total 6.0 s"


def test_a_phase_that_never_happened_has_no_seconds() -> None:
    now = [0.0]
    stopwatch = Stopwatch(lambda: now[0])
    now[0] = 2.0
    assert describe_elapsed(stopwatch) == "time: thinking not seen, first word never, total 2.0 s"


def test_figures_are_printed_on_request_and_say_when_nothing_was_reported(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(thinking="a b", text="c", usage=Usage(3, 9, 5, 2, 12)), Say(text="c", usage=Usage()))
    _, _, err = ask(capsys, server, "--usage", "--elapsed", "?")
    tokens, time = err.splitlines()
    assert tokens == "tokens: 3 in (2 cached), 9 out (5 thinking), 12 total"
    assert time.startswith("time: thinking 0.")
    assert ask(capsys, server, "--usage", "?")[2] == "tokens: not reported\n"


@pytest.mark.parametrize(
    ("usage", "line"),
    [
        (Usage(12, 34), "tokens: 12 in, 34 out (thinking not reported)"),
        (Usage(12, 34, 0, None, 46), "tokens: 12 in, 34 out (0 thinking), 46 total"),
        (Usage(None, 34, 5, origin="estimated"), "tokens: in not reported, 34 out (5 thinking) (estimated)"),
        (Usage(), "tokens: not reported"),
    ],
)
def test_counts_that_were_not_reported_are_named(usage: Usage, line: str) -> None:
    assert describe_usage(Reply(usage=usage)) == line
