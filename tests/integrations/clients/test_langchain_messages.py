"""Messages of LangChain are read as they are meant, also those of other chat models; what cannot be sent is told."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from asides import (
    ConfigError,
    File,
    Image,
    Message,
    Seal,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from asides.integrations.langchain_messages import read_history
from tests.integrations.clients.langchain_samples import read, read_codes

# --- messages of others -----------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n0"
PDF = b"%PDF-1.4"


def encode(data: bytes) -> str:
    return b64encode(data).decode()


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, Text("a", cache=True)),
        ({"type": "text", "text": "a", "extras": {"cache_control": {"ttl": "1h"}}}, Text("a", cache="1h")),
        ({"type": "image", "url": "https://a.example/b.png"}, Image(url="https://a.example/b.png")),
        ({"type": "image", "base64": encode(PNG), "mime_type": "image/png"}, Image(data=PNG, media_type="image/png")),
        ({"type": "image", "url": f"data:image/png;base64,{encode(PNG)}"}, Image(data=PNG, media_type="image/png")),
        (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encode(PNG)}"}},
            Image(data=PNG, media_type="image/png"),
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encode(PNG)}},
            Image(data=PNG, media_type="image/png"),
        ),
        (
            {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": encode(PNG)},
            Image(data=PNG, media_type="image/png"),
        ),
        (
            {"type": "file", "base64": encode(PDF), "mime_type": "application/pdf", "filename": "a.pdf"},
            File(data=PDF, name="a.pdf", media_type="application/pdf"),
        ),
        ({"type": "file", "file_id": "file_1"}, File(id="file_1")),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": encode(PDF)}},
            File(data=PDF, media_type="application/pdf"),
        ),
        (
            {"type": "audio", "base64": encode(b"RIFF0000WAVE"), "mime_type": "audio/wav"},
            File(data=b"RIFF0000WAVE", media_type="audio/wav"),
        ),
        (
            {"type": "video", "url": "https://a.example/b"},
            File(url="https://a.example/b", media_type="video/mp4"),
        ),
        (
            {"type": "text-plain", "text": "long", "mime_type": "text/plain", "title": "notes"},
            File(data=b"long", name="notes", media_type="text/plain"),
        ),
    ],
)
def test_content_of_a_user_is_read(block: dict[str, Any], part: Any) -> None:
    assert read(HumanMessage(content=[block])) == (Message("user", (part,)),)


def test_a_path_in_a_message_is_no_file_of_this_machine() -> None:
    with pytest.raises(ConfigError, match="takes a URL, not '/etc/hostname'"):
        read(HumanMessage(content=[{"type": "image", "url": "/etc/hostname"}]))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (HumanMessage(content=[{"type": "image", "base64": "?"}]), "base64 of the image cannot be decoded"),
        (HumanMessage(content=[{"type": "image", "url": "data:,"}]), "is empty: there is nothing to send"),
        (HumanMessage(content=[{"type": "image"}]), "the image has no content"),
        (HumanMessage(content=[{"type": "tool_result"}]), "'tool_result' cannot be read"),
        (ChatMessage(role="narrator", content="x"), "the role 'narrator' is not known"),
        (RemoveMessage(id="1"), "cannot be sent to a model"),
    ],
)
def test_what_cannot_be_sent_is_told(message: BaseMessage, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        read(HumanMessage("a"), message)
    assert str(caught.value).startswith("messages[1]: ")


def test_every_kind_of_message_is_read() -> None:
    assert read(
        SystemMessage("Be brief."),
        ChatMessage(role="developer", content="Be kind."),
        HumanMessage("hi", name="ann"),
        AIMessage("hello", name="bot"),
        ToolMessage("3", tool_call_id="c", name="add", status="error"),
        ToolMessage(content=[{"type": "text", "text": "3"}, {"value": 4}], tool_call_id="c"),
        HumanMessage(content=[{"type": "tool_result", "tool_use_id": "t", "content": "5"}, "and?"]),
    ) == (
        Message("system", "Be brief."),
        Message("system", "Be kind."),
        Message("user", "hi", "ann"),
        Message("assistant", "hello", "bot"),
        Message("tool", (ToolResult("c", "3", "add", is_error=True),)),
        Message("tool", (ToolResult("c", (Text("3"), Text('{"value": 4}'))),)),
        Message("tool", (ToolResult("t", "5"),)),
        Message("user", "and?"),
    )


def test_calls_without_ids_get_them() -> None:
    called = AIMessage("", additional_kwargs={"function_call": {"name": "add", "arguments": '{"a": 1}'}})
    first, second = read(called, FunctionMessage(content="2", name="add"))
    assert first.tool_calls == (ToolCall("call_add_1", "add", {"a": 1}),)
    assert second.parts == (ToolResult("call_add_1", "2"),)
    (unnamed,) = read(AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": None}]))
    assert unnamed.tool_calls == (ToolCall("call_add_1", "add", {}),)


def test_thinking_of_claude_from_another_chat_model_keeps_its_signature() -> None:
    given_by_claude = AIMessage(
        content=[
            {"type": "thinking", "thinking": "Sum.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            {"type": "text", "text": "3"},
            {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
        ],
        tool_calls=[{"name": "add", "args": {"a": 1}, "id": "toolu_1"}],
        response_metadata={"model_provider": "anthropic"},
    )
    expected = (
        Thought("Sum.", "summary", "block", None, (Seal("signature", "c2ln"),), "thinking"),
        Thought("", "hidden", "block", None, (Seal("redacted", "ZGF0YQ=="),)),
        Text("3"),
        ToolCall("toolu_1", "add", {"a": 1}),
    )
    assert read(given_by_claude) == (Message("assistant", expected),)
    # The same without the name of its maker, as people write it by hand.
    assert read(given_by_claude.model_copy(update={"response_metadata": {}})) == (Message("assistant", expected),)


def test_thinking_of_another_chat_model_goes_back_to_its_own_provider_only() -> None:
    thought = AIMessage(
        "3", additional_kwargs={"reasoning_content": "Sum."}, response_metadata={"model_provider": "deepseek"}
    )
    assert read_history([thought], "deepseek") == ((Message("assistant", (Thought("Sum."), Text("3"))),), ())
    assert read_history([thought], "moonshot")[0] == (Message("assistant", (Text("3"),)),)


def test_a_tool_that_another_provider_ran_is_left_out_and_told() -> None:
    ran: list[Any] = [
        {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {}},
        {"type": "text", "text": "It rains."},
    ]
    assert read(AIMessage(content=ran)) == (Message("assistant", (Text("It rains."),)),)
    assert read_codes(AIMessage(content=ran)) == ["block_left_out"]
