"""A live run over sockets and in real processes: killed, slowed down, refused, and shared by two."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import asides
import asides_batch
from asides.dialects.dialect import ServedRequest
from asides.values.usage import Usage
from asides_batch.batch_job import BatchJob
from asides_batch.ledger_values import ExchangeResult, Outcome
from asides_stage.stage import Fail, OpenStage, Say, Scene, Stage
from tests.cli.children import MODEL, command, environment

_NOT_WRITTEN = 40
"""How many answers may wait for their write, on a machine that is busy."""


class Counting:
    """Answers after a while, and counts the requests of each row."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.asked: Counter[str] = Counter()
        self.times: list[float] = []
        self._lock = threading.Lock()

    def __call__(self, request: ServedRequest) -> Scene:
        text = request.prompt.messages[-1].text
        with self._lock:
            self.asked[text] += 1
            self.times.append(time.monotonic())
        return Say(text=f"re {text}", delay=self.delay, usage=Usage(10, 20))


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "ledger") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


class Command:
    """`asides batch run` as a process, and what it leaves."""

    def __init__(self, folder: Path, server: Stage, rows: int, ledger: str, *options: str) -> None:
        self.rows = rows
        self.ledger = ledger
        self.folder = folder
        self.output = folder / "out.jsonl"
        source = folder / "in.jsonl"
        source.write_text("".join(f'{{"id": {n}, "prompt": "row {n}"}}\n' for n in range(rows)), encoding="utf-8")
        self._arguments = ["batch", "run", str(source), "-o", str(self.output), "--ledger", ledger, "-m", MODEL]
        self._arguments += ["--base-url", server.url, *options]

    def use_files(self, source: str, output: str) -> None:
        """Take the rows from another file of the folder, and write another one."""
        self.output = self.folder / output
        self._arguments[2], self._arguments[4] = str(self.folder / source), str(self.output)

    def start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(command(self._arguments), env=environment(), stdout=pipe, stderr=pipe)

    def open(self) -> asides_batch.Batch:
        return asides_batch.Batch(output=self.output, ledger=self.ledger)

    def list_answered(self) -> set[str]:
        """The rows that the ledger has acknowledged."""
        batch = self.open()
        try:
            return {result.text.removeprefix("re ") for result in batch}
        except asides.ConfigError:
            return set()  # It was killed before it began.
        finally:
            batch.close()

    def check_output(self) -> None:
        written = [json.loads(line) for line in self.output.read_text(encoding="utf-8").splitlines()]
        assert [(row["index"], row["id"], row["text"]) for row in written] == [
            (n, n, f"re row {n}") for n in range(self.rows)
        ]


def kill_at_random(run: Command, counting: Counting, kills: int, seconds: float, concurrency: int) -> int:
    """Kill the process so often, and then let it end. Returns how many requests were asked more than once."""
    for _ in range(kills):
        child = run.start()
        before = sum(counting.asked.values())
        # Somewhere from its start to the middle of its work.
        time.sleep(random.uniform(0.0, 0.3))
        deadline = time.monotonic() + 15
        while random.random() < 0.9 and sum(counting.asked.values()) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(random.uniform(0.0, seconds))
        child.kill()
        child.communicate()
        answered = run.list_answered()
        asked = {text: counting.asked[text] for text in answered}
        child = run.start()
        time.sleep(random.uniform(0.3, 0.9))
        child.kill()
        child.communicate()
        assert {text: counting.asked[text] for text in answered} == asked
    child = run.start()
    _, err = child.communicate(timeout=600)
    assert child.returncode == 0, err.decode()
    twice = sum(counting.asked.values()) - run.rows
    assert set(counting.asked) == {f"row {n}" for n in range(run.rows)}
    # Those that were under way, and those whose answer was not written yet.
    assert twice <= 2 * kills * (concurrency + _NOT_WRITTEN)
    run.check_output()
    return twice


def test_a_killed_batch_goes_on_and_asks_nothing_twice(stage: OpenStage, tmp_path: Path, ledger: str) -> None:
    counting = Counting(delay=0.02)
    run = Command(tmp_path, stage(counting), 120, ledger, "--concurrency", "4")
    kill_at_random(run, counting, kills=1, seconds=0.5, concurrency=4)


def test_a_killed_run_is_stopped_and_not_running(stage: OpenStage, tmp_path: Path, ledger: str) -> None:
    counting = Counting(delay=30)
    run = Command(tmp_path, stage(counting), 5, ledger)
    child = run.start()
    wait_until(lambda: sum(counting.asked.values()) >= 5)
    batch = run.open()
    assert (batch.status.state, batch.status.running) == ("running", 5)
    child.kill()
    child.communicate()
    assert (batch.status.state, batch.status.running, batch.status.left) == ("stopped", 0, 5)
    batch.close()


def test_two_processes_share_one_ledger(stage: OpenStage, tmp_path: Path, ledger: str) -> None:
    counting = Counting(delay=0.03)
    run = Command(tmp_path, stage(counting), 80, ledger, "--concurrency", "4")
    children = [run.start(), run.start()]
    for child in children:
        _, err = child.communicate(timeout=60)
        assert child.returncode == 0, err.decode()
    assert set(counting.asked.values()) == {1}
    run.check_output()


def test_ctrl_c_finishes_what_is_under_way_and_tells_how_to_go_on(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting(delay=0.3)
    run = Command(tmp_path, stage(counting), 50, str(tmp_path / "ledger"), "--concurrency", "3")
    child = run.start()
    wait_until(lambda: sum(counting.asked.values()) >= 4)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=50)
    assert child.returncode == 130
    assert b"asides batch resume" in err
    asked = sum(counting.asked.values())
    assert len(run.output.read_text(encoding="utf-8").splitlines()) == len(run.list_answered()) == asked < 50


def test_a_second_ctrl_c_drops_what_is_under_way(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting(delay=30)
    run = Command(tmp_path, stage(counting), 5, str(tmp_path / "ledger"))
    child = run.start()
    wait_until(lambda: sum(counting.asked.values()) >= 5)
    child.send_signal(signal.SIGINT)
    assert child.stderr is not None
    assert any(b"Ctrl-C again" in line for line in child.stderr)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=25)
    assert child.returncode == 130, err
    batch = run.open()
    assert (batch.status.running, batch.status.left, batch.status.state) == (0, 5, "stopped")
    batch.close()


def test_ctrl_c_does_not_wait_for_a_provider_that_asks_to(stage: OpenStage, tmp_path: Path) -> None:
    server = stage(lambda _: Fail(status=429, retry_after=300))
    run = Command(tmp_path, server, 9, str(tmp_path / "ledger"), "--concurrency", "3")
    child = run.start()
    wait_until(lambda: len(server.requests) >= 1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=40)
    assert child.returncode == 130, err
    batch = run.open()
    assert (batch.status.failed, batch.status.left, batch.status.running) == (0, 9, 0)
    batch.close()
    assert len(server.requests) <= 3


def wait_until(condition: Any, seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- in this process ------------------------------------------------------------------------------------------------


def open_batch(folder: Path, server: Stage, rows: int, **options: Any) -> asides_batch.Batch:
    given: dict[str, Any] = {"model": MODEL, "base_url": server.url, **options}
    return asides_batch.Batch([f"row {n}" for n in range(rows)], output=folder / "out.jsonl", **given)


def test_a_limit_of_the_provider_slows_the_batch_down_and_costs_no_row(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting()
    times: list[float] = []

    def limited(request: ServedRequest) -> Scene:
        times.append(time.monotonic())
        return Fail(status=429, retry_after=0.5) if len(times) <= 8 else counting(request)

    batch = open_batch(tmp_path, stage(limited), 20, concurrency=8, retries=0)
    assert batch.run().is_finished
    batch.close()
    assert set(counting.asked.values()) == {1}
    assert counting.times[0] - times[0] >= 0.5  # Nothing was sent meanwhile.


def test_what_may_pass_is_tried_again_and_then_failed(stage: OpenStage, tmp_path: Path) -> None:
    tried: Counter[str] = Counter()

    def shaky(request: ServedRequest) -> Scene:
        text = request.prompt.messages[-1].text
        tried[text] += 1
        return Fail(status=500) if text == "row 1" or tried[text] == 1 else Say(text="yes")

    batch = open_batch(tmp_path, stage(shaky), 3, retries=2)
    status = batch.run()
    batch.close()
    assert (status.done, status.failed) == (2, 1)
    assert tried == {"row 0": 2, "row 1": 3, "row 2": 2}


def test_a_slow_ledger_slows_the_batch_so_that_a_kill_costs_little(
    stage: OpenStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting()
    open_answers: list[int] = []
    exchange = BatchJob.exchange

    async def exchange_slowly(job: BatchJob, outcomes: Sequence[Outcome], want: int, **more: Any) -> ExchangeResult:
        await asyncio.sleep(0.05)
        exchanged = await exchange(job, outcomes, want, **more)
        open_answers.append(sum(counting.asked.values()) - job.record.done)
        return exchanged

    monkeypatch.setattr(BatchJob, "exchange", exchange_slowly)
    batch = open_batch(tmp_path, stage(counting), 24, concurrency=3)
    assert batch.run().is_finished
    batch.close()
    # Those under way, and as many whose answer was not written yet.
    assert max(open_answers) <= 2 * 3


def test_a_key_that_is_refused_ends_the_run_and_fails_no_row(stage: OpenStage, tmp_path: Path) -> None:
    server = stage(lambda _: Fail(status=401))
    batch = open_batch(tmp_path, server, 200, concurrency=2)
    with pytest.raises(asides.AuthError):
        batch.run()
    assert (batch.status.failed, batch.status.left, batch.status.running) == (0, 200, 0)
    assert len(server.requests) <= 4
    batch.close()


def test_a_server_that_is_gone_ends_the_run(tmp_path: Path) -> None:
    with Stage(Counting()) as server:
        pass
    batch = open_batch(tmp_path, server, 200, concurrency=4, retries=0)
    with pytest.raises(asides.TransportError):
        batch.run()
    assert 0 < batch.status.failed < 40
    batch.close()


def test_requests_a_minute_pace_the_batch(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting()
    batch = open_batch(tmp_path, stage(counting), 6, rpm=240)
    assert batch.run().is_finished
    batch.close()
    # The last is sent 1.25 seconds after the claim; the first may be late on a busy machine.
    assert counting.times[-1] - counting.times[0] >= 0.4


def test_a_limit_of_cost_stops_the_batch_before_it(stage: OpenStage, tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    counting = Counting()
    server = stage(counting)
    row = asides.Provider(name="mine", base_url=server.url, prices="openai")
    options: dict[str, Any] = {"model": "mine:gpt-4o", "base_url": None, "max_tokens": 40, "providers": [row]}
    # A reply costs 0.000225, and its bound is 0.00104: input of up to 256 bytes, and 40 tokens of output.
    batch = open_batch(tmp_path, server, 20, max_cost="0.003", concurrency=4, **options)
    status = batch.run()
    assert status.has_reached_max_cost
    assert 0.0015 < status.cost <= 0.003
    assert 5 < status.done < 14
    assert sum(counting.asked.values()) == status.done
    batch.close()
    more = asides_batch.Batch(output=tmp_path / "out.jsonl", max_cost=1, **options)
    assert more.resume().is_finished
    more.close()
    assert set(counting.asked.values()) == {1}


@pytest.mark.thorough
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_rows_killed_twenty_times(tmp_path: Path) -> None:
    """The stage is a process of its own, so that it does not slow the batch down."""
    rows, kills = 100_000, 20
    script = Path(__file__).with_name("counting_stage.py")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True
    ) as stage:
        assert stage.stdin is not None
        assert stage.stdout is not None
        url = stage.stdout.readline().strip()
        server: Any = type("Server", (), {"url": url})
        run = Command(tmp_path, server, rows, str(tmp_path / "ledger"), "--concurrency", "64")

        def count() -> tuple[int, int, int]:
            """All requests, those of different rows, and the rows that were asked more than once."""
            assert stage.stdin is not None
            assert stage.stdout is not None
            stage.stdin.write("\n")
            stage.stdin.flush()
            total, different, twice = json.loads(stage.stdout.readline())
            return total, different, twice

        began = time.monotonic()
        for _ in range(kills):
            child = run.start()
            # In the middle of its work, however fast the machine is.
            enough = count()[0] + random.randrange(1, rows // kills)
            while count()[0] < enough:
                assert child.poll() is None, child.communicate()
                time.sleep(0.01)
            child.kill()
            child.communicate()
        child = run.start()
        _, err = child.communicate()
        assert child.returncode == 0, err.decode()
        run.check_output()
        total, different, twice = count()
        stage.stdin.close()
    seconds, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stderr.write(
        f"{seconds:.0f} s, {rows / seconds:.0f} rows a second with {kills} kills; {total - rows} asked again, of "
        f"{twice} rows; {used.ru_utime + used.ru_stime:.0f} s of CPU, {used.ru_maxrss // 1024} MB at most\n"
    )
    assert different == rows
    # Those under way, and as many whose answer was not written yet.
    assert twice <= 2 * kills * 64
