"""The request around the messages: address, headers, settings, tools, output, and native fields merged into it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides import __version__
from asides.dialects.openai_chat.encode import build_url, encode
from asides.providers.find import find_target
from asides.providers.provider import ModelRule, Provider, Quirks, Target
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema, Prompt, Sampling, user
from asides.values.notices import Notice
from asides.values.thinking import Thinking
from asides.values.tools import Tool

TOOL = Tool("weather", "Tells the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
WIRE_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
UNKNOWN = ModelRule()
SCHEMA = OutputSchema("person", {"type": "object"})


def target(rule: ModelRule = UNKNOWN, **quirks: Any) -> Target:
    return Target(Provider(name="host", quirks=Quirks(**quirks)), "some/model", "https://host.test/v1", rule)


def prompt(**settings: Any) -> Prompt:
    settings.setdefault("stream", False)
    return Prompt((user("hi"),), **settings)


def body(asked: Prompt, to: Target | None = None) -> dict[str, Any]:
    """The fields beside the model and the messages."""
    request, _ = encode(asked, to or target())
    document: dict[str, Any] = msgspec.json.decode(request.body)
    assert document.pop("model") == "some/model"
    assert document.pop("messages") == [{"role": "user", "content": "hi"}]
    return document


def notices(asked: Prompt, to: Target | None = None) -> tuple[Notice, ...]:
    return encode(asked, to or target())[1]


# --- the request --------------------------------------------------------------------------------------------------


def test_the_whole_request() -> None:
    request, notices = encode(Prompt((user("hi"),)), target())
    assert notices == ()
    assert request.method == "POST"
    assert request.url == "https://host.test/v1/chat/completions"
    assert request.headers == {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        "User-Agent": f"asides/{__version__}",
    }
    assert request.credential_header == ("Authorization", "Bearer ")
    assert request.body == (
        b'{"model":"some/model","messages":[{"role":"user","content":"hi"}],'
        b'"stream":true,"stream_options":{"include_usage":true}}'
    )


def test_the_same_prompt_gives_the_same_bytes() -> None:
    asked = prompt(tools=(TOOL,), sampling=Sampling(temperature=0.5, seed=1), extra={"b": 1, "a": 2})
    assert encode(asked, target()) == encode(asked, target())


def test_a_whole_reply_is_asked_for_by_saying_nothing_of_streams() -> None:
    request, _ = encode(prompt(), target())
    assert request.headers["Accept"] == "application/json"
    assert body(prompt()) == {}


@pytest.mark.parametrize(
    ("model", "tools", "stream", "asked"),
    [
        ("zai:glm-5.3", True, True, True),
        ("zai-coding:glm-4.6", True, True, True),
        ("zai:glm-5.3", True, False, None),
        ("zai:glm-5.3", False, True, None),
        ("zai:glm-4.5", True, True, None),
        ("fireworks:glm-5p3", True, True, None),
    ],
)
def test_calls_are_asked_for_as_they_are_written_in_a_stream_with_tools(
    model: str, tools: bool, stream: bool, asked: bool | None
) -> None:
    given = Prompt((user("hi"),), tools=(Tool("f"),) if tools else (), stream=stream)
    request, _ = encode(given, find_target(model, environ={}))
    assert msgspec.json.decode(request.body).get("tool_stream") is asked


def test_a_stream_without_usage_where_the_host_refuses_the_field() -> None:
    assert body(prompt(stream=True), target(stream_usage=False)) == {"stream": True}


@pytest.mark.parametrize(
    ("auth", "header"), [("bearer", ("Authorization", "Bearer ")), ("api-key", ("api-key", "")), ("nothing", None)]
)
def test_where_the_key_goes(auth: str, header: tuple[str, str] | None) -> None:
    assert encode(prompt(), target(auth=auth))[0].credential_header == header


def test_headers_of_the_row_are_sent() -> None:
    provider = Provider(name="host", headers=(("X-Title", "asides"), ("Accept", "x/y")))
    headers = encode(prompt(), Target(provider, "m", "https://host.test"))[0].headers
    assert (headers["X-Title"], headers["Accept"]) == ("asides", "x/y")


@pytest.mark.parametrize(
    ("base", "query", "url"),
    [
        ("https://h.test/v1", (), "https://h.test/v1/chat/completions"),
        ("https://h.test/v1/", (), "https://h.test/v1/chat/completions"),
        ("http://127.0.0.1:8080", (), "http://127.0.0.1:8080/chat/completions"),
        ("https://h.test/v1/chat/completions", (), "https://h.test/v1/chat/completions"),
        ("https://h.test/v1", (("api-version", "a b"),), "https://h.test/v1/chat/completions?api-version=a+b"),
        ("https://h.test/v1", (("api-version", "$API_VERSION"),), "https://h.test/v1/chat/completions"),
        (
            "https://h.test/v1?api-version=2",
            (("api-version", "1"),),
            "https://h.test/v1/chat/completions?api-version=2",
        ),
        ("https://h.test/v1?a=", (("b", "1"),), "https://h.test/v1/chat/completions?a=&b=1"),
    ],
)
def test_the_address(base: str, query: tuple[tuple[str, str], ...], url: str) -> None:
    assert build_url(Target(Provider(name="host", query=query), "m", base)) == url


def test_the_path_is_the_rows() -> None:
    provider = Provider(name="host", quirks=Quirks(path="/text/chat"))
    assert build_url(Target(provider, "m", "https://h.test/v1")) == "https://h.test/v1/text/chat"


# --- settings -----------------------------------------------------------------------------------------------------


def test_settings_go_by_their_names_and_unset_ones_do_not_go() -> None:
    sampling = Sampling(temperature=0.0, top_p=0.9, top_k=5, presence_penalty=0.1, logit_bias={"5": -1.0}, seed=7)
    asked = prompt(sampling=sampling, stop=("END", "."), metadata={"k": "v"}, user="u")
    assert body(asked) == {
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 5,
        "presence_penalty": 0.1,
        "logit_bias": {"5": -1.0},
        "seed": 7,
        "stop": ["END", "."],
        "metadata": {"k": "v"},
        "user": "u",
    }


@pytest.mark.parametrize(
    ("rule", "quirk", "name"),
    [
        (None, "max_tokens", "max_tokens"),
        (None, "max_completion_tokens", "max_completion_tokens"),
        ("max_completion_tokens", "max_tokens", "max_completion_tokens"),
    ],
)
def test_the_output_limit_has_the_name_that_the_host_or_the_model_knows(rule: Any, quirk: str, name: str) -> None:
    to = target(ModelRule(output_limit=rule), output_limit=quirk)
    assert body(prompt(max_tokens=100), to) == {name: 100}


# --- tools --------------------------------------------------------------------------------------------------------


def test_tools() -> None:
    bare = Tool("ping", parameters={"type": "object"}, strict=True)
    assert body(prompt(tools=(TOOL, bare))) == {
        "tools": [
            WIRE_TOOL,
            {"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}, "strict": True}},
        ]
    }


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("weather", {"type": "function", "function": {"name": "weather"}}),
    ],
)
def test_the_choice_of_a_tool(choice: str, wire: Any) -> None:
    asked = prompt(tools=(TOOL,), tool_choice=choice, parallel_tool_calls=False)
    assert body(asked) == {"tools": [WIRE_TOOL], "tool_choice": wire, "parallel_tool_calls": False}


def test_a_choice_without_tools_is_left_out_with_a_notice() -> None:
    asked = prompt(tool_choice="required", parallel_tool_calls=True)
    assert body(asked) == {}
    assert [(notice.code, notice.setting) for notice in notices(asked)] == [
        ("setting_dropped", "tool_choice"),
        ("setting_dropped", "parallel_tool_calls"),
    ]


def test_a_choice_goes_with_tools_that_only_the_host_knows() -> None:
    native = [{"type": "web_search"}]
    asked = prompt(tool_choice="required", extra={"tools": native})
    assert body(asked) == {"tools": native, "tool_choice": "required"}


# --- output -------------------------------------------------------------------------------------------------------

WIRE_SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "schema": {"type": "object"}, "strict": True}}


@pytest.mark.parametrize(
    ("output", "takes", "wire", "codes"),
    [
        (SCHEMA, "json_schema", {"response_format": WIRE_SCHEMA}, []),
        (SCHEMA, "json_object", {"response_format": {"type": "json_object"}}, ["schema_not_sent"]),
        (SCHEMA, "nothing", {}, ["schema_not_sent"]),
        ("json", "json_schema", {"response_format": {"type": "json_object"}}, []),
        ("json", "json_object", {"response_format": {"type": "json_object"}}, []),
        ("json", "nothing", {}, ["json_not_sent"]),
    ],
)
def test_structured_output(output: Any, takes: str, wire: dict[str, Any], codes: list[str]) -> None:
    asked, to = prompt(output=output), target(structured_output=takes)
    assert body(asked, to) == wire
    assert [notice.code for notice in notices(asked, to)] == codes


# --- fields of the host, and native ones --------------------------------------------------------------------------


def test_every_request_carries_the_fields_of_its_host_and_model() -> None:
    to = target(ModelRule(fields=(("model_field", True),)), fields=(("reasoning_format", "parsed"),))
    assert body(prompt(), to) == {"reasoning_format": "parsed", "model_field": True}


def test_fields_about_thinking_are_not_sent_to_a_model_that_has_none() -> None:
    to = target(ModelRule(thinking="never"), fields=(("reasoning_format", "parsed"),))
    assert body(prompt(), to) == {}


def test_thinking_and_its_notices_are_part_of_the_request() -> None:
    asked, to = prompt(thinking=Thinking(budget=4000)), target()
    assert body(asked, to) == {"reasoning_effort": "medium"}
    assert [notice.code for notice in notices(asked, to)] == ["budget_mapped"]


def test_a_native_object_of_another_type_replaces_ours_whole() -> None:
    asked = prompt(thinking=Thinking(budget=4000), output=SCHEMA)
    native = {"thinking": {"type": "disabled"}, "response_format": {"type": "text"}}
    to = target(ask_by="thinking_toggle")
    assert body(asked, to)["thinking"] == {"type": "enabled", "budget_tokens": 4000}
    assert body(msgspec.structs.replace(asked, extra=native), to) == native


@pytest.mark.parametrize("native", [None, "auto", [1]])
def test_a_native_value_that_is_no_object_replaces_an_object_of_ours(native: Any) -> None:
    asked = prompt(thinking=Thinking(effort="high"), extra={"reasoning": native})
    assert body(asked, target(ask_by="reasoning_object")) == {"reasoning": native}


@pytest.mark.parametrize("native", ["max_tokens", "max_completion_tokens"])
def test_a_native_output_limit_is_the_only_one(native: str) -> None:
    assert body(prompt(max_tokens=100, extra={native: 7})) == {native: 7}


def test_a_native_stream_sets_the_headers_too() -> None:
    assert encode(prompt(stream=True, extra={"stream": False}), target())[0].headers["Accept"] == "application/json"


def test_merging_leaves_the_prompt_as_it_was() -> None:
    extra = {"chat_template_kwargs": {"tokenize": False}}
    asked = prompt(thinking=Thinking(mode="on"), extra=extra)
    body(asked, target(ask_by="template"))
    assert asked.extra == {"chat_template_kwargs": {"tokenize": False}}


@pytest.mark.parametrize("value", [object(), "half a character: \ud83d", {"deep": [object()]}])
def test_a_value_that_is_not_json_is_named_and_not_shown(value: object) -> None:
    with pytest.raises(ConfigError, match="'mine'") as caught:
        encode(prompt(extra={"fine": 1, "mine": value}), target())
    assert "half a character:" not in str(caught.value)


def test_a_tool_that_is_not_json_is_named() -> None:
    with pytest.raises(ConfigError, match="'tools'"):
        encode(prompt(tools=(Tool("f", parameters={"default": object()}),)), target())


@pytest.mark.parametrize("name", [["look"], {}, 7, None])
def test_a_free_text_tool_without_a_name_is_sent_as_it_is(name: object) -> None:
    """The host says what is wrong with it."""
    native = {"type": "custom", "custom": {"name": name}}
    assert body(prompt(tools=(Tool("look", native=native),)))["tools"] == [native]
