"""Signals become exceptions, but not in the middle of an import."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest

from asides.cli.exit_codes import Exit
from asides.cli.signals import Terminated, raise_on_signals, run_async

_LONG = 20.0


def _import_and_wait(name: str) -> None:
    import_module(name)
    time.sleep(_LONG)


def _write_module(folder: Path, name: str, *lines: str) -> str:
    (folder / f"{name}.py").write_text("\n".join(("import signal, time", *lines)))
    return name


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to import from."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("number", "raised"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated), (signal.SIGHUP, Terminated)],
)
def test_a_signal_during_an_import_is_raised_when_it_ends(
    modules: Path, number: signal.Signals, raised: type[BaseException]
) -> None:
    name = _write_module(modules, f"cut_by_{number.name}", f"signal.raise_signal({number.value})", "loaded = True")
    received: list[Exit] = []
    began = time.monotonic()
    with pytest.raises(raised), raise_on_signals(received):
        _import_and_wait(name)
    assert sys.modules.pop(name).loaded
    assert time.monotonic() - began < _LONG / 2
    assert len(received) == (raised is Terminated)


def test_ctrl_c_twice_during_an_import_is_raised_once(modules: Path) -> None:
    name = _write_module(modules, "cut_twice", *["signal.raise_signal(signal.SIGINT)"] * 2, "time.sleep(0.05)")
    with raise_on_signals([]):
        with pytest.raises(KeyboardInterrupt):
            _import_and_wait(name)
        time.sleep(0.05)


def test_an_import_that_takes_long_is_interrupted(modules: Path) -> None:
    name = _write_module(modules, "endless", "signal.raise_signal(signal.SIGINT)", f"time.sleep({_LONG})")
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), raise_on_signals([]):
        import_module(name)
    assert time.monotonic() - began < _LONG / 2


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raise_on_signals([]):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_waits_when_the_block_ends_is_raised_by_it(modules: Path) -> None:
    name = _write_module(modules, "cut_at_the_end", "signal.raise_signal(signal.SIGTERM)")
    received: list[Exit] = []
    with pytest.raises(Terminated), raise_on_signals(received):
        import_module(name)
    time.sleep(0.05)
    assert received == [Exit.TERMINATED]


def test_without_a_thread_to_wait_in_a_signal_is_raised_at_once(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    for name in ("cut_without_threads", "cut_again"):
        _write_module(modules, name, "signal.raise_signal(signal.SIGINT)", "time.sleep(20)")
        with pytest.raises(KeyboardInterrupt), raise_on_signals([]):
            import_module(name)


def test_ctrl_c_cancels_what_runs_in_an_event_loop() -> None:
    ended: list[str] = []

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.sleep(_LONG)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with raise_on_signals([]):
        own = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            run_async(work())
        assert signal.getsignal(signal.SIGINT) is own
    assert ended == ["cancelled"]
