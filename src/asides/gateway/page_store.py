"""`PageStore`: the store of conversations, with what the page keeps beside them. Every method blocks.

It is the file of the command line, so that `asides history` and the page see the same conversations. Not here: the SQL
(page_tables), and who asks (conversations_api).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from asides.conversations.store import ConversationHeading, ConversationInfo, StoreConflict, tables
from asides.conversations.store.conversation_names import STORE_FILE, make_name
from asides.conversations.store.sqlite import MEMORY, SqliteStore
from asides.database.sqlite_file import READ, WRITE, SqliteFile
from asides.gateway import page_tables
from asides.gateway.page_tables import PageConversation, PageSettings
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.usage import Usage

if TYPE_CHECKING:
    from sqlite3 import Connection

_PATIENCE = 10.0
"""The seconds to wait for other writers."""


class StoredMessage(msgspec.Struct, frozen=True):
    """A message in its place, and what was noted about it."""

    place: int
    message: Message
    note: bytes | None = None


class PageStore(SqliteStore):
    """Conversations with their owners, titles, settings and notes; for any number of threads and processes."""

    def __init__(self, folder: Path | None) -> None:
        """`folder`: where the file is; None: in memory, as long as the process lives."""
        if folder is not None:
            _make_folder(folder)
        path = MEMORY if folder is None else folder / STORE_FILE
        self._file = SqliteFile(path, page_tables.has_tables, page_tables.create, patience=_PATIENCE)
        self.is_memory = folder is None

    # --- one conversation ---------------------------------------------------------------------------------------------

    def create(self, tenant: str, settings: PageSettings) -> PageConversation:
        """Create an empty conversation."""
        name = make_name("chat")
        heading = ConversationHeading(None, settings.target)

        def work(connection: Connection) -> PageConversation:
            tables.append(connection, name, (), heading, None, time.time())
            identifier = page_tables.adopt(connection, name, tenant, settings)
            return _expect(page_tables.find(connection, tenant, identifier))

        return self._file.transact(WRITE, work)

    def find(self, tenant: str, identifier: str) -> PageConversation | None:
        """The conversation with this id; None if there is none, or if it is another tenant's."""
        return self._file.transact(READ, lambda connection: page_tables.find(connection, tenant, identifier))

    def change(self, tenant: str, identifier: str, **changes: str | int | None) -> PageConversation | None:
        """Change settings of a conversation, by their names; None if it is not this tenant's."""

        def work(connection: Connection) -> PageConversation | None:
            found = page_tables.find(connection, tenant, identifier)
            if found is None:
                return None
            before = page_tables.read_settings(connection, found.key)
            after = msgspec.structs.replace(before, **changes)
            page_tables.write_settings(connection, found.key, after)
            about = tables.about(connection, found.name)
            if about is not None and after.target not in (None, about.heading.model):
                heading = ConversationHeading(about.heading.system, after.target)
                tables.append(connection, found.name, (), heading, None, time.time())
            return page_tables.find(connection, tenant, identifier)

        return self._file.transact(WRITE, work)

    def remove(self, tenant: str, identifier: str) -> bool:
        """Delete a conversation, also from the disk. Returns whether it was this tenant's."""

        def work(connection: Connection) -> bool:
            found = page_tables.find(connection, tenant, identifier)
            return found is not None and tables.delete(connection, found.name)

        removed = self._file.transact(WRITE, work)
        if removed:
            self._file.empty_log()
        return removed

    def adopt_fork(self, tenant: str, source: PageConversation, name: str) -> PageConversation:
        """Give a fork of a conversation its owner, its settings and its notes."""

        def work(connection: Connection) -> PageConversation:
            settings = page_tables.read_settings(connection, source.key)
            identifier = page_tables.adopt(connection, name, tenant, settings)
            page_tables.copy_notes(connection, source.key, name)
            return _expect(page_tables.find(connection, tenant, identifier))

        return self._file.transact(WRITE, work)

    def append(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Add messages at the end. Raises StoreConflict for a conversation that was deleted meanwhile: one that came
        back by itself would be nobody's.
        """

        def work(connection: Connection) -> ConversationInfo:
            if tables.about(connection, name) is None:
                raise StoreConflict(
                    "this conversation was deleted meanwhile. To do: begin another one.",
                    name=name,
                    expected=0,
                    found=None,
                )
            return tables.append(connection, name, messages, heading, spent, time.time())

        return self._file.transact(WRITE, work)

    # --- one turn -----------------------------------------------------------------------------------------------------

    def hold(self, conversation: PageConversation, holder: str, seconds: float) -> bool:
        """Hold a conversation for one turn of any process; False while another turn holds it."""
        now = time.time()
        return self._file.transact(
            WRITE, lambda connection: page_tables.hold(connection, conversation.key, holder, now, now + seconds)
        )

    def release(self, conversation: PageConversation, holder: str) -> None:
        """Release a conversation that this turn holds."""
        self._file.transact(WRITE, lambda connection: page_tables.release(connection, conversation.key, holder))

    def write_notes(self, conversation: PageConversation, notes: Mapping[int, bytes | None]) -> None:
        """Note something about messages, by their places; None: forget what was noted."""

        def work(connection: Connection) -> None:
            for place, note in notes.items():
                page_tables.write_note(connection, conversation.key, place, note)

        self._file.transact(WRITE, work)

    # --- lists --------------------------------------------------------------------------------------------------------

    def list_page(
        self, tenant: str, search: str = "", before: int | None = None, limit: int = 50
    ) -> list[PageConversation]:
        """The conversations of a tenant, the latest changed first."""
        found = self._file.transact(
            READ, lambda connection: page_tables.list_page(connection, tenant, search, before, limit)
        )
        new = [conversation.name for conversation in found if not conversation.id]
        if not new:
            return found

        def work(connection: Connection) -> list[PageConversation]:
            for name in new:
                # Those of the command line get their id when they are first listed. Another process may have done it.
                page_tables.adopt_missing(connection, name, tenant)
            return page_tables.list_page(connection, tenant, search, before, limit)

        return self._file.transact(WRITE, work)

    def read_messages(self, conversation: PageConversation, before: int | None, limit: int) -> list[StoredMessage]:
        """The last messages before a place, in their order."""
        rows = self._file.transact(
            READ,
            lambda connection: page_tables.read_messages(connection, conversation.key, before, limit),
        )
        return [StoredMessage(*row) for row in rows]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(
            f"the folder for conversations {folder} cannot be created: {problem.strerror or problem}. To do: name "
            "another one."
        ) from None


def _expect(found: PageConversation | None) -> PageConversation:
    if found is None:
        raise RuntimeError("a conversation that was just written is there.")
    return found
