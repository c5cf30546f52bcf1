"""A ledger that is damaged, changed, deleted or full: the error says so, nobody waits without end, and what it has is
not lost.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from asides.database import StoreError
from asides.dialects.dialect import ServedRequest
from asides.values.errors import AuthError
from asides_batch.batches import Batch
from asides_stage import Fail, OpenStage, Say, Scene
from tests.cli.children import MODEL, command, environment


@pytest.fixture
def batch(stage: OpenStage, tmp_path: Path) -> Batch:
    """A batch that has ended, with two rows."""
    server = stage()
    made = Batch(
        [{"id": "a", "prompt": "2 + 2"}, {"id": "b", "prompt": "3 + 3", "own": 1}],
        output=tmp_path / "out.jsonl",
        model="vllm:m",
        base_url=server.url,
    )
    assert made.run().is_finished
    return made


def _change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "out.jsonl.ledger")) as connection, connection:
        for statement in statements:
            connection.executescript(statement)


def _use(batch: Batch) -> None:
    repr(batch.status)
    batch.resume()


@pytest.mark.parametrize("result", [b'{"\xff"}', b"{half}", b'{"usage": {"cached": []}}'])
def test_a_result_that_cannot_be_read_is_named(batch: Batch, tmp_path: Path, result: bytes) -> None:
    _change(tmp_path, f"UPDATE batch_requests SET result = x'{result.hex()}'")
    with pytest.raises(StoreError, match="the result of row 0 cannot be read"):
        list(batch)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batches SET plan = x'ff'",
        "UPDATE batches SET plan = CAST('{}' AS BLOB)",
        "UPDATE batches SET state = 'no such state'",
        "UPDATE batches SET cost = 'x'",
        "UPDATE batches SET row_count = 'x'",
        "UPDATE batches SET done = 9999",
        "UPDATE batch_requests SET result = x'ff'",
        "UPDATE batch_requests SET result = 5",
        "UPDATE batch_requests SET request = 'x'",
        "UPDATE batch_requests SET state = 'x'",
        "UPDATE batch_requests SET state = 'waiting', reserved = 'x'; UPDATE batches SET done = 0",
        "UPDATE batch_requests SET state = 'failed', result = 1.5; UPDATE batches SET done = 0, failed = 2",
        """UPDATE batch_requests SET state = 'failed', result = CAST('{"error": 7}' AS BLOB);
        UPDATE batches SET done = 0, failed = 2""",
        """UPDATE batch_requests SET state = 'failed', result = CAST('[]' AS BLOB);
        UPDATE batches SET done = 0, failed = 2""",
        "UPDATE batch_rows SET id = '{{'",
        "UPDATE batch_rows SET rest = x'ff'",
    ],
)
def test_what_no_ledger_has_is_told(batch: Batch, tmp_path: Path, statement: str) -> None:
    before = (tmp_path / "out.jsonl").read_bytes()
    _change(tmp_path, statement)
    with pytest.raises(StoreError, match="the ledger is damaged"):
        _use(batch)
    assert (tmp_path / "out.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER UPDATE ON batches BEGIN DELETE FROM batch_rows; END",
        "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    ],
)
def test_views_and_triggers_are_refused(batch: Batch, tmp_path: Path, statement: str) -> None:
    batch.close()
    _change(tmp_path, statement)
    with pytest.raises(StoreError, match="views or triggers"):
        Batch(output=tmp_path / "out.jsonl").resume()


def test_a_ledger_that_is_deleted_ends_the_run_and_what_was_answered_is_in_the_output(
    stage: OpenStage, tmp_path: Path
) -> None:
    notes: list[str] = []

    def delete_later(request: ServedRequest) -> Scene:
        if request.prompt.messages[-1].text == "row 5":
            (tmp_path / "out.jsonl.ledger").unlink()
        return Say(text="fine")

    server = stage(delete_later)
    batch = Batch(
        [f"row {number}" for number in range(500)],
        output=tmp_path / "out.jsonl",
        model=MODEL,
        base_url=server.url,
        concurrency=1,
        on_note=notes.append,
    )
    with pytest.raises(StoreError, match=r"out\.jsonl\.ledger was deleted, moved or replaced while it was in use"):
        batch.run()
    assert len(server.requests) < 20
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["index"] for row in written] == list(range(len(written)))
    assert len(written) >= 1
    assert sorted(path.name for path in tmp_path.glob("out.jsonl*") if path.suffix == ".ledger") == []
    assert [note for note in notes if "not in the ledger, and are asked for again" in note]


def test_a_full_disk_ends_the_run_and_a_later_one_goes_on(stage: OpenStage, tmp_path: Path) -> None:
    server = stage(lambda _: Say(text="y" * 3000))
    rows = tmp_path / "in.jsonl"
    rows.write_text("".join(f'"row {number}"\n' for number in range(400)), encoding="utf-8")
    run = command(["batch", "run", str(rows), "-o", str(tmp_path / "out.jsonl"), "-m", MODEL, "--base-url", server.url])
    full = subprocess.run(
        run,
        env=environment(),
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, resource.RLIM_INFINITY)),
        check=False,
    )
    assert full.returncode == 2
    assert b"out.jsonl.ledger failed: disk I/O error" in full.stderr
    assert b"asides batch resume" in full.stderr
    asked = len(server.requests)
    batch = Batch(output=tmp_path / "out.jsonl")
    done = batch.status.done
    batch.close()
    assert 0 < done <= asked < 400
    again = subprocess.run(run, env=environment(), capture_output=True, check=False)
    assert again.returncode == 0, again.stderr
    assert len(server.requests) == asked + 400 - done
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 400


@pytest.mark.parametrize(("cause", "error"), [("key", AuthError), ("ledger", StoreError)])
def test_the_error_that_ended_the_run_is_told_before_one_of_the_output(
    stage: OpenStage, tmp_path: Path, cause: str, error: type[Exception]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    notes: list[str] = []

    def spoil(_: ServedRequest) -> Scene:
        folder.rmdir()
        if cause == "key":
            return Fail(status=401)
        (tmp_path / "ledger").unlink()
        return Say(text="fine")

    batch = Batch(
        ["one"],
        output=folder / "out.jsonl",
        ledger=tmp_path / "ledger",
        model=MODEL,
        base_url=stage(spoil).url,
        on_note=notes.append,
    )
    with pytest.raises(error):
        batch.run()
    assert notes[-1].startswith(f"the output {folder / 'out.jsonl'} cannot be written")


@pytest.mark.parametrize("request_", ["x'ff'", "CAST('' AS BLOB)"])
def test_a_request_that_cannot_be_read_fails_alone(batch: Batch, tmp_path: Path, request_: str) -> None:
    _change(
        tmp_path,
        f"UPDATE batch_requests SET state = 'waiting', request = {request_} WHERE number = 0",
        "UPDATE batches SET done = 1",
    )
    status = batch.resume()
    assert (status.done, status.failed) == (1, 1)
    assert "the ledger is damaged" in str(status.first_error)
