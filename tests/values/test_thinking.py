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
        {"effort": "enormous"},
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


@pytest.mark.requirement("S0-49", "S1-31", "S3-19")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"mode": "summary", "effort": "low"}, Thinking(effort="low")),
        ({"mode": "summary"}, Thinking(mode="on")),
        ({"mode": "raw"}, Thinking(mode="on", show="raw")),
        ({"mode": "raw", "effort": "high"}, Thinking(effort="high", show="raw")),
        ({"mode": "off"}, Thinking(mode="off")),
        ({"mode": "none"}, Thinking(mode="off")),
        ({"mode": "summary", "effort": "none"}, Thinking(mode="off")),
        ({"mode": "summary", "effort": None, "summary": "detailed"}, Thinking(mode="on", summary="detailed")),
        ({"enabled": True}, Thinking(mode="on")),
        ({"enabled": True, "effort": "high"}, Thinking(effort="high")),
        ({"enabled": True, "budgetTokens": 3000}, Thinking(budget=3000)),
        ({"enabled": True, "exclude": True}, Thinking(mode="on", show="none")),
        ({"enabled": False}, Thinking(mode="off")),
        ({"enabled": False, "effort": "high"}, Thinking(mode="off", effort="high")),
        ({"budgetTokens": 3000}, Thinking(budget=3000)),
        ({"max_tokens": 3000}, Thinking(budget=3000)),
        ({"type": "enabled", "budgetTokens": 3000}, Thinking(budget=3000)),
    ],
)
def test_the_objects_of_other_programs_are_read(given: dict[str, Any], meant: Thinking) -> None:
    assert read_thinking(given) == (meant, ())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mode": "raw", "show": "none"}, "show is none and raw"),
        ({"mode": "summary", "exclude": True}, "show is summary and none"),
        ({"enabled": True, "mode": "off"}, "its mode is off"),
        ({"enabled": "yes"}, "true or false"),
        ({"exclude": 1}, "true or false"),
        ({"budget": 1, "budgetTokens": 2}, "both set the budget"),
        ({"show": ["raw"]}, "invalid"),
        ({"mode": "sometimes"}, "invalid"),
    ],
)
def test_an_object_that_contradicts_itself_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidThinking, match=told):
        read_thinking(given)
