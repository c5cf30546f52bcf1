"""The last step before the wire: a request gets its key and, where its server is started on demand, a real address.

Not here: the servers. A row names who starts them, and this module looks the name up when a request first needs one.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol, cast

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.flows.call import CallLike
from asides.providers.credentials import Secret
from asides.providers.provider import ON_DEMAND
from asides.transports.protocols import prepared


class RunningServer(NamedTuple):
    """A server that runs: where, and the key that it wants."""

    url: str
    """Without a path: "http://127.0.0.1:41234"."""
    key: Secret


class Launcher(Protocol):
    """What a row's `launcher` names."""

    def __call__(self, model: str, *, wait: bool = True) -> RunningServer | None:
        """The server of this model, started if it does not run. Without `wait`, None when it does not run yet.

        Asked before every request, from any thread; raises a ConfigError when there can be no server.
        """
        ...


def settled(request: HttpRequest, call: CallLike) -> HttpRequest:
    """The request as it goes over the wire. Starts its server where it has to, and waits for it."""
    if not call.target.launches:
        return prepared(request, call.key)
    return _towards(_launcher(call.target.provider.launcher)(call.target.model), request)


def settled_at_once(request: HttpRequest, call: CallLike) -> HttpRequest | None:
    """The same without waiting; None when its server does not run yet."""
    if not call.target.launches:
        return prepared(request, call.key)
    served = _launcher(call.target.provider.launcher)(call.target.model, wait=False)
    return None if served is None else _towards(served, request)


def _towards(served: RunningServer | None, request: HttpRequest) -> HttpRequest:
    if served is None:
        raise TypeError("a launcher that is told to wait gives a server or raises a ConfigError.")
    here = msgspec.structs.replace(request, url=served.url + request.url.removeprefix(ON_DEMAND), direct=True)
    return prepared(here, served.key)


@cache
def _launcher(name: str) -> Launcher:
    module, _, function = name.partition(":")
    return cast("Launcher", getattr(import_module(module), function))
