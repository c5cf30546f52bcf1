"""A run over files: resumable at any time, the same with several processes, and a bad row costs no other."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.datasets.block_job import BlockJob
from asides.datasets.rows import open_writer, read_rows
from asides.datasets.run import Plan, Progress, SeparationRun
from asides.datasets.separator import RowSeparator
from tests.datasets.damaged_rows import write_rows

SEPARATOR = RowSeparator(column="response", verdict="verdict")


def make_plan(source: Path, output: Path, **changes: Any) -> Plan:
    job = BlockJob(SEPARATOR)
    return Plan((str(source),), job, str(output), f"{output}.undecided", **changes).settle()


def run_whole(source: Path, output: Path, **changes: Any) -> bytes:
    SeparationRun(make_plan(source, output, **changes)).run()
    return output.read_bytes()


class Stopped(Exception):
    """Stops a run in the middle."""


def stop_after(blocks: int) -> Any:
    seen: list[int] = []

    def watch(progress: Progress) -> None:
        seen.append(progress.next_row)
        if len(seen) == blocks:
            raise Stopped

    return watch


@pytest.mark.parametrize(
    "ending",
    [
        "jsonl",
        "jsonl.gz",
        "parquet",
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("json", "jsonl.zst", "csv")),
    ],
)
def test_a_run_that_was_stopped_continues(ending: str, tmp_path: Path) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    if ending.endswith("zst"):
        pytest.importorskip("zstandard")
    source = tmp_path / "rows.jsonl"
    write_rows(source, 3000, 7)
    whole, output = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    expected = run_whole(source, whole)
    for blocks in (1, 2):
        with pytest.raises(Stopped):
            SeparationRun(make_plan(source, output), stop_after(blocks)).run()
        assert not output.exists()
        # What was written behind the certain part, as by a process that was killed, is written again.
        rows = next(tmp_path.glob(f"out.{ending}.[pr][ao][rw]*"))
        with rows.open("ab") as file:
            file.write(b'{"half')
        with Path(f"{output}.undecided").open("ab") as file:
            file.write(b'{"half')
    run = SeparationRun(make_plan(source, output))
    assert run.progress.resumed_rows > 0
    assert run.run().rows == 3000
    assert list(read_rows(output)) == list(read_rows(whole))
    if ending in ("jsonl", "json", "csv"):
        assert output.read_bytes() == expected
    assert Path(f"{output}.undecided").read_bytes() == Path(f"{whole}.undecided").read_bytes()
    left = {path.name for path in tmp_path.iterdir() if path.name.startswith("out")}
    assert left == {f"out.{ending}", f"out.{ending}.undecided"}


def test_a_killed_run_loses_nothing(tmp_path: Path) -> None:
    source, output, whole = tmp_path / "rows.jsonl", tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    write_rows(source, 15_000, 7)
    command = [sys.executable, "-m", "asides", "separate", str(source), "--column", "response", "-o", str(output)]
    command += ["--verdict-column", "verdict", "--undecided", f"{output}.undecided", "--processes", "2"]
    progress, kills = Path(f"{output}.progress"), 0
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = progress.read_bytes() if progress.exists() else b""
        while process.poll() is None and (not progress.exists() or progress.read_bytes() == before):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills
    if not output.exists():
        assert json.loads(progress.read_bytes())["tally"]["rows"] > 0
        assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=120, check=False).returncode == 9
    assert output.read_bytes() == run_whole(source, whole)
    assert Path(f"{output}.undecided").read_bytes() == Path(f"{whole}.undecided").read_bytes()


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    script = (
        "import os, sys, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "from asides.datasets.run import _start_worker\n"
        "if __name__ == '__main__':\n"
        "    pool = ProcessPoolExecutor(1, get_context('spawn'), _start_worker)\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    path = tmp_path / "parent.py"
    path.write_text(script, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 10
    while _is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_alive(worker)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process without a parent may stay as an entry until the system takes it.
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z")


def test_two_processes_write_the_same(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    write_rows(source, 6000, 5)
    assert run_whole(source, tmp_path / "one.jsonl") == run_whole(source, tmp_path / "two.jsonl", processes=2)


def test_another_job_does_not_continue(tmp_path: Path) -> None:
    source, output = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    write_rows(source, 2000, 1)
    with pytest.raises(Stopped):
        SeparationRun(make_plan(source, output), stop_after(1)).run()
    write_rows(source, 2100, 1)
    with pytest.raises(asides.ConfigError, match="belongs to another job"):
        SeparationRun(make_plan(source, output))
    Path(f"{output}.progress").unlink()
    run_whole(source, output)
    with pytest.raises(asides.ConfigError, match=r"exists\. Remove it"):
        SeparationRun(make_plan(source, output))


def test_everything_else_stays_as_it_was(tmp_path: Path) -> None:
    source, output = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    lines = [
        '{"n": 1.10, "big": 123456789012345678901234567890, "response": "<think>a</think>b", "x": {"k": [1.0]}}',
        "not json",
        '{"n": NaN, "response": "\\ud83d"}',
        '{"response": 5}',
        "",
        '{"response": "c"}',
    ]
    source.write_text("\n".join(lines), encoding="utf-8")
    tally = SeparationRun(make_plan(source, output)).run()
    rows = output.read_text(encoding="utf-8").splitlines()
    assert rows[0] == (
        '{"n":1.10,"big":123456789012345678901234567890,"response":"<think>a</think>b","x":{"k": [1.0]},'
        '"answer":"b","thinking":"a","commentary":null,"verdict":"closed"}'
    )
    assert rows[1].startswith('{"n": NaN, "response": "\\ud83d", "answer": "\\ud83d"')
    assert json.loads(rows[2]) == {"response": 5, "answer": None, "thinking": None, "commentary": None} | {
        "verdict": "unreadable"
    }
    listed = [json.loads(line) for line in Path(f"{output}.undecided").read_text(encoding="utf-8").splitlines()]
    assert [(row["row"], row["reason"]) for row in listed] == [
        (2, "the row is not JSON"),
        (4, "the value is not text but int"),
    ]
    assert (tally.rows, tally.undecided) == (5, 2)


def test_parquet_columns_keep_their_types(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    source, output = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    count = 2500
    table = arrow.table(
        {
            "id": arrow.array(range(count), arrow.int16()),
            "at": arrow.array([1_790_000_000_000_000_001 + n for n in range(count)], arrow.timestamp("ns")),
            "raw": arrow.array([b"\0\xff"] * count),
            "response": [f"<think>t{n}</think>a{n}" if n % 3 else None for n in range(count)],
        }
    )
    parquet.write_table(table, source, row_group_size=700)
    tally = SeparationRun(make_plan(source, output)).run()
    found = parquet.read_table(output)
    assert found.select(table.column_names).equals(table)
    assert found.column("answer").to_pylist() == [f"a{n}" if n % 3 else None for n in range(count)]
    assert found.column("thinking").to_pylist()[:2] == [None, "t1"]
    assert tally.verdicts == {"unreadable": 834, "closed": 1666}


def test_csv_in_csv_out(tmp_path: Path) -> None:
    source, output = tmp_path / "rows.csv", tmp_path / "out.csv.gz"
    with open_writer(source) as writer:
        writer.write({"id": "007", "response": '<think>a\n"q"</think>b,c'})
        writer.write({"id": "008", "response": "d"})
    SeparationRun(make_plan(source, output)).run()
    with gzip.open(output, "rt", encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [
            {"id": "007", "response": '<think>a\n"q"</think>b,c', "answer": "b,c", "thinking": 'a\n"q"'}
            | {"commentary": "", "verdict": "closed"},
            {"id": "008", "response": "d", "answer": "d", "thinking": "", "commentary": "", "verdict": "none"},
        ]


def test_a_wrong_column_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text('{"text": "a", "answer": 1}\n', encoding="utf-8")
    with pytest.raises(asides.ConfigError, match=r"no row has a column 'response'. Pass one of text, answer"):
        SeparationRun(make_plan(source, tmp_path / "out.jsonl")).run()
    plan = Plan((str(source),), BlockJob(RowSeparator(column="text")), str(tmp_path / "out.jsonl"))
    with pytest.raises(asides.ConfigError, match="have a column 'answer' already"):
        SeparationRun(plan).run()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_a_later_row_keeps_a_column_of_its_own(tmp_path: Path) -> None:
    source, output = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(
        '{"response": "a"}\n' + '{"response": "b"}\n' * 70_000 + '{"answer": "mine", "response": "c"}\n',
        encoding="utf-8",
    )
    SeparationRun(make_plan(source, output)).run()
    last = json.loads(output.read_bytes().splitlines()[-1])
    assert (last["answer"], last["verdict"]) == ("mine", "unreadable")


def test_several_files_become_one_output(tmp_path: Path) -> None:
    first, second, output = tmp_path / "a.jsonl", tmp_path / "b.json", tmp_path / "out.json"
    first.write_text('{"response": "<think>a</think>1"}\n{"response": "<think>a"}\n', encoding="utf-8")
    second.write_text('[{"response": "2"}, {"response": ""}]', encoding="utf-8")
    plan = Plan(
        (str(first), str(second)), BlockJob(RowSeparator(column="response")), str(output), f"{output}.undecided"
    )
    tally = SeparationRun(plan).run()
    assert [row["answer"] for row in json.loads(output.read_text(encoding="utf-8"))] == ["1", "", "2", ""]
    assert tally.samples["empty_answer"] == [f"{second}:2"]
    rows = [json.loads(line) for line in Path(f"{output}.undecided").read_text(encoding="utf-8").splitlines()]
    assert [(row["file"], row["row"]) for row in rows] == [(str(first), 2), (str(second), 2)]
