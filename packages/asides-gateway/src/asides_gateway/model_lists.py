"""Asks providers for their lists of models in the background: `ModelLists.refresh(builder)`.

The first request for a list waits briefly for what is not known yet. Later ones get what is there, and a list that is
old is asked for meanwhile. Without a request for a list, nothing is sent.
"""

from __future__ import annotations

import asyncio
import logging
import time

from asides.flows.build_call import CallBuilder
from asides.flows.list_models import ModelListCall, list_models
from asides.relay.known_models import find_keyed_providers
from asides.relay.listed_models import ListedModels, ListKey, get_list_key
from asides.transports.async_ import run_flow
from asides.transports.protocols import AsyncTransport
from asides.values.errors import AsidesError
from asides.values.model_info import ModelInfo

_log = logging.getLogger("asides.gateway")
FIRST_WAIT = 2.0
"""The seconds that a request waits at most for lists that were never asked for. Claude Code gives up after three."""
_AT_ONCE = 8


class ModelLists:
    """Keeps the lists of one process current."""

    def __init__(self, transport: AsyncTransport, first_wait: float = FIRST_WAIT) -> None:
        self.listed = ListedModels()
        self._transport = transport
        self._first_wait = first_wait
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._tasks: dict[ListKey, asyncio.Task[None]] = {}

    async def refresh(self, builder: CallBuilder) -> None:
        """Ask for the lists that are due, and wait a moment for those that are not known yet."""
        unknown: list[asyncio.Task[None]] = []
        # In a thread: keys may be in files.
        for call in await asyncio.to_thread(self._list_due, builder):
            key = get_list_key(call)
            task = self._tasks.get(key)
            if task is None:
                task = self._tasks[key] = asyncio.create_task(self._ask(call, key))
            if not self.listed.is_known(call):
                unknown.append(task)
        if unknown:
            await asyncio.wait(unknown, timeout=self._first_wait)

    async def close(self) -> None:
        """Cancel what is under way."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _list_due(self, builder: CallBuilder) -> list[ModelListCall]:
        return [*self.listed.list_due(find_keyed_providers(builder), builder, time.monotonic())]

    async def _ask(self, call: ModelListCall, key: ListKey) -> None:
        models: tuple[ModelInfo, ...] | None = None
        name = call.target.provider.name
        try:
            async with self._slots:
                models = await run_flow(call, lambda: list_models(call), self._transport)
        except AsidesError as problem:
            _log.info("%s gave no list of models (%s): lists have those of its row", name, type(problem).__name__)
        except Exception as problem:  # noqa: BLE001 - a list that cannot be read costs no request
            _log.warning("the list of models of %s could not be read: %s", name, type(problem).__name__)
        finally:
            self.listed.keep(call, models, time.monotonic())
            self._tasks.pop(key, None)
