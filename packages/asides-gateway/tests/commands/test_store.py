"""`asides store`: migrates, checks and copies, shows no password, and says what to do."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.database.migrate import list_migrations
from tests.cli.children import here
from tests.maintenance.filled_stores import fill_conversations, fill_vault
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
    for words in (("check",), ("migrate",), ("copy", ".")):
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


def test_copy_there_and_back(
    tmp_path: Path, postgres_url: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_conversations(tmp_path / "a", 2)
    fill_vault(tmp_path / "a", 5)
    monkeypatch.setenv("ASIDES_STORE", postgres_url)
    there = here(capsys, "store", "copy", str(tmp_path / "a"))
    assert there.code == 0
    assert "conversations: 2 copied; 2 compared, all equal" in there.out
    assert there.out.endswith("the copy is complete\n")
    back = here(capsys, "store", "copy", "--json", postgres_url, str(tmp_path / "b"))
    document = json.loads(back.out)
    assert document["whole"]
    assert {each["area"]: each["checked"] for each in document["areas"]} == {
        "conversations": 2,
        "vault": 5,
        "gateway": 0,
    }


def test_what_is_different_is_named_and_has_an_exit_code(tmp_path: Path, capsys: Captured) -> None:
    from asides.conversations.store.sqlite import SqliteStore
    from asides.values.messages import user

    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        with SqliteStore(folder / "conversations.db") as store:
            store.append("plan\x1b[31m", [user(folder.name)])
    words = ("store", "copy", str(tmp_path / "a"), str(tmp_path / "b"))
    refused = here(capsys, *words)
    assert refused.code == 9
    assert "1 different at the target and left as they are there" in refused.out
    assert "\x1b" not in refused.out
    assert here(capsys, *words, "--replace").code == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("migrate",), "no database is named"),
        (("migrate", "/tmp"), "only a PostgreSQL database"),
        (("copy",), "no store to copy from"),
        (("copy", "."), "no store to copy to"),
        (("check", "--replace"), "belongs to `asides store copy`"),
        (("copy", "a", "b", "--dry-run"), "belongs to `asides store migrate`"),
        (("check", "a", "b"), "1 place at most"),
        (("check", "/no/such/folder"), "no store at"),
    ],
)
def test_wrong_usage_says_what_to_do(capsys: Captured, state: Path, words: tuple[str, ...], expected: str) -> None:
    ended = here(capsys, "store", *words)
    assert ended.code == 2
    assert expected in ended.err
    assert not state.exists()
