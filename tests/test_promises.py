"""Promises that hold across the house: nothing leaks, nothing mixes, a row is enough, work grows with the text."""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import asides
from asides import compat
from asides.dialects import find_dialect
from asides.providers.provider import ModelRule, Provider, Quirks, ReplayRule, Target
from asides.values.errors import NoAnswer, ProviderError
from asides.values.fold import Fold
from asides.values.messages import user
from asides.values.thinking import Thinking, read_thinking
from asides.wire.inline_tags import separate
from asides_stage.stage import Fail, OpenStage, Raw, Say
from tests.decoding import chunk, decoded, sse, stream, target, whole

CANARY = "canary-51c2"
HERE: dict[str, Any] = {"retries": 0}


# --- privacy ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-REQ-010", "FT-32", "S1-02")
def test_pain_B7_thinking_keys_and_prompts_reach_no_log_and_no_error(
    stage: OpenStage, caplog: pytest.LogCaptureFixture
) -> None:
    open_stage = stage(
        Say(text="fine", thinking=CANARY),
        Fail(status=401, message="Incorrect API key provided: sk-canary-51c2-abcdef"),
        Say(text="cut", thinking=CANARY * 40, cut_after=900),
    )
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    options: dict[str, Any] = {**HERE, "base_url": open_stage.url, "api_key": f"sk-{CANARY}-abcdefgh"}
    with asides.Client() as client:
        reply = client.ask("openai-compatible:m", f"a secret question: {CANARY}", **options)
        said += [repr(reply), str(reply), repr(reply.to_message()), repr(client)]
        for _ in range(2):
            events = client.stream("openai-compatible:m", CANARY, **options)
            said.append(repr(events))
            with pytest.raises(asides.AsidesError) as caught, events:
                said.extend(repr(event) for event in events)
            said += [str(caught.value), repr(caught.value), repr(caught.value.partial)]
    said += [record.getMessage() for record in caplog.records]
    assert reply.metadata["thinking"] == CANARY
    assert [text for text in said if "canary" in text] == []
    assert any("attempt 1" in record.getMessage() for record in caplog.records), "there is something to read at DEBUG"
    assert any("status 401" in record.getMessage() for record in caplog.records)


@pytest.mark.requirement("FT-32")
def test_S4_C1_the_library_writes_nothing_to_the_console(
    stage: OpenStage, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Not when all is well, not with warnings, not when it fails, not when a tool raises; nor does it set up logs."""

    def look_up() -> str:
        """Look it up."""
        raise ValueError(CANARY)

    call = asides.ToolCall("call_1", "look_up", {})
    open_stage = stage(
        Say(text="fine", thinking=CANARY),
        Raw(whole({"content": "A", "inner_thoughts": "R", "sparkle": 1}), content_type="application/json"),
        Fail(status=500),
        Say(tool_calls=(call,)),
        Say(text="done"),
    )
    caplog.set_level(logging.DEBUG)
    options: dict[str, Any] = {**HERE, "base_url": open_stage.url}
    asides.ask("openai-compatible:m", "?", thinking="high", **options)
    odd = asides.ask("openai-compatible:m", "?", **options)
    assert {notice.code for notice in odd.warnings} == {"unknown_thinking_field", "unknown_field"}
    with pytest.raises(asides.Overloaded):
        asides.ask("openai-compatible:m", "?", **options)
    assert asides.Agent("openai-compatible:m", tools=[look_up], **options).send("?").text == "done"
    assert capfd.readouterr() == ("", "")
    ours = [record for record in caplog.records if record.name.startswith("asides")]
    assert {record.levelname for record in ours} == {"DEBUG"}
    assert logging.getLogger("asides").handlers == []


@pytest.mark.requirement("S0-10")
def test_pain_B6_titles_memories_and_exports_are_answer_only() -> None:
    reply = decoded(whole({"content": "A title", "reasoning_content": CANARY}))
    message = reply.to_message()
    assert message is not None
    request, _ = find_dialect("openai_chat").encode(asides.Prompt((user("1"), message, user("2"))), target())
    texts = [entry.get("content") for entry in json.loads(request.body)["messages"]]
    assert texts == ["1", "A title", "2"]
    assert CANARY not in "".join([str(reply), f"{reply}", reply.content, message.text])


@pytest.mark.requirement("S0-09")
def test_S0_09_what_goes_back_holds_no_thinking_unless_the_rule_of_the_row_says_so(stage: OpenStage) -> None:
    open_stage = stage(Say(text="one", thinking=CANARY), Say(text="two"))
    first = asides.ask("openai-compatible:m", "1", base_url=open_stage.url)
    asides.ask("openai-compatible:m", [user("1"), first, user("2")], base_url=open_stage.url)
    assert CANARY not in json.dumps(open_stage.requests[1].json)
    assert "one" in json.dumps(open_stage.requests[1].json)


@pytest.mark.requirement("S0-16", "S1-29", "FT-17", "S1-20")
def test_S0_16_raw_and_encrypted_thinking_are_not_in_the_metadata_unless_asked_for() -> None:
    details = [{"type": "reasoning.encrypted", "data": "gAAA", "index": 0}]
    metadata = decoded(whole({"content": "A", "reasoning": "R", "reasoning_details": details})).metadata
    assert set(metadata) == {"model", "usage", "raw", "thinking", "thinking_type", "thinking_source"}


# --- the machine it runs on -------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-34")
@pytest.mark.skipif(os.environ.get("ASIDES_LIVE_TESTS") == "1", reason="live tests may leave the machine")
def test_S4_A7_a_test_that_reaches_for_the_network_fails() -> None:
    for reach in (
        lambda: socket.create_connection(("192.0.2.1", 80), timeout=0.1),
        lambda: socket.getaddrinfo("api.openai.com", 443),
        lambda: asides.ask("openai:gpt-4o", "?", api_key="k", retries=0),
    ):
        with pytest.raises(BaseException, match="is not on this machine") as caught:
            reach()
        assert not isinstance(caught.value, Exception), "no error handling may take it for its own"


@pytest.mark.parametrize(
    "value",
    [
        asides.Text("a"),
        asides.Thought("a"),
        asides.ToolCall("1", "f"),
        asides.Message("user", (asides.Text("a"),)),
        asides.Usage(1),
        asides.TextDelta("a", 0),
        asides.Thinking(),
        asides.Prompt((user("a"),)),
        asides.Reply(),
        asides.Settings(),
        Provider(name="example"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_S4_A3_what_is_handed_out_cannot_be_changed(value: Any) -> None:
    for name in value.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, name, None)


# --- asking -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("I10", "FT-11", "S0-41", "S1-13", "S1-10")
def test_I10_what_is_asked_about_thinking_reaches_the_wire(stage: OpenStage) -> None:
    open_stage = stage(Say(text="ok"))
    with asides.Client(thinking="low", base_url=open_stage.url) as client:
        client.ask("openai-compatible:m", "1")
        client.ask("openai-compatible:m", "2", thinking="high")
        client.ask("openai-compatible:m", "3", reasoning_effort="medium")
        with client.stream("openai-compatible:m", "4", thinking=None) as events:
            assert events.reply.text == "ok"
    sent = [received.json for received in open_stage.requests]
    assert [body.get("reasoning_effort") for body in sent] == ["low", "high", "medium", "low"]
    assert [body.get("stream", False) for body in sent] == [False, False, False, True]


@pytest.mark.requirement("S1-12")
def test_S1_12_a_host_that_takes_the_nested_object_gets_it() -> None:
    row = Provider(name="example", base_url="http://127.0.0.1:9", quirks=Quirks(ask_by="reasoning_object"))
    request, _ = find_dialect("openai_chat").encode(
        asides.Prompt((user("hi"),), thinking=Thinking(effort="high")), Target(row, "m", row.base_url)
    )
    assert json.loads(request.body)["reasoning"] == {"effort": "high"}


@pytest.mark.requirement("S3-13")
def test_I5_summaries_are_read_and_brief_is_concise_with_a_warning() -> None:
    for word in ("auto", "concise", "detailed"):
        assert read_thinking({"summary": word})[0].summary == word
    assert read_thinking({"summary": "none"})[0].summary is None
    thinking, notices = read_thinking({"summary": "brief"})
    assert thinking.summary == "concise"
    assert [(notice.asked, notice.sent) for notice in notices] == [("brief", "concise")]


def test_I6_no_encrypted_state_is_asked_for_where_the_dialect_has_none() -> None:
    request, _ = find_dialect("openai_chat").encode(
        asides.Prompt((user("hi"),), thinking=Thinking(effort="high")), target()
    )
    assert {"include", "store"}.isdisjoint(json.loads(request.body))


@pytest.mark.requirement("S0-21")
def test_S0_21_text_without_tags_is_returned_unchanged() -> None:
    text = "  if a < b:\n\t`<think>` is a tag \n"
    assert separate(text) == asides.Separated(text, None)


@pytest.mark.requirement("FT-62", "S0-51")
def test_FT_62_the_old_positional_call_still_works(stage: OpenStage) -> None:
    url = stage(Say(text="42", thinking="plan")).url
    answer = compat.create_chat_completion(
        "openai-compatible:m", [{"role": "user", "content": "?"}], 0.5, 100, base_url=url
    )
    assert (answer["content"], answer["metadata"]["thinking"]) == ("42", "plan")


@pytest.mark.requirement("FT-60", "FT-46")
def test_FT_46_FT_60_a_server_that_is_busy_is_asked_again_and_the_stage_can_play_it(stage: OpenStage) -> None:
    open_stage = stage(
        Say(text="hello there", thinking="plan", piece=3), Fail(status=503, message="busy"), Say(text="again")
    )
    with asides.stream("openai-compatible:m", "hi", base_url=open_stage.url) as events:
        assert "".join(event.text for event in events if isinstance(event, asides.TextDelta)) == "hello there"
        assert events.reply.thinking
    reply = asides.ask("openai-compatible:m", "hi", base_url=open_stage.url, retries=1)
    assert (reply.text, len(open_stage.requests)) == ("again", 3)


# --- a provider is a row ----------------------------------------------------------------------------------------------

MADE_UP = Provider(
    name="made-up-host",
    key="optional",
    quirks=Quirks(thinking_in=("inner_voice",), ask_by="thinking_toggle", tags=("think",), replay_field="inner_voice"),
    models=(ModelRule(models="ponder-*", thinking="optional", budget=(1024, None), since="2026-11", source="made up"),),
    replay=(ReplayRule(models="*", when="tool_turns", since="2026-11", source="made up"),),
)


@pytest.mark.requirement("FT-31", "FT-39", "S0-11", "S3-53")
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_FT_31_a_made_up_host_is_one_row_and_gets_everything(stage: OpenStage, streaming: bool) -> None:
    """Asking, separating a field of its own and inline tags, calls, replay, errors and capabilities: from the row
    alone.
    """
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    turns: list[dict[str, Any]] = [
        {"inner_voice": "I should look.", "tool_calls": [call]},
        {"content": "<think>So.</think>Found it."},
    ]
    bodies = [stream(turn) if streaming else whole(turn) for turn in turns]
    kind = "text/event-stream" if streaming else "application/json"
    open_stage = stage(*[Raw(body, content_type=kind) for body in bodies], Fail(status=404, message="no such model"))
    row = asides.Provider(
        **{name: getattr(MADE_UP, name) for name in MADE_UP.__struct_fields__ if name != "base_url"},
        base_url=open_stage.url,
    )
    with asides.Client(providers=[row], retries=0, stream=streaming) as client:
        tools = [asides.Tool("look_up")]
        first = client.ask("made-up-host:ponder-1", "Where?", thinking=2000, tools=tools)
        assert first.thinking
        assert (first.text, first.thinking.text, first.outcome) == ("", "I should look.", "tool_calls")
        history: list[asides.Message | asides.Reply] = [
            user("Where?"),
            first,
            asides.Message("tool", (asides.ToolResult("c1", "there"),)),
        ]
        second = client.ask("made-up-host:ponder-1", history, tools=tools)
        assert second.thinking
        assert (second.text, second.thinking.text) == ("Found it.", "So.")
        with pytest.raises(asides.NotFound, match="made-up-host"):
            client.ask("made-up-host:ponder-1", "Where?")
    asked, replayed = (received.json for received in open_stage.requests[:2])
    assert asked["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert replayed["messages"][1]["inner_voice"] == "I should look."
    assert row.capabilities("ponder-1").budget == (1024, None)
    assert row.capabilities("other").thinking == "unknown"


# --- work grows with the text
# -------------------------------------------------------------------------------------------


def calls_made(work: Callable[[], object]) -> int:
    """How many Python and C functions `work` calls: a measure of work that no busy machine can change."""
    count = 0

    def tally(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(tally)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def reading(deltas: int, quirks: Quirks) -> Callable[[], object]:
    half = deltas // 2
    body = sse(
        *[chunk({"reasoning_content": f" w{number}"}) for number in range(half)],
        *[chunk({"content": f" w{number}"}) for number in range(half)],
        chunk(finish="stop"),
    )
    pieces = [body[start : start + 4096] for start in range(0, len(body), 4096)]

    def read() -> object:
        decoder, fold = find_dialect("openai_chat").decoder(target(quirks=quirks)), Fold()
        for piece in pieces:
            fold.feed(decoder.feed(piece))
        fold.feed(decoder.finish())
        return fold.reply()

    return read


@pytest.mark.requirement("S4-P1", "S4-P3", "FT-33", "S3-57")
@pytest.mark.parametrize("quirks", [Quirks(), Quirks(tags=("think", "thinking"))], ids=["fields", "tags"])
def test_S4_P1_work_per_delta_is_small_and_does_not_grow(quirks: Quirks) -> None:
    reading(40, quirks)()  # what is built once is built
    small, large = calls_made(reading(400, quirks)), calls_made(reading(6400, quirks))
    assert large / small < 16 * 1.05
    assert large / 6400 < 26  # calls of Python and C functions: six of ours, the others are append, len and the like


@pytest.mark.parametrize("quirks", [Quirks(), Quirks(tags=("think", "thinking"))], ids=["fields", "tags"])
def test_S4_P3_reading_a_stream_holds_little_more_than_what_was_received(quirks: Quirks) -> None:
    def peak(deltas: int) -> int:
        read = reading(deltas, quirks)
        gc.collect()
        tracemalloc.start()
        try:
            read()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(40)  # what is built once is built
    received = len(sse(chunk({"reasoning_content": " w1000"}), done=False))
    assert (peak(6400) - peak(400)) / 6000 < received + 150


@pytest.mark.requirement("D17")
def test_S4_P2_a_whole_body_takes_a_handful_of_calls_whatever_its_length() -> None:
    def read(length: int) -> Callable[[], object]:
        body = whole({"content": "x" * length, "reasoning_content": "y" * length})
        return lambda: asides.decode("openai_chat", body, streaming=False)

    read(10)()
    short, long = calls_made(read(10_000)), calls_made(read(200_000))
    assert long == short < 200


def test_an_error_keeps_its_reply_when_it_is_pickled() -> None:
    import pickle

    reply = decoded(whole({"content": "", "reasoning": "R"}, finish="length"))
    with pytest.raises(NoAnswer) as caught:
        reply.require_answer()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.partial) == (str(caught.value), reply)
    error = ProviderError("no", status=418, body=b"{}")
    assert pickle.loads(pickle.dumps(error)).status == 418
