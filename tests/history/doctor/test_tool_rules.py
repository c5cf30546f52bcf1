"""Calls, results, ids and arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.dialects.openai_chat import rules as chat_rules
from asides.dialects.rulebook import find_rulebook
from asides.history.doctor.diagnose import diagnose
from asides.providers.find import find_target

CHAT = "openai-chat:gpt-4o"
CLAUDE = "anthropic:claude-opus-4-6"


def call(name: str, arguments: Any = "{}") -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": "f", "arguments": arguments}}


def calls(*made: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": list(made)}


def answer(name: str, content: str = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": content}


ASK = {"role": "user", "content": "q"}


@pytest.mark.parametrize(
    ("given", "repaired"),
    [
        ('{"a": 1}', None),
        ("", {}),
        ('{"a": 1', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("[1]", {}),
        ("nonsense", {}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_arguments_become_an_object(given: Any, repaired: Any) -> None:
    found = diagnose([ASK, calls(call("a", given)), answer("a")], CHAT)
    assert [finding.kind for finding in found.refused] == ([] if repaired is None else ["tool_arguments_invalid"])
    text = found.repaired[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(text) == ({"a": 1} if repaired is None else repaired)


def test_a_late_result_is_moved_and_not_made_up() -> None:
    late = answer("a", "the true result")
    found = diagnose([ASK, calls(call("a"), call("b")), ASK, late, answer("b")], CHAT)
    assert {finding.kind for finding in found.refused} == {"tool_result_missing", "tool_result_orphaned"}
    assert found.repaired == [ASK, calls(call("a"), call("b")), late, answer("b"), ASK]


def test_each_of_parallel_calls_gets_its_result_in_order() -> None:
    found = diagnose([ASK, calls(call("a"), call("b"), call("c")), answer("b")], CHAT)
    assert [item.get("tool_call_id") for item in found.repaired[2:]] == ["b", "a", "c"]
    assert [finding.path for finding in found.refused] == ["messages[1]"]


def test_one_id_in_every_reply_is_no_fault_where_hosts_count_so() -> None:
    history = [ASK, calls(call("call_0")), answer("call_0"), calls(call("call_0")), answer("call_0")]
    assert diagnose(history, CHAT).sound


def test_block_dialects_get_unique_ids_of_their_alphabet() -> None:
    def use(name: str) -> Any:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "f", "input": {}}]}

    def returned(name: str) -> Any:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "1"}]}

    bad = "functions.f:0"
    found = diagnose(
        [ASK, use(bad), returned(bad), use("t"), returned("t"), use("t"), returned("t")], CLAUDE, thinking="off"
    )
    ids = [message["content"][0]["id"] for message in found.repaired[1::2]]
    assert ids == [message["content"][0]["tool_use_id"] for message in found.repaired[2::2]]
    assert ids[1:] == ["t", "t_2"]
    assert ids[0].startswith("call_")
    assert {finding.kind for finding in found.refused} == {None}


def test_results_come_first_in_their_message() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    text, returned = {"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "t", "content": "1"}
    found = diagnose([ASK, use, {"role": "user", "content": [text, returned]}], CLAUDE, thinking="off")
    assert [finding.path for finding in found.refused] == ["messages[1]", "messages[2]"]
    assert found.repaired[2]["content"] == [returned, text]


def test_results_of_calls_that_the_provider_stores_stay() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    request = {"model": "gpt-5", "previous_response_id": "resp_1", "input": [output]}
    assert diagnose(request, "openai:gpt-5").sound
    assert not diagnose({"model": "gpt-5", "input": [output]}, "openai:gpt-5").sound


@pytest.mark.parametrize("model", ["openai-chat:gpt-4o", "anthropic:claude-sonnet-4-5", "google:gemini-3.5-flash"])
def test_findings_about_our_own_messages_have_the_date_and_the_source_of_a_rule(model: str) -> None:
    history = (
        asides.Message("user", (asides.Text("q"),)),
        asides.Message("assistant", (asides.ToolCall("a", "f", {}),)),
        asides.Message("user", (asides.Text("q"),)),
        asides.Message("tool", (asides.ToolResult("b", "1"),)),
    )
    found = diagnose(history, model).refused
    book = find_rulebook(find_target(model).dialect)
    assert book is not None
    facts = {(rule.kind, rule.since, rule.source) for rule in (*book.RULES, *chat_rules.RULES)}
    assert {each.kind for each in found} == {"tool_result_missing", "tool_result_orphaned"}
    assert {(each.kind, each.since, each.source) for each in found} <= facts
