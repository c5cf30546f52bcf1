"""Which models a provider offers today: a request for each page, the list of all. A flow: it asks, the shells do.

Not here: what the rows know of a model, and what the two make of each other (the caller's).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import Dialect
from asides.flows.attempts import NO_HEAD, read_refusal, wait_before_next
from asides.flows.call import Policy
from asides.flows.response_reader import ERROR_BODY_LIMIT
from asides.flows.steps import Flow, Head, Open, Read, Sleep
from asides.providers.credentials import Secret
from asides.providers.provider import Target
from asides.values.errors import ProtocolError, ProviderError, TransportError, Unsupported
from asides.values.model_info import ModelInfo, ModelPage

_log = logging.getLogger("asides")

# Far beyond any list there is: a server that never comes to an end is not followed for ever.
_MOST_PAGES = 1000
_MOST_BYTES = 64 * 1024 * 1024


class ModelListCall(msgspec.Struct, frozen=True):
    """Whose models, and how patiently. The target names no model."""

    target: Target
    policy: Policy = Policy()
    key: Secret | None = None


def listing(call: ModelListCall, *, jitter: Callable[[], float] = random.random) -> Flow[tuple[ModelInfo, ...]]:
    """The flow: every model of every page, each once, in the provider's order."""
    target = call.target
    if target.launches:
        raise Unsupported(
            f"{target.provider.name} starts a server for each model that is asked, and none has a list. To do: name a "
            "model."
        )
    dialect = find_dialect(target.dialect)
    found: dict[str, ModelInfo] = {}
    after: str | None = None
    asked: set[str] = set()
    for _ in range(_MOST_PAGES):
        page = yield from _page(call, dialect, after, jitter)
        for model in page.models:
            found.setdefault(model.id, model)
        if page.after is None:
            _log.debug("%s: lists %d models", target.provider.name, len(found))
            return tuple(found.values())
        if page.after in asked:
            break
        after = page.after
        asked.add(after)
    raise ProtocolError(
        f"the list of models of {target.provider.name} does not come to an end: its pages repeat, or are too many.",
        dialect=dialect.name,
    )


def _page(call: ModelListCall, dialect: Dialect, after: str | None, jitter: Callable[[], float]) -> Flow[ModelPage]:
    """One page, with as many attempts as the policy allows."""
    target = call.target
    request = dialect.models_request(target, after)
    attempt = 0
    while True:
        attempt += 1
        head = NO_HEAD
        try:
            _log.debug("%s: attempt %d, list of models", target.provider.name, attempt)
            head = yield Open(request)
            _log.debug("%s: status %d", target.provider.name, head.status)
            if not 200 <= head.status < 300:
                raise (yield from read_refusal(dialect, head, target))
            return _read(dialect, target, head, (yield from _body(target)))
        except (TransportError, ProviderError) as error:
            seconds = wait_before_next(error, head, attempt, call.policy, jitter())
        _log.debug("%s: trying again in %.2f s", target.provider.name, seconds)
        yield Sleep(seconds)


def _body(target: Target) -> Flow[bytes]:
    pieces: list[bytes] = []
    size = 0
    while data := (yield Read()):
        pieces.append(data)
        size += len(data)
        if size > _MOST_BYTES:
            raise ProtocolError(f"the list of models of {target.provider.name} is longer than any list can be.")
    return b"".join(pieces)


class _Told(msgspec.Struct):
    error: Any = None


def _read(dialect: Dialect, target: Target, head: Head, body: bytes) -> ModelPage:
    try:
        return dialect.read_models(body)
    except ProtocolError as problem:
        payload = problem.payload
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        if msgspec.json.decode(body, type=_Told).error is not None:
            raise dialect.error(head.status, head.headers, body[:ERROR_BODY_LIMIT], target)
    raise ProtocolError(
        f"what {target.provider.name} answered is no list of models. To do: check the base URL; this server may have "
        "none.",
        dialect=dialect.name,
        payload=payload,
    )
