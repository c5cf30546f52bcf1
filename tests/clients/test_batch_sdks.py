"""The makers' own clients create batches on the stage, wait for them and read their results."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from asides.dialects.dialect import ServedRequest
from asides_stage import BatchScript, Fail, OpenStage, Say, Scene, Stage

QUESTIONS = {"r0": "one", "r1": "bad", "r2": "two"}


def answer(served: ServedRequest) -> Scene:
    question = served.prompt.messages[-1].text
    return Fail(status=400, message="no") if question == "bad" else Say(thinking="mull", text=f"answer to {question}")


@pytest.fixture
def opened(stage: OpenStage) -> Stage:
    return stage(answer, batches=BatchScript(seconds=0.2))


def wait(read: Any, is_over: Any) -> Any:
    for _ in range(200):
        found = read()
        if is_over(found):
            return found
        time.sleep(0.03)
    raise AssertionError("the batch does not end")


@pytest.mark.parametrize("endpoint", ["/v1/chat/completions", "/v1/responses"])
def test_openai_reads_a_batch(opened: Stage, endpoint: str) -> None:
    openai = pytest.importorskip("openai")
    field = "input" if endpoint.endswith("responses") else "messages"
    lines = [
        {
            "custom_id": name,
            "method": "POST",
            "url": endpoint,
            "body": {"model": "gpt-5.2", field: [{"role": "user", "content": question}]},
        }
        for name, question in QUESTIONS.items()
    ]
    with openai.OpenAI(base_url=opened.url, api_key="sk-made-up", max_retries=0) as client:
        content = "\n".join(map(json.dumps, lines)).encode()
        file = client.files.create(file=("in.jsonl", content), purpose="batch")
        assert (file.purpose, file.bytes) == ("batch", len(content))
        created = client.batches.create(
            input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={"mine": "1"}
        )
        batch = wait(lambda: client.batches.retrieve(created.id), lambda found: found.status == "completed")
        assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 1)
        good = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
        bad = [json.loads(line) for line in client.files.content(batch.error_file_id).text.splitlines()]
        assert {each["custom_id"] for each in good} == {"r0", "r2"}
        assert "answer to " in json.dumps(good[0]["response"]["body"])
        assert [(each["custom_id"], each["response"]["status_code"]) for each in bad] == [("r1", 400)]
        assert [each.metadata for each in client.batches.list()] == [{"mine": "1"}]
        second = client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")
        assert client.batches.cancel(second.id).status == "cancelling"
        with pytest.raises(openai.NotFoundError):
            client.batches.retrieve("batch_none")


def test_anthropic_reads_a_batch(opened: Stage) -> None:
    anthropic = pytest.importorskip("anthropic")
    requests: list[Any] = [
        {
            "custom_id": name,
            "params": {
                "model": "claude-opus-5-5",
                "max_tokens": 2000,
                "thinking": {"type": "adaptive", "display": "summarized"},
                "messages": [{"role": "user", "content": question}],
            },
        }
        for name, question in QUESTIONS.items()
    ]
    address = opened.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=address, api_key="sk-made-up", max_retries=0) as client:
        batches = client.messages.batches
        created = batches.create(requests=requests)
        assert (created.processing_status, created.request_counts.processing) == ("in_progress", 3)
        batch = wait(lambda: batches.retrieve(created.id), lambda found: found.processing_status == "ended")
        assert (batch.request_counts.succeeded, batch.request_counts.errored) == (2, 1)
        results = {each.custom_id: each.result for each in batches.results(batch.id)}
        thought, text = results["r0"].message.content
        assert (thought.type, thought.thinking, text.text) == ("thinking", "mull", "answer to one")
        assert thought.signature
        assert results["r1"].error.error.type == "invalid_request_error"
        assert [each.id for each in batches.list()] == [batch.id]
        assert batches.delete(batch.id).type == "message_batch_deleted"
        with pytest.raises(anthropic.BadRequestError):
            batches.create(requests=[requests[0], requests[0]])


def test_google_reads_a_batch_in_the_body(opened: Stage) -> None:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="sk-made-up", http_options={"base_url": opened.url.removesuffix("/v1")})
    source = [
        {"contents": [{"role": "user", "parts": [{"text": question}]}], "metadata": {"key": name}}
        for name, question in QUESTIONS.items()
    ]
    created = client.batches.create(model="gemini-3-flash-preview", src=source, config={"display_name": "mine"})
    assert created.state.name == "JOB_STATE_PENDING"
    job = wait(lambda: client.batches.get(name=created.name), lambda found: found.state.name == "JOB_STATE_SUCCEEDED")
    results = {each.metadata["key"]: each for each in job.dest.inlined_responses}
    assert results["r0"].response.text == "answer to one"
    assert results["r1"].error.code == 3
    assert [each.display_name for each in client.batches.list()] == ["mine"]


def test_google_reads_a_batch_in_a_file(opened: Stage, tmp_path: Path) -> None:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="sk-made-up", http_options={"base_url": opened.url.removesuffix("/v1")})
    path = tmp_path / "in.jsonl"
    lines = [
        json.dumps({"key": name, "request": {"contents": [{"role": "user", "parts": [{"text": question}]}]}})
        for name, question in QUESTIONS.items()
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    file = client.files.upload(file=str(path), config={"display_name": "in", "mime_type": "jsonl"})
    created = client.batches.create(model="gemini-3-flash-preview", src=file.name, config={"display_name": "mine"})
    job = wait(lambda: client.batches.get(name=created.name), lambda found: found.state.name == "JOB_STATE_SUCCEEDED")
    results = [json.loads(line) for line in client.files.download(file=job.dest.file_name).decode().splitlines()]
    assert {each["key"] for each in results if "response" in each} == {"r0", "r2"}
    assert [each["error"]["code"] for each in results if "error" in each] == [3]
    second = client.batches.create(model="gemini-3-flash-preview", src=file.name, config={"display_name": "two"})
    client.batches.cancel(name=second.name)
    wait(lambda: client.batches.get(name=second.name), lambda found: found.state.name == "JOB_STATE_CANCELLED")
