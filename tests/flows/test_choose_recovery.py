"""What a step of recovery changes: less thinking, by the rule of the model; and which replies need one."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.flows.call import Call
from asides.flows.choose_recovery import find_less_thinking, find_need
from asides.providers.find import find_target
from asides.values.parts import Image

THINKING = asides.Thinking


@pytest.mark.parametrize(
    ("asked", "rule", "less"),
    [
        (THINKING(effort="high"), {"efforts": ("low", "high", "max")}, THINKING(effort="low")),
        (THINKING(), {"efforts": ("low", "medium", "high")}, THINKING(effort="low")),
        (THINKING(mode="on"), {"efforts": ("low", "high")}, THINKING(effort="low")),
        (THINKING(effort="low"), {"efforts": ("low", "high")}, THINKING(mode="off")),
        (THINKING(effort="low"), {"efforts": ("low", "high"), "thinking": "always"}, None),
        (THINKING(), {"efforts": ("high", "max"), "thinking": "always"}, None),
        (THINKING(budget=8000), {"budget": (1024, None)}, THINKING(budget=4000)),
        (THINKING(budget=1500), {"budget": (1024, None)}, THINKING(budget=1024)),
        (THINKING(budget=1024), {"budget": (1024, None)}, THINKING(mode="off")),
        (THINKING(), {"efforts": ()}, THINKING(mode="off")),
        (THINKING(mode="off"), {}, None),
        (THINKING(effort="high"), {"thinking": "unknown"}, THINKING(effort="medium")),
        (THINKING(), {"thinking": "unknown"}, None),
        (THINKING(), {"thinking": "never"}, None),
    ],
)
def test_less_thinking_is_the_next_that_the_model_takes(
    asked: asides.Thinking, rule: dict[str, Any], less: asides.Thinking | None
) -> None:
    facts: dict[str, Any] = {"thinking": "optional", **rule}
    assert find_less_thinking(asked, asides.ModelRule(**facts)) == less


CALL = Call(asides.Prompt((asides.user("?"),)), find_target("groq:openai/gpt-oss-120b"))


@pytest.mark.parametrize(
    ("parts", "stop", "need"),
    [
        ((asides.Thought("hm"),), "length", "starved"),
        ((asides.Thought("hm"),), "stop", "unterminated"),
        ((asides.Thought("hm"),), "tool_calls", "unterminated"),
        ((), "unknown", "unterminated"),
        ((asides.Text("  "),), "stop", "unterminated"),
        ((asides.Thought("hm"),), "pause", None),
        ((asides.Thought("hm"),), "error", None),
        ((asides.Thought("hm"), asides.Text("so")), "length", None),
        ((asides.Thought("hm"), Image(b"\x89PNG\r\n\x1a\n")), "stop", None),
    ],
)
def test_a_reply_needs_recovery_when_it_ended_without_an_answer(parts: Any, stop: Any, need: str | None) -> None:
    reply: asides.Reply[Any] = asides.Reply(parts, stop=asides.StopReason(stop))
    assert find_need(reply, CALL) == need
