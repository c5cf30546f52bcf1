"""Read requests as clients of chat completions write them: no field is lost, every setting is understood."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_chat.encode import encode
from asides.dialects.openai_chat.server.read_request import read
from asides.providers.provider import AskBy, Provider, Quirks, ReplayAs, Target
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, assistant, system, user
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool


def request(**fields: Any) -> ServedRequest:
    return read(msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}))


def prompt(**fields: Any) -> Prompt:
    return request(**fields).prompt


def test_the_least_request() -> None:
    assert request() == ServedRequest(Prompt((user("hi"),), stream=False), "m", False)


def test_a_stream_and_its_usage() -> None:
    served = request(stream=True, stream_options={"include_usage": True})
    assert (served.stream, served.include_usage, served.prompt.stream, served.prompt.extra) == (True, True, True, {})
    assert not request(stream=True).include_usage
    assert request(stream_options={"include_obfuscation": False}).prompt.extra == {
        "stream_options": {"include_obfuscation": False}
    }


def test_the_first_system_message_is_the_system_prompt() -> None:
    messages = [
        {"role": "developer", "content": "first"},
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "later"},
    ]
    read_back = prompt(messages=messages)
    assert (read_back.system, read_back.messages) == ("first", (user("hi"), system("later")))


def test_a_system_message_that_is_more_than_text_stays_a_message() -> None:
    for first in (
        {"role": "system", "content": "s", "name": "n"},
        {"role": "system", "content": [{"type": "image_url", "image_url": {"url": "https://u"}}]},
    ):
        read_back = prompt(messages=[first, {"role": "user", "content": "hi"}])
        assert read_back.system is None
        assert [message.role for message in read_back.messages] == ["system", "user"]


def test_an_empty_system_message_is_none() -> None:
    read_back = prompt(messages=[{"role": "system", "content": ""}, {"role": "user", "content": "hi"}])
    assert (read_back.system, read_back.messages) == (None, (user("hi"),))


def test_settings() -> None:
    read_back = prompt(
        temperature=0, top_p=0.5, seed=3, logit_bias={"5": 1}, stop="END", max_tokens=5, user="u", metadata={"a": "b"}
    )
    assert read_back.sampling == Sampling(temperature=0, top_p=0.5, seed=3, logit_bias={"5": 1})
    assert (read_back.stop, read_back.max_tokens, read_back.user, read_back.metadata, read_back.extra) == (
        ("END",),
        5,
        "u",
        {"a": "b"},
        {},
    )
    assert prompt(stop=["a", "b"]).stop == ("a", "b")
    assert prompt(max_tokens=5, max_completion_tokens=6).max_tokens == 6


def test_null_is_unset() -> None:
    served = request(stream=None, temperature=None, tools=None, reasoning_effort=None, max_tokens=None, other=None)
    assert served == request()


def test_unknown_fields_stay() -> None:
    native = {"provider": {"order": ["a"]}, "n": 2, "include_reasoning": False, "service_tier": "flex"}
    assert prompt(**native).extra == native


# --- tools and output ---------------------------------------------------------------------------------------------

FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}


def test_tools_in_both_formats() -> None:
    own = Tool("f", "d", {"type": "object"}, True)
    assert prompt(tools=[{"type": "function", "function": FUNCTION}]).tools == (own,)
    assert prompt(tools=[{"function": {"name": "f"}}]).tools == (Tool("f"),)
    assert prompt(functions=[FUNCTION]).tools == (own,)


def test_tools_of_a_host_stay_unchanged() -> None:
    tools = [{"type": "web_search"}, {"type": "function", "function": FUNCTION}]
    read_back = prompt(tools=tools)
    assert [tool.name for tool in read_back.tools] == ["f"]
    assert read_back.extra == {"tools": tools}


@pytest.mark.parametrize(
    ("field", "choice", "read_as"),
    [
        ("tool_choice", "auto", "auto"),
        ("tool_choice", "required", "required"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}, "f"),
        ("function_call", "none", "none"),
        ("function_call", {"name": "f"}, "f"),
    ],
)
def test_the_choice_of_a_tool(field: str, choice: Any, read_as: str) -> None:
    read_back = prompt(**{field: choice}, parallel_tool_calls=False)
    assert (read_back.tool_choice, read_back.parallel_tool_calls, read_back.extra) == (read_as, False, {})


def test_a_choice_that_only_the_host_knows_stays() -> None:
    choice = {"type": "allowed_tools", "allowed_tools": {}}
    read_back = prompt(tool_choice=choice)
    assert (read_back.tool_choice, read_back.extra) == (None, {"tool_choice": choice})


def test_structured_output() -> None:
    schema = {"name": "n", "schema": {"type": "object"}, "strict": True}
    assert prompt(response_format={"type": "json_schema", "json_schema": schema}).output == OutputSchema(
        "n", {"type": "object"}, True
    )
    assert prompt(response_format={"type": "json_object"}).output == "json"
    assert prompt(response_format={"type": "text"}) == prompt()
    described = prompt(response_format={"type": "json_schema", "json_schema": schema | {"description": "d"}})
    assert described.extra == {"response_format": {"json_schema": {"description": "d"}}}
    grammar = {"type": "grammar", "grammar": "g"}
    assert prompt(response_format=grammar).extra == {"response_format": grammar}


# --- thinking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, Thinking()),
        ({"reasoning_effort": "high"}, Thinking(effort="high")),
        ({"reasoning_effort": "none"}, Thinking(mode="off")),
        ({"reasoning": {"effort": "low"}}, Thinking(effort="low")),
        ({"reasoning": {"max_tokens": 2000, "exclude": True}}, Thinking(budget=2000, show="none")),
        ({"reasoning": {"enabled": False}}, Thinking(mode="off")),
        ({"reasoning": {"enabled": True, "summary": "auto"}}, Thinking(mode="on", summary="auto")),
        ({"thinking": {"type": "enabled"}}, Thinking(mode="on")),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, Thinking(budget=2000)),
        ({"thinking": {"type": "disabled"}}, Thinking(mode="off")),
        ({"thinking": {"type": "adaptive"}}, Thinking(mode="auto")),
        ({"thinking": {"type": "auto"}}, Thinking(mode="auto")),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "max"}, Thinking(effort="max")),
        ({"enable_thinking": True}, Thinking(mode="on")),
        ({"enable_thinking": False}, Thinking(mode="off")),
        ({"enable_thinking": True, "thinking_budget": 2000}, Thinking(budget=2000)),
        ({"thinking_budget": -1}, Thinking(mode="auto")),
        ({"thinking_token_budget": 2000}, Thinking(budget=2000)),
        ({"reasoning_budget": 2000}, Thinking(budget=2000)),
        ({"reasoning_budget_tokens": 2000}, Thinking(budget=2000)),
        ({"chat_template_kwargs": {"enable_thinking": False}}, Thinking(mode="off")),
        ({"chat_template_kwargs": {"thinking": True}}, Thinking(mode="on")),
        ({"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "low"}, Thinking(effort="low")),
        ({"prompt_mode": "reasoning"}, Thinking(mode="on")),
        ({"reasoning_effort": "high", "thinking": {"type": "adaptive"}}, Thinking(mode="auto", effort="high")),
        ({"reasoning_effort": "auto", "reasoning": {"effort": "low"}}, Thinking(mode="auto", effort="low")),
        ({"reasoning_effort": "low", "reasoning": {"summary": "auto"}}, Thinking(effort="low", summary="auto")),
        ({"reasoning": {"effort": None, "max_tokens": 2000}}, Thinking(budget=2000)),
        ({"reasoning_effort": "high", "enable_thinking": False}, Thinking(mode="off")),
    ],
)
def test_every_setting_for_thinking(fields: dict[str, Any], thinking: Thinking) -> None:
    read_back = prompt(**fields)
    assert read_back.thinking == thinking
    assert read_back.extra == {}


@pytest.mark.parametrize(
    ("fields", "thinking", "extra"),
    [
        (
            {"thinking": {"type": "enabled", "clear_thinking": False}},
            Thinking(mode="on"),
            {"thinking": {"clear_thinking": False}},
        ),
        ({"thinking": {"keep": "all"}}, Thinking(), {"thinking": {"keep": "all"}}),
        (
            {"chat_template_kwargs": {"enable_thinking": True, "tokenize": False}},
            Thinking(mode="on"),
            {"chat_template_kwargs": {"tokenize": False}},
        ),
        (
            {"reasoning": {"effort": "low", "context": "auto"}},
            Thinking(effort="low"),
            {"reasoning": {"context": "auto"}},
        ),
        ({"reasoning_effort": "default"}, Thinking(), {"reasoning_effort": "default"}),
        ({"prompt_mode": "other"}, Thinking(), {"prompt_mode": "other"}),
        ({"thinking": True}, Thinking(), {"thinking": True}),
    ],
)
def test_fields_beside_the_thinking_stay(fields: dict[str, Any], thinking: Thinking, extra: Any) -> None:
    read_back = prompt(**fields)
    assert (read_back.thinking, read_back.extra) == (thinking, extra)


# --- nonsense -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'"\xff"', "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"messages":[{"role":"user"}]}', "model is missing"),
        (b'{"model":5,"messages":[{"role":"user"}]}', "model: Expected `str`"),
        (b'{"model":"m"}', "messages is missing or empty"),
        (b'{"model":"m","messages":[]}', "messages is missing or empty"),
        (b'{"model":"m","messages":"hi"}', "messages: Expected `array`"),
        (b'{"model":"m","messages":[5]}', r"messages\[0\]: a message must be an object"),
    ],
)
def test_nonsense_is_refused_with_a_message_for_the_client(body: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(body)


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": "yes"},
        {"temperature": "hot"},
        {"max_tokens": "many"},
        {"stop": [5]},
        {"tools": {}},
        {"tools": [{"type": "function"}]},
        {"tools": [{"function": {"name": "f", "parameters": 5}}]},
        {"metadata": {"a": 5}},
        {"reasoning": {"max_tokens": []}},
        {"reasoning": {"max_tokens": "x"}},
        {"thinking_budget": "x"},
    ],
    ids=str,
)
def test_a_field_of_the_wrong_type_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        request(**fields)


@pytest.mark.parametrize("fields", [{"reasoning_effort": "much"}, {"thinking": {"type": "sometimes"}}], ids=str)
def test_unknown_settings_for_thinking_stay_as_they_came(fields: dict[str, Any]) -> None:
    prompt = request(**fields).prompt
    assert (prompt.thinking, prompt.extra) == (Thinking(), fields)


# --- the inverse of encode ----------------------------------------------------------------------------------------

FULL = Prompt(
    (
        user("look", Image(url="https://h/a.png", detail="low"), File(name="a.pdf", data=b"1")),
        assistant(Text("calling"), ToolCall("c1", "f", {"a": [1, {"b": None}]}), ToolCall("c2", "g", {}, "{broken")),
        Message("tool", (ToolResult("c1", "x"),)),
        Message("tool", (ToolResult("c2", "y"),)),
        assistant("done"),
        user("thanks"),
    ),
    system="be brief",
    tools=(Tool("f", "d", {"type": "object"}, True), Tool("g")),
    tool_choice="f",
    parallel_tool_calls=False,
    output=OutputSchema("n", {"type": "object"}),
    max_tokens=100,
    sampling=Sampling(temperature=0.5, top_k=3, seed=1),
    stop=("END",),
    metadata={"a": "b"},
    user="u",
    extra={"provider": {"order": ["a"]}},
)


def target(**quirks: Any) -> Target:
    return Target(Provider(name="host", quirks=Quirks(**quirks)), "m", "https://host.test")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_reading_a_request_gives_the_prompt_that_was_encoded(stream: bool, limit: str) -> None:
    asked = msgspec.structs.replace(FULL, stream=stream)
    encoded, _ = encode(asked, target(output_limit=limit, system_role="developer"))
    assert read(encoded.body) == ServedRequest(asked, "m", stream, stream)


@pytest.mark.parametrize(
    "thinking",
    [Thinking(), Thinking(mode="off"), Thinking(mode="on"), Thinking(effort="high"), Thinking(budget=4000)],
    ids=["unset", "off", "on", "high", "4000"],
)
@pytest.mark.parametrize(
    ("ask_by", "budgets", "efforts"),
    [
        ("reasoning_object", True, True),
        ("thinking_toggle", True, False),
        ("enable_thinking", True, False),
        ("template_and_effort", False, True),
        ("thinking_toggle_and_effort", False, True),
    ],
)
def test_thinking_that_a_host_can_express_is_read_back(
    ask_by: AskBy, budgets: bool, efforts: bool, thinking: Thinking
) -> None:
    asked = Prompt((user("hi"),), thinking=thinking)
    encoded, _ = encode(asked, target(ask_by=ask_by))
    expected = thinking
    if thinking.effort and not efforts:
        expected = Thinking(mode="on")
    elif thinking.budget and not budgets:
        expected = Thinking(effort="medium")
    assert read(encoded.body).prompt.thinking == expected


@pytest.mark.parametrize(
    ("replay_as", "thought"),
    [
        ("field", Thought("plan", via="reasoning_content")),
        ("field", Thought("plan", via="reasoning")),
        (
            "details",
            Thought(
                "plan",
                via="reasoning_details",
                seals=(
                    Seal("reasoning_details", "s", None, '{"type":"reasoning.text","text":"plan","signature":"s"}'),
                ),
            ),
        ),
        ("content_list", Thought("plan", source="block", via="content", seals=(Seal("signature", "s"),))),
        ("tags", Thought("plan", source="tags")),
    ],
)
def test_reading_a_thought_gives_the_one_that_went_back(replay_as: ReplayAs, thought: Thought) -> None:
    history = (user("q"), assistant(thought, "42"))
    encoded, notices = encode(Prompt(history), target(replay_as=replay_as))
    assert notices == ()
    assert read(encoded.body).prompt.messages == history
