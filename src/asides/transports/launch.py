"""Providers whose server is started on demand: a request gets the address and the key of the running server.

A row names its launcher, which is imported with the first request.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol, cast

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.providers.credentials import Secret
from asides.providers.provider import LAUNCH_URL, Target
from asides.transports.flow_state import add_credential


class RunningServer(NamedTuple):
    """A server that runs: its address and its key."""

    url: str
    """Without a path: "http://127.0.0.1:41234"."""
    key: Secret


class Launcher(Protocol):
    """The function that a row's `launcher` names."""

    def __call__(self, model: str, *, wait: bool = True) -> RunningServer | None:
        """The server of this model, started if it does not run. Without `wait`, None when it does not run yet.

        Called before every request, from any thread. Raises a ConfigError when the server cannot be started.
        """
        ...


def direct_to_server(request: HttpRequest, target: Target) -> HttpRequest:
    """The request, directed to its server with the server's key. Starts the server and waits for it if needed."""
    server = _import_launcher(target.provider.launcher)(target.model)
    if server is None:
        raise TypeError("a launcher that may wait returns a server or raises a ConfigError.")
    return _direct(request, server)


def direct_to_running_server(request: HttpRequest, target: Target) -> HttpRequest | None:
    """The same without waiting; None when the server does not run yet."""
    server = _import_launcher(target.provider.launcher)(target.model, wait=False)
    return None if server is None else _direct(request, server)


def _direct(request: HttpRequest, server: RunningServer) -> HttpRequest:
    url = server.url + request.url.removeprefix(LAUNCH_URL)
    return add_credential(msgspec.structs.replace(request, url=url, direct=True), server.key)


@cache
def _import_launcher(name: str) -> Launcher:
    module, _, function = name.partition(":")
    return cast("Launcher", getattr(import_module(module), function))
