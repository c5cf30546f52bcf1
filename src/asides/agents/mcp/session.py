"""One connection to an MCP server, in its own thread and event loop: any thread and any loop can use it."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from asides import __version__
from asides.agents.mcp.connect import (
    Http,
    RequestRefused,
    ServerConfig,
    ServerDiagnostics,
    Stdio,
    explain_failure,
    has_ended_early,
    is_connection_closed,
    load_official_client,
    mute_client_logs,
    open_transport,
    redact_words,
)
from asides.values.errors import ConfigError
from asides.values.fork_guard import ForkGuard

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import IncomingMessage
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool

Value = TypeVar("Value")

_CLOSE_SECONDS = 10.0
_MAX_TOOLS = 10_000
_LISTEN_AGAIN_SECONDS = (1.0, 30.0)


class ConnectionLost(Exception):
    """The server has ended, or the connection to it has."""


class ServerInfo(msgspec.Struct, frozen=True):
    """The name and the instructions that the server sends."""

    name: str | None
    instructions: str | None


class Session:
    """A connection. It starts immediately; `ready` gets the server's info, or the reason for the failure."""

    def __init__(
        self, label: str, config: ServerConfig, start_timeout: float, listing: tuple[ListedTool, ...] = ()
    ) -> None:
        self._label = label
        self._config = config
        self._start_timeout = start_timeout
        self._forks = ForkGuard()
        self.listing = listing
        """The tools as the server listed them last; a new object after each listing."""
        self.ready: Future[ServerInfo] = _make_uncancellable()
        self._ended: Future[None] = _make_uncancellable()
        # Reentrant: garbage collection may call `request_stop` in any thread, also in one that holds the lock.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._changed = asyncio.Event()
        self._serving = False
        self._stop_requested = False
        self._stop: Callable[[], object] = _do_nothing
        atexit.register(self.close)
        self._thread = threading.Thread(target=self._run, name="asides-mcp", daemon=True)
        self._thread.start()

    # --- called from any thread ---------------------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        """Whether it has closed, or failed to open. True in a forked process, which has no connection."""
        return self._forks.is_in_child or (self.ready.done() and not self._serving)

    @property
    def is_alive(self) -> bool:
        """Whether its thread, and with it a child process, may still run."""
        return self._thread.is_alive()

    def request_stop(self) -> None:
        """Ask the session to end, without waiting. Only the first call has an effect."""
        with self._lock, suppress(RuntimeError):  # The loop has closed: it has ended.
            if self._loop is not None and not self._stop_requested:
                self._loop.call_soon_threadsafe(self._stop)
            self._stop_requested = True

    def close(self) -> None:
        """End it, and wait until the child process and the thread have ended."""
        if self._forks.is_in_child:
            return  # The thread and the child belong to the parent process.
        self.request_stop()
        self._ended.result()
        self._thread.join()

    async def aclose(self) -> None:
        """`close`, async. It ends also if the wait is cancelled."""
        if self._forks.is_in_child:
            return
        self.request_stop()
        await asyncio.wrap_future(self._ended)
        self._thread.join()  # It has already ended.

    async def call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool from any event loop; cancel it to cancel the request. Raises ConnectionLost, RequestRefused."""
        return await _await_future(self._submit(lambda: self._call(name, arguments)))

    def refresh(self) -> None:
        """List the tools again. Raises ConnectionLost, RequestRefused."""
        try:
            self._submit(self._list).result()
        except CancelledError:
            raise ConnectionLost from None

    async def arefresh(self) -> None:
        """`refresh`, from any event loop."""
        await _await_future(self._submit(self._list))

    def _submit(self, work: Callable[[], Coroutine[Any, Any, Value]]) -> Future[Value]:
        with self._lock:
            if self.has_ended or self._loop is None:
                raise ConnectionLost
            return asyncio.run_coroutine_threadsafe(work(), self._loop)

    # --- called in the session's thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            load_official_client()
            with mute_client_logs():
                asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - the opener gets it, whatever it is
            # Once the session was ready, the error is dropped: waiting calls got ConnectionLost.
            if not self.ready.done():
                stopped = isinstance(error, asyncio.CancelledError)  # The caller of open was not cancelled.
                self.ready.set_exception(ConfigError("closed before it was open") if stopped else error)
        finally:
            atexit.unregister(self.close)
            self._ended.set_result(None)

    async def _serve(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("a coroutine runs in a task")
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._stop = task.cancel
            if self._stop_requested:
                raise asyncio.CancelledError
        stopping = asyncio.Event()
        async with asyncio.timeout(None) as limit, await self._connect() as stack:
            client = self._client
            if client is None:
                raise AssertionError("connected without a client")
            await stack.enter_async_context(self._keep_listing_current(client))
            with self._lock:
                self._stop = stopping.set
                self._serving = not self._stop_requested
            info = client.server_info
            self.ready.set_result(ServerInfo(info.name if info else None, client.instructions))
            try:
                if self._serving:
                    await stopping.wait()
            finally:
                with self._lock:
                    self._serving = False
                    self._stop = _do_nothing
                # Requests that were submitted before get their turn, and raise ConnectionLost.
                await asyncio.sleep(0)
                if isinstance(self._config, Http):
                    # A server may ignore the request to end the session. Ending a child has its own short limits.
                    limit.reschedule(self._loop.time() + _CLOSE_SECONDS)

    async def _connect(self) -> AsyncExitStack:
        """Connect and list the tools; closing the stack ends the connection. Raises a ConfigError with the reason."""
        try:
            return await self._try_connect("auto")
        except _EndedEarly:
            # Servers from before 2026 may end unless the first message is `initialize`. The next child gets it first.
            pass
        try:
            return await self._try_connect("legacy")
        except _EndedEarly as error:
            raise ConfigError(str(error)) from None

    async def _try_connect(self, mode: str) -> AsyncExitStack:
        from mcp import Client
        from mcp.types import Implementation

        diagnostics = ServerDiagnostics()
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._start_timeout):
                    transport = await stack.enter_async_context(open_transport(self._config, diagnostics))
                    client = Client(
                        transport,
                        mode=mode,
                        cache=None,  # The tools are listed again when they change or on request.
                        message_handler=self._handle_message,
                        client_info=Implementation(name="asides", version=__version__),
                    )
                    self._client = await stack.enter_async_context(client)
                    self.listing = await _list_all_pages(client)
                return stack.pop_all()
        except Exception as error:  # noqa: BLE001 - the official client raises groups of any errors
            failure = explain_failure(self._label, self._config, diagnostics, error, self._start_timeout)
            if isinstance(self._config, Stdio) and has_ended_early(error):
                raise _EndedEarly(str(failure)) from None
            raise failure from None

    async def _handle_message(self, message: IncomingMessage) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    @asynccontextmanager
    async def _keep_listing_current(self, client: Client) -> AsyncGenerator[None]:
        tasks = [asyncio.create_task(self._list_on_change())]
        tools = client.server_capabilities.tools
        if tools is not None and tools.list_changed:
            tasks.append(asyncio.create_task(self._subscribe(client)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _list_on_change(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            with suppress(ConnectionLost, RequestRefused):  # The known list stays.
                await self._list()

    async def _subscribe(self, client: Client) -> None:
        """Subscribe to changes of the list. Servers from before 2026 notify without it."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        pause, max_pause = _LISTEN_AGAIN_SECONDS
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._changed.set()
            except (ListenNotSupportedError, MCPError):
                return
            except (SubscriptionLost, TimeoutError):
                pass
            await asyncio.sleep(pause)
            pause = min(2 * pause, max_pause)
            self._changed.set()  # A change may have been missed meanwhile.

    async def _list(self) -> None:
        self.listing = await self._request(_list_all_pages)

    async def _call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        return await self._request(lambda client: client.call_tool(name, arguments))

    async def _request(self, send: Callable[[Client], Coroutine[Any, Any, Value]]) -> Value:
        from mcp import MCPError
        from pydantic import ValidationError

        client = self._client
        if client is None or not self._serving:
            raise ConnectionLost
        try:
            return await send(client)
        except MCPError as error:
            if is_connection_closed(error):
                if isinstance(self._config, Stdio):  # A child that closed its output does not come back.
                    with self._lock:
                        self._serving = False
                        self._stop()
                raise ConnectionLost from None
            raise RequestRefused(redact_words(error.message, self._config)) from None
        except ValidationError:
            raise RequestRefused("the server's answer cannot be read") from None
        except RuntimeError:
            # The official client found a result that violates the tool's schema; its message has the whole answer.
            raise RequestRefused("the server's answer does not match the tool's own output schema") from None


class _EndedEarly(Exception):
    """A child ended before it answered."""


async def _list_all_pages(client: Client) -> tuple[ListedTool, ...]:
    if client.server_capabilities.tools is None:
        return ()
    found: list[ListedTool] = []
    cursors: set[str | None] = {None}
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tuple(found)
        if len(found) > _MAX_TOOLS or len(cursors) > _MAX_TOOLS:
            raise RequestRefused(f"its list has more than {_MAX_TOOLS} tools or pages")
        if cursor in cursors:
            raise RequestRefused("the pages of its list form a circle")
        cursors.add(cursor)


async def _await_future(future: Future[Value]) -> Value:
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if future.cancelled() and (task is None or not task.cancelling()):
            raise ConnectionLost from None  # The caller was not cancelled: the session ended during the request.
        raise


def _make_uncancellable() -> Future[Any]:
    # A caller that awaits it may be cancelled; the future is not.
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def _do_nothing() -> None:
    pass
