"""Whether a gateway lives, and whether it wants requests: /healthz and /readyz.

Neither asks a provider anything. An instance whose shared store is down is ready all the same, and names what
it has to do without.
"""

from __future__ import annotations

import asyncio
import json
import logging

from asides.database import StoreUnavailable
from asides_gateway import web
from asides_gateway.service import Service

_log = logging.getLogger("asides.gateway")
_STORE_SECONDS = 2.0
_HEADERS = {"cache-control": "no-store", "content-type": "application/json; charset=utf-8"}

STORE = "store"
"""The word for a store that instances share, among what does not work now."""
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})


def add_health(app: web.Application, service: Service) -> None:
    """Answer /healthz and /readyz, to GET and HEAD."""
    draining = app.draining

    async def answer_health(_: web.Request) -> web.Response:
        return _answer({"status": "alive"})

    async def answer_readiness(_: web.Request) -> web.Response:
        problem = "the gateway is ending" if draining.is_set() else await find_store_problem(service)
        if problem is not None and (draining.is_set() or not service.database.is_shared):
            return _answer({"status": "not ready", "reason": problem}, 503)
        # A shared store must not fail readiness: all instances would leave the load balancer together.
        has_failed = problem is not None or service.has_store_failed
        degraded = [*([STORE] if has_failed else []), *service.list_degraded()]
        answer = {"status": "ready", "degraded": degraded} if degraded else {"status": "ready"}
        return _answer(answer)

    app.add_get("/healthz", answer_health)
    app.add_get("/readyz", answer_readiness)


def _answer(value: object, status: int = 200) -> web.Response:
    return web.Response(text=json.dumps(value), status=status, headers=_HEADERS)


async def find_store_problem(service: Service) -> str | None:
    """Why reasoning state cannot be kept now; None if it can, or if none is kept."""
    if service.database.problem is not None:
        return f"the store {service.database.problem}"
    store = service.vault.store
    if store is None:
        return None
    try:
        async with asyncio.timeout(_STORE_SECONDS):
            # No record has this key.
            await store.read_async("", ("",))
    except TimeoutError:
        return f"the store of reasoning state did not answer within {_STORE_SECONDS:g} s"
    except StoreUnavailable:
        return "the store of reasoning state does not answer"
    except Exception as problem:  # noqa: BLE001 - whatever a store raises, it is not ready
        _log.warning("the store is not ready: %s", type(problem).__name__)
        return "the store of reasoning state failed"
    return None
