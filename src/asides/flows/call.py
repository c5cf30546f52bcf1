"""One call as a value: a prompt, its target, and the policy that carries it out. `exchange` runs it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from asides.history.check import OnConflict
from asides.options import ReplyLimits, Timeout
from asides.providers.credentials import Secret
from asides.providers.provider import Target
from asides.values.messages import Prompt
from asides.values.notices import Notice


class Policy(msgspec.Struct, frozen=True):
    """How a call is carried out: timeouts, retries and the like. Nothing of it is sent."""

    timeout: Timeout = Timeout()
    retries: int = 2
    """Attempts after the first."""
    max_wait: float = 60.0
    """The longest wait before the next attempt that a server may ask for. A longer one ends the call."""
    backoff: float = 0.5
    """The first wait where the server asks for none. It doubles with each attempt."""
    max_backoff: float = 8.0
    on_conflict: OnConflict = "raise"
    keep_raw: bool = True
    """Store the JSON documents that a reply was decoded from (`reply.raw`)."""
    thinking_encrypted: bool = False
    """Show encrypted reasoning in `reply.metadata["thinking_encrypted"]`."""
    reply_limits: ReplyLimits = ReplyLimits()


class CallLike(Protocol):
    """The facts that a driver needs for any flow: target, policy and key."""

    @property
    def target(self) -> Target:
        """The destination of the requests."""
        ...

    @property
    def policy(self) -> Policy:
        """Timeouts and retries."""
        ...

    @property
    def key(self) -> Secret | None:
        """The credential of the requests."""
        ...


class Call(msgspec.Struct, frozen=True):
    """Everything that a call needs, decided before anything is sent."""

    prompt: Prompt
    target: Target
    policy: Policy = Policy()
    key: Secret | None = None
    notices: tuple[Notice, ...] = ()
    """Notices from argument parsing."""
    why_endpoint: str = ""
    """Why this dialect was chosen, where there was a choice."""

    def __repr__(self) -> str:
        return f"Call({self.target.provider.name}:{self.target.model}, {self.prompt!r})"
