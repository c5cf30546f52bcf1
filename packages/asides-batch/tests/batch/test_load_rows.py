"""Rows into a ledger: from files of both kinds, and from programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import asides
import asides_batch
from asides.batch_rows import read_row
from asides.dialects.dialect import ServedRequest
from asides.values.errors import ConfigError
from asides_batch.batch_plan import BatchPlan
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import LoadedRow, create_record
from asides_batch.load_rows import RowSource, load_rows, spool
from asides_stage.stage import OpenStage, Say, Scene
from tests.cli.children import MODEL, command, environment
from tests.stores import list_import_folders

PLAN = BatchPlan(("groq:m",))


def load(source: RowSource, folder: Path) -> list[Any]:
    database, ledger = open_ledger_database(str(folder / "ledger")), Ledger("b")
    record = database.run(lambda: ledger.begin(create_record("b"), lambda _: False))
    load_rows(source, PLAN, database, ledger, record)
    rows = database.run(lambda: ledger.join(0, 10_000), writes=False)
    database.close()
    return rows


def test_more_rows_than_one_transaction_has(tmp_path: Path) -> None:
    with spool((f"row {n}" for n in range(2500)), "rows") as source:
        rows = load(source, tmp_path)
    assert [row.place for row in rows] == list(range(2500))
    assert len({row.hash for row in rows}) == 2500


def test_a_load_that_broke_off_goes_on(tmp_path: Path) -> None:
    database, ledger = open_ledger_database(str(tmp_path / "ledger")), Ledger("b")
    database.run(lambda: ledger.begin(create_record("b"), lambda _: False))
    database.run(lambda: ledger.load([LoadedRow(0, "kept", None, None, b"{}")], 0))
    record = database.run(lambda: ledger.begin(create_record("b"), lambda _: False))
    assert (record.state, record.row_count) == ("loading", 1)
    with spool(["a", "b", "c"], "rows") as source:
        record = load_rows(source, PLAN, database, ledger, record)
    rows = database.run(lambda: ledger.join(0, 10), writes=False)
    assert [row.place for row in rows] == [0, 1, 2]
    assert (rows[0].hash, record.row_count, record.requests) == ("kept", 3, 3)
    changed = database.run(lambda: ledger.begin(create_record("b", source_digest="other"), lambda _: False))
    assert (changed.state, changed.row_count) == ("loading", 0)
    database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "ledger") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


_ROWS = 950


def load_and_die(point: str, folder: Path, place: str, url: str) -> subprocess.Popen[bytes]:
    """`asides batch run` as a process that ends itself with kill -9 at this point, with 100 rows in a transaction."""
    program = [sys.executable, "-m", "tests.batch.killed_load", point, str(folder / "in.jsonl"), str(folder / "out")]
    environment = {**os.environ, "PYTHONPATH": list_import_folders()}
    return subprocess.Popen([*program, place, url], env=environment, stderr=subprocess.PIPE)


def write_rows(folder: Path, word: str = "row") -> None:
    lines = (f'{{"id": {number}, "prompt": "{word} {number % 900}"}}\n' for number in range(_ROWS))
    (folder / "in.jsonl").write_text("".join(lines), encoding="utf-8")


def check_answers(folder: Path, word: str = "row") -> None:
    found = [json.loads(line) for line in (folder / "out").read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["text"]) for row in found] == [(n, f"re {word} {n % 900}") for n in range(_ROWS)]


class Parrot:
    """Answers with the question, and counts."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: ServedRequest) -> Scene:
        text = request.prompt.messages[-1].text
        self.asked[text] += 1
        return Say(text=f"re {text}")


def test_a_process_that_was_killed_while_it_loaded_is_simply_run_again(
    stage: OpenStage, tmp_path: Path, place: str
) -> None:
    write_rows(tmp_path)
    parrot = Parrot()
    url = stage(parrot).url
    points = ["begin.0.inside", "load.0.before", "load.0.inside", "load.3.before", "load.4.inside"]
    points += ["finish_loading.0.before", "finish_loading.0.inside", "exchange.0.before", "never"]
    for point in points:
        child = load_and_die(point, tmp_path, place, url)
        _, err = child.communicate(timeout=60)
        assert child.returncode == (0 if point == "never" else -signal.SIGKILL), (point, err.decode())
        if point != "never":
            assert not parrot.asked
    check_answers(tmp_path)
    assert set(parrot.asked.values()) == {1}
    assert len(parrot.asked) == 900


def test_two_processes_load_the_same_rows_and_one_of_them_is_killed(
    stage: OpenStage, tmp_path: Path, place: str
) -> None:
    write_rows(tmp_path)
    parrot = Parrot()
    url = stage(parrot).url
    children = [load_and_die(point, tmp_path, place, url) for point in ("never", "load.2.inside", "never")]
    for child in children:
        _, err = child.communicate(timeout=60)
        assert child.returncode in (0, -signal.SIGKILL), err.decode()
    check_answers(tmp_path)
    assert len(parrot.asked) == 900
    assert set(parrot.asked.values()) == {1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_loading_soon_and_the_next_run_goes_on(
    stage: OpenStage, tmp_path: Path, number: signal.Signals
) -> None:
    many = 300_000
    (tmp_path / "in.jsonl").write_text("".join(f'"{n}"\n' for n in range(many)), encoding="utf-8")
    output = ["-o", str(tmp_path / "out"), "-m", MODEL, "--base-url", stage().url]
    run = command(["batch", "run", str(tmp_path / "in.jsonl"), *output])
    child = subprocess.Popen(run, env=environment(), stderr=subprocess.PIPE)
    batch = asides_batch.Batch(output=tmp_path / "out")
    while not (tmp_path / "out.ledger").exists():
        time.sleep(0.01)
    while (status := find_status(batch)) is None or not status.rows:
        time.sleep(0.01)
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert b"Run `asides batch run` again with the same arguments to continue." in err
    status = batch.status
    assert (status.state, 0 < status.rows < many, status.has_rows) == ("loading", True, False)
    with pytest.raises(asides.ConfigError, match="were not all loaded"):
        batch.resume()
    batch.close()


def find_status(batch: asides_batch.Batch) -> asides_batch.BatchStatus | None:
    try:
        return batch.status
    except asides.ConfigError:
        return None


def test_rows_of_two_files_that_are_loaded_at_once_are_not_mixed(tmp_path: Path, place: str) -> None:
    database, ledger = open_ledger_database(place), Ledger("b")
    record = database.run(lambda: ledger.begin(create_record("b", source_digest="1"), lambda _: False))

    def interrupt() -> Iterator[str]:
        for number in range(5000):
            if number == 2500:
                other = database.run(lambda: ledger.begin(create_record("b", source_digest="2"), lambda _: False))
                with spool((f"other {n}" for n in range(1500)), "other") as rows:
                    load_rows(rows, PLAN, database, ledger, other)
            yield f"row {number}"

    class Source(RowSource, frozen=True):
        @contextmanager
        def read(self, on_problem: Any = None) -> Generator[Iterator[Any]]:
            yield (read_row(text, place, "row") for place, text in enumerate(interrupt()))

    ended = load_rows(Source(tmp_path, "rows"), PLAN, database, ledger, record)
    assert (ended.version, ended.row_count) == (record.version + 1, 1500)
    rows = database.run(lambda: ledger.join(0, 9999), writes=False)
    with spool((f"other {n}" for n in range(1500)), "other") as source, source.read() as questions:
        assert [row.hash for row in rows] == [PLAN.compute_hash(question) for question in questions]
    database.close()


def test_programs_give_text_dicts_messages_or_lines(tmp_path: Path) -> None:
    given: list[Any] = ["a", {"prompt": "a", "id": 1, "mine": "ü"}, [{"role": "user", "content": "a"}], b'"a"']
    with spool(given, "rows") as source:
        rows = load(source, tmp_path)
    assert [row.id for row in rows] == [None, 1, None, None]
    assert [row.rest for row in rows] == [None, b'{"mine":"\\u00fc"}', None, None]
    assert rows[0].hash == rows[1].hash == rows[3].hash != rows[2].hash
    with pytest.raises(asides.ConfigError, match="row 2 cannot be written"), spool(["a", {"x": object()}], "rows"):
        pass


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n", encoding="utf-8")
    (tmp_path / "b").write_text("x\n", encoding="utf-8")
    one, other = RowSource(tmp_path / "a", "a"), RowSource(tmp_path / "b", "b")
    assert one.compute_digest() == other.compute_digest()
    assert one.compute_digest() != RowSource(tmp_path / "a", "a", is_text=True).compute_digest()
    assert one.compute_digest() != RowSource(tmp_path / "a", "a", fill_prompt=lambda text: f"T {text}").compute_digest()
    with pytest.raises(asides.ConfigError, match="none cannot be read: No such file"):
        RowSource(tmp_path / "none", "none").compute_digest()


def test_a_template_is_put_around_texts(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\n", encoding="utf-8")
    source = RowSource(tmp_path / "in.txt", "in.txt", is_text=True, fill_prompt=lambda text: f"Say {text}")
    with source.read() as questions:
        assert [(question.prompt, question.content) for question in questions] == [
            ("Say a", {"prompt": "Say a"}),
            ("Say b", {"prompt": "Say b"}),
        ]


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(ConfigError, match="a pipe"):
        RowSource(path, "rows.jsonl").compute_digest()
