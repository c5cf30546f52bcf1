"""Thoughts are planted in every source; the audit finds each of them, and nothing where there are none."""

from __future__ import annotations

import gzip
import json
import sqlite3
import stat
import tracemalloc
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asides import ConfigError
from asides.datasets.audit import AuditFinding, make_settings
from asides.datasets.audit_database import MAGIC
from asides.datasets.audit_files import audit_file
from asides.datasets.audit_report import FileReport
from asides.datasets.rows import open_compressed
from asides.wire.inline_tags import Position
from tests.datasets.audit_sources import DATABASES, LINES, LOGS, SOURCES, Writer, write_completions, write_llm


class Leak(NamedTuple):
    text: str
    grammar: str
    kind: str
    channel: str = "thinking"


SECRET = "a hidden plan of the model"
LEAKS = (
    Leak(f"<think>{SECRET}</think>42", "think", "closed"),
    Leak(f"<think>\n{SECRET}\n\nand more\n</think>\n\n42", "think", "closed"),
    Leak(f"<THINKING kind='x'>{SECRET}</THINKING>\n\n42", "thinking", "closed"),
    Leak(f"{SECRET}</think>42", "think", "lone_close"),
    Leak(f"[THINK]{SECRET}[/THINK]42", "[think]", "closed"),
    Leak(f"<seed:think>{SECRET}", "seed", "unclosed"),
    Leak(
        f"<|channel|>analysis<|message|>{SECRET}<|end|><|start|>assistant<|channel|>final<|message|>42",
        "harmony",
        "closed",
    ),
    Leak(f"◁think▷{SECRET}◁/think▷42", "kimi", "closed"),
    Leak("<think>\n\n</think>\n\n42", "think", "empty"),
    Leak(
        "<|channel|>commentary<|message|>I look it up first.<|end|><|start|>assistant<|channel|>final<|message|>42",
        "harmony",
        "closed",
        "commentary",
    ),
)
CLEAN = (
    "42",
    "",
    "Write `<think>plan</think>` around it.",
    "```xml\n<think>plan</think>\n```\nThat is how.",
    "if a <b and c> d: [x] {y}",
    "Close it with `</think>`.",
    "<details><summary>More</summary>text</details>",
    "<b>bold</b>",
)
LATER = "Sure. <think>plan</think> 42"
MENTION = "A <think> opens it."


def audit(path: Path, fix: Path | None = None, position: Position = "auto") -> tuple[list[AuditFinding], FileReport]:
    report = FileReport(str(path))
    return list(audit_file(str(path), make_settings(None, position, None), report, fix)), report


def describe(findings: list[AuditFinding]) -> list[tuple[str, str, str]]:
    return sorted((each.grammar, each.kind, each.channel) for each in findings)


@pytest.fixture(params=sorted(SOURCES))
def write(request: pytest.FixtureRequest) -> Writer:
    return SOURCES[str(request.param)]


def test_every_planted_thought_is_found(write: Writer, tmp_path: Path) -> None:
    findings, report = audit(write(tmp_path, [leak.text for leak in LEAKS]))
    assert describe(findings) == sorted((leak.grammar, leak.kind, leak.channel) for leak in LEAKS)
    hidden = [each.text for each in findings if SECRET in each.text]
    assert len(hidden) == sum(SECRET in leak.text for leak in LEAKS)
    assert report.unread == 0
    assert report.found == len(LEAKS)


def test_nothing_is_reported_where_there_is_none(write: Writer, tmp_path: Path) -> None:
    findings, report = audit(write(tmp_path, CLEAN))
    assert findings == []
    assert report.unread == 0
    assert report.rows > 0


@pytest.mark.parametrize("source", sorted({**LINES, **DATABASES}))
def test_a_block_behind_the_beginning_of_an_answer_is_found_and_stays(source: str, tmp_path: Path) -> None:
    path = SOURCES[source](tmp_path, [LATER, "42", MENTION])
    findings, report = audit(path, tmp_path / f"fixed-{path.name}")
    assert describe(findings) == [("think", "later", "thinking")]
    assert (report.left, report.mentions) == (1, 1)
    assert read_all(tmp_path / f"fixed-{path.name}") == read_all(path)
    assert audit(path, position="leading")[0] == []
    assert describe(audit(path, position="anywhere")[0])[0] == ("think", "closed", "thinking")


@pytest.mark.parametrize("source", sorted({**LINES, **DATABASES}))
def test_a_cleaned_copy_is_clean_and_the_rest_stays(source: str, tmp_path: Path) -> None:
    write = SOURCES[source]
    path = write(tmp_path, [LEAKS[0].text, "42 <b>", LEAKS[3].text])
    before = path.read_bytes()
    fixed = tmp_path / f"fixed-{path.name}"
    findings, report = audit(path, fixed)
    assert len(findings) == 2
    assert report.left == 0
    assert path.read_bytes() == before
    assert audit(fixed)[0] == []
    assert SECRET.encode() not in fixed.read_bytes()
    folder = tmp_path / "expected"
    folder.mkdir()
    assert read_all(fixed) == read_all(write(folder, ["42", "42 <b>", "42"]))


def read_all(path: Path) -> object:
    """The content of a file, without what differs between two files of the same content."""
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%fts%'")
            rows = {table: database.execute(f'SELECT * FROM "{table}"').fetchall() for (table,) in tables.fetchall()}
        return {
            table: [
                [parse(value) for value in row if not isinstance(value, float) and value not in (None, "")]
                for row in found
            ]
            for table, found in rows.items()
        }
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else parse(text)


def parse(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str | bytes) else value
    except ValueError:
        return value


def test_rows_without_a_finding_are_copied_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    odd = b'{"id": 12345678901234567890123, "x": 1.50,  "response":"\\u0034\\u0032"}'
    path.write_bytes(odd + b"\n" + b'{"id": 12345678901234567890123, "response": "<think>a</think>b"}\n' + b"\n")
    audit(path, tmp_path / "fixed.jsonl")
    first, second, *_ = (tmp_path / "fixed.jsonl").read_bytes().splitlines()
    assert first == odd
    assert json.loads(second) == {"id": 12345678901234567890123, "response": "b"}


@pytest.mark.parametrize("source", sorted(LOGS))
def test_lines_of_a_log_are_found_and_not_cleaned(source: str, tmp_path: Path) -> None:
    path = SOURCES[source](tmp_path, [LEAKS[0].text])
    _, report = audit(path, tmp_path / "fixed.log")
    assert report.left == 1
    assert (tmp_path / "fixed.log").read_text(encoding="utf-8").split() == path.read_text(encoding="utf-8").split()


def test_a_thought_in_a_log_ends_where_another_record_begins(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(
        "2026-11-19 10:00:00 INFO answer=<think>They want\n"
        "a number\n"
        "2026-11-19 10:00:01 INFO done\n"
        "2026-11-19 10:00:02 INFO answer=<think>so\n"
        "</think>42\n",
        encoding="utf-8",
    )
    findings, _ = audit(path)
    assert [(each.row, each.kind, each.text) for each in findings] == [
        (1, "unclosed", "They want\na number"),
        (4, "closed", "so\n"),
    ]


def test_compressed_files_are_read_and_written(tmp_path: Path) -> None:
    plain = write_completions(tmp_path, [LEAKS[0].text, "42"])
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    findings, _ = audit(path, tmp_path / "fixed.jsonl.gz")
    assert len(findings) == 1
    rows = gzip.decompress((tmp_path / "fixed.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(row)["response"] for row in rows] == ["42", "42"]


def test_a_search_index_forgets_the_thinking_too(tmp_path: Path) -> None:
    path = write_llm(tmp_path, [LEAKS[0].text, *CLEAN])
    fixed = tmp_path / "fixed.db"
    audit(path, fixed)
    with closing(sqlite3.connect(fixed)) as database:
        query = "SELECT count(*) FROM responses_fts WHERE responses_fts MATCH ?"
        assert database.execute(query, ("hidden",)).fetchone() == (0,)
        assert database.execute(query, ("bold",)).fetchone() == (1,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert b"hidden" not in fixed.read_bytes()


def test_rows_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('[{"response": "<think>a</think>b"}, {"response": ', encoding="utf-8")
    findings, report = audit(path)
    assert len(findings) == 1
    assert report.problems == [(2, "the file is not JSON from here on: 13 characters were left out")]
    deep = tmp_path / "deep.jsonl"
    deep.write_text("[" * 5000 + "]" * 5000 + '\n{"response": "<think>a</think>b"}\n', encoding="utf-8")
    findings, report = audit(deep)
    assert [each.row for each in findings] == [2]


def test_a_copy_is_as_private_as_the_original(tmp_path: Path) -> None:
    path = write_completions(tmp_path, [LEAKS[0].text])
    path.chmod(0o600)
    audit(path, tmp_path / "fixed.jsonl")
    assert stat.S_IMODE((tmp_path / "fixed.jsonl").stat().st_mode) == 0o600


def test_a_database_in_use_is_read(tmp_path: Path) -> None:
    path = write_llm(tmp_path, [LEAKS[0].text])
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO responses (id, response) VALUES ('new', '<think>b</think>c')")
        assert len(audit(path)[0]) == 2
        assert len(audit(path, tmp_path / "fixed.db")[0]) == 2
        writer.execute("INSERT INTO responses (id, response) VALUES ('newer', '<think>b</think>c')")
    assert audit(tmp_path / "fixed.db")[0] == []


_PIECES = (
    *(
        b'{"response": "',
        b"<think>",
        b"</think>",
        b'"}',
        b"\n",
        b"[",
        b"]",
        b",",
        b"{",
        b"}",
        b"\\",
        b'"',
        b"```",
        b"a,b",
    ),
    *(b"data: ", b"2026-11-19 00:00:00 ", b"\xff", b"\x00", b"\xef\xbb\xbf", b"NaN", b"1e999", b'"\\ud800"'),
)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.log", "rows.csv", "rows.db", "rows"])
@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_read_or_refused(name: str, tmp_path: Path, data: st.DataObject) -> None:
    content = b"".join(data.draw(st.lists(st.sampled_from(_PIECES) | st.binary(max_size=6), max_size=12)))
    path = tmp_path / name
    path.write_bytes((MAGIC if name.endswith(".db") else b"") + content)
    (tmp_path / f"fixed-{name}").unlink(missing_ok=True)
    with suppress(ConfigError):
        audit(path)
    with suppress(ConfigError):
        audit(path, tmp_path / f"fixed-{name}")


@pytest.mark.parametrize(
    "content",
    [
        b'[{"response": "<think>a</think>b"}, {"response": "\x80"}, {"response": "<think>c</think>d"}]',
        b'{"response": "<think>a</think>b"} {"\x80": 1} {"response": "<think>c</think>d"}',
        b'[{"response": "<think>a</think>b"}, "}\x80{", {"response": "<think>c</think>d"}]',
    ],
)
def test_a_value_that_is_not_utf8_costs_no_other(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(content)
    found, report = audit(path, tmp_path / "fixed.json")
    assert [(finding.row, finding.is_removed) for finding in found] == [(1, True), (3, True)]
    assert report.problems == [(2, "the row is not UTF-8")]
    fixed = (tmp_path / "fixed.json").read_bytes()
    assert b"\x80" in fixed
    assert b"<think>" not in fixed


def test_a_damaged_database_is_refused_or_read_in_part(tmp_path: Path) -> None:
    path = write_llm(tmp_path, [LEAKS[0].text] * 200)
    whole = path.read_bytes()
    for place in range(0, len(whole), 5999):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        (tmp_path / "fixed.db").unlink(missing_ok=True)
        with suppress(ConfigError):
            audit(path, tmp_path / "fixed.db")


@pytest.mark.parametrize("source", ["completions", "log", "llm"])
def test_a_large_file_is_not_held_in_memory(source: str, tmp_path: Path) -> None:
    path = SOURCES[source](tmp_path, [f"<think>{SECRET} {n}</think>{'42 ' * 2000}" for n in range(1500)])
    assert path.stat().st_size > 9_000_000
    report = FileReport(str(path))
    tracemalloc.start()
    found = sum(1 for _ in audit_file(str(path), make_settings(None, "auto", None), report))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == 1500
    assert most < 6_000_000


@pytest.mark.parametrize(
    ("text", "kind", "rest"),
    [
        ("<think>t</think>The tag <think> opens and </think> closes it.", "later", None),
        ("Sure. <thinking>a</thinking> and <thinking>b</thinking>", "later", None),
        ("analysisThey ask it.assistantfinal42", "closed", "42"),
        ("assistantanalysisThey ask it. assistantfinal42", "closed", "42"),
        ("assistantanalysist.assistantcommentary to=x c.assistantfinal\n42", "closed", "42"),
        ("<|begin_of_thought|>t<|end_of_thought|>42", "closed", "42"),
        ("<reason>t</reason>42", "closed", "42"),
        ("<reason>t</reason> <b>42</b>", "closed", "<b>42</b>"),
        ("The analysis of the assistantfinal", None, "The analysis of the assistantfinal"),
        ("Give a <reason> why", None, "Give a <reason> why"),
    ],
)
def test_texts_without_a_model(text: str, kind: str | None, rest: str | None, tmp_path: Path) -> None:
    source, fixed = tmp_path / "rows.jsonl", tmp_path / "fixed.jsonl"
    source.write_text(json.dumps({"response": text}) + "\n", encoding="utf-8")
    kinds = [each.kind for each in audit(source, fixed)[0]]
    assert kinds[-1:] == ([] if kind is None else [kind])
    if rest is not None:
        assert json.loads(fixed.read_bytes())["response"].strip() == rest


DETAILS = '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> plan\n</details>\n'


def test_a_leak_behind_thinking_in_its_place_in_open_webui(tmp_path: Path) -> None:
    path = DATABASES["Open WebUI"](
        tmp_path, [f"{DETAILS}42", f"{DETAILS}<think>t</think>42", f"{DETAILS}{DETAILS}t</think>42"]
    )
    findings, report = audit(path, tmp_path / "fixed.db")
    assert describe(findings) == [("think", "closed", "thinking"), ("think", "lone_close", "thinking")]
    assert report.left == 0
    assert audit(tmp_path / "fixed.db")[0] == []
    assert b"plan" in (tmp_path / "fixed.db").read_bytes()


LONG = "They want the product, so I multiply six by seven."


def make_claude(*blocks: dict[str, str]) -> list[object]:
    return [
        {"type": "assistant", "sessionId": "s", "message": {"id": "m", "role": "assistant", "content": [block]}}
        for block in blocks
    ]


def make_codex(thought: str, text: str) -> list[object]:
    return [
        {"type": "response_item", "payload": {"type": "reasoning",
         "summary": [{"type": "summary_text", "text": thought}]}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
        {"type": "response_item", "payload": {"type": "message", "role": "assistant",
         "content": [{"type": "output_text", "text": text}]}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (make_claude({"type": "thinking", "thinking": LONG}, {"type": "text", "text": f"{LONG}\n42"}), [2]),
        (make_claude({"type": "thinking", "thinking": LONG}, {"type": "text", "text": "42"}), []),
        (make_codex(LONG, f"{LONG} 42"), [3]),
        (make_codex(LONG, "42"), []),
        ([{"reasoning": LONG, "response": "42"}, {"response": f"{LONG} 42"}], []),
    ],
)
def test_a_copy_in_a_later_record_of_a_transcript(records: list[object], expected: list[int], tmp_path: Path) -> None:
    source, fixed = tmp_path / "rows.jsonl", tmp_path / "fixed.jsonl"
    source.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    assert [(each.row, each.kind) for each in audit(source, fixed)[0]] == [(row, "copied") for row in expected]
    assert audit(fixed)[0] == []


@pytest.mark.parametrize("name", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "log"])
def test_files_in_utf_16(name: str, ending: str, tmp_path: Path) -> None:
    leak = f"<think>{SECRET} é 😀</think>42"
    text = {
        "jsonl": json.dumps({"response": leak}, ensure_ascii=False) + "\n",
        "json": json.dumps([{"response": leak}], ensure_ascii=False),
        "csv": f"response\n{leak}\n",
        "log": f"INFO {leak}\n",
    }[ending]
    path = tmp_path / f"rows.{ending}"
    path.write_bytes((text if name == "utf-16" else f"\ufeff{text}").encode(name))
    findings, _ = audit(path, tmp_path / f"fixed.{ending}")
    assert [each.text for each in findings] == [f"{SECRET} é 😀"]
    if ending != "log":
        assert audit(tmp_path / f"fixed.{ending}")[0] == []


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_compressed_database(ending: str, tmp_path: Path) -> None:
    if ending == "zst":
        pytest.importorskip("zstandard")
    plain = write_llm(tmp_path, [LEAKS[0].text, "42"])
    path, fixed = tmp_path / f"logs.db.{ending}", tmp_path / f"fixed.db.{ending}"
    with open_compressed(path, "wb") as file:
        file.write(plain.read_bytes())
    findings, report = audit(path, fixed)
    assert (describe(findings), report.form) == ([("think", "closed", "thinking")], "sqlite")
    assert audit(fixed)[0] == []
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ConfigError, match=r"logs.db.\w+ is damaged"):
        audit(path)
