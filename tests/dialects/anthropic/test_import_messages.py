"""Turns of content blocks, as clients write them, as messages: each block, and errors that name the place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects.anthropic.import_messages import import_messages, import_texts
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, user
from asides.values.parts import File, Image, Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought

CACHED = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        ({"type": "text", "text": "a", **CACHED}, Text("a", cache=True)),
        (
            {"type": "text", "text": "a", "citations": [{"b": 1}]},
            Text("a", (Seal("citations", "", None, '[{"b":1}]'),)),
        ),
        ({"type": "text", "text": "a", "citations": None}, Text("a")),
        (
            {"type": "thinking", "thinking": "so", "signature": "s"},
            Thought("so", "summary", "block", None, (Seal("signature", "s"),), "thinking"),
        ),
        ({"type": "thinking", "thinking": ""}, Thought("", "hidden", "block", None, (), "thinking")),
        ({"type": "redacted_thinking", "data": "r"}, Thought("", "hidden", "block", None, (Seal("redacted", "r"),))),
        ({"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}, ToolCall("c1", "f", {"a": 1})),
        ({"type": "tool_use", "id": "c1", "name": "f", "caller": {"type": "direct"}}, ToolCall("c1", "f")),
        (
            {"type": "tool_use", "id": "c1", "name": "f", "caller": {"type": "code"}},
            ToolCall("c1", "f", seals=(Seal("caller", "", None, '{"type":"code"}'),)),
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "eA=="}, **CACHED},
            Image(data=b"x", media_type="image/jpeg", cache=True),
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://a"}}, Image(url="https://a")),
        (
            {"type": "document", "title": "t", "source": {"type": "base64", "media_type": "text/csv", "data": "eA=="}},
            File("t", b"x", media_type="text/csv"),
        ),
        ({"type": "document", "source": {"type": "text", "data": "x"}}, File(data=b"x", media_type="text/plain")),
        ({"type": "document", "source": {"type": "url", "url": "https://a"}}, File(url="https://a")),
        ({"type": "document", "source": {"type": "file", "file_id": "f1"}}, File(id="f1")),
        (
            {"type": "server_tool_use", "id": "s1"},
            ServerTool("server_tool_use", "s1", None, '{"type":"server_tool_use","id":"s1"}'),
        ),
        ({"type": "novel"}, UnknownPart('{"type":"novel"}')),
    ],
)
def test_a_block_is_a_part(block: dict[str, Any], part: Part) -> None:
    assert import_messages([{"role": "assistant", "content": [block]}]) == (assistant(part),)


def test_results_become_messages_of_their_own_before_the_rest_of_their_turn() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}], "is_error": True}
    plain = {"type": "tool_result", "tool_use_id": "c2", "content": "43", **CACHED}
    content = [{"type": "text", "text": "and?"}, result, plain, {"type": "tool_result", "tool_use_id": "c3"}]
    assert import_messages([{"role": "user", "content": content}]) == (
        Message(
            "tool",
            (
                ToolResult("c1", (Text("42"),), is_error=True),
                ToolResult("c2", "43", cache=True),
                ToolResult("c3"),
            ),
        ),
        user("and?"),
    )


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ({"role": "user", "content": "a"}, user("a")),
        ({"role": "user", "content": []}, Message("user")),
        ({"role": "assistant", "content": None}, Message("assistant")),
        ({"role": "system", "content": "a"}, Message("system", (Text("a"),))),
    ],
)
def test_a_turn_is_a_message(turn: dict[str, Any], message: Message) -> None:
    assert import_messages([turn]) == (message,)


def test_a_text_is_a_string_or_text_blocks() -> None:
    assert (import_texts("a"), import_texts(""), import_texts(None)) == ((Text("a"),), (), ())
    assert import_texts([{"type": "text", "text": "a", **CACHED}]) == (Text("a", cache=True),)
    with pytest.raises(ConfigError, match="only text blocks are allowed here"):
        import_texts([{"type": "novel"}])


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (3, "a message is an object with a role and content"),
        ({"role": "robot", "content": ""}, "the role 'robot' is not known"),
        ({"role": "user", "content": 3}, "content is text or a list of blocks"),
        ({"role": "user", "content": [3]}, "a block is an object with a type"),
        ({"role": "user", "content": [{"type": "text"}]}, "text: Field required"),
        ({"role": "user", "content": [{"type": "text", "text": 3}]}, "text is text"),
        ({"role": "user", "content": [{"type": "image", "source": {}}]}, "the source of an image"),
        ({"role": "user", "content": [{"type": "document"}]}, "the source of a document"),
        (
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "media_type": "a", "data": "%"}}],
            },
            "data is not base64",
        ),
        ({"role": "assistant", "content": [{"type": "tool_use", "input": 3}]}, "the input of a tool_use is an object"),
        (
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "thinking", "thinking": "so"}]}
                ],
            },
            "a tool_result is text, or blocks",
        ),
    ],
)
def test_a_wrong_turn_is_named_with_its_place(turn: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=rf"^messages\.1: .*{says}"):
        import_messages([{"role": "user", "content": "?"}, turn])


SEARCHED = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]}


@pytest.mark.parametrize("block", [SEARCHED, {"type": "tool_reference", "tool_name": "f"}])
def test_blocks_that_only_this_provider_has_in_results_are_kept_as_json(block: dict[str, Any]) -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "a"}, block]}
    [message] = import_messages([{"role": "user", "content": [result]}])
    kept = Text(msgspec.json.encode(block).decode())
    assert message == Message("tool", (ToolResult("c", (Text("a"), kept)),))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
    ],
)
def test_sources_that_only_this_provider_has_stay_as_they_are(block: dict[str, Any]) -> None:
    [message] = import_messages([{"role": "user", "content": [block]}])
    assert message == Message("user", (UnknownPart(msgspec.json.encode(block).decode()),))
