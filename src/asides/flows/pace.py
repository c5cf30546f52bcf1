"""`Pace`: how fast a list of questions is asked, and which errors end it. All that ask lists share it.

A provider that asks to wait slows down all requests: half as many may be open after each such error, and one more after
a round of good replies. Times are those of the drivers' clock.
"""

from __future__ import annotations

import random
import re

from asides.values.errors import (
    AsidesError,
    AuthError,
    NotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    TransportError,
)

_BUSY = (503, 529)
"""Statuses of an overloaded server. 529 is Anthropic's (docs.anthropic.com, errors, 2026-11)."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_MAX_LIMITED = 20
"""Maximum retries of one request after the provider asked to wait."""
_FATAL_ERRORS = (AuthError, NotFound)
"""Errors that concern every question: a key that is not accepted, a model that does not exist."""
_NO_CREDIT = "insufficient|balance|billing|credit"
"""A part of the error codes for an account without credit, such as OpenAI's insufficient_quota."""
_MAX_FATAL = 10
"""How many of them in a row end a run that already has an answer."""
_MAX_FAILURES = 20
"""How many failures of the network or the server in a row end a run."""


class RunEnded(AsidesError):
    """The run was stopped while a request waited to be sent. Never reaches a caller."""


class Pace:
    """The state of one run. Threads share it without a lock: a count that is lost now and then does no harm."""

    def __init__(self, concurrency: int, *, has_answers: bool = False) -> None:
        """`has_answers`: an earlier run had some."""
        self._concurrency = concurrency
        self._limit = float(concurrency)
        self.has_answers = has_answers
        """Whether a reply has arrived, which proves that the key and the model are valid."""
        self._pauses = 0
        self._failures = 0
        self.paused_until = 0.0
        """Nothing is sent before this time."""
        self.limited_since: float | None = None
        """Time since which every request has failed; None if the last one succeeded."""
        self.error: AsidesError | None = None
        """The error that concerns every question and ended the run."""

    @property
    def limit(self) -> int:
        """How many requests may be open."""
        return int(self._limit)

    def stop(self) -> None:
        """Send nothing more: requests that wait to be sent raise RunEnded."""
        self._end(RunEnded("the run was stopped"))

    def _end(self, error: AsidesError) -> None:
        if self.error is None:
            self.error = error

    def note_reply(self) -> None:
        """Note that a request got a reply."""
        self.has_answers = True
        self._pauses = self._failures = 0
        self.limited_since = None
        self._limit = min(float(self._concurrency), self._limit + 1.0 / max(self._limit, 1.0))

    @staticmethod
    def is_limit(error: AsidesError) -> bool:
        """Whether an error slows down all requests. After other errors, only the one request is retried."""
        if isinstance(error, Overloaded):
            return error.status in _BUSY or error.retry_after is not None
        return isinstance(error, RateLimited) and not _is_out_of_credit(error)

    def note_limit(self, error: AsidesError, now: float, *, limited: int, max_wait: float) -> bool:
        """Note that the provider asked to wait. Returns whether to send the request again after the pause.

        Requests open at the same time count once. `limited`: how often this request was asked to wait. A longer wait
        than `max_wait` ends the run, and so does a provider that lets nothing through for twice as long.
        """
        if self.limited_since is None:
            self.limited_since = now
        advised: float | None = getattr(error, "retry_after", None)
        if (advised or 0.0) > max_wait or now - self.limited_since > 2 * max_wait:
            self._end(error)
            return False
        if now >= self.paused_until:
            self._limit = max(1.0, self._limit / 2)
            self._pauses += 1
        pause = advised
        if pause is None:
            pause = min(_FIRST_PAUSE * 2.0 ** min(self._pauses - 1, 10), _LONGEST_PAUSE)
        # With some jitter, so that waiting requests do not all return together.
        until = now + max(pause, 0.0) + random.uniform(0, 0.25 * min(pause, 4.0))
        self.paused_until = max(self.paused_until, until)
        return limited <= _MAX_LIMITED

    def note_failure(self, error: AsidesError, *, has_own_model: bool = False) -> bool:
        """Note that a question failed. Returns whether its error concerns every question, and ends the run.

        `has_own_model`: the question names a model that the others do not have.
        """
        is_fatal = not has_own_model and all(map(_is_fatal, (error, *error.earlier)))
        if not is_fatal and not isinstance(error, TransportError) and not _is_server_error(error):
            return False
        self._failures += 1
        most = max(_MAX_FAILURES, 2 * self._concurrency)
        if is_fatal:
            # Some hosts refuse single prompts with 403.
            is_sure = not self.has_answers and getattr(error, "status", None) != 403
            most = 1 if is_sure else _MAX_FATAL
        if self._failures < most:
            return False
        self._end(error)
        return True


def _is_fatal(error: AsidesError) -> bool:
    return isinstance(error, _FATAL_ERRORS) or _is_out_of_credit(error)


def _is_out_of_credit(error: AsidesError) -> bool:
    """Whether waiting does not help: the account has no credit left."""
    if not isinstance(error, RateLimited) or error.retry_after is not None:
        return False
    return error.status == 402 or re.search(_NO_CREDIT, error.code or "") is not None


def _is_server_error(error: AsidesError) -> bool:
    return isinstance(error, ProviderError) and (error.status or 0) >= 500
