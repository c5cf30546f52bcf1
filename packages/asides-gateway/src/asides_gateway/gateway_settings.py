"""What a gateway needs to know before it starts: addresses, keys, limits, and where it keeps things.

`build_settings` makes it of [gateway] and the keys; `check_settings` refuses what would not be safe.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import msgspec

from asides.database import StoreError, StoreUnavailable
from asides.gateway_keys import HOW_TO_MAKE, VARIABLE, check_keys
from asides.relay.relay_config import ThinkingField
from asides.relay.state.turn_state import StateMode
from asides.settings import GatewayTable, LogFormat
from asides.values.errors import ConfigError
from asides_gateway.access.key_cache import GRACE_SECONDS
from asides_gateway.access.key_store import has_keys
from asides_gateway.gateway_database import GATEWAY_FILE, open_database

DEFAULT_PORT = 4242
MEGABYTE = 1024 * 1024


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a gateway."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    keys: tuple[str, ...] = ()
    """Accepted client keys; (): no key is needed, which is allowed only on loopback."""
    allowed_hosts: tuple[str, ...] = ()
    """More names under which clients may reach it, such as "gateway.example.org": its address and loopback are known.
    Where keys are needed, any name will do unless some are set here."""
    allowed_origins: tuple[str, ...] = ()
    """The web pages that may use it, as "https://chat.example.org"; "*": every page. Its own page always may."""
    open_metrics: bool = False
    """Whether /metrics needs no key where other paths need one."""
    folder: Path | None = None
    """Where the vault and the conversations of the page are kept; None: in memory, as long as the process lives."""
    store: str | None = None
    """The URL of the PostgreSQL database that instances share; None: files in the folder."""
    redis: str | None = None
    """The URL of the Redis server that instances share; None: each process counts for itself."""
    summary_days: int = 30
    """How long the figures of each request are kept in the database, without content; 0: not at all."""
    state_mode: StateMode = "store"
    """Where reasoning state is kept. Without a folder, "store" is "memory"."""
    thinking_field: ThinkingField = "reasoning_content"
    shown_models: tuple[str, ...] = ()
    """Patterns of the models that lists show, as provider:model; (): all."""
    page: bool = True
    """Whether the page is served, with its API."""
    workers: int = 1
    ping_seconds: float = 10.0
    """After so much silence a stream gets a ping."""
    drain_seconds: float = 30.0
    """How long replies under way may take to end after SIGTERM."""
    head_seconds: float = 30.0
    """How long the head of a request may take to arrive."""
    body_seconds: float = 600.0
    """How long the body of a request may take to arrive."""
    stall_seconds: float = 300.0
    """Timeout for a client that does not read its reply."""
    key_grace_seconds: float = GRACE_SECONDS
    """How long keys of the database go on while it does not answer."""
    max_body: int = 64 * MEGABYTE
    max_requests: int = 2000
    """Upper bound of concurrent requests. Further ones get 503."""
    telemetry: bool = True
    """Whether spans and metrics are sent, where a variable of OpenTelemetry names a collector."""
    telemetry_content: bool = False
    """Whether prompts, answers and calls are in spans."""
    trace_hosts: tuple[str, ...] = ()
    """Patterns of the hosts that get a `traceparent`, besides those on this machine."""
    log: LogFormat = "text"

    def __repr__(self) -> str:
        return f"GatewaySettings({self.host}:{self.port}, {len(self.keys)} keys)"


# What a running gateway cannot change, and the names of [gateway] that differ.
_FIXED = (
    *("host", "port", "workers", "folder", "store", "redis", "state_mode", "key_grace_seconds"),
    *("page", "max_body", "log"),
    *("telemetry", "telemetry_content", "trace_hosts"),
)
_NAMES = {"state_mode": "state", "max_body": "max_body_mb"}


def build_settings(
    table: GatewayTable, keys: tuple[str, ...], folder: Path | None, store: str | None = None
) -> GatewaySettings:
    """The settings of a gateway, of [gateway] and of what it does not hold."""
    return GatewaySettings(
        host=table.host,
        port=table.port,
        keys=keys,
        allowed_hosts=table.allowed_hosts,
        allowed_origins=table.allowed_origins,
        open_metrics=table.open_metrics,
        folder=folder,
        store=store,
        redis=table.redis,
        state_mode=table.state,
        thinking_field=table.thinking_field,
        shown_models=table.shown_models,
        page=table.page,
        workers=table.workers,
        ping_seconds=table.ping_seconds,
        drain_seconds=table.drain_seconds,
        max_body=int(table.max_body_mb * MEGABYTE),
        max_requests=table.max_requests,
        key_grace_seconds=table.key_grace_seconds,
        summary_days=table.summary_days,
        telemetry=table.telemetry,
        telemetry_content=table.telemetry_content,
        trace_hosts=table.trace_hosts,
        log=table.log,
    )


def check_settings(settings: GatewaySettings) -> None:
    """Raise a ConfigError for addresses that cannot be, for weak keys, and for other machines without a key."""
    host = settings.host
    if not host.strip() or "/" in host or any(mark.isspace() for mark in host) or host.count(":") == 1:
        raise ConfigError(
            f"{host!r} is not an address to listen on. Write a name or an IP address alone, such as 127.0.0.1; the "
            "port has an option of its own."
        )
    check_keys(settings.keys)
    check_address(settings)
    if settings.state_mode == "memory" and settings.workers > 1:
        raise ConfigError(
            "reasoning state in memory is known to one process, and several answer: the next turn would miss it. "
            "Use the state store or carry-only, or one worker."
        )
    if settings.redis is not None:
        from asides_gateway.access.redis_link import check_redis_url

        check_redis_url(settings.redis)


def check_address(settings: GatewaySettings) -> None:
    """Raise a ConfigError for a gateway that other machines reach, if it has no key that a client could send."""
    if not any(settings.keys) and not is_loopback(settings.host) and not may_have_records(settings):
        raise ConfigError(
            f"{settings.host} can be reached from other machines, and anyone who reaches it would use your accounts. "
            f"It needs a key. Run `asides gateway key create --name NAME` where the gateway keeps its data "
            f"(--folder, or the store of the settings). Or use a key of your own: {HOW_TO_MAKE[:1].lower()}"
            f"{HOW_TO_MAKE[1:]}, and set it as {VARIABLE}, or name its file with --key-file. Give the key to your "
            "clients as their API key. Or leave --host out, for this machine alone."
        )


def may_have_records(settings: GatewaySettings) -> bool:
    """Whether the database of the gateway has keys, or does not answer now."""
    if settings.store is None and (settings.folder is None or not (settings.folder / GATEWAY_FILE).exists()):
        return False
    database = open_database(settings)
    try:
        return database.run(has_keys, writes=False)
    except StoreUnavailable:
        return True
    except StoreError:
        return False  # There are no tables yet.
    finally:
        database.close()


def is_loopback(host: str) -> bool:
    """Whether a host can only be this machine."""
    name = host.lower().strip("[]").rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        # What follows a % in an address is free text.
        return "%" not in name and ip_address(name).is_loopback
    except ValueError:
        return False


def merge_changes(running: GatewaySettings, loaded: GatewaySettings) -> tuple[GatewaySettings, tuple[str, ...]]:
    """What a running gateway uses of newly loaded settings, and the names in [gateway] of what needs a new start."""
    kept = {name: getattr(running, name) for name in _FIXED}
    changed = tuple(_NAMES.get(name, name) for name, value in kept.items() if getattr(loaded, name) != value)
    return msgspec.structs.replace(loaded, **kept), changed
