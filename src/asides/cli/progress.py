"""When the parts of one reply came and how much was thought: for the live line and the figures behind an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from asides.values.events import TextDelta, ThinkingDelta, UsageReported
from asides.values.reply import Reply
from asides.values.result import RunEvent, StepStarted

# A rough rule for European languages; said with a "~", and only until the server reports the figure.
_CHARACTERS_PER_TOKEN = 4


class Progress:
    """One reply on a clock. `take` is asked by whoever reads events, `words` by the thread of the live line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_at = clock()
        self._thinking_from: float | None = None
        self._thinking_to: float | None = None
        self._answer_from: float | None = None
        self._ended_at: float | None = None
        self._characters = 0
        self._tokens: int | None = None

    def take(self, events: Iterable[RunEvent]) -> None:
        """Note when these came. Each step of a run begins anew: what is thought and said in the last one counts."""
        now = self._clock()
        for event in events:
            if isinstance(event, ThinkingDelta):
                self._characters += len(event.text)
                self._thinking_from = now if self._thinking_from is None else self._thinking_from
                self._thinking_to = now
            elif isinstance(event, TextDelta) and self._answer_from is None:
                self._answer_from = now
                if self._thinking_from is not None:
                    # The silence between the last thought and the first word belongs to the thinking.
                    self._thinking_to = now
            elif isinstance(event, StepStarted):
                self._thinking_from = self._thinking_to = self._answer_from = None
            elif isinstance(event, UsageReported) and event.usage.thinking is not None:
                self._tokens = event.usage.thinking

    def end(self) -> None:
        """The reply is over, whole or not."""
        self._ended_at = self._clock()

    def words(self) -> str:
        """The live line."""
        if self._answer_from is not None:
            return f"answering… {_whole(self._clock() - self._asked_at)}"
        if self._thinking_from is None:
            return f"waiting… {_whole(self._clock() - self._asked_at)}"
        tokens = f"{self._tokens}" if self._tokens is not None else f"~{self._characters // _CHARACTERS_PER_TOKEN}"
        return f"thinking… {_whole(self._clock() - self._thinking_from)}, {tokens} tokens"

    @property
    def seconds(self) -> dict[str, float | None]:
        """How long what took: the thinking that could be watched, the way to the first word, all of it."""
        end = self._clock() if self._ended_at is None else self._ended_at
        return {
            "thinking": _between(self._thinking_from, self._thinking_to),
            "first_word": _between(self._asked_at, self._answer_from),
            "total": _between(self._asked_at, end),
        }


def elapsed_line(progress: Progress) -> str:
    """`--elapsed`, in words."""
    seconds = progress.seconds
    thinking = "not seen" if seconds["thinking"] is None else f"{seconds['thinking']:.1f} s"
    first = "never" if seconds["first_word"] is None else f"after {seconds['first_word']:.1f} s"
    return f"time: thinking {thinking}, first word {first}, whole {seconds['total']:.1f} s"


def usage_line(reply: Reply) -> str:
    """`--usage`, in words; what was not reported is said to be so."""
    usage = reply.usage
    if usage.input is None and usage.output is None and usage.total is None:
        return "tokens: not reported"
    cached = f" ({usage.cached} cached)" if usage.cached else ""
    trust = "" if usage.origin == "reported" else f" ({usage.origin})"
    return (
        f"tokens: input {_count(usage.input)}{cached}, output {_count(usage.output)}, "
        f"of it thinking {_count(usage.thinking)}, total {_count(usage.total)}{trust}"
    )


def _count(value: int | None) -> str:
    return "not reported" if value is None else str(value)


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 3)


def _whole(seconds: float) -> str:
    return f"{int(seconds)} s"
