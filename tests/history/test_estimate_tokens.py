"""Estimates of tokens: only the parts that are sent count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from asides.history.trim import build_token_counter
from asides.values.messages import Message, assistant, user
from asides.values.parts import Image, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from tests.history.strict_stages import Model, StrictRules

CALL = Message("assistant", (Thought("t"), ToolCall("c1", "f")))


def measured(model: Model, messages: Sequence[Message], **more: Any) -> int:
    house = StrictRules(model)
    return build_token_counter(house.prompt((), **more), house.target)(messages)


@pytest.mark.requirement("H11")
def test_H11_what_is_not_sent_costs_nothing_and_what_is_sent_does() -> None:
    claude, qwen = Model("anthropic:claude-opus-4-6", "high"), Model("qwen:qwen3-max", None)
    bare = (user("1"), assistant("a"), user("2"))
    thought = (user("1"), assistant(Thought("t" * 4000), "a"), user("2"))
    signed = Thought("t" * 2000, "summary", "block", None, (Seal("signature", "s" * 2000),), "thinking")
    sealed = (user("1"), assistant(signed, "a"), user("2"))
    assert measured(qwen, thought) == measured(qwen, bare)
    assert measured(claude, thought) == measured(claude, bare)
    assert 950 < measured(claude, sealed) - measured(claude, bare) < 1050
    withheld_one = msgspec.structs.replace(signed, withheld=True)
    assert measured(claude, (user("1"), assistant(withheld_one, "a"), user("2"))) == measured(claude, bare)


def test_H11_the_system_prompt_and_the_tools_are_counted_and_pictures_have_a_price() -> None:
    model = Model("anthropic:claude-opus-4-6", "high")
    bare = measured(model, [user("1")])
    assert 950 < measured(model, [user("1")], system="s" * 4000) - bare < 1050
    assert measured(model, [user("1")], tools=()) < bare
    small, large = (measured(model, [user("1", Image(data=b"x" * size))]) for size in (10, 1_000_000))
    assert small == large
    assert 1500 < small - bare < 1700
    shown = Message("tool", (ToolResult("c1", (Text("a"), Image(data=b"x" * 1_000_000)), "f"),))
    assert measured(model, [user("1"), CALL, shown]) < 3000
