"""One wire language each: client half and server half live together. They know no HTTP library and no provider.

Ours are found by name in a table; a language of your own is found once it is registered, or installed with a package
that names it. Not here: what a dialect has to have (dialect).
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
    from asides.dialects.dialect import Dialect
    from asides.providers.provider import Provider

# The module of each dialect; loaded when first used.
DIALECTS = {
    "anthropic": "asides.dialects.anthropic",
    "bedrock": "asides.dialects.bedrock",
    "cohere": "asides.dialects.cohere",
    "gemini": "asides.dialects.gemini",
    "ollama": "asides.dialects.ollama",
    "openai_chat": "asides.dialects.openai_chat",
    "openai_responses": "asides.dialects.openai_responses",
}

# Other names for them, as recordings and other projects have them.
ALIASES = {
    "anthropic_messages": "anthropic",
    "bedrock_converse": "bedrock",
}

ENTRY_POINTS = "asides.dialects"
"""The group in which a package names dialects that it brings: `lines = "my_package.lines:dialect"`."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLACE = re.compile(r"[\w.]+:[\w.]+")

_registered: dict[str, Dialect | str] = {}


def resolve_alias(name: str) -> str:
    """The name of the dialect that goes by this name too."""
    return ALIASES.get(name, name)


@cache
def find_dialect(name: str) -> Dialect:
    """The dialect of this name, loaded when it is first asked for."""
    module = DIALECTS.get(resolve_alias(name))
    if module is not None:
        return cast("Dialect", import_module(module).dialect)
    told = _registered.get(name) or _installed().get(name)
    if told is None:
        raise Unsupported(
            f"no dialect is called {name!r}; there are {', '.join(names())}. To do: one of your own is made known with "
            "register_dialect(name, dialect)."
        )
    return _checked(name, _load(name, told) if isinstance(told, str) else told)


def is_known(name: str) -> bool:
    """Whether there is a dialect of this name; it is not loaded for that."""
    return resolve_alias(name) in DIALECTS or name in _registered or name in _installed()


def names() -> tuple[str, ...]:
    """Every dialect, by name."""
    return tuple(sorted({*DIALECTS, *list_third_party()}))


def list_third_party() -> tuple[str, ...]:
    """The dialects that are not ours: registered, or brought by an installed package."""
    return tuple(sorted({*_registered, *_installed()} - set(DIALECTS)))


def register_dialect(name: str, dialect: Dialect | str) -> None:
    """Make a dialect known under a name, for rows, `decode`, the stage and everything else in this process.

    `dialect` is the object, or "module:object", which is then imported when the dialect is first used. A name of your
    own may be registered again and means the newer one from then on; the names of ours are taken. A package that is
    installed can name its dialects as entry points of the group "asides.dialects" instead.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name for a dialect; use lower case letters, digits and '_'.")
    if resolve_alias(name) in DIALECTS:
        raise ConfigError(f"{name!r} is a dialect of asides; give yours another name.")
    if isinstance(dialect, str):
        if not _PLACE.fullmatch(dialect):
            raise ConfigError(f"the dialect {name!r} is given as text that is not module:object.")
    else:
        _checked(name, dialect)
    _registered[name] = dialect
    find_dialect.cache_clear()


@contextmanager
def register_temporarily(name: str, dialect: Dialect | str) -> Generator[None]:
    """The dialect under this name inside the block, and whatever was there before behind it; for tests."""
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
def _plain_row_of_ours(name: str) -> Provider:
    from asides.providers.table import plain_row as ours

    return ours(name)


def plain_row(name: str) -> Provider:
    """The row for a dialect when no provider is named: it can be anybody. A dialect of your own may have one itself, as
    its `plain_row`.
    """
    if (spoken := resolve_alias(name)) in DIALECTS:
        return _plain_row_of_ours(spoken)
    from asides.providers.provider import Provider, Quirks

    own = getattr(find_dialect(name), "plain_row", None)
    if isinstance(own, Provider):
        return own
    return Provider(name=name.replace("_", "-"), dialect=name, key="optional", quirks=Quirks(path=""))


@cache
def _installed() -> dict[str, str]:
    """What installed packages bring, as name → "module:object"."""
    from importlib.metadata import entry_points

    found = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    return {name: place for name, place in found.items() if _NAME.fullmatch(name)}


def _load(name: str, place: str) -> Any:
    module, _, path = place.partition(":")
    try:
        found: Any = import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as problem:
        raise ConfigError(f"the dialect {name!r} is said to be {place}, which does not load: {problem}.") from None
    return found


def _checked(name: str, dialect: Any) -> Dialect:
    """The dialect, if it has what a dialect has."""
    from asides.dialects.dialect import Dialect

    methods = [name for name, value in vars(Dialect).items() if callable(value) and not name.startswith("_")]
    missing = [method for method in methods if not callable(getattr(dialect, method, None))]
    if missing:
        raise ConfigError(
            f"the dialect {name!r} lacks {', '.join(missing)}. To do: have every method of "
            "asides.dialects.dialect.Dialect, the server half too."
        )
    if getattr(dialect, "name", None) != name:
        raise ConfigError(f"the dialect {name!r} calls itself {getattr(dialect, 'name', None)!r}; use one name.")
    return cast(Dialect, dialect)
