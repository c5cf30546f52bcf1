"""The record of a user's own conversations in a shared store."""

from __future__ import annotations

import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asides.cli.own_conversations import OWN_FILE, add_own, list_own


def test_the_last_one_is_first_and_stands_once(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    assert list_own(folder) == []
    for name in ("a", "ü\n", "b", "a"):
        add_own(folder, name)
    assert list_own(folder) == ["a", "b", "ü\n"]
    if sys.platform != "win32":
        assert stat.S_IMODE((folder / OWN_FILE).stat().st_mode) == 0o600


def test_it_does_not_grow_for_ever(tmp_path: Path) -> None:
    for number in range(130):
        add_own(tmp_path, str(number))
    assert len(list_own(tmp_path)) == 100
    assert list_own(tmp_path)[0] == "129"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b'{"a": 1}'])
def test_a_damaged_one_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / OWN_FILE).write_bytes(content)
    assert list_own(tmp_path) == []
    add_own(tmp_path, "a")
    assert list_own(tmp_path) == ["a"]


def test_commands_at_once_lose_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: add_own(tmp_path, str(number)), range(40)))
    assert sorted(map(int, list_own(tmp_path))) == list(range(40))
