"""What an HTTP request of another library's client asks for: its endpoint, its home provider, its key, its options.

The home is the server that the client's own base URL names. A model without a provider is asked there, and only there
does the client's key go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from asides.options import Options, Timeout, reject_unknown
from asides.providers.credentials import is_loopback
from asides.providers.find import is_own_address, list_providers, plain_row
from asides.providers.provider import Provider
from asides.relay.state.caller_state import SESSION_HEADERS
from asides.values.errors import ConfigError

NO_KEY = "asides-finds-the-key"
"""The key of a client that was given none. It goes nowhere: keys then come from the environment and the key file."""

_CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_SHARED_HEADERS = frozenset(
    {"accept", "content-type", "user-agent", "anthropic-version", "anthropic-beta", "openai-beta"}
)
_CONNECTION_HEADERS = frozenset(
    """
    host connection content-length transfer-encoding accept-encoding content-encoding keep-alive te trailer upgrade
    expect cookie idempotency-key
    """.split()
)
# Where the path of a client's base URL ends.
_FIRST_STEP = re.compile(r"/(?:chat|responses|messages|models?|api)(?=[/:]|$)")


def find_base_path(path: str) -> str:
    """The path of the client's base URL: the part before the endpoint."""
    found = _FIRST_STEP.search(path)
    return path.rstrip("/") if found is None else path[: found.start()]


# --- the home -----------------------------------------------------------------------------------------------------


class Home(msgspec.Struct, frozen=True):
    """The provider that a client's base URL names."""

    provider: str
    base_url: str | None = None
    """The address, where it is not the provider's usual one."""

    def options(self, key: str | None) -> Options:
        """The options of calls to the home alone."""
        own = Options()
        if key is not None:
            own["api_key"] = key
        if self.base_url is not None:
            own["base_url"] = self.base_url
        return own


def find_home(address: str, dialect: str, rows: Sequence[Provider] = ()) -> Home:
    """The provider at this address that speaks the dialect; an unknown server if there is none."""
    address = address.rstrip("/")
    for row in list_providers(rows):
        if row.base_url and row.with_dialect(dialect) is not None and _is_at(row, address):
            return Home(row.name, None if row.base_url.rstrip("/") == address else address)
    return Home(plain_row(dialect).name, address)


def _is_at(row: Provider, address: str) -> bool:
    # The facts of a row for people's own servers hold at every address, so its address says nothing.
    return not (row.launcher or is_loopback(row.base_url)) and is_own_address(row, address)


def read_key(headers: dict[str, str]) -> str | None:
    """The key that a client sends; None where it has none."""
    found = [value for name in _CREDENTIAL_HEADERS if (value := headers.get(name, ""))]
    for value in found:
        kind, _, bearer = value.partition(" ")
        key = bearer.strip() if kind.lower() == "bearer" and bearer else value
        if key != NO_KEY:
            return key
    return None


def select_shared_headers(headers: dict[str, str]) -> dict[str, str]:
    """The headers for the relay: those that belong to a dialect, and those that name a session."""
    return {name: value for name, value in headers.items() if name in _SHARED_HEADERS or name in SESSION_HEADERS}


def select_own_headers(headers: dict[str, str]) -> dict[str, str]:
    """The headers that a program added itself, such as the key of a proxy. They go to the home alone."""
    return {
        name: value
        for name, value in headers.items()
        if not (name in _SHARED_HEADERS or name in _CONNECTION_HEADERS or name in _CREDENTIAL_HEADERS)
        and not name.startswith("x-stainless-")
    }


# --- options ------------------------------------------------------------------------------------------------------


def check_options(options: dict[str, Any]) -> Options:
    """The options, each with a known name. Raises a ConfigError for another."""
    try:
        return reject_unknown(Options(**options))  # type: ignore[typeddict-item]
    except TypeError as problem:
        raise ConfigError(str(problem)) from None


def read_timeout(limits: Any) -> Timeout:
    """The timeouts of a client: how long to connect, and how long to wait for each read."""
    if not isinstance(limits, dict):
        return Timeout()
    connect, read = limits.get("connect"), limits.get("read")
    return Timeout(connect=_read_seconds(connect), first_byte=_read_seconds(read), idle=_read_seconds(read))


def _read_seconds(value: Any) -> float | None:
    if value is None:
        return None
    # Zero means "immediately" there, and no wait of ours is that short.
    return max(float(value), 0.001)
