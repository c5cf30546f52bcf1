"""The stage itself: an offline HTTP server in a thread of its own (`Stage`), or in yours (`run`).

Not here: what it says (script, actor) and how (performance, connection).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.testing.stage.actor import MODEL, improvise
from asides.testing.stage.connection import Connection
from asides.testing.stage.request_log import Received, RequestLog
from asides.testing.stage.routes import Routes
from asides.testing.stage.script import Scene, Script, ScriptPlayer, load_script
from asides.values.errors import ConfigError
from asides.values.model_info import ModelInfo

_BACKLOG = 1024
_END_SECONDS = 10.0


class Stage:
    """An offline server that speaks the wire languages of the providers and plays a script.

        with Stage([Fail(status=429, retry_after=1), Say(thinking="plan", text="42")]) as stage:
            asides.ask("openai-compatible:any", "?", base_url=stage.url)

    A list is played in order, one scene for each request, and its last scene again and again; a function is asked for
    the scene of each request, in the stage's thread. Without a script the stage's own actor answers. A request that
    cannot be read is answered 400 and takes no scene. What a script raises is answered 500, and raised on closing.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
        models: Sequence[str | ModelInfo] = (MODEL,),
        anywhere: bool = False,
        dialect: str | None = None,
    ) -> None:
        """`key` is what clients must bring; `models` are listed, by name or with all that is to be told of them;
        `anywhere` allows a host that other machines can reach; `dialect` is the one that is spoken, where the path of a
        request does not tell."""
        _check_host(host, anywhere=anywhere)
        self._host = _numeric(host)
        self._port = port
        self._ledger = RequestLog()
        playing = improvise if script is None else ScriptPlayer(script).next
        self._routes = Routes(playing, self._ledger, key=key, models=models, dialect=dialect)
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] | None = None
        self._address: str | None = None

    # --- its life -----------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Open the port and answer from now on, in a thread of its own."""
        if self._thread is not None:
            raise RuntimeError("this stage was started before; make another one.")
        ready: Future[tuple[str, Callable[[], object]]] = Future()
        self._thread = threading.Thread(target=self._live, args=(ready,), name="asides-stage", daemon=True)
        self._thread.start()
        try:
            self._address, self._stop = ready.result()
        except BaseException:
            self._thread.join(_END_SECONDS)
            raise
        return self

    def close(self) -> None:
        """End every connection and the thread; raise what a script raised. Closing twice is closing once."""
        self._end()
        if problems := self._ledger.problems:
            raise problems[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            # What went wrong in the block is what the caller has to see.
            self._end()

    def _end(self) -> None:
        if self._thread is None or self._stop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._stop()
        self._thread.join(_END_SECONDS)
        if self._thread.is_alive():
            raise RuntimeError(f"the stage's thread did not end within {_END_SECONDS:g} seconds.")

    def _live(self, ready: Future[tuple[str, Callable[[], object]]]) -> None:
        def tell(address: str, stop: asyncio.Event) -> None:
            ready.set_result((address, partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set)))

        try:
            asyncio.run(_serve(self._host, self._port, self._routes, self._ledger, tell))
        except BaseException as problem:  # noqa: BLE001 - the thread that started this one is where it has to be raised
            if not ready.done():
                ready.set_exception(problem)
            elif isinstance(problem, Exception):
                self._ledger.note_problem(problem)

    # --- what is seen of it -------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The base URL for a client: "http://127.0.0.1:PORT/v1"."""
        if self._address is None:
            raise RuntimeError("the stage is not open yet; use it in a with block, or call start().")
        return f"{self._address}/v1"

    @property
    def requests(self) -> list[Received]:
        """What was received so far, in order."""
        return self._ledger.requests

    @property
    def closed_early(self) -> int:
        """How many clients were gone before the last byte of their reply was written."""
        return self._ledger.closed_early

    @property
    def connections(self) -> int:
        """How many connections were made."""
        return self._ledger.connections

    @property
    def open_connections(self) -> int:
        """How many of them are still there."""
        return self._ledger.open_connections

    def wait_until(self, condition: Callable[[], bool], timeout: float = 5.0) -> bool:
        """Wait until what the stage saw fulfils the condition; False when the time is over.

        A client and the stage live in different threads: `stage.wait_until(lambda: stage.closed_early == 1)`.
        """
        return self._ledger.wait_until(condition, timeout)

    def __repr__(self) -> str:
        return f"Stage({self._address or 'not open'}, requests={len(self.requests)})"


class OpenStage(Protocol):
    """The `stage` fixture: `stage(Say(text="hi"))` opens one that the fixture closes."""

    def __call__(
        self,
        *script: Scene | Callable[[ServedRequest], Scene],
        key: str | None = None,
        models: Sequence[str | ModelInfo] = (MODEL,),
    ) -> Stage:
        """Open a stage with these scenes, with one function that gives them, or with the stage's own actor."""
        ...


def run(
    host: str,
    port: int,
    script: Path | None,
    ready: Callable[[str], None],
    *,
    key: str | None = None,
    anywhere: bool = False,
) -> None:
    """Play in the calling thread until SIGINT or SIGTERM; `ready` gets the base URL once the port is open."""
    _check_host(host, anywhere=anywhere)
    ledger = RequestLog()
    playing = _live_improvisation if script is None else ScriptPlayer(load_script(script)).next
    routes = Routes(playing, ledger, key=key, models=(MODEL,))

    def tell(address: str, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            # Neither Windows nor a thread that is not the main one has these; there KeyboardInterrupt ends it.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, stop.set)
        ready(f"{address}/v1")

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(_numeric(host), port, routes, ledger, tell))
    if problems := ledger.problems:
        raise problems[0]


def _live_improvisation(request: ServedRequest) -> Scene:
    """The actor at the pace of somebody who types, so that thinking can be watched."""
    return msgspec.structs.replace(improvise(request), pause=0.02, piece=6)


def _check_host(host: str, *, anywhere: bool) -> None:
    if anywhere or host == "localhost":
        return
    try:
        near = ipaddress.ip_address(host).is_loopback
    except ValueError:
        near = False
    if not near:
        raise ConfigError(f"{host} may be reached from other machines, and the stage is for this one; use 127.0.0.1.")


def _numeric(host: str) -> str:
    # The name stands for two addresses, which would be given two different ports.
    return "127.0.0.1" if host == "localhost" else host


async def _serve(
    host: str, port: int, routes: Routes, ledger: RequestLog, ready: Callable[[str, asyncio.Event], None]
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    connections: set[Connection] = set()
    try:
        server = await loop.create_server(
            lambda: Connection(routes.answer, ledger, connections), host, port, backlog=_BACKLOG
        )
    except OSError as problem:
        raise ConfigError(f"the stage cannot open {host} port {port}: {problem.strerror or problem}.") from None
    try:
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{server.sockets[0].getsockname()[1]}", stop)
        await stop.wait()
    finally:
        # First nobody else comes in, then those on the doorstep arrive (three turns of the loop, as asyncio accepts),
        # and only then the server closes: it loses the sockets it has accepted and not yet handed over.
        for listening in server.sockets:
            with contextlib.suppress(NotImplementedError):  # the loop of Windows has another way to listen
                loop.remove_reader(listening.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        server.close()
        while connections:
            await asyncio.gather(*(connection.end() for connection in list(connections)))
            await asyncio.sleep(0)
        await server.wait_closed()
