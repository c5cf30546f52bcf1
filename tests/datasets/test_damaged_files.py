"""Damaged files and odd values: reported, without loss of other rows and without a crash."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sys
import zlib
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.datasets.audit import AuditFinding, make_settings
from asides.datasets.audit_files import audit_file
from asides.datasets.audit_report import FileReport
from asides.datasets.block_job import BlockJob
from asides.datasets.rows import open_writer, read_rows
from asides.datasets.run import Plan, SeparationRun
from asides.datasets.separator import RowSeparator
from asides.datasets.tally import Tally

GOOD = '{"id": 1, "response": "<think>t</think>a"}'
LEAK = "<think>a hidden plan</think>42"
OUTPUTS = ["out.jsonl", "out.json", "out.csv", "out.parquet"]


def run(source: Path, output: Path, column: str = "response", **changes: Any) -> Tally:
    plan = Plan((str(source),), BlockJob(RowSeparator(column=column)), str(output), f"{output}.undecided", **changes)
    return SeparationRun(plan.settle()).run()


def list_undecided(output: Path) -> list[tuple[int, str]]:
    lines = Path(f"{output}.undecided").read_bytes().splitlines()
    return [(row["row"], row["reason"]) for row in map(json.loads, lines)]


def audit(path: Path, fix: Path | None = None) -> tuple[list[AuditFinding], FileReport]:
    report = FileReport(str(path))
    return list(audit_file(str(path), make_settings(None, "auto", None), report, fix)), report


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize(
    "bad",
    [
        b'{"response": "a\xff"}',
        b'{"response": "a", "other": "\xff"}',
        b'{"response": "a", "\xff": 1}',
        b'{"response": "a", "deep": [{"x": "\xc3"}]}',
        b'{"response": "a", "cut": "\xed\xa0\xbd"}',
    ],
)
def test_a_row_that_is_not_utf_8_costs_no_other(bad: bytes, name: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    source, output = tmp_path / "rows.jsonl", tmp_path / name
    source.write_bytes(b"\n".join([GOOD.encode(), bad, GOOD.encode()]))
    tally = run(source, output)
    assert tally.verdicts == {"closed": 2, "unreadable": 1}
    assert list_undecided(output) == [(2, "the row is not UTF-8")]
    assert [row.fields["answer"] for row in read_rows(output)] == ["a", "a"]


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (r'{"response": "y \ud83d"}', "y \ufffd"),
        (r'{"response": "<think>\ud83d</think>y"}', "y"),
        (r'{"response": "y", "other": "\ude00"}', "y"),
        (r'{"response": "y", "n": NaN, "other": ["\ud83d"]}', "y"),
        (r'{"response": "y", "\ud83d": 1}', "y"),
        (r'{"response": "y \ud83d\ude00"}', "y \U0001f600"),
    ],
)
def test_half_a_character_is_written_in_every_format(line: str, shown: str, name: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    source, output = tmp_path / "rows.jsonl", tmp_path / name
    source.write_text(f"{GOOD}\n{line}\n", encoding="utf-8")
    assert run(source, output).undecided == 0
    found = [row.fields["answer"] for row in read_rows(output)]
    if name.endswith(("jsonl", "json")):
        found[1] = found[1].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert found == ["a", shown]


def test_cells_of_csv_hold_what_the_line_had(tmp_path: Path) -> None:
    source, output = tmp_path / "rows.jsonl", tmp_path / "out.csv"
    source.write_text(
        '{"response": "a", "big": 123456789012345678901234567890, "n": 1.10, "x": {"k":[1.0]}, "no": null}\n',
        encoding="utf-8",
    )
    run(source, output)
    with output.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert {name: row[name] for name in ("big", "n", "x", "no")} == {
        "big": "123456789012345678901234567890",
        "n": "1.10",
        "x": '{"k":[1.0]}',
        "no": "",
    }


@pytest.mark.parametrize("row", [5, None, 1.5, True, b"x", [], ("a",), object()])
@pytest.mark.parametrize(
    "options",
    [{"column": "response"}, {"messages": "chat"}, {"response": True}, {"column": "body", "response": True}, {}],
)
def test_no_row_raises(row: Any, options: Any) -> None:
    good = "a" if not options else {"response": "a"}
    found = list(asides.separate_many([row, good], **options))
    assert len(found) == 2
    assert found[0]["verdict"] in ("unreadable", "none")
    assert found[0]["answer"] in (None, "x")


@pytest.mark.parametrize("row", [None, 5, 1.5, True, [], {}, ""])
def test_a_row_without_text_is_clean(row: Any) -> None:
    assert [each.row for each in asides.audit([row, LEAK])] == [2]


def test_the_audit_of_a_row_never_raises() -> None:
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    rows: list[Any] = [object(), deep, '{"response": ' * 10_000, LEAK]
    found = list(asides.audit(rows))
    assert [(each.row, each.kind) for each in found] == [(1, "unreadable"), (2, "unreadable"), (4, "closed")]
    assert not found[0].is_removed


# --- compressed files -------------------------------------------------------------------------------------------------


def compress(name: str, data: bytes) -> bytes:
    if name == "gz":
        return gzip.compress(data)
    return bytes(pytest.importorskip("zstandard").compress(data))


def make_lines(count: int = 4_000) -> bytes:
    chance = random.Random(1)
    return b"".join(b'{"response": "%d"}\n' % chance.getrandbits(200) for _ in range(count))


@pytest.mark.parametrize("ending", ["gz", "zst"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data[:20],
        lambda data: data + data[:40],
        lambda data: data[: len(data) // 2] + b"\0" * 64 + data[len(data) // 2 + 64 :],
    ],
)
def test_a_damaged_compressed_file_is_an_error(ending: str, damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    source, output = tmp_path / f"rows.jsonl.{ending}", tmp_path / "out.jsonl"
    source.write_bytes(damage(compress(ending, make_lines())))
    with pytest.raises(asides.ConfigError, match=r"is damaged: "):
        run(source, output)
    with pytest.raises(asides.ConfigError, match=r"is damaged: "):
        audit(source)


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_file_of_several_compressed_parts_is_read_whole(ending: str, tmp_path: Path) -> None:
    source = tmp_path / f"rows.jsonl.{ending}"
    data = make_lines(3000)
    source.write_bytes(b"".join(compress(ending, part) for part in (data[:7], b"", data[7:5000], data[5000:])))
    assert len(list(read_rows(source))) == 3000
    assert zlib.crc32(b"".join(json.dumps(row.fields).encode() + b"\n" for row in read_rows(source))) == zlib.crc32(
        data
    )


def test_parquet_in_gzip_is_a_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    source, plain = tmp_path / "rows.parquet.gz", tmp_path / "rows.jsonl"
    source.write_bytes(gzip.compress(b"PAR1"))
    plain.write_text(GOOD, encoding="utf-8")
    for act in (
        lambda: run(source, tmp_path / "out.jsonl"),
        lambda: run(plain, tmp_path / "out.parquet.gz"),
        lambda: audit(source),
        lambda: open_writer(tmp_path / "x.parquet.zst"),
    ):
        with pytest.raises(asides.ConfigError, match=r"is Parquet inside .* without \."):
            act()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl", "rows.parquet.gz"]


# --- JSON arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"id": }', "the row is not JSON"),
        ("nope", "the row is not JSON"),
        ("{'id': 1, 'deep': {'x': [1, 2]}}", "the row is not JSON"),
        ('{"id": 1, "x": "a\nb", "y": {"id": 5}}', "left out"),
        ('{"id": 2, "x": [1, 2}', "left out"),
        ('{"id": 2, "x": "half', "left out"),
        ('{"id": 2, "messages": [{"role": "user"}, {"role": "x"}', "left out"),
        ('{"id": 2', "left out"),
    ],
)
@pytest.mark.parametrize(("between", "size"), [(",", 1), (",\n", 1), (",\n  ", 1), (",", 1_500_000)])
def test_a_bad_element_costs_no_other(bad: str, reason: str, between: str, size: int, tmp_path: Path) -> None:
    source, output = tmp_path / "rows.json", tmp_path / "out.jsonl"
    good = [json.dumps({"id": number, "response": "x" * size}) for number in (1, 3, 4)]
    source.write_text(f"[{between.join([good[0], bad, *good[1:]])}]", encoding="utf-8")
    tally = run(source, output)
    assert [row.fields["id"] for row in read_rows(output)] == [1, 3, 4]
    assert tally.verdicts == {"none": 3, "unreadable": 1}
    ((number, words),) = list_undecided(output)
    assert number == 2
    assert reason in words


def test_bad_elements_at_the_ends_of_an_array(tmp_path: Path) -> None:
    source = tmp_path / "rows.json"
    source.write_text('[{"id": }, {"id": 2}, {"id": 3}, {"id": ', encoding="utf-8")
    rows = list(read_rows(source))
    assert [row.fields.get("id") for row in rows] == [None, 2, 3, None]
    assert rows[-1].problem == "the file is not JSON from here on: 7 characters were left out"


@pytest.mark.parametrize(
    "text", ["}", "]", "][", '{"a": 1}]}', "[,,]", "[}]", '[{"a": 1},, {"a": 2}]', "[[}, 1]", "{]", ",", '"', ":"]
)
def test_brackets_that_end_nothing_end_the_reading(text: str, tmp_path: Path) -> None:
    source = tmp_path / "rows.json"
    source.write_text(text, encoding="utf-8")
    assert all(row.problem or row.fields for row in read_rows(source))


def test_a_copy_keeps_what_is_not_json(tmp_path: Path) -> None:
    source, fixed = tmp_path / "rows.json", tmp_path / "fixed.json"
    source.write_text(f'[{{"response": "{LEAK}"}},\n{{"id": }},\n{{"response": "b"}}]', encoding="utf-8")
    _, report = audit(source, fixed)
    assert (report.found, report.left, report.unread) == (1, 0, 1)
    assert fixed.read_text(encoding="utf-8") == '[\n{"response": "42"},\n{"id": },\n{"response": "b"}\n]\n'


# --- CSV --------------------------------------------------------------------------------------------------------------


def test_a_cleaned_csv_keeps_every_other_row_byte_for_byte(tmp_path: Path) -> None:
    source, fixed = tmp_path / "rows.csv", tmp_path / "fixed.csv"
    rows = [
        b'id,"response",note\r\n',
        b'1,"plain, ""quoted""","x"\r\n',
        b"2,too short\r\n",
        b'3,"<think>a hidden plan</think>42,\n43",y\r\n',
        b"4,too,many,columns\n",
        b"\n",
        b"5,\xff,z\n",
        b"6,<think>a hidden plan</think>42,",
    ]
    source.write_bytes(b"".join(rows))
    findings, report = audit(source, fixed)
    assert [each.row for each in findings] == [3, 7]
    assert [row for row, _ in report.problems] == [2, 4]
    rows[3], rows[7] = b'3,"42,\n43",y\r\n', b"6,42,"
    assert fixed.read_bytes() == b"".join(rows)


# --- Parquet ----------------------------------------------------------------------------------------------------------


def make_table(arrow: Any, responses: list[str | None]) -> Any:
    count = len(responses)
    nested = arrow.list_(arrow.struct([("role", arrow.string()), ("content", arrow.string()), ("at", arrow.date32())]))
    return arrow.table(
        {
            "id": arrow.array(range(count), arrow.int16()),
            "at": arrow.array([1_790_000_000_000_000_001] * count, arrow.timestamp("ns", "UTC")),
            "price": arrow.array([Decimal("1.50")] * count, arrow.decimal128(9, 2)),
            "facts": arrow.array([[("k", 1)]] * count, arrow.map_(arrow.string(), arrow.int32())),
            "nothing": arrow.array([None] * count, arrow.float32()),
            "score": arrow.array([float("nan")] * count, arrow.float64()),
            "raw": arrow.array([b"\0\xff"] * count, arrow.binary()),
            "kind": arrow.array(["x"] * count).dictionary_encode(),
            "response": arrow.array(responses, arrow.large_string()),
            "messages": arrow.array(
                [[{"role": "assistant", "content": text, "at": None}] for text in responses], nested
            ),
            "log": [None if text is None else json.dumps({"answer": text}) for text in responses],
        },
    ).replace_schema_metadata({b"of": b"us"})


def test_a_cleaned_parquet_file_differs_only_in_cleaned_cells(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, fixed = tmp_path / "rows.parquet", tmp_path / "fixed.parquet"
    responses = [LEAK if number % 700 == 3 else None if number % 5 == 0 else "clean" for number in range(2000)]
    parquet.write_table(make_table(arrow, responses), source, row_group_size=600)
    findings, report = audit(source, fixed)
    assert (len(findings), report.left, report.unread) == (9, 0, 0)
    parquet.write_table(
        make_table(arrow, ["42" if text == LEAK else text for text in responses]), tmp_path / "expected.parquet"
    )
    expected, found = parquet.read_table(tmp_path / "expected.parquet"), parquet.read_table(fixed)
    assert found.schema.equals(expected.schema, check_metadata=True)
    for name in expected.column_names:
        if name != "score":
            assert found.column(name).combine_chunks().equals(expected.column(name).combine_chunks()), name
    assert audit(fixed)[0] == []
    assert {path.name for path in tmp_path.iterdir()} == {"fixed.parquet", "rows.parquet", "expected.parquet"}


def test_bytes_with_text_are_audited_and_separated(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, fixed, output = tmp_path / "rows.parquet", tmp_path / "fixed.parquet", tmp_path / "out.jsonl"
    table = arrow.table({"response": arrow.array([LEAK.encode(), b"\xff", None], arrow.binary())})
    parquet.write_table(table, source)
    findings, _ = audit(source, fixed)
    assert [(each.row, each.path) for each in findings] == [(1, "$.response")]
    assert parquet.read_table(fixed).column("response").to_pylist() == [b"42", b"\xff", None]
    tally = run(source, output)
    assert tally.verdicts == {"closed": 1, "unreadable": 2}
    assert tally.notes == {"the column 'response' has bytes, which are written in base64": 2}


def test_a_column_of_nulls_is_a_column(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, output = tmp_path / "rows.parquet", tmp_path / "out.jsonl"
    values = [None] * 1200 + ["<think>t</think>a"]
    parquet.write_table(arrow.table({"id": range(1201), "response": values}), source)
    tally = run(source, output)
    assert tally.verdicts == {"unreadable": 1200, "closed": 1}
    empty = dict.fromkeys(("response", "answer", "thinking", "commentary"))
    assert next(read_rows(output)).fields == {"id": 0, **empty}
    assert next(read_rows(output.with_name("rows.parquet"))).fields == {"id": 0, "response": None}


def test_values_of_parquet_are_written_as_json(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, output = tmp_path / "rows.parquet", tmp_path / "out.jsonl"
    deep = arrow.struct([("at", arrow.timestamp("ns")), ("raw", arrow.binary()), ("no", arrow.string())])
    table = make_table(arrow, ["a"]).append_column(
        "deep", arrow.array([{"at": 1_790_000_000_000_000_001, "raw": b"\xff", "no": None}], deep)
    )
    parquet.write_table(table, source)
    tally = run(source, output)
    (row,) = [row.fields for row in read_rows(output)]
    assert row["at"].startswith("2026-09-21 14:13:20.000000001")
    assert row["price"] == "1.50"
    assert (row["nothing"], row["score"], row["raw"]) == (None, None, "AP8=")
    assert row["deep"] == {"at": "2026-09-21 14:13:20.000000001", "raw": "/w==", "no": None}
    assert set(tally.notes) == {
        f"the column {name!r} has bytes, which are written in base64" for name in ("raw", "deep")
    }


def test_conversations_of_parquet_may_have_nulls(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, output = tmp_path / "rows.parquet", tmp_path / "out.jsonl"
    chat = [
        {"role": "user", "content": "q", "reasoning_content": None, "tool_calls": None, "at": date(2026, 1, 1)},
        {"role": "assistant", "content": "a", "reasoning_content": "t", "tool_calls": None, "at": None},
    ]
    parquet.write_table(arrow.table({"chat": [chat]}), source)
    plan = Plan((str(source),), BlockJob(RowSeparator(messages="chat", to="think-tags", into="new")), str(output))
    SeparationRun(plan).run()
    (row,) = [row.fields for row in read_rows(output)]
    assert (row["answer"], row["thinking"]) == (["a"], ["t"])


# --- standard input ---------------------------------------------------------------------------------------------------


class Stopped(Exception):
    """Stops a run in the middle."""


def separate_stdin(data: bytes, output: Path, monkeypatch: pytest.MonkeyPatch, stop: bool = False) -> Tally:
    def watch(_: object) -> None:
        if stop:
            raise Stopped

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)), encoding="utf-8"))
    plan = Plan(("-",), BlockJob(RowSeparator(column="response")), str(output), f"{output}.undecided")
    return SeparationRun(plan, watch).run()


def test_another_standard_input_does_not_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out.jsonl"
    data = b"".join(b'{"response": "%d<think>%s</think>a"}\n' % (number, b"x" * 400) for number in range(6000))
    with pytest.raises(Stopped):
        separate_stdin(data, output, monkeypatch, stop=True)
    others = (
        data.replace(b"<think>", b"[THINK]", 1),
        b'{"response": "first"}\n' + data,
        data[:100],
        b"",
        data[: 1 << 20].replace(b"12", b"21") + data[1 << 20 :],
    )
    for other in others:
        with pytest.raises(asides.ConfigError, match="standard input is not what"):
            separate_stdin(other, output, monkeypatch)
    assert separate_stdin(data, output, monkeypatch).rows == 6000
    assert len(list(read_rows(output))) == 6000
