"""Forks: a child inherits objects, but not their threads, and shares their sockets and files with its parent."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import MethodType
from weakref import WeakMethod


class ForkGuard:
    """Remembers the process in which it was made."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_in_child(self) -> bool:
        """True in a forked child of that process."""
        return self._process != os.getpid()


_calls: dict[Callable[[], Callable[[], object] | None], None] = {}
"""References, in the order in which they were added."""


def call_in_children(prepare: Callable[[], object]) -> None:
    """Call this in every later forked child, before any other code runs there. A method does not keep its object alive.

    Without effect on a system that has no forks.
    """
    reference = WeakMethod(prepare, _forget) if isinstance(prepare, MethodType) else lambda: prepare
    _calls[reference] = None


def _forget(reference: WeakMethod[MethodType]) -> None:
    _calls.pop(reference, None)


def _prepare_child() -> None:
    for reference in list(_calls):
        if (prepare := reference()) is not None:
            prepare()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_prepare_child)
