"""Targets that were found before: equal arguments and variables give the same object, `KnownTargets.find(…)`.

Messages store what was encoded for a target beside themselves, so calls to one target must share one object. Not here:
how a target is found (find).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from asides.providers.credentials import collect_secrets
from asides.providers.endpoint import Choice
from asides.providers.find import find_target
from asides.providers.provider import Provider, Target

Key = TypeVar("Key")
Value = TypeVar("Value")

_MOST_TARGETS = 256
_MOST_CHOICES = 32


class KnownTarget:
    """A target as its row describes it, and for each kind of call the dialect and the target that it gets."""

    __slots__ = ("accounts", "choices", "environment", "found")

    def __init__(self, found: Target, environment: Mapping[str, str | None]) -> None:
        self.found = found
        self.environment = tuple(environment.items())
        """The variables that decided the address."""
        self.choices: dict[object, tuple[Choice, Target]] = {}
        self.accounts: dict[tuple[int, str], tuple[Target, Target]] = {}

    def keep_choice(self, kind: object, choice: Choice, target: Target) -> tuple[Choice, Target]:
        """Store the target for a kind of call. Returns the first one that was stored, also with many threads."""
        return _store(self.choices, kind, (choice, target), _MOST_CHOICES)

    def find_for_account(self, target: Target, account: str) -> Target:
        """The target of a choice, for one account: the same object each time."""
        key = (id(target), account)
        known = self.accounts.get(key)
        if known is None or known[0] is not target:
            # Stored with its target, so that no other one can take that id.
            self.accounts.pop(key, None)
            made = (target, msgspec.structs.replace(target, account=account))
            known = _store(self.accounts, key, made, _MOST_CHOICES)
        return known[1]


class KnownTargets:
    """The targets of some rows. Safe to use from many threads. Holds no secret but those of the rows themselves."""

    def __init__(self, rows: tuple[Provider, ...] = ()) -> None:
        self._rows = rows
        self._known: dict[tuple[str, str | None, str | None], KnownTarget] = {}

    def find(self, model: str, base_url: str | None, family: str | None) -> KnownTarget:
        """Find a target as `find_target` does. A variable that has changed since counts."""
        key = (model, base_url, family)
        # Text alone: anything else is an error, which may not even hash.
        known = self._known.get(key) if type(model) is str else None
        if known is not None:
            for name, value in known.environment:
                if os.environ.get(name) != value:
                    break
            else:
                return known
        environ = _NotedEnvironment()
        found = find_target(model, base_url=base_url, family=family, rows=self._rows, environ=environ)
        fresh = KnownTarget(found, environ.read)
        if type(model) is not str or self._brings_secrets(found, environ):
            return fresh
        if known is not None:
            self._known.pop(key, None)
        return _store(self._known, key, fresh, _MOST_TARGETS)

    def _brings_secrets(self, found: Target, environ: Mapping[str, str]) -> bool:
        """Whether the address or a variable of this call brought a secret, which must not outlive the call."""
        own = {value for row in self._rows for value in collect_secrets(Target(row, "", ""), None, {})}
        return not own.issuperset(collect_secrets(found, None, environ))


class _NotedEnvironment(Mapping[str, str]):
    """The environment of the process. Notes each variable that was looked for."""

    def __init__(self) -> None:
        self.read: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        value = self.read[name] = os.environ.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def _store(known: dict[Key, Value], key: Key, value: Value, most: int) -> Value:
    if len(known) >= most:
        known.clear()
    return known.setdefault(key, value)


SHARED_TARGETS = KnownTargets()
"""The targets of our own rows, for all callers that have none."""
