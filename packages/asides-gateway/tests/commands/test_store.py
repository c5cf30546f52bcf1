"""`asides store`: migrates and checks, shows no password, and says what to do."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.database.migrate import list_migrations
from tests.cli.children import here
from tests.maintenance.filled_stores import fill_conversations
from tests.servers import PostgresServer

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _relay_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "00" * 32)


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database without tables, with a password in its URL."""
    name = f"empty_{secrets.token_hex(6)}"
    yield postgres_server.create_database(name).replace("asides@", "asides:s3cret@")
    postgres_server.drop_database(name)


def _names() -> list[str]:
    return [f"{step.number:04}_{step.name}" for step in list_migrations()]


def test_migrate_prints_its_steps_once(empty_url: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STORE", empty_url)
    here(capsys, "store", "migrate", "--dry-run")
    dry = here(capsys, "store", "migrate", "--dry-run")
    assert (dry.code, dry.out.split()) == (0, _names())
    assert "steps are missing" in dry.err
    done = here(capsys, "store", "migrate")
    assert (done.code, done.out.split()) == (0, _names())
    again = here(capsys, "store", "migrate", empty_url)
    assert (again.code, again.out) == (0, "")
    assert "nothing to do" in again.err
    assert "s3cret" not in done.err + dry.err + again.err


def test_check_tells_what_to_do_before_a_migration(empty_url: str, capsys: Captured) -> None:
    missing = here(capsys, "store", "check", empty_url)
    assert missing.code == 1
    answered, problem = missing.out.splitlines()
    assert " answered in " in answered
    assert problem.startswith("problem: steps are missing: ")
    assert problem.endswith("Run `asides store migrate`")
    here(capsys, "store", "migrate", empty_url)
    sound = here(capsys, "store", "check", "--json", empty_url)
    found = json.loads(sound.out)
    assert (sound.code, found["sound"], found["problems"]) == (0, True, [])
    assert {area["area"] for area in found["areas"]} == {"conversations", "vault", "gateway", "ledger"}
    assert "s3cret" not in missing.out + missing.err + sound.out


def test_a_server_that_is_down_has_the_exit_code_of_a_connection(capsys: Captured) -> None:
    for words in (("check",), ("migrate",)):
        ended = here(capsys, "store", *words, "postgresql://asides:s3cret@127.0.0.1:9/none")
        assert ended.code == 5
        assert "does not answer" in ended.err
        assert "s3cret" not in ended.err


def test_check_looks_at_the_folder_of_conversations_without_a_setting(state: Path, capsys: Captured) -> None:
    assert here(capsys, "store", "check").code == 2
    fill_conversations(state, 2)
    ended = here(capsys, "store", "check")
    assert ended.code == 0
    assert "2 conversations, 4 messages" in ended.out
    assert ended.out.endswith("sound\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("migrate",), "no database is named"),
        (("migrate", "/tmp"), "only a PostgreSQL database"),
        (("check", "--dry-run"), "belongs to `asides store migrate`"),
        (("check", "a", "b"), "at most one place"),
        (("check", "/no/such/folder"), "no store at"),
    ],
)
def test_wrong_usage_says_what_to_do(capsys: Captured, state: Path, words: tuple[str, ...], expected: str) -> None:
    ended = here(capsys, "store", *words)
    assert ended.code == 2
    assert expected in ended.err
    assert not state.exists()
