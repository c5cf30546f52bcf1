"""What one call is: a prompt, where it goes, and how patiently. Values only; `exchange` says what becomes of one."""

from __future__ import annotations

from typing import Protocol

import msgspec

from asides.history.check import OnConflict
from asides.options import Timeout
from asides.providers.credentials import Secret
from asides.providers.provider import Target
from asides.values.messages import Prompt
from asides.values.notices import Notice


class Policy(msgspec.Struct, frozen=True):
    """How a call is carried out: nothing of it is sent."""

    timeout: Timeout = Timeout()
    retries: int = 2
    """Attempts after the first."""
    max_wait: float = 60.0
    """The longest that a server may ask us to wait before the next attempt; a longer demand ends the call."""
    backoff: float = 0.5
    """The first wait of our own choosing; it doubles with each attempt."""
    max_backoff: float = 8.0
    on_conflict: OnConflict = "raise"
    keep_raw: bool = True
    """Keep the documents that a reply was read from (`reply.raw`)."""
    thinking_encrypted: bool = False
    """Show encrypted reasoning in `reply.metadata["thinking_encrypted"]`."""


class CallLike(Protocol):
    """What a shell has to know of anything that it carries out: where it goes, with whose key, and how patiently."""

    @property
    def target(self) -> Target:
        """Where it goes."""
        ...

    @property
    def policy(self) -> Policy:
        """How patiently."""
        ...

    @property
    def key(self) -> Secret | None:
        """Whose key."""
        ...


class Call(msgspec.Struct, frozen=True):
    """Everything that a call needs, settled before anything happens."""

    prompt: Prompt
    target: Target
    policy: Policy = Policy()
    key: Secret | None = None
    notices: tuple[Notice, ...] = ()
    """What was already found worth knowing while the arguments were read."""
    why_endpoint: str = ""
    """Why this dialect was chosen, where there was a choice."""

    def __repr__(self) -> str:
        return f"Call({self.target.provider.name}:{self.target.model}, {self.prompt!r})"
