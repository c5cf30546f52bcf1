"""Forks: who is told, and what is known about the process of an object."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

import pytest

from asides.values.fork_guard import ForkGuard, call_in_children

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


def _ask_child(check: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


class _Owner:
    """Counts how often it was prepared for a child."""

    def __init__(self) -> None:
        self.forks = ForkGuard()
        self.prepared = 0
        call_in_children(self._prepare)

    def _prepare(self) -> None:
        self.prepared += 1


def test_a_child_knows_that_an_object_is_its_parents() -> None:
    guard = ForkGuard()
    assert _ask_child(lambda: guard.is_in_child and not ForkGuard().is_in_child)
    assert not guard.is_in_child


def test_an_object_is_prepared_once_in_each_child_and_never_in_its_parent() -> None:
    owner = _Owner()
    assert _ask_child(lambda: owner.prepared == 1)
    assert _ask_child(lambda: owner.prepared == 1 and _ask_child(lambda: owner.prepared == 2))
    assert owner.prepared == 0


def test_an_object_that_waits_for_forks_is_still_collected() -> None:
    gone: list[object] = []

    class _Leaving(_Owner):
        def __del__(self) -> None:
            gone.append(self.prepared)

    _Leaving()
    gc.collect()
    assert gone == [0]
    assert _ask_child(lambda: gone == [0])


def test_functions_are_called_in_children_too() -> None:
    calls: list[int] = []
    call_in_children(lambda: calls.append(os.getpid()))
    assert _ask_child(lambda: calls == [os.getpid()])
    assert calls == []
