"""The row that follows from what is known. The costumes show it over sockets; here are the edges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.flows.probe.infer_row import choose_starts_inside, infer_row
from asides.flows.probe.knowledge import Knowledge
from asides.flows.probe.observe import Observation, observe
from asides.flows.probe.trials import Setup
from asides.flows.steps import Head
from asides.providers.switches.table import list_switches


def see(content: str, **fields: Any) -> Observation:
    document = {"choices": [{"message": {"content": content, **fields}, "finish_reason": "stop"}]}
    return observe(Head(200, {}, 1_794_787_200.0), json.dumps(document).encode(), "openai_chat")


def learn(*replies: tuple[str, Observation]) -> Knowledge:
    known = Knowledge()
    known.setup = Setup("openai_chat", "http://h/v1", "M[1]*")
    known.baseline = replies[0][1]
    known.replies = list(replies)
    return known


def test_nothing_known_is_no_row() -> None:
    assert infer_row(Knowledge(), "x", ()) is None


def test_a_template_that_always_opens_the_tag() -> None:
    inside, plain = see("a plan</think>42"), see("42")
    assert choose_starts_inside(learn(("default", inside), ("default", inside))) is True
    assert choose_starts_inside(learn(("default", inside))) == "auto"
    assert choose_starts_inside(learn(("default", inside), ("default", plain))) == "auto"
    assert choose_starts_inside(learn(("default", plain), ("on", inside))) == "auto"
    assert choose_starts_inside(learn(("default", plain))) is False


def test_other_models_of_the_server_may_have_such_a_template_too() -> None:
    known = learn(("default", see("a plan</think>42")))
    known.models = ("M[1]*", "other")
    row = infer_row(known, "x", ())
    assert row is not None
    assert [rule.models for rule in row.models] == ["m[[]1][*]", "*"]
    assert row.rule("M[1]*").starts_inside == row.rule("other").starts_inside == "auto"
    assert row.rule("M[1]*") is row.models[0]
    assert row.since == "2026-11-16"


@pytest.mark.parametrize(
    ("replay", "when"),
    [
        ({}, "tool_turns"),
        ({"kept": "", "left_out": ""}, "tool_turns"),
        ({"kept": "", "left_out": "400: must be passed back"}, "tool_turns"),
        ({"kept": "400: unsupported", "left_out": ""}, "never"),
        ({"left_out": ""}, "never"),
    ],
)
def test_when_thinking_goes_back(replay: dict[str, str], when: str) -> None:
    known = learn(("default", see("42", reasoning="a plan")))
    known.replay = replay
    row = infer_row(known, "x", ())
    assert row is not None
    assert row.replay[0].when == when


def test_a_switch_with_efforts_beside_it() -> None:
    known = learn(("default", see("42", reasoning="a plan")))
    known.switch = next(switch for switch in list_switches("openai_chat", "off") if switch.name == "thinking.type")
    known.efforts, known.effort_counts = ("none", "low", "high"), True
    row = infer_row(known, "x", ("K",))
    assert row is not None
    assert (row.quirks.ask_by, row.models[0].efforts, row.key) == (
        "thinking_toggle_and_effort",
        ("low", "high"),
        "required",
    )


def test_details_go_back_as_details() -> None:
    entry = {"type": "reasoning.text", "text": "a plan", "signature": "s"}
    known = learn(("default", see("42", reasoning="a plan", reasoning_details=[entry])))
    row = infer_row(known, "x", ())
    assert row is not None
    assert (row.quirks.thinking_in, row.quirks.replay_as) == (("reasoning",), "details")
