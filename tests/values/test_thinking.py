"""Requests for thinking in every form: an invalid setting is refused by name before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from asides.values.errors import InvalidThinking
from asides.values.thinking import Thinking, read_thinking


@pytest.mark.parametrize(
    "setting",
    [
        3.5,
        [],
        b"high",
        object,
        "brief",
        -1,
        {"type": "enabled", "budget_tokens": "many"},
        {"type": "enabled", "budget_tokens": -5},
        {"effort": 5},
        {"budget": True},
        Thinking(effort="enormous"),  # type: ignore[arg-type]
        Thinking(summary="short"),  # type: ignore[arg-type]
        Thinking(show="everything"),  # type: ignore[arg-type]
        Thinking(budget=-1),
    ],
)
def test_an_invalid_setting_is_refused(setting: Any) -> None:
    with pytest.raises(InvalidThinking):
        read_thinking(setting)


@pytest.mark.parametrize("reasoning", ["high", 5, {"max_tokens": "many"}, {"effort": 5}, {"efort": "high"}])
def test_a_reasoning_object_that_is_none_is_refused(reasoning: Any) -> None:
    with pytest.raises(InvalidThinking):
        read_thinking(reasoning=reasoning)


def test_a_reasoning_effort_that_is_no_word_is_refused() -> None:
    with pytest.raises(InvalidThinking):
        read_thinking(reasoning_effort=5)  # type: ignore[arg-type]


def test_a_thinking_value_is_read_like_its_fields() -> None:
    assert read_thinking(Thinking(effort="none"))[0] == Thinking(mode="off")  # type: ignore[arg-type]
    assert read_thinking(Thinking(budget=0))[0] == Thinking(mode="off")
    read, notices = read_thinking(Thinking(effort="high", summary="brief"))  # type: ignore[arg-type]
    assert read == Thinking(effort="high", summary="concise")
    assert [(notice.code, notice.asked, notice.sent) for notice in notices] == [("summary_mapped", "brief", "concise")]


@pytest.mark.parametrize(
    "asked",
    [
        {"setting": "ultra"},
        {"setting": {"effort": "Ultra"}},
        {"reasoning_effort": "ultra"},
        {"reasoning": {"effort": "ultra"}},
    ],
    ids=str,
)
def test_ultra_is_max_and_that_is_told(asked: dict[str, Any]) -> None:
    read, notices = read_thinking(**asked)
    assert read == Thinking(effort="max")
    assert [(notice.code, notice.asked, notice.sent) for notice in notices] == [("effort_mapped", "ultra", "max")]


def test_a_valid_thinking_value_stays_unchanged() -> None:
    setting = Thinking("on", "low", 2000, "raw", "detailed", "never")
    assert read_thinking(setting) == (setting, ())
