"""Tools in Responses: who runs a call, and the item that takes its result back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.openai_responses.encode import encode
from asides.dialects.openai_responses.import_items import import_items
from asides.values.messages import Message, Prompt
from asides.values.parts import Image, ServerTool, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Seal
from tests.decoding import decoded, sse
from tests.responses import DIALECT, call, message, reasoning, response, target

X_SEARCH = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "xs_call_1",
    "name": "x_keyword_search",
    "input": '{"query":"news"}',
    "status": "completed",
}
X_TOOLS = [{"type": "x_search"}]
CUSTOM_TOOLS = [{"type": "custom", "name": "x_keyword_search"}]
NESTED_TOOLS = [{"type": "namespace", "name": "mine", "tools": CUSTOM_TOOLS}]


def streams(*items: dict[str, Any], **fields: Any) -> list[bytes]:
    """The items whole, streamed, and streamed without a first event."""
    final = response(*items, **fields)
    events: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        begun = {name: value for name, value in item.items() if name not in ("input", "content")}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        if item["type"] == "custom_tool_call":
            delta = {"type": "response.custom_tool_call_input.delta", "output_index": index, "delta": item["input"]}
            events.append(delta)
        if item["type"] == "message":
            text = item["content"][0]["text"]
            events.append({"type": "response.output_text.delta", "output_index": index, "delta": text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    begin = {"type": "response.created", "response": {**final, "status": "in_progress", "output": []}}
    end = {"type": "response.completed", "response": final}
    return [json.dumps(final).encode(), sse(begin, *events, end), sse(*events, end)]


def said(reply: Reply) -> Message:
    found = reply.to_message()
    assert found is not None
    return found


def read_all(*items: dict[str, Any], **fields: Any) -> list[Reply]:
    return [decoded(body, target(), DIALECT) for body in streams(*items, **fields)]


@pytest.mark.parametrize("tools", [None, [], X_TOOLS], ids=["not repeated", "empty", "repeated"])
@pytest.mark.parametrize("name", ["x_keyword_search", "x_semantic_search", "view_x_video", "made_up"])
def test_a_custom_call_that_the_answer_follows_was_run_by_the_provider(tools: Any, name: str) -> None:
    item = {**X_SEARCH, "name": name}
    fields = {} if tools is None else {"tools": tools}
    if name == "made_up" and not tools:
        item["call_id"] = "xs_call_1"  # the only sign
    for reply in read_all(reasoning("plan"), item, message("found it"), **fields):
        assert (reply.text, reply.tool_calls, reply.stop.reason) == ("found it", (), "stop")
        (tool,) = [part for part in reply.parts if isinstance(part, ServerTool)]
        assert (tool.name, tool.id, tool.status, json.loads(tool.json)) == (name, "xs_call_1", "completed", item)
        prompt = Prompt((Message("user", (Text("?"),)), said(reply), Message("user", (Text("more"),))))
        sent = [{**each, "id": "ctc_1"} for each in json.loads(encode(prompt, target())[0].body)["input"]]
        assert item in sent


@pytest.mark.parametrize("tools", [None, CUSTOM_TOOLS, NESTED_TOOLS], ids=["not repeated", "repeated", "nested"])
def test_a_custom_call_that_ends_the_reply_is_for_the_caller(tools: Any) -> None:
    fields = {} if tools is None else {"tools": tools}
    for reply in read_all(message("I will look."), X_SEARCH, **fields):
        (found,) = reply.tool_calls
        assert (found.name, found.id, found.raw_arguments, found.custom) == (
            "x_keyword_search",
            "xs_call_1",
            '{"query":"news"}',
            True,
        )
        assert reply.stop.reason == "tool_calls"


def test_a_custom_call_of_a_tool_of_the_request_is_for_the_caller_even_before_an_answer() -> None:
    for reply in read_all(X_SEARCH, message("while you look"), tools=CUSTOM_TOOLS)[:2]:
        assert ([found.name for found in reply.tool_calls], reply.stop.reason) == (["x_keyword_search"], "tool_calls")


PATCH = {"type": "update_file", "path": "a.py", "diff": "@@"}
SHELL = {"commands": ["ls"], "timeout_ms": 10, "max_output_length": 99}
CHECKS = [{"id": "s1", "code": "c", "message": "m"}]
PIXEL = Image(data=b"png")
# The item of a call, its name and arguments, its result, and the item of the result.
CLIENT: list[tuple[dict[str, Any], str, dict[str, Any], ToolResult, dict[str, Any]]] = [
    (
        {"type": "apply_patch_call", "operation": PATCH},
        "apply_patch",
        PATCH,
        ToolResult("c1", "done"),
        {"type": "apply_patch_call_output", "status": "completed", "output": "done"},
    ),
    (
        {"type": "apply_patch_call", "operation": PATCH},
        "apply_patch",
        PATCH,
        ToolResult("c1", "no such file", is_error=True),
        {"type": "apply_patch_call_output", "status": "failed", "output": "no such file"},
    ),
    (
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        "local_shell",
        {"type": "exec", "command": ["ls"], "env": {}},
        ToolResult("c1", "a.py"),
        {"type": "local_shell_call_output", "output": "a.py"},
    ),
    (
        {"type": "shell_call", "action": SHELL, "environment": {"type": "local"}},
        "shell",
        SHELL,
        ToolResult("c1", "a.py"),
        {
            "type": "shell_call_output",
            "output": [{"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            "max_output_length": 99,
        },
    ),
    (
        {"type": "shell_call", "action": SHELL, "environment": None},
        "shell",
        SHELL,
        ToolResult("c1", '[{"stdout": "a", "stderr": "b", "outcome": {"type": "timeout"}}]'),
        {
            "type": "shell_call_output",
            "output": [{"stdout": "a", "stderr": "b", "outcome": {"type": "timeout"}}],
            "max_output_length": 99,
        },
    ),
    (
        {"type": "computer_call", "action": {"type": "click", "x": 1, "y": 2}, "pending_safety_checks": CHECKS},
        "computer",
        {"action": {"type": "click", "x": 1, "y": 2}, "pending_safety_checks": CHECKS},
        ToolResult("c1", (PIXEL,)),
        {
            "type": "computer_call_output",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,cG5n"},
            "acknowledged_safety_checks": CHECKS,
        },
    ),
    (
        {"type": "computer_call", "action": {"type": "screenshot"}, "pending_safety_checks": []},
        "computer",
        {"type": "screenshot"},
        ToolResult("c1", (PIXEL,)),
        {
            "type": "computer_call_output",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,cG5n"},
        },
    ),
    (
        {"type": "tool_search_call", "arguments": {"query": "mail"}, "execution": "client"},
        "tool_search",
        {"query": "mail"},
        ToolResult("c1", '{"tools": [{"type": "function", "name": "send"}]}'),
        {
            "type": "tool_search_output",
            "execution": "client",
            "status": "completed",
            "tools": [{"type": "function", "name": "send"}],
        },
    ),
]
CLIENT_IDS = [f"{item['type']}-{place}" for place, (item, *_) in enumerate(CLIENT)]


def test_the_type_of_an_item_may_be_escaped() -> None:
    entry = json.dumps({"type": "shell_call", "call_id": "c1", "action": SHELL}).replace("_call", "\\u005fcall", 1)
    called = ToolCall("c1", "shell", SHELL, seals=(Seal("item", "", None, entry),))
    history = (Message("user", (Text("go"),)), Message("assistant", (called,)))
    request, _ = encode(Prompt(history), target())
    assert json.loads(request.body)["input"][1]["type"] == "shell_call"


@pytest.mark.parametrize(("item", "name", "arguments", "result", "output"), CLIENT, ids=CLIENT_IDS)
def test_a_tool_of_the_provider_that_the_caller_runs_is_a_call_and_its_result_goes_back(
    item: dict[str, Any], name: str, arguments: dict[str, Any], result: ToolResult, output: dict[str, Any]
) -> None:
    item = {"id": "it_1", "call_id": "c1", "status": "completed", **item}
    for reply in read_all(item):
        (found,) = reply.tool_calls
        assert (found.id, found.name, found.arguments, found.custom) == ("c1", name, arguments, False)
        assert (reply.stop.reason, reply.outcome, reply.warnings) == ("tool_calls", "tool_calls", ())
        history = (Message("user", (Text("go"),)), said(reply), Message("tool", (result,)))
        for saved in (history, msgspec.json.decode(msgspec.json.encode(history), type=tuple[Message, ...])):
            request, notices = encode(Prompt(saved), target())
            sent = json.loads(request.body)["input"]
            given = {field: value for field, value in item.items() if value is not None and field != "id"}
            assert ([{**sent[1], "id": "it_1"}, sent[2]], notices) == (
                [{**given, "id": "it_1"}, {**output, "call_id": "c1"}],
                (),
            )
            # The same items given by a caller are the same call and result.
            again = encode(Prompt(import_items(sent)), target())[0].body
            assert json.loads(again)["input"] == sent


@pytest.mark.parametrize(
    "item",
    [
        {"type": "tool_search_call", "execution": "server", "arguments": {}},
        {"type": "shell_call", "action": SHELL, "environment": {"type": "container_reference", "container_id": "k"}},
    ],
    ids=lambda item: item["type"],
)
def test_the_same_tool_run_by_the_provider_is_no_call(item: dict[str, Any]) -> None:
    for reply in read_all({"id": "it_1", "call_id": "c1", **item}, message("done")):
        assert (reply.tool_calls, reply.text, reply.stop.reason) == ((), "done", "stop")
        assert [part.name for part in reply.parts if isinstance(part, ServerTool)] == [item["type"]]


@pytest.mark.parametrize("kind", ["computer_call", "tool_search_call"])
def test_a_result_that_lacks_what_its_item_needs_is_still_sent_with_a_notice(kind: str) -> None:
    item = {"type": kind, "id": "it_1", "call_id": "c1", "execution": "client", "action": {"type": "wait"}}
    (reply, *_) = read_all(item)
    result = ToolResult("c1", "the tool was not run")
    history = (Message("user", (Text("go"),)), said(reply), Message("tool", (result,)))
    request, notices = encode(Prompt(history), target())
    assert json.loads(request.body)["input"][2]["call_id"] == "c1"
    assert [notice.code for notice in notices] in (["result_without_picture"], ["result_without_tools"])


def test_functions_beside_such_calls_keep_their_results() -> None:
    item = {"type": "apply_patch_call", "id": "it_1", "call_id": "c1", "operation": PATCH}
    (reply, *_) = read_all(call(), item)
    results = (ToolResult("call_abc", "sunny"), ToolResult("c1", "done"))
    history = (Message("user", (Text("go"),)), said(reply), Message("tool", results))
    sent = json.loads(encode(Prompt(history), target())[0].body)["input"]
    assert [each["type"] for each in sent[3:]] == ["function_call_output", "apply_patch_call_output"]
