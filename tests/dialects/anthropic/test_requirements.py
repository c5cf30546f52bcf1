"""Claude's blocks, signatures and budgets: the requirements on them, by id. Replies are decoded in every chunking."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides.dialects import find_dialect
from asides.history.plan import Plan, plan
from asides.providers.find import find_provider, find_target
from asides.providers.provider import Target
from asides.values.errors import InvalidThinking
from asides.values.events import TextDelta, ThinkingDelta, ThoughtSealed, UsageReported
from asides.values.fold import fold
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thinking, Thought, read_thinking
from asides.values.tools import Tool
from asides_stage.stage import OpenStage, Say
from tests.decoding import events_of, sse
from tests.dialects.anthropic.messages import (
    begin,
    call,
    claude,
    delta,
    end,
    read,
    start,
    stop,
    stream,
    text,
    thinking,
    whole,
)

BUDGET = "claude-sonnet-4-5"
BOTH = "claude-opus-4-6"
ADAPTIVE = "claude-opus-4-7"
BY_HABIT = "claude-sonnet-5"
ALWAYS = "claude-opus-5-5"
NEVER = "claude-3-5-haiku-latest"
TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {}})


def target(model: str) -> Target:
    return find_target(f"anthropic:{model}", environ={})


def planned(model: str, asked: Any = None, *, on_conflict: Any = "raise", **fields: Any) -> Plan:
    prompt = Prompt((user("hi"),), thinking=read_thinking(asked)[0])
    return plan(msgspec.structs.replace(prompt, **fields), target(model), on_conflict=on_conflict)


def sent(model: str, asked: Any = None, **fields: Any) -> dict[str, Any]:
    """The body of the request, as it would be sent."""
    request, _ = find_dialect("anthropic").encode(planned(model, asked, **fields).prompt, target(model))
    body: dict[str, Any] = json.loads(request.body)
    return body


def parts(reply: Reply) -> list[tuple[str, str]]:
    named: dict[type, str] = {Thought: "thought", Text: "text", ToolCall: "call"}
    return [(named[type(part)], getattr(part, "text", "")) for part in reply.parts]


def codes(told: Plan) -> list[str]:
    return [notice.code for notice in told.notices]


# --- what arrives -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-06", "S3-15", "S3-23", "S3-24", "S3-27", "S3-31", "S3-46", "FT-26")
def test_F1_deltas_and_a_signature_are_one_block_with_both() -> None:
    reply = read(stream(thinking(0, "Let me ", "think.", signature="EqQB=="), text(1, "42")))
    origin = claude().origin
    seal = Seal("signature", "EqQB==", origin)
    assert reply.parts == (Thought("Let me think.", "summary", "block", origin, (seal,), "thinking"), Text("42"))
    assert read(whole(
        {"type": "thinking", "thinking": "Let me think.", "signature": "EqQB=="}, {"type": "text", "text": "42"}
    )) == reply  # fmt: skip


def test_F2_the_signature_is_the_deltas_and_an_empty_one_at_the_start_is_none() -> None:
    block = thinking(0, "plan", signature=None, ends=False)
    events, _ = events_of([sse(start(), *block, done=False)], claude(), "anthropic")
    assert not any(isinstance(event, ThoughtSealed) for event in events)
    reply = read(stream([*block, delta(0, type="signature_delta", signature="late"), stop(0)], text(1, "42")))
    assert [seal.value for seal in reply.seals] == ["late"]


def test_F3_interleaved_blocks_stay_apart_and_in_order() -> None:
    reply = read(
        stream(thinking(0, "one", signature="a"), text(1, "so"), thinking(2, "two", signature="b"), text(3, "!"))
    )
    assert parts(reply) == [("thought", "one"), ("text", "so"), ("thought", "two"), ("text", "!")]
    assert [seal.value for seal in reply.seals] == ["a", "b"]
    assert reply.thinking
    assert reply.thinking.text == "one\n\ntwo"


@pytest.mark.requirement("pain C4")
def test_F4_two_signed_blocks_keep_their_own_even_if_an_index_is_used_again() -> None:
    reply = read(stream(thinking(0, "one", signature="a"), thinking(0, "two", signature="b"), text(1, "42")))
    thoughts = [part for part in reply.parts if isinstance(part, Thought)]
    assert [(thought.text, [seal.value for seal in thought.seals]) for thought in thoughts] == [
        ("one", ["a"]),
        ("two", ["b"]),
    ]
    assert reply.text == "42"


def test_F5_redacted_thinking_is_kept_hidden_and_goes_back_verbatim() -> None:
    body = stream([begin(0, type="redacted_thinking", data="Eu0B+/=="), stop(0)], text(1, "42"))
    reply = read(body)
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.text) == ("hidden", "")
    assert [(seal.kind, seal.value) for seal in reply.seals] == [("redacted", "Eu0B+/==")]
    assert next_turn(reply)[1]["content"][0] == {"type": "redacted_thinking", "data": "Eu0B+/=="}
    assert "Eu0B" not in repr(reply)


def next_turn(reply: Reply, model: str = BUDGET, asked: Any = None) -> list[dict[str, Any]]:
    """The messages of the request behind this reply."""
    message = reply.to_message()
    assert message is not None
    answers = tuple(ToolResult(made.id, "done", made.name) for made in reply.tool_calls)
    history = (user("hi"), message, Message("tool", answers) if answers else user("go on"))
    turns: list[dict[str, Any]] = sent(model, asked, messages=history, tools=(TOOL,))["messages"]
    return turns


@pytest.mark.requirement("S3-08", "S3-26", "S3-28", "S3-29", "FT-28", "pain C4")
def test_F6_thinking_text_and_calls_go_back_in_order_and_unmodified() -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "a  plan\n", "signature": "sig1=="},
        {"type": "redacted_thinking", "data": "cipher"},
        {"type": "text", "text": "I look. "},
        {"type": "thinking", "thinking": "", "signature": "sig2"},
        {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"é": [1, None]}},
        {"type": "tool_use", "id": "toolu_2", "name": "look_up", "input": {}},
    ]
    assert next_turn(read(whole(*content, reason="tool_use")), asked=2000)[1] == {
        "role": "assistant",
        "content": content,
    }


def test_S3_25_deltas_are_metadata_and_the_block_is_kept_where_a_tool_is_called() -> None:
    called = call(1, "toolu_1", "look_up", "{}")
    body = stream(thinking(0, "I should ", "look.", signature="sig=="), called, reason="tool_use")
    events, _ = events_of([body], claude(), "anthropic")
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["I should ", "look."]
    assert not any(isinstance(event, TextDelta) for event in events)
    reply = read(body)
    assert (reply.text, reply.metadata["thinking"]) == ("", "I should look.")
    assert next_turn(reply, asked=2000)[1]["content"] == [
        {"type": "thinking", "thinking": "I should look.", "signature": "sig=="},
        {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}},
    ]


@pytest.mark.requirement("pain A3")
def test_F7_a_thought_that_is_not_shown_survives_with_its_signature() -> None:
    reply = read(stream(thinking(0, signature="EpYC"), text(1, "42")), ALWAYS)
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.text, len(reply.parts)) == ("hidden", "", 2)
    assert "thinking" not in reply.metadata
    turn = next_turn(decoded_by(ALWAYS, "EpYC"), ALWAYS)[1]
    assert turn["content"][0] == {"type": "thinking", "thinking": "", "signature": "EpYC"}


def decoded_by(model: str, signature: str) -> Reply:
    return read(stream(thinking(0, signature=signature), text(1, "42")), model)


def test_F8_empty_deltas_produce_no_events() -> None:
    events, _ = events_of([stream(thinking(0, "", "x", ""), text(1, "", "y"))], claude(), "anthropic")
    assert [type(event) for event in events if isinstance(event, ThinkingDelta | TextDelta)] == [
        ThinkingDelta,
        TextDelta,
    ]


@pytest.mark.requirement("S3-45", "S3-46", "FT-09", "C5", "C6")
def test_S3_45_four_deltas_are_four_events_equal_to_them_and_their_sum_is_the_thinking() -> None:
    deltas = ["First ", "I look", ", then ", "I leap."]
    events, failure = events_of([stream(thinking(0, *deltas), text(1, "42"))], claude(), "anthropic")
    assert failure is None
    told = [event.text for event in events if isinstance(event, ThinkingDelta)]
    assert told == deltas
    reply = fold(events)
    assert reply.thinking
    assert reply.thinking.text == reply.metadata["thinking"] == "".join(deltas)


@pytest.mark.requirement("S3-04", "S3-10", "S3-11", "S3-18", "S3-38", "S3-44", "S3-49", "H1", "FT-29")
def test_S3_44_thinking_is_in_no_text_of_the_message() -> None:
    reply = read(stream(thinking(0, "secret plan"), text(1, "42")))
    message = reply.to_message()
    assert message is not None
    assert (reply.text, message.text, message.content) == ("42", "42", reply.parts)
    assert reply.metadata["thinking"] == "secret plan"
    spoken = [block for turn in next_turn(reply) for block in turn["content"] if isinstance(block, dict)]
    assert not any("secret" in block.get("text", "") for block in spoken)


@pytest.mark.requirement("S3-50")
def test_S3_50_thinking_and_a_call_in_one_reply() -> None:
    reply = read(
        stream(thinking(0, "I should look."), call(1, "toolu_1", "look_up", '{"n"', ": 1}"), reason="tool_use")
    )
    assert (reply.outcome, reply.thinking.text if reply.thinking else None) == ("tool_calls", "I should look.")
    assert reply.tool_calls == (ToolCall("toolu_1", "look_up", {"n": 1}),)


@pytest.mark.requirement("S3-30", "F14")
def test_F14_thinking_tokens_are_reported_and_are_part_of_the_output() -> None:
    usage = {"input_tokens": 10, "output_tokens": 105, "output_tokens_details": {"thinking_tokens": 67}}
    body = sse(start(), *text(0, "42"), *end(usage=usage), done=False)
    told = read(body).usage
    assert (told.output, told.thinking, told.answer) == (105, 67, 38)
    events, _ = events_of([body], claude(), "anthropic")
    assert [event.usage.output for event in events if isinstance(event, UsageReported)] == [1, 105]


# --- what is asked ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-19", "S3-20", "S3-41", "S3-43", "S3-55", "S3-56", "FT-27", "pain D1")
def test_F9_budgets() -> None:
    body = sent(BUDGET, 3000)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 3000}
    assert body["max_tokens"] == 3000 + 4096, "room for an answer"
    assert "max_tokens_chosen" in codes(planned(BUDGET, 3000))
    assert sent(BUDGET, {"type": "enabled", "budget_tokens": 5000}, max_tokens=16000)["thinking"] == {
        "type": "enabled",
        "budget_tokens": 5000,
    }
    with pytest.raises(InvalidThinking, match="512 tokens is outside 1024"):
        planned(BUDGET, 512)
    with pytest.raises(InvalidThinking, match="leaves nothing of max_tokens=4000"):
        planned(BUDGET, 4000, max_tokens=4000)
    adjusted = planned(BUDGET, 512, on_conflict="adjust")
    assert (adjusted.prompt.thinking.budget, codes(adjusted)[0]) == (1024, "budget_adjusted")
    fitted = planned(BUDGET, 9000, max_tokens=8000, on_conflict="adjust").prompt
    assert fitted.thinking.budget is not None
    assert 1024 <= fitted.thinking.budget < 8000


def test_F9_with_interleaved_thinking_a_budget_may_exceed_the_limit() -> None:
    told = planned(BUDGET, 9000, max_tokens=4000, tools=(TOOL,)).prompt
    request, _ = find_dialect("anthropic").encode(told, target(BUDGET))
    assert request.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    assert json.loads(request.body)["thinking"]["budget_tokens"] == 9000
    plain, _ = find_dialect("anthropic").encode(planned(BUDGET, 2000).prompt, target(BUDGET))
    assert "anthropic-beta" not in plain.headers


@pytest.mark.requirement("S3-21", "S3-42")
def test_S3_42_nothing_asked_is_nothing_sent() -> None:
    for model in (BUDGET, BOTH, ADAPTIVE, BY_HABIT, ALWAYS, NEVER):
        body = sent(model)
        assert "thinking" not in body
        assert "output_config" not in body
    assert sent(BUDGET)["max_tokens"] == 8192
    assert sent(ALWAYS)["max_tokens"] == 32_000, "it thinks by habit, within the same limit"
    assert sent("claude-3-opus-20240229")["max_tokens"] == 4096


@pytest.mark.requirement("pain D2", "FT-26")
@pytest.mark.parametrize(
    ("model", "asked", "thinking", "effort"),
    [
        (BUDGET, "high", {"type": "enabled", "budget_tokens": 16384}, None),
        (BUDGET, "minimal", {"type": "enabled", "budget_tokens": 1024}, None),
        (BUDGET, "on", {"type": "enabled", "budget_tokens": 8192}, None),
        (BUDGET, "off", None, None),
        ("claude-opus-4-1", "max", {"type": "enabled", "budget_tokens": 27904}, None),
        ("claude-opus-4-5-20251101", "low", {"type": "enabled", "budget_tokens": 2048}, "low"),
        ("claude-opus-4-5", "xhigh", {"type": "enabled", "budget_tokens": 16384}, "high"),
        (BOTH, "minimal", {"type": "adaptive"}, "low"),
        (BOTH, "xhigh", {"type": "adaptive"}, "max"),
        (BOTH, "auto", {"type": "adaptive"}, None),
        (BOTH, 4000, {"type": "enabled", "budget_tokens": 4000}, None),
        (ADAPTIVE, "xhigh", {"type": "adaptive", "display": "summarized"}, "xhigh"),
        (ADAPTIVE, "off", None, None),
        (ADAPTIVE, Thinking(effort="low", show="none"), {"type": "adaptive"}, "low"),
        (
            BUDGET,
            Thinking(budget=2000, show="none"),
            {"type": "enabled", "budget_tokens": 2000, "display": "omitted"},
            None,
        ),
        (BY_HABIT, "off", {"type": "disabled"}, None),
        (BY_HABIT, "on", {"type": "adaptive", "display": "summarized"}, None),
        (ALWAYS, "medium", {"type": "adaptive", "display": "summarized"}, "medium"),
        ("claude-sonnet-5-5", {"type": "between_tools"}, {"type": "between_tools"}, None),
        ("claude-sonnet-5-5", "off", {"type": "between_tools"}, None),
        ("claude-sonnet-5-5", Thinking(mode="between_tools", effort="high"), {"type": "between_tools"}, "high"),
        ("claude-haiku-5-5", "off", {"type": "disabled"}, None),
        ("claude-next-9", "low", {"type": "adaptive", "display": "summarized"}, "low"),
        ("claude-next-9", 20_000, {"type": "adaptive", "display": "summarized"}, "xhigh"),
    ],
)
def test_F10_every_model_is_asked_in_its_own_form(
    model: str, asked: Any, thinking: dict[str, Any] | None, effort: str | None
) -> None:
    body = sent(model, asked)
    assert body.get("thinking") == thinking
    assert body.get("output_config") == (None if effort is None else {"effort": effort})


def test_F10_a_clone_is_told_a_budget_where_its_form_has_one() -> None:
    to = find_target("vllm-anthropic:qwen3", environ={})
    told = plan(Prompt((user("hi"),), thinking=Thinking(effort="low")), to)
    body = json.loads(find_dialect("anthropic").encode(told.prompt, to)[0].body)
    assert (body["thinking"], body["max_tokens"]) == ({"type": "enabled", "budget_tokens": 2048}, 2048 + 4096)
    assert codes(told) == ["unknown_model", "effort_mapped", "max_tokens_chosen"]


def test_F10_a_budget_for_a_model_that_takes_none_is_an_error_or_translated() -> None:
    with pytest.raises(InvalidThinking, match="takes an effort, not a budget"):
        planned(ADAPTIVE, 10_000)
    adjusted = planned(ADAPTIVE, 10_000, on_conflict="adjust")
    assert (adjusted.prompt.thinking.budget, adjusted.prompt.thinking.effort) == (None, "high")
    assert codes(adjusted) == ["budget_mapped"]


def test_F10_an_unknown_model_is_asked_like_the_newest_and_that_is_told() -> None:
    told = planned(
        "claude-next-9", "off", sampling=asides_sampling(temperature=0.5), tool_choice="required", tools=(TOOL,)
    )
    assert codes(told) == ["unknown_model", "setting_dropped"]
    assert told.prompt.thinking.mode == "off"
    forced = planned("claude-next-9", "high", tool_choice="required", tools=(TOOL,))
    assert (forced.prompt.tool_choice, codes(forced)) == ("auto", ["unknown_model", "tool_choice_adjusted"])


def test_F10_what_cannot_stop_and_what_cannot_start() -> None:
    with pytest.raises(InvalidThinking, match="cannot stop"):
        planned(ALWAYS, "off")
    assert planned(ALWAYS, "off", on_conflict="adjust").prompt.thinking.effort == "low"
    with pytest.raises(InvalidThinking, match="does not think"):
        planned(NEVER, "low")
    with pytest.raises(InvalidThinking, match="between calls of tools"):
        planned(ADAPTIVE, {"type": "between_tools"})


@pytest.mark.parametrize("effort", ["xhigh", "max"])
def test_F10_thinking_only_between_tools_has_a_highest_effort(effort: Any) -> None:
    asked = Thinking(mode="between_tools", effort=effort)
    with pytest.raises(InvalidThinking, match=f"the effort {effort} is not accepted"):
        planned("claude-sonnet-5-5", asked)
    adjusted = planned("claude-sonnet-5-5", asked, on_conflict="adjust")
    assert adjusted.prompt.thinking == Thinking(mode="between_tools", effort="high")
    assert codes(adjusted) == ["effort_mapped"]


def test_F10_off_is_between_tools_where_a_model_has_nothing_less_and_that_is_told() -> None:
    told = planned("claude-sonnet-5-5", "off")
    assert told.prompt.thinking.mode == "between_tools"
    assert [(notice.code, notice.asked, notice.sent) for notice in told.notices] == [
        ("form_adjusted", "off", "between_tools")
    ]


def asides_sampling(**given: Any) -> Any:
    from asides.values.messages import Sampling

    return Sampling(**given)


@pytest.mark.requirement("S3-36", "S3-55", "FT-21", "pain D3")
@pytest.mark.parametrize(
    ("model", "asked", "given", "adjusted"),
    [
        (BUDGET, 2000, {"temperature": 0.5}, {}),
        (BUDGET, 2000, {"top_k": 5}, {}),
        (BUDGET, 2000, {"top_p": 0.5}, {"top_p": 0.95}),
        (BOTH, "low", {"temperature": 0.0}, {}),
        (ADAPTIVE, "low", {"temperature": 1.0}, {}),
        (ADAPTIVE, "low", {"top_p": 0.97}, {}),
    ],
)
def test_F11_sampling_that_thinking_does_not_allow(
    model: str, asked: Any, given: dict[str, Any], adjusted: dict[str, Any]
) -> None:
    sampling = asides_sampling(**given)
    with pytest.raises(InvalidThinking, match=next(iter(given))):
        planned(model, asked, sampling=sampling)
    told = planned(model, asked, sampling=sampling, on_conflict="adjust")
    assert told.prompt.sampling.to_dict() == adjusted
    assert any(code.startswith("setting_") for code in codes(told))


def test_F11_sampling_that_is_allowed() -> None:
    for model, asked, given in (
        ("claude-sonnet-4-0", 2000, {"top_p": 0.97, "temperature": 1.0}),
        ("claude-sonnet-4-0", None, {"temperature": 0.2, "top_k": 5, "top_p": 0.1}),
        (BUDGET, None, {"temperature": 0.2, "top_k": 5}),
        (BUDGET, "off", {"temperature": 0.2}),
        (NEVER, None, {"temperature": 0.2}),
    ):
        body = sent(model, asked, sampling=asides_sampling(**given))
        assert {name: body[name] for name in given} == given
    for model, asked in ((ADAPTIVE, None), (BY_HABIT, "off"), (ALWAYS, None)):
        with pytest.raises(InvalidThinking, match="temperature is not accepted"):
            planned(model, asked, sampling=asides_sampling(temperature=0.2))
        told = planned(model, asked, sampling=asides_sampling(temperature=0.2), on_conflict="adjust")
        assert (told.prompt.sampling.to_dict(), codes(told)) == ({}, ["setting_dropped"])


def test_from_4_1_on_a_model_takes_temperature_or_top_p() -> None:
    """ "`temperature` and `top_p` cannot both be specified for this model" (MCP-Universe#49, 2026-01-26)."""
    told = planned(BUDGET, None, sampling=asides_sampling(temperature=0.2, top_p=0.9))
    assert (told.prompt.sampling.to_dict(), codes(told)) == ({"temperature": 0.2}, ["setting_dropped"])


@pytest.mark.requirement("pain D4")
@pytest.mark.parametrize(("model", "asked"), [(BUDGET, 2000), (BOTH, 2000), (ALWAYS, "low"), (ALWAYS, None)])
@pytest.mark.parametrize("choice", ["required", "look_up"])
def test_F12_a_forced_tool_is_an_error_before_anything_is_sent(model: str, asked: Any, choice: str) -> None:
    with pytest.raises(InvalidThinking, match="forced"):
        planned(model, asked, tools=(TOOL,), tool_choice=choice)
    told = planned(model, asked, tools=(TOOL,), tool_choice=choice, on_conflict="adjust")
    assert told.prompt.tool_choice == "auto"
    assert told.prompt.thinking.wanted is (asked is not None), "thinking is never switched off for it"


def test_F12_where_it_is_accepted_it_is_sent() -> None:
    for model, asked in ((BUDGET, None), (BOTH, "low"), (BY_HABIT, "low"), ("claude-haiku-5-5", None)):
        assert sent(model, asked, tools=(TOOL,), tool_choice="look_up")["tool_choice"] == {
            "type": "tool",
            "name": "look_up",
        }


def test_F13_a_conversation_that_ends_with_the_assistant_is_guarded() -> None:
    begun = (user("a story"), assistant("Once upon a time "))
    with pytest.raises(InvalidThinking, match="while it thinks"):
        planned(BUDGET, 2000, messages=begun)
    assert planned(BUDGET, 2000, messages=begun, on_conflict="adjust").prompt.thinking.mode == "off"
    assert sent(BUDGET, messages=begun)["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Once upon a time"}],
    }
    with pytest.raises(InvalidThinking, match="does not continue"):
        planned(ALWAYS, messages=begun)
    assert planned(ALWAYS, messages=begun, on_conflict="adjust").prompt.messages[-1] == user("Continue.")


def test_F13_a_turn_that_the_provider_paused_is_gone_on_with() -> None:
    used = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "a", "signature": "s"},
        {"type": "text", "text": "Wait."},
        used,
    ]
    paused = read(whole(*content, reason="pause_turn")).to_message()
    assert paused is not None
    assert sent(BUDGET, 2000, messages=(user("search"), paused))["messages"][-1]["content"] == content


def test_F15_results_in_a_row_are_one_turn_of_the_user() -> None:
    calls = assistant(ToolCall("toolu_1", "look_up"), ToolCall("toolu_2", "look_up"))
    history = (
        user("hi"),
        calls,
        Message("tool", (ToolResult("toolu_1", "one"),)),
        Message("tool", (ToolResult("toolu_2", (Text("two"),), is_error=True),)),
        user("and now?"),
    )
    turns = sent(BUDGET, messages=history, tools=(TOOL,))["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
        {
            "type": "tool_result",
            "tool_use_id": "toolu_2",
            "content": [{"type": "text", "text": "two"}],
            "is_error": True,
        },
        {"type": "text", "text": "and now?"},
    ]


@pytest.mark.requirement("S3-32", "S3-34", "S3-35")
def test_S3_32_every_option_has_its_field() -> None:
    body = sent(
        BUDGET,
        max_tokens=100,
        system="Be brief.",
        sampling=asides_sampling(temperature=0.5, top_k=3),
        stop=("END",),
        user="user-7",
        tools=(TOOL,),
        tool_choice="auto",
        output=asides_output(),
        extra={"service_tier": "auto"},
    )
    assert body == {
        "model": BUDGET,
        "max_tokens": 100,
        "system": "Be brief.",
        "tools": [
            {"name": "look_up", "description": "Look it up.", "input_schema": {"type": "object", "properties": {}}}
        ],
        "tool_choice": {"type": "auto"},
        "messages": [{"role": "user", "content": "hi"}],
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "temperature": 0.5,
        "top_k": 3,
        "stop_sequences": ["END"],
        "stream": True,
        "metadata": {"user_id": "user-7"},
        "service_tier": "auto",
    }


def asides_output() -> Any:
    from asides.values.messages import OutputSchema

    return OutputSchema("answer", {"type": "object"})


# --- what goes back ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("H5", "pain C2", "S3-54")
def test_H5_foreign_signatures_stay_behind_and_the_rest_goes() -> None:
    reply = read(
        whole({"type": "thinking", "thinking": "p", "signature": "s"}, {"type": "text", "text": "42"}),
        "claude-opus-4-1",
    )
    only = read(whole({"type": "thinking", "thinking": "p", "signature": "s"}), "claude-opus-4-1")
    for message in (reply.to_message(), only.to_message()):
        assert message is not None
        turns = sent(BUDGET, messages=(user("a"), message, user("b")))["messages"]
        assert b"signature" not in msgspec.json.encode(turns)
        kept = [turn for turn in turns if turn["role"] == "assistant"]
        expected = [{"role": "assistant", "content": [{"type": "text", "text": "42"}]}]
        assert kept == (expected if message.text else []), "a turn of nothing but thinking is left out"
    again = next_turn(reply, "claude-opus-4-1")
    assert again[1]["content"][0]["signature"] == "s", "and goes back to the one that made it"


@pytest.mark.requirement("H5")
def test_H5_an_address_is_the_same_in_every_spelling() -> None:
    reply = read(whole({"type": "thinking", "thinking": "p", "signature": "s"}, {"type": "text", "text": "42"}))
    message = reply.to_message()
    assert message is not None
    for url, kept in (
        ("https://API.anthropic.com:443/v1/", True),
        ("https://api.anthropic.com/v1/messages", True),
        ("https://proxy.example/v1", False),
    ):
        to = find_target(f"anthropic:{BUDGET}", base_url=url, environ={})
        told = plan(Prompt((user("a"), message, user("b"))), to)
        assert any(isinstance(part, Thought) for part in told.prompt.messages[1].parts) is kept, url


@pytest.mark.requirement("H1", "S3-07")
def test_H1_thinking_without_a_signature_is_never_sent_and_never_as_text() -> None:
    message = assistant(Thought("a secret", "raw", "field"), "42")
    body = sent(BUDGET, messages=(user("a"), message, user("b")))
    assert "secret" not in json.dumps(body)
    unsigned = read(stream(thinking(0, "a secret", signature=None), text(1, "42"))).to_message()
    assert unsigned is not None
    assert "secret" not in json.dumps(sent(BUDGET, messages=(user("a"), unsigned, user("b"))))


def test_H1_a_clone_that_signs_nothing_gets_its_thinking_back() -> None:
    row = find_provider("llamacpp-anthropic")
    to = Target(row, "tiny", row.base_url, row.rule("tiny"))
    message = assistant(Thought("a plan", "raw", "block", to.origin, (), "thinking"), "42")
    told = plan(Prompt((user("a"), message, user("b"))), to).prompt
    turns = json.loads(find_dialect("anthropic").encode(told, to)[0].body)["messages"]
    assert turns[1]["content"][0] == {"type": "thinking", "thinking": "a plan", "signature": ""}


# --- the same for everybody -------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-03", "S3-09", "S3-37", "S3-39", "S3-40", "S3-47", "S3-48", "S3-52")
@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-4-5", "openai-compatible:made-up"])
def test_S3_40_the_same_code_reads_every_provider(stage: OpenStage, model: str) -> None:
    thought = "The user wants a sum. Twenty-three times forty-seven is one thousand and eighty-one."
    opened = stage(Say(text="1081", thinking=thought, piece=9))
    thinking_seen, text_seen = [], []
    with asides.stream(model, "23 * 47?", base_url=opened.url, api_key="k", thinking="low") as events:
        for event in events:
            match event:
                case ThinkingDelta(text=told):
                    thinking_seen.append(told)
                case TextDelta(text=told):
                    text_seen.append(told)
                case _:
                    pass
        reply = events.reply
    assert "".join(thinking_seen) == thought
    assert len(thinking_seen) == -(-len(thought) // 9)
    assert "".join(text_seen) == reply.text == "1081"
    at_once = asides.ask(model, "23 * 47?", base_url=opened.url, api_key="k", thinking="low")
    assert at_once.thinking
    assert (at_once.thinking.text, at_once.text) == (thought, "1081")


@pytest.mark.requirement("S3-51", "S3-53", "S3-02", "FT-30")
def test_S3_51_what_a_model_can_do_is_declared() -> None:
    row = find_provider("claude")
    assert row.name == "anthropic"
    asked = {model: row.capabilities(model) for model in (BUDGET, BY_HABIT, ALWAYS, NEVER)}
    assert {model: (told.thinking, told.can_stop) for model, told in asked.items()} == {
        BUDGET: ("optional", True),
        BY_HABIT: ("optional", True),
        ALWAYS: ("always", False),
        NEVER: ("never", True),
    }
    assert asked[BUDGET].budget == (1024, None)
    assert asked[ALWAYS].efforts == ("low", "medium", "high", "xhigh", "max")
    assert all(told.source and re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", told.since) for told in asked.values())


@pytest.mark.requirement("S3-57")
def test_S3_57_the_cost_of_many_deltas_grows_with_their_number_alone() -> None:
    """Text that is copied for every delta would cost sixteen times as much for four times the deltas."""

    def seconds(deltas: int) -> float:
        body = stream(thinking(0, *["a word or two, and so on " * 4] * deltas), text(1, "42"))
        pieces = [body[start : start + 65536] for start in range(0, len(body), 65536)]
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            reply = fold(events_of(pieces, claude(), "anthropic")[0])
            best = min(best, time.process_time() - began)
            assert reply.thinking
            assert len(reply.thinking.text) == 100 * deltas
        return best

    assert seconds(16_000) / seconds(4_000) < 9


@pytest.mark.requirement("S3-16", "S3-33")
def test_S3_33_the_page_says_where_thinking_is_what_goes_back_and_what_it_costs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "anthropic.md").read_text(encoding="utf-8")
    for told in (
        "`reply.usage.thinking`",
        "1,024",
        "less than `max_tokens`",
        "You pay for all thinking",
        "byte for",
        "## The next turn",
    ):
        assert told in page, told
