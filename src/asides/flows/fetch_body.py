"""Fetch the body of one response, with as many attempts as the policy allows: for requests that ask for no reply."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from asides.dialects.dialect import Dialect, HttpRequest
from asides.flows.call import Policy
from asides.flows.retry import NO_HEAD, fetch_key, receive_error, wait_before_next
from asides.flows.steps import Flow, Head, Open, Read, Sleep
from asides.providers.credentials import KeySource, Secret
from asides.providers.provider import Target
from asides.values.errors import ProtocolError, ProviderError, TransportError

_log = logging.getLogger("asides")

_MAX_BYTES = 64 * 1024 * 1024
_T = TypeVar("_T")


def fetch_body(
    request: HttpRequest,
    dialect: Dialect,
    target: Target,
    read: Callable[[Head, bytes], _T],
    *,
    what: str,
    policy: Policy,
    key: Secret | None,
    jitter: Callable[[], float],
) -> Flow[_T]:
    """Send a request and read the body of its response. `what` names it in errors. An error of `read` counts as one of
    the server.
    """
    name, attempt = target.provider.name, 0
    while True:
        attempt += 1
        head = NO_HEAD
        try:
            if isinstance(key, KeySource):
                yield from fetch_key(key)
            _log.debug("%s: attempt %d, %s, %d bytes", name, attempt, what, len(request.body))
            head = yield Open(request)
            _log.debug("%s: status %d", name, head.status)
            if not 200 <= head.status < 300:
                raise (yield from receive_error(dialect, head, target))
            return read(head, (yield from _receive(what, name)))
        except (TransportError, ProviderError) as error:
            seconds = wait_before_next(error, head, attempt, policy, jitter(), key)
        _log.debug("%s: trying again in %.2f s", name, seconds)
        yield Sleep(seconds)


def _receive(what: str, name: str) -> Flow[bytes]:
    pieces: list[bytes] = []
    size = 0
    while data := (yield Read()):
        pieces.append(data)
        size += len(data)
        if size > _MAX_BYTES:
            raise ProtocolError(f"the {what} of {name} is too large.")
    return b"".join(pieces)
