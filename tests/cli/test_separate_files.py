"""`asides separate --column …`: the rows of files, the report, and how a run is stopped and continued."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from asides.cli.app import main
from asides.cli.separate_files import _Watch
from asides.datasets.block_job import BlockJob
from asides.datasets.run import Plan, Progress
from asides.datasets.separator import RowSeparator
from asides.datasets.tally import Tally
from tests.cli.children import piped

ROWS = [
    {"model": "m1", "created": 1_790_000_000, "response": "<think>secret plan</think>42"},
    {"model": "m1", "created": 1_790_000_000, "response": "Paris"},
    {"model": "<m2>", "created": "2026-11-18T10:00:00Z", "response": "<think>secret, cut"},
]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    return path


def test_rows_the_report_and_the_undecided(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["separate", "rows.jsonl", "--column", "response", "-o", "out.jsonl"]) == 9
    out, err = capsys.readouterr()
    assert err == ""
    assert re.search(r"^closed +1 +33.3%  1$", out, re.MULTILINE)
    assert re.search(r"^unclosed +1 +33.3%  3$", out, re.MULTILINE)
    assert re.search(r"^think +2$", out, re.MULTILINE)
    assert "1 undecided row, listed in out.jsonl.undecided.jsonl" in out
    assert "secret" not in out
    rows = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["answer"], row["thinking"]) for row in rows] == [
        ("42", "secret plan"),
        ("Paris", None),
        ("", "secret, cut"),
    ]
    listed = Path("out.jsonl.undecided.jsonl").read_text(encoding="utf-8")
    assert json.loads(listed)["row"] == 3
    assert "secret" not in listed
    assert main(["separate", "rows.jsonl", "--column", "response", "-o", "out.jsonl"]) == 2
    assert "out.jsonl exists. Remove it" in capsys.readouterr().err


def test_decided_rows_end_with_0_and_the_report_is_json(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--accept", "unclosed", "--json", "--answer-column", "a", "--verdict-column", "v"]
    assert main(["separate", "rows.jsonl", "--column", "response", "-o", "out.csv", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdicts"]["unclosed"] == 1
    assert (report["rows"], report["undecided"], report["grammars"]) == (3, 0, {"think": 2, "none": 1})
    head = Path("out.csv").read_text(encoding="utf-8").splitlines()[0]
    assert head == "model,created,response,a,thinking,commentary,v"


def test_content_is_shown_only_on_request(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["separate", "rows.jsonl", "--column", "response", "-o", "out.jsonl", "--show", "1"]) == 9
    assert "  thinking: secret plan\n  answer: 42\n" in capsys.readouterr().out


def test_without_an_output_the_rows_go_to_stdout() -> None:
    text = "".join(f"{json.dumps(row)}\n" for row in ROWS[:2])
    run = subprocess.run(
        [sys.executable, "-m", "asides", "separate", "--column", "response"],
        input=text.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0
    assert [json.loads(line)["answer"] for line in run.stdout.splitlines()] == ["42", "Paris"]
    assert b"closed" in run.stderr


def separate_to_stdout(rows: list[str], *options: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "asides", "separate", "--column", "response", *options]
    return subprocess.run(command, input="\n".join(rows).encode(), capture_output=True, timeout=60, check=False)


def test_undecided_rows_are_named_where_no_file_lists_them() -> None:
    rows = ['{"response": "a"}', '{"response": "<think>secret, cut"}', '{"resp']
    run = separate_to_stdout(rows)
    assert run.returncode == 9
    report = run.stderr.decode()
    assert report.endswith("\n2 undecided rows:\n-:2 unclosed\n-:3 unreadable\n")
    assert re.search(r"^- +1$", report, re.MULTILINE)
    assert "secret" not in report
    report = separate_to_stdout(['{"response": "<think>secret, cut"}'] * 23).stderr.decode()
    assert "\n23 undecided rows:\n-:1 unclosed\n" in report
    assert report.endswith("\n-:20 unclosed\nand 3 more; --undecided FILE lists all\n")
    found = json.loads(separate_to_stdout(rows, "--json").stderr)
    assert found["undecided_rows"] == [{"row": "2", "verdict": "unclosed"}, {"row": "3", "verdict": "unreadable"}]


def test_statistics_as_table_json_and_page(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--column", "response", "--stats", "--stats-page", "stats.html"]
    assert main(["separate", "rows.jsonl", "-o", "out.jsonl", *options]) == 9
    table = capsys.readouterr().out
    assert re.search(r"^m1 +2026-09-21 +2 +1 ", table, re.MULTILINE)
    assert re.search(r"^<m2> +2026-11-18 +1 +1 ", table, re.MULTILINE)
    page = Path("stats.html").read_text(encoding="utf-8")
    assert "&lt;m2&gt;" in page
    assert "secret" not in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert ET.fromstring(drawing).tag == "svg"
    assert page.count("<svg") == 2
    assert main(["separate", "rows.jsonl", "-o", "again.jsonl", *options, "--json"]) == 9
    stats = json.loads(capsys.readouterr().out)["stats"]
    assert stats["all"] | {"thinking": 0, "answer": 0} == {
        "rows": 3, "with_thinking": 2, "unclosed": 1, "share": 0.7586, "thinking": 0, "answer": 0
    }  # fmt: skip
    assert [(group["model"], group["day"], group["rows"]) for group in stats["groups"]] == [
        ("<m2>", "2026-11-18", 1),
        ("m1", "2026-09-21", 2),
    ]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["-o", "x"], "--output is for files of rows. Name their text with --column"),
        (["b.jsonl"], "several files are for files of rows"),
        (["--column", "nope", "-o", "x.jsonl"], "no row has a column 'nope'. Pass one of model, created, response."),
        (["--column", "response", "--messages", "m"], "takes one of column=, messages= and response="),
        (["--column", "response", "--to", "jinja"], "unknown format 'jinja'"),
        (["--column", "response", "--accept", "all"], "unknown verdict 'all'"),
        (["--column", "response", "--output-format", "xml"], "unknown file format 'xml'"),
        (["--column", "response", "--processes", "0"], "--processes is a number from 1 to 256"),
        (["--column", "response", "--model", "nowhere:x"], "nowhere"),
    ],
)
def test_wrong_usage_is_explained(
    options: list[str], error: str, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["separate", "rows.jsonl", *options]) == 2
    assert error in capsys.readouterr().err
    assert [path.name for path in source.parent.iterdir()] == ["rows.jsonl"]


def test_one_text_stays_one_text(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert piped(capsys, monkeypatch, "<think>a</think>b", "separate", "-") == (0, "b\n", "")


def test_ctrl_c_says_how_to_continue(source: Path) -> None:
    with source.open("w", encoding="utf-8") as file:
        for number in range(100_000):
            file.write(json.dumps({"id": number, "response": f"<think>{number}</think>a"}) + "\n")
    command = [sys.executable, "-m", "asides", "separate", "rows.jsonl", "--column", "response", "-o", "out.jsonl"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    while process.poll() is None and not Path("out.jsonl.progress").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(rb"stopped after [\d,]+ rows. Run the same command again to continue.", err)
    again = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert again.returncode == 0
    assert b"continuing after" in again.stderr
    rows = Path("out.jsonl").read_bytes().splitlines()
    assert [json.loads(row)["id"] for row in rows] == list(range(100_000))


def test_the_line_of_progress() -> None:
    clock = [0.0]
    plan = Plan(("a", "b"), BlockJob(RowSeparator(column="x")), "out")
    watch = _Watch(plan, lambda: clock[0])
    watch.take(Progress(share=0.1, tally=Tally(rows=1000)))
    assert watch.write_line() == "1,000 rows, 1,000,000 rows/s"
    clock[0] = 9.0
    watch.take(Progress(share=0.5, tally=Tally(rows=5000, undecided=7)))
    assert watch.write_line() == "5,000 rows, 556 rows/s, 25%, 33 s left, 7 undecided"
    watch.take(Progress(file=1, share=None, tally=Tally(rows=9000), resumed_rows=8910))
    assert watch.write_line() == "9,000 rows, 10 rows/s"
