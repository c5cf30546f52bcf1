"""Effort that changes inside a conversation: where it goes into the request, and when it cannot change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import asides
from asides.dialects import find_dialect
from asides.history.cache_break import find_cache_break
from asides.history.plan import Plan, encode_plan, plan
from asides.intake.documents import import_messages
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.values.errors import InvalidThinking
from asides.values.messages import Message, Prompt, ProviderState, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Effort, Thinking, Thought
from asides.values.tools import Tool

ASTRA = find_target("openai-responses:gpt-6-astra")
OPUS = find_target("anthropic:claude-opus-5-5")
SONNET = find_target("anthropic:claude-sonnet-5-5")


def turn(text: str, effort: Effort | None) -> Message:
    return Message("assistant", (Text(text),), effort=effort)


def send(target: Target, prompt: Prompt, **given: Any) -> tuple[dict[str, Any], Plan, dict[str, str]]:
    planned = plan(prompt, target, **given)
    request, _ = encode_plan(planned, target, find_dialect(target.dialect), **given)
    return msgspec.json.decode(request.body), planned, request.headers


TWO = (user("plan it"), turn("so", "high"), user("sum up"))
THREE = (*TWO, turn("in short", "low"), user("and now?"))


def test_a_changed_effort_is_an_item_before_the_question_and_the_request_keeps_the_first() -> None:
    body, planned, _ = send(ASTRA, Prompt(TWO, thinking=Thinking(effort="low")))
    assert body["reasoning"]["effort"] == "high"
    assert body["input"] == [
        {"role": "user", "content": "plan it"},
        {"role": "assistant", "content": "so"},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"role": "user", "content": "sum up"},
    ]
    assert planned.effort == "low"


def test_earlier_changes_stay_where_they_were() -> None:
    before, _, _ = send(ASTRA, Prompt(TWO, thinking=Thinking(effort="low")))
    body, planned, _ = send(ASTRA, Prompt(THREE, thinking=Thinking(effort="high")))
    assert body["input"][: len(before["input"])] == before["input"]
    assert body["input"][-2:] == [
        {"type": "configuration_update", "reasoning": {"effort": "high"}},
        {"role": "user", "content": "and now?"},
    ]
    assert (planned.effort, body["reasoning"]) == ("high", before["reasoning"])
    assert find_cache_break(Prompt(THREE, thinking=Thinking(effort="high")), ASTRA) is None


def test_the_same_effort_needs_no_item() -> None:
    body, planned, _ = send(ASTRA, Prompt(THREE, thinking=Thinking(effort="low")))
    assert [item.get("type") for item in body["input"]].count("configuration_update") == 1
    assert planned.effort == "low"


def test_a_default_that_is_not_known_cannot_come_back() -> None:
    body, planned, _ = send(ASTRA, Prompt(TWO))
    assert (planned.effort, body["reasoning"]["effort"]) == ("high", "high")
    assert [notice.code for notice in planned.notices] == ["effort_kept"]


def test_a_known_default_comes_back() -> None:
    body, planned, _ = send(OPUS, Prompt(TWO, cache=True))
    assert body["messages"][2] == {"role": "system", "content": [], "output_config": {"effort": "medium"}}
    assert (planned.effort, planned.notices) == ("medium", ())


def test_claude_gets_a_system_message_and_the_beta_where_there_is_a_cache_to_keep() -> None:
    body, _, headers = send(OPUS, Prompt(TWO, thinking=Thinking(effort="low"), cache=True))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "system", "user"]
    assert body["messages"][2] == {"role": "system", "content": [], "output_config": {"effort": "low"}}
    assert body["output_config"] == {"effort": "high"}
    assert headers["anthropic-beta"] == "mid-conversation-output-config-2026-07-01"
    marked = (user(asides.Text("plan it", cache=True)), *TWO[1:])
    assert send(OPUS, Prompt(marked, thinking=Thinking(effort="low")))[0]["output_config"] == {"effort": "high"}


def test_without_a_cache_the_effort_of_the_request_changes() -> None:
    body, planned, headers = send(OPUS, Prompt(TWO, thinking=Thinking(effort="low")))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert (body["output_config"], planned.effort) == ({"effort": "low"}, "low")
    assert "anthropic-beta" not in headers
    found = find_cache_break(Prompt(TWO, thinking=Thinking(effort="low")), OPUS)
    assert found is not None
    assert (found.reason, found.path) == ("thinking", "output_config")


@pytest.mark.parametrize(
    ("target", "state"),
    [
        (find_target("openai-responses:gpt-5.5"), ProviderState()),
        (find_target("anthropic:claude-opus-4-6"), ProviderState()),
        (find_target("bedrock:us.anthropic.claude-opus-5-5", environ={"AWS_REGION": "us-east-1"}), ProviderState()),
        (find_target("openai-responses:gpt-6-astra", base_url="http://127.0.0.1:9/v1"), ProviderState()),
        (ASTRA, ProviderState(mode="pro")),
        (ASTRA, ProviderState(previous_response_id="resp_1")),
    ],
)
def test_elsewhere_the_effort_of_the_request_changes(target: Target, state: ProviderState) -> None:
    planned = plan(Prompt(TWO, thinking=Thinking(effort="low"), cache=True, state=state), target)
    assert not any(message.role == "system" for message in planned.prompt.messages)
    assert (planned.prompt.thinking.effort, planned.effort) == ("low", "low")


def test_a_turn_under_way_keeps_its_effort() -> None:
    called = Message("assistant", (ToolCall("c1", "look", {}),), effort="high")
    history = (user("go"), called, Message("tool", (ToolResult("c1", "there", "look"),)))
    body, planned, _ = send(ASTRA, Prompt(history, thinking=Thinking(effort="low"), tools=(Tool("look"),)))
    assert body["reasoning"]["effort"] == "high"
    assert (planned.effort, [notice.code for notice in planned.notices]) == ("high", ["effort_kept"])
    later = (*history, Message("assistant", "done", effort="high"), user("and?"))
    body, planned, _ = send(ASTRA, Prompt(later, thinking=Thinking(effort="low"), tools=(Tool("look"),)))
    assert body["input"][-2] == {"type": "configuration_update", "reasoning": {"effort": "low"}}


def test_thinking_that_nobody_asked_for_at_first_is_shown_from_the_first_change_on() -> None:
    history = (user("plan it"), turn("so", None), user("sum up"))
    body, planned, _ = send(OPUS, Prompt(history, thinking=Thinking(effort="low"), cache=True))
    assert (body["thinking"]["type"], body.get("output_config"), planned.effort) == ("adaptive", None, "low")
    later = (*history, turn("in short", "low"), user("and?"))
    assert send(OPUS, Prompt(later, cache=True))[0]["thinking"] == body["thinking"]


def test_between_tools_the_effort_cannot_change() -> None:
    asked = Prompt(TWO, thinking=Thinking(mode="between_tools", effort="low"), cache=True)
    with pytest.raises(InvalidThinking, match="cannot change in a conversation"):
        plan(asked, SONNET)
    body, planned, _ = send(SONNET, asked, on_conflict="adjust")
    assert body["thinking"]["type"] == "adaptive"
    assert [notice.code for notice in planned.notices] == ["form_adjusted"]
    same = Prompt(TWO, thinking=Thinking(mode="between_tools", effort="high"), cache=True)
    assert send(SONNET, same)[0]["thinking"] == {"type": "between_tools"}


def test_efforts_of_other_models_that_this_one_does_not_have_count_as_none() -> None:
    history = (user("plan it"), turn("so", "minimal"), user("sum up"))
    body, _, _ = send(ASTRA, Prompt(history, thinking=Thinking(effort="low")))
    assert "effort" not in body["reasoning"]
    assert body["input"][2] == {"type": "configuration_update", "reasoning": {"effort": "low"}}


@pytest.mark.parametrize(
    ("shape", "items"),
    [
        ("openai_responses", [{"type": "configuration_update", "reasoning": {"effort": "low"}}]),
        ("anthropic", [{"role": "system", "content": [], "output_config": {"effort": "low"}}]),
    ],
)
def test_a_change_of_the_caller_is_read_and_sent_as_it_is(shape: Any, items: list[Any]) -> None:
    question = {"role": "user", "content": "hi"}
    messages = import_messages([*items, question], shape)
    assert messages[0] == Message("system", (), effort="low")
    target = ASTRA if shape == "openai_responses" else OPUS
    body, _, _ = send(target, Prompt(messages))
    sent = body.get("input") or body["messages"]
    assert sent == [*items, question]


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("anthropic:claude-opus-4-6", "'output_config': {'effort': 'low'}"),
        ("gemini:gemini-3-pro-preview", "'thinkingLevel': 'LOW'"),
        ("groq:openai/gpt-oss-120b", "'reasoning_effort': 'low'"),
        ("openai-responses:gpt-5", "'reasoning': {'effort': 'low'"),
    ],
)
def test_the_last_change_counts_for_the_request_where_there_are_no_such_messages(model: str, field: str) -> None:
    changes = [Message("system", (), effort="max"), user("hi"), assistant("hello"), Message("system", (), effort="low")]
    explained = asides.explain(model, [*changes, user("and?")], thinking="high")
    assert "effort_mapped" in [notice.code for notice in explained.notices]
    assert field in str(explained.body)
    sent = next(explained.body[name] for name in ("messages", "contents", "input") if name in explained.body)
    assert len(sent) == 3


@pytest.mark.parametrize("model", ["anthropic:claude-3-5-haiku-latest", "openai-chat:gpt-4o"])
def test_a_model_without_efforts_leaves_them_out(model: str) -> None:
    explained = asides.explain(model, [Message("system", (), effort="low"), user("hi")])
    assert "effort_not_sent" in [notice.code for notice in explained.notices]
    assert "low" not in str(explained.body)


# --- one setting for a turn that calls tools ----------------------------------------------------------------------

OLDER = find_target("anthropic:claude-opus-4-6")
OPEN = (
    user("go"),
    assistant(
        Thought("hm", "summary", "block", OLDER.origin, (asides.Seal("signature", "c2VhbA", OLDER.origin),)),
        ToolCall("c1", "look", {}),
    ),
    Message("tool", (ToolResult("c1", "there", "look"),)),
)


def test_thinking_cannot_be_turned_off_in_the_middle_of_a_turn() -> None:
    asked = Prompt(OPEN, thinking=Thinking(mode="off"), tools=(Tool("look"),))
    with pytest.raises(InvalidThinking, match="in the middle of a turn"):
        plan(asked, OLDER)
    body, planned, _ = send(OLDER, asked, on_conflict="adjust")
    assert body["thinking"] == {"type": "adaptive"}
    assert [notice.code for notice in planned.notices] == ["thinking_kept"]
    over = msgspec.structs.replace(asked, messages=(*OPEN, assistant("done"), user("and?")))
    assert plan(over, OLDER).notices == ()


def test_a_model_that_needs_a_budget_keeps_thinking_with_one() -> None:
    target = find_target("anthropic:claude-opus-4-5")
    thought = Thought("hm", "summary", "block", target.origin, (asides.Seal("signature", "c2VhbA", target.origin),))
    history = (OPEN[0], assistant(thought, ToolCall("c1", "look", {})), OPEN[2])
    body, planned, _ = send(target, Prompt(history, thinking=Thinking(mode="off")), on_conflict="adjust")
    assert body["thinking"]["type"] == "enabled"
    assert "thinking_kept" in [notice.code for notice in planned.notices]


def test_a_display_that_the_model_does_not_have_is_refused_or_replaced() -> None:
    asked = Prompt((user("hi"),), thinking=Thinking(effort="low", display="updates"))
    with pytest.raises(InvalidThinking, match="summarized, omitted, not as updates"):
        plan(asked, OLDER)
    body, planned, _ = send(OLDER, asked, on_conflict="adjust")
    assert body["thinking"]["display"] == "summarized"
    assert [notice.code for notice in planned.notices] == ["display_adjusted"]
    body, _, headers = send(SONNET, asked)
    assert body["thinking"]["display"] == "updates"
    assert headers["anthropic-beta"] == "thinking-display-updates-2026-08-18"


def test_a_turn_that_began_with_thinking_goes_on_with_it_where_nobody_says() -> None:
    body, planned, _ = send(OLDER, Prompt(OPEN, tools=(Tool("look"),)))
    assert body["thinking"] == {"type": "adaptive"}
    assert body["messages"][1]["content"][0]["type"] == "thinking"
    assert [notice.code for notice in planned.notices] == ["thinking_kept"]
    over = Prompt((*OPEN, assistant("done"), user("and?")), tools=(Tool("look"),))
    assert "thinking" not in send(OLDER, over)[0]
    assert "thinking" not in send(OLDER, Prompt(OPEN, stop=("x",)))[0], "not beside what thinking may exclude"


def test_a_model_with_a_budget_goes_on_with_the_least_one() -> None:
    target = find_target("anthropic:claude-opus-4-5")
    thought = Thought("hm", "summary", "block", target.origin, (asides.Seal("signature", "c2VhbA", target.origin),))
    history = (OPEN[0], assistant(thought, ToolCall("c1", "look", {})), OPEN[2])
    assert send(target, Prompt(history))[0]["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert "thinking" not in send(target, Prompt(history, max_tokens=1000))[0]
