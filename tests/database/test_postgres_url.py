"""URLs of PostgreSQL: what is ours is taken out of them, and errors show no password."""

from __future__ import annotations

import pytest

from asides.database.postgres_url import build_parameters, describe_url, is_postgres_url, read_url
from asides.values.errors import ConfigError


def test_what_is_meant_for_us_does_not_reach_libpq() -> None:
    plain = "postgresql://me:s%40cret@db:5433/asides?sslmode=require&host=/run/pg"
    assert read_url(plain).conninfo == plain
    assert read_url(plain).has_pooler is None
    pooled = read_url("postgresql://me:s%40cret@db:5433/asides?sslmode=require&pgbouncer=true&host=/run/pg")
    assert pooled.conninfo == plain
    assert pooled.has_pooler
    assert build_parameters(pooled, 5.0)["prepare_threshold"] is None
    assert read_url("postgres://db/asides?pgbouncer=false").has_pooler is False
    assert read_url("postgres://db/asides?pgbouncer=false").conninfo == "postgres://db/asides"


def test_our_wishes_do_not_overrule_those_of_the_url() -> None:
    assert "keepalives_idle" in build_parameters(read_url("postgresql://db/asides"), 5.0)
    assert "keepalives_idle" not in build_parameters(read_url("postgresql://db/asides?keepalives_idle=9"), 5.0)
    assert build_parameters(read_url("postgresql://db/asides"), 0.5)["connect_timeout"] == 2


@pytest.mark.parametrize(
    "url", ["mysql://me:secret@db/x", "postgresql://me:secret@[db/x", "postgresql://me:secret@db/x?pgbouncer=perhaps"]
)
def test_what_cannot_be_one_is_refused_without_the_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"\. [A-Z]") as caught:
        read_url(url)
    assert "secret" not in str(caught.value)


def test_names_have_no_user_and_no_password() -> None:
    url = "postgresql://me:secret@a.example.org:5433,b.example.org/asides?target_session_attrs=read-write"
    assert describe_url(url) == read_url(url).name == "a.example.org:5433,b.example.org/asides"
    assert "secret" not in repr(read_url(url))
    assert describe_url("postgresql:///asides") == "localhost/asides"


def test_places_that_are_databases() -> None:
    assert is_postgres_url("postgresql://db/asides")
    assert is_postgres_url("postgres:///x")
    assert is_postgres_url("PostgreSQL://db/asides")
    assert not is_postgres_url("postgresql")
    assert not is_postgres_url("vault.db")
    assert not is_postgres_url(None)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("PostgreSQL://db/asides", "postgresql://db/asides"),
        ("postgresql:///asides?host=/run&pgbouncer=true", "postgresql:///asides?host=/run"),
        ("postgresql:///asides?pgbouncer=true", "postgresql:///asides"),
    ],
)
def test_libpq_gets_a_url_that_it_knows(given: str, read: str) -> None:
    assert read_url(given).conninfo == read
