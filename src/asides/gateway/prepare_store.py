"""The tables of a store that instances share: `prepare_store(url)` creates them when a gateway starts.

A server that is down then does not stop the start: the tables come as soon as it answers. Not here: the steps
(database/migrate), and the file of a gateway without such a store (gateway_database).
"""

from __future__ import annotations

import asyncio
import logging
import threading

from asides.database import StoreError, StoreUnavailable

_log = logging.getLogger("asides.gateway")

_START_SECONDS = 5.0
"""How long a gateway waits at its start for the tables. Then it answers without them, and they come later."""
_SECONDS_BETWEEN_ATTEMPTS = 0.5


async def prepare_store(url: str) -> asyncio.Task[None] | None:
    """Create the tables that PostgreSQL lacks. Returns the task that goes on with it if the server does not answer.

    Raises StoreError if it answers, and they cannot be created.
    """
    first = asyncio.ensure_future(_migrate(url))
    done, _ = await asyncio.wait({first}, timeout=_START_SECONDS)
    problem = first.exception() if done else None
    if done and problem is None:
        return None
    if problem is not None and not isinstance(problem, StoreUnavailable):
        raise problem
    reason = problem or "its tables are not ready yet."
    _log.warning("the gateway begins without its store, and uses it as soon as it can: %s", reason)
    return asyncio.create_task(_go_on(first, url))


async def _go_on(attempt: asyncio.Future[None], url: str) -> None:
    while True:
        try:
            await attempt
        except StoreUnavailable:
            await asyncio.sleep(_SECONDS_BETWEEN_ATTEMPTS)
            attempt = asyncio.ensure_future(_migrate(url))
        except StoreError as problem:
            _log.error("%s", problem)
            return
        else:
            _log.info("the tables of the store are ready")
            return


async def _migrate(url: str) -> None:
    """Migrate in a thread that nobody waits for at the end of the process: a server may take its time to be silent."""
    from asides.database.migrate import migrate

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end(problem: Exception | None) -> None:
        if ended.done():
            return
        if problem is None:
            ended.set_result(None)
        else:
            ended.set_exception(problem)

    def work() -> None:
        found: Exception | None = None
        try:
            migrate(url)
        except Exception as problem:  # noqa: BLE001 - raised where it is awaited
            found = problem
        if not loop.is_closed():
            loop.call_soon_threadsafe(end, found)

    threading.Thread(target=work, name="asides-migrate", daemon=True).start()
    await ended
