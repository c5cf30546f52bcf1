"""Raises exceptions on signals, so that what arrived is kept; a module that is being imported is loaded first."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from asides.cli.exit_codes import Exit

_T = TypeVar("_T")
_IMPORT_SECONDS = 1.0
_POLL_SECONDS = 0.01


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived. Raised in the main thread, so that what arrived is kept, connections are closed,
    drafts are deleted, and the live line is erased.
    """


@contextmanager
def raise_on_signals(received: list[Exit]) -> Generator[None]:
    """Raise KeyboardInterrupt on SIGINT, and Terminated on SIGTERM and SIGHUP, whose exit code goes to `received`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, _frame: FrameType | None) -> None:
        if sys.platform != "win32":
            # Closing a terminal sends it more than once, which must not disturb the end that the first one began.
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        received.append(codes[signal.Signals(number)])
        raise Terminated

    codes = {signal.SIGTERM: Exit.TERMINATED}
    if sys.platform != "win32":
        codes[signal.SIGHUP] = Exit.HUNG_UP
    # `nohup` ignores SIGHUP, and so do we then.
    handlers: dict[signal.Signals, _Handler] = {
        number: terminate for number in codes if signal.getsignal(number) is not signal.SIG_IGN
    }
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        handlers[signal.SIGINT] = signal.default_int_handler
    delayed = {number: _AfterImports(handler) for number, handler in handlers.items()}
    before = {number: signal.signal(number, handler) for number, handler in delayed.items()}
    try:
        yield
    finally:
        waiting = [number for number, handler in delayed.items() if handler.stop()]
        try:
            for number in waiting:
                handlers[number](number, None)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run_async(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end. Ctrl-C cancels it, which asyncio does only where Python's own handler is set."""
    import asyncio

    own = signal.getsignal(signal.SIGINT)
    if not isinstance(own, _AfterImports):
        return asyncio.run(work)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return asyncio.run(work)
    finally:
        signal.signal(signal.SIGINT, own)


_Handler = Callable[[int, FrameType | None], Any]


class _AfterImports:
    """Delays a signal until the running import ends, for a second at most.

    Python cannot import some packages again after an exception has interrupted their import. asyncio is one, and saving
    a conversation needs it.
    """

    def __init__(self, handler: _Handler) -> None:
        self._handler = handler
        self._latest: float | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._timer is not None:  # Ctrl-C a second time, during the same import.
            return
        if self._latest is None:
            self._latest = time.monotonic() + _IMPORT_SECONDS
        if _is_importing(frame) and time.monotonic() < self._latest:
            self._timer = threading.Timer(_POLL_SECONDS, self._send, (number,))
            self._timer.daemon = True
            try:
                self._timer.start()
            except RuntimeError:  # no thread can be started
                self._timer = None
            else:
                return
        self._latest = None
        self._handler(number, frame)

    def stop(self) -> bool:
        """Send nothing any more. Returns whether a signal was waiting."""
        with self._lock:
            timer, self._timer = self._timer, None
        return timer is not None

    def _send(self, number: int) -> None:
        """Send the signal again, to the main thread, which may wait in a system call by now."""
        with self._lock:
            if self._timer is None:
                return
            self._timer = None
            if sys.platform == "win32":
                signal.raise_signal(number)
            else:
                signal.pthread_kill(threading.main_thread().ident or 0, number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
