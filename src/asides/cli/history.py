"""Where `asides chat` keeps conversations: one store in the user's state folder, and only what is asked to be kept.

Not here: the store (store), and what is said (chat).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from asides.conversations.store.sqlite import SqliteStore

FOLDER_VARIABLE = "ASIDES_STATE"
_FILE = "conversations.db"


def state_folder(environ: Mapping[str, str]) -> Path:
    """ASIDES_STATE; else `asides` in XDG_STATE_HOME, or in ~/.local/state."""
    if named := environ.get(FOLDER_VARIABLE, "").strip():
        return Path(named).expanduser()
    if folder := environ.get("XDG_STATE_HOME", "").strip():
        return Path(folder) / "asides"
    home = environ.get("HOME", "").strip() or environ.get("USERPROFILE", "").strip()
    if not home:
        raise ConfigError(f"there is no home folder to keep conversations in. To do: set {FOLDER_VARIABLE}.")
    return Path(home) / ".local" / "state" / "asides"


def open_store(environ: Mapping[str, str]) -> SqliteStore:
    """The store. Its folder is made, for its owner's eyes alone, when it is not there."""
    from asides.conversations.store.sqlite import SqliteStore

    folder = state_folder(environ)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(
            f"the folder for conversations {folder} cannot be made: {problem.strerror or problem}. To do: set "
            f"{FOLDER_VARIABLE} to another one."
        ) from None
    return SqliteStore(folder / _FILE)


def wanted_name(arguments: Namespace, environ: Mapping[str, str]) -> str | None:
    """The conversation that was asked for: by its name, or the last one; None when nothing is to be kept."""
    if arguments.conversation is not None:
        name: str = arguments.conversation.strip()
        if not name:
            raise ConfigError("--conversation needs a name that is not blank.")
        return name
    if not arguments.go_on:
        return None
    with open_store(environ) as store:
        names = store.names()
    if not names:
        raise ConfigError(
            "no conversation is kept yet, so there is none to go on with. To do: `asides chat --conversation NAME` "
            "keeps one, and /keep NAME does in the chat."
        )
    return names[0]


def listing(store: SqliteStore) -> list[str]:
    """A line for each conversation, the last one first."""
    known = [about for name in store.names() if (about := store.about(name)) is not None]
    names = [about.name if about.name.isprintable() else repr(about.name) for about in known]
    width = max(map(len, names), default=0)
    lines = [
        (f"{name:<{width}}", _day(about.updated), f"{about.length:>4} messages", about.heading.model or "")
        for name, about in zip(names, known, strict=True)
    ]
    return ["  ".join(columns).rstrip() for columns in lines]


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%Y-%m-%d %H:%M}"
