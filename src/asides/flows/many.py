"""Many questions: what is decided once for the sync and the async driver. When to take the next prompt, what ends the
batch, and what is reported. `Pace` decides the concurrency, and which errors concern all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from asides.flows.call import Call
from asides.flows.pace import Pace
from asides.history.check import check_request
from asides.options import ModelLike, Options, PromptLike, reject_unknown
from asides.values.errors import AsidesError, ConfigError
from asides.values.messages import Message, Prompt
from asides.values.reply import Reply

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder
    from asides.values.result import Result

Answer: TypeAlias = "Reply | AsidesError"
BuildCall: TypeAlias = Callable[[], Call]
"""Builds the call of one question. An AsidesError that it raises is the answer to this question alone."""


class Progress(msgspec.Struct, frozen=True):
    """The progress of many questions, for `on_progress`."""

    done: int
    """Questions that have a reply or have failed."""
    failed: int
    """How many of these failed."""
    running: int
    """Questions that are being asked."""
    total: int | None
    """The number of all questions; None when it is not known, as with a generator."""


OnProgress: TypeAlias = Callable[[Progress], object]


class OpenQuestions:
    """The state of one batch: counts, and the error that ends it. A driver takes the questions and runs them."""

    __slots__ = (
        "_done",
        "_failed",
        "_is_exhausted",
        "_on_progress",
        "_own_models",
        "_problem",
        "_taken",
        "_total",
        "pace",
    )

    def __init__(self, concurrency: int = 8, on_progress: OnProgress | None = None, total: int | None = None) -> None:
        self.pace = Pace(_check_concurrency(concurrency))
        self._own_models: set[int] = set()
        if on_progress is not None and not callable(on_progress):
            raise ConfigError("on_progress is a function that takes a Progress.")
        if iscoroutinefunction(on_progress):
            raise ConfigError("on_progress is called, not awaited. Write def in place of async def.")
        self._on_progress = on_progress
        self._total = total
        self._taken = self._done = self._failed = 0
        self._is_exhausted = False
        self._problem: BaseException | None = None

    @property
    def has_room_for_more(self) -> bool:
        """Whether to take the next question now. Never takes more than are asked concurrently."""
        is_over = self._is_exhausted or self._problem is not None
        return not is_over and self._taken - self._done < self.pace.limit

    @property
    def error(self) -> AsidesError | None:
        """The error that concerns every question. The remaining questions get it without being sent."""
        return self.pace.error

    def note_own_model(self, index: int) -> None:
        """Note that a question has a model of its own. Its error does not concern the others."""
        self._own_models.add(index)

    def take(self) -> int:
        """Count a question that was taken. Returns its index."""
        self._taken += 1
        return self._taken - 1

    def exhaust(self) -> None:
        """Note that there are no more questions."""
        self._is_exhausted = True

    def fail(self, problem: BaseException) -> None:
        """Take no more questions. The problem is raised after the open ones have ended, so that no reply is lost."""
        if self._problem is None:
            self._problem = problem

    def finish(self, index: int, outcome: Reply | Result[Any] | BaseException) -> tuple[int, object] | None:
        """Count an outcome; return what the caller gets. None for an error that is not one of a question."""
        self._done += 1
        if isinstance(outcome, BaseException) and not isinstance(outcome, AsidesError):
            self.fail(outcome)
            return None
        has_own_model = index in self._own_models
        self._own_models.discard(index)
        if isinstance(outcome, AsidesError):
            self._failed += 1
            self.pace.note_failure(outcome, has_own_model=has_own_model)
        if self._on_progress is not None:
            try:
                self._on_progress(Progress(self._done, self._failed, self._taken - self._done, self._total))
            except Exception as problem:  # noqa: BLE001 - it is the caller's, and costs no reply
                self.fail(problem)
                self._on_progress = None
        return index, outcome

    def end(self) -> None:
        """Raise the error that ended the batch, if there is one."""
        if self._problem is not None:
            raise self._problem


def _check_concurrency(given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise ConfigError(f"concurrency must be a number of calls, 1 or more, not {given!r}.")
    return given


# --- the questions of ask_many ------------------------------------------------------------------------------------


def check_prompts(prompts: object) -> int | None:
    """Return the number of prompts, if known. Raises if a single prompt is passed instead of a list."""
    if prompts is None:
        raise ConfigError("there are no prompts. Write ask_many(model, prompts), or ask_many(prompts=…).")
    is_one = isinstance(prompts, (str, bytes, Message, Prompt, Mapping, Reply)) or hasattr(prompts, "messages")
    if is_one or not isinstance(prompts, (Iterable, AsyncIterable)):
        raise ConfigError(
            f"prompts must be a list, not {type(prompts).__name__}. Pass a list, or use ask() for one prompt."
        )
    return len(prompts) if hasattr(prompts, "__len__") else None  # type: ignore[arg-type]


def check_call(builder: CallBuilder, model: ModelLike | None, options: Options) -> None:
    """Raise errors that concern every question, before the first is sent."""
    reject_unknown(options, "ask_many()", ("concurrency", "on_progress"))
    reported = set(builder.reported)
    call = builder.build(model, "?", options, stream=False)
    builder.reported.clear()
    builder.reported.update(reported)  # The first question reports a default model.
    check_request(call.prompt, call.target, call.policy.on_conflict, [])


def prepare_call(builder: CallBuilder, model: ModelLike | None, options: Options, prompt: PromptLike) -> BuildCall:
    """Return the builder of one prompt's call. An answer that does not fit `output` is an error of its prompt."""
    if options.get("attempts") is None and builder.defaults.get("attempts") is None:
        options = {**options, "attempts": 0}
    return partial(builder.build, model, prompt, options, stream=False)


def prepare_calls(
    builder: CallBuilder, model: ModelLike | None, prompts: Iterable[Any] | None, options: Options
) -> Iterator[BuildCall]:
    """Yield the builder of each prompt's call. Prompts are read lazily."""
    return (prepare_call(builder, model, options, prompt) for prompt in (() if prompts is None else prompts))
