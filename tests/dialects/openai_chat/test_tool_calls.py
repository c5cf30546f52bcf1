"""Tool calls from their pieces: calls without numbers, late ids and names, thinking before the arguments."""

from __future__ import annotations

from typing import Any

import pytest

from asides.providers.provider import Quirks
from tests.decoding import decoded, stream, target


def calls(*deltas: list[dict[str, Any]], **options: Any) -> list[tuple[str, str, Any]]:
    reply = decoded(stream(*({"tool_calls": delta} for delta in deltas), finish="tool_calls"), target(**options))
    return [(call.id, call.name, call.arguments) for call in reply.tool_calls]


def piece(arguments: Any = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def test_pieces_are_joined_by_index_and_an_id_may_come_late() -> None:
    first = [piece('{"a"', "add", index=0), piece("{", "multiply", index=1, id="two")]
    assert calls(first, [piece(":1}", index=0, id="one"), piece("}", index=1)]) == [
        ("one", "add", {"a": 1}),
        ("two", "multiply", {}),
    ]


def test_calls_that_all_have_the_index_0_are_separated_by_their_ids() -> None:
    assert calls([piece("{}", "add", index=0, id="one")], [piece("{}", "add", index=0, id="two")]) == [
        ("one", "add", {}),
        ("two", "add", {}),
    ]


def test_calls_without_an_index_are_separated_by_their_names() -> None:
    found = calls([piece("{}", "add")], [piece("{}", "multiply")])
    assert [name for _, name, _ in found] == ["add", "multiply"]


@pytest.mark.parametrize("arguments", [{"a": 1}, '{"a": 1}'])
def test_arguments_may_be_an_object_or_its_text(arguments: Any) -> None:
    assert calls([piece(arguments, "add", index=0, id="one")]) == [("one", "add", {"a": 1})]


def test_an_empty_object_of_arguments_is_complete() -> None:
    reply = decoded(stream({"tool_calls": [piece({}, "add", index=0, id="one")]}, finish="tool_calls"))
    assert (reply.tool_calls[0].arguments, reply.tool_calls[0].raw_arguments) == ({}, None)


def test_thinking_before_the_arguments_is_thinking() -> None:
    deltas = [[piece("<thi", "add", index=0, id="one")], [piece('nk>plan</think>{"a":1}', index=0)]]
    body = stream(*({"tool_calls": delta} for delta in deltas), finish="tool_calls")
    reply = decoded(body, target(quirks=Quirks(tags=("think",))))
    assert reply.tool_calls[0].arguments == {"a": 1}
    assert reply.thinking
    assert reply.thinking.text == "plan"


def test_the_older_function_call_is_a_call() -> None:
    reply = decoded(stream({"function_call": {"name": "add", "arguments": "{}"}}, finish="function_call"))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("add", {})]
