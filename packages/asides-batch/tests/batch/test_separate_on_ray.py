"""Files are separated one at a time and resumed by file; on a real Ray cluster of two nodes with one killed, too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from asides import ConfigError
from asides.datasets.block_job import BlockJob
from asides.datasets.separator import RowSeparator
from asides.packages import PARTS, load_entry
from asides_batch.separate_on_ray import FileResult, separate_file, separate_on_ray
from asides_batch.separate_on_ray import _list_tasks as list_tasks
from tests.batch.two_ray_nodes import RAY_ENVIRONMENT, TwoNodes, open_two_nodes
from tests.cli.children import command, environment

_JOB = BlockJob(RowSeparator(column="response"))


def write_rows(path: Path, count: int = 20, size: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps({"id": n, "response": f"<think>{'plan ' * size}{n}</think>{n}" if n % 10 else "<think>cut"})
        for n in range(count)
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read_answers(path: Path) -> list[str]:
    return [json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_command_finds_this_part() -> None:
    assert load_entry(PARTS, "separate_on_ray") is separate_on_ray


def test_a_file_is_separated_once(tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a" / "rows.jsonl")
    (task,) = list_tasks([str(tmp_path / "in")], str(tmp_path / "out"))
    result = separate_file(task, _JOB)
    assert result.tally is not None
    assert (result.problem, result.tally.rows, result.tally.undecided) == ("", 20, 2)
    written = tmp_path / "out" / "a" / "rows.jsonl"
    assert read_answers(written) == ["" if n % 10 == 0 else str(n) for n in range(20)]
    assert [path.name for path in (tmp_path / "out" / "_separate").iterdir()] == ["a"]
    before = written.stat()
    assert separate_file(task, _JOB) == result
    assert (written.stat().st_ino, written.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    other = BlockJob(RowSeparator(column="response", answer="text"))
    assert task.read_report(other) is None
    write_rows(tmp_path / "in" / "a" / "rows.jsonl", 30)
    assert task.read_report(_JOB) is None


def test_a_file_that_cannot_be_separated_is_a_problem_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"other": 1}\n', encoding="utf-8")
    (task,) = list_tasks([str(path)], str(tmp_path / "out"))
    result = separate_file(task, _JOB)
    assert result.tally is None
    assert "no row has a column 'response'" in result.problem
    assert not task.target.exists()
    assert list((tmp_path / "out" / "_separate").iterdir()) == []


def test_nothing_is_overwritten_and_complete_files_need_no_cluster(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.jsonl")
    folder = tmp_path / "out"
    (task,) = list_tasks([str(source)], str(folder))
    separate_file(task, _JOB)
    files: list[tuple[str, FileResult]] = []
    undecided = tmp_path / "undecided.jsonl"
    tally, problems = separate_on_ray(
        [str(source)],
        str(folder),
        _JOB,
        undecided=str(undecided),
        address="127.0.0.1:1",
        on_file=lambda name, result: files.append((name, result)),
    )
    assert (tally.rows, problems, [name for name, _ in files]) == (20, [], [str(source)])
    listed = [json.loads(line)["row"] for line in undecided.read_text(encoding="utf-8").splitlines()]
    assert listed == [1, 11]
    task.report.unlink()
    with pytest.raises(ConfigError, match="exists, and is not of this job"):
        separate_on_ray([str(source)], str(folder), _JOB)
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        separate_on_ray([str(tmp_path / "missing")], str(folder), _JOB)
    with pytest.raises(ConfigError, match="two files have the name"):
        separate_on_ray([str(source), str(write_rows(tmp_path / "b" / "rows.jsonl"))], str(folder), _JOB)


def test_hidden_files_and_reports_of_an_earlier_run_are_not_read(tmp_path: Path) -> None:
    for name in ("rows.jsonl", "_separate/rows.jsonl", ".cache/rows.jsonl", "notes.txt"):
        write_rows(tmp_path / "in" / name)
    assert [task.name for task in list_tasks([str(tmp_path / "in")], "out")] == ["rows.jsonl"]


# --- on a cluster -----------------------------------------------------------------------------------------------------

_FILES, _ROWS = 16, 4000
on_ray = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("ray") is None, reason="needs asides[ray]"),
]


@pytest.fixture
def cluster(_nobodys_settings: Path) -> Iterator[TwoNodes]:
    with open_two_nodes() as nodes:
        yield nodes


def write_folder(folder: Path) -> Path:
    """A folder of Parquet files."""
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    folder.mkdir()
    for number in range(_FILES):
        texts = [f"<think>{'plan ' * 200}{n}</think>{number}.{n}" for n in range(_ROWS)]
        table = pyarrow.table({"id": list(range(_ROWS)), "response": texts})
        parquet.write_table(table, folder / f"part-{number:02}.parquet", row_group_size=500)
    return folder


def start(folder: Path, out: Path, cluster: TwoNodes) -> subprocess.Popen[bytes]:
    words = ["separate", str(folder), "--column", "response", "-o", str(out), "--via", "ray", "--json"]
    return subprocess.Popen(
        command([*words, "--ray-address", cluster.address, "--actors", "2"]),
        env=environment(RAY_ENVIRONMENT),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def list_files(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}


def count_attempts(out: Path) -> int:
    return len(list(out.glob("_separate/attempt-*")))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def check(out: Path, child: subprocess.Popen[bytes]) -> None:
    parquet = import_module("pyarrow.parquet")
    printed, err = child.communicate(timeout=500)
    assert child.returncode == 0, err.decode()
    assert json.loads(printed)["verdicts"]["closed"] == _FILES * _ROWS
    assert len(list_files(out)) == _FILES
    assert count_attempts(out) == 0
    for number in range(_FILES):
        table = parquet.read_table(out / f"part-{number:02}.parquet")
        assert table.column_names == ["id", "response", "answer", "thinking", "commentary"]
        assert table["answer"].to_pylist() == [f"{number}.{n}" for n in range(_ROWS)]


class TestOnRay:
    pytestmark = on_ray

    def test_a_node_is_killed_and_every_file_is_complete(self, cluster: TwoNodes, tmp_path: Path) -> None:
        folder, out = write_folder(tmp_path / "in"), tmp_path / "out"
        child = start(folder, out, cluster)
        try:
            wait_for(lambda: len(list_files(out)) >= 2 and count_attempts(out) == 2)
            cluster.kill_second_node()
            complete = list_files(out)
            assert len(complete) < _FILES
            check(out, child)
        finally:
            child.kill()
        after = list_files(out)
        assert {name: after[name] for name in complete} == complete

    def test_a_driver_is_killed_and_the_next_one_continues_by_file(self, cluster: TwoNodes, tmp_path: Path) -> None:
        folder, out = write_folder(tmp_path / "in"), tmp_path / "out"
        child = start(folder, out, cluster)
        try:
            wait_for(lambda: len(list(out.glob("_separate/*.json"))) >= 3)
        finally:
            os.kill(child.pid, signal.SIGKILL)
            child.communicate()
        complete = {path.stem: 0 for path in out.glob("_separate/*.json")}
        times = list_files(out)
        again = start(folder, out, cluster)
        try:
            check(out, again)
        finally:
            again.kill()
        after = list_files(out)
        assert {name: after[name] for name in complete} == {name: times[name] for name in complete}
