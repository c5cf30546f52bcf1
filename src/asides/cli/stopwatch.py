"""How long a reply took and how much the model thought: for the live line, `--elapsed` and `--usage`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from asides.values.events import TextDelta, ThinkingDelta, UsageReported
from asides.values.reply import Reply
from asides.values.result import RunEvent, StepStarted

# A rough rule for European languages; shown with a "~", and only until the server reports the figure.
_CHARACTERS_PER_TOKEN = 4


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
        """Record when these arrived. Each step of a run starts anew, so the figures are those of the last step."""
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
            elif isinstance(event, StepStarted):
                self._thinking_from = self._thinking_to = self._answer_from = None
            elif isinstance(event, UsageReported) and event.usage.thinking is not None:
                self._tokens = event.usage.thinking

    def stop(self) -> None:
        """The reply has ended, complete or not."""
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


def describe_usage(reply: Reply) -> str:
    """The line of `--usage`. It says which of the counts the provider did not report."""
    usage = reply.usage
    if usage.input is None and usage.output is None and usage.total is None:
        return "tokens: not reported"
    cached = f" ({usage.cached} cached)" if usage.cached else ""
    total = "" if usage.total is None else f", {usage.total} total"
    origin = "" if usage.origin == "reported" else f" ({usage.origin})"
    return (
        f"tokens: {_count(usage.input, 'in')}{cached}, {_count(usage.output, 'out')} "
        f"({_count(usage.thinking, 'thinking')}){total}{origin}"
    )


def _count(value: int | None, what: str) -> str:
    return f"{what} not reported" if value is None else f"{value} {what}"


def _subtract(end: float | None, start: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 3)
