"""`expect_no_refusals` and `assert_no_leak`: they fail when they should, and say where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides.values.errors import ConfigError
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

CANARY = "canary-7f3a"
LEGAL: Wire = {"model": "claude-opus-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
BROKEN: Wire = {**LEGAL, "temperature": 1}


def post(stage: Stage, body: Wire, path: str = "/v1/messages", headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", path, json.dumps(body), headers or {})
        return Answer(connection.getresponse())


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_stage_that_expects_none_fails_on_closing_with_the_reason() -> None:
    with pytest.raises(AssertionError) as failed, Stage([Say(text="42")]) as opened:  # noqa: PT012
        opened.expect_no_refusals()
        post(opened, LEGAL)
        post(opened, BROKEN)
    expected = "request 1 /v1/messages: sampling_unsupported: `temperature` is deprecated for this model."
    assert str(failed.value).splitlines() == ["the stage's rules refuse 1 request:", f"  {expected}"]


def test_a_block_that_expects_none_looks_at_its_own_requests() -> None:
    with Stage([Say(text="42")]) as opened:
        post(opened, BROKEN)
        with opened.expect_no_refusals():
            post(opened, LEGAL)
        with pytest.raises(AssertionError, match="refuse 12 requests"), opened.expect_no_refusals():  # noqa: PT012
            for _ in range(12):
                post(opened, BROKEN)
        with pytest.raises(ZeroDivisionError), opened.expect_no_refusals():  # noqa: PT012
            post(opened, BROKEN)
            raise ZeroDivisionError
    assert len(opened.refusals) == 14, "and closing said nothing of what the blocks have said"


def test_a_lenient_stage_answers_everything_and_lists_what_is_refused() -> None:
    with Stage([Say(text="42")], rules="lenient") as opened:
        assert post(opened, BROKEN).json["content"] == [{"type": "text", "text": "42"}]
        (refusal,) = opened.refusals
        assert (refusal.kind, refusal.status, refusal.number) == ("sampling_unsupported", 400, 0)
        assert json.loads(refusal.body)["error"]["message"] == refusal.text
        assert opened.requests[0].problem is None
        with pytest.raises(AssertionError, match="sampling_unsupported"), opened.expect_no_refusals():
            post(opened, BROKEN)


def test_a_lenient_stage_cannot_answer_what_cannot_be_read() -> None:
    with Stage([Say(text="42")], rules="lenient") as opened:
        blocks = [{"type": "thinking", "signature": "x"}, {"type": "text", "text": "x"}]
        body = {**LEGAL, "messages": [LEGAL["messages"][0], {"role": "assistant", "content": blocks}]}
        assert post(opened, body).status == 400
        assert [refusal.kind for refusal in opened.refusals] == ["thinking_text_missing"]


def test_rules_and_date_are_checked() -> None:
    with pytest.raises(ConfigError, match='Write "strict" or "lenient"'):
        Stage(rules="mild")  # type: ignore[arg-type]
    for date in ("yesterday", "2026-13-01", 3):
        with pytest.raises(ConfigError, match=r'(?i)write a day as "2026-11-15"'):
            Stage(date=date)  # type: ignore[arg-type]


def test_a_refusal_shows_no_body() -> None:
    with Stage([Say(text="42")]) as opened:
        post(opened, BROKEN)
    assert repr(opened.refusals[0]) == (
        "RefusedRequest(sampling_unsupported, request 0 /v1/messages, '`temperature` is deprecated for this model.')"
    )


# --- leaks ------------------------------------------------------------------------------------------------------------


def turn(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
GEMINI = "/v1beta/models/m:generateContent"
CONVERSE = "/model/m/converse"
HI: Wire = {"role": "user", "content": "hi"}
ALLOWED: dict[str, tuple[str, Wire]] = {
    "a thinking block": ("/v1/messages", {**LEGAL, "messages": [HI, turn({"type": "thinking", "thinking": CANARY})]}),
    "reasoning_content": (CHAT, {"model": "m", "messages": [HI, {**turn(), "reasoning_content": CANARY}]}),
    "reasoning": (CHAT, {"model": "m", "messages": [HI, {**turn(), "reasoning": CANARY}]}),
    "reasoning_details": (CHAT, {"model": "m", "messages": [{**turn(), "reasoning_details": [{"text": CANARY}]}]}),
    "a thinking part": (CHAT, {"model": "m", "messages": [turn({"type": "thinking", "thinking": [{"text": CANARY}]})]}),
    "a reasoning item": (
        RESPONSES,
        {"model": "m", "input": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": CANARY}]}]},
    ),
    "a thought part": (GEMINI, {"contents": [{"role": "model", "parts": [{"text": CANARY, "thought": True}]}]}),
    "reasoningContent": (
        CONVERSE,
        {"messages": [turn({"reasoningContent": {"reasoningText": {"text": CANARY}}})]},
    ),
    "thinking of Ollama": ("/api/chat", {"model": "m", "messages": [{"role": "assistant", "thinking": CANARY}]}),
}
LEAKS: dict[str, tuple[str, Wire, str]] = {
    "the answer": (
        "/v1/messages",
        {**LEGAL, "messages": [HI, turn({"type": "text", "text": f"so {CANARY}"})]},
        "body.messages[1].content[0].text",
    ),
    "a question": (CHAT, {"model": "m", "messages": [{"role": "user", "content": CANARY}]}, "body.messages[0].content"),
    "the thinking of a user": (
        CHAT,
        {"model": "m", "messages": [{"role": "user", "content": "x", "reasoning": CANARY}]},
        "body.messages[0].reasoning",
    ),
    "a thinking block of a user": (
        "/v1/messages",
        {**LEGAL, "messages": [{"role": "user", "content": [{"type": "thinking", "thinking": CANARY}]}]},
        "body.messages[0].content[0].thinking",
    ),
    "the system prompt": ("/v1/messages", {**LEGAL, "system": CANARY}, "body.system"),
    "a result": (
        "/v1/messages",
        {**LEGAL, "messages": [{"role": "user", "content": [{"type": "tool_result", "content": CANARY}]}]},
        "body.messages[0].content[0].content",
    ),
    "arguments": (
        CHAT,
        {"model": "m", "messages": [{**turn(), "tool_calls": [{"function": {"arguments": f'{{"a": "{CANARY}"}}'}}]}]},
        "body.messages[0].tool_calls[0].function.arguments",
    ),
    "a part that is no thought": (
        GEMINI,
        {"contents": [{"role": "model", "parts": [{"text": CANARY}]}]},
        "body.contents[0].parts[0].text",
    ),
    "an output item": (
        RESPONSES,
        {"model": "m", "input": [{"type": "function_call_output", "output": CANARY}]},
        "body.input[0].output",
    ),
    "a name": (CHAT, {"model": "m", "metadata": {CANARY: "x"}}, "body.metadata: a name"),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_thinking_may_go_back_in_the_turns_of_the_model(stage: OpenStage, name: str) -> None:
    path, body = ALLOWED[name]
    opened = stage(Say(text="42"), rules="lenient")
    post(opened, body, path)
    opened.assert_no_leak(CANARY)
    stage.assert_no_leak(CANARY)


@pytest.mark.parametrize("name", LEAKS)
def test_thinking_anywhere_else_is_a_leak(stage: OpenStage, name: str) -> None:
    path, body, place = LEAKS[name]
    opened = stage(Say(text="42"), rules="lenient")
    post(opened, body, path)
    for searching in (opened, stage):
        with pytest.raises(AssertionError) as failed:
            searching.assert_no_leak(CANARY)
        assert str(failed.value) == f"thinking leaked into:\n  request 0 POST: {place}"


def test_addresses_headers_and_bodies_that_are_no_json_are_searched(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    post(opened, LEGAL, f"/v1/messages?note=the%20{CANARY}")
    post(opened, LEGAL, headers={"x-note": CANARY})
    with connected(opened) as connection:
        connection.request("POST", "/v1/messages", f"no json {CANARY}")
        connection.getresponse().read()
    with pytest.raises(AssertionError) as failed:
        opened.assert_no_leak(f"the {CANARY}")
    assert "request 0 POST: the query of the address" in str(failed.value)
    with pytest.raises(AssertionError) as failed:
        opened.assert_no_leak(CANARY)
    assert "request 1 POST: the header x-note" in str(failed.value)
    assert "request 2 POST: the body" in str(failed.value)


def test_other_outputs_are_searched_too(stage: OpenStage, tmp_path: Path) -> None:
    opened = stage()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "app.log").write_bytes(b"\xff" + CANARY.encode())
    clean = tmp_path / "clean.txt"
    clean.write_text("nothing")
    opened.assert_no_leak(CANARY, in_=["nothing", b"nothing", clean, {"a": ["nothing"]}])
    for searched, place in (
        (f"a {CANARY}", "in_"),
        (CANARY.encode(), "in_"),
        (["a", CANARY], "in_[1]"),
        ({"out": {"err": CANARY}}, "in_['out']['err']"),
        (tmp_path, "the file app.log"),
    ):
        with pytest.raises(AssertionError) as failed:
            opened.assert_no_leak(CANARY, in_=searched)
        assert str(failed.value) == f"thinking leaked into:\n  {place}"
    with pytest.raises(FileNotFoundError):
        opened.assert_no_leak(CANARY, in_=tmp_path / "not there")
    with pytest.raises(TypeError, match="in_ is a int"):
        opened.assert_no_leak(CANARY, in_=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="an empty canary"):
        opened.assert_no_leak("")
