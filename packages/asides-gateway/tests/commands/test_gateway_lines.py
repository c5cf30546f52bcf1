"""`asides gateway export` and `asides gateway import`: from any store to any other, and what they say."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.children import here
from tests.maintenance.filled_stores import fill_conversations, fill_gateway

Captured = pytest.CaptureFixture[str]


def test_a_gateway_moves_to_a_server_and_back(
    tmp_path: Path, postgres_url: str, state: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_conversations(state, 2)
    fill_gateway(state)
    monkeypatch.setenv("ASIDES_STORE", postgres_url)
    first, second, third = (str(tmp_path / f"{number}.jsonl") for number in range(3))
    there = here(capsys, "gateway", "export", first, "--folder", str(state))
    assert (there.code, there.out) == (0, "")
    assert "exported 1 key and 2 conversations" in there.err
    assert here(capsys, "gateway", "import", first).out == "imported 1 key and 2 conversations\n"
    assert here(capsys, "gateway", "export", second).code == 0
    back = here(capsys, "gateway", "import", second, "--folder", str(tmp_path / "back"), "--json")
    assert (back.code, json.loads(back.out)["added"]) == (0, {"keys": 1, "conversations": 2})
    here(capsys, "gateway", "export", third, "--folder", str(tmp_path / "back"))
    assert Path(first).read_bytes() == Path(second).read_bytes() == Path(third).read_bytes()
    again = here(capsys, "gateway", "import", second)
    assert again.out == "imported 0 keys and 0 conversations; there already: 1 key and 2 conversations\n"


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_file_is_for_its_owner_alone(tmp_path: Path, state: Path, capsys: Captured) -> None:
    fill_conversations(state, 1)
    old = os.umask(0)
    try:
        here(capsys, "gateway", "export", str(tmp_path / "all.jsonl"))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "all.jsonl").stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.glob("*.jsonl*")] == ["all.jsonl"]


def test_odd_lines_are_printed_with_their_numbers(tmp_path: Path, state: Path, capsys: Captured) -> None:
    fill_conversations(state, 1)
    file = tmp_path / "all.jsonl"
    here(capsys, "gateway", "export", str(file))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + b'{"conversation": "\\u001b[31m"}\n')
    ended = here(capsys, "gateway", "import", str(file))
    assert ended.code == 9
    assert "line 2 is not imported: Expected `object | null`, got `str` - at `$.conversation`." in ended.out
    assert "the file may be cut off" in ended.out
    assert "\x1b" not in ended.out


def test_a_damaged_conversation_is_named(state: Path, tmp_path: Path, capsys: Captured) -> None:
    import sqlite3
    from contextlib import closing

    fill_conversations(state, 2)
    with closing(sqlite3.connect(state / "conversations.db")) as connection, connection:
        connection.execute("UPDATE messages SET message = 'x' WHERE conversation = 2 AND place = 0")
    ended = here(capsys, "gateway", "export", str(tmp_path / "all.jsonl"))
    assert ended.code == 9
    assert "cannot be read, and is not exported" in ended.err
    assert "exported 0 keys and 1 conversation" in ended.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("import",), "no file is named"),
        (("import", "a", "b"), "takes one file"),
        (("import", "/no/such/file"), "cannot be read"),
        (("export", "/no/such/folder/file"), "no store at"),
        (("export", "--name", "x"), "belongs to `asides gateway key create`"),
    ],
)
def test_wrong_usage_says_what_to_do(capsys: Captured, state: Path, words: tuple[str, ...], expected: str) -> None:
    ended = here(capsys, "gateway", *words)
    assert ended.code == 2
    assert expected in ended.err


def test_a_server_that_is_down_has_the_exit_code_of_a_connection(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_STORE", "postgresql://asides:s3cret@127.0.0.1:9/none")
    (tmp_path / "a").write_text("")
    for words in (("export",), ("import", str(tmp_path / "a"))):
        ended = here(capsys, "gateway", *words)
        assert ended.code == 5
        assert "s3cret" not in ended.out + ended.err
