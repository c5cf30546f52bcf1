"""`migrate`: the tables in PostgreSQL, created once, whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest

from asides.database.migrate import list_migrations, migrate
from tests.servers import PostgresServer


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a database without tables."""
    name = f"test_{secrets.token_hex(6)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


def test_every_step_once_and_in_order(empty_url: str) -> None:
    numbers = [migration.number for migration in list_migrations()]
    assert numbers == sorted(set(numbers))
    assert [migration.number for migration in migrate(empty_url)] == numbers
    assert migrate(empty_url) == []
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT number FROM asides.migrations ORDER BY done, number").fetchall() == [
            (number,) for number in numbers
        ]
