"""What an agent can run: the Protocol, a job for it, and what came of one. Values only."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from asides.values.messages import ToolCall
from asides.values.tools import Tool

Approval: TypeAlias = Literal["allow", "deny", "ask"]
"""Whether a call may be run: always, never, or when the agent's `approve=` handler says so."""


class Startable(Protocol):
    """What a shell can carry out for a call."""

    @property
    def blocking(self) -> bool:
        """Whether `run` does the work itself, and so has to stay off an event loop; False: it gives an awaitable."""
        ...

    def run(self, call: ToolCall) -> Any | Awaitable[Any]:
        """The value, or what gives it when awaited. Raises BadArguments when the arguments do not fit."""
        ...


@runtime_checkable
class Runnable(Startable, Protocol):
    """A tool with its function behind it."""

    @property
    def tool(self) -> Tool:
        """As the model sees it."""
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
        """Exceptions that end the run with ToolFailed; all others are told to the model."""
        ...


class BadArguments(Exception):
    """The arguments of a call do not fit its tool; the message is for the model."""


class Job(msgspec.Struct, frozen=True):
    """One call that is to be run."""

    call: ToolCall
    runnable: Startable
    timeout: float | None = None


class Returned(msgspec.Struct, frozen=True):
    """A job gave a value."""

    value: Any
    seconds: float = 0.0


class Raised(msgspec.Struct, frozen=True):
    """A job raised."""

    error: BaseException
    seconds: float = 0.0


class TimedOut(msgspec.Struct, frozen=True):
    """A job took longer than it may."""

    seconds: float = 0.0


JobOutcome: TypeAlias = Returned | Raised | TimedOut
