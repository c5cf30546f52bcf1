"""Requests that real clients sent, through the relay to providers of every dialect: accepted, answered in their own.

The folder is not part of the project. Every long text in it is replaced by its length.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from asides.relay.endpoints import find_endpoint
from asides.relay.relay_request import RelayRequest
from asides.values.errors import AsidesError
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door, Response, load, read_response

FOLDER = Path(os.environ.get("ASIDES_CLIENTS") or Path(__file__).parents[3] / "shared" / "reference" / "clients")
UPSTREAMS = (
    "anthropic:claude-opus-4-5",
    "anthropic:claude-opus-5-5",
    "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "bedrock:amazon.nova-pro-v1:0",
    "cohere:command-a-reasoning-08-2025",
    "gemini:gemini-3-pro-preview",
    "gemini:gemini-2.5-flash",
    "ollama:qwen3:8b",
    "deepseek:deepseek-v4-pro",
    "deepseek-anthropic:deepseek-v4-pro",
    "moonshot:kimi-k2-thinking",
    "mistral:magistral-medium-2509",
    "openai-chat:gpt-5.2",
    "openai-responses:gpt-5.2",
    "xai:grok-4",
    "vllm:any",
)
NOT_SENT = ("content-length", "host", "connection", "accept-encoding", "transfer-encoding")
# What a client sends knowing, or not knowing, that it is refused; and seals of another server, in their own dialect.
RIGHTLY_REFUSED = re.compile(
    r"thread cannot be translated|threads are not supported here"
    r"|a thinking budget of -1 tokens is below zero|budget_tokens: Input should be greater than or equal to 1024"
    r"|thinking.type.enabled.{1,3} is not supported for this model"
    r"|Invalid `signature` in `thinking` block|Corrupted thought signature|encrypted content for item \S+ could not be"
)


def list_captured() -> list[tuple[str, dict[str, Any]]]:
    files = sorted(FOLDER.glob("*/*.json")) if FOLDER.is_dir() else []
    found = [(f"{file.parent.name}/{file.name[:2]}", json.loads(file.read_bytes())) for file in files]
    return [(name, captured) for name, captured in found if captured["method"] == "POST"]


CAPTURED = list_captured()
pytestmark = [
    pytest.mark.recordings,
    pytest.mark.skipif(not CAPTURED, reason="no folder of captured requests beside this checkout"),
]


def send(door: Door, captured: dict[str, Any], body: Any = None) -> Response:
    path, _, query = captured["path"].partition("?")
    headers = {name.lower(): value for name, value in captured["headers"].items() if name.lower() not in NOT_SENT}
    data = json.dumps(captured["body"] if body is None else body).encode()
    return door.send(RelayRequest("", "POST", path, query, headers, data))


def find_dialect_of(captured: dict[str, Any]) -> str:
    path, _, query = captured["path"].partition("?")
    return find_endpoint("POST", path, query, {}).dialect


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_every_captured_request_is_answered_in_its_dialect(upstream: str) -> None:
    problems: list[str] = []
    ids: list[str | None] = []
    with Stage(lambda _: Say(thinking="hm", text="Done.")) as stage:
        door = Door(stage, settings=load(routes={"*": {"targets": [upstream]}}))
        for name, captured in CAPTURED:
            response = send(door, captured)
            if captured["path"].partition("?")[0].endswith("count_tokens"):
                assert response.json["input_tokens"] > 0
                continue
            try:
                reply = read_response(find_dialect_of(captured), "m", response)
            except AsidesError as problem:
                if not RIGHTLY_REFUSED.search(str(problem)):
                    problems.append(f"{name}: {problem}")
                continue
            ids.append(reply.id)
            if reply.text != "Done.":
                problems.append(f"{name}: {reply.text!r}")
    assert problems == []
    known = [each for each in ids if each]
    assert len(known) == len(set(known)), "clients merge replies of one id"
    assert len(ids) > 50


THREADS = [each for each in CAPTURED if "thread" in each[1]["body"]]


@pytest.mark.parametrize(("name", "captured"), THREADS, ids=[each[0] for each in THREADS])
def test_the_tool_runner_learns_that_it_has_to_send_the_whole_conversation(name: str, captured: dict[str, Any]) -> None:
    with Stage(Say(text="Done.")) as stage:
        door = Door(stage, settings=load(routes={"*": {"targets": ["gemini:gemini-3-pro-preview"]}}))
        refused = send(door, captured)
    assert (name, refused.status) == (name, 400)
    assert refused.json["error"]["details"]["error_code"] == "thread_unsupported_request"
