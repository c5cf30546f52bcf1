"""`RequestRecord`: what is known of one request, from its arrival to its end.

The line of the log, the row of the database, the span, the metrics and the entry of the inspector are written from it.
`RequestWatch` fills it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from asides.history.plan import Decision
from asides.providers.provider import Provider
from asides.relay.relay_request import RelayMode
from asides.relay.state.turn_state import RestoredTurn
from asides.values.notices import Notice
from asides.values.redaction import Redact
from asides.values.reply import Reply
from asides.values.usage import Usage
from asides_gateway.black_out import SentHead
from asides_gateway.captured_body import BodyCapture, CapturedBody

State: TypeAlias = Literal["waiting", "thinking", "answering", "done", "failed", "left"]
End: TypeAlias = Literal["done", "failed", "left", "refused"]
"""done: answered as the provider or the relay answered. failed: with an error, as a response or inside a stream.
left: its client was gone first. refused: it never reached the relay."""


class RequestDetails(msgspec.Struct, eq=False):
    """What the inspector shows beside the record. Other watchers do not need it."""

    capture: BodyCapture | None = None
    """How bodies are kept; None: they are not."""
    redact: Redact = str
    request_body: CapturedBody | None = None
    sent_bodies: list[CapturedBody] = []
    asked: dict[str, Any] = {}
    """What the request asks for, without its content."""
    stretches: list[tuple[State, float]] = []
    """Since when it was in which state."""
    events: dict[type, int] = {}
    """How many events of each kind came."""
    turns: tuple[RestoredTurn, ...] = ()
    decisions: tuple[Decision, ...] = ()
    sent: list[SentHead] = []


class RecordedError(msgspec.Struct, frozen=True):
    """An error without its traceback, which would keep what the request held."""

    name: str
    """Its class."""
    message: str
    code: str | None = None
    """The code of a refusal of the gateway's own."""


class RequestRecord(msgspec.Struct, eq=False):
    """One request. Seconds count from its arrival. It holds no content, except `reply` while watchers see the end."""

    id: str
    """The id that the client gets too, in the header of its dialect, unless the provider names one."""
    method: str
    path: str
    """As it was sent, without its query."""
    dialect: str
    """The caller's dialect; "page" for a turn of the page."""
    client: str
    """The first word of its User-Agent, such as "claude-cli/2.1.9"; "" without one."""
    tenant: str
    started: float
    """The arrival, by the monotonic clock."""
    at: float
    """The arrival, in seconds since 1970."""
    address: str = ""
    """The IP address that it came from."""
    key_id: str = ""
    """The id of its key in the database; "" for a key of the settings, or none."""

    # --- what happened to it ------------------------------------------------------------------------------------------

    has_begun: bool = False
    """Whether it went to the relay, or as a turn of the page to its model."""
    received: int = 0
    """The bytes of its body."""
    state: State = "waiting"
    asked: str = ""
    """The model as the request named it."""
    stream: bool | None = None
    """Whether it asked for a stream; None if that is unknown."""
    mode: RelayMode | None = None
    """How its target was asked; None if none was chosen."""
    reason: str = ""
    """Why it was asked so."""
    model: str = ""
    """The target as provider:model; "" if none was chosen."""
    target_model: str = ""
    target_dialect: str = ""
    provider: Provider | None = None
    models: tuple[str, ...] = ()
    """The names of the model that answered, for its price: those of the reply first."""
    attempts: int = 0
    """The requests that were sent to providers."""
    repairs: int = 0
    """Those that were changed after a refusal."""
    restored: int = 0
    """The earlier turns whose state was put back."""
    missed: int = 0
    """The earlier turns whose state was wanted and not found."""
    usage: Usage = Usage()
    first_event: float | None = None
    first_thought: float | None = None
    first_answer: float | None = None
    """The seconds to the first of the answer: its first word, a refusal, or the first call."""

    # --- its end ------------------------------------------------------------------------------------------------------

    ended: End | None = None
    """None while it is under way."""
    status: int = 0
    """The status that the client got; 0 if it was gone before."""
    sent_bytes: int = 0
    """The bytes of the body that were written."""
    seconds: float = 0.0
    first_byte: float | None = None
    """The seconds to the first byte of the body, without pings; None if there was none."""
    notices: tuple[Notice, ...] = ()
    error: RecordedError | None = None
    reply: Reply | None = None
    """The reply, or as much of it as arrived; only while watchers see the end."""
    details: RequestDetails | None = None
    """None if no inspector shows it."""

    @property
    def priced_by(self) -> str | None:
        """The name of the provider in the list of prices; None if it has none there."""
        return None if self.provider is None else self.provider.prices

    def __repr__(self) -> str:
        return f"RequestRecord({self.id}, {self.method}, {self.dialect})"
