"""An export goes from any store into any other; odd lines are named, and nothing is there by halves."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from asides.database.postgres import PostgresDatabase
from asides.values.errors import ConfigError
from asides.values.messages import user
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.maintenance.export_lines import export_lines
from asides_gateway.maintenance.exported_lines import Counts
from asides_gateway.maintenance.import_lines import MAX_LINE, ImportReport, ImportTarget, import_lines
from asides_gateway.maintenance.open_stores import open_stores
from asides_gateway.page_store import PageStore, open_page_file
from asides_gateway.page_tables import PageSettings
from tests.maintenance.filled_stores import answer, fill_conversations, fill_gateway

Place: TypeAlias = Path | str


def _export(place: Place) -> list[bytes]:
    with open_stores(str(place)) as stores:
        return [line for line in export_lines(stores) if isinstance(line, bytes)]


def _import(lines: list[bytes], place: Place) -> ImportReport:
    conversations = open_page_file(place) if isinstance(place, Path) else PostgresDatabase(place)
    keys = open_database(GatewaySettings(folder=place)) if isinstance(place, Path) else conversations
    report = ImportReport()
    try:
        import_lines(lines, ImportTarget(keys, conversations), report)
    finally:
        keys.close()
        conversations.close()
    return report


def _change(line: bytes, kind: str, **changes: Any) -> bytes:
    document = msgspec.json.decode(line)
    document[kind].update(changes)
    return bytes(msgspec.json.encode(document))


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return tmp_path / "target" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """The export of a folder with one key and two conversations."""
    fill_conversations(tmp_path / "source", 2)
    fill_gateway(tmp_path / "source")
    return _export(tmp_path / "source")


def test_there_and_back_nothing_changes(tmp_path: Path, postgres_url: str) -> None:
    fill_conversations(tmp_path / "a", 5)
    key = fill_gateway(tmp_path / "a", revoked=7.25)
    first = _export(tmp_path / "a")
    assert _import(first, postgres_url).is_whole
    second = _export(postgres_url)
    assert _import(second, tmp_path / "b").is_whole
    assert first == second == _export(tmp_path / "b")
    with PageStore(tmp_path / "b") as store:
        found = store.list_page("tenant 1")
        assert [(each.title, each.thinking) for each in found] == [("Title 4", "high"), ("Title 1", "high")]
        stored = store.read_messages(found[0], None, 10)
        assert [each.message for each in stored] == [user("question 4"), answer("é 4")]
        assert [each.note for each in stored] == [None, b'{"model":"stage:m"}']
    assert msgspec.json.decode(first[1])["key"]["limits"]["budget_month"] == "2.5"
    assert key.limits.budget_month == Decimal("2.5")


def test_an_import_again_adds_nothing(lines: list[bytes], target: Place) -> None:
    for expected in ("added", "there"):
        report = _import(lines, target)
        assert report.is_whole
        assert getattr(report, expected) == Counts(keys=1, conversations=2)


def test_what_has_grown_since_then_is_imported(tmp_path: Path, target: Place) -> None:
    source = tmp_path / "source"
    name = fill_conversations(source, 1)[0]
    fill_gateway(source)
    _import(_export(source), target)
    with PageStore(source) as store:
        store.append(name, [user("more"), answer("yes")])
    fill_gateway(source, spent=9, revoked=7.0)
    report = _import(_export(source), target)
    assert (report.updated, report.is_whole) == (Counts(keys=1, conversations=1), True)
    assert _export(target) == _export(source)


def test_an_earlier_export_takes_nothing_back(tmp_path: Path, target: Place) -> None:
    source = tmp_path / "source"
    name = fill_conversations(source, 1)[0]
    fill_gateway(source)
    before = _export(source)
    with PageStore(source) as store:
        store.append(name, [user("more")])
    fill_gateway(source, spent=9, revoked=7.0)
    after = _export(source)
    _import(after, target)
    assert _import(before, target).there == Counts(keys=1, conversations=1)
    assert _export(target) == after


_CALL: dict[str, Callable[[list[bytes]], tuple[int, bytes]]] = {
    "not JSON": lambda lines: (3, b"{"),
    "neither": lambda lines: (3, b"{}"),
    "a field that is not known": lambda lines: (2, _change(lines[1], "key", rmp=7)),
    "a digest that is too short": lambda lines: (2, _change(lines[1], "key", digest="AAAA")),
    "a limit of nothing": lambda lines: (2, _change(lines[1], "key", limits={"rpm": 0})),
    "an id with a quote": lambda lines: (2, _change(lines[1], "key", id="k';--345")),
    "a message that is none": lambda lines: (3, _change(lines[2], "conversation", messages=[{"role": "nobody"}])),
    "a name of nothing": lambda lines: (3, _change(lines[2], "conversation", name=" ")),
    "notes without places": lambda lines: (3, _change(lines[2], "conversation", notes={"x": {}})),
}


@pytest.mark.parametrize("case", _CALL)
def test_an_odd_line_is_named_and_costs_no_other(lines: list[bytes], target: Place, case: str) -> None:
    number, odd = _CALL[case](lines)
    whole = lines.copy()
    lines[number - 1] = odd
    report = _import(lines, target)
    assert [each.line for each in report.odd] == [number]
    assert report.added == (Counts(keys=0, conversations=2) if number == 2 else Counts(keys=1, conversations=1))
    # The right line is imported later.
    assert _import(whole, target).is_whole
    assert sorted(_export(target)) == sorted(whole)


def test_what_differs_stays_and_is_named(lines: list[bytes], target: Place) -> None:
    _import(lines, target)
    other = [
        lines[0],
        _change(lines[1], "key", limits={}),
        _change(lines[2], "conversation", messages=msgspec.json.decode(lines[3])["conversation"]["messages"]),
        _change(lines[3], "conversation", name="renamed"),
        lines[4],
    ]
    name = msgspec.json.decode(lines[2])["conversation"]["name"]
    report = _import(other, target)
    assert [(each.line, each.problem.partition(",")[0]) for each in report.odd] == [
        (2, "the store has the key k2345678 with other settings"),
        (
            3,
            f"the store has another conversation with the name {name!r}",
        ),
        (4, "the store has this conversation under another name."),
    ]
    assert _export(target) == lines


def test_a_conversation_is_there_whole_or_not_at_all(lines: list[bytes], target: Place) -> None:
    """The page's id is taken, which is found after the messages were written."""
    _import([lines[0], lines[2]], target)
    taken = msgspec.json.decode(lines[2])["conversation"]["page"]
    assert len(_import([lines[0], _change(lines[3], "conversation", page=taken)], target).odd) == 1
    with PageStore(target if isinstance(target, Path) else PostgresDatabase(target)) as store:
        assert len(store.names()) == 1


def test_a_server_takes_all_but_what_it_cannot_take(tmp_path: Path, postgres_url: str) -> None:
    """It has no NUL in its texts."""
    with PageStore(tmp_path) as store:
        for name in ("a\0b", "c"):
            store.append(store.create("", PageSettings()).name, [user(name)])
            store.rename(store.names()[0], name)
    report = _import(_export(tmp_path), postgres_url)
    assert (report.added.conversations, [each.line for each in report.odd]) == (1, [2])


def test_a_file_that_was_cut_off_is_told(lines: list[bytes], tmp_path: Path) -> None:
    assert _import(lines[:-1], tmp_path / "b").is_cut
    assert _import([*lines[:2], *lines[3:]], tmp_path / "c").is_cut
    assert not _import([*lines, b"\n"], tmp_path / "d").is_cut


@pytest.mark.parametrize("first", [b'{"key": 1}\n', b"not JSON", b"\n", b'{"asides_export": 99}'])
def test_what_is_not_an_export_is_refused(lines: list[bytes], tmp_path: Path, first: bytes) -> None:
    with pytest.raises(ConfigError, match="not an export"):
        _import([first, *lines[1:]], tmp_path / "b")


def test_a_line_has_a_limit(lines: list[bytes], tmp_path: Path) -> None:
    long = lines[2] + b" " * MAX_LINE
    assert [each.line for each in _import([lines[0], long], tmp_path / "b").odd] == [2]
