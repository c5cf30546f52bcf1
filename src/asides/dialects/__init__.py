"""Dialects, one folder per wire language, client half and server half together; and how a dialect is found by name.

A third-party dialect is found once it is registered, or when an installed package declares it. Dialects know no HTTP
library and no provider.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from asides.values.errors import ConfigError, Unsupported

if TYPE_CHECKING:
    from asides.dialects.dialect import Dialect, DialectFacts
    from asides.providers.provider import Provider
    from asides.values.thinking import Thought

DIALECTS = (
    *("anthropic", "bedrock", "cohere", "gemini", "gemini_interactions", "ollama", "openai_chat", "openai_responses"),
)
"""Our dialects. Each is a folder here, loaded when it is first used."""

# The names that recordings and other projects use for them.
ALIASES = {
    "anthropic_messages": "anthropic",
    "bedrock_converse": "bedrock",
}

ENTRY_POINTS = "asides.dialects"
"""The group of entry points in which a package declares its dialects: `lines = "my_package.lines:dialect"`."""

_NAME = r"[a-z][a-z0-9_]*"
_PLACE = r"[\w.]+:[\w.]+"

_registered: dict[str, Dialect | str] = {}


def resolve_alias(name: str) -> str:
    """Return the name of the dialect for this name or alias."""
    return ALIASES.get(name, name)


@cache
def find_dialect(name: str) -> Dialect:
    """Return the dialect of this name, loaded on first use. Raises Unsupported if there is none."""
    if (resolved := resolve_alias(name)) in DIALECTS:
        return cast("Dialect", import_module(f"asides.dialects.{resolved}").dialect)
    found = _registered.get(name) or _list_installed().get(name)
    if found is None:
        raise Unsupported(
            f"unknown dialect {name!r}; the dialects are {', '.join(list_dialects())}. Register your own with "
            "register_dialect(name, dialect)."
        )
    return _validate(name, _load(name, found) if isinstance(found, str) else found)


def load_dialect(name: str) -> None:
    """Import the modules of a dialect that encode requests and decode replies."""
    if (resolved := resolve_alias(name)) in DIALECTS:
        for part in ("encode", "decode"):
            import_module(f"asides.dialects.{resolved}.{part}")


def is_known(name: str) -> bool:
    """Whether there is a dialect of this name. The dialect is not loaded."""
    return resolve_alias(name) in DIALECTS or name in _registered or name in _list_installed()


def list_dialects() -> tuple[str, ...]:
    """Return the names of all dialects."""
    return tuple(sorted({*DIALECTS, *list_third_party()}))


def list_third_party() -> tuple[str, ...]:
    """Return the names of the dialects that are registered, or declared by an installed package."""
    if not (_registered or _list_installed()):
        return ()  # as almost everywhere
    return tuple(sorted({*_registered, *_list_installed()} - set(DIALECTS)))


def find_facts(name: str) -> DialectFacts:
    """Return the facts that a dialect declares about itself; the defaults if it declares none."""
    from asides.dialects.dialect import DialectFacts

    facts = getattr(find_dialect(name), "facts", None)
    return facts if isinstance(facts, DialectFacts) else DialectFacts()


def is_made_elsewhere(thought: Thought, name: str) -> bool:
    """Whether a thought cannot go back in this dialect: it did not come as a block of it, or, if its origin is unknown,
    its seals were made in another dialect. False if the seal kinds of the dialect are not known.
    """
    facts = find_facts(name)
    kinds = {seal.kind for seal in thought.seals if seal.value and seal.origin is None}
    if (
        facts.thinks_in_blocks
        and thought.source in ("field", "tags")
        and not kinds.intersection(facts.seal_kinds or ())
    ):
        return True
    own = facts.seal_kinds
    # Chat hosts whose content list holds thinking may sign it too.
    if own is None or (thought.via == "content" and not facts.thinks_in_blocks):
        return False
    if not kinds and not facts.thinks_in_blocks:
        return thought.source not in ("field", "tags")
    return any(kind not in own and kind in (find_facts(other).seal_kinds or ()) for kind in kinds for other in DIALECTS)


def register_dialect(name: str, dialect: Dialect | str) -> None:
    """Register a dialect under a name, for rows, `decode`, the stage and everything else in this process.

    `dialect` is the object, or "module:object", which is then imported when the dialect is first used. Registering a
    name again replaces the earlier dialect; the names of our dialects are taken. An installed package can declare its
    dialects as entry points of the group "asides.dialects" instead.
    """
    if not re.fullmatch(_NAME, name):
        raise ConfigError(f"{name!r} is not a valid dialect name; use lower case letters, digits and '_'.")
    if resolve_alias(name) in DIALECTS:
        raise ConfigError(f"{name!r} is a dialect of asides; give yours another name.")
    if not isinstance(dialect, str):
        _validate(name, dialect)
    elif not re.fullmatch(_PLACE, dialect):
        raise ConfigError(f"the dialect {name!r} is given as a text that is not module:object.")
    _registered[name] = dialect
    find_dialect.cache_clear()


@contextmanager
def register_temporarily(name: str, dialect: Dialect | str) -> Generator[None]:
    """Register a dialect inside the block, and restore the earlier one after it; for tests."""
    before = _registered.get(name)
    register_dialect(name, dialect)
    try:
        yield
    finally:
        if before is None:
            del _registered[name]
        else:
            _registered[name] = before
        find_dialect.cache_clear()


@cache
def _find_own_plain_row(name: str) -> Provider:
    from asides.providers.table import plain_row as find_row

    return find_row(name)


def plain_row(name: str) -> Provider:
    """Return the row for a dialect without a provider. A third-party dialect may have one as its `plain_row`."""
    if (resolved := resolve_alias(name)) in DIALECTS:
        return _find_own_plain_row(resolved)
    from asides.providers.provider import Provider, Quirks

    own = getattr(find_dialect(name), "plain_row", None)
    if isinstance(own, Provider):
        return own
    return Provider(name=name.replace("_", "-"), dialect=name, key="optional", quirks=Quirks(path=""))


@cache
def _list_installed() -> dict[str, str]:
    """Return the dialects that installed packages declare, as name → "module:object"."""
    from importlib.metadata import entry_points

    found = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    return {name: place for name, place in found.items() if re.fullmatch(_NAME, name)}


def _load(name: str, place: str) -> Any:
    module, _, path = place.partition(":")
    try:
        found: Any = import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as problem:
        raise ConfigError(
            f"the dialect {name!r} is registered as {place}, which cannot be loaded: {problem}."
        ) from None
    return found


def _validate(name: str, dialect: Any) -> Dialect:
    """Return the dialect. Raises ConfigError if it lacks a method of the protocol, or has another name."""
    from asides.dialects.dialect import Dialect

    methods = [name for name, value in vars(Dialect).items() if callable(value) and not name.startswith("_")]
    missing = [method for method in methods if not callable(getattr(dialect, method, None))]
    if missing:
        raise ConfigError(
            f"the dialect {name!r} lacks {', '.join(missing)}. Have every method of "
            "asides.dialects.dialect.Dialect, the server half too."
        )
    if getattr(dialect, "name", None) != name:
        raise ConfigError(f"the dialect {name!r} has the name {getattr(dialect, 'name', None)!r}; use one name.")
    return cast(Dialect, dialect)
