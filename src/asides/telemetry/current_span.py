"""Make a span the current one while other code runs, and send the trace to servers that may see it."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Token
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from asides.dialects.dialect import HttpRequest
from asides.providers.credentials import is_loopback
from asides.providers.provider import Target
from asides.values.errors import ConfigError

Propagate: TypeAlias = Literal["loopback", "all", "none"] | Sequence[str]
"""Which servers get the `traceparent` of a request: those on this machine, all, none; or, besides those on this
machine, the hosts that these patterns name, such as "*.internal"."""
_WORDS = ("loopback", "all", "none")


class CurrentSpan:
    """Makes a span the current one for a while, in the running thread or task. Leaving it does nothing while another
    span, entered inside it, is still the current one."""

    __slots__ = ("_entered", "_token", "context")

    def __init__(self, context: Context) -> None:
        self.context = context
        """The context with the span. If it is replaced, the new one counts from the next `enter`."""
        self._entered: Context | None = None
        self._token: Token[Context] | None = None

    def enter(self) -> None:
        """Make it current, unless it still is."""
        if self._token is None:
            self._entered = self.context
            self._token = attach(self.context)

    def leave(self) -> None:
        """Restore the context before. In another thread or task, such as garbage collection, this does nothing."""
        if self._token is not None and get_current() is self._entered:
            detach(self._token)
            self._token = self._entered = None


class Propagation:
    """Decides which servers get the trace of a request, and adds its headers."""

    def __init__(self, propagate: Propagate) -> None:
        self._word: str = "loopback"
        self._hosts: tuple[str, ...] = ()
        if not isinstance(propagate, str):
            self._hosts = tuple(_read_host(host) for host in propagate)
        elif propagate in _WORDS:
            self._word = propagate
        else:
            raise ConfigError(f"propagate is {', '.join(_WORDS)}, or a list of hosts, not {propagate!r}.")
        self._propagator = TraceContextTextMapPropagator()

    def reaches(self, target: Target) -> bool:
        """Whether the requests of a target carry the trace."""
        if self._word in ("all", "none"):
            return self._word == "all"
        return bool(target.launches) or _reaches(target.base_url, self._hosts)

    def inject(self, request: HttpRequest, context: Context) -> HttpRequest:
        """The request with the headers of a trace. Baggage is left out: it may hold anything."""
        headers = dict(request.headers)
        self._propagator.inject(headers, context)
        return msgspec.structs.replace(request, headers=headers)


def _read_host(host: object) -> str:
    if not isinstance(host, str) or not host.strip() or "/" in host:
        raise ConfigError(f"propagate names hosts, such as '*.internal', not {host!r}.")
    return host.strip().lower()


@lru_cache(maxsize=256)
def _reaches(url: str, patterns: tuple[str, ...]) -> bool:
    """Whether an address is on this machine, or its host fits one of the patterns."""
    if is_loopback(url):
        return True
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return any(fnmatchcase(host, pattern) for pattern in patterns)
