"""What an HTTP request of another library's client asks for: its endpoint, its home provider, its key, its options.

The home is the server that the client's own base URL names. A model without a provider is asked there, and only there
does the client's key go. Not here: how the request arrived (httpx_transport), and answering it (relay).
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
from asides.values.errors import ConfigError

NO_KEY = "asides-finds-the-key"
"""The key of a client that was given none. It goes nowhere: keys then come from the environment and the key file."""

OWN_FIELD = "asides"
"""The field of a request's body that holds options of asides."""

_CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_MODELS = ""  # Every dialect has a list of models at this path.

# The ends of the paths that the relay answers: the dialect of each, and what stands before it in the dialect's own API.
_ENDPOINTS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), dialect, prefix)
    for pattern, dialect, prefix in (
        (r"/chat/completions$", "openai_chat", "/v1"),
        (r"/responses(?:/[^/]+(?:/input_items)?)?$", "openai_responses", "/v1"),
        (r"/messages(?:/count_tokens)?$", "anthropic", "/v1"),
        (r"/models/[^/]+:(?:generateContent|streamGenerateContent|countTokens)$", "gemini", "/v1beta"),
        (r"/api/(?:chat|generate|tags|show|ps|version)$", "ollama", ""),
        (r"/model/[^/]+/(?:converse|converse-stream|count-tokens)$", "bedrock", ""),
        (r"(?<=/v2)/chat$", "cohere", "/v2"),
        (r"/models(?:/[^:]+)?$", _MODELS, "/v1"),
    )
)


class Endpoint(msgspec.Struct, frozen=True):
    """Which endpoint of which dialect a path names."""

    dialect: str
    path: str
    """As the dialect's own API has it."""
    base_path: str
    """What stands before it: the path of the client's base URL."""


def find_endpoint(path: str, headers: dict[str, str]) -> Endpoint | None:
    """The endpoint at this path; None where the relay has none."""
    path = path.rstrip("/")
    for pattern, dialect, prefix in _ENDPOINTS:
        if (match := pattern.search(path)) is not None:
            base, end = path[: match.start()], path[match.start() :]
            if dialect == _MODELS:
                dialect = name_list_dialect(base, headers)
                prefix = "/v1beta" if dialect == "gemini" else prefix
            return Endpoint(dialect, prefix + end, base)
    return None


def name_list_dialect(base: str, headers: dict[str, str]) -> str:
    """The dialect of a client whose path does not show it."""
    if "anthropic-version" in headers:
        return "anthropic"
    if "x-goog-api-key" in headers or base.endswith("/v1beta"):
        return "gemini"
    return "openai_chat"


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
    """The provider at this address that speaks the dialect; a server of which nothing is known where there is none."""
    address = address.rstrip("/")
    for row in list_providers(rows):
        if row.base_url and row.with_dialect(dialect) is not None and _is_at(row, address):
            return Home(row.name, None if row.base_url.rstrip("/") == address else address)
    return Home(plain_row(dialect).name, address)


def _is_at(row: Provider, address: str) -> bool:
    # The facts of a row for people's own servers hold at every address, so its address says nothing.
    return not (row.launcher or is_loopback(row.base_url)) and is_own_address(row, address)


def take_key(headers: dict[str, str]) -> str | None:
    """Remove the credentials from the headers of a request, and return the key; None where the client has none."""
    found = [value for name in _CREDENTIAL_HEADERS if (value := headers.pop(name, ""))]
    for value in found:
        kind, _, bearer = value.partition(" ")
        key = bearer.strip() if kind.lower() == "bearer" and bearer else value
        if key != NO_KEY:
            return key
    return None


# --- options ------------------------------------------------------------------------------------------------------


def take_options(body: bytes) -> tuple[bytes, Options]:
    """The body without our field, and the options in it. A body without it stays as it is, byte for byte."""
    if b'"asides"' not in body:
        return body, Options()
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body, Options()
    if not isinstance(document, dict) or OWN_FIELD not in document:
        return body, Options()
    options: Any = document.pop(OWN_FIELD)
    if not isinstance(options, dict):
        raise ConfigError(
            f"the field {OWN_FIELD!r} of the request is {type(options).__name__}. To do: give it options by their "
            'names, as in extra_body={"asides": {"thinking": "high"}}.'
        )
    return msgspec.json.encode(document), check_options(options)


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
    # Zero means "at once" there, and no wait of ours is that short.
    return max(float(value), 0.001)
