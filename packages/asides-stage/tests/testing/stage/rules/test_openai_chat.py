"""The stage as the hosts of chat completions: what all refuse, what some refuse, and the state that they issue."""

from __future__ import annotations

from typing import Any

import pytest

from asides_stage import OpenStage, Say
from tests.testing.stage.chat_requests import LOOK, SO, USER, Wire, accepted, called, refused, result

# --- what all of them check -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ([USER, called("a")], "did not have response messages: a"),
        ([USER, called("a", "b"), result("a"), SO], "did not have response messages: b"),
        ([USER, called("a"), SO, result("a")], "did not have response messages: a"),
        ([USER, result("a")], "must be a response to a preceeding message"),
        ([USER, called("a"), result("a"), result("b")], "must be a response to a preceeding message"),
        ([USER, called("a"), result("a"), result("a")], "Duplicate value for 'tool_call_id' of 'a'"),
        ([USER, called("a", "a"), result("a")], "Duplicate value for 'tool_call_id' of 'a'"),
        ([USER, {"role": "assistant", "content": None}, SO], "expected a string, got null"),
    ],
)
def test_calls_and_results_that_do_not_pair_are_refused(stage: OpenStage, history: list[Wire], words: str) -> None:
    assert words in refused(stage(Say(text="42")), "any", *history)


def test_pairs_are_accepted_even_if_two_turns_use_one_id(stage: OpenStage) -> None:
    accepted(stage(Say(text="42")), "any", USER, called("a"), result("a"), called("a", "b"), result("b"), result("a"))


def test_a_refusal_counts_as_content(stage: OpenStage) -> None:
    accepted(stage(Say(text="42")), "any", USER, {"role": "assistant", "content": None, "refusal": "No."}, SO)


# --- thinking that has to come back -----------------------------------------------------------------------------------

LOOP = [USER, called("a"), result("a")]
GIVEN_BACK = [USER, called("a", reasoning_content=""), result("a")]


@pytest.mark.parametrize("model", ["deepseek-v4-pro", "deepseek-flash", "deepseek-reasoner", "kimi-k2.6", "kimi-k3"])
def test_a_turn_with_tool_calls_must_bring_its_thinking_even_if_empty(stage: OpenStage, model: str) -> None:
    opened = stage(Say(text="42"))
    assert "reasoning_content" in refused(opened, model, *LOOP)
    assert "reasoning_content" in refused(opened, model, *LOOP, {"role": "assistant", "content": "so"}, SO)
    accepted(opened, model, *GIVEN_BACK)
    accepted(opened, model, USER, {"role": "assistant", "content": "plain"}, SO)


@pytest.mark.parametrize("model", ["deepseek-v4-pro", "kimi-k2.6"])
def test_without_thinking_nothing_must_come_back(stage: OpenStage, model: str) -> None:
    accepted(stage(Say(text="42")), model, *LOOP, thinking={"type": "disabled"})


def test_a_model_that_thinks_on_request_demands_it_back_only_then(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    accepted(opened, "deepseek-chat", *LOOP)
    assert "must be passed back" in refused(opened, "deepseek-chat", *LOOP, thinking={"type": "enabled"})


def test_an_older_model_demands_it_back_only_inside_the_loop(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    thinks: dict[str, Any] = {"thinking": {"type": "enabled"}}
    assert "at message index 1." in refused(opened, "deepseek-v3.2", *LOOP, **thinks)
    accepted(opened, "deepseek-v3.2", *LOOP, {"role": "assistant", "content": "so"}, SO, **thinks)


def test_the_first_of_these_models_refuses_thinking(stage: OpenStage) -> None:
    turn = {"role": "assistant", "content": "plain", "reasoning_content": "mull"}
    assert "must not be included" in refused(stage(Say(text="42")), "deepseek-r1", USER, turn, SO)


@pytest.mark.parametrize("model", ["deepseek-v4-pro", "kimi-k2.6", "glm-4.7"])
def test_a_turn_comes_back_with_its_own_thinking(stage: OpenStage, model: str) -> None:
    opened = stage(Say(thinking="mull", tool_calls=(LOOK,)))
    turn = accepted(opened, model, USER)
    turn.pop("content")
    accepted(opened, model, USER, turn, result("call_1"))
    other = {**turn, "reasoning_content": "something else"}
    assert "not the one of this turn" in refused(opened, model, USER, other, result("call_1"))
    accepted(opened, "any", USER, other, result("call_1"))


def test_a_host_that_refuses_empty_messages(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    blank = {"role": "assistant", "content": " "}
    assert "must not be empty" in refused(opened, "kimi-k2.6", USER, blank, SO)
    assert "must not be empty" in refused(
        opened, "kimi-k2.6", USER, called("a", content="", reasoning_content=""), result("a")
    )
    accepted(opened, "deepseek-v4-pro", USER, blank, SO)


# --- a host with an order of its own ----------------------------------------------------------------------------------

NINE = "abcDEF123"


def test_a_strict_order_and_strict_ids(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))
    model = "magistral-medium-latest"
    accepted(opened, model, USER, called(NINE), result(NINE))
    accepted(opened, model, USER, called(NINE), result(NINE), {"role": "assistant", "content": "Noted."}, SO)
    assert "after role 'tool'" in refused(opened, model, USER, called(NINE), result(NINE), SO)
    assert "with a length of 9" in refused(opened, model, USER, called("call_1"), result("call_1"))
    assert "Expected last role User or Tool" in refused(opened, model, USER, {"role": "assistant", "content": "so"})
    thought = {"role": "assistant", "content": "so", "reasoning_content": "mull"}
    assert "Extra inputs" in refused(opened, model, USER, thought, SO, status=422)


def test_thinking_is_a_list_of_texts(stage: OpenStage) -> None:
    opened = stage(Say(text="42"))

    def turn(thinking: object) -> Wire:
        content = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": "so"}]
        return {"role": "assistant", "content": content}

    accepted(opened, "magistral-medium-latest", USER, turn([{"type": "text", "text": "mull"}]), SO)
    assert "a valid list" in refused(opened, "magistral-medium-latest", USER, turn("mull"), SO, status=422)
