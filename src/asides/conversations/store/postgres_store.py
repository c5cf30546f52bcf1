"""`PostgresStore`: conversations in a PostgreSQL database, for many machines. Needs the extra `postgres`."""

from __future__ import annotations

from asides.conversations.store.database_store import DatabaseStore
from asides.database.migrate import MigratedPostgres


class PostgresStore(DatabaseStore):
    """A store in a PostgreSQL database, which many machines may use at a time. `url`: postgresql://user@host/database.

    It connects when it is first needed, and then creates or upgrades its tables, in the schema `asides`. A change is
    permanent when its method returns. `patience` is the seconds to wait for the server and for other writers; a server
    that does not answer is a `StoreUnavailable`. Names, models and system prompts hold no NUL character there.
    """

    def __init__(self, url: str, *, patience: float = 10.0) -> None:
        self._server = MigratedPostgres(url, patience=patience)
        super().__init__(self._server)

    def __repr__(self) -> str:
        return f"PostgresStore({self._server.name!r})"
