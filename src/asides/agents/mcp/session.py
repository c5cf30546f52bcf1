"""One connection to an MCP server, in a thread and an event loop of its own: any thread and any loop can use it.

Not here: which of its tools are taken and what they are called (server), and how the server is reached (ways).
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from asides.agents.mcp.connect import Heard, Http, Stdio, Way, ended_early, is_closed, no_way, opened
from asides.agents.mcp.mute_logs import this_thread_logs_nothing
from asides.values.errors import ConfigError, redact_keys
from asides.values.version import VERSION

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import IncomingMessage
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool

Value = TypeVar("Value")

_CLOSE_SECONDS = 10.0
_MOST_PAGES = 1000
_LISTEN_AGAIN_SECONDS = (1.0, 30.0)


class Gone(Exception):
    """The server has ended, or the connection to it has."""


class Refused(Exception):
    """The server, or the official client for it, did not give a result; the message is for the model."""


class Welcome(msgspec.Struct, frozen=True):
    """What the server said of itself."""

    name: str | None
    instructions: str | None


class Session:
    """A connection. It starts at once; `ready` has what the server said of itself, or why there is no connection."""

    def __init__(self, label: str, way: Way, patience: float, listing: tuple[ListedTool, ...] = ()) -> None:
        self._label = label
        self._way = way
        self._patience = patience
        self._process = os.getpid()
        self.listing = listing
        """The tools of the server, as it listed them last; another object after each time."""
        self.ready: Future[Welcome] = _uncancellable()
        self._ended: Future[None] = _uncancellable()
        # A server that is collected asks to stop, in whatever thread that happens, also in one that holds the lock.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._changed = asyncio.Event()
        self._serving = False
        self._stop_asked = False
        self._stop: Callable[[], object] = _nothing
        atexit.register(self.close)
        self._thread = threading.Thread(target=self._run, name="asides-mcp", daemon=True)
        self._thread.start()

    # Of any thread.

    @property
    def over(self) -> bool:
        """Whether it was open once, or tried to be, and is no more; in a fork of the process it never was."""
        return self._forked or (self.ready.done() and not self._serving)

    def ask_to_stop(self) -> None:
        """Begin to end it, and do not wait. Asked twice it is done once: a second time would disturb the first."""
        with self._lock, suppress(RuntimeError):  # the loop has closed: it has ended
            if self._loop is not None and not self._stop_asked:
                self._loop.call_soon_threadsafe(self._stop)
            self._stop_asked = True

    def close(self) -> None:
        """End it, and wait until the child process and the thread have ended."""
        if self._forked:
            return  # The thread is in the other process, and the child is that one's.
        self.ask_to_stop()
        self._ended.result()
        self._thread.join()

    async def aclose(self) -> None:
        """The same, awaiting. It ends also when the wait is cancelled."""
        if self._forked:
            return
        self.ask_to_stop()
        await asyncio.wrap_future(self._ended)
        self._thread.join()  # It has nothing left to do.

    async def call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool, from any event loop. A caller that is cancelled cancels the request. Raises Gone, Refused."""
        return await _answer(self._submit(lambda: self._call(name, arguments)))

    def refresh(self) -> None:
        """List the tools again. Raises Gone, Refused."""
        try:
            self._submit(self._list).result()
        except CancelledError:
            raise Gone from None

    async def arefresh(self) -> None:
        """The same, from any event loop."""
        await _answer(self._submit(self._list))

    @property
    def alive(self) -> bool:
        """Whether its thread, and with it a child, may still be there."""
        return self._thread.is_alive()

    @property
    def _forked(self) -> bool:
        return os.getpid() != self._process

    def _submit(self, work: Callable[[], Coroutine[Any, Any, Value]]) -> Future[Value]:
        with self._lock:
            if self.over or self._loop is None:
                raise Gone
            return asyncio.run_coroutine_threadsafe(work(), self._loop)

    # Of the session's own thread.

    def _run(self) -> None:
        try:
            _load()
            with this_thread_logs_nothing():
                asyncio.run(self._live())
        except BaseException as problem:  # noqa: BLE001 - whoever opened it has to hear of it, whatever it is
            # After it was ready, there is nobody to tell: the calls that wait have heard that it is gone.
            if not self.ready.done():
                stopped = isinstance(problem, asyncio.CancelledError)  # Who waits for it was not cancelled.
                self.ready.set_exception(ConfigError("closed before it was open") if stopped else problem)
        finally:
            atexit.unregister(self.close)
            self._ended.set_result(None)

    async def _live(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("a coroutine runs in a task")
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._stop = task.cancel
            if self._stop_asked:
                raise asyncio.CancelledError
        stopping = asyncio.Event()
        async with asyncio.timeout(None) as limit, await self._connected() as stack:
            client = self._client
            if client is None:
                raise AssertionError("connected without a client")
            await stack.enter_async_context(self._watching(client))
            with self._lock:
                self._stop = stopping.set
                self._serving = not self._stop_asked
            info = client.server_info
            self.ready.set_result(Welcome(info.name if info else None, client.instructions))
            try:
                if self._serving:
                    await stopping.wait()
            finally:
                with self._lock:
                    self._serving = False
                    self._stop = _nothing
                # What was submitted before that gets its turn, and hears of the end.
                await asyncio.sleep(0)
                if isinstance(self._way, Http):
                    # A goodbye that nobody takes is not waited for; a child is ended in steps that are short already.
                    limit.reschedule(self._loop.time() + _CLOSE_SECONDS)

    async def _connected(self) -> AsyncExitStack:
        """Connect, and list the tools; what it gives ends the connection. Raises a ConfigError that says why not."""
        try:
            return await self._attempt("auto")
        except _EndedEarly:
            # Servers of before 2026 may end when the first word is not `initialize`; the next child hears that first.
            pass
        try:
            return await self._attempt("legacy")
        except _EndedEarly as problem:
            raise ConfigError(str(problem)) from None

    async def _attempt(self, mode: str) -> AsyncExitStack:
        from mcp import Client
        from mcp.types import Implementation

        heard = Heard()
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._patience):
                    transport = await stack.enter_async_context(opened(self._way, heard))
                    client = Client(
                        transport,
                        mode=mode,
                        cache=None,  # The list is asked for when it has changed, or when somebody wants to know.
                        message_handler=self._notice,
                        client_info=Implementation(name="asides", version=VERSION),
                    )
                    self._client = await stack.enter_async_context(client)
                    self.listing = await _listed(client)
                return stack.pop_all()
        except Exception as problem:  # noqa: BLE001 - the official client raises groups of whatever went wrong below it
            told = no_way(self._label, self._way, heard, problem, self._patience)
            if isinstance(self._way, Stdio) and ended_early(problem):
                raise _EndedEarly(str(told)) from None
            raise told from None

    async def _notice(self, message: IncomingMessage) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    @asynccontextmanager
    async def _watching(self, client: Client) -> AsyncGenerator[None]:
        """Keep the listing up to date for as long as the block lasts."""
        tasks = [asyncio.create_task(self._follow())]
        tools = client.server_capabilities.tools
        if tools is not None and tools.list_changed:
            tasks.append(asyncio.create_task(self._subscribe(client)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            with suppress(Gone, Refused):  # The list that was known stays.
                await self._list()

    async def _subscribe(self, client: Client) -> None:
        """Since 2026 a server tells of changes only whom has asked for it; before, it just tells."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        pause, longest = _LISTEN_AGAIN_SECONDS
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
            pause = min(2 * pause, longest)
            self._changed.set()  # Who did not listen may have missed something.

    async def _list(self) -> None:
        self.listing = await self._asked(_listed)

    async def _call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        return await self._asked(lambda client: client.call_tool(name, arguments))

    async def _asked(self, question: Callable[[Client], Coroutine[Any, Any, Value]]) -> Value:
        from mcp import MCPError
        from pydantic import ValidationError

        client = self._client
        if client is None or not self._serving:
            raise Gone
        try:
            return await question(client)
        except MCPError as problem:
            if is_closed(problem):
                if isinstance(self._way, Stdio):  # A child that has closed its end does not come back.
                    with self._lock:
                        self._serving = False
                        self._stop()
                raise Gone from None
            raise Refused(redact_keys(problem.message)) from None
        except ValidationError:
            raise Refused("the server's answer does not read") from None
        except RuntimeError:
            # The official client's word for it, with the whole answer in the message.
            raise Refused("the server's answer is not what the server says that the tool gives") from None


class _EndedEarly(Exception):
    """A child ended before it answered."""


async def _listed(client: Client) -> tuple[ListedTool, ...]:
    if client.server_capabilities.tools is None:
        return ()
    found: list[ListedTool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):  # A server that lists in a circle has an end, too.
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(found)


async def _answer(future: Future[Value]) -> Value:
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if future.cancelled() and (task is None or not task.cancelling()):
            raise Gone from None  # Nobody cancelled us: the session has ended under the request.
        raise


def _load() -> None:
    """Load the official client, all of it, so that its loggers are known."""
    from importlib import import_module

    try:
        import_module("mcp.client.streamable_http")
        import_module("mcp.client.subscriptions")
    except ImportError:
        raise ConfigError("tools of MCP servers need another package. To do: pip install 'asides[mcp]'") from None


def _uncancellable() -> Future[Any]:
    # Awaiting ends may be cancelled; what they await goes on.
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def _nothing() -> None:
    pass
