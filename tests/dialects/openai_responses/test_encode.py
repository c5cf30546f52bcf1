"""Encode prompts as Responses requests: each field of the body, each part as an item, and the notices.

The requirements on requests, by id, are in tests/dialects/openai_responses/test_required_requests.py.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.openai_responses.encode import build_url, encode, encode_items
from asides.providers.provider import ModelRule, Provider, Quirks, Target
from asides.values.errors import ConfigError, Unsupported
from asides.values.messages import Message, OutputSchema, Prompt, ProviderState, Sampling, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool
from tests.responses import target

ENCRYPTED = "reasoning.encrypted_content"
PLAIN = Quirks(path="/responses")
STATELESS: dict[str, Any] = {"store": False, "include": [ENCRYPTED]}


def body_of(to: Target | None = None, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    """The body without the model and the input, and the codes of the notices."""
    given: dict[str, Any] = {"messages": (user("?"),), "stream": False, **fields}
    request, notices = encode(Prompt(**given), to or target())
    body = json.loads(request.body)
    assert body.pop("model") == "made-up"
    assert body.pop("input") == [{"role": "user", "content": "?"}]
    return body, [notice.code for notice in notices]


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({}, STATELESS),
        ({"system": "Be brief."}, {"instructions": "Be brief.", **STATELESS}),
        ({"system": "  "}, STATELESS),
        ({"stream": True}, {"stream": True, **STATELESS}),
        (
            {"max_tokens": 9, "user": "u", "metadata": {"a": "b"}},
            {"max_output_tokens": 9, "user": "u", "metadata": {"a": "b"}, **STATELESS},
        ),
        ({"output": "json"}, {"text": {"format": {"type": "json_object"}}, **STATELESS}),
        (
            {"output": OutputSchema("sky", {"type": "object"})},
            {
                "text": {
                    "format": {"type": "json_schema", "name": "sky", "schema": {"type": "object"}, "strict": True}
                },
                **STATELESS,
            },
        ),
        (
            {"tools": (Tool("f", "d"),), "tool_choice": "f"},
            {
                "tools": [
                    {
                        "type": "function",
                        "name": "f",
                        "description": "d",
                        "parameters": Tool("f").parameters,
                        "strict": False,
                    }
                ],
                "tool_choice": {"type": "function", "name": "f"},
                **STATELESS,
            },
        ),
        ({"thinking": Thinking(effort="high")}, {"reasoning": {"effort": "high", "summary": "auto"}, **STATELESS}),
        ({"thinking": Thinking(effort="high", show="none")}, {"reasoning": {"effort": "high"}, **STATELESS}),
        ({"thinking": Thinking(summary="detailed")}, {"reasoning": {"summary": "detailed"}, **STATELESS}),
        ({"thinking": Thinking(mode="off")}, {"reasoning": {"effort": "none"}, "store": False}),
        ({"state": ProviderState(store=True)}, {"store": True, "include": [ENCRYPTED]}),
        ({"state": ProviderState(resume=True)}, {"store": True, "include": [ENCRYPTED]}),
        ({"state": ProviderState(previous_response_id="r1")}, {"previous_response_id": "r1"}),
        ({"state": ProviderState(conversation="c1", truncation="auto")}, {"conversation": "c1", "truncation": "auto"}),
        ({"state": ProviderState(include=("logprobs",))}, {"store": False, "include": ["logprobs", ENCRYPTED]}),
        (
            {"state": ProviderState(context="all_turns", mode="pro")},
            {"reasoning": {"context": "all_turns", "mode": "pro"}, **STATELESS},
        ),
        ({"extra": {"store": True, "novel": 1}}, {"store": True, "include": [ENCRYPTED], "novel": 1}),
    ],
)
def test_each_setting_is_a_field_of_the_body(fields: dict[str, Any], body: dict[str, Any]) -> None:
    assert body_of(**fields) == (body, [])


@pytest.mark.parametrize(
    ("to", "fields", "body"),
    [
        (target(PLAIN), {}, {}),
        (target(PLAIN), {"thinking": Thinking(effort="low")}, {"reasoning": {"effort": "low", "summary": "auto"}}),
        (
            target(Quirks(path="/responses", raw_reasoning="shown")),
            {"thinking": Thinking(effort="low")},
            {"reasoning": {"effort": "low"}},
        ),
        (target(rule=ModelRule(thinking="never")), {}, {"store": False}),
        (target(Quirks(path="/responses", fields=(("expose", True),))), {}, {"expose": True}),
        (target(Quirks(path="/responses", fields=(("expose", True),)), ModelRule(thinking="never")), {}, {}),
    ],
)
def test_a_host_is_asked_for_what_it_has(to: Target, fields: dict[str, Any], body: dict[str, Any]) -> None:
    assert body_of(to, **fields) == (body, [])


def test_settings_that_this_endpoint_lacks_are_left_out_with_a_notice() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.9, top_logprobs=2, seed=7)
    body, codes = body_of(sampling=sampling, stop=("END",))
    assert body == {"temperature": 0.5, "top_p": 0.9, "top_logprobs": 2, **STATELESS}
    assert codes == ["setting_dropped", "setting_dropped"]


def test_a_parent_and_a_conversation_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match="previous_response_id and conversation both"):
        body_of(state=ProviderState(previous_response_id="r1", conversation="c1"))


@pytest.mark.parametrize(
    ("base_url", "quirks", "url"),
    [
        ("https://a.example/v1", Quirks(), "https://a.example/v1/responses"),
        ("https://a.example/v1/responses/", Quirks(), "https://a.example/v1/responses"),
        ("https://a.example/v1", Quirks(path="/own"), "https://a.example/v1/own"),
        ("https://a.example/openai/deployments/mine", Quirks(), "https://a.example/openai/responses"),
    ],
)
def test_the_address_of_requests(base_url: str, quirks: Quirks, url: str) -> None:
    assert build_url(Target(Provider(name="example", quirks=quirks), "m", base_url)) == url


# --- items --------------------------------------------------------------------------------------------------------


def items_of(*messages: Message, to: Target | None = None, **fields: Any) -> tuple[list[Any], list[Notice]]:
    notices: list[Notice] = []
    return encode_items(Prompt(messages, **fields), to or target(), notices), notices


def entry(value: str = "", **item: Any) -> tuple[Seal, ...]:
    return (Seal("encrypted" if value else "item", value, None, json.dumps(item)),)


PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,eA=="}
STORED = {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}
SIGNED = Thought("plan", "summary", seals=entry("e", **STORED))
SPOKEN = Text("42", entry(type="message", id="msg_1", phase="commentary", content=[{"type": "output_text", "n": 1}]))
CALL = ToolCall("c1", "f", {"a": 1}, seals=entry(type="function_call", id="fc_1", name="f", arguments='{"a": 1}'))


@pytest.mark.parametrize(
    ("message", "items"),
    [
        (system("Be brief."), [{"role": "system", "content": "Be brief."}]),
        (user("a"), [{"role": "user", "content": "a"}]),
        (user("a", Image(data=b"x")), [{"role": "user", "content": [{"type": "input_text", "text": "a"}, PICTURE]}]),
        (
            user(Image(url="https://a.example", detail="low")),
            [{"role": "user", "content": [{"type": "input_image", "image_url": "https://a.example", "detail": "low"}]}],
        ),
        (user(File(id="f1")), [{"role": "user", "content": [{"type": "input_file", "file_id": "f1"}]}]),
        (
            user(File(url="https://a.example")),
            [{"role": "user", "content": [{"type": "input_file", "file_url": "https://a.example"}]}],
        ),
        (
            user(File("a.txt", b"x", media_type="text/plain")),
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,eA=="}
                    ],
                }
            ],
        ),
        (assistant("a"), [{"role": "assistant", "content": "a"}]),
        (
            assistant("a", Refusal("no")),
            [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "no"}],
                }
            ],
        ),
        (
            assistant(SIGNED, SPOKEN),
            [
                {**STORED, "summary": []},
                {
                    "type": "message",
                    "role": "assistant",
                    "id": "msg_1",
                    "phase": "commentary",
                    "content": [{"type": "output_text", "n": 1, "text": "42"}],
                },
            ],
        ),
        (
            assistant(SIGNED, CALL),
            [
                {**STORED, "summary": []},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
            ],
        ),
        # An id binds an item to the reasoning before it, so a turn without its reasoning goes without ids.
        (assistant(CALL), [{"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}]),
        (
            assistant(Thought("plan", seals=(Seal("encrypted", "e"),)), ToolCall("c1", "f", {"a": 1})),
            [
                {"type": "reasoning", "summary": [], "encrypted_content": "e"},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
            ],
        ),
        (
            assistant(ToolCall("c1", "g", {}, "free", custom=True)),
            [{"type": "custom_tool_call", "call_id": "c1", "name": "g", "input": "free"}],
        ),
        (assistant(ServerTool("web_search_call", json='{"type":"web_search_call"}')), [{"type": "web_search_call"}]),
        (assistant(UnknownPart('{"type":"hologram"}')), [{"type": "hologram"}]),
        (
            Message("tool", (ToolResult("c1", "42"),)),
            [{"type": "function_call_output", "call_id": "c1", "output": "42"}],
        ),
        (
            Message("tool", (ToolResult("c1", (Text("a"), Image(data=b"x"))),)),
            [
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": [{"type": "input_text", "text": "a"}, PICTURE],
                }
            ],
        ),
    ],
)
def test_each_message_is_written_as_items(message: Message, items: list[dict[str, Any]]) -> None:
    assert items_of(message) == (items, [])


def test_arguments_that_were_changed_are_written_anew() -> None:
    changed = ToolCall("c1", "f", {"a": 2}, seals=CALL.seals)
    assert items_of(assistant(changed))[0] == [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":2}'}
    ]


def test_the_result_of_a_custom_call_is_custom() -> None:
    messages = assistant(ToolCall("c1", "g", {}, "free", custom=True)), Message("tool", (ToolResult("c1", "42"),))
    assert items_of(*messages)[0][-1]["type"] == "custom_tool_call_output"


@pytest.mark.parametrize(
    ("parts", "to", "sent", "says"),
    [
        ((Thought("plan"), Text("a")), None, 0, "has nothing that this endpoint takes back"),
        (
            (Thought("plan", seals=entry(type="reasoning", id="rs_1")), Text("a")),
            None,
            0,
            "has no encrypted content, and nothing is stored",
        ),
        ((Thought("plan", seals=entry(type="reasoning", id="rs_1")), Text("a")), target(PLAIN), 1, ""),
        ((Thought("plan"), Text("a")), target(PLAIN), 1, ""),
        ((Text("a"), SIGNED), None, 0, "a trailing thought"),
    ],
)
def test_a_thought_goes_back_where_the_endpoint_takes_it(
    parts: tuple[Part, ...], to: Target | None, sent: int, says: str
) -> None:
    items, notices = items_of(assistant(*parts), to=to)
    assert sum(item.get("type") == "reasoning" for item in items) == sent
    assert [notice.code for notice in notices] == ["reasoning_not_sent"] * (not sent)
    assert all(says in notice.detail for notice in notices)


def test_a_stored_conversation_keeps_ids_without_encrypted_content() -> None:
    thought = Thought("plan", seals=entry(type="reasoning", id="rs_1"))
    items, notices = items_of(assistant(thought, CALL), state=ProviderState(store=True))
    assert ([item["id"] for item in items], notices) == (["rs_1", "fc_1"], [])


def test_a_host_may_want_calls_together() -> None:
    turn = assistant(ToolCall("c1", "f"), "I look.", ToolCall("c2", "f"))
    grouped = items_of(turn, to=target(Quirks(path="/responses", call_order="grouped")))[0]
    assert [item.get("call_id") for item in grouped] == [None, "c1", "c2"]
    assert [item.get("call_id") for item in items_of(turn)[0]] == ["c1", None, "c2"]


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(Unsupported, match="neither data, an address nor an id"):
        items_of(user(msgspec.convert({"type": "file"}, File)))


def test_a_host_that_refuses_blank_messages_gets_them_only_where_reasoning_needs_them() -> None:
    strict = target(Quirks(path="/responses", encrypted_reasoning=True, enforces=("content_elements",)))
    seal = Seal("encrypted", "gAAA", origin=None)
    for parts, kinds in (
        ((Text(""),), []),
        ((Text(" \n"), ToolCall("c1", "look", {})), ["function_call"]),
        ((Thought("", "hidden", seals=(seal,)), Text("")), ["reasoning", "message"]),
    ):
        history = Prompt((user("?"), Message("assistant", parts), user("!")))
        items = encode_items(history, strict, [])
        assert [item.get("type", "message") for item in items[1:-1]] == kinds
        # OpenAI takes blank messages.
        assert len(encode_items(history, target(), [])) == 2 + len(parts)
