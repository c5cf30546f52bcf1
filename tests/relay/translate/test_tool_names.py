"""Tools of a caller in another dialect, and their calls on the way back: namespaces, free text, odd names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects.server_half import CallerTool
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.relay.translate.tool_names import map_tools
from asides.relay.translate.translate_fields import UntranslatableField, find_tool_map
from asides.relay.written_exchange import open_writer
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, ToolCallDelta
from asides.values.messages import Prompt
from asides.values.tools import Tool
from tests.relay.translated import TARGETS, Translated, read, target_of, translate

SPAWN = {
    "type": "function",
    "name": "spawn",
    "description": "Starts.",
    "parameters": {"type": "object", "properties": {}},
}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
PATCH = {"type": "custom", "name": "patch", "description": "Patches.", "format": GRAMMAR}
TOOLS = [
    {"type": "function", "name": "run", "parameters": {"type": "object", "properties": {}}, "strict": False},
    {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [SPAWN, {**PATCH, "name": "edit"}]},
    PATCH,
    {"type": "web_search"},
    {"type": "local_shell"},
]
BASE: dict[str, Any] = {"model": "m", "input": "hi", "stream": True, "tools": TOOLS}
CALL = "call_9hQvL2mXbT7sYwKdPz31RfGc"
OTHERS = sorted(set(TARGETS) - {"openai_responses"})


@pytest.mark.parametrize("to", OTHERS)
def test_tools_of_namespaces_and_of_free_text_are_functions_elsewhere(to: str) -> None:
    translated = translate("openai_responses", BASE, to)
    own = ["web_search"] if to == "anthropic" else []
    assert [tool.name for tool in translated.prompt.tools] == ["run", "agents__spawn", "agents__edit", "patch", *own]
    assert "start: /.+/" in translated.prompt.tools[3].description
    assert "'local_shell'" in translated.told
    assert ("'web_search'" in translated.told) is not bool(own)
    assert translated.find_refusal() is None


def test_in_their_own_dialect_tools_stay_as_they_are() -> None:
    translated = translate("openai_responses", BASE, "openai_responses")
    assert translated.body["tools"] == TOOLS
    assert find_tool_map(read("openai_responses", BASE), "openai_responses", target_of("openai_responses")).sent == {}


def test_a_host_that_speaks_the_dialect_but_knows_only_functions_gets_functions() -> None:
    target = find_target("openai-compatible:m", base_url="http://localhost:9/v1").provider.with_dialect(
        "openai_responses"
    )
    assert target is not None
    host = Target(target, "m", "http://localhost:9/v1")
    served = read("openai_responses", BASE)
    translated = Translated(served, "openai_responses", host)
    assert [tool.get("name", tool["type"]) for tool in translated.body["tools"]] == [
        *("run", "agents__spawn", "agents__edit", "patch", "web_search", "local_shell"),
    ]
    assert find_tool_map(served, "openai_responses", host).received["agents__spawn"] == CallerTool("spawn", "agents")


def write_calls(*events: Event, to: str = "openai_chat", **more: Any) -> list[dict[str, Any]]:
    """The items of the response to a reply with these events."""
    served = read("openai_responses", {**BASE, **more})
    writer = open_writer(served, "openai_responses", target_of(to))
    data = b"".join(
        writer.write([event]) for event in (ReplyStarted("x"), *events, ReplyEnded(StopReason("tool_calls")))
    )
    if not served.stream:
        return list(json.loads(data)["output"])
    documents = [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: ")]
    done = [document["item"] for document in documents if document["type"] == "response.output_item.done"]
    assert documents[-1]["response"]["output"] == done
    added = [document["item"] for document in documents if document["type"] == "response.output_item.added"]
    assert [(item["type"], item.get("name"), item.get("namespace")) for item in added] == [
        (item["type"], item.get("name"), item.get("namespace")) for item in done
    ]
    return done


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_comes_back_with_its_namespace(stream: bool) -> None:
    pieces = [
        ToolCallDelta(0, CALL, "agents__spawn"),
        ToolCallDelta(0, arguments='{"a":'),
        ToolCallDelta(0, arguments="1}"),
    ]
    (item,) = write_calls(*pieces, stream=stream)
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "agents", "spawn")
    assert (item["call_id"], item["arguments"]) == (CALL, '{"a":1}')


@pytest.mark.parametrize("called", ["spawn", "agents.spawn"])
def test_a_model_may_leave_the_namespace_out(called: str) -> None:
    (item,) = write_calls(ToolCallDelta(0, CALL, called, "{}"))
    assert (item["namespace"], item["name"]) == ("agents", "spawn")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("sent", "name", "namespace"), [("patch", "patch", None), ("agents__edit", "edit", "agents")])
def test_a_call_with_free_text_comes_back_as_text(sent: str, name: str, namespace: str | None, stream: bool) -> None:
    text = '*** Begin "Patch"\n+ä'
    arguments = json.dumps({"input": text})
    pieces: list[Event] = [
        ToolCallDelta(0, CALL, sent, arguments[:3]),
        *(ToolCallDelta(0, arguments=each) for each in arguments[3:]),
        TextDelta("done", 1),
    ]
    call, message = write_calls(*pieces, stream=stream)
    assert (call["type"], call["name"], call.get("namespace")) == ("custom_tool_call", name, namespace)
    assert (call["call_id"], call["input"]) == (CALL, text)
    assert message["content"][0]["text"] == "done"


def test_free_text_that_is_no_object_stays_as_it_came() -> None:
    (call,) = write_calls(ToolCallDelta(0, CALL, "patch", "*** Begin"))
    assert call["input"] == "*** Begin"


@pytest.mark.parametrize("to", OTHERS)
def test_the_history_has_the_names_that_were_sent(to: str) -> None:
    items = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": CALL, "name": "spawn", "namespace": "agents", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": f"{CALL}2", "name": "patch", "input": "*** Begin"},
        {"type": "function_call_output", "call_id": CALL, "output": "ok"},
        {"type": "custom_tool_call_output", "call_id": f"{CALL}2", "output": "patched"},
    ]
    translated = translate("openai_responses", {**BASE, "input": items}, to)
    calls = translated.prompt.messages[1].tool_calls
    assert [(call.name, call.arguments) for call in calls] == [("agents__spawn", {}), ("patch", {"input": "*** Begin"})]
    sent = json.dumps(translated.body)
    assert "namespace" not in sent
    assert all(word in sent for word in ("ok", "patched"))
    assert translated.find_refusal() is None


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("required", "required"),
        ({"type": "function", "name": "run"}, "run"),
        ({"type": "function", "name": "spawn", "namespace": "agents"}, "agents__spawn"),
        ({"type": "custom", "name": "patch"}, "patch"),
    ],
)
def test_the_choice_of_a_tool_names_what_was_sent(choice: Any, expected: str) -> None:
    translated = translate("openai_responses", {**BASE, "tool_choice": choice}, "openai_chat")
    assert translated.prompt.tool_choice == expected


_ASKED: dict[str, dict[str, Any]] = {
    "openai_responses": {"model": "m", "input": "hi"},
    "anthropic": {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]},
    "openai_chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
_SEARCH = {"type": "web_search_20250305", "name": "web_search"}
_PLAIN = {"name": "f", "input_schema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("caller", "more"),
    [
        ("openai_responses", {"tools": [{"type": "web_search"}]}),
        ("openai_responses", {"tools": [{"type": "mcp", "server_label": "x", "server_url": "https://x.example"}]}),
        ("openai_responses", {"tools": TOOLS, "tool_choice": {"type": "web_search"}}),
        ("anthropic", {"tools": [_SEARCH]}),
        ("anthropic", {"tools": [_SEARCH, _PLAIN], "tool_choice": {"type": "tool", "name": "web_search"}}),
        ("anthropic", {"mcp_servers": [{"type": "url", "url": "https://x.example", "name": "x"}]}),
        ("openai_chat", {"web_search_options": {}}),
        ("gemini", {"tools": [{"googleSearch": {}}]}),
    ],
)
@pytest.mark.parametrize("to", ["ollama", "cohere"])
def test_a_request_that_depends_on_a_tool_of_its_provider_is_refused(caller: str, more: Any, to: str) -> None:
    """A model that answers from memory looks like one that has searched."""
    with pytest.raises(UntranslatableField, match=r"[sS]earch|mcp"):
        _ = translate(caller, {**_ASKED[caller], **more}, to).prompt


def test_a_tool_that_the_request_does_not_depend_on_is_left_out_with_a_notice() -> None:
    for more in ({"tool_choice": {"type": "none"}, "tools": [_SEARCH]}, {"tools": [_SEARCH, _PLAIN]}):
        assert "web_search" in translate("anthropic", {**_ASKED["anthropic"], **more}, "ollama").told
    assert translate("anthropic", {**_ASKED["anthropic"], "mcp_servers": []}, "ollama").prompt.messages


def test_a_choice_of_some_tools_leaves_only_those() -> None:
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "run"}]}
    translated = translate("openai_responses", {**BASE, "tool_choice": allowed}, "anthropic")
    assert [tool.name for tool in translated.prompt.tools] == ["run"]
    assert translated.prompt.tool_choice == "required"
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    tools = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}, {"name": "h"}]}, {"googleSearch": {}}]
    config = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}, "retrievalConfig": {}}
    body = {"contents": contents, "tools": tools, "toolConfig": config}
    translated = translate("gemini", body, "anthropic")
    assert [tool.name for tool in translated.prompt.tools] == ["f", "g"]
    assert translated.prompt.tool_choice == "required"
    assert all(name in translated.told for name in ("web_search was left out", "retrievalConfig"))
    own = translate("gemini", body, "gemini").body["toolConfig"]
    assert own["functionCallingConfig"]["allowedFunctionNames"] == ["f", "g"]


# --- names ------------------------------------------------------------------------------------------------------------


def map_names(names: list[str], to: str) -> dict[str, str]:
    tools, _, _ = map_tools(Prompt((), tools=tuple(Tool(name) for name in names)), "gemini", to)
    return dict(zip(names, (tool.name for tool in tools), strict=True))


def test_names_that_do_not_fit_are_replaced_and_no_two_become_one() -> None:
    names = ["plain", "a.b", "a:b", "a_b", "x" * 70, "x" * 71, "9lives", "wörter"]
    for to in sorted(TARGETS):
        sent = map_names(names, to)
        assert len(set(sent.values())) == len(names)
        assert sent["plain"] == "plain"
        assert sent == map_names(names, to)
    assert map_names(names, "gemini")["a.b"] == "a.b"
    assert map_names(names, "anthropic")["x" * 70] == "x" * 70
    chat = map_names(names, "openai_chat")
    assert all(len(name) <= 64 for name in chat.values())
    assert chat["a_b"] == "a_b" != chat["a.b"]


def test_a_tool_that_has_the_name_of_a_flat_one_keeps_it() -> None:
    plain = {"type": "function", "name": "agents__spawn", "parameters": {"type": "object", "properties": {}}}
    served = read("openai_responses", {**BASE, "tools": [*TOOLS, plain]})
    names = find_tool_map(served, "openai_responses", target_of("openai_chat"))
    tools = Translated(served, "openai_responses", target_of("openai_chat")).prompt.tools
    assert len({tool.name for tool in tools}) == len(tools)
    assert names.find_sent("agents__spawn") == "agents__spawn"
    assert names.received[names.find_sent("spawn", "agents")] == CallerTool("spawn", "agents")


def test_a_replaced_name_comes_back_in_every_dialect_of_a_caller() -> None:
    tools = [{"functionDeclarations": [{"name": "my.tool"}]}]
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": tools}
    served = read("gemini", body)
    target = target_of("openai_chat")
    (sent,) = [tool.name for tool in Translated(served, "gemini", target).prompt.tools]
    assert sent != "my.tool"
    writer = open_writer(served, "gemini", target)
    data = writer.write([ReplyStarted("x"), ToolCallDelta(0, CALL, sent, "{}"), ReplyEnded(StopReason("tool_calls"))])
    (part,) = json.loads(data)["candidates"][0]["content"]["parts"]
    assert part["functionCall"]["name"] == "my.tool"


def test_tools_of_other_dialects_providers_are_named() -> None:
    base = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
    tools = [
        {"type": "web_search_20250305", "name": "web_search"},
        {
            "name": "f",
            "input_schema": {"type": "object", "properties": {}},
            "cache_control": {"type": "ephemeral"},
            "strict": True,
        },
        {"type": "custom", "name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]
    translated = translate("anthropic", {**base, "tools": tools, "tool_choice": {"type": "auto"}}, "openai_chat")
    assert [tool.name for tool in translated.prompt.tools] == ["f", "g"]
    assert translated.prompt.tools[0].cache is True
    assert translated.body["tools"][0]["function"]["strict"] is True
    assert "web_search (web_search_20250305)" in translated.told
    assert translated.prompt.tool_choice == "auto"
    config = {
        "tools": [
            {"systemTool": {"name": "nova_grounding"}},
            {"toolSpec": {"name": "f", "inputSchema": {"json": {}}}},
            {"cachePoint": {"type": "default"}},
        ]
    }
    body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}], "toolConfig": config}
    translated = translate("bedrock", body, "openai_chat")
    assert [tool.name for tool in translated.prompt.tools] == ["f"]
    assert "nova_grounding" in translated.told
    assert "cachePoint" not in translated.told
