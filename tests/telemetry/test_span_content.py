"""No content by default. With it, prompts and answers; thinking as far as the policy allows; seals and keys never."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

import asides
from asides.telemetry.span_content import MOST_CHARACTERS, MOST_MESSAGES
from asides.testing.stage import Fail, Say, Stage
from tests.telemetry.recorded import Recorded, get, recording

KEY = "sk-canary-key-0123456789abcdef"
CANARIES = {
    "prompt": "canary-prompt",
    "system": "canary-system",
    "answer": "canary-answer",
    "thinking": "canary-thinking",
    "argument": "canary-argument",
    "result": "canary-result",
}
MODEL = "anthropic:claude-sonnet-4-5"


@asides.tool
def look(word: str) -> str:
    """Look something up."""
    return f"{CANARIES['result']} {word}"


def _converse(visibility: Mapping[str, Any] | None = None, *, wrong: bool = False) -> list[str]:
    """Everything that may hold something: a run with a tool and sealed thinking, a stream, an error. Returns seals."""
    call = asides.ToolCall("c1", "look", {"word": CANARIES["argument"]})
    thinking, answer = CANARIES["thinking"], CANARIES["answer"]
    says = [Say(thinking=thinking, tool_calls=(call,)), Say(thinking=thinking, text=answer)]
    with Stage([*says, *([Fail(400, message=f"canary-error {CANARIES['prompt']}")] if wrong else [])]) as stage:
        client = asides.Client(base_url=stage.url, api_key=KEY, visibility=visibility)
        agent = asides.Agent(
            MODEL, tools=[look], client=client, thinking=1024, max_tokens=2048, system=CANARIES["system"]
        )
        result = agent.run(CANARIES["prompt"])
        if wrong:
            with pytest.raises(asides.BadRequest):
                client.ask(MODEL, CANARIES["prompt"], max_tokens=100)
        client.close()
    return [seal.value for message in result.messages for part in message.parts for seal in getattr(part, "seals", ())]


def test_nothing_that_anyone_wrote_is_in_spans_metrics_or_logs(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), recording() as recorded:
        seals = _converse({"trace": ["raw", "summary"]}, wrong=True)
    left = recorded.dump() + caplog.text
    assert seals
    assert "gen_ai.usage" in left
    for word in (*CANARIES.values(), KEY, "canary", *seals):
        assert word not in left, word


def test_with_content_thinking_seals_and_keys_stay_out() -> None:
    with recording(content=True) as recorded:
        seals = _converse()
    left = recorded.dump()
    for name in ("prompt", "system", "answer", "argument", "result"):
        assert CANARIES[name] in left, name
    for word in (CANARIES["thinking"], KEY, *seals):
        assert word not in left


@pytest.mark.requirement("FT-56")
def test_thinking_is_a_part_of_its_own_where_the_policy_allows_its_kind() -> None:
    with recording(content=True) as recorded:
        seals = _converse({"trace": ["summary", "raw"]})
    (message,) = msgspec.json.decode(get(recorded.find("chat claude-sonnet-4-5", 1))["gen_ai.output.messages"])
    assert message["role"] == "assistant"
    assert message["finish_reason"] == "stop"
    kinds = {part["type"]: part["content"] for part in message["parts"]}
    assert kinds == {"reasoning": CANARIES["thinking"], "text": CANARIES["answer"]}
    assert not [seal for seal in seals if seal in recorded.dump()]


def test_thinking_of_a_kind_that_is_not_allowed_stays_out() -> None:
    say = Say(thinking=CANARIES["thinking"], text="x")
    for kinds in (["summary"], ["raw"]):
        with recording(content=True) as recorded, Stage([say]) as stage:
            client = asides.Client(base_url=stage.url, api_key=KEY, visibility={"trace": kinds})
            reply = client.ask("openai-compatible:m", "?")
            client.close()
        assert reply.thinking
        assert (CANARIES["thinking"] in recorded.dump()) == (reply.thinking.kind in kinds)


def test_a_prompt_of_all_parts_is_written_by_the_conventions() -> None:
    image = asides.Image(data=b"\x89PNG canary-bytes", media_type="image/png")
    with recording(content=True) as recorded, Stage() as stage, asides.Client() as client:
        prompt = [asides.user(["look", image])]
        client.ask("openai-compatible:m", prompt, base_url=stage.url, api_key=KEY)
    (message,) = msgspec.json.decode(get(recorded.find("chat m"))["gen_ai.input.messages"])
    assert message["parts"] == [{"type": "text", "content": "look"}, {"type": "image", "mime_type": "image/png"}]


def test_what_is_large_is_cut_and_says_so() -> None:
    long = "x" * (MOST_CHARACTERS + 5)
    messages = [asides.user("first"), asides.assistant("yes")] * MOST_MESSAGES + [asides.user(long)]
    with recording(content=True) as recorded, Stage() as stage, asides.Client() as client:
        client.ask("openai-compatible:m", messages, base_url=stage.url, api_key=KEY)
    known = get(recorded.find("chat m"))
    written = msgspec.json.decode(known["gen_ai.input.messages"])
    assert len(written) == MOST_MESSAGES
    assert known["asides.content.messages_left_out"] == len(messages) - MOST_MESSAGES
    assert written[-1]["parts"][0]["content"].endswith("(5 more characters)")


def test_a_key_in_a_prompt_is_taken_out() -> None:
    with (
        recording(content=True) as recorded,
        Stage([Say(text=f"your key is {KEY}")]) as stage,
        asides.Client() as client,
    ):
        client.ask("openai-compatible:m", f"my key is {KEY}", base_url=stage.url, api_key=KEY)
    assert KEY not in recorded.dump()
    assert "my key is" in recorded.dump()


def test_async_streams_have_content_too() -> None:
    async def ask() -> None:
        async with asides.AsyncClient(base_url=stage.url, api_key=KEY) as client:
            await client.stream("openai-compatible:m", CANARIES["prompt"]).drain()

    with recording(content=True) as recorded, Stage([Say(text=CANARIES["answer"])]) as stage:
        asyncio.run(ask())
    assert CANARIES["answer"] in _dump(recorded)


def _dump(recorded: Recorded) -> str:
    return recorded.dump()
