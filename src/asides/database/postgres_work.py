"""Carry out work on one connection to PostgreSQL, as one transaction: for threads and for event loops.

Behind a pooler, which keeps no session, each transaction begins with its settings, in the same round trip. Its end is
sent alone: PgBouncer 1.18 was seen to lose the answers of a pipeline in which a transaction ends.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from asides.database import Queries, Query, QueryMany, QueryResult

if TYPE_CHECKING:
    from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor

    from asides.database.postgres_attempts import Attempts

_Result = TypeVar("_Result")


def carry_out(
    connection: Connection[Any], work: Queries[_Result], attempts: Attempts, settings: LiteralString | None
) -> _Result:
    """Carry out work in a thread. `settings`: a statement that holds for its transaction."""
    attempts.is_ending = False
    try:
        query = next(work)
        if isinstance(query, Query) and query.is_alone and settings is None:
            attempts.is_ending = True
            work.send(_execute(connection, query))
            raise RuntimeError("a query with is_alone is the only one of its work.")
        with connection.pipeline():
            connection.execute(_choose_begin(attempts.writes))
            if settings is not None:
                connection.execute(settings)
            first = _begin(connection, query)
        # The results of a pipeline are complete when it has ended.
        result = _fetch(first)
        while True:
            query = work.send(result)
            result = _execute(connection, query)
    except StopIteration as end:
        if connection.info.transaction_status:
            attempts.is_ending = True
            connection.execute("COMMIT")
        value: _Result = end.value
        return value
    except BaseException:
        if not connection.closed and connection.info.transaction_status:
            connection.execute("ROLLBACK")
        raise


async def carry_out_async(
    connection: AsyncConnection[Any], work: Queries[_Result], attempts: Attempts, settings: LiteralString | None
) -> _Result:
    """The same in an event loop."""
    attempts.is_ending = False
    try:
        query = next(work)
        if isinstance(query, Query) and query.is_alone and settings is None:
            attempts.is_ending = True
            work.send(await _execute_async(connection, query))
            raise RuntimeError("a query with is_alone is the only one of its work.")
        async with connection.pipeline():
            await connection.execute(_choose_begin(attempts.writes))
            if settings is not None:
                await connection.execute(settings)
            first = await _begin_async(connection, query)
        result = await _fetch_async(first)
        while True:
            query = work.send(result)
            result = await _execute_async(connection, query)
    except StopIteration as end:
        if connection.info.transaction_status:
            attempts.is_ending = True
            await connection.execute("COMMIT")
        value: _Result = end.value
        return value
    except BaseException:
        if not connection.closed and connection.info.transaction_status:
            await connection.execute("ROLLBACK")
        raise


def _choose_begin(writes: bool) -> LiteralString:
    """Both name their isolation, since a server may have another default: what waited for a lock has to read what was
    written meanwhile.
    """
    return f"BEGIN ISOLATION LEVEL {'READ COMMITTED' if writes else 'REPEATABLE READ READ ONLY'}"


def _execute(connection: Connection[Any], query: Query | QueryMany) -> QueryResult:
    return _fetch(_begin(connection, query))


async def _execute_async(connection: AsyncConnection[Any], query: Query | QueryMany) -> QueryResult:
    return await _fetch_async(await _begin_async(connection, query))


def _begin(connection: Connection[Any], query: Query | QueryMany) -> Cursor[Any]:
    cursor = connection.cursor()
    statement = _translate(query.postgres or query.sql)
    if isinstance(query, Query):
        return cursor.execute(statement, query.values)
    cursor.executemany(statement, query.rows)
    return cursor


async def _begin_async(connection: AsyncConnection[Any], query: Query | QueryMany) -> AsyncCursor[Any]:
    cursor = connection.cursor()
    statement = _translate(query.postgres or query.sql)
    if isinstance(query, Query):
        return await cursor.execute(statement, query.values)
    await cursor.executemany(statement, query.rows)
    return cursor


def _fetch(cursor: Cursor[Any]) -> QueryResult:
    return QueryResult(cursor.fetchall() if _has_rows(cursor) else [], cursor.rowcount)


async def _fetch_async(cursor: AsyncCursor[Any]) -> QueryResult:
    return QueryResult(await cursor.fetchall() if _has_rows(cursor) else [], cursor.rowcount)


def _has_rows(cursor: Cursor[Any] | AsyncCursor[Any]) -> bool:
    """Whether a statement returns rows, even none. `cursor.description` says so too, but costs as much as a row."""
    result = cursor.pgresult
    return result is not None and result.nfields > 0


@lru_cache(maxsize=512)
def _translate(sql: str) -> LiteralString:
    """Return the statement with psycopg's placeholders. In ours every question mark is a placeholder."""
    translated: Any = sql.replace("%", "%%").replace("?", "%s")
    return translated  # type: ignore[no-any-return]
