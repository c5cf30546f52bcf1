"""The protocol of a tool that can be run, and the values of a run: a job and its outcome."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from asides.values.parts import ToolCall
from asides.values.tools import Tool

Approval: TypeAlias = Literal["allow", "deny", "ask"]
"""Whether a call may be run: always, never, or if the agent's `approve=` handler agrees."""


class Startable(Protocol):
    """An object that a driver can run for a call."""

    @property
    def blocking(self) -> bool:
        """Whether `run` blocks, so that it must not run on an event loop. False: it returns an awaitable."""
        ...

    def run(self, call: ToolCall) -> Any | Awaitable[Any]:
        """Return the value, or an awaitable of it. Raises BadArguments when the arguments do not fit."""
        ...


@runtime_checkable
class Runnable(Startable, Protocol):
    """A tool that an agent can run."""

    @property
    def tool(self) -> Tool:
        """The tool as the model sees it."""
        ...

    @property
    def approval(self) -> Approval | None:
        """Whether its calls may be run; None leaves it to the agent."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds that a call may take; None leaves it to the agent."""
        ...

    @property
    def fatal(self) -> tuple[type[BaseException], ...]:
        """Exceptions that end the run with ToolFailed; the model gets all others as error results."""
        ...


class BadArguments(Exception):
    """The arguments of a call do not fit its tool; the message is for the model."""


class Job(msgspec.Struct, frozen=True):
    """A call to run."""

    call: ToolCall
    runnable: Startable
    timeout: float | None = None


class Returned(msgspec.Struct, frozen=True):
    """A job returned a value."""

    value: Any
    seconds: float = 0.0


class Raised(msgspec.Struct, frozen=True):
    """A job raised an exception."""

    error: BaseException
    seconds: float = 0.0


class TimedOut(msgspec.Struct, frozen=True):
    """A job took longer than its timeout."""

    seconds: float = 0.0


JobOutcome: TypeAlias = Returned | Raised | TimedOut
