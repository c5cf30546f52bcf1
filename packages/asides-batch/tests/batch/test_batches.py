"""`Batch` and `AsyncBatch` over sockets: what is answered is never asked again, and each row is in the output once."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
import asides_batch
from asides.dialects.dialect import ServedRequest
from asides.values.usage import Usage
from asides_stage.stage import Fail, OpenStage, Say, Scene, Stage
from tests.cli.children import MODEL

RunBatch = Callable[..., asides_batch.BatchStatus]


class Parrot:
    """Answers with the question, counts what it was asked, and fails where it is told to."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.fails: set[str] = set()

    def __call__(self, request: ServedRequest) -> Scene:
        text = request.prompt.messages[-1].text
        self.asked[text] += 1
        if text in self.fails:
            return Fail(status=400, message="not this one")
        return Say(text=f"re {text}", thinking="canary", usage=Usage(3, 5, 2))


@pytest.fixture
def parrot() -> Parrot:
    return Parrot()


@pytest.fixture
def server(stage: OpenStage, parrot: Parrot) -> Stage:
    return stage(parrot)


@pytest.fixture(params=[asides_batch.Batch, asides_batch.AsyncBatch])
def run(request: pytest.FixtureRequest, server: Stage, tmp_path: Path) -> RunBatch:
    """Runs one action of a batch, in either form."""

    def act(rows: Any = None, *, action: str = "run", output: str = "out.jsonl", **options: Any) -> Any:
        given = {"model": MODEL, "base_url": server.url, **options}
        batch = request.param(rows, output=tmp_path / output, **given)
        found = getattr(batch, action)
        found = found() if callable(found) else found
        result = asyncio.run(found) if inspect.isawaitable(found) else found  # type: ignore[arg-type]
        batch.close() if request.param is asides_batch.Batch else asyncio.run(batch.close())
        return result

    return act


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_row_is_in_the_output_once_and_in_order(run: RunBatch, parrot: Parrot, tmp_path: Path) -> None:
    rows = [f"q{number}" for number in range(30)]
    status = run(rows, concurrency=7)
    assert (status.state, status.rows, status.done, status.failed) == ("finished", 30, 30, 0)
    assert (status.input_tokens, status.output_tokens, status.thinking_tokens) == (90, 150, 60)
    written = read(tmp_path / "out.jsonl")
    assert [(row["index"], row["text"]) for row in written] == [(n, f"re q{n}") for n in range(30)]
    again = run(rows)
    assert again.done == 30
    assert set(parrot.asked.values()) == {1}
    assert read(tmp_path / "out.jsonl") == written


def test_equal_rows_are_asked_once_and_answered_each(run: RunBatch, parrot: Parrot, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "prompt": "same", "mine": 1},
        {"id": "b", "prompt": "same"},
        {"id": 3, "prompt": "same", "seed": 1},
    ]
    status = run(rows)
    assert (status.rows, status.requests) == (3, 2)
    assert parrot.asked == {"same": 2}
    assert [(row["id"], row["text"], row.get("row")) for row in read(tmp_path / "out.jsonl")] == [
        ("a", "re same", {"mine": 1}),
        ("b", "re same", None),
        (3, "re same", None),
    ]


def test_what_failed_is_told_and_asked_again_alone(run: RunBatch, parrot: Parrot, tmp_path: Path) -> None:
    parrot.fails = {"b"}
    status = run(["a", "b", "c"])
    assert (status.done, status.failed, status.is_finished) == (2, 1, False)
    assert "not this one" in (status.first_error or "")
    error = read(tmp_path / "out.jsonl")[1]
    assert (error["text"], error["outcome"], error["error"]["type"]) == ("", None, "BadRequest")
    parrot.fails = set()
    assert run(action="resume").is_finished
    assert parrot.asked == {"a": 1, "b": 2, "c": 1}
    assert [row["text"] for row in read(tmp_path / "out.jsonl")] == ["re a", "re b", "re c"]


def test_the_thinking_is_apart_and_only_there_where_it_is_kept(run: RunBatch, tmp_path: Path) -> None:
    run(["a"])
    assert "canary" not in (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert b"canary" not in (tmp_path / "out.jsonl.ledger").read_bytes()
    run(["a"], output="with.jsonl", keep_thinking=True)
    row = read(tmp_path / "with.jsonl")[0]
    assert (row["text"], row["thinking"]) == ("re a", "canary")


def test_other_rows_keep_the_answers_they_share(run: RunBatch, parrot: Parrot, tmp_path: Path) -> None:
    run(["a", "b"])
    notes: list[str] = []
    status = run(["c", "b", "b"], on_note=notes.append)
    assert (status.rows, status.requests, status.done) == (3, 2, 2)
    assert parrot.asked == {"a": 1, "b": 1, "c": 1}
    assert [row["text"] for row in read(tmp_path / "out.jsonl")] == ["re c", "re b", "re b"]
    assert notes == ["the rows or the options are not those of the last run: 1 of 2 requests have an answer already"]


def test_answers_of_other_settings_are_not_replaced_by_accident(run: RunBatch, parrot: Parrot, tmp_path: Path) -> None:
    run(["a"])
    before = (tmp_path / "out.jsonl").read_bytes()
    with pytest.raises(asides.ConfigError, match=r"other settings \(system\)"):
        run(["a"], system="Be brief.")
    with pytest.raises(asides.ConfigError, match=r"other settings \(the model\)"):
        run(["a"], model="openai-compatible:other")
    assert (tmp_path / "out.jsonl").read_bytes() == before
    run(["a"], system="Be brief.", replace=True)
    assert parrot.asked == {"a": 2}
    run(["a"], replace=True)  # The first answer is still in the ledger.
    assert parrot.asked == {"a": 2}
    assert (tmp_path / "out.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('"a"\n{"prompt": "b"}\nnonsense\n', r"in\.jsonl, line 3 is not JSON"),
        ('"a"\n\n{"prompt": ""}\n', r"in\.jsonl, line 3: a question is text"),
        ('{"prompt": "a", "api_key": "x"}\n', "api_key does not come from a row"),
        ('{"custom_id": "x", "url": "/v1/embeddings", "body": {"model": "m"}}\n', "is not an endpoint that replies"),
        ("\n\n", "has no questions"),
        ('{"id": 1, "prompt": "a"}\n{"id": 1, "prompt": "b"}\n', "rows 1 and 2 have the same id"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_sent(
    run: RunBatch, parrot: Parrot, tmp_path: Path, content: str, problem: str
) -> None:
    (tmp_path / "in.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(asides.ConfigError, match=problem):
        run(tmp_path / "in.jsonl")
    assert not parrot.asked
    assert not (tmp_path / "out.jsonl").exists()


def test_files_of_others_are_left_alone(run: RunBatch, tmp_path: Path) -> None:
    rows = tmp_path / "in.jsonl"
    rows.write_text('"a"\n', encoding="utf-8")
    with pytest.raises(asides.ConfigError, match="is the file of the rows"):
        run(rows, output="in.jsonl")
    (tmp_path / "mine.jsonl").write_text("mine\n", encoding="utf-8")
    with pytest.raises(asides.ConfigError, match="there is no ledger beside it"):
        run(rows, output="mine.jsonl")
    with pytest.raises(asides.ConfigError, match="does not exist"):
        run(rows, output="none/out.jsonl")
    run(rows)
    (tmp_path / "out.jsonl").write_text("mine\n", encoding="utf-8")
    with pytest.raises(asides.ConfigError, match="was not written by a batch"):
        run(rows)
    assert (tmp_path / "mine.jsonl").read_text(encoding="utf-8") == "mine\n"
    with pytest.raises(asides.ConfigError, match="there is no batch"):
        run(action="resume", output="new.jsonl")
    with pytest.raises(asides.ConfigError, match="there is no batch"):
        run(action="status", output="new.jsonl")
    assert not (tmp_path / "new.jsonl.ledger").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"concurrency": 0}, "concurrency is a number above zero"),
        ({"rpm": -1}, "rpm is a number above zero"),
        ({"max_cost": "much"}, "max_cost is an amount in dollars"),
        ({"max_cost": float("nan")}, "max_cost is an amount in dollars"),
        ({"retries": -1}, "retries is -1"),
        ({"via": "pigeon"}, "Use live, vendor, ray"),
        ({"ledger": "mysql://x"}, "a ledger is a file or a postgresql:// URL"),
        ({"tools": [print]}, "a batch cannot keep the option tools"),
        ({"max_cost": 1}, "needs a limit of output"),
        ({"max_cost": 1, "max_tokens": 10}, "needs a price"),
        ({"on_progress": 1}, "on_progress is a function"),
    ],
)
def test_wrong_options_are_told_before_anything_is_sent(
    run: RunBatch, parrot: Parrot, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(asides.ConfigError, match=problem):
        run(["a"], **options)
    assert not parrot.asked


class Person(msgspec.Struct):
    name: str


def test_answers_of_a_form(stage: OpenStage, tmp_path: Path) -> None:
    server = stage(Say(text='{"name": "Ada"}'), Say(text='{"who": "Ada"}'))
    batch = asides_batch.Batch(
        ["a", "b"], output=tmp_path / "out.jsonl", model=MODEL, base_url=server.url, schema=Person, concurrency=1
    )
    assert batch.run().failed == 1
    good, bad = list(batch)
    assert (good.output, good.is_answered, good.usage.output is not None) == ({"name": "Ada"}, True, True)
    assert (bad.is_answered, bad.error and bad.error["type"]) == (False, "InvalidOutput")
    batch.close()


async def test_results_come_in_order_in_a_loop_too(server: Stage, tmp_path: Path) -> None:
    batch = asides_batch.AsyncBatch(["a", "b"], output=tmp_path / "out.jsonl", model=MODEL, base_url=server.url)
    await batch.run()
    assert [(result.index, result.text) async for result in batch] == [(0, "re a"), (1, "re b")]
    await batch.close()
    plain = asides_batch.Batch(output=tmp_path / "out.jsonl", model=MODEL, base_url=server.url)
    assert plain.run is not None
    assert plain.resume().is_finished  # Also where a loop runs.
    assert "re a" not in repr(list(plain))
    plain.close()


def test_rows_name_models_and_vendors_files_are_read(server: Stage, tmp_path: Path) -> None:
    params = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "m"}]}
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "chat"}], "max_completion_tokens": 9}
    rows = [
        {"custom_id": "one", "method": "POST", "url": "/v1/chat/completions", "body": body},
        {"custom_id": "two", "params": params},
        {"prompt": "own", "model": "openai-compatible:own"},
    ]
    batch = asides_batch.Batch(rows, output=tmp_path / "out.jsonl", model=MODEL, base_url=server.url)
    assert batch.run().is_finished
    assert [(result.id, result.text) for result in batch] == [("one", "re chat"), ("two", "re m"), (None, "re own")]
    bodies = [request.json for request in server.requests]
    asked = sorted((body["messages"][-1]["content"], body["model"], body.get("max_tokens")) for body in bodies)
    assert asked == [("chat", "staged", 9), ("m", "staged", 9), ("own", "own", None)]
    batch.close()


def test_a_row_of_another_provider_gets_neither_key_nor_address(server: Stage, tmp_path: Path) -> None:
    rows = [{"prompt": "a", "model": "groq:llama"}]
    batch = asides_batch.Batch(rows, output=tmp_path / "out.jsonl", model=MODEL, base_url=server.url, api_key="secret")
    assert batch.run().failed == 1
    assert "MissingKey" in (batch.status.first_error or "")
    assert server.requests == []
    batch.close()


def test_the_ledger_may_be_in_postgresql(run: RunBatch, parrot: Parrot, postgres_url: str, tmp_path: Path) -> None:
    assert run(["a", "b"], ledger=postgres_url).is_finished
    assert run(["a", "b", "c"], settings=asides.Settings(store=postgres_url)).is_finished
    assert parrot.asked == {"a": 1, "b": 1, "c": 1}
    assert [row["text"] for row in read(tmp_path / "out.jsonl")] == ["re a", "re b", "re c"]
    assert not (tmp_path / "out.jsonl.ledger").exists()
    assert run(action="status", ledger=postgres_url).rows == 3


def test_a_cancelled_batch_goes_on_when_it_is_resumed(run: RunBatch, parrot: Parrot) -> None:
    parrot.fails = {"b"}
    run(["a", "b"])
    assert run(action="cancel").state == "cancelled"
    assert run(action="status").state == "cancelled"
    parrot.fails = set()
    assert run(action="resume").is_finished
    assert parrot.asked == {"a": 1, "b": 2}


def test_progress_is_reported_without_content(server: Stage, tmp_path: Path) -> None:
    seen: list[asides_batch.BatchStatus] = []
    batch = asides_batch.Batch(
        [f"secret {n}" for n in range(5)],
        output=tmp_path / "o",
        model=MODEL,
        base_url=server.url,
        on_progress=seen.append,
    )
    batch.run()
    assert [status.done for status in seen] == sorted(status.done for status in seen)
    assert (seen[-1].done, seen[-1].seconds_left) == (5, 0.0)
    assert "secret" not in repr(seen)
    batch.close()
