"""Encode prompts as Messages requests: addresses, headers, and every kind of part."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest

from asides.dialects.anthropic.encode import encode
from asides.providers.find import find_target
from asides.values.errors import Unsupported
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, system, user
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thinking
from asides.values.tools import Tool

SONNET = "claude-sonnet-4-5"
ENVIRON = {"AWS_REGION": "eu-west-1", "GOOGLE_CLOUD_LOCATION": "europe-west1", "GOOGLE_CLOUD_PROJECT": "my-project"}


def request_of(prompt: Prompt, model: str = f"anthropic:{SONNET}", base_url: str | None = None) -> Any:
    return encode(prompt, find_target(model, base_url=base_url, environ=ENVIRON))[0]


def body_of(prompt: Prompt, model: str = f"anthropic:{SONNET}") -> dict[str, Any]:
    body: dict[str, Any] = json.loads(request_of(prompt, model).body)
    return body


def codes_of(prompt: Prompt, model: str = f"anthropic:{SONNET}") -> list[str]:
    return [notice.code for notice in encode(prompt, find_target(model, environ=ENVIRON))[1]]


def encode_user(*parts: Part | str) -> Any:
    return body_of(Prompt((user(*parts),)))["messages"][0]["content"]


# --- where it goes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        (None, "https://api.anthropic.com/v1/messages"),
        ("https://proxy.example", "https://proxy.example/v1/messages"),
        ("https://proxy.example/claude/", "https://proxy.example/claude/v1/messages"),
        ("https://proxy.example/v1", "https://proxy.example/v1/messages"),
        ("https://proxy.example/v1/messages", "https://proxy.example/v1/messages"),
    ],
)
def test_the_address(base_url: str | None, url: str) -> None:
    request = request_of(Prompt((user("hi"),)), base_url=base_url)
    assert request.url == url
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.credential_header == ("x-api-key", "")
    assert request.headers["Accept"] == "text/event-stream"


def test_the_address_of_a_clone_gets_its_version() -> None:
    request = request_of(Prompt((user("hi"),)), "deepseek-anthropic:deepseek-chat")
    assert request.url == "https://api.deepseek.com/anthropic/v1/messages"


@pytest.mark.parametrize(("stream", "verb"), [(True, "invoke-with-response-stream"), (False, "invoke")])
def test_over_bedrock_the_model_is_in_the_address_and_the_version_in_the_body(stream: bool, verb: str) -> None:
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    tool = Tool("look_up")
    prompt = Prompt((user("hi"),), thinking=Thinking(budget=2000), tools=(tool,), stream=stream)
    request = request_of(prompt, f"bedrock-anthropic:{model}")
    host = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert request.url == f"{host}/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/{verb}"
    body = json.loads(request.body)
    assert body["anthropic_version"] == "bedrock-2023-05-31"
    assert body["anthropic_beta"] == ["interleaved-thinking-2025-05-14"]
    assert {"model", "stream"}.isdisjoint(body)
    assert "anthropic-beta" not in request.headers
    assert request.credential_header == ("Authorization", "Bearer ")


@pytest.mark.parametrize(("stream", "verb"), [(True, "streamRawPredict"), (False, "rawPredict")])
def test_over_vertex_the_model_is_in_the_address_and_the_version_in_the_body(stream: bool, verb: str) -> None:
    request = request_of(Prompt((user("hi"),), stream=stream), "vertex-anthropic:claude-haiku-4-5@20251001")
    assert request.url == (
        "https://europe-west1-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west1"
        f"/publishers/anthropic/models/claude-haiku-4-5@20251001:{verb}"
    )
    body = json.loads(request.body)
    assert body["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in body
    assert body.get("stream", False) is stream
    assert request.credential_header == ("Authorization", "Bearer ")


def test_betas_of_the_caller_are_a_header() -> None:
    prompt = Prompt((user("hi"),), extra={"betas": ["context-1m-2025-08-07"], "service_tier": "auto"})
    request = request_of(prompt)
    assert request.headers["anthropic-beta"] == "context-1m-2025-08-07"
    assert "betas" not in json.loads(request.body)
    with_file = msgspec.structs.replace(prompt, messages=(user(File(id="file_1")),))
    assert request_of(with_file).headers["anthropic-beta"] == "files-api-2025-04-14,context-1m-2025-08-07"


# --- user messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("display", "beta"),
    [("updates", "thinking-display-updates-2026-08-18"), ("summarized", None), ("omitted", None)],
)
def test_the_display_of_updates_brings_its_beta(display: str, beta: str | None) -> None:
    asked = Prompt((user("hi"),), extra={"thinking": {"type": "adaptive", "display": display}})
    assert request_of(asked, "anthropic:claude-sonnet-5-5").headers.get("anthropic-beta") == beta


def test_plain_text_is_a_string_and_other_content_is_blocks() -> None:
    assert encode_user("hi") == "hi"
    assert encode_user("a", "b") == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert encode_user(Text("hi", cache=True)) == [
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    ]
    assert encode_user("hi", " \n") == "hi", "blank text is refused"


def test_images() -> None:
    data = b64encode(b"png").decode()
    assert encode_user(Image(data=b"png", media_type="image/png", cache=True)) == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": data},
            "cache_control": {"type": "ephemeral"},
        }
    ]
    assert encode_user(Image(url="https://x/y.png"))[0]["source"] == {"type": "url", "url": "https://x/y.png"}
    inline = encode_user(Image(url=f"data:image/webp;base64,{data}"))[0]["source"]
    assert inline == {"type": "base64", "media_type": "image/webp", "data": data}
    with pytest.raises(Unsupported):
        encode_user(msgspec.convert({"type": "image"}, Image))


def test_files() -> None:
    assert encode_user(File("a.pdf", b"%PDF")) == [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": b64encode(b"%PDF").decode()},
            "title": "a.pdf",
        }
    ]
    assert encode_user(File(data="é".encode(), media_type="text/plain"))[0]["source"] == {
        "type": "text",
        "media_type": "text/plain",
        "data": "é",
    }
    assert encode_user(File(url="https://x/a.pdf"))[0]["source"] == {"type": "url", "url": "https://x/a.pdf"}
    assert encode_user(File(id="file_1"))[0]["source"] == {"type": "file", "file_id": "file_1"}
    for file in (File(data=b"x", media_type="application/zip"), msgspec.convert({"type": "file"}, File)):
        with pytest.raises(Unsupported):
            encode_user(file)


def test_the_system_prompt_is_a_string_or_blocks_with_marks() -> None:
    assert body_of(Prompt((user("hi"),), system="Be brief."))["system"] == "Be brief."
    assert "system" not in body_of(Prompt((user("hi"),), system="  "))
    marked = Message("system", (Text("A long text.", cache=True),))
    body = body_of(Prompt((marked, user("hi")), system="Be brief."))
    assert body["system"] == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "A long text.", "cache_control": {"type": "ephemeral"}},
    ]
    late = Prompt((user("hi"), system("Be kind.")))
    assert (body_of(late)["system"], codes_of(late)) == ("Be kind.", ["system_moved"])


def test_ids_of_other_providers_are_made_acceptable_the_same_way_each_time() -> None:
    history = (user("hi"), assistant(ToolCall("call:1|x", "look_up")), Message("tool", (ToolResult("call:1|x", "42"),)))
    turns = body_of(Prompt(history))["messages"]
    made, answered = turns[1]["content"][0]["id"], turns[2]["content"][0]["tool_use_id"]
    assert made == answered
    assert made.replace("_", "").isalnum()


def test_results_come_first_in_their_turn() -> None:
    answered = Message("user", (Text("Look at this:"), ToolResult("t1", "42")))
    turns = body_of(Prompt((user("hi"), assistant(ToolCall("t1", "look_up")), answered)))["messages"]
    assert [block["type"] for block in turns[2]["content"]] == ["tool_result", "text"]


def test_arguments_that_were_no_object_go_back_as_an_empty_one_with_a_notice() -> None:
    prompt = Prompt((user("hi"), assistant(ToolCall("t1", "look_up", {}, '{"n": ')), user("?")))
    assert body_of(prompt)["messages"][1]["content"][0]["input"] == {}
    assert codes_of(prompt) == ["arguments_not_sent"]


def test_parts_of_the_provider_go_back_verbatim_and_refusals_do_not() -> None:
    own = '{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"encrypted_content":"Eo8="}]}'
    turn = assistant(ServerTool("web_search_tool_result", "s1", None, own), Refusal("no"), "It rains.", " ")
    body = request_of(Prompt((user("hi"), turn, user("on")))).body
    assert own.encode() in body
    assert json.loads(body)["messages"][1]["content"][1:] == [{"type": "text", "text": "It rains."}]


def test_a_native_part_of_the_caller_is_sent_unchanged() -> None:
    assert encode_user("see", UnknownPart('{"type":"search_result","source":"x"}'))[1] == {
        "type": "search_result",
        "source": "x",
    }


def test_content_that_cannot_be_sent_gives_a_notice() -> None:
    prompt = Prompt(
        (user("hi"),),
        sampling=Sampling(temperature=0.5, seed=7),
        metadata={"user_id": "u", "trace": "x"},
        output="json",
        tool_choice="auto",
    )
    assert codes_of(prompt) == ["setting_dropped", "json_not_sent", "setting_dropped", "setting_dropped"]
    assert body_of(prompt)["metadata"] == {"user_id": "u"}


def test_a_schema_is_sent_where_the_model_takes_one() -> None:
    prompt = Prompt((user("hi"),), output=OutputSchema("answer", {"type": "object"}), thinking=Thinking(effort="low"))
    body = body_of(prompt, "anthropic:claude-opus-5")
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "low"}
    assert codes_of(prompt, "anthropic:claude-sonnet-4-0") == ["schema_not_sent"]
    assert codes_of(prompt, "ollama-anthropic:qwen3") == ["schema_not_sent"]


@pytest.mark.parametrize(
    ("choice", "parallel", "encoded"),
    [
        (None, None, None),
        ("auto", None, {"type": "auto"}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("look_up", False, {"type": "tool", "name": "look_up", "disable_parallel_tool_use": True}),
        (None, True, {"type": "auto", "disable_parallel_tool_use": False}),
    ],
)
def test_tool_choice(choice: str | None, parallel: bool | None, encoded: Any) -> None:
    prompt = Prompt((user("hi"),), tools=(Tool("look_up"),), tool_choice=choice, parallel_tool_calls=parallel)
    assert body_of(prompt).get("tool_choice") == encoded


def test_a_native_field_wins() -> None:
    prompt = Prompt(
        (user("hi"),), thinking=Thinking(budget=2000), extra={"thinking": {"type": "adaptive"}, "max_tokens": 7}
    )
    body = body_of(prompt)
    assert (body["thinking"], body["max_tokens"]) == ({"type": "adaptive"}, 7)


def test_fields_beside_a_thinking_type_are_sent_only_with_one() -> None:
    prompt = Prompt((user("Hi"),), thinking=Thinking(budget=2000), extra={"thinking": {"block_binding": {}}})
    assert body_of(prompt)["thinking"] == {"type": "enabled", "budget_tokens": 2000, "block_binding": {}}
    off = msgspec.structs.replace(prompt, thinking=Thinking())
    assert "thinking" not in body_of(off)
    assert codes_of(off) == ["setting_dropped"]


def test_a_longer_history_begins_with_the_bytes_of_a_shorter_one() -> None:
    first = (user("one"), assistant("two"), user("three"))
    short = request_of(Prompt(first)).body
    longer = request_of(Prompt((*first, assistant("four"), user("five")))).body
    shared = short[: short.index(b'{"role":"user","content":"three"}') + 30]
    assert longer.startswith(shared)
