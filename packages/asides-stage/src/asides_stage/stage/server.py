"""The stage: an offline HTTP server in its own thread (`Stage`) or in the calling one (`run`)."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import date as Day  # noqa: N812 - `date` is the name of the setting
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self, TypeAlias, get_args

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.providers.stage_switch import OPEN_STAGES
from asides.values.errors import ConfigError
from asides.values.model_info import ModelInfo
from asides_stage.stage.actor import MODEL, improvise
from asides_stage.stage.batches import BatchScript, BatchStore, PlayedBatch
from asides_stage.stage.connection import Connection
from asides_stage.stage.expectations import RefusalExpectation, Searched, assert_no_leak
from asides_stage.stage.request_log import Received, RefusedRequest, RequestLog
from asides_stage.stage.request_router import Routes
from asides_stage.stage.script import Scene, Script, ScriptPlayer, load_script

RulesMode: TypeAlias = Literal["strict", "lenient"]
"""Refuse what the real servers refuse · answer it, and only list it."""
_BACKLOG = 1024
_END_SECONDS = 10.0
_MOST_PIECES = 40


class Stage:
    """An offline server that speaks the providers' dialects and plays a script.

        with Stage([Fail(status=429, retry_after=1), Say(thinking="plan", text="42")]) as stage:
            asides.ask("openai-compatible:any", "?", base_url=stage.url)

    A list is played in order, one scene per request; its last scene repeats. A function is called for each request, in
    the stage's thread. Without a script, the stage's actor answers. A request that cannot be read gets status 400 and
    uses up no scene. An exception of the script gets status 500 and is raised again on closing.
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
        rules: RulesMode = "strict",
        date: str | None = None,
        cache: bool = False,
        batches: BatchScript | None = None,
        secret: bytes | None = None,
    ) -> None:
        """`key`: what clients must send. `models`: the list of models, as names or as `ModelInfo`s. `anywhere`: allow a
        host that other machines can reach. `dialect`: the dialect of every request, if its path does not show it.
        `rules`: "strict" refuses what the real servers refuse; "lenient" answers it and only lists it in `refusals`.
        `date`: the day whose rules hold, such as "2026-11-15"; None: today. `cache`: report the tokens that a prompt
        cache would have read and written; `requests` have them in any case. `batches`: the times of vendor batches.
        `secret`: at most 64 bytes that sign thoughts; stages with the same secret accept each other's. None: random."""
        _check_host(host, anywhere=anywhere)
        self._host = _resolve_localhost(host)
        self._port = port
        self._log = RequestLog()
        self._batches = BatchStore(batches)
        script_function = improvise if script is None else ScriptPlayer(script).next
        self._routes = Routes(
            script_function,
            self._log,
            key=key,
            models=models,
            dialect=dialect,
            lenient=_is_lenient(rules),
            today=_read_date(date),
            reports_cache=cache,
            batches=self._batches,
            secret=secret,
        )
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] | None = None
        self._address: str | None = None
        self._expectations: list[RefusalExpectation] = []

    # --- opening and closing ------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Open the port and answer requests in a new thread."""
        if self._thread is not None:
            raise RuntimeError("this stage was started before; make another one.")
        ready: Future[tuple[str, Callable[[], object]]] = Future()
        self._thread = threading.Thread(target=self._run_loop, args=(ready,), name="asides-stage", daemon=True)
        self._thread.start()
        try:
            self._address, self._stop = ready.result()
            OPEN_STAGES.add(self._address.removeprefix("http://"))
        except BaseException:
            self._thread.join(_END_SECONDS)
            raise
        return self

    def close(self) -> None:
        """End every connection and the thread; raise what a script raised. Closing twice does no harm."""
        self._end()
        if problems := self._log.problems:
            raise problems[0]
        for expectation in self._expectations:
            expectation.check()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            # The caller needs to see the exception of the block.
            self._end()

    def _end(self) -> None:
        if self._thread is None or self._stop is None:
            return
        OPEN_STAGES.discard((self._address or "").removeprefix("http://"))
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._stop()
        self._thread.join(_END_SECONDS)
        if self._thread.is_alive():
            raise RuntimeError(f"the stage's thread did not end within {_END_SECONDS:g} seconds.")

    def _run_loop(self, ready: Future[tuple[str, Callable[[], object]]]) -> None:
        def on_open(address: str, stop: asyncio.Event) -> None:
            ready.set_result((address, partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set)))

        try:
            asyncio.run(_serve(self._host, self._port, self._routes, self._log, on_open))
        except BaseException as problem:  # noqa: BLE001 - it has to be raised in the thread that started this one
            if not ready.done():
                ready.set_exception(problem)
            elif isinstance(problem, Exception):
                self._log.record_problem(problem)

    # --- received requests --------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The base URL for a client: "http://127.0.0.1:PORT/v1"."""
        if self._address is None:
            raise RuntimeError("the stage is not open yet; use it in a with block, or call start().")
        return f"{self._address}/v1"

    @property
    def requests(self) -> list[Received]:
        """The requests so far, in order."""
        return self._log.requests

    @property
    def refusals(self) -> list[RefusedRequest]:
        """What the rules say against the requests so far, in order, whether the stage refused them or is lenient."""
        return [received.refusal for received in self._log.requests if received.refusal is not None]

    @property
    def batches(self) -> list[PlayedBatch]:
        """The vendor batches so far, in order, also those that were deleted."""
        return list(self._batches.batches)

    def expect_no_refusals(self) -> RefusalExpectation:
        """Expect that no request breaks a rule, in a lenient stage too: in `with stage.expect_no_refusals():` to the
        end of the block, otherwise from the first request on until the stage closes. A refusal fails the test with its
        reason."""
        expectation = RefusalExpectation(lambda: self.refusals)
        self._expectations.append(expectation)
        return expectation

    def assert_no_leak(self, canary: str, in_: Searched | None = None) -> None:
        """Fail if this word, which only the thinking has, reached the stage anywhere but in the thinking of the model's
        own turns, or is in `in_`: text, bytes, a Path of a file or folder, or several of them."""
        assert_no_leak(canary, self.requests, in_)

    @property
    def closed_early(self) -> int:
        """The number of clients that left before the last byte of their reply was written."""
        return self._log.closed_early

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return self._log.connections

    @property
    def open_connections(self) -> int:
        """The number of open connections."""
        return self._log.open_connections

    def wait_until(self, condition: Callable[[], bool], timeout: float = 5.0) -> bool:
        """Wait until the condition is true; return False after the timeout.

        A client and the stage run in different threads: `stage.wait_until(lambda: stage.closed_early == 1)`.
        """
        return self._log.wait_until(condition, timeout)

    def __repr__(self) -> str:
        return f"Stage({self._address or 'not open'}, requests={len(self.requests)})"


class OpenStage(Protocol):
    """The `stage` fixture: `stage(Say(text="hi"))` opens a stage that the fixture closes."""

    def __call__(
        self,
        *script: Scene | Sequence[Scene] | Callable[[ServedRequest], Scene],
        key: str | None = None,
        models: Sequence[str | ModelInfo] = (MODEL,),
        rules: RulesMode = "strict",
        date: str | None = None,
        cache: bool = False,
        batches: BatchScript | None = None,
    ) -> Stage:
        """Open a stage with these scenes, with one function that returns them, or with the stage's actor."""
        ...

    def expect_no_refusals(self) -> RefusalExpectation:
        """Expect that no request to any stage of the test breaks a rule: to the end of a `with` block, or of the
        test."""
        ...

    def assert_no_leak(self, canary: str, in_: Searched | None = None) -> None:
        """Fail if this word of the thinking reached any stage of the test where it must not be, or is in `in_`."""
        ...


def run(
    host: str,
    port: int,
    script: Path | None,
    ready: Callable[[str], None],
    *,
    key: str | None = None,
    anywhere: bool = False,
    rules: RulesMode = "strict",
    date: str | None = None,
    on_refusal: Callable[[RefusedRequest], None] | None = None,
) -> None:
    """Serve in the calling thread until SIGINT or SIGTERM; call `ready` with the base URL once the port is open, and
    `on_refusal` with each request that breaks a rule."""
    _check_host(host, anywhere=anywhere)
    log = RequestLog(on_refusal)
    script_function = _improvise_slowly if script is None else ScriptPlayer(load_script(script)).next
    routes = Routes(
        script_function,
        log,
        key=key,
        models=(MODEL,),
        lenient=_is_lenient(rules),
        today=_read_date(date),
        reports_cache=True,
    )

    def on_open(address: str, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            # Windows and threads other than the main one have no signal handlers; KeyboardInterrupt ends it there.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, stop.set)
        ready(f"{address}/v1")

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(_resolve_localhost(host), port, routes, log, on_open))
    if problems := log.problems:
        raise problems[0]


def _improvise_slowly(request: ServedRequest) -> Scene:
    """Return the actor's reply at typing speed, so that people can watch the thinking; a long one in larger pieces."""
    reply = improvise(request)
    length = len(reply.text) + len(reply.thinking or "")
    return msgspec.structs.replace(reply, pause=0.02, piece=max(6, length // _MOST_PIECES))


def _is_lenient(rules: str) -> bool:
    """Return whether the stage is lenient."""
    if rules not in get_args(RulesMode):
        raise ConfigError(f'rules is {rules!r}. Write "strict" or "lenient".')
    return rules == "lenient"


def _read_date(written: str | None) -> Day | None:
    if written is None:
        return None
    try:
        return Day.fromisoformat(written)
    except (TypeError, ValueError):
        raise ConfigError(f'date is {written!r}. Write a day as "2026-11-15".') from None


def _check_host(host: str, *, anywhere: bool) -> None:
    if anywhere or host == "localhost":
        return
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise ConfigError(f"{host} may be reached from other machines, and the stage is for this one; use 127.0.0.1.")


def _resolve_localhost(host: str) -> str:
    # The name has two addresses, and each would get its own port.
    return "127.0.0.1" if host == "localhost" else host


async def _serve(
    host: str, port: int, routes: Routes, log: RequestLog, ready: Callable[[str, asyncio.Event], None]
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    connections: set[Connection] = set()
    try:
        server = await loop.create_server(lambda: Connection(routes, log, connections), host, port, backlog=_BACKLOG)
    except OSError as problem:
        raise ConfigError(f"the stage cannot open {host} port {port}: {problem.strerror or problem}.") from None
    try:
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{server.sockets[0].getsockname()[1]}", stop)
        await stop.wait()
    finally:
        # First stop accepting, then let accepted connections arrive (asyncio needs three turns of the loop), and only
        # then close the server: it would lose sockets that it has accepted and not yet handed over.
        for listening in server.sockets:
            with contextlib.suppress(NotImplementedError):  # the event loop of Windows listens differently
                loop.remove_reader(listening.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        server.close()
        while connections:
            await asyncio.gather(*(connection.end() for connection in list(connections)))
            await asyncio.sleep(0)
        await server.wait_closed()
