"""The conversations that the command line saves: in the user's state folder, or in the database of the setting `store`.

`ask` and `chat` save under a name when one is given. A question without a name is kept as the setting
keep_conversations says.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from asides.cli.layout import shorten
from asides.cli.own_conversations import add_own, list_own
from asides.conversations.store.conversation_names import STORE_FILE, is_unnamed, make_name
from asides.settings_files import STATE_VARIABLE, find_state_folder
from asides.values.errors import ConfigError, to_line

if TYPE_CHECKING:
    from asides.client import Client
    from asides.conversations.store import ConversationInfo
    from asides.conversations.store.database_store import DatabaseStore
    from asides.conversations.sync import Conversation

_TITLE_WIDTH = 60


def open_store(environ: Mapping[str, str], *, create: bool = True) -> DatabaseStore:
    """Open the store: the database of the settings, else the file in the state folder. A missing folder is created,
    readable by its owner alone; without `create`, a missing file is an empty store in memory.
    """
    from asides.cli.private_files import make_private_folder
    from asides.conversations.store.sqlite import MEMORY, SqliteStore

    if (url := find_store_url(environ)) is not None:
        from asides.conversations.store.postgres_store import PostgresStore

        return PostgresStore(url)
    folder = find_state_folder(environ)
    if not create and not (folder / STORE_FILE).exists():
        return SqliteStore(MEMORY)
    try:
        make_private_folder(folder)
    except OSError as error:
        raise ConfigError(
            f"the folder for conversations {folder} cannot be created: {error.strerror or error}. Set "
            f"{STATE_VARIABLE} to another one."
        ) from None
    return SqliteStore(folder / STORE_FILE)


def find_store_url(environ: Mapping[str, str]) -> str | None:
    """The database that the settings name; those of files that the user trusts. None: the file in the state folder."""
    from asides.cli.trust import is_trusted
    from asides.settings import load_settings

    return load_settings(environ, trusts=lambda path, content: is_trusted(environ, path, content)).store


def note_own(store: DatabaseStore, name: str, environ: Mapping[str, str]) -> None:
    """Note that this user has this conversation, in a store that others share."""
    if store.is_shared:
        add_own(find_state_folder(environ), name)


def _list_latest(store: DatabaseStore, environ: Mapping[str, str]) -> Sequence[str]:
    """The names of the user's conversations, the latest first. In a file all are the user's."""
    return list_own(find_state_folder(environ)) if store.is_shared else store.names()


def read_conversation_name(arguments: Namespace, environ: Mapping[str, str]) -> str | None:
    """The name from `--conversation`, or with `--continue` that of the last conversation; None without either."""
    if arguments.conversation is not None:
        named: str = arguments.conversation.strip()
        if not named:
            raise ConfigError("--conversation needs a name that is not blank.")
        return named
    if not arguments.continue_last:
        return None
    with open_store(environ, create=False) as store:
        # Another process may have deleted it.
        name = next((each for each in _list_latest(store, environ) if store.about(each) is not None), None)
    if name is None:
        raise ConfigError(
            "no conversation is saved yet, so there is none to continue. Save one with `--conversation NAME`, "
            "or with /keep NAME in the chat; the setting keep_conversations says what is saved without a name."
        )
    return name


class SavedConversation(NamedTuple):
    """The conversation that the arguments name, and what is saved of it."""

    store: DatabaseStore | None
    name: str | None
    about: ConversationInfo | None
    """None for a new one."""

    @property
    def model(self) -> str | None:
        """The model of its last question."""
        return None if self.about is None else self.about.heading.model

    def open(self, client: Client) -> Conversation:
        """The conversation; one that is saved nowhere, if none was named."""
        from asides.conversations.sync import Conversation

        return Conversation(client=client, store=self.store, name=self.name)


def find_conversation(arguments: Namespace, environ: Mapping[str, str], stack: ExitStack) -> SavedConversation:
    """Find the conversation of `--conversation` or `--continue`. `stack` closes its store."""
    name = read_conversation_name(arguments, environ)
    if name is None:
        return SavedConversation(None, None, None)
    store = stack.enter_context(open_store(environ))
    note_own(store, name, environ)
    return SavedConversation(store, name, store.about(name))


def make_unnamed(kind: str, environ: Mapping[str, str], stack: ExitStack) -> SavedConversation:
    """A new conversation with a name of ours, which begins with its kind and the time."""
    store, name = stack.enter_context(open_store(environ)), make_name(kind)
    note_own(store, name, environ)
    return SavedConversation(store, name, None)


def keep_unnamed(conversation: Conversation, client: Client, environ: Mapping[str, str], *, all_of_them: bool) -> str:
    """Save a conversation that has no name. Unless all are kept, the previous one is deleted."""
    from asides.conversations.sync import Conversation

    name = make_name("ask" if all_of_them else "last")
    with open_store(environ) as store:
        kept = Conversation(conversation.model, system=conversation.system, client=client, store=store, name=name)
        kept.extend(conversation.messages, usage=conversation.usage)
        note_own(store, name, environ)
        if not all_of_them:
            # Only those before it: of two questions at a time, the later one stays.
            names = _list_latest(store, environ)
            for earlier in names[names.index(name) + 1 :] if name in names else ():
                # A name of ours that begins with "last" gives way to the next one.
                if is_unnamed(earlier, "last"):
                    store.delete(earlier)
    return name


def keep_for_chat(saved: SavedConversation, environ: Mapping[str, str]) -> SavedConversation:
    """Keep a question that a chat continues: the next question without a name would delete it."""
    if saved.store is None or saved.name is None or not is_unnamed(saved.name, "last"):
        return saved
    name = make_name("chat")
    saved.store.rename(saved.name, name)
    note_own(saved.store, name, environ)
    return saved._replace(name=name)


def describe_conversation(conversation: Conversation) -> str:
    """What a person knows a conversation by: its name, or else its first question; and its length."""
    name = conversation.name or ""
    first = next((message.text for message in conversation.messages if message.role == "user"), "")
    title = f'"{shorten(to_line(first), _TITLE_WIDTH)}"' if not name or is_unnamed(name) else show_name(name)
    count = len(conversation)
    return f"{title}, {count} {'message' if count == 1 else 'messages'}"


def show_name(name: str) -> str:
    """A name as it may be printed, on one line and without control characters."""
    return name if name.isprintable() else repr(name)


def list_conversations(store: DatabaseStore) -> list[str]:
    """A line for each conversation, the last one first."""
    infos = store.list_infos()
    names = [show_name(info.name) for info in infos]
    width = max(map(len, names), default=0)
    lines = [
        (f"{name:<{width}}", format_time(info.updated), f"{info.length:>4} messages", info.heading.model or "")
        for name, info in zip(names, infos, strict=True)
    ]
    return ["  ".join(cells).rstrip() for cells in lines]


def format_time(seconds: float) -> str:
    """A time as the clock on the wall shows it, to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%Y-%m-%d %H:%M}"
