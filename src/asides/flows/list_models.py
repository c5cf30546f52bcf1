"""List the models that a provider offers today: one request for each page. A flow: drivers carry out its steps."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import Dialect
from asides.dialects.document_decoder import explain_problem
from asides.flows.call import Policy
from asides.flows.fetch_body import fetch_body
from asides.flows.retry import clean_error, decode_error
from asides.flows.steps import Flow, Head
from asides.providers.credentials import Secret
from asides.providers.find import OWN_STAGE, RUNNING_STAGE
from asides.providers.provider import Target
from asides.values.errors import AsidesError, ProtocolError, Unsupported
from asides.values.model_info import ModelInfo, ModelPage

_log = logging.getLogger("asides")

# Far beyond any real list; bounds a server whose list never ends.
_MAX_PAGES = 1000


class ModelListCall(msgspec.Struct, frozen=True):
    """A call that lists the models of a provider. Its target names no model."""

    target: Target
    policy: Policy = Policy()
    key: Secret | None = None


def list_models(call: ModelListCall, *, jitter: Callable[[], float] = random.random) -> Flow[tuple[ModelInfo, ...]]:
    """Run the flow. Returns the models of all pages, without duplicates, in the provider's order."""
    try:
        return (yield from _list_pages(call, jitter))
    except AsidesError as error:
        clean_error(error, call.target, call.key)
        raise


def _list_pages(call: ModelListCall, jitter: Callable[[], float]) -> Flow[tuple[ModelInfo, ...]]:
    target = call.target
    if target.launches and target.provider.launcher not in (OWN_STAGE, RUNNING_STAGE):
        raise Unsupported(f"{target.provider.name} starts a server for each model, and none has a list. Name a model.")
    dialect = find_dialect(target.dialect)
    found: dict[str, ModelInfo] = {}
    after: str | None = None
    seen: set[str] = set()
    for _ in range(_MAX_PAGES):
        page = yield from _fetch_page(call, dialect, after, jitter)
        for model in page.models:
            found.setdefault(model.id, model)
        if page.after is None:
            _log.debug("%s: lists %d models", target.provider.name, len(found))
            return tuple(found.values())
        if page.after in seen:
            break
        after = page.after
        seen.add(after)
    raise ProtocolError(
        f"the list of models of {target.provider.name} does not end: its pages repeat, or are too many.",
        dialect=dialect.name,
    )


def _fetch_page(
    call: ModelListCall, dialect: Dialect, after: str | None, jitter: Callable[[], float]
) -> Flow[ModelPage]:
    target = call.target
    return fetch_body(
        dialect.models_request(target, after),
        dialect,
        target,
        lambda head, body: _read_page(dialect, target, head, body),
        what="list of models",
        policy=call.policy,
        key=call.key,
        jitter=jitter,
    )


class _ErrorBody(msgspec.Struct):
    error: Any = None


def _read_page(dialect: Dialect, target: Target, head: Head, body: bytes) -> ModelPage:
    try:
        return dialect.read_models(body)
    except Exception as caught:  # noqa: BLE001 - the guard
        problem = explain_problem(caught, body)
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if msgspec.json.decode(body, type=_ErrorBody).error is not None:
            raise decode_error(dialect, head, body, target)
    raise ProtocolError(
        f"the response of {target.provider.name} is not a list of models. Check the base URL; this server may "
        "not have a list.",
        dialect=dialect.name,
        payload=problem.payload,
    ) from problem.__cause__
