"""Options: their layers, names that do not exist, and that each option is read and documented."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.agents.config import AgentOptions
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.options import OPTIONS, CallOptions, Options, Timeout
from asides.settings import Settings, Timeouts
from asides.values.messages import Sampling

HERE = "http://127.0.0.1:9/v1"
_PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"


def layered(settings: Settings, client: dict[str, Any], **call: Any) -> Call:
    made = CallBuilder(Options(**client), settings=settings)  # type: ignore[typeddict-item]
    return made.build("openai-compatible:m", "?", Options(**{"base_url": HERE, **call}), stream=False)  # type: ignore[typeddict-item]


def test_I7_the_call_beats_the_client_beats_the_settings_beat_the_default() -> None:
    settings = Settings(
        thinking=asides.Thinking(effort="low"), max_tokens=1, retries=5, timeouts=Timeouts(idle=1), on_conflict="adjust"
    )
    alone = layered(settings, {})
    assert (alone.prompt.thinking.effort, alone.prompt.max_tokens, alone.policy.retries) == ("low", 1, 5)
    assert (alone.policy.timeout, alone.policy.on_conflict) == (Timeout(10, 600, 1), "adjust")
    client = layered(settings, {"thinking": "medium", "max_tokens": 2, "retries": 6})
    assert (client.prompt.thinking.effort, client.prompt.max_tokens, client.policy.retries) == ("medium", 2, 6)
    said = layered(settings, {"thinking": "medium", "max_tokens": 2}, thinking="high", max_tokens=3, retries=0)
    assert (said.prompt.thinking.effort, said.prompt.max_tokens, said.policy.retries) == ("high", 3, 0)
    assert layered(Settings(), {}).prompt == asides.Prompt((asides.user("?"),), stream=False)


def test_I7_none_leaves_the_choice_to_the_next_layer() -> None:
    assert layered(Settings(), {"temperature": 0.5}, temperature=None).prompt.sampling.temperature == 0.5


def test_I7_one_form_of_thinking_replaces_another_of_a_lower_layer() -> None:
    assert layered(Settings(), {"reasoning_effort": "low"}, thinking="high").prompt.thinking.effort == "high"
    assert layered(Settings(thinking=asides.Thinking(budget=9)), {}, reasoning_effort="low").prompt.thinking == (
        asides.Thinking(effort="low")
    )


def test_I7_extra_fields_of_layers_stand_side_by_side() -> None:
    made = layered(Settings(), {"extra": {"a": 1, "b": 1}}, extra={"b": 2}).prompt.extra
    assert made == {"a": 1, "b": 2}


def test_I7_a_call_wins_over_the_settings_about_reading() -> None:
    settings = Settings(thinking_field="from_settings")
    assert layered(settings, {}).target.facts.thinking_in == ("from_settings",)
    assert layered(settings, {}, thinking_field="from_call").target.facts.thinking_in == ("from_call",)


def test_an_option_that_does_not_exist_is_named_with_its_nearest() -> None:
    with pytest.raises(TypeError, match=r"no option .temprature.; did you mean temperature"):
        layered(Settings(), {}, temprature=1)
    with pytest.raises(TypeError, match="did you mean max_tokens"):
        asides.Client(max_token=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("response_format", "output"),
        ("schema", "output"),
        ("images", "files"),
        ("attachments", "files"),
        ("instructions", "system"),
        ("api_base", "base_url"),
        ("num_retries", "retries"),
        ("max_completion_tokens", "max_tokens"),
        ("extra_body", "extra"),
        ("stop_sequences", "stop"),
        ("drop_params", "on_conflict"),
        ("fallbacks", "a list of models"),
    ],
)
def test_the_names_of_other_libraries_say_which_option_it_is_here(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"no option .{name}.; did you mean {meant}"):
        layered(Settings(), {}, **{name: 1})


def test_the_fields_of_a_call_are_the_options() -> None:
    assert set(CallOptions.__struct_fields__) == OPTIONS


READ_LATER = {
    *("thinking", "reasoning_effort", "reasoning", "files", "tools", "tool_choice", "output"),
    *("api_key", "tags", "reply_limits", "timeout", "recover"),
}
"""Options with several forms: `CallOptions` keeps what was given, and the flows read it."""


def list_types(annotation: object) -> set[str]:
    """The types of a declaration, with one name for all lists and one for all mappings."""
    text = str(getattr(annotation, "__forward_arg__", annotation))
    text = re.sub(r"tuple\[(\w+), \.\.\.\]", r"Sequence[\1]", text).replace("list[", "Sequence[")
    return set(text.replace("dict[", "Mapping[").split(" | "))


def test_the_types_of_an_option_agree_where_it_is_declared() -> None:
    """For callers (`Options`) and after reading (`CallOptions`, which has the fields of `Sampling`)."""
    given, read = Options.__annotations__, Sampling.__annotations__ | CallOptions.__annotations__
    types = {name: list_types(annotation) for name, annotation in read.items()}
    assert {name for name, each in types.items() if each == {"Any"}} == READ_LATER
    assert {name: each for name, each in types.items() if name not in READ_LATER} == {
        name: list_types(annotation) for name, annotation in given.items() if name not in READ_LATER
    }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("str | Sequence[str] | None", "str | tuple[str, ...] | None", True),
        ("Mapping[str, float] | None", "dict[str, float] | None", True),
        ("Sequence[Mapping[str, Any]]", "list[dict[str, Any]]", True),
        ("int | None", "float | None", False),
        ("int | None", "int", False),
        ("Sequence[str]", "tuple[int, ...]", False),
    ],
)
def test_the_comparison_of_types_sees_differences(one: str, other: str, same: bool) -> None:
    assert (list_types(one) == list_types(other)) is same


# For each option a value that changes the call.
_EXAMPLES: dict[str, Any] = {
    "system": "be brief",
    "thinking": "low",
    "reasoning_effort": "low",
    "reasoning": {"effort": "low"},
    "files": ["https://example.com/a.png"],
    "tools": [{"name": "f"}],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "max_tokens": 7,
    "stop": "!",
    **dict.fromkeys(Sampling.__struct_fields__, 1),
    "logit_bias": {"7": 1},
    "logprobs": False,
    "user": "u",
    "metadata": {"a": "b"},
    "extra": {"a": 0},
    "cache": True,
    "stream": True,
    "output": "json",
    "store": False,
    "stateful": True,
    "previous_response_id": "resp_1",
    "conversation_id": "conv_1",
    "truncation": "auto",
    "include": ["a"],
    "reasoning_context": "auto",
    "reasoning_mode": "pro",
    "base_url": "http://127.0.0.1:10/v1",
    "api_key": "k",
    "family": "qwen3",
    "endpoint": "responses",
    "openai_responses_enabled": True,
    "thinking_field": "why",
    "tags": ["think"],
    "tag_position": "leading",
    "starts_inside": False,
    "heuristics": False,
    "keep_raw": False,
    "thinking_encrypted": True,
    "reply_limits": {"events": 1},
    "timeout": 7,
    "retries": 0,
    "max_wait": 0.0,
    "on_conflict": "adjust",
    "continuations": 0,
    "recover": True,
    "attempts": 2,
    "compaction": "provider",
}
_CHECKED_ONLY = {"tools_max_count", "tools_max_json_kb"}


@pytest.mark.parametrize("name", sorted(OPTIONS - _CHECKED_ONLY))
def test_every_option_alone_changes_the_call_from_any_layer(name: str) -> None:
    settings = Settings(on_conflict="adjust") if name == "compaction" else Settings()  # few providers compact
    given, bare = {name: _EXAMPLES[name]}, layered(settings, {})
    assert layered(settings, {}, **given) != bare
    assert layered(settings, given, base_url=given.get("base_url", HERE)) == layered(settings, {}, **given)
    assert layered(settings, {}, **{name: None, "base_url": HERE}) == bare


@pytest.mark.parametrize("name", sorted(_CHECKED_ONLY))
def test_a_limit_on_tools_is_read(name: str) -> None:
    tools = [{"name": f"f{number}", "description": "x" * 900} for number in range(2)]
    layered(Settings(), {}, tools=tools)
    with pytest.raises(asides.TooManyTools):
        layered(Settings(), {}, tools=tools, **{name: 1})


@pytest.mark.parametrize(
    ("name", "bad"), [("timeout", -1), ("retries", -1), ("continuations", -1), ("max_wait", -1.0), ("timeout", True)]
)
def test_a_bad_value_of_any_layer_is_an_error_of_each_call(name: str, bad: Any) -> None:
    options: Any = {name: bad, "base_url": HERE}
    builder = CallBuilder(options, settings=Settings())
    for _ in range(2):
        with pytest.raises(asides.ConfigError):
            builder.build("openai-compatible:m", "?", Options(), stream=False)
    good: Any = {name: 1}
    assert builder.build("openai-compatible:m", "?", good, stream=False).policy == layered(Settings(), good).policy


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_is_documented(name: str) -> None:
    assert f"`{name}`" in _PAGE.read_text(encoding="utf-8")


def test_a_word_that_is_no_choice_names_the_choices() -> None:
    with pytest.raises(asides.ConfigError, match=r"tag_position .*'auto', 'leading', 'anywhere'"):
        layered(Settings(), {}, tag_position="middle")
    with pytest.raises(asides.ConfigError, match=r"compaction .*Use one of 'provider', a number\."):
        asides.explain("openai:gpt-5.4", "?", compaction="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("instructions", "system"), ("output_type", "output"), ("max_turns", "limits"), ("aproval", "approval")],
)
def test_an_agent_says_too_which_option_was_meant(name: str, meant: str) -> None:
    options: Any = {name: 1}
    with pytest.raises(TypeError, match=f"an agent has no option '{name}'; did you mean {meant}"):
        asides.Agent("vllm:m", **options).run("?")


def test_history_passed_as_an_option_is_the_second_argument() -> None:
    options: Any = {"messages": [{"role": "user", "content": "?"}]}
    with pytest.raises(
        TypeError, match=r"no option 'messages'; the messages are the second argument, as in ask\(model"
    ):
        asides.ask("vllm:m", **options)


@pytest.mark.skipif(Options.__doc__ is None, reason="Python runs without docstrings")
@pytest.mark.parametrize(
    "function",
    [
        *(asides.ask, asides.stream, asides.ask_many, asides.Client.ask, asides.Client.ask_many, asides.explain),
        *(asides.aio.ask, asides.aio.stream, asides.aio.ask_many, asides.AsyncClient.ask, asides.AsyncClient.stream),
        *(asides.Agent.__init__, asides.Agent.run, asides.Agent.stream, asides.Agent.run_many),
        *(asides.AsyncAgent.__init__, asides.AsyncAgent.run, asides.AsyncAgent.run_many),
    ],
    ids=lambda function: f"{function.__module__}.{function.__qualname__}",
)
def test_the_help_lists_every_argument_once(function: Any) -> None:
    lines = [line.partition(":")[0] for line in function.__doc__.splitlines() if line.startswith("- `")]
    named = [name for line in lines for name in re.findall(r"`(\w+)`", line)]
    arguments = set(inspect.signature(function).parameters) - {"self", "options"}
    if "Agent" in function.__qualname__:
        arguments |= set(AgentOptions.__annotations__)
    assert sorted(named) == sorted(arguments | OPTIONS)


@pytest.mark.parametrize(
    ("name", "meant"), [("functions", "tools"), ("toolsets", "tools"), ("function_call", "tool_choice")]
)
def test_names_of_tools_in_other_libraries_lead_to_ours(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"did you mean {meant}"):
        asides.ask("openai:gpt-5", "?", **{name: []})  # type: ignore[call-overload]


def test_the_error_names_what_was_called() -> None:
    unknown: Any = {"modle": "x"}
    with pytest.raises(TypeError, match="Conversation has no option 'modle'"):
        asides.Conversation("openai:gpt-5", **unknown)
    with pytest.raises(TypeError, match="client has no option 'modle'"):
        asides.Client(**unknown)
    with pytest.raises(TypeError, match=r"ask_many\(\) has no option 'modle'; did you mean model"):
        asides.ask_many("openai:gpt-5", ["?"], **unknown)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("modle", r"did you mean model\?"),
        ("promt", r"did you mean prompt\?"),
        ("max_workers", r"did you mean concurrency of ask_many\?"),
        ("max_turns", r"did you mean limits of an agent, as in Agent\(…, limits=\{\"turns\": 8\}\)\?"),
    ],
)
def test_an_unknown_option_of_ask_suggests_the_likely_argument_first(name: str, hint: str) -> None:
    unknown: Any = {name: 1}
    with pytest.raises(TypeError, match=hint):
        asides.ask("openai:gpt-5", "?", **unknown)


def test_a_client_has_no_model_of_its_own() -> None:
    unknown: Any = {"model": "openai:gpt-5"}
    with pytest.raises(TypeError, match="the model is the first argument of each call"):
        asides.Client(**unknown)


def test_an_unknown_option_of_ask_many_is_compared_with_all_of_its_arguments() -> None:
    unknown: Any = {"concurency": 3}
    with pytest.raises(TypeError, match=r"ask_many\(\) has no option 'concurency'; did you mean concurrency\?"):
        asides.ask_many("openai:gpt-5", ["?"], **unknown)


def test_an_unknown_effort_raises_where_it_is_written() -> None:
    effort: Any = "hgh"
    with pytest.raises(asides.InvalidThinking, match="thinking='hgh' is not known; use off, auto"):
        asides.Thinking(effort=effort)


def test_help_lists_the_options_wherever_they_are_taken() -> None:
    functions = [asides.ask, asides.Client.ask, asides.explain, asides.Conversation.ask, asides.Conversation.stream]
    for function in [*functions, asides.Agent.__init__, asides.AsyncAgent.__init__, asides.AsyncConversation.ask]:
        assert "`reasoning_effort`" in (function.__doc__ or ""), function
    assert "`limits`" in (asides.Agent.__init__.__doc__ or "")
