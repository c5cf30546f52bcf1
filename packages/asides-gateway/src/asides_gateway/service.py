"""What all requests of a gateway share: the relay, its transport, its stores. `Service(settings)`."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from asides.database import Database
from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.relay.endpoints import LIST_PATHS
from asides.relay.observer import RelayObserver
from asides.relay.relay import Relay, RelayExchange
from asides.relay.relay_config import RelayConfig
from asides.relay.relay_request import RelayRequest
from asides.relay.streams.relay_stream import AsyncRelayStream
from asides.relay.vault import VAULT_FILE
from asides.relay.vault.open_vault import OpenedVault, find_keys, open_shared_vault, open_vault
from asides.settings import Settings, load_settings
from asides.transports.http_async import AsyncHttpTransport
from asides.transports.protocols import AsyncTransport
from asides_gateway.access import KeyRecord
from asides_gateway.access.key_cache import KeyCache
from asides_gateway.access.key_meter import Meters
from asides_gateway.access.rate_windows import open_windows
from asides_gateway.access.redis_link import RedisLink
from asides_gateway.access.revocations import listen
from asides_gateway.authenticate import Authenticator
from asides_gateway.background_responses import BackgroundResponses
from asides_gateway.gateway_database import open_database, prepare_database
from asides_gateway.gateway_settings import GatewaySettings, check_address
from asides_gateway.model_lists import ModelLists
from asides_gateway.relay_key_watch import watch_relay_key
from asides_gateway.watcher import RequestWatcher, is_large

if TYPE_CHECKING:
    from asides_gateway.recent_requests import RecentRequests


class Busy(NamedTuple):
    """Why a request is not accepted now."""

    status: int
    message: str


_BUSY = Busy(503, "the gateway has reached its limit of concurrent requests. Try again later.")
_SHARE_USED = Busy(429, "this key has reached its share of concurrent requests. Try again later.")
_FAILURE_SECONDS = 60.0
MOST_WAIT = 1.0
"""The seconds that a request waits at most before it is tried again, if its provider names them. Clients retry by
themselves, and know what is worth the time; a gateway that waits for them looks as if it hung."""
_MAX_PLANNERS = 4


class Service:
    """Shared state of one gateway process."""

    def __init__(
        self,
        settings: GatewaySettings,
        call_settings: Settings | None = None,
        *,
        options: Options | None = None,
        transport: AsyncTransport | None = None,
    ) -> None:
        """`call_settings`: routes, aliases, rows and defaults; None: those of asides.toml and the environment.
        `options`: of every call, such as `base_url`."""
        check_address(settings)
        self.settings = settings
        self.database = open_database(settings)
        """What instances share, or a file of this gateway: keys, budgets, summaries of requests."""
        self.keys = KeyCache(self.database, grace_seconds=settings.key_grace_seconds)
        if settings.store is None:
            self.keys.load()
        self.redis = None if settings.redis is None else RedisLink(settings.redis)
        self.windows = open_windows(self.redis)
        """The requests and tokens of keys over the last minute."""
        self.meters = Meters(self.database, self.windows, folder=settings.folder, on_revoked=self.keys.on_revoked)
        """What requests of keys with limits use."""
        self.authenticator = Authenticator(settings, self.keys)
        self.open_requests = 0
        """The requests under way."""
        self._open_by_tenant: Counter[str] = Counter()
        self._store_failed_at = -math.inf
        self._options = options or Options()
        self.transport: AsyncTransport = AsyncHttpTransport() if transport is None else transport
        self.model_lists = ModelLists(self.transport)
        """What providers list for the configured keys."""
        self.background = BackgroundResponses(self)
        """The responses that clients poll."""
        self._tasks: list[asyncio.Task[None]] = []
        self._planner = ThreadPoolExecutor(_MAX_PLANNERS, thread_name_prefix="asides-plan")
        """Plans large requests, which would block the event loop."""
        self.vault = _open_vault(settings, self.database)
        self.degraded_checks: list[Callable[[], str | None]] = []
        """Health checks of optional dependencies; each returns its name, such as "redis", while degraded, else None."""
        if (link := self.redis) is not None:
            self.degraded_checks.append(lambda: None if link.is_up else "redis")
        self.watchers: list[RequestWatcher] = []
        """Request watchers. Register before serving."""
        self.recent_requests: RecentRequests | None = None
        """The requests that the inspector shows; None without the page."""
        self.use(call_settings)
        # Whether clients need a key decides about what they may see.
        self.keys.on_change = lambda: self.use(self._call_settings)

    def use(self, call_settings: Settings | None, settings: GatewaySettings | None = None) -> None:
        """Use these settings for the requests that begin from now on. `settings`: None for those it has."""
        self._call_settings = call_settings
        if settings is not None:
            self.settings = settings
            self.authenticator = Authenticator(settings, self.keys)
        self.builder = CallBuilder(self._options, settings=self._show_thinking(call_settings))
        config = RelayConfig(
            sink="gateway",
            thinking_field=self.settings.thinking_field,
            keys=self.vault.keys,
            state_mode=self.vault.mode,
            lists_home=False,
            listed=self.model_lists.listed,
            shown_models=self.settings.shown_models,
            fallback_model=self.builder.settings.model or "",
            options=Options(max_wait=self._options.get("max_wait", MOST_WAIT)),
        )
        self.relay = Relay(self.builder, config)

    def find_busy(self, tenant: str) -> Busy | None:
        """Why a request of this tenant is not accepted now; None if it is.

        Where there are several keys, a tenant may have at most as many requests under way as are left free: alone, half
        of all; among N greedy ones, each gets the same part, and as much stays free for others.
        """
        free = self.settings.max_requests - self.open_requests
        if free <= 0:
            return _BUSY
        has_others = len(self.settings.keys) + len(self.keys) > 1
        return _SHARE_USED if has_others and self._open_by_tenant[tenant] >= free else None

    def begin_request(self, tenant: str) -> None:
        """Count a request as under way."""
        self.open_requests += 1
        self._open_by_tenant[tenant] += 1

    def end_request(self, tenant: str) -> None:
        """Count a request as ended."""
        self.open_requests -= 1
        self._open_by_tenant[tenant] -= 1
        if not self._open_by_tenant[tenant]:
            del self._open_by_tenant[tenant]

    def note_store_failure(self, began: float) -> None:
        """A request that began then could not read or write reasoning state: `has_store_failed` for a minute.

        Not for a server that was down meanwhile: its outage ends when it is back. A full disk has no such end.
        """
        if not self.database.was_down_since(began):
            self._store_failed_at = time.monotonic()

    @property
    def has_store_failed(self) -> bool:
        """Whether a request of the last minute could not read or write reasoning state."""
        return time.monotonic() - self._store_failed_at < _FAILURE_SECONDS

    async def prepare(self, request: RelayRequest) -> None:
        """Called before a request is relayed: one for a list of models waits briefly for lists that are not known."""
        if request.method == "GET" and request.path.rstrip("/").endswith(LIST_PATHS):
            await self.model_lists.refresh(self.builder)

    def list_degraded(self) -> list[str]:
        """The names of what does not work now, but for the store."""
        return [name for check in self.degraded_checks if (name := check()) is not None]

    def begin(self, request: RelayRequest, observer: RelayObserver | None = None) -> AsyncRelayStream:
        """Begin a relayed request. Nothing is sent yet."""
        return self.carry_out(self.relay.begin(request, observer))

    def carry_out(self, exchange: RelayExchange, key: KeyRecord | None = None) -> AsyncRelayStream:
        """The response to a request that has begun. `key`: with which it was sent, if that has limits."""
        planner = self._planner if is_large(exchange.body) else None
        return AsyncRelayStream(exchange, self.transport, self.vault.store, self.meters.open(key), planner)

    def _show_thinking(self, call_settings: Settings | None) -> Settings:
        """Settings that show thinking on a gateway without keys: only its operator can reach it."""
        settings = load_settings() if call_settings is None else call_settings
        if self.authenticator.needs_key or settings.origin("visibility.gateway") != "default":
            return settings
        visibility = msgspec.structs.replace(settings.visibility, gateway=("raw", "summary"))
        return msgspec.structs.replace(settings, visibility=visibility)

    async def start(self) -> None:
        """Create the tables of a shared store, and read the keys. If it does not answer, requests are answered without
        it until it does.

        Raises StoreError if it answers, and cannot be used.
        """
        if self.settings.store is not None:
            preparing = await prepare_database(self.settings.store)
            self._tasks += [] if preparing is None else [preparing]
            await self.keys.refresh()
            if self.vault.mode == "store":
                self._tasks.append(asyncio.create_task(watch_relay_key(self.database, self.vault.keys)))
        self._tasks += [asyncio.create_task(self.keys.run()), asyncio.create_task(self.meters.run())]
        for record in self.keys.list_records():
            if record.limits.has_budget:
                self._tasks.append(asyncio.create_task(self.meters.prepare(record)))
                break
        has_others = self.settings.store is not None or self.settings.workers > 1
        listening = listen(self.redis, self.keys.on_revoked, has_others=has_others)
        self._tasks += [] if listening is None else [listening]

    async def close(self) -> None:
        """Close the connections to providers, and the stores."""
        await self.background.close()
        for task in self._tasks:
            task.cancel()
        await self.model_lists.close()
        await self.meters.close()
        await self.windows.close()
        await self.keys.close()
        await self.transport.close()
        self._planner.shutdown(wait=False, cancel_futures=True)
        await self.vault.close_async()
        await self.database.close_async()


def _open_vault(settings: GatewaySettings, database: Database) -> OpenedVault:
    mode = settings.state_mode
    if settings.store is not None and mode != "memory":
        shared = open_shared_vault(database, owns=False)
        return shared if mode == "store" else open_vault(mode, key=shared.keys)
    if settings.folder is None:
        return open_vault("memory" if mode == "store" else mode)
    path = settings.folder / VAULT_FILE
    if mode == "store":
        return open_vault(mode, path)
    # What clients carry outlives the process too, and is read by every process that serves them.
    return open_vault(mode, key=find_keys(beside=path))
