"""What is sent to chat hosts, by requirement: efforts, limits, native fields, thinking that goes back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.history.plan import plan
from asides.providers.find import find_target, list_providers
from asides.providers.provider import ModelRule, Provider, Quirks, ReplayRule, Target
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, user
from asides.values.notices import Notice
from asides.values.parts import Image, Text, ToolCall, ToolResult
from asides.values.thinking import EFFORTS, Thinking, Thought
from asides.values.tools import Tool

UNKNOWN = ModelRule()
HIGH = Thinking(effort="high")
OFF = Thinking(mode="off")
BUDGET = Thinking(budget=4000)


def sent(prompt: Prompt, target: Target, **how: Any) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """What goes over the wire and what is told, as in a call: planned, then spelled."""
    planned = plan(prompt, target, on_conflict="adjust", **how)
    request, notices = find_dialect("openai_chat").encode(planned.prompt, target)
    return msgspec.json.decode(request.body), (*planned.notices, *notices)


def asked(thinking: Thinking, **settings: Any) -> Prompt:
    return Prompt((user("hi"),), thinking=thinking, stream=False, **settings)


def target(rule: ModelRule = UNKNOWN, replay: tuple[ReplayRule, ...] = (), **quirks: Any) -> Target:
    return Target(Provider(name="host", quirks=Quirks(**quirks), replay=replay), "m", "https://host.test/v1", rule)


def fields(body: dict[str, Any]) -> dict[str, Any]:
    """What was said beside the conversation."""
    return {name: value for name, value in body.items() if name not in ("model", "messages")}


# --- every row ----------------------------------------------------------------------------------------------------


def example_of(pattern: str) -> str:
    """A model name that a rule's pattern names."""
    name = pattern.replace("*", "x")
    while "[" in name:
        before, _, rest = name.partition("[")
        choice, _, behind = rest.partition("]")
        name = f"{before}{choice[0]}{behind}"
    return name


ROWS = [pytest.param(row, id=row.name) for row in list_providers() if row.dialect == "openai_chat"]


def targets(row: Provider) -> Iterator[Target]:
    """The row, with a model for each of its rules and one that nobody knows."""
    for rule in (*row.models, ModelRule()):
        yield Target(row, example_of(rule.models), row.base_url or "https://host.test/v1", rule)


def amounts(body: dict[str, Any], where: Target) -> dict[str, Any]:
    """Every place where the body says how much to think, and what it says there."""
    reasoning, toggle = body.get("reasoning", {}), body.get("thinking", {})
    places = {
        "reasoning_effort": body.get("reasoning_effort"),
        "reasoning.effort": reasoning.get("effort"),
        "reasoning.max_tokens": reasoning.get("max_tokens"),
        "thinking.budget_tokens": toggle.get("budget_tokens"),
        "thinking_budget": body.get("thinking_budget"),
        "a field of its own": body.get(where.quirks.budget_in or ""),
    }
    return {place: said for place, said in places.items() if said is not None}


def switches(body: dict[str, Any]) -> list[object]:
    """Every place where the body says whether to think."""
    template = body.get("chat_template_kwargs", {})
    said = [
        body.get("reasoning", {}).get("enabled"),
        body.get("thinking", {}).get("type"),
        body.get("enable_thinking"),
        template.get("enable_thinking"),
        template.get("thinking"),
        body.get("prompt_mode"),
    ]
    return [value for value in said if value is not None]


@pytest.mark.requirement("FT-39")
@pytest.mark.parametrize("row", ROWS)
def test_I1_every_effort_has_exactly_one_representation_at_every_host(row: Provider) -> None:
    for where, effort in product(targets(row), EFFORTS):
        body, told = sent(asked(Thinking(effort=effort)), where)
        assert len(amounts(body, where)) <= 1
        assert len(switches(body)) <= 1
        takes = where.rule.efforts
        if takes != () and where.rule.thinking != "never" and not switches(body):
            assert len(amounts(body, where)) == 1
        if not amounts(body, where):
            assert any(notice.asked == effort or notice.code == "thinking_unsupported" for notice in told)


@pytest.mark.parametrize("row", ROWS)
def test_I1_a_budget_has_exactly_one_representation_or_is_told(row: Provider) -> None:
    for where in targets(row):
        body, told = sent(asked(BUDGET), where)
        assert len(amounts(body, where)) <= 1
        if 4000 not in amounts(body, where).values():
            codes = {notice.code for notice in told}
            assert codes & {"budget_mapped", "budget_not_sent", "thinking_unsupported"}


@pytest.mark.parametrize("row", ROWS)
def test_I1_nothing_is_said_when_nothing_was_asked(row: Provider) -> None:
    for where in targets(row):
        body, told = sent(asked(Thinking()), where)
        assert (amounts(body, where), switches(body)) == ({}, [])
        assert "thinking" not in [notice.setting for notice in told]


@pytest.mark.parametrize("row", ROWS)
def test_I4_off_says_no_effort_beside_it_or_is_told(row: Provider) -> None:
    for where in targets(row):
        body, told = sent(asked(msgspec.structs.replace(OFF, effort="high")), where)
        offs = [value for value in switches(body) if value in (False, "disabled")]
        if body.get("reasoning_effort") == "none":
            offs.append("none")
        if where.rule.thinking == "never":
            assert (amounts(body, where), switches(body)) == ({}, [])
        elif offs:
            assert len(offs) == 1
            assert set(amounts(body, where).values()) <= {"none"}
        else:
            assert {notice.code for notice in told} & {"thinking_cannot_stop", "off_not_sent"}


# Written by hand from the hosts' documents: what "off", "high" and 4000 tokens are to each.
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}

GOLDEN: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "openai-chat:gpt-5.1": (
        {"reasoning_effort": "none"},
        {"reasoning_effort": "high"},
        {"reasoning_effort": "medium"},
    ),
    "openai-chat:gpt-5": (
        {"reasoning_effort": "minimal"},  # it cannot stop
        {"reasoning_effort": "high"},
        {"reasoning_effort": "medium"},
    ),
    "deepseek:deepseek-v4-pro": (
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
    ),
    "moonshot:kimi-k2.6": (
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled"}},
        {"thinking": {"type": "enabled"}},
    ),
    "moonshot:kimi-k3": (
        {"reasoning_effort": "low"},
        {"reasoning_effort": "high"},
        {"reasoning_effort": "low"},
    ),
    "qwen:qwen3-32b": (
        {"enable_thinking": False},
        # These models think in streams only.
        {"enable_thinking": True, **STREAMED},
        {"enable_thinking": True, "thinking_budget": 4000, "max_tokens": 8096, **STREAMED},
    ),
    "zai:glm-5.2": (
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
    ),
    "minimax:minimax-m3": (
        {"reasoning_split": True, "thinking": {"type": "disabled"}},
        {"reasoning_split": True, "thinking": {"type": "adaptive"}},
        {"reasoning_split": True, "thinking": {"type": "adaptive"}},
    ),
    "mistral:magistral-medium-latest": (
        {},
        {"prompt_mode": "reasoning"},
        {"prompt_mode": "reasoning"},
    ),
    "mistral:mistral-small-latest": (
        {"reasoning_effort": "none"},
        {"reasoning_effort": "high"},
        {"reasoning_effort": "high"},
    ),
    "groq:qwen/qwen3-32b": (
        {"reasoning_format": "parsed", "reasoning_effort": "none"},
        {"reasoning_format": "parsed"},
        {"reasoning_format": "parsed"},
    ),
    "groq:openai/gpt-oss-120b": (
        {"reasoning_effort": "low"},
        {"reasoning_effort": "high"},
        {"reasoning_effort": "medium"},
    ),
    "openrouter:anthropic/claude-sonnet-4.5": (
        {"reasoning": {"enabled": False}},
        {"reasoning": {"effort": "high"}},
        {"reasoning": {"max_tokens": 4000}, "max_tokens": 8096},
    ),
    "vllm:Qwen/Qwen3-8B": (
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"chat_template_kwargs": {"enable_thinking": True}},
        {"chat_template_kwargs": {"enable_thinking": True}, "thinking_token_budget": 4000, "max_tokens": 8096},
    ),
    "vllm:deepseek-ai/DeepSeek-V3.1": (
        {"chat_template_kwargs": {"thinking": False}},
        {"chat_template_kwargs": {"thinking": True}},
        {"chat_template_kwargs": {"thinking": True}, "thinking_token_budget": 4000, "max_tokens": 8096},
    ),
    "ollama-openai:gpt-oss:20b": (
        {"reasoning_effort": "low"},
        {"reasoning_effort": "high"},
        {"reasoning_effort": "medium"},
    ),
}


@pytest.mark.requirement("FT-39", "S1-13", "S1-47")
@pytest.mark.parametrize("model", GOLDEN)
def test_I1_pain_A4_golden_requests(model: str) -> None:
    where = find_target(model, environ={})
    for thinking, expected in zip((OFF, HIGH, BUDGET), GOLDEN[model], strict=True):
        body, _ = sent(asked(thinking), where)
        assert (thinking, fields(body)) == (thinking, expected)


def test_I2_a_host_that_nobody_knows_is_asked_in_the_ordinary_form_and_that_is_told() -> None:
    where = find_target("openai-compatible:whatever", base_url="https://host.test/v1", environ={})
    body, told = sent(asked(HIGH), where)
    assert fields(body) == {"reasoning_effort": "high"}
    assert [notice.code for notice in told] == ["unknown_model"]


@pytest.mark.parametrize(
    ("ask_by", "extra", "expected"),
    [
        (
            "template",
            {"chat_template_kwargs": {"tokenize": False}},
            {"chat_template_kwargs": {"enable_thinking": True, "tokenize": False}},
        ),
        (
            "template",
            {"chat_template_kwargs": {"enable_thinking": False, "tokenize": False}},
            {"chat_template_kwargs": {"enable_thinking": False, "tokenize": False}},
        ),
        ("reasoning_effort", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ("thinking_toggle", {"thinking": {"keep": "all"}}, {"thinking": {"type": "enabled", "keep": "all"}}),
        ("thinking_toggle", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ("reasoning_object", {"reasoning": {"exclude": True}}, {"reasoning": {"effort": "high", "exclude": True}}),
    ],
)
def test_I3_a_native_field_wins_and_its_siblings_stay(ask_by: Any, extra: dict[str, Any], expected: Any) -> None:
    body, _ = sent(asked(HIGH, extra=extra), target(ask_by=ask_by))
    assert fields(body) == expected


def test_I4_a_host_that_cannot_be_told_to_stop_is_not_told_and_that_is_reported() -> None:
    for where in (target(ask_by="nothing"), target(ModelRule(thinking="optional", off_as_effort=False))):
        body, told = sent(asked(OFF), where)
        assert fields(body) == {}
        assert ("off_not_sent", "thinking", "off", "nothing") in [
            (notice.code, notice.setting, notice.asked, notice.sent) for notice in told
        ]


@pytest.mark.parametrize(
    ("ask_by", "expected"),
    [
        ("reasoning_effort", {"reasoning_effort": "none"}),
        ("thinking_toggle_and_effort", {"thinking": {"type": "disabled"}}),
        ("reasoning_object", {"reasoning": {"enabled": False}}),
    ],
)
def test_I8_minimal_is_none_where_efforts_start_far_above_and_thinking_can_stop(ask_by: Any, expected: Any) -> None:
    where = target(ModelRule(thinking="optional", efforts=("high", "max")), ask_by=ask_by)
    planned = plan(asked(Thinking(effort="minimal")), where)
    request, told = find_dialect("openai_chat").encode(planned.prompt, where)
    assert fields(msgspec.json.decode(request.body)) == expected
    assert [(notice.asked, notice.sent) for notice in (*planned.notices, *told)] == [("minimal", "off")]


@pytest.mark.parametrize(
    ("rule", "effort"),
    [
        (ModelRule(thinking="always", efforts=("minimal", "low")), "minimal"),
        (ModelRule(thinking="always", efforts=("high", "max")), "high"),
        (ModelRule(thinking="optional", efforts=("minimal", "low")), "minimal"),
        (ModelRule(thinking="optional", efforts=("low", "high")), "low"),
        (ModelRule(thinking="optional", efforts=("high",), effort_map=(("minimal", "high"),)), "high"),
        (ModelRule(), "minimal"),
    ],
)
def test_I8_minimal_is_the_nearest_effort_elsewhere(rule: ModelRule, effort: str) -> None:
    planned = plan(asked(Thinking(effort="minimal")), target(rule))
    request, _ = find_dialect("openai_chat").encode(planned.prompt, target(rule))
    assert fields(msgspec.json.decode(request.body)) == {"reasoning_effort": effort}


# Every field that a chat request of ours may have, at any host.
API_FIELDS = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "max_tokens",
    "max_completion_tokens", "stop", "stream", "stream_options", "metadata", "user", "reasoning_effort", "reasoning",
    "thinking", "enable_thinking", "thinking_budget", "chat_template_kwargs", "prompt_mode",
    *Sampling.__struct_fields__,
}  # fmt: skip
MESSAGE_FIELDS = {
    "role", "name", "content", "tool_calls", "tool_call_id", "refusal", "reasoning_details", "reasoning_content",
    "reasoning", "thinking", "extra_content",
}  # fmt: skip


EVERYTHING = Prompt(
    (
        user("look", Image(url="https://host.test/a.png")),
        assistant(Thought("plan", via="reasoning_content"), "calling", ToolCall("call_1", "f", {"a": 1})),
        Message("tool", (ToolResult("call_1", "x", "f", True),)),
        user("go on"),
    ),
    system="be brief",
    thinking=Thinking(effort="low", show="none", summary="concise"),
    tools=(Tool("f", "d", strict=True),),
    tool_choice="auto",
    parallel_tool_calls=True,
    output=OutputSchema("n", {"type": "object"}),
    max_tokens=5000,
    sampling=Sampling(temperature=1.0, seed=1),
    stop=("END",),
    metadata={"a": "b"},
    user="u",
)


@pytest.mark.parametrize("row", ROWS)
def test_I9_only_fields_of_the_api_reach_the_body(row: Provider) -> None:
    for where in targets(row):
        body, _ = sent(EVERYTHING, where)
        own = {name for name, _ in (*where.quirks.fields, *where.rule.fields)}
        own |= {"tool_stream"} if where.rule.tool_stream else set()
        assert set(body) <= API_FIELDS | own | {where.quirks.budget_in}
        for message in body["messages"]:
            assert set(message) <= MESSAGE_FIELDS | {where.quirks.replay_field}


# --- limits and settings ------------------------------------------------------------------------------------------


@pytest.mark.requirement("S1-09", "FT-21")
@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai-chat:gpt-5.1", "max_completion_tokens"),
        ("openai-chat:o3", "max_completion_tokens"),
        ("deepseek:deepseek-v4-pro", "max_tokens"),
        ("groq:llama-3.3-70b-versatile", "max_tokens"),
        ("ollama-openai:qwen3:8b", "max_tokens"),
    ],
)
def test_F_23_the_output_limit_has_the_name_that_the_host_knows(model: str, name: str) -> None:
    body, _ = sent(asked(Thinking(), max_tokens=500), find_target(model, environ={}))
    assert fields(body) == {name: 500}


def test_S1_10_the_stream_flag_is_sent_with_a_wish_for_usage() -> None:
    body, _ = sent(Prompt((user("hi"),), stream=True), target())
    assert fields(body) == {"stream": True, "stream_options": {"include_usage": True}}
    assert fields(sent(Prompt((user("hi"),), stream=False), target())[0]) == {}


@pytest.mark.requirement("S0-59", "FT-21")
def test_S1_11_temperature_and_top_p_go_only_where_the_model_takes_them() -> None:
    sampling = Sampling(temperature=0.2, top_p=0.9)
    thinks = find_target("openai-chat:gpt-5", environ={})
    body, told = sent(asked(HIGH, sampling=sampling), thinks)
    assert fields(body) == {"reasoning_effort": "high"}
    assert [(notice.code, notice.setting) for notice in told] == [
        ("setting_dropped", "temperature"),
        ("setting_dropped", "top_p"),
    ]
    body, told = sent(asked(Thinking(), sampling=sampling), find_target("openai-chat:gpt-4o", environ={}))
    assert (fields(body), told) == ({"temperature": 0.2, "top_p": 0.9}, ())


# --- thinking that goes back --------------------------------------------------------------------------------------

CALL = ToolCall("call_1", "weather", {"city": "Rome"})
WIRE_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city":"Rome"}'},
}


def after_a_call(*said: Thought | Text) -> Prompt:
    result = Message("tool", (ToolResult("call_1", "sunny"),))
    return Prompt((user("weather?"), assistant(*said, CALL), result))


@pytest.mark.requirement("F-32")
@pytest.mark.parametrize("thinking", [Thinking(), HIGH], ids=["unset", "high"])
def test_H4_a_turn_that_called_tools_carries_its_thinking_in_the_same_message(thinking: Thinking) -> None:
    where = find_target("deepseek:deepseek-v4-pro", environ={})
    thought = Thought("plan", origin=where.origin, via="reasoning_content")
    prompt = msgspec.structs.replace(after_a_call(thought), thinking=thinking)
    body, _ = sent(prompt, where)
    assert body["messages"][1] == {"role": "assistant", "reasoning_content": "plan", "tool_calls": [WIRE_CALL]}


def test_H4_the_field_is_there_also_when_there_was_no_thinking() -> None:
    body, _ = sent(after_a_call(), find_target("deepseek:deepseek-v4-pro", environ={}))
    assert body["messages"][1] == {"role": "assistant", "reasoning_content": "", "tool_calls": [WIRE_CALL]}


@pytest.mark.parametrize(
    ("model", "thinking"),
    [("deepseek:deepseek-v4-pro", OFF), ("deepseek:deepseek-chat", Thinking()), ("deepseek:deepseek-r1", Thinking())],
)
def test_H4_no_field_where_the_model_does_not_think_or_is_too_old_for_it(model: str, thinking: Thinking) -> None:
    prompt = msgspec.structs.replace(after_a_call(), thinking=thinking)
    body, _ = sent(prompt, find_target(model, environ={}))
    assert body["messages"][1] == {"role": "assistant", "tool_calls": [WIRE_CALL]}


def test_H4_an_old_model_gets_no_thinking_back() -> None:
    where = find_target("deepseek:deepseek-r1", environ={})
    thought = Thought("plan", origin=where.origin, via="reasoning_content")
    body, _ = sent(after_a_call(thought), where)
    assert body["messages"][1] == {"role": "assistant", "tool_calls": [WIRE_CALL]}
