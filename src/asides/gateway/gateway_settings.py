"""What a gateway needs to know before it starts: addresses, keys, limits, and where it keeps things.

Not here: routes, aliases and rows, which are settings of every relay (settings), and the arguments (cli/serve).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from asides.relay.relay_config import ThinkingField
from asides.relay.state.turn_state import StateMode

DEFAULT_PORT = 4242
MEGABYTE = 1024 * 1024


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a gateway."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    keys: tuple[str, ...] = ()
    """The keys of which a client has to send one; (): it needs none, which only loopback allows."""
    allowed_hosts: tuple[str, ...] = ()
    """More names under which clients may reach it, such as "gateway.example.org": its address and loopback are known.
    Where keys are needed, any name will do unless some are set here."""
    allowed_origins: tuple[str, ...] = ()
    """The web pages that may use it, as "https://chat.example.org"; "*": every page. Its own page always may."""
    folder: Path | None = None
    """Where the vault and the conversations of the page are kept; None: in memory, as long as the process lives."""
    state_mode: StateMode = "store"
    """Where reasoning state is kept. Without a folder, "store" is "memory"."""
    thinking_field: ThinkingField = "reasoning_content"
    page: bool = True
    """Whether the page is served, with its API."""
    workers: int = 1
    ping_seconds: float = 10.0
    """After so much silence a stream gets a sign of life."""
    drain_seconds: float = 30.0
    """How long replies under way may take to end after SIGTERM."""
    head_seconds: float = 30.0
    """How long the head of a request may take to arrive."""
    body_seconds: float = 600.0
    """How long the body of a request may take to arrive."""
    stall_seconds: float = 300.0
    """A client that takes nothing of its reply for so long is left."""
    max_body: int = 64 * MEGABYTE
    max_requests: int = 2000
    """The requests under way at once. One more gets 503."""

    def __repr__(self) -> str:
        return f"GatewaySettings({self.host}:{self.port}, {len(self.keys)} keys)"
