"""The configuration of an agent: which tools run without approval, and options that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.agents.config import resolve_approval
from asides.agents.tools.executor import Approval
from asides.agents.tools.function_tool import tool
from asides.values.parts import ToolCall
from asides_stage.stage import OpenStage, Say
from tests.agents.three_tools import KEY, MODELS

MODEL = MODELS["openai_chat"]
PATTERNS: tuple[tuple[str, Approval], ...] = (("read_*", "allow"), ("read_secrets", "deny"), ("delete_*", "ask"))


@tool
def silent() -> None:
    """Says nothing of approval."""


@tool(approval="allow")
def outspoken() -> None:
    """Says it itself."""


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("read_mail", "allow"),
        ("read_secrets", "allow"),  # the first pattern that fits
        ("delete_mail", "ask"),
        ("DELETE_mail", "allow"),  # names are told apart by case
        ("send_mail", "allow"),  # no pattern fits
    ],
)
def test_the_first_pattern_that_fits_a_name_counts_and_without_one_a_tool_may_be_run(name: str, word: str) -> None:
    assert resolve_approval(PATTERNS, name, silent) == word


def test_what_a_tool_says_of_itself_counts_more_than_what_the_agent_says_of_it() -> None:
    assert resolve_approval("deny", "outspoken", outspoken) == "allow"
    assert resolve_approval((("*", "deny"),), "outspoken", outspoken) == "allow"
    assert resolve_approval("deny", "silent", silent) == "deny"


def nothing() -> None:
    """Does nothing."""


@pytest.mark.parametrize(
    "options",
    [
        {"tool_timeout": 0},
        {"tool_timeout": -1},
        {"tool_timeout": float("nan")},
        {"limits": {"seconds": float("nan")}},
        {"limits": object()},
        {"limits": asides.Limits(turns="many")},  # type: ignore[arg-type]
        {"approval": {1: "ask"}},
        {"tools": nothing},
        {"tools": {"type": "function", "function": {"name": "nothing"}}},
    ],
)
def test_options_that_make_no_sense_are_refused_where_they_are_given(options: dict[str, Any]) -> None:
    with pytest.raises(asides.ConfigError):
        asides.Agent(MODEL, **options)


@pytest.mark.parametrize("conversation", [[asides.user("Before.")], "chat", 5])
def test_what_is_no_conversation_is_named(conversation: Any) -> None:
    with pytest.raises(asides.ConfigError, match="must be a Conversation, not"):
        asides.Agent(MODEL, base_url="http://127.0.0.1:9", api_key=KEY).send("?", conversation=conversation)


@pytest.mark.parametrize("prompt", [None, 5, [5], object()])
def test_what_is_no_prompt_is_named_in_a_conversation_too(prompt: Any) -> None:
    agent = asides.Agent(MODEL, base_url="http://127.0.0.1:9", api_key=KEY)
    with pytest.raises(asides.ConfigError, match=r"not a message|a prompt is text, a message"):
        agent.send(prompt, conversation=asides.Conversation())


def test_tools_may_come_from_a_generator(stage: OpenStage) -> None:
    call, answer = Say(tool_calls=(ToolCall("call_0", "nothing", {}),)), Say(text="Well.")
    tools: Any = (each for each in [nothing])
    open_stage = stage(call, answer, call, answer)
    agent = asides.Agent(MODEL, base_url=open_stage.url, api_key=KEY, tools=tools)
    for _ in range(2):
        (result,) = agent.send("?").steps[0].results
        assert not result.is_error


def test_the_mode_has_to_be_one() -> None:
    with pytest.raises(asides.ConfigError, match="native, react"):
        asides.Agent(MODEL, mode="text")  # type: ignore[call-overload]
