"""Fields that a host refuses are left out of an encoded request; those of the caller stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects.dialect import HttpRequest
from asides.dialects.refused_fields import drop_fields, has_field


def request(body: dict[str, Any]) -> HttpRequest:
    return HttpRequest("POST", "http://127.0.0.1:9/v1", {}, json.dumps(body).encode(), None)


@pytest.mark.parametrize(
    ("body", "name", "left"),
    [
        ({"model": "m", "user": "u"}, "user", {"model": "m"}),
        ({"reasoning": {"effort": "low", "max_tokens": 9}}, "reasoning.max_tokens", {"reasoning": {"effort": "low"}}),
        # An object that gets empty goes too.
        ({"a": 1, "reasoning": {"summary": "auto"}}, "reasoning.summary", {"a": 1}),
        # Every object of a list.
        (
            {"messages": [{"role": "a", "x": 1}, {"role": "b", "x": 2}]},
            "messages.x",
            {"messages": [{"role": "a"}, {"role": "b"}]},
        ),
        # Some servers name the type of an object as if it were a field.
        (
            {"messages": [{"content": [{"type": "tool_use", "text": "t", "id": "i"}]}]},
            "messages.content.tool_use.text",
            {"messages": [{"content": [{"type": "tool_use", "id": "i"}]}]},
        ),
        # An entry of a list by its type.
        (
            {"a": 1, "context_management": {"edits": [{"type": "clear_thinking_20251015"}]}},
            "context_management.edits.clear_thinking_20251015",
            {"a": 1},
        ),
    ],
)
def test_a_field_is_dropped_with_a_notice(body: dict[str, Any], name: str, left: dict[str, Any]) -> None:
    dropped, notices = drop_fields(request(body), [name], {})
    assert json.loads(dropped.body) == left
    assert [(notice.code, notice.setting) for notice in notices] == [("setting_dropped", name)]
    assert has_field(body, name)


def test_what_is_not_there_changes_nothing() -> None:
    given = request({"model": "m", "reasoning": {"effort": "low"}})
    assert drop_fields(given, ["user", "reasoning.summary", "model.name"], {}) == (given, [])


@pytest.mark.parametrize("name", ["model", "messages", "input", "contents", "tools", "stream", "response_format"])
def test_what_was_said_and_asked_for_stays(name: str) -> None:
    body = {name: [1], "a": 1}
    assert not has_field(body, name)
    assert drop_fields(request(body), [name], {})[1] == []


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"messages": [{"role": "user", "content": "words"}]}, "messages.content"),
        ({"messages": [{"role": "user", "content": "words"}]}, "messages.role"),
        ({"messages": [{"content": [{"type": "text", "text": "words"}]}]}, "messages.content.text"),
        ({"messages": [{"content": [{"type": "text", "text": "words"}]}]}, "messages.content.text.text"),
        ({"messages": [{"content": [{"type": "tool_use", "id": "a", "input": {}}]}]}, "messages.content.tool_use"),
        ({"messages": [{"content": [{"type": "tool_use", "id": "a", "input": {}}]}]}, "messages.content.tool_use.id"),
        ({"messages": [{"tool_calls": [{"id": "a", "type": "function", "function": {}}]}]}, "messages.tool_calls"),
        ({"input": [{"type": "message", "role": "user", "content": "words"}]}, "input.message"),
        ({"input": [{"type": "function_call_output", "call_id": "a", "output": "1"}]}, "input.output"),
        ({"contents": [{"role": "user", "parts": [{"text": "words"}]}]}, "contents.parts"),
        ({"contents": [{"role": "user", "parts": [{"text": "words"}]}]}, "contents.parts.text"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools.function"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools.function.name"),
        ({"system": [{"type": "text", "text": "words"}]}, "system.text"),
    ],
)
def test_nothing_that_was_said_is_lost_by_a_path(body: dict[str, Any], name: str) -> None:
    """A server, or a saved conversation of somebody else, may name any path."""
    assert not has_field(body, name)
    assert drop_fields(request(body), [name], {}) == (request(body), [])


def test_what_stands_beside_the_words_can_go() -> None:
    body = {
        "input": [
            {"type": "reasoning", "id": "rs_1", "content": []},
            {"type": "function_call", "id": "a", "call_id": "b"},
        ],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "words", "cache_control": {}}]}],
        "tools": [{"type": "function", "strict": True, "function": {"name": "f", "strict": True}}],
    }
    names = ["input.id", "input.content", "messages.content.cache_control", "tools.strict", "tools.function.strict"]
    left, notices = drop_fields(request(body), names, {})
    assert [notice.setting for notice in notices] == names
    assert json.loads(left.body) == {
        "input": [{"type": "reasoning"}, {"type": "function_call", "call_id": "b"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "words"}]}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }


def test_a_field_of_the_caller_stays_unless_it_controls_earlier_thinking() -> None:
    given = {"top_a": 1, "thinking": {"block_binding": {}}}
    kept, notices = drop_fields(request({**given, "model": "m"}), ["top_a", "thinking.block_binding"], given)
    assert json.loads(kept.body) == {"top_a": 1, "model": "m"}
    assert len(notices) == 1
