"""What could not be settled outlives its process, and is settled once, by whoever starts next."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from pathlib import Path

import pytest

from asides_gateway.access import key_meter
from asides_gateway.access.budget_store import make_reservation
from asides_gateway.access.key_meter import KeyMeter, Meters
from asides_gateway.access.memory_windows import MemoryWindows
from asides_gateway.access.unsettled_files import PATTERN, UnsettledFiles, UnsettledUse
from tests.gateway.access.key_records import add_key, open_place
from tests.gateway.access.test_key_meter import DOLLAR, Away, read, step


def list_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(PATTERN))


def make_use(spent: int = 5) -> UnsettledUse:
    return UnsettledUse(make_reservation("abcdefgh", 7), spent)


def test_uses_are_kept_for_their_owner_alone_and_taken_over_by_the_next(tmp_path: Path) -> None:
    files, first, second = UnsettledFiles(tmp_path), make_use(), make_use(0)
    assert list_files(tmp_path) == []
    files.add([first])
    files.add([second])
    (path,) = list_files(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert files.take_over() == []
    after = UnsettledFiles(tmp_path)
    assert after.take_over() == [first, second]
    after.clear()
    assert list_files(tmp_path) == []
    # The first one lives, and knows no better.
    files.add([first])
    files.clear()
    assert list_files(tmp_path) == []


def test_a_file_that_grows_stays_with_its_owner(tmp_path: Path) -> None:
    files, after = UnsettledFiles(tmp_path), UnsettledFiles(tmp_path)
    files.add([make_use()])
    after.take_over()
    files.add([make_use()])
    after.clear()
    assert len(list_files(tmp_path)) == 1


@pytest.mark.parametrize(
    "damage", [b"", b'{"reserv', b"\xff\xfe", b"[" * 9000, b"{}", b'{"reservation":{},"spent":1}', b"null"]
)
def test_a_line_that_was_cut_off_costs_no_other(tmp_path: Path, damage: bytes) -> None:
    files, use = UnsettledFiles(tmp_path), make_use()
    files.add([use])
    (path,) = list_files(tmp_path)
    with path.open("ab") as file:
        file.write(damage)
    assert UnsettledFiles(tmp_path).take_over() == [use]
    files.add([use])
    assert UnsettledFiles(tmp_path).take_over() == [use, use]


def test_a_file_that_cannot_be_read_is_named_and_costs_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use, odd = make_use(), tmp_path / PATTERN.replace("*", "0")
    odd.mkdir()
    UnsettledFiles(tmp_path).add([use])
    after = UnsettledFiles(tmp_path)
    assert after.take_over() == [use]
    assert f"{odd.name} cannot be read" in caplog.text
    after.clear()
    assert list_files(tmp_path) == [odd]


@pytest.mark.parametrize("spent", [-1, 10**30])
def test_sums_that_no_engine_can_add_are_left_out(tmp_path: Path, spent: int) -> None:
    UnsettledFiles(tmp_path).add([make_use(spent)])
    assert UnsettledFiles(tmp_path).take_over() == []


def test_a_folder_that_takes_nothing_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = UnsettledFiles(tmp_path / "none")
    files.add([make_use()])
    files.add([make_use()])
    assert files.take_over() == []
    files.clear()
    assert caplog.text.count("is not kept on the disk") == 1


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    files = UnsettledFiles(tmp_path)
    assert files._own is not None
    files._own.symlink_to(tmp_path / "elsewhere")
    files.add([make_use()])
    assert not (tmp_path / "elsewhere").exists()


def test_without_a_folder_nothing_is_kept() -> None:
    files = UnsettledFiles(None)
    files.add([make_use()])
    assert files.take_over() == []
    files.clear()


async def test_what_a_killed_process_had_not_settled_is_settled_once_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(key_meter, "_RETRY_SECONDS", 0.02)
    database = open_place(str(tmp_path))
    record = (await asyncio.to_thread(lambda: add_key(database, budget_day="1"))).record
    away = Away(database)
    killed = Meters(away, MemoryWindows(), folder=tmp_path)  # type: ignore[arg-type]
    meters = [KeyMeter(killed, record) for _ in range(3)]
    for each in meters:
        assert await each.reserve(step("0.2")) is None
    away.is_away = True
    for each in meters:
        await each.settle(step("0.1").find_used(0))
    del killed, meters
    # Two start at once.
    following = [Meters(database, MemoryWindows(), folder=tmp_path) for _ in range(2)]
    tasks = [asyncio.create_task(each.run()) for each in following]
    async with asyncio.timeout(20):
        while list_files(tmp_path) or read(database, record.id).reserved:
            await asyncio.sleep(0.02)
    for task in tasks:
        task.cancel()
    assert read(database, record.id).day == 3 * DOLLAR // 10
    assert "3 reservations that another process could not settle" in caplog.text


async def test_a_gateway_that_ends_while_its_database_is_away_leaves_its_sums_for_the_next(tmp_path: Path) -> None:
    database = open_place(str(tmp_path))
    record = (await asyncio.to_thread(lambda: add_key(database, budget_day="1"))).record
    away = Away(database)
    ended = Meters(away, MemoryWindows(), folder=tmp_path)  # type: ignore[arg-type]
    meter = KeyMeter(ended, record)
    await meter.reserve(step("0.2"))
    away.is_away = True
    meter.leave()
    await ended.close()
    assert len(list_files(tmp_path)) == 1
    assert record.name.encode() not in list_files(tmp_path)[0].read_bytes()
    assert os.fspath(tmp_path) not in repr(ended._files)
