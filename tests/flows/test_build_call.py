"""The arguments of a call: prompts, tools, outputs and options in all their forms, and an error for each mistake."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides.dialects import find_dialect
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.intake.read import read
from asides.options import Options, ReplyLimits, Timeout
from asides.settings import Settings
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema, Prompt, Sampling
from asides.values.tools import Tool

HERE = "http://127.0.0.1:9/v1"


def call(prompt: Any = "?", model: str = "openai-compatible:made-up", stream: bool = False, **options: Any) -> Call:
    made = CallBuilder(settings=Settings())
    return made.build(model, prompt, Options(**{"base_url": HERE, **options}), stream=stream)  # type: ignore[typeddict-item]


# --- the prompt ---------------------------------------------------------------------------------------------------

HELLO = asides.user("hello")


@pytest.mark.parametrize(
    ("prompt", "messages"),
    [
        ("hello", (HELLO,)),
        (HELLO, (HELLO,)),
        ([HELLO], (HELLO,)),
        ((HELLO, asides.assistant("hi")), (HELLO, asides.assistant("hi"))),
        ([{"role": "user", "content": "hello"}], (HELLO,)),
        ([{"role": "system", "content": "be brief"}, HELLO], (asides.system("be brief"), HELLO)),
        ([HELLO, asides.Reply((asides.Text("hi"),)), HELLO], (HELLO, asides.assistant("hi"), HELLO)),
        (Prompt((HELLO,)), (HELLO,)),
    ],
)
def test_a_prompt_in_any_of_its_shapes(prompt: Any, messages: tuple[asides.Message, ...]) -> None:
    assert call(prompt).prompt.messages == messages


class Diary:
    """Something that keeps a history."""

    system = "be brief"

    @property
    def messages(self) -> list[asides.Message]:
        return [HELLO]


def test_whatever_keeps_a_history_is_a_prompt() -> None:
    assert (call(Diary()).prompt.messages, call(Diary()).prompt.system) == ((HELLO,), "be brief")
    assert call(Diary(), system="be long").prompt.system == "be long"


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (42, "not an int"),
        ({"content": "hello"}, r"messages\[0\]: role is missing"),
        (b"hello", "bytes that are not a known picture"),
        ([], "no message"),
        ([5], r"messages\[0\] is an int"),
        ([HELLO, {"role": "user", "content": "x"}, {"role": "wizard"}], r"messages\[2\]: the role 'wizard'"),
    ],
)
def test_anything_else_as_a_prompt_is_an_error(prompt: Any, words: str) -> None:
    with pytest.raises(asides.ConfigError, match=words):
        call(prompt)


def test_a_prompt_value_keeps_what_no_option_says_otherwise() -> None:
    low = asides.Thinking(effort="low")
    start = Prompt((HELLO,), "be brief", low, max_tokens=7, sampling=Sampling(seed=1), extra={"a": 1})
    kept = call(start).prompt
    assert (kept.system, kept.thinking, kept.max_tokens, kept.stream) == ("be brief", start.thinking, 7, False)
    changed = call(start, thinking="high", temperature=0.5, extra={"b": 2}).prompt
    assert changed.thinking == asides.Thinking(effort="high")
    assert changed.sampling == Sampling(temperature=0.5, seed=1)
    assert changed.extra == {"a": 1, "b": 2}


SAMPLING: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "min_p": 0.1,
    "presence_penalty": 0.2,
    "frequency_penalty": 0.3,
    "repetition_penalty": 1.1,
    "logit_bias": {"50256": -100.0},
    "logprobs": True,
    "top_logprobs": 2,
    "seed": 7,
}


def test_every_sampling_setting_is_read() -> None:
    assert set(SAMPLING) == set(Sampling.__struct_fields__)
    assert call(**SAMPLING).prompt.sampling == Sampling(**SAMPLING)
    assert call(logit_bias={50256: -100}).prompt.sampling == Sampling(logit_bias={"50256": -100.0})


def test_the_other_settings_of_a_prompt_are_read() -> None:
    made = call(
        system="be brief",
        max_tokens=100,
        stop="END",
        parallel_tool_calls=False,
        user="somebody",
        metadata={"a": "b"},
        extra={"native": True},
        tool_choice="none",
    ).prompt
    assert (made.system, made.max_tokens, made.stop, made.parallel_tool_calls) == ("be brief", 100, ("END",), False)
    assert (made.user, made.metadata, made.extra) == ("somebody", {"a": "b"}, {"native": True})
    assert made.tool_choice == "none"
    assert call(stop=["a", "b"]).prompt.stop == ("a", "b")


@pytest.mark.parametrize("asked", [None, True, False])
@pytest.mark.parametrize("verb_streams", [True, False])
def test_the_verb_decides_whether_to_stream_unless_an_option_does(asked: bool | None, verb_streams: bool) -> None:
    assert call(stream=verb_streams).prompt.stream is verb_streams
    if asked is not None:
        made = CallBuilder(settings=Settings())
        options = Options(base_url=HERE, stream=asked)
        assert made.build("openai-compatible:m", "?", options, stream=verb_streams).prompt.stream is asked


@pytest.mark.parametrize(
    ("options", "thinking"),
    [
        ({"thinking": "high"}, asides.Thinking(effort="high")),
        ({"thinking": 8000}, asides.Thinking(budget=8000)),
        ({"thinking": False}, asides.Thinking(mode="off")),
        ({"thinking": {"type": "enabled", "budget_tokens": 3000}}, asides.Thinking(budget=3000)),
        ({"reasoning_effort": "low"}, asides.Thinking(effort="low")),
        ({"reasoning": {"max_tokens": 2000, "exclude": True}}, asides.Thinking(budget=2000, show="none")),
        ({}, asides.Thinking()),
    ],
)
def test_thinking_in_any_of_its_spellings(options: dict[str, Any], thinking: asides.Thinking) -> None:
    assert call(**options).prompt.thinking == thinking


def test_two_spellings_at_once_are_a_contradiction() -> None:
    with pytest.raises(asides.InvalidThinking, match="thinking and reasoning_effort"):
        call(thinking="high", reasoning_effort="low")


def test_notices_from_reading_thinking_are_in_the_call() -> None:
    notices = call(reasoning={"effort": "low", "summary": "brief"}).notices
    assert [notice.code for notice in notices] == ["summary_mapped"]


# --- tools and output ---------------------------------------------------------------------------------------------


def look(at: str, often: int = 1) -> str:
    """Look at something.

    Not told to the model.
    """
    return at * often


LOOK = Tool(
    "look",
    "Look at something.",
    {
        "type": "object",
        "properties": {"at": {"type": "string"}, "often": {"type": "integer", "default": 1}},
        "required": ["at"],
    },
)


@pytest.mark.parametrize(
    "tool",
    [
        LOOK,
        look,
        {"type": "function", "function": msgspec.to_builtins(LOOK)},
        {"type": "function", **msgspec.to_builtins(LOOK)},
        {"name": "look", "description": "Look at something.", "input_schema": LOOK.parameters},
    ],
    ids=["Tool", "function", "chat", "responses", "anthropic"],
)
def test_a_tool_in_any_of_its_shapes(tool: Any) -> None:
    assert call(tools=[tool]).prompt.tools == (LOOK,)


def test_what_a_decorator_made_of_a_function_brings_its_tool_along() -> None:
    @asides.tool(name="glance")
    def look(at: str) -> None:
        """Look there."""

    (told,) = call(tools=[look]).prompt.tools
    assert (told, told.name) == (look.tool, "glance")


@pytest.mark.parametrize("tool", [42, {"type": "function"}, {"function": {"name": "x", "parameters": 1}}, lambda x: x])
def test_anything_else_as_a_tool_is_an_error(tool: Any) -> None:
    with pytest.raises(asides.ConfigError):
        call(tools=[tool])


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("any", "required"),
        ("look", "look"),
        ({"type": "function", "function": {"name": "look"}}, "look"),
        ({"type": "function", "name": "look"}, "look"),
        ({"type": "tool", "name": "look"}, "look"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
    ],
)
def test_a_tool_choice_in_any_of_its_shapes(given: Any, read: str) -> None:
    assert call(tool_choice=given).prompt.tool_choice == read


@dataclass
class Weather:
    city: str
    degrees: float


class Forecast(msgspec.Struct):
    days: list[Weather]
    note: str = ""


WEATHER = {
    "title": "Weather",
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def test_a_type_is_an_output_and_strict_where_it_leaves_nothing_open() -> None:
    made = call(output=Weather).prompt.output
    assert made == OutputSchema("Weather", WEATHER, strict=True)
    forecast = call(output=Forecast).prompt.output
    assert isinstance(forecast, OutputSchema)
    assert (forecast.name, forecast.strict) == ("Forecast", False)
    assert forecast.schema["$defs"]["Weather"] == WEATHER
    assert forecast.schema["properties"]["days"] == {"type": "array", "items": {"$ref": "#/$defs/Weather"}}


def test_a_model_of_another_library_brings_its_own_schema() -> None:
    class Model:
        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:
            return {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}

    made = call(output=Model).prompt.output
    assert isinstance(made, OutputSchema)
    assert (made.name, made.strict, made.schema["additionalProperties"]) == ("Model", True, False)


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ("json", "json"),
        ("json_object", "json"),
        (WEATHER, OutputSchema("Weather", WEATHER, strict=True)),
        ({"title": "my sky!"}, OutputSchema("my_sky_", {"title": "my sky!"}, strict=True)),
        ({"type": "object"}, OutputSchema("output", {"type": "object"}, strict=False)),
        (OutputSchema("w", WEATHER), OutputSchema("w", WEATHER)),
        (
            {"type": "json_schema", "json_schema": {"name": "w", "schema": WEATHER, "strict": True}},
            OutputSchema("w", WEATHER, strict=True),
        ),
    ],
)
def test_an_output_in_any_of_its_shapes(output: Any, read: Any) -> None:
    assert call(output=output).prompt.output == read


@pytest.mark.parametrize("output", ["yaml", lambda: 1])
def test_anything_else_as_an_output_is_an_error(output: Any) -> None:
    with pytest.raises(asides.ConfigError, match="output"):
        call(output=output)


# --- where and how ------------------------------------------------------------------------------------------------


def test_options_change_how_a_reply_is_read() -> None:
    target = call(thinking_field=" my_thoughts ", heuristics=False, tags=[("<<", ">>")], starts_inside=True).target
    assert (target.facts.thinking_in, target.facts.heuristics) == (("my_thoughts",), False)
    assert (target.facts.tags, target.facts.starts_inside) == ((("<<", ">>"),), True)
    assert call(tags="think").target.facts.tags == ("think",)


@pytest.mark.parametrize("position", ["auto", "leading", "anywhere"])
@pytest.mark.parametrize("model", ["openai-compatible:made-up", "deepseek:deepseek-chat"])
def test_the_position_of_tags_is_an_option(model: str, position: Any) -> None:
    target = call(model=model, tag_position=position, api_key="x").target
    assert target.facts.tag_position == position
    assert target.facts.tags


def test_a_position_of_tags_brings_tags_to_a_host_that_never_inlines() -> None:
    made = CallBuilder(settings=Settings())
    options = (Options(api_key="x"), Options(api_key="x", tag_position="anywhere"))
    plain, given = (made.build("openai:gpt-4o", "?", each, stream=True).target for each in options)
    assert (plain.facts.tags, bool(given.facts.tags)) == ((), True)


def test_an_unknown_position_is_named() -> None:
    with pytest.raises(ConfigError, match="tag_position"):
        call(tag_position="somewhere")


def test_a_foreign_address_is_reported_and_the_provider_s_own_is_not() -> None:
    foreign = call(model="openai:gpt-4o", api_key="x")
    assert [notice.code for notice in foreign.notices] == ["foreign_address"]
    assert "openai-compatible" in foreign.notices[0].detail
    own = CallBuilder(settings=Settings()).build("openai:gpt-4o", "?", Options(api_key="x"), stream=False)
    assert (own.notices, call().notices) == ((), ())


@pytest.mark.parametrize("blank", ["", "  ", []])
def test_a_blank_field_name_is_as_good_as_none(blank: Any) -> None:
    assert call(thinking_field=blank).target == call().target


def test_a_host_that_begins_inside_a_tag_has_tags() -> None:
    target = call(model="deepseek:deepseek-chat", starts_inside=True, api_key="x").target
    assert target.facts.tags


def test_a_family_decides_which_rules_hold() -> None:
    plain = call(model="deepseek:my-deployment", api_key="x").target
    named = call(model="deepseek:my-deployment", api_key="x", family="deepseek-reasoner").target
    assert (named.model, named.family) == ("my-deployment", "deepseek-reasoner")
    assert named.rule != plain.rule


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (5, Timeout(5, 5, 5)),
        (30.5, Timeout(10, 30.5, 30.5)),
        (Timeout(idle=3), Timeout(10, 600, 3)),
        ({"first_byte": 3}, Timeout(10, 3, 300)),
        (Timeout(None, None, None), Timeout(None, None, None)),
        (Timeout(math.inf, 1e300, 1e18, math.inf), Timeout(None, None, None, None)),
        (math.inf, Timeout(10, None, None)),
    ],
)
def test_a_timeout_in_any_of_its_shapes(given: Any, read: Timeout) -> None:
    assert call(timeout=given).policy.timeout == read


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": "soon"},
        {"timeout": True},
        {"timeout": {"frist_byte": 3}},
        {"timeout": Timeout(idle=float("nan"))},
        {"retries": -1},
        {"retries": 1.5},
        {"max_wait": -1},
        {"on_conflict": "ignore"},
        {"temperature": "hot"},
        {"max_tokens": "many"},
        {"system": 7},
        {"stop": [1]},
        {"metadata": {"a": 1}},
        {"logit_bias": [1]},
        {"heuristics": "yes"},
        {"base_url": 42},
    ],
    ids=str,
)
def test_a_value_of_the_wrong_kind_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(asides.ConfigError):
        call(**options)


def test_a_key_is_needed_before_a_byte_is_sent() -> None:
    with pytest.raises(asides.MissingKey, match="DEEPSEEK_API_KEY"):
        CallBuilder(settings=Settings()).build("deepseek:deepseek-chat", "?", Options(), stream=False)


def test_a_call_shows_no_content() -> None:
    assert repr(call("a secret", api_key="sk-hidden")) == (
        "Call(openai-compatible:made-up, Prompt(messages=1, tools=[], stream=False))"
    )


def test_settings_are_read_with_the_first_call_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = CallBuilder()
    file = tmp_path / "asides.toml"
    file.write_text('retries = 7\n[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\nkey = "optional"\n')
    monkeypatch.setenv("ASIDES_CONFIG", str(file))
    made = client.build("mine:model", "?", Options(), stream=False)
    assert (made.policy.retries, made.target.provider.name) == (7, "mine")


def test_rows_of_the_client_come_before_those_of_the_settings() -> None:
    mine, theirs = (asides.Provider(name="mine", base_url=f"http://127.0.0.1:{port}/v1") for port in (1, 2))
    made = CallBuilder(providers=[mine], settings=Settings(providers=(theirs,)))
    assert made.build("mine:m", "?", Options(), stream=False).target.base_url == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    "mistake",
    [
        {"max_tokens": 0},
        {"max_tokens": -1},
        {"tool_choice": 5},
        {"api_key": 5},
        {"stop": 5},
        {"extra": "x"},
        {"metadata": 5},
        {"include": 5},
        {"thinking_field": 5},
        {"tags": 5},
        {"tags": "made-up"},
        {"tags": [("<a>",)]},
        {"tags": [("<a>", " ")]},
    ],
)
def test_a_value_that_no_option_takes_is_named_before_anything_is_sent(mistake: dict[str, Any]) -> None:
    with pytest.raises(asides.ConfigError, match=next(iter(mistake))):
        call(**mistake)


def test_tags_of_a_row_that_do_not_exist_are_named_before_anything_is_sent() -> None:
    row = asides.Provider(name="mine", base_url=HERE, quirks=asides.Quirks(tags=("made-up",)))
    with pytest.raises(asides.ConfigError, match="no tag grammar is called 'made-up'"):
        CallBuilder(settings=Settings(), providers=[row]).build("mine:m", "?", Options(), stream=False)


@pytest.mark.parametrize("model", [None, 5, b"openai:gpt-4o"])
def test_a_model_that_is_no_text_is_named(model: Any) -> None:
    with pytest.raises(asides.UnknownModel, match="provider:model"):
        call(model=model)


def test_limits_of_a_reply_are_given_as_a_value_or_by_field() -> None:
    assert call().policy.reply_limits == ReplyLimits()
    assert call(reply_limits=ReplyLimits(events=9)).policy.reply_limits.events == 9
    assert call(reply_limits={"tool_calls": None}).policy.reply_limits == ReplyLimits(tool_calls=None)
    for wrong in (5, {"made_up": 1}, {"events": "many"}, ReplyLimits(events=0), {"reply_bytes": -1}):
        with pytest.raises(asides.ConfigError, match="reply_limits"):
            call(reply_limits=wrong)


def test_a_system_prompt_in_blocks_keeps_its_cache_breakpoints() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "A"},
        {"type": "text", "text": "B", "cache_control": {"type": "ephemeral"}},
    ]
    prompt = call(system=blocks).prompt
    assert prompt.system is None
    assert prompt.messages == (
        asides.Message("system", (asides.Text("A"), asides.Text("B", cache=True))),
        *call().prompt.messages,
    )
    body = asides.explain("anthropic:claude-sonnet-5", "?", system=blocks).body
    assert body["system"] == blocks


def test_fields_of_a_tool_are_sent_where_the_dialect_has_them_and_told_elsewhere() -> None:
    tool = {"name": "look", "input_schema": LOOK.parameters, "defer_loading": True, "input_examples": [{"at": "it"}]}
    sent = asides.explain("anthropic:claude-sonnet-5", "?", tools=[tool])
    assert sent.body["tools"] == [tool]
    assert not sent.notices
    told = call(tools=[tool])
    assert [notice.code for notice in told.notices] == ["tool_field_not_sent"]
    assert "'defer_loading', 'input_examples'" in told.notices[0].detail
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}], "tools": [{**tool, "x": 1}]}
    read = find_dialect("anthropic").read(json.dumps(body).encode()).prompt
    relayed = asides.explain("anthropic:claude-sonnet-5", read)
    assert relayed.body["tools"] == body["tools"], "what was written for this dialect goes out as it came"
    assert not relayed.notices


@pytest.mark.parametrize(
    ("model", "tool"),
    [
        ("groq:openai/gpt-oss-120b", {"type": "browser_search"}),
        ("openrouter:openai/gpt-5", {"type": "openrouter:web_search", "parameters": {"max_results": 3}}),
        ("openrouter:openai/gpt-5", {"type": "web_search"}),
    ],
)
def test_a_tool_that_a_chat_host_runs_goes_out_as_it_is(model: str, tool: dict[str, Any]) -> None:
    assert asides.explain(model, "?", tools=[tool]).body["tools"] == [tool]
    with pytest.raises(asides.Unsupported, match="not a function"):
        asides.explain("openai-compatible:made-up", "?", tools=[tool], base_url=HERE)


def test_the_cache_breakpoint_of_a_tool_goes_to_a_chat_host_that_takes_it() -> None:
    tool = {"name": "look", "input_schema": LOOK.parameters, "cache_control": {"type": "ephemeral"}}
    (sent,) = asides.explain("openrouter:openai/gpt-5", "?", tools=[tool]).body["tools"]
    assert sent["cache_control"] == {"type": "ephemeral"}


class Named(asides.Message, frozen=True):
    """A message of someone's own kind."""


def test_messages_alone_are_taken_as_they_are() -> None:
    many = tuple(asides.user(str(number)) for number in range(1_000))
    assert read(many) is many
    assert read(list(many)) == many
    assert read(iter(many)) == many


@pytest.mark.parametrize(
    "stranger",
    [
        {"role": "user", "content": "hello"},
        asides.Reply((asides.Text("hi"),)),
        Named("user", (asides.Text("hi"),)),
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_stranger_among_messages_is_read_as_alone(stranger: Any, place: int) -> None:
    mixed: list[Any] = [HELLO, HELLO]
    mixed.insert(place, stranger)
    assert read(mixed)[place] == read([stranger])[0]
    assert read(mixed)[:place] == (HELLO,) * place


@pytest.mark.parametrize("stranger", [None, 7, asides.Message])
def test_what_is_no_message_is_an_error_wherever_it_stands(stranger: Any) -> None:
    for mixed in ([stranger], [HELLO, stranger], [stranger, HELLO]):
        with pytest.raises(ConfigError, match=rf"messages\[{mixed.index(stranger)}\]"):
            read(mixed)


# --- the target ---------------------------------------------------------------------------------------------------


def test_what_shapes_the_target_makes_another() -> None:
    made = [
        call(),
        call(family="qwen3-8b"),
        call(thinking={"show": "raw"}),
        call(tags=["think"]),
        call(tags=["thought"]),
        call(tag_position="leading"),
        call(starts_inside=True),
        call(starts_inside=False),
        call(heuristics=False),
        call(heuristics=True),
        call(thinking_field="why"),
        call(base_url="http://127.0.0.1:10/v1"),
        call(model="openai-compatible:other"),
        call(model="openai:made-up", api_key="k"),
    ]
    assert all(one.target != other.target for one, other in combinations(made, 2))
    assert made[3].target.facts.tags == ("think",)
    assert made[6].target.facts.starts_inside is True


def test_settings_that_shape_the_target_make_another() -> None:
    plain, named = (
        CallBuilder(settings=settings).build("openai-compatible:m", "?", Options(base_url=HERE), stream=False).target
        for settings in (Settings(), Settings(thinking_field="why"))
    )
    assert (plain.facts.thinking_in[0], named.facts.thinking_in) == ("reasoning_content", ("why",))


def test_a_list_of_tags_is_checked_as_a_list_though_a_pair_of_them_was_used() -> None:
    assert call(tags=("<a>", "</a>")).target.facts.tags == ("<a>", "</a>")
    with pytest.raises(ConfigError, match="tags"):
        call(tags=["<a>", "</a>"])


def test_a_variable_switches_the_endpoint_of_a_known_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> str:
        return call(model="openai:gpt-5", base_url=None, api_key="k").target.dialect

    monkeypatch.delenv("OPENAI_RESPONSES_DISABLE", raising=False)
    assert ask() == "openai_responses"
    monkeypatch.setenv("OPENAI_RESPONSES_DISABLE", "true")
    assert ask() == "openai_chat"
    monkeypatch.delenv("OPENAI_RESPONSES_DISABLE")
    assert ask() == "openai_responses"


def test_bad_tags_of_a_row_are_an_error_with_every_call() -> None:
    row = asides.Provider(name="mine", base_url=HERE, quirks=asides.Quirks(tags=("",)))
    builder = CallBuilder(providers=[row], settings=Settings())
    for _ in range(2):
        with pytest.raises(ConfigError, match="tags"):
            builder.build("mine:m", "?", Options(), stream=False)
