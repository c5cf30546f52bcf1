"""The conversations that `asides chat` saves on request: one store in the user's state folder.

Not here: the store itself (conversations/store), and the chat.
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
STORE_FILE = "conversations.db"


def find_state_folder(environ: Mapping[str, str]) -> Path:
    """ASIDES_STATE; else `asides` in XDG_STATE_HOME, or in ~/.local/state."""
    if named := environ.get(FOLDER_VARIABLE, "").strip():
        return Path(named).expanduser()
    if folder := environ.get("XDG_STATE_HOME", "").strip():
        return Path(folder) / "asides"
    home = environ.get("HOME", "").strip() or environ.get("USERPROFILE", "").strip()
    if not home:
        raise ConfigError(f"there is no home folder to save conversations in. To do: set {FOLDER_VARIABLE}.")
    return Path(home) / ".local" / "state" / "asides"


def open_store(environ: Mapping[str, str]) -> SqliteStore:
    """Open the store. A missing folder is created, readable by its owner alone."""
    from asides.conversations.store.sqlite import SqliteStore

    folder = find_state_folder(environ)
    try:
        make_private_folder(folder)
    except OSError as error:
        raise ConfigError(
            f"the folder for conversations {folder} cannot be created: {error.strerror or error}. To do: set "
            f"{FOLDER_VARIABLE} to another one."
        ) from None
    return SqliteStore(folder / STORE_FILE)


def make_private_folder(folder: Path) -> None:
    """Create the folder and those above it that are missing, each for its owner alone. Existing ones do not change."""
    if not folder.is_dir():
        if folder.parent != folder:
            make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def read_conversation_name(arguments: Namespace, environ: Mapping[str, str]) -> str | None:
    """The name from `--conversation`, or with `--continue` that of the last conversation; None without either."""
    if arguments.conversation is not None:
        name: str = arguments.conversation.strip()
        if not name:
            raise ConfigError("--conversation needs a name that is not blank.")
        return name
    if not arguments.continue_last:
        return None
    with open_store(environ) as store:
        names = store.names()
    if not names:
        raise ConfigError(
            "no conversation is saved yet, so there is none to continue. To do: save one with `asides chat "
            "--conversation NAME`, or with /keep NAME in the chat."
        )
    return names[0]


def list_conversations(store: SqliteStore) -> list[str]:
    """A line for each conversation, the last one first."""
    infos = [info for name in store.names() if (info := store.about(name)) is not None]
    names = [info.name if info.name.isprintable() else repr(info.name) for info in infos]
    width = max(map(len, names), default=0)
    lines = [
        (f"{name:<{width}}", _format_time(info.updated), f"{info.length:>4} messages", info.heading.model or "")
        for name, info in zip(names, infos, strict=True)
    ]
    return ["  ".join(cells).rstrip() for cells in lines]


def _format_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%Y-%m-%d %H:%M}"
