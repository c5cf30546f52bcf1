"""Evidence that is asked for more than once."""

from __future__ import annotations

import json

import pytest

from asides.flows.probe.knowledge import Knowledge, excludes_thinking, list_fields, list_tags
from asides.flows.probe.observe import Observation, observe
from asides.flows.steps import Head


def see(message: dict[str, object], **usage: object) -> Observation:
    document = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    return observe(Head(200, {}), json.dumps(document).encode(), "openai_chat")


@pytest.mark.parametrize(
    ("output", "total", "excludes"),
    [(30, 40, False), (10, 40, True), (30, None, None), (5, None, True), (30, 99, None)],
)
def test_whether_output_leaves_thinking_out(output: int, total: int | None, excludes: bool | None) -> None:
    known = Knowledge()
    details = {"reasoning_tokens": 20}
    counts = {"prompt_tokens": 10, "completion_tokens": output, "total_tokens": total}
    known.replies = [("default", see({"content": "x", "reasoning": "p"}, completion_tokens_details=details, **counts))]
    assert excludes_thinking(known) is excludes


def test_replies_that_show_thinking_count_before_those_that_only_count_it() -> None:
    shown = see({"content": "x", "reasoning": "p"})
    counted = see({"content": "x"}, completion_tokens=9, completion_tokens_details={"reasoning_tokens": 5})
    known = Knowledge()
    known.replies = [("default", counted)]
    assert known.thinking == [counted]
    known.replies.append(("on", shown))
    assert known.thinking == [shown]


def test_fields_and_tags_in_order() -> None:
    both = see({"content": "<think>p</think>x", "reasoning": "p", "inner_voice": "p"})
    one = see({"content": "x", "inner_voice": "p"})
    assert list_fields([both, one]) == ("inner_voice", "reasoning")
    assert list_tags([both, one]) == ("think",)
