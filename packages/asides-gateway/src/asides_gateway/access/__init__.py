"""Keys of a gateway and their limits: which models a key may ask, how often, and for how much. The shared values."""

from __future__ import annotations

from decimal import Decimal
from typing import Protocol

import msgspec


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of a key. None, or (): no limit of this kind."""

    rpm: int | None = None
    """Requests in a minute."""
    tpm: int | None = None
    """Tokens in a minute, sent and received."""
    budget_day: Decimal | None = None
    """US dollars in a day of UTC."""
    budget_month: Decimal | None = None
    """US dollars in a month of UTC."""
    models: tuple[str, ...] = ()
    """Patterns of the models it may ask: of names as a request has them, and of provider:model."""

    @property
    def has_rate(self) -> bool:
        """Whether its requests or its tokens are counted by the minute."""
        return self.rpm is not None or self.tpm is not None

    @property
    def has_budget(self) -> bool:
        """Whether its money is counted."""
        return self.budget_day is not None or self.budget_month is not None


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key as it is kept: without its secret. Times are seconds since 1970."""

    id: str
    """The part of the key that is not secret."""
    digest: bytes
    """The SHA-256 of the whole key."""
    name: str
    tenant: str = ""
    """The tenant whose state it shares; "": a tenant of its own, whose state no other key sees."""
    limits: KeyLimits = KeyLimits()
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None
    """When a request last used it, as far as that is recorded."""

    def is_valid(self, now: float) -> bool:
        """Whether it may be used at this time."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def __repr__(self) -> str:
        return f"KeyRecord({self.id}, {self.name!r})"


class CountedRequest(msgspec.Struct, frozen=True):
    """A request that fitted into the windows of its key and was counted."""

    requests_left: int | None = None
    """The requests that still fit, after this one; None: they are not limited."""
    tokens_left: int | None = None
    """The tokens that still fit, after those of this request; None: they are not limited."""
    tokens: int = 0
    """The tokens that it was counted with: at most the limit."""
    at: int = 0
    """When it was counted by this process, in milliseconds of its own clock."""
    shared_at: int | None = None
    """When it was counted in Redis, in milliseconds of that clock; None if it was not."""


class RateWindows(Protocol):
    """Counts the requests and tokens of keys over the last minute, for one event loop. It never raises: while Redis is
    down, each process counts for itself, and no request fails.
    """

    async def take(self, key_id: str, limits: KeyLimits, tokens: int) -> CountedRequest | float:
        """Count a request, with the tokens that it may use, if it fits. If not, count nothing, and return the seconds
        until it may fit. `tokens` above `limits.tpm` fit only into an empty window.
        """
        ...

    async def correct(self, key_id: str, counted: CountedRequest, used: int) -> None:
        """Replace the tokens that a request was counted with by those that it used."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
