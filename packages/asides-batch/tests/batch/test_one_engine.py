"""The same list through every door: `ask_many` sync and async, `run_many`, `ask --each` and a live batch."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import asides
import asides_batch
from asides.cli.app import main
from asides.dialects.dialect import ServedRequest
from asides.values.errors import AsidesError
from asides.values.reply import Reply
from asides.values.result import Result
from asides_stage.stage import Fail, OpenStage, Say, Scene, Stage
from tests.cli.children import MODEL, at

Pairs: TypeAlias = Iterable[tuple[int, Any]]
Door: TypeAlias = Callable[[Stage, list[Any], Path], dict[int, str]]
"""Asks a list, four at once; returns the text of each answer, or the type of its error. Left out: not asked."""


def name(outcome: Any) -> str:
    return outcome.text if isinstance(outcome, (Reply, Result)) else type(outcome).__name__


def ask_many(server: Stage, prompts: list[Any], _: Path) -> dict[int, str]:
    with asides.Client(base_url=f"{server.url}/v1", retries=0) as client:
        return {index: name(outcome) for index, outcome in client.ask_many(MODEL, prompts, concurrency=4)}


def ask_many_async(server: Stage, prompts: list[Any], _: Path) -> dict[int, str]:
    async def run() -> dict[int, str]:
        async with asides.AsyncClient(base_url=f"{server.url}/v1", retries=0) as client:
            answers = client.ask_many(MODEL, prompts, concurrency=4)
            return {index: name(outcome) async for index, outcome in answers}

    return asyncio.run(run())


def run_many(server: Stage, prompts: list[Any], _: Path) -> dict[int, str]:
    with asides.Client(base_url=f"{server.url}/v1", retries=0) as client:
        agent = asides.Agent(MODEL, client=client)
        return {index: name(outcome) for index, outcome in agent.run_many(prompts, concurrency=4)}


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def read_texts(path: Path) -> dict[int, str]:
    return {row["index"]: row["error"]["type"] if row.get("error") else row["text"] for row in read_rows(path)}


def write_rows(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def ask_each(server: Stage, prompts: list[Any], folder: Path) -> dict[int, str]:
    source, out = write_rows(folder / "in.jsonl", prompts), folder / "each.jsonl"
    main(["ask", *at(server), "-q", "--each", str(source), "-o", str(out), "--concurrency", "4", "--retries", "0"])
    return read_texts(out)


def run_batch(server: Stage, prompts: list[Any], folder: Path) -> dict[int, str]:
    out = folder / "batch.jsonl"
    batch = asides_batch.Batch(prompts, output=out, model=MODEL, base_url=server.url, concurrency=4, retries=0)
    try:
        batch.run()
    except AsidesError:
        pass
    finally:
        batch.close()
    return read_texts(out)


API = [ask_many, ask_many_async, run_many]
FILES = [ask_each, run_batch]
every_door = pytest.mark.parametrize("door", [*API, *FILES])


class Limited:
    """A server that takes so many requests a second, and refuses the others with `status` and a `retry-after`."""

    def __init__(self, rate: int, status: int = 429) -> None:
        self._rate = rate
        self._status = status
        self._times: list[float] = []
        self._lock = threading.Lock()

    def __call__(self, request: ServedRequest) -> Scene:
        with self._lock:
            now = time.monotonic()
            self._times = [moment for moment in self._times if moment > now - 1.0]
            if len(self._times) >= self._rate:
                return Fail(status=self._status, retry_after=0.3)
            self._times.append(now)
        return Say(text=f"re {request.prompt.messages[-1].text}")


@every_door
@pytest.mark.parametrize("status", [429, 529])
def test_a_server_that_asks_to_wait_costs_no_answer(door: Door, status: int, stage: OpenStage, tmp_path: Path) -> None:
    prompts = [f"q{number}" for number in range(14)]
    got = door(stage(Limited(6, status)), prompts, tmp_path)
    assert got == {number: f"re q{number}" for number in range(14)}


@every_door
@pytest.mark.parametrize(("status", "error"), [(401, "AuthError"), (404, "NotFound")])
def test_what_is_wrong_with_all_is_sent_for_the_first_ones_only(
    door: Door, status: int, error: str, stage: OpenStage, tmp_path: Path
) -> None:
    server = stage(lambda _: Fail(status=status, message="not you"))
    got = door(server, [f"q{number}" for number in range(60)], tmp_path)
    assert 1 <= len(server.requests) <= 4
    if door in API:
        assert got == dict.fromkeys(range(60), error)
    else:
        assert set(got.values()) <= {error}
        assert len(got) <= 4


@every_door
def test_a_server_that_is_gone_is_not_asked_for_every_prompt(door: Door, stage: OpenStage, tmp_path: Path) -> None:
    server = stage(lambda _: Fail(status=500))
    got = door(server, [f"q{number}" for number in range(60)], tmp_path)
    assert 20 <= len(server.requests) <= 24
    assert set(got.values()) == {"Overloaded"}
    assert len(got) == 60 if door in API else len(got) <= 24


@every_door
def test_one_that_is_refused_among_others_costs_no_other_its_answer(
    door: Door, stage: OpenStage, tmp_path: Path
) -> None:
    def refuse(request: ServedRequest) -> Scene:
        text = request.prompt.messages[-1].text
        status = {"q5": 403, "q9": 401, "q12": 500, "q15": 400}.get(text)
        return Say(text=f"re {text}") if status is None else Fail(status=status)

    got = door(stage(refuse), [f"q{number}" for number in range(30)], tmp_path)
    errors = {5: "AuthError", 9: "AuthError", 12: "Overloaded", 15: "BadRequest"}
    assert got == {number: errors.get(number, f"re q{number}") for number in range(30)}


# --- files ----------------------------------------------------------------------------------------------------------


class Counting:
    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.fails: set[str] = set()

    def __call__(self, request: ServedRequest) -> Scene:
        text = request.prompt.messages[-1].text
        self.asked[text] += 1
        return Fail(status=400) if text in self.fails else Say(text=f"re {text} {self.asked[text]}")


@pytest.mark.parametrize("door", FILES)
def test_equal_questions_of_a_file_are_asked_once_and_answered_each(
    door: Door, stage: OpenStage, tmp_path: Path
) -> None:
    counting = Counting()
    counting.fails = {"bad"}
    rows = [
        {"id": "a", "prompt": "same", "mine": 1},
        {"id": "b", "prompt": "same"},
        {"id": "c", "question": "same"},
        {"id": "d", "prompt": "same", "seed": 1},
        {"id": "e", "prompt": "bad"},
        {"id": "f", "prompt": "bad"},
    ]
    got = door(stage(counting), rows, tmp_path)
    assert counting.asked == {"same": 2, "bad": 1}
    assert got[0] == got[1] == got[2] == "re same 1" or got[0] == got[1] == got[2] == "re same 2"
    assert (got[4], got[5]) == ("BadRequest", "BadRequest")
    written = read_rows(tmp_path / ("each.jsonl" if door is ask_each else "batch.jsonl"))
    assert sorted((row["id"], row.get("row")) for row in written) == [
        ("a", {"mine": 1}),
        *((other, None) for other in "bcdef"),
    ]


def test_ask_many_asks_every_prompt(stage: OpenStage, tmp_path: Path) -> None:
    counting = Counting()
    assert len(ask_many(stage(counting), ["same"] * 3, tmp_path)) == counting.asked["same"] == 3


def test_an_added_row_with_an_answered_question_gets_its_answer(stage: OpenStage, tmp_path: Path) -> None:
    for door in FILES:
        counting = Counting()
        server = stage(counting)
        door(server, [{"id": 1, "prompt": "same"}], tmp_path)
        got = door(server, [{"id": 1, "prompt": "same"}, {"id": 2, "prompt": "same"}], tmp_path)
        assert (got, counting.asked) == ({0: "re same 1", 1: "re same 1"}, {"same": 1})


def test_both_give_a_question_the_same_fingerprint(stage: OpenStage, tmp_path: Path) -> None:
    rows = [
        "plain",
        {"id": 1, "prompt": "one", "seed": 3},
        {"question": "two", "expected": 4},
        {"prompt": "three", "model": "openai-compatible:other"},
        {"messages": [{"role": "user", "content": "four"}]},
        {"custom_id": "v", "body": {"model": "staged", "messages": [{"role": "user", "content": "five"}]}},
    ]
    server = stage(Counting())
    for door in FILES:
        door(server, rows, tmp_path)
    each, batch = (read_rows(tmp_path / file) for file in ("each.jsonl", "batch.jsonl"))
    prints = {row["index"]: row["fingerprint"] for row in each}
    assert prints == {row["index"]: row["fingerprint"] for row in batch}
    assert len(set(prints.values())) == len(rows)


def test_neither_writes_to_a_file_of_the_other(
    stage: OpenStage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, rows = stage(Counting()), [f"q{number}" for number in range(6)]
    ask_each(server, rows, tmp_path)
    run_batch(server, rows, tmp_path)
    each, batch = tmp_path / "each.jsonl", tmp_path / "batch.jsonl"
    before = each.read_bytes(), batch.read_bytes(), len(server.requests)
    other = asides_batch.Batch(rows, output=each, model=MODEL, base_url=server.url)
    with pytest.raises(asides.ConfigError, match="so it is left as it is"):
        other.run()
    other.close()
    capsys.readouterr()
    run = ["ask", *at(server), "--each", str(tmp_path / "in.jsonl"), "-o"]
    assert main([*run, str(batch)]) == 2
    assert "asides batch resume" in capsys.readouterr().err
    assert (each.read_bytes(), batch.read_bytes(), len(server.requests)) == before
    # A copy belongs to nobody: what is answered in it is not asked again.
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(batch.read_bytes())
    assert main([*run, str(copy)]) == 0
    assert (copy.read_bytes(), len(server.requests)) == (batch.read_bytes(), before[2])
