"""The answer and everything else on their streams, at terminals and pipes; the seconds and tokens of a reply."""

from __future__ import annotations

import io
import time
from decimal import Decimal

import pytest

from asides.cli.render import Display
from asides.cli.terminal import LiveLine, Stopwatch, Terminal, describe_elapsed, describe_usage
from asides.values.events import Event, TextDelta, ThinkingDelta, UsageReported
from asides.values.reply import CallContext, Reply
from asides.values.result import Result, Step
from asides.values.usage import Timing, Usage
from asides_stage.stage import OpenStage, Say
from tests.cli.children import ask, at, run_process


class Tape(io.StringIO):
    """A stream that also writes to a list that it shares with others: what a person at one screen sees."""

    def __init__(self, shared: list[str], *, terminal: bool) -> None:
        super().__init__()
        self._shared = shared
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        self._shared.append(text)
        return super().write(text)


def play(events: list[Event], *, out: bool, err: bool) -> tuple[str, str, str]:
    """stdout, stderr, and both in the order of the writes."""
    both: list[str] = []
    streams = Tape(both, terminal=out), Tape(both, terminal=err)
    display = Display(Terminal(*streams, {"NO_COLOR": "1", "TERM": "xterm"}), Stopwatch(), shown=frozenset({"raw"}))
    display.show(events)
    display.end()
    return streams[0].getvalue(), streams[1].getvalue(), "".join(both)


TWO_THOUGHTS: list[Event] = [
    ThinkingDelta("a", 0),
    ThinkingDelta("b", 0),
    ThinkingDelta("c", 1),
    TextDelta("x ", 2),
    ThinkingDelta("d", 3),
    TextDelta("y", 4),
]


def test_in_pipes_each_stream_has_whole_lines_of_its_own() -> None:
    out, err, _ = play(TWO_THOUGHTS, out=False, err=False)
    assert out == "x y\n"
    assert err == "ab\n\nc\nd\n"


def test_on_one_screen_thoughts_and_answer_stand_on_lines_of_their_own_and_stdout_is_the_answer() -> None:
    out, err, both = play(TWO_THOUGHTS, out=True, err=True)
    assert out == "x y\n"
    assert both == "ab\n\nc\n\nx \nd\n\ny\n"
    assert err == "ab\n\nc\n\n\nd\n\n"


def test_a_thought_alone_ends_its_line() -> None:
    assert play([ThinkingDelta("a")], out=True, err=True) == ("", "a\n", "a\n")


def test_a_note_in_the_middle_of_an_answer_does_not_stand_in_it() -> None:
    both: list[str] = []
    out = Tape(both, terminal=True)
    terminal = Terminal(out, Tape(both, terminal=True), {"NO_COLOR": "1"})
    terminal.write_answer("half")
    terminal.print_note("n")
    terminal.write_answer(" whole")
    terminal.end_answer()
    assert "".join(both) == "half\nn\n whole\n"
    assert out.getvalue() == "half whole\n"


def test_a_live_line_is_cut_to_the_screen_and_leaves_nothing() -> None:
    err = Tape([], terminal=True)
    terminal = Terminal(Tape([], terminal=False), err, {"TERM": "xterm", "NO_COLOR": "1"})
    live = LiveLine(terminal, lambda: "w" * 500)
    live.start()
    deadline = time.monotonic() + 5
    while not err.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    live.stop()
    live.stop()
    drawn, erased = err.getvalue().split("\r")
    assert set(drawn) == {"w"}
    assert len(drawn) < 500
    assert erased == "\x1b[K"


def test_no_live_line_inside_an_answer_or_without_a_terminal() -> None:
    both: list[str] = []
    terminal = Terminal(Tape(both, terminal=True), Tape(both, terminal=True), {"TERM": "xterm"})
    terminal.write_answer("half")
    terminal.draw("thinking")
    assert both == ["half"]
    silent = Tape([], terminal=False)
    Terminal(Tape([], terminal=True), silent, {"TERM": "xterm"}).draw("thinking")
    assert silent.getvalue() == ""


def test_a_character_that_a_stream_cannot_encode_is_escaped_and_json_stays_valid(stage: OpenStage) -> None:
    server = stage(Say(text="naïve 日本"))
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    assert run_process("ask", *at(server), "?", env=ascii_only).out == "na\\xefve \\u65e5\\u672c\n"
    assert '"text": "na\\u00efve \\u65e5\\u672c"' in run_process("ask", *at(server), "--json", "?", env=ascii_only).out


# --- the stopwatch ----------------------------------------------------------------------------------------------------


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
        (
            Usage(12, 34, 0, 4, 46, cache_written=3),
            "tokens: 12 in (4 cached, 3 written to the cache), 34 out (0 thinking), 46 total",
        ),
        (
            Usage(12, 34, 0, tool_requests=3, tier="priority"),
            "tokens: 12 in, 34 out (0 thinking), 3 requests of the provider's tools, tier priority",
        ),
        (Usage(1, 2, 3, cost=Decimal("0.00415")), "tokens: 1 in, 2 out (3 thinking) · $0.0042"),
        (Usage(1, 2, 3, cost=Decimal(0)), "tokens: 1 in, 2 out (3 thinking) · $0.00"),
        (Usage(1, 2, 3, cost=Decimal("12.345")), "tokens: 1 in, 2 out (3 thinking) · $12.34"),
        (Usage(1, 2, 3, cost=Decimal("0.5")), "tokens: 1 in, 2 out (3 thinking) · $0.50"),
    ],
)
def test_counts_that_were_not_reported_are_named(usage: Usage, line: str) -> None:
    assert describe_usage(Reply(usage=usage)) == line


def test_the_line_of_usage_has_the_seconds_of_thinking_and_the_cost() -> None:
    usage = Usage(1_000_000, 1_000_000, 250_000)
    timed = Reply(usage=usage, model="gpt-5", call=CallContext(timing=Timing(thinking=3.21), priced_by="openai"))
    tokens = "tokens: 1000000 in, 1000000 out (250000 thinking)"
    assert describe_usage(Reply(usage=usage, call=CallContext(timing=Timing(thinking=0.01)))) == tokens
    pytest.importorskip("genai_prices")
    assert describe_usage(timed) == f"{tokens} · 3.2 s thinking · $11.25 ($2.50 thinking) estimated"
    run = Result("42", steps=(Step(1, timed), Step(2, timed)))
    assert describe_usage(run).endswith(" · 6.4 s thinking · $22.50 ($5.00 thinking) estimated")
