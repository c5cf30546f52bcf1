"""The arguments of an official client, completed: our transport, and a key where the caller has none; and what to say
if its package is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from asides.integrations.client_requests import NO_KEY
from asides.integrations.httpx_transport import AsidesTransport, AsyncAsidesTransport
from asides.relay.request_options import FIELD
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    import httpx2

    HttpClient: TypeAlias = httpx2.Client
    AsyncHttpClient: TypeAlias = httpx2.AsyncClient
    Url: TypeAlias = httpx2.URL


class ClientKeys(msgspec.Struct, frozen=True):
    """Where an official client takes its credential from."""

    arguments: tuple[str, ...]
    variables: tuple[str, ...]


def explain_import(package: str, problem: ImportError) -> ImportError:
    """The error for an official package that is not installed, or has an unknown version."""
    if isinstance(problem, ModuleNotFoundError) and problem.name == package:
        words = f"asides.{package} needs the package {package}, which is not installed."
        return ModuleNotFoundError(f"{words} Run pip install 'asides[{package}]'", name=package)
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version(package)
    except PackageNotFoundError:
        found = "?"
    return ImportError(
        f"asides.{package} does not know version {found} of the package {package}: {problem}. Run pip install -U "
        f"'asides[{package}]'",
        name=package,
    )


def fill_arguments(
    arguments: Mapping[str, Any], build_client: Callable[[Any], Any], keys: ClientKeys
) -> dict[str, Any]:
    """The arguments for the official class. Without a key the client gets one that goes nowhere."""
    given = dict(arguments)
    options = given.pop(FIELD, None)
    if (client := given.get("http_client")) is None:
        given["http_client"] = build_client(options)
    else:
        _check_client(client, options)
    has_key = any(given.get(name) is not None for name in keys.arguments)
    if not has_key and not any(os.environ.get(name, "").strip() for name in keys.variables):
        given[keys.arguments[0]] = NO_KEY
    return given


def _check_client(client: Any, options: Any) -> None:
    """Raise unless the client uses our transport: a copy of a client has it from the first one."""
    if not isinstance(getattr(client, "_transport", None), (AsidesTransport, AsyncAsidesTransport)):
        raise ConfigError(
            "http_client= sends requests to a server, but here asides answers them. Leave it out, or use the "
            "official class with http_client=httpx2.Client(transport=AsidesTransport()). Proxies and certificates are "
            "taken from the environment (HTTPS_PROXY, SSL_CERT_FILE)."
        )
    if options is not None:
        raise ConfigError("the transport of http_client= has its own options. Pass asides= to the transport.")
