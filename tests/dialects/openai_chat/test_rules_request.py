"""How a chat asks for thinking and for tools, in the spellings of all hosts."""

from __future__ import annotations

import pytest

from asides.dialects.openai_chat.rules import messages
from asides.dialects.openai_chat.rules.chat_request import ChatRequest
from asides.dialects.rulebook import Rule, WireRequest
from asides.providers.find import find_target
from tests.testing.stage.rules.chat_requests import NAMED, Wire


def asked(**fields: object) -> ChatRequest:
    body: Wire = {"model": "Maker/Some-Model", "messages": [], **fields}
    return ChatRequest(WireRequest(body), find_target("openai-compatible:any", base_url="http://127.0.0.1:9/v1"))


OFF: list[Wire] = [
    {"thinking": {"type": "disabled"}},
    {"reasoning_effort": "none"},
    {"enable_thinking": False},
    {"chat_template_kwargs": {"enable_thinking": False}},
    {"chat_template_kwargs": {"thinking": False}},
]
ON: list[Wire] = [
    {"thinking": {"type": "enabled"}},
    {"reasoning_effort": "low"},
    {"enable_thinking": True},
    {"chat_template_kwargs": {"enable_thinking": True}},
]


@pytest.mark.parametrize("fields", OFF)
def test_off_is_off_whatever_the_default(fields: Wire) -> None:
    assert not asked(**fields).thinks(by_default=True)


@pytest.mark.parametrize("fields", ON)
def test_on_is_on_whatever_the_default(fields: Wire) -> None:
    assert asked(**fields).thinks(by_default=False)


def test_without_a_word_the_default_holds() -> None:
    assert (asked().thinks(by_default=True), asked().thinks(by_default=False)) == (True, False)


@pytest.mark.parametrize(
    ("choice", "forced"),
    [("auto", None), ("none", None), ("required", "required"), ("any", "required"), (NAMED, "specified"), (None, None)],
)
def test_a_forced_tool(choice: object, forced: str | None) -> None:
    assert asked(tool_choice=choice).forced_tool == forced


def test_a_path_that_leads_nowhere_is_none() -> None:
    assert asked(thinking=True).get("thinking.type") is None
    assert asked().get("extra_body.any.thing") is None
    assert asked().name == "some-model"


def test_a_code_that_the_host_appends_is_in_no_rule() -> None:
    """MiniMax writes "(2013)" after each of its errors, so a rule with it would say it twice."""
    assert not [rule for rule in vars(messages).values() if isinstance(rule, Rule) and rule.text.endswith("(2013)")]
