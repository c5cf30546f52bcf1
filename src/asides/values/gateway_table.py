"""`GatewayTable`: what the settings may say about a gateway, [gateway] in asides.toml. Plain data.

Not here: what a running gateway knows, such as its keys (gateway/gateway_settings).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from asides.values.mask_url import MaskedStruct

LogFormat: TypeAlias = Literal["text", "json", "off"]
_LAST_PORT = 65535
_MOST_WORKERS = 256


class GatewayTable(MaskedStruct, frozen=True, kw_only=True):
    """The settings of `asides serve`. Its keys are never in here: only where they are."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=_LAST_PORT)] = 4242
    """0: a free one."""
    workers: Annotated[int, msgspec.Meta(ge=1, le=_MOST_WORKERS)] = 1
    """The processes that answer."""
    key_file: str | None = None
    """A file with the keys that clients have to send one of, one in each line."""
    key_env: str | None = None
    """The name of a variable with them. ASIDES_GATEWAY_KEY always counts."""
    folder: str | None = None
    """Where reasoning state and conversations are kept; None: the state folder of the command line."""
    state: Literal["off", "carry-only", "memory", "store"] = "store"
    """Where reasoning state is kept."""
    redis: str | None = None
    """The Redis or Valkey server that instances share, as redis://host: the windows of limits, and revoked keys. None:
    each process counts for itself."""
    key_grace_seconds: Annotated[float, msgspec.Meta(ge=0)] = 3600.0
    """How long keys of the database go on while it does not answer."""
    summary_days: Annotated[int, msgspec.Meta(ge=0, le=36_500)] = 30
    """How long the figures of each request are kept in the database, without content; 0: not at all."""
    page: bool = True
    """Serve the page."""
    thinking_field: Literal["reasoning_content", "reasoning", "thinking", "reasoning_details"] = "reasoning_content"
    """The field for thinking in chat completions."""
    allowed_hosts: tuple[str, ...] = ()
    """More names under which clients may reach it."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages of others that may use it."""
    open_metrics: bool = False
    """Answer /metrics without a key too."""
    max_body_mb: Annotated[float, msgspec.Meta(gt=0)] = 64
    """The longest request body, in megabytes."""
    max_requests: Annotated[int, msgspec.Meta(ge=1)] = 2000
    """The requests under way at once in one process."""
    ping_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """After so much silence a stream gets a ping."""
    drain_seconds: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """How long replies under way may take to end after SIGTERM."""
    telemetry: bool = True
    """Send spans and metrics, where a variable of OpenTelemetry names a collector."""
    telemetry_content: bool = False
    """Write prompts, answers and calls into spans; thinking as far as `visibility.trace` allows."""
    trace_hosts: tuple[str, ...] = ()
    """Providers that are told of traces, as patterns of hosts. Those on this machine always are."""
    log: LogFormat = "text"
    """The format of the log."""
