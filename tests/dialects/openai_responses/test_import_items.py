"""Input items as messages: each kind of item, one message for a turn, and errors that name the place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects.openai_responses.import_items import import_items
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, system, user
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought


def entry(item: dict[str, Any], value: str = "") -> tuple[Seal, ...]:
    text = json.dumps(item, separators=(",", ":"))
    return (Seal("encrypted" if value else "item", value, None, text),)


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "a"}, {"text": "b"}], "encrypted_content": "e"}
RAW = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]}
EMPTY = {"type": "reasoning", "id": "rs_2", "summary": []}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}


@pytest.mark.parametrize(
    ("item", "part"),
    [
        (THOUGHT, Thought("a\n\nb", "summary", "responses_summary", None, entry(THOUGHT, "e"), "summary")),
        (RAW, Thought("raw", "raw", "responses_raw", None, entry(RAW), "reasoning_text")),
        (EMPTY, Thought("", "hidden", "responses_raw", None, entry(EMPTY), "reasoning_text")),
        (CALL, ToolCall("c1", "f", {"a": 1}, None, entry(CALL))),
        ({"type": "function_call", "call_id": "c1", "name": "f"}, ToolCall("c1", "f")),
        (
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{a"},
            ToolCall("c1", "f", {}, "{a"),
        ),
        (
            {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "{}"},
            ToolCall("c1", "f", {}, "{}", custom=True),
        ),
        (SEARCH, ServerTool("web_search_call", "ws_1", "completed", json.dumps(SEARCH, separators=(",", ":")))),
        ({"type": "hologram"}, UnknownPart('{"type":"hologram"}')),
        ({"role": "assistant", "content": "hi"}, Text("hi")),
        (
            {"role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "hi"}]},
            Text(
                "hi",
                entry({"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text"}]}),
            ),
        ),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, Refusal("no")),
    ],
)
def test_an_item_of_the_model_is_a_part(item: dict[str, Any], part: Part) -> None:
    assert import_items([item]) == (assistant(part),)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "input_text", "text": "hi"}, Text("hi")),
        ({"type": "input_image", "image_url": "https://a.example"}, Image(url="https://a.example")),
        (
            {"type": "input_image", "image_url": "data:image/jpeg;base64,eA==", "detail": "low"},
            Image(data=b"x", media_type="image/jpeg", detail="low"),
        ),
        ({"type": "input_file", "file_id": "file-1"}, File(id="file-1")),
        ({"type": "input_file", "file_url": "https://a.example", "filename": "a"}, File("a", url="https://a.example")),
        (
            {"type": "input_file", "filename": "a", "file_data": "data:text/plain;base64,eA=="},
            File("a", data=b"x", media_type="text/plain"),
        ),
        ({"type": "input_audio"}, UnknownPart('{"type":"input_audio"}')),
    ],
)
def test_a_part_of_a_user(part: dict[str, Any], expected: Part) -> None:
    assert import_items([{"role": "user", "content": [part]}]) == (Message("user", (expected,)),)


def test_items_of_one_turn_are_one_message_and_speakers_begin_new_ones() -> None:
    items: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "?"},
        {"role": "user", "content": "!"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "f"},
        {"type": "function_call", "call_id": "c2", "name": "f"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "two"}, {"type": "new"}],
        },
        {"role": "assistant", "content": "done"},
    ]
    thought = Thought("", "hidden", "responses_raw", None, entry(items[3]), "reasoning_text")
    assert import_items(items) == (
        system("Be brief."),
        user("?"),
        user("!"),
        assistant(thought, ToolCall("c1", "f"), ToolCall("c2", "f")),
        Message("tool", (ToolResult("c1", "one"), ToolResult("c2", (Text("two"), Text('{"type":"new"}'))))),
        assistant("done"),
    )


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (3, r"input\[1\] is not an object"),
        ({"type": 3}, "type is not text"),
        ({"role": "robot", "content": ""}, "role is user, assistant, system or developer"),
        ({"role": "user", "content": 3}, "content is a text, or a list of parts"),
        ({"role": "user", "content": [3]}, "a content part is not an object"),
        ({"role": "user", "content": [{}]}, "a content part has no type"),
        ({"role": "user", "content": [{"type": "input_image"}]}, "an input_image has no image_url"),
        (
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,%"}]},
            "is not valid base64",
        ),
        ({"role": "user", "content": [{"type": "input_file"}]}, "neither file_data, file_url nor file_id"),
        ({"type": "function_call", "name": "f"}, "a call has a name and a call_id"),
        ({"type": "function_call", "name": 3}, "name is not text"),
        ({"type": "function_call_output", "output": ""}, "has no call_id"),
        ({"type": "function_call_output", "call_id": "c"}, "output is a text, or a list of parts"),
    ],
)
def test_a_wrong_item_is_named_with_its_place(item: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=r"^input\[1\]") as caught:
        import_items([{"role": "user", "content": "?"}, item])
    assert caught.match(says)
