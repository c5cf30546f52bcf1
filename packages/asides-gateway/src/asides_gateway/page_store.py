"""`PageStore`: the store of conversations, with what the page keeps beside them. Every method blocks.

It is the store of the command line, so that `asides history` and the page see the same conversations.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from asides.conversations.store import ConversationHeading, ConversationInfo, StoreConflict, tables
from asides.conversations.store.conversation_names import STORE_FILE, make_name
from asides.conversations.store.database_store import DatabaseStore
from asides.database import Database, Queries
from asides.database.sqlite_database import SqliteDatabase
from asides.database.sqlite_file import MEMORY
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.usage import Usage
from asides_gateway import page_tables
from asides_gateway.page_search import search_page
from asides_gateway.page_tables import PageConversation, PageSettings

_PATIENCE = 10.0
"""The seconds to wait for other writers."""


class StoredMessage(msgspec.Struct, frozen=True):
    """A message in its place, and what was noted about it."""

    place: int
    message: Message
    note: bytes | None = None


class PageStore(DatabaseStore):
    """Conversations with their owners, titles, settings and notes; for any number of threads and processes."""

    def __init__(self, place: Path | Database | None) -> None:
        """`place`: the folder of the file, or a database; None: in memory, as long as the process lives."""
        super().__init__(open_page_file(place) if place is None or isinstance(place, Path) else place)

    @property
    def kind(self) -> Literal["memory", "sqlite", "postgres"]:
        """Where the conversations are."""
        if isinstance(self._database, SqliteDatabase):
            return "memory" if self._database.is_memory else "sqlite"
        return "postgres"

    # --- one conversation ---------------------------------------------------------------------------------------------

    def create(self, tenant: str, settings: PageSettings, system: str | None = None) -> PageConversation:
        """Create an empty conversation. `system`: its system prompt."""
        name = make_name("chat")
        heading = ConversationHeading(system, settings.target)

        def work() -> Queries[PageConversation]:
            yield from tables.append(name, (), heading, None, time.time())
            identifier = yield from page_tables.adopt(name, tenant, settings)
            return (yield from _expect(tenant, identifier, name))

        return self._database.run(work)

    def find(self, tenant: str, identifier: str) -> PageConversation | None:
        """The conversation with this id; None if there is none, or if it is another tenant's."""
        return self._database.run(lambda: page_tables.find(tenant, identifier), writes=False)

    def change(self, tenant: str, identifier: str, **changes: str | int | None) -> PageConversation | None:
        """Change settings of a conversation, by their names; None if it is not this tenant's."""

        def work() -> Queries[PageConversation | None]:
            found = yield from page_tables.find(tenant, identifier)
            locked = None if found is None else (yield from tables.lock(found.name))
            if found is None or locked is None or locked.id != found.key:
                return None
            before = yield from page_tables.read_settings(found.key)
            after = msgspec.structs.replace(before, **changes)
            yield from page_tables.write_settings(found.key, after)
            about = locked.about
            if after.target not in (None, about.heading.model):
                heading = ConversationHeading(about.heading.system, after.target)
                yield from tables.append_to(locked, (), heading, None, time.time())
            return (yield from page_tables.find(tenant, identifier))

        return self._database.run(work)

    def read_system(self, conversation: PageConversation) -> str | None:
        """The system prompt of a conversation."""
        found = self._database.run(lambda: tables.about(conversation.name), writes=False)
        return None if found is None else found.heading.system

    def write_system(self, conversation: PageConversation, system: str | None) -> None:
        """Change the system prompt of a conversation without messages."""

        def work() -> Queries[None]:
            locked = yield from tables.lock(conversation.name)
            if locked is not None:
                heading = ConversationHeading(system, locked.about.heading.model)
                yield from tables.append_to(locked, (), heading, None, time.time())

        self._database.run(work)

    def remove(self, tenant: str, identifier: str) -> bool:
        """Delete a conversation, also from the disk. Returns whether it was this tenant's."""

        def work() -> Queries[bool]:
            found = yield from page_tables.find(tenant, identifier)
            return found is not None and (yield from tables.delete(found.name))

        removed = self._database.run(work)
        if removed:
            self._empty_log()
        return removed

    def adopt_fork(self, tenant: str, source: PageConversation, name: str) -> PageConversation:
        """Give a fork of a conversation its owner, its settings and its notes."""

        def work() -> Queries[PageConversation]:
            settings = yield from page_tables.read_settings(source.key)
            identifier = yield from page_tables.adopt(name, tenant, settings)
            found = yield from _expect(tenant, identifier, name)
            yield from page_tables.copy_notes(source.key, name)
            return found

        return self._database.run(work)

    def append(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Add messages at the end. Raises StoreConflict for a conversation that was deleted meanwhile: adding
        would recreate it without an owner.
        """

        def work() -> Queries[ConversationInfo]:
            locked = yield from tables.lock(name)
            if locked is None:
                raise _build_deletion_error(name)
            return (yield from tables.append_to(locked, messages, heading, spent, time.time()))

        return self._database.run(work)

    # --- one turn -----------------------------------------------------------------------------------------------------

    def hold(self, conversation: PageConversation, holder: str, seconds: float) -> bool:
        """Hold a conversation for one turn of any process; False while another turn holds it."""
        return self._database.run(lambda: page_tables.hold(conversation.key, holder, seconds))

    def release(self, conversation: PageConversation, holder: str) -> None:
        """Release a conversation that this turn holds."""
        self._database.run(lambda: page_tables.release(conversation.key, holder))

    def write_notes(self, conversation: PageConversation, notes: Mapping[int, bytes | None]) -> None:
        """Note something about messages, by their places; None: forget what was noted."""

        def work() -> Queries[None]:
            if (yield from page_tables.lock(conversation.key)):
                for place, note in notes.items():
                    yield from page_tables.write_note(conversation.key, place, note)

        self._database.run(work)

    # --- lists --------------------------------------------------------------------------------------------------------

    def list_page(
        self, tenant: str, search: str = "", before: int | None = None, limit: int = 50
    ) -> list[PageConversation]:
        """The conversations of a tenant, the latest changed first: those whose title, name or text has `search` in it,
        and whose last change is before a version.
        """

        def find() -> Queries[list[PageConversation]]:
            if search:
                return (yield from search_page(tenant, search, before, limit))
            return (yield from page_tables.list_latest(tenant, before, limit))

        found = self._database.run(find, writes=False)
        new = [conversation.name for conversation in found if not conversation.id]
        if not new:
            return found

        def work() -> Queries[None]:
            for name in new:
                # Those of the command line get their id when they are first listed. Another process may have done it.
                yield from page_tables.adopt(name, tenant, PageSettings())

        self._database.run(work)
        # One that was created since then is listed the next time.
        return [conversation for conversation in self._database.run(find, writes=False) if conversation.id]

    def read_messages(self, conversation: PageConversation, before: int | None, limit: int) -> list[StoredMessage]:
        """The last messages before a place, in their order."""
        rows = self._database.run(lambda: page_tables.read_messages(conversation.key, before, limit), writes=False)
        return [StoredMessage(*row) for row in rows]


def open_page_file(folder: Path | None) -> SqliteDatabase:
    """The SQLite file of the page in a folder, which is created; None: in memory."""
    if folder is not None:
        _make_folder(folder)
    path = MEMORY if folder is None else folder / STORE_FILE
    return SqliteDatabase(path, page_tables.has_tables, page_tables.create, patience=_PATIENCE)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(
            f"the folder for conversations {folder} cannot be created: {problem.strerror or problem}. Name another one."
        ) from None


def _expect(tenant: str, identifier: str | None, name: str) -> Queries[PageConversation]:
    """The conversation that was just adopted."""
    found = None if identifier is None else (yield from page_tables.find(tenant, identifier))
    if found is None:
        raise _build_deletion_error(name)
    return found


def _build_deletion_error(name: str) -> StoreConflict:
    return StoreConflict(
        "this conversation was deleted meanwhile. Begin another one.", name=name, expected=0, found=None
    )
