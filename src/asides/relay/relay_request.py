"""What goes into a relay and what comes out: the request of a caller, the head of its response, and the outcome."""

from __future__ import annotations

from typing import Literal

import msgspec

from asides.values.errors import AsidesError
from asides.values.notices import Notice
from asides.values.reply import Reply


class CallerLimits(msgspec.Struct, frozen=True):
    """What the caller of a request may do."""

    models: tuple[str, ...] = ()
    """Patterns of the models that it may ask: of names as a request has them, and of provider:model. (): all."""
    has_rate: bool = False
    """Whether its requests are counted."""
    has_token_rate: bool = False
    """Whether its tokens are counted."""
    has_budget: bool = False
    """Whether its money is counted: then no model is asked whose price is unknown."""


class RelayRequest(msgspec.Struct, frozen=True):
    """The HTTP request of a caller."""

    dialect: str
    """The dialect that the caller speaks; "" if its path, headers and query show that. Where the path shows another
    one, the path counts: many clients speak two."""
    method: str
    path: str
    """Without its query."""
    query: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Names in lower case."""
    body: bytes = b""
    tenant: str = ""
    """Whose state it is. Tenants never see each other's."""
    id: str = ""
    """How the response names the request, unless the provider has a name for it; "": a new id."""
    limits: CallerLimits | None = None
    """None: the caller may do everything."""
    background_id: str = ""
    """The id of the response that this request runs for in the background; "": its caller waits for it."""

    def __repr__(self) -> str:
        return f"RelayRequest({self.method} {self.path}, {self.dialect}, <{len(self.body)} bytes>)"


class ResponseStart(msgspec.Struct, frozen=True):
    """The head of the response to the caller: the first thing that a relay emits. Bytes of the body follow."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""


RelayMode = Literal["forward", "translate", "own"]
"""How a request went, for logs and metrics. forward: nothing changed in either direction. translate: the request or the
reply was rewritten. own: the relay answered by itself."""


class RelayOutcome(msgspec.Struct, frozen=True):
    """How a relayed request ended, for logs and metrics."""

    status: int
    mode: RelayMode
    reason: str = ""
    """Why the request or the reply changed, or why nothing did."""
    model: str = ""
    """The target as provider:model; "" if none was asked."""
    reply: Reply | None = None
    """The reply, or as much of it as arrived."""
    notices: tuple[Notice, ...] = ()
    error: AsidesError | None = None
    attempts: int = 0
    """The requests that were sent to providers."""
    restored: int = 0
    """The earlier turns whose state was put back from the store or from what the caller carried."""
    missed: int = 0
    """The earlier turns whose state was wanted and not found."""
    asked: str = ""
    """The model as the request named it; "" if it named none."""
    passed: bool = False
    """Whether the bytes of the provider were the reply."""
