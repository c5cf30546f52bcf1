"""Writes to stdout and stderr: lines, colours, the live line, and the stopwatch behind it.

Only the answer goes to stdout. Everything else goes to stderr, dim on a terminal.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    # `asides --help` uses this module and needs no values.
    from decimal import Decimal

    from asides.values.reply import Reply
    from asides.values.result import Result, RunEvent
    from asides.values.usage import Cost, Timing, Usage

_DIM = "\x1b[2m"
_RED = "\x1b[31m"
_PLAIN = "\x1b[0m"
_ERASE = "\r\x1b[K"
_REDRAW_SECONDS = 0.1
# For a shorter wait, a line that appears and vanishes does not help.
_FIRST_DRAW_SECONDS = 0.3
# A rough estimate for European languages, shown with a "~" until the server reports the figure.
_CHARACTERS_PER_TOKEN = 4

# A model's text must not control the terminal: control characters become visible ones. "\r" is removed, since "\r\n"
# is common and a lone one would let later words cover earlier ones. Embeddings, overrides and isolates of direction
# show words in another order than they have; the marks that ordinary right-to-left text needs stay.
_VISIBLE: dict[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"),
    **dict.fromkeys((0x2028, 0x2029), "\n"),
    ord("\r"): None,
    0x7F: "\u2421",
}


def make_visible(text: str) -> str:
    """The text with its control characters as visible ones."""
    return text.translate(_VISIBLE)


class Terminal:
    """Both streams of the process, and whether the last line of each is open. The thread of a live line may use it."""

    def __init__(self, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> None:
        self._out = out
        self._err = err
        self._lock = threading.RLock()
        self.quiet = False
        """Print no notes, only lines that the user asked for, and errors."""
        self.out_is_terminal = out.isatty()
        self.err_is_terminal = err.isatty()
        self.supports_unicode = "utf" in (getattr(out, "encoding", None) or "").lower()
        """Whether stdout can encode every character."""
        ansi = self.err_is_terminal and _supports_ansi(environ)
        self._coloured = ansi and not environ.get("NO_COLOR")
        self.can_render = self.out_is_terminal and _supports_ansi(environ) and self.supports_unicode
        """Whether styled text can be written to stdout, and replaced."""
        self.can_redraw = ansi
        """Whether a line can be drawn and erased again."""
        # When both streams go to one screen, they share a cursor.
        self._shared = self.out_is_terminal and self.err_is_terminal
        self._out_open = False
        self._err_open = False
        self._line_broken = False
        self._gap_due = False
        self._live = ""

    # --- stdout: the answer -------------------------------------------------------------------------------------------

    def write_answer(self, text: str) -> None:
        """Write more of the answer."""
        self.write_rendered(make_visible(text) if self.out_is_terminal else text)

    def write_rendered(self, text: str) -> None:
        """Write more of the answer, with escapes of our own. Those of a model have been made visible."""
        if not text:
            return
        with self._lock:
            self._end_err_line()
            if self._gap_due:
                self._err.write("\n")
                self._gap_due = False
            self._err.flush()
            self._line_broken = False
            # Set before the write, since Ctrl-C may interrupt it.
            self._out_open = not text.endswith("\n")
            self._out.write(text)

    def end_answer(self) -> None:
        """End the answer, complete or not, so that later text begins a new line."""
        with self._lock:
            self.erase()
            if self._out_open:
                self._out.write("\n")
                self._out_open = self._line_broken = False
            self._end_err_line()
            self._gap_due = False
            self.flush()

    # --- stderr: everything else --------------------------------------------------------------------------------------

    def write_thinking(self, text: str) -> None:
        """Write more of the thinking."""
        if not text:
            return
        with self._lock:
            self._switch_to_err()
            shown = text.translate(_VISIBLE) if self.err_is_terminal else text
            # The style is reset after each piece, so that a killed process leaves no dim terminal.
            self._err_open, self._gap_due = not text.endswith("\n"), self._shared
            self._err.write(self._style(shown, _DIM))

    def end_thought(self) -> None:
        """End a thought with a blank line."""
        with self._lock:
            self._end_err_line()
            self._err.write("\n")

    def print_note(self, text: str) -> None:
        """Print a dim line that `--quiet` suppresses, such as a warning."""
        if not self.quiet:
            self._print_line(text, _DIM)

    def print_info(self, text: str) -> None:
        """Print a dim line that the user asked for."""
        self._print_line(text, _DIM)

    def print_error(self, text: str) -> None:
        """End the answer, then print the error."""
        with self._lock:
            self.end_answer()
            self._print_line(text, lead="asides: ")

    def _print_line(self, text: str, style: str = "", lead: str = "") -> None:
        with self._lock:
            self._switch_to_err()
            self._end_err_line()
            shown = text.translate(_VISIBLE) if self.err_is_terminal else text
            self._err.write(f"{self._style(lead, _RED) if lead else ''}{self._style(shown, style)}\n")
            self._err.flush()

    # --- the live line ------------------------------------------------------------------------------------------------

    def draw(self, text: str) -> None:
        """Draw the live line in place of the previous one, unless that line has other text."""
        with self._lock:
            if not self.can_redraw or self._err_open or (self._shared and self._out_open):
                return
            width = shutil.get_terminal_size().columns
            shown = text if len(text) < width else text[: max(width - 1, 0)]
            if shown != self._live:
                erase, self._live = _ERASE if self._live else "", shown
                self._err.write(f"{erase}{self._style(shown, _DIM)}")
                self._err.flush()

    def erase(self) -> None:
        """Erase the live line."""
        with self._lock:
            if self._live:
                self._live = ""
                self._err.write(_ERASE)
                self._err.flush()

    # --- both streams -------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Flush both streams."""
        with self._lock:
            self._err.flush()
            self._out.flush()

    def _switch_to_err(self) -> None:
        self.erase()
        if self._shared:
            self._out.flush()
            if self._out_open and not self._line_broken:
                # The line break goes to stderr, since stdout has only the answer.
                self._err.write("\n")
                self._line_broken = True

    def _end_err_line(self) -> None:
        self.erase()
        if self._err_open:
            self._err.write("\n")
            self._err_open = False

    def _style(self, text: str, style: str) -> str:
        return f"{style}{text}{_PLAIN}" if style and self._coloured else text


def open_terminal() -> Terminal:
    """The terminal of this process. Characters that a stream cannot encode are written as escapes."""
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            # The process was started with this stream closed (`>&-`), so its output is discarded.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - stays open
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return Terminal(sys.stdout, sys.stderr, os.environ)


def _supports_ansi(environ: Mapping[str, str]) -> bool:
    if environ.get("TERM") == "dumb":
        return False
    # The old console of Windows prints escapes literally.
    return sys.platform != "win32" or any(name in environ for name in ("WT_SESSION", "ANSICON", "TERM"))


# --- the live line and its figures ------------------------------------------------------------------------------------


class LiveLine:
    """Redraws the text that `status_line` returns until it is stopped, then erases it."""

    def __init__(self, terminal: Terminal, status_line: Callable[[], str]) -> None:
        self._terminal = terminal
        self._status_line = status_line
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start, or start again, if the terminal can redraw a line."""
        if self._terminal.can_redraw and not self._terminal.quiet and self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="asides-live-line", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop and erase the line. May be called twice."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._terminal.erase()

    def _run(self) -> None:
        wait = _FIRST_DRAW_SECONDS
        # The stream may be closed; the thread that writes the answer reports that.
        with suppress(OSError, ValueError):
            while not self._stopped.wait(wait):
                self._terminal.draw(self._status_line())
                wait = _REDRAW_SECONDS


class Stopwatch:
    """Times one reply. The reader of the events calls `record`, the thread of the live line `status_line`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_at = clock()
        self._thinking_from: float | None = None
        self._thinking_to: float | None = None
        self._answer_from: float | None = None
        self._stopped_at: float | None = None
        self._characters = 0
        self._tokens: int | None = None

    def record(self, events: Iterable[RunEvent]) -> None:
        """Record that these events arrived now. Each step of a run resets the figures, so the last step counts."""
        from asides.values.events import TextDelta, TextReclassified, ThinkingDelta, UsageReported
        from asides.values.result import StepStarted

        now = self._clock()
        for event in events:
            if isinstance(event, ThinkingDelta):
                self._characters += len(event.text)
                self._thinking_from = now if self._thinking_from is None else self._thinking_from
                self._thinking_to = now
            elif isinstance(event, TextDelta) and self._answer_from is None:
                self._answer_from = now
                if self._thinking_from is not None:
                    # The pause between the last thought and the first word counts as thinking.
                    self._thinking_to = now
            elif isinstance(event, TextReclassified) and event.channel == "commentary":
                self._answer_from = None
            elif isinstance(event, TextReclassified):
                # What was taken for the answer was thinking.
                self._characters += len(event.text)
                self._thinking_from, self._thinking_to = self._thinking_from or self._answer_from or now, now
                self._answer_from = None
            elif isinstance(event, StepStarted):
                self._thinking_from = self._thinking_to = self._answer_from = None
            elif isinstance(event, UsageReported) and event.usage.thinking is not None:
                self._tokens = event.usage.thinking

    def stop(self) -> None:
        """Stop at the end of the reply, complete or not."""
        self._stopped_at = self._clock()

    def status_line(self) -> str:
        """The text of the live line."""
        if self._answer_from is not None:
            return f"answering… {int(self._clock() - self._started_at)} s"
        if self._thinking_from is None:
            return f"waiting… {int(self._clock() - self._started_at)} s"
        tokens = f"{self._tokens}" if self._tokens is not None else f"~{self._characters // _CHARACTERS_PER_TOKEN}"
        return f"thinking… {int(self._clock() - self._thinking_from)} s, {tokens} tokens"

    @property
    def seconds(self) -> dict[str, float | None]:
        """Seconds of visible thinking, until the first word of the answer, and in total; None where there was none."""
        end = self._clock() if self._stopped_at is None else self._stopped_at
        return {
            "thinking": _subtract(self._thinking_to, self._thinking_from),
            "first_word": _subtract(self._answer_from, self._started_at),
            "total": _subtract(end, self._started_at),
        }


def describe_elapsed(stopwatch: Stopwatch) -> str:
    """The line of `--elapsed`."""
    seconds = stopwatch.seconds
    thinking = "not seen" if seconds["thinking"] is None else f"{seconds['thinking']:.1f} s"
    first = "never" if seconds["first_word"] is None else f"after {seconds['first_word']:.1f} s"
    return f"time: thinking {thinking}, first word {first}, total {seconds['total']:.1f} s"


def describe_usage(reply: Reply | Result[Any]) -> str:
    """The line of `--usage`: tokens, seconds of thinking and cost. It names the counts that were not reported."""
    return describe_figures(reply.usage, reply.timing, reply.cost)


def describe_figures(usage: Usage, timing: Timing | None, cost: Cost | None) -> str:
    """The line of `--usage` for these figures, of one reply or of many."""
    seconds = 0.0 if timing is None else round(timing.thinking or 0.0, 1)
    thinking = f"{seconds:.1f} s thinking" if seconds else None
    figures = (_describe_tokens(usage), thinking, _describe_cost(cost))
    return " · ".join(figure for figure in figures if figure is not None)


def _describe_tokens(usage: Usage) -> str:
    if usage.input is None and usage.output is None and usage.total is None:
        return "tokens: not reported"
    counts = ((usage.cached, "cached"), (usage.cache_written, "written to the cache"))
    cache = ", ".join(f"{count} {what}" for count, what in counts if count)
    total = "" if usage.total is None else f", {usage.total} total"
    tools = f", {usage.tool_requests} requests of the provider's tools" if usage.tool_requests else ""
    tier = "" if usage.tier is None else f", tier {usage.tier}"
    origin = "" if usage.origin == "reported" else f" ({usage.origin})"
    return (
        f"tokens: {_count(usage.input, 'in')}{f' ({cache})' if cache else ''}, {_count(usage.output, 'out')} "
        f"({_count(usage.thinking, 'thinking')}){total}{origin}{tools}{tier}"
    )


def _describe_cost(cost: Cost | None) -> str | None:
    if cost is None:
        return None
    thinking = f" ({_format_amount(cost.thinking, cost)} thinking)" if cost.thinking else ""
    origin = " estimated" if cost.origin == "estimated" else ""
    return f"{_format_amount(cost.amount, cost)}{thinking}{origin}"


def _format_amount(amount: Decimal, cost: Cost) -> str:
    """Cents as usual, less than a cent with two digits that count."""
    digits = 2 if not amount or amount >= 1 else max(2, 1 - amount.adjusted())
    return f"${amount:.{digits}f}" if cost.currency == "USD" else f"{amount:.{digits}f} {cost.currency}"


def _count(value: int | None, what: str) -> str:
    return f"{what} not reported" if value is None else f"{value} {what}"


def _subtract(end: float | None, start: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 3)
