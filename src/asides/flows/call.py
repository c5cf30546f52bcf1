"""What one call is: a prompt, where it goes, and how patiently. Values only; `exchange` says what becomes of one."""

from __future__ import annotations

from typing import Protocol

import msgspec

from asides.messages import Prompt
from asides.notices import Notice
from asides.plan import OnConflict
from asides.providers.credentials import Secret
from asides.providers.provider import Target


class Timeout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long to wait, in seconds; None waits for ever. A keep-alive of the server counts as a sign of life."""

    connect: float | None = 10.0
    """For a connection, name lookup and TLS included."""
    first_byte: float | None = 600.0
    """For the first bytes of the answer. A model that thinks without streaming it is silent for all that time."""
    idle: float | None = 300.0
    """Between two reads, once the answer has begun."""
    total: float | None = None
    """For the whole call, repeated attempts and the waits between them included."""


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


class Addressed(Protocol):
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
