"""Tools of providers and media in every dialect: sent in the right form, or refused before anything is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.dialects import DIALECTS, find_dialect, plain_row
from asides.providers.provider import Target
from asides.values.errors import Unsupported
from asides.values.messages import Prompt, user
from asides.values.parts import File, Image
from asides.values.tools import Tool, read_tool

FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
ANTHROPIC: tuple[dict[str, Any], ...] = (
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
    {"type": "bash_20250124", "name": "bash"},
    {"type": "code_execution_20250825", "name": "code_execution"},
    {"type": "mcp_toolset", "mcp_server_name": "x"},
)
RESPONSES: tuple[dict[str, Any], ...] = (
    {"type": "web_search"},
    {"type": "web_search_preview"},
    {"type": "namespace", "name": "crm", "description": "d", "tools": [{"type": "function", "name": "g"}]},
    {"type": "file_search", "vector_store_ids": ["v"]},
    {"type": "mcp", "server_label": "x", "server_url": "https://e.example"},
    {"type": "custom", "name": "patch", "format": {"type": "text"}},
    {"type": "apply_patch"},
    {"type": "x_search"},
)
GEMINI: tuple[dict[str, Any], ...] = (
    {"google_search": {}},
    {"googleSearch": {}},
    {"codeExecution": {}},
    {"url_context": {}},
)
INTERACTIONS: tuple[dict[str, Any], ...] = (
    {"type": "google_search", "search_types": ["web_search"]},
    {"type": "code_execution"},
    {"type": "url_context"},
    {"type": "mcp_server", "name": "x", "url": "https://e.example"},
)
CONVERSE = ({"systemTool": {"name": "nova_grounding"}},)
CHAT = (
    {"type": "custom", "custom": {"name": "patch"}},
    {"type": "web_search", "web_search": {"enable": True}},
    {"type": "builtin_function", "function": {"name": "$web_search"}},
)
NATIVE: dict[str, tuple[dict[str, Any], ...]] = {
    "anthropic": ANTHROPIC,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
    "gemini_interactions": INTERACTIONS,
    "bedrock": CONVERSE,
    "openai_chat": CHAT,
    "cohere": (),
    "ollama": (),
}
# Whose tools each dialect would take for its own, beside its own: the forms that cannot be told apart.
SHARED = {"openai_responses": (*CHAT[:2], *INTERACTIONS), "gemini_interactions": (RESPONSES[3],)}


def encode(name: str, prompt: Prompt) -> dict[str, Any]:
    row = plain_row(name)
    target = Target(row, "made-up", row.base_url or "http://127.0.0.1:9", row.rule("made-up"))
    body: dict[str, Any] = json.loads(find_dialect(name).encode(prompt, target)[0].body)
    return body


def sent_tools(name: str, *tools: dict[str, Any]) -> list[Any]:
    body = encode(name, Prompt((user("go"),), tools=tuple(map(read_tool, tools))))
    found: list[Any] = body["toolConfig"]["tools"] if name == "bedrock" else body["tools"]
    return found


@pytest.mark.parametrize(("name", "tool"), [(name, tool) for name, tools in NATIVE.items() for tool in tools], ids=str)
def test_a_tool_of_the_provider_goes_out_as_it_is(name: str, tool: dict[str, Any]) -> None:
    assert sent_tools(name, tool) == [tool]
    assert tool in sent_tools(name, FUNCTION, tool)
    assert len(sent_tools(name, FUNCTION, tool)) == 2


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_tool_that_the_dialect_does_not_have_is_refused_before_sending(name: str) -> None:
    for owner, tools in NATIVE.items():
        for tool in tools:
            if owner != name and tool not in SHARED.get(name, ()) and tool not in NATIVE[name]:
                if tool.get("type") == "custom" and name in ("anthropic", "openai_responses"):
                    continue
                with pytest.raises(Unsupported, match="is not a function, and this dialect has no such tool"):
                    sent_tools(name, tool)


@pytest.mark.parametrize(
    "document",
    [
        {"name": "f"},
        {"type": "function", "name": "f"},
        {"type": "custom", "name": "f", "input_schema": {"type": "object"}},
        {"name": "f", "input_schema": {"type": "object"}},
        FUNCTION,
    ],
    ids=str,
)
def test_a_function_in_any_form_is_a_function(document: dict[str, Any]) -> None:
    assert (read_tool(document).name, read_tool(document).native) == ("f", None)


def test_a_native_tool_beside_functions_keeps_its_name() -> None:
    assert [read_tool(tool).name for tool in (*ANTHROPIC[:1], *RESPONSES[:1], *GEMINI[:1])] == [
        "web_search",
        "web_search",
        "google_search",
    ]
    assert Tool("f").native is None


WAV, MP4 = b"RIFF", b"mp4"
MEDIA: dict[str, Image | File] = {
    "png": Image(data=b"png"),
    "pdf": File("a.pdf", data=b"%PDF"),
    "text": File("a.txt", data=b"hello", media_type="text/plain"),
    "wav": File("a.wav", data=WAV, media_type="audio/wav"),
    "wav at an address": File("a.wav", url="https://e.example/a.wav", media_type="audio/wav"),
    "wav in an address": File("a.wav", url="data:audio/wav;base64,UklGRg=="),
    "ogg": File("a.ogg", data=WAV, media_type="audio/ogg"),
    "mp4": File("a.mp4", data=MP4, media_type="video/mp4"),
    "zip": File("a.zip", data=b"PK", media_type="application/zip"),
}
# The key that a medium has in a request; None: it is refused.
FORMS: dict[str, dict[str, str | None]] = {
    "anthropic": {"png": "image", "pdf": "document", "text": "document"},
    "bedrock": {"png": "image", "pdf": "document", "text": "document", "mp4": "video"},
    "cohere": {"png": "image_url", "text": "hello"},
    "gemini": {
        **dict.fromkeys(("png", "pdf", "text", "wav", "wav in an address", "ogg", "mp4", "zip"), "inlineData"),
        "wav at an address": "fileData",
    },
    "gemini_interactions": {
        "png": "image",
        "text": "hello",
        "mp4": "video",
        "wav at an address": "uri",
        **dict.fromkeys(("pdf", "zip"), "document"),
        **dict.fromkeys(("wav", "ogg", "wav in an address"), "audio"),
    },
    "ollama": {"png": "images", "text": "hello"},
    "openai_chat": {
        "png": "image_url",
        **dict.fromkeys(("pdf", "text", "zip"), "file_data"),
        **dict.fromkeys(("wav", "ogg", "wav in an address"), "input_audio"),
        "mp4": "video_url",
    },
    "openai_responses": {"png": "input_image", **dict.fromkeys(("pdf", "text", "zip"), "input_file")},
}


@pytest.mark.parametrize("name", sorted(DIALECTS))
@pytest.mark.parametrize("kind", MEDIA)
def test_every_kind_of_medium_is_sent_in_its_form_or_refused(name: str, kind: str) -> None:
    form = FORMS[name].get(kind)
    prompt = Prompt((user("look", MEDIA[kind]),))
    if form is None:
        with pytest.raises(Unsupported):
            encode(name, prompt)
    else:
        assert form in json.dumps(encode(name, prompt))


CONTROL = {"type": "ephemeral", "ttl": "1h"}
CACHED: list[dict[str, Any]] = [
    {"role": "system", "content": [{"type": "text", "text": "rules", "cache_control": CONTROL}]},
    {"role": "user", "content": [{"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "content": "ok"},
    {"role": "user", "content": "go", "cache_control": CONTROL},
]
CACHED_TOOL = {"name": "f", "input_schema": {"type": "object"}, "cache_control": CONTROL}


def explain(model: str, **more: Any) -> tuple[dict[str, Any], list[str]]:
    plan = asides.explain(model, CACHED, tools=[CACHED_TOOL], base_url="http://127.0.0.1:9/v1", api_key="k", **more)
    return plan.body, [notice.code for notice in plan.notices]


def test_cache_breakpoints_of_dict_messages_go_to_messages() -> None:
    body, codes = explain("anthropic:claude-sonnet-4-5")
    assert body["system"] == [{"type": "text", "text": "rules", "cache_control": CONTROL}]
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert body["messages"][2]["content"][0]["cache_control"] == CONTROL
    assert body["tools"][0]["cache_control"] == CONTROL
    assert "cache_not_sent" not in codes


def test_cache_breakpoints_of_dict_messages_are_cache_points_in_converse() -> None:
    body, codes = explain("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    assert body["system"][1] == {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert body["messages"][0]["content"][1] == {"cachePoint": {"type": "default"}}
    assert body["toolConfig"]["tools"][1] == {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert "cache_not_sent" not in codes


def test_cache_breakpoints_of_dict_messages_go_to_chat_hosts_that_take_them() -> None:
    body, codes = explain("openrouter:anthropic/claude-sonnet-4.5")
    assert body["messages"][0]["content"] == [{"type": "text", "text": "rules", "cache_control": CONTROL}]
    assert body["messages"][3]["content"] == [{"type": "text", "text": "go", "cache_control": CONTROL}]
    assert "cache_not_sent" not in codes


@pytest.mark.parametrize(
    "model",
    ["openai-chat:made-up", "openai-responses:made-up", "gemini:made-up", "cohere:made-up", "ollama:made-up"],
)
def test_cache_breakpoints_that_cannot_be_sent_give_a_notice(model: str) -> None:
    body, codes = explain(model)
    assert "cache" not in json.dumps(body)
    assert codes.count("cache_not_sent") == 1


def test_a_display_that_the_model_lacks_is_a_conflict() -> None:
    for display in ("updates", "made_up"):
        asked = {"type": "adaptive", "display": display}
        with pytest.raises(asides.InvalidThinking, match="summarized, omitted"):
            explain("anthropic:claude-opus-4-6", thinking=asked, max_tokens=20_000)
        body, codes = explain("anthropic:claude-opus-4-6", thinking=asked, max_tokens=20_000, on_conflict="adjust")
        assert body["thinking"]["display"] == "summarized"
        assert codes
