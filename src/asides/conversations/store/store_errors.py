"""What SQLite complains about, in words that can be acted on. Never with anything that is in the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from asides.conversations.store.protocol import StoreError

if TYPE_CHECKING:
    import sqlite3


def missing_folder(path: Path) -> StoreError:
    """The file cannot be made where it was asked for."""
    return StoreError(f"the folder of the store {path} does not exist. To do: create it, or name another place.")


def newer(path: str, found: int, known: int) -> StoreError:
    """A later asides wrote it."""
    return StoreError(
        f"the store {path} was written by a newer asides (its form is {found}, this one knows up to {known}). To do: "
        "upgrade asides, or use another file."
    )


def foreign(path: str) -> StoreError:
    """A database, and somebody else's."""
    return StoreError(
        f"{path} is a database of another program, not a store of conversations. To do: use another file."
    )


def unreadable(name: str, place: int) -> StoreError:
    """A row that does not read as what it should be."""
    return StoreError(
        f"message {place} of the conversation {name!r} does not read: it is damaged, or a newer asides wrote it. To "
        "do: upgrade asides, or restore the store from a backup."
    )


def damaged(path: str) -> StoreError:
    """A database that does not hold together."""
    return StoreError(
        f"the store {path} is damaged. To do: restore it from a backup, or move it away and save what can be saved "
        "with the .recover command of sqlite3."
    )


def unreadable_head(name: str) -> StoreError:
    """What stands above the messages does not read."""
    return StoreError(
        f"the head of the conversation {name!r} does not read: it is damaged, or a newer asides wrote it. To do: "
        "upgrade asides, or restore the store from a backup."
    )


def unwritable() -> StoreError:
    """Words that no file can hold."""
    return StoreError(
        "the store cannot take half a character (a lone surrogate). To do: look for one in the name, the model and the "
        "system prompt of the conversation."
    )


def impossible_path(path: str, reason: str) -> StoreError:
    """No file can be called so."""
    return StoreError(f"there cannot be a store at {path!r}: {reason}. To do: name another place.")


def is_busy(problem: sqlite3.Error) -> bool:
    """Whether others are at it, and it may be tried again."""
    import sqlite3

    return (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def as_store_error(problem: sqlite3.Error, path: str, patience: float) -> StoreError:
    """The error for what SQLite said. Its own words are about the file, never about what is in it."""
    import sqlite3

    code = getattr(problem, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            said = (
                f"the store {path} was busy with others for {patience:g} seconds. To do: try again, or give patience="
            )
        case sqlite3.SQLITE_CANTOPEN:
            said = _cannot_open(Path(path))
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            said = (
                f"the store {path} cannot be written to. To do: allow writing to the file and to its folder, or name "
                "another place"
            )
        case sqlite3.SQLITE_NOTADB:
            said = f"{path} is not a database. To do: use another file, or move this one away"
        case sqlite3.SQLITE_CORRUPT:
            return damaged(path)
        case sqlite3.SQLITE_FULL:
            said = f"there is no room left on the disk of the store {path}. To do: make some; nothing was lost"
        case _:
            said = f"the store {path} failed: {problem}. To do: check the disk and the file"
    return StoreError(f"{said}.")


def _cannot_open(path: Path) -> str:
    if path.is_dir():
        return f"the store {path} is a folder. To do: name a file"
    return (
        f"the store {path} cannot be opened. To do: allow reading and writing of the file and its folder, or name "
        "another place"
    )
