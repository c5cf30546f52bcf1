"""The strategy for a typed answer follows from facts of the row, and never costs the thinking."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from asides import dialects
from asides.agents.outputs.output_type import read_output_type
from asides.agents.outputs.strategy import FINAL_TOOL, Strategy, apply_strategy, choose_strategy
from asides.history.plan import plan
from asides.providers.provider import ModelRule, Quirks, Target
from asides.providers.table import PROVIDERS
from asides.values.errors import InvalidThinking, Unsupported
from asides.values.messages import Prompt, user
from asides.values.thinking import Thinking
from asides.values.tools import Tool
from tests.agents.outputs.shapes import Forecast, Node, Person, Weather, known, target

LOOK = Tool("look", "Look out of the window.")
ON = Thinking(effort="high")
OFF = Thinking(mode="off")


def prompt(*tools: Tool, thinking: Thinking | None = None, **fields: Any) -> Prompt:
    return Prompt((user("How is the sky?"),), tools=tools, thinking=thinking or Thinking(), **fields)


def choose(to: Any, asked: Prompt | None = None, output: Any = Weather) -> Strategy:
    return choose_strategy(read_output_type(output), asked or prompt(), known(to) if isinstance(to, str) else to)


def essence(found: Strategy) -> tuple[str, bool, bool, bool]:
    return (found.kind, found.forced, found.two_phase, found.json_mode)


NATIVE = ("native", False, False, False)
TWO_PHASE = ("native", False, True, False)
FORCED = ("tool", True, False, False)
ASKED = ("tool", False, False, False)
IN_WORDS = ("instructed", False, False, False)
IN_WORDS_AS_JSON = ("instructed", False, False, True)


@pytest.mark.parametrize(
    ("model", "alone", "with_tools"),
    [
        ("openai-responses:gpt-5", NATIVE, NATIVE),
        ("openai-chat:gpt-4o", NATIVE, NATIVE),
        ("anthropic:claude-sonnet-4-5", NATIVE, NATIVE),
        ("anthropic:claude-3-5-haiku-latest", FORCED, FORCED),
        ("anthropic:claude-sonnet-4-0", FORCED, FORCED),
        ("google:gemini-3-pro-preview", NATIVE, NATIVE),
        ("google:gemini-2.5-pro", NATIVE, TWO_PHASE),
        ("google:gemini-2.0-flash", NATIVE, TWO_PHASE),
        ("google-openai:gemini-2.5-flash", NATIVE, TWO_PHASE),
        ("google-openai:gemini-3-pro-preview", NATIVE, NATIVE),
        ("google:gemini-2.5-flash-image", IN_WORDS, IN_WORDS),
        ("groq:openai/gpt-oss-120b", NATIVE, TWO_PHASE),
        ("groq:llama-3.3-70b-versatile", FORCED, FORCED),
        ("cohere:command-a-03-2025", NATIVE, TWO_PHASE),
        ("ollama:qwen3:8b", NATIVE, TWO_PHASE),
        ("vllm:Qwen/Qwen3-8B", NATIVE, TWO_PHASE),
        ("local:tiny", NATIVE, TWO_PHASE),
        ("openai-compatible:anything", NATIVE, TWO_PHASE),
        ("deepseek:deepseek-chat", FORCED, FORCED),
        ("deepseek:deepseek-reasoner", ASKED, ASKED),
        ("moonshot:kimi-k2-thinking", ASKED, ASKED),
        ("qwen:qwen-plus", FORCED, FORCED),
        ("qwen:qwq-plus", ASKED, ASKED),
        ("minimax-anthropic:minimax-m2", FORCED, FORCED),
        ("bedrock:anthropic.claude-sonnet-4-5-v1:0", NATIVE, NATIVE),
        ("bedrock:amazon.nova-pro-v1:0", FORCED, FORCED),
        ("bedrock:us.deepseek.r1-v1:0", IN_WORDS, IN_WORDS),
        ("perplexity:sonar", NATIVE, NATIVE),
        ("mistral:magistral-medium-latest", NATIVE, TWO_PHASE),
        ("openai-chat:gpt-4o-2024-05-13", FORCED, FORCED),
        ("openai-chat:gpt-4", FORCED, FORCED),
        ("openai-chat:gpt-4.1", NATIVE, NATIVE),
        ("openai-chat:o1-mini", IN_WORDS, IN_WORDS),
        ("xai:grok-3", NATIVE, TWO_PHASE),
        ("xai:grok-4", NATIVE, NATIVE),
        ("anthropic-openai:claude-sonnet-4-5", FORCED, FORCED),
    ],
)
def test_the_way_of_a_model_alone_and_with_tools(model: str, alone: Any, with_tools: Any) -> None:
    assert essence(choose(model)) == alone
    assert essence(choose(model, prompt(LOOK))) == with_tools


@pytest.mark.parametrize(
    ("rule", "thinking", "forced"),
    [
        (ModelRule(thinking="optional", forced_tools=False), None, True),
        (ModelRule(thinking="optional", forced_tools=False), OFF, True),
        (ModelRule(thinking="optional", forced_tools=False), ON, False),
        (ModelRule(thinking="optional", default="on", forced_tools=False), None, False),
        (ModelRule(thinking="always", forced_tools=False), None, False),
        (ModelRule(thinking="always", forced_tools=False), OFF, False),
        (ModelRule(thinking="always", forced_tools="required"), None, False),
        (ModelRule(thinking="optional"), ON, True),
        (ModelRule(thinking="optional", forced_tools_with_budget=False), ON, True),
        (ModelRule(thinking="optional", forced_tools_with_budget=False), Thinking(budget=2048), False),
        (ModelRule(), ON, True),
    ],
)
def test_a_tool_is_forced_only_where_the_thinking_that_is_asked_for_allows_it(
    rule: ModelRule, thinking: Thinking | None, forced: bool
) -> None:
    found = choose(target(Quirks(structured_output="nothing"), rule), prompt(thinking=thinking))
    assert (found.kind, found.forced) == ("tool", forced)


def test_a_model_without_tools_is_told_in_words_and_to_give_json_where_its_host_can_say_so() -> None:
    rule = ModelRule(tools=False)
    assert essence(choose(target(Quirks(structured_output="json_object"), rule))) == IN_WORDS_AS_JSON
    assert essence(choose(target(Quirks(structured_output="nothing"), rule))) == IN_WORDS
    apart = Quirks(structured_output="json_object", output_with_tools=False)
    assert essence(choose(target(apart, rule), prompt(LOOK))) == IN_WORDS


def test_a_model_that_takes_no_tools_while_it_thinks_is_told_in_words_then() -> None:
    to = target(Quirks(structured_output="nothing"), ModelRule(thinking="optional", tools_while_thinking=False))
    assert choose(to, prompt(thinking=ON)).kind == "instructed"
    assert choose(to, prompt()).kind == "tool"


def test_a_host_that_takes_no_schema_while_a_model_thinks_gets_none_then() -> None:
    to = target(Quirks(output_while_thinking=False), ModelRule(thinking="optional", default="off"))
    assert essence(choose(to, prompt(thinking=ON))) == FORCED
    assert essence(choose(to, prompt(thinking=OFF))) == NATIVE
    assert essence(choose(to, prompt(thinking=ON), "json")) == IN_WORDS


def test_the_model_has_the_last_word_over_its_host() -> None:
    assert choose(target(Quirks(), ModelRule(structured_output="json_object"))).kind == "tool"
    assert (
        choose(target(Quirks(structured_output="nothing"), ModelRule(structured_output="json_schema"))).kind == "native"
    )
    together = target(Quirks(output_with_tools=False), ModelRule(output_with_tools=True))
    assert not choose(together, prompt(LOOK)).two_phase
    apart = target(Quirks(), ModelRule(output_with_tools=False))
    assert choose(apart, prompt(LOOK)).two_phase
    assert not choose(apart, prompt()).two_phase


@pytest.mark.parametrize(
    ("output", "kind"),
    [(Weather, "native"), (Person, "native"), (Forecast, "native"), (Node, "tool"), (dict[str, int], "tool")],
)
def test_a_host_that_knows_only_shapes_gets_what_can_be_said_in_shapes(output: Any, kind: str) -> None:
    found = choose("anthropic:claude-opus-4-8", None, output)
    assert (found.kind, found.shapes_only) == (kind, kind == "native")
    assert choose("openai-responses:gpt-5", None, output).kind == "native"


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("openai-chat:gpt-4o", NATIVE),
        ("deepseek:deepseek-chat", NATIVE),
        ("google:gemini-2.5-pro", NATIVE),
        ("anthropic:claude-sonnet-4-5", IN_WORDS),
        ("bedrock:anthropic.claude-sonnet-4-5-v1:0", IN_WORDS),
        ("minimax-anthropic:minimax-m2", IN_WORDS),
    ],
)
def test_json_without_a_schema(model: str, found: Any) -> None:
    assert essence(choose(model, None, "json")) == found


@pytest.mark.parametrize("model", ["openai-responses:gpt-5", "deepseek:deepseek-chat", "google:gemini-2.5-pro"])
def test_a_model_that_keeps_to_a_protocol_of_words_is_told_in_words(model: str) -> None:
    found = choose_strategy(read_output_type(Weather), prompt(LOOK), known(model), in_text=True)
    assert essence(found) == IN_WORDS


def test_the_extra_tool_has_a_name_that_no_other_has() -> None:
    to = target(Quirks(structured_output="nothing"))
    assert choose(to, prompt(LOOK)).tool == FINAL_TOOL
    assert choose(to, prompt(Tool(FINAL_TOOL), Tool(f"{FINAL_TOOL}_2"))).tool == f"{FINAL_TOOL}_3"


def test_what_is_worth_knowing_of_the_choice_is_told() -> None:
    assert choose("openai-chat:gpt-4o").notices == ()
    assert [notice.code for notice in choose("google:gemini-2.5-pro", prompt(LOOK)).notices] == ["output_in_two_phases"]
    assert [notice.code for notice in choose("deepseek:deepseek-chat").notices] == ["output_by_tool"]
    assert [notice.code for notice in choose("bedrock:us.deepseek.r1-v1:0").notices] == ["output_instructed"]


_FORMS: dict[str, Any] = {
    "weather": read_output_type(Weather),
    "node": read_output_type(Node),
    "json": read_output_type("json"),
}
_ASKED: tuple[tuple[str, tuple[Tool, ...]], ...] = (
    ("weather", ()),
    ("weather", (LOOK,)),
    ("node", (LOOK,)),
    ("json", ()),
)


def _different(rules: tuple[ModelRule, ...]) -> list[ModelRule]:
    """Of rules that say the same about asking, one."""
    beside = {"since": "", "source": "", "tags": None, "starts_inside": False, "template_key": "enable_thinking"}
    known_rules: dict[ModelRule, ModelRule] = {}
    for rule in rules:
        known_rules.setdefault(msgspec.structs.replace(rule, models="*", kind="raw", fields=(), **beside), rule)
    return list(known_rules.values())


@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.name)
def test_pain_D4_no_row_is_asked_for_what_it_refuses_and_no_thinking_is_lost(row: Any) -> None:
    """Every row and model rule, thinking unset, off and on: the prompt of the strategy passes plan's check as it is."""
    lost = {"thinking_dropped", "tool_choice_adjusted", "schema_not_sent", "json_not_sent"}
    spoken = [row, *(row.with_dialect(variant.dialect) for variant in row.also)]
    pairs = [(each, rule) for each in spoken for rule in _different((*each.models, ModelRule()))]
    for host, rule in pairs:
        to = Target(host, rule.models.replace("*", "x"), host.base_url or "http://127.0.0.1:9/v1", rule)
        for thinking, (output, tools) in itertools.product((Thinking(), OFF, ON), _ASKED):
            asked = prompt(*tools, thinking=thinking)
            try:
                bare = plan(asked, to)
            except (InvalidThinking, Unsupported):
                continue  # refused with or without a form
            before = {notice.code for notice in bare.notices}
            form = _FORMS[output]
            found = choose_strategy(form, asked, to)
            for final in {False, bool(tools)}:
                planned = plan(apply_strategy(asked, form, found, final=final), to)
                _, spelled = dialects.find_dialect(to.dialect).encode(planned.prompt, to)
                told = {notice.code for notice in (*planned.notices, *spelled)}
                if to.dialect in ("cohere", "ollama"):
                    told.discard("tool_choice_adjusted")  # a name is sent as "required" there, or cannot be said
                assert told & lost <= before & lost, (to.model, thinking, found, final, told)
                assert planned.prompt.thinking == bare.prompt.thinking
