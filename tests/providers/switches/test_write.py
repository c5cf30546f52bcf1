"""The thinking fields of chat hosts: a table for every kind of request, and notices for settings not sent."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import asides
from asides.providers.find import find_target
from asides.providers.provider import AskBy, ModelRule, Provider, Quirks, Target
from asides.providers.switches.write import write
from asides.values.notices import Notice
from asides.values.thinking import Thinking

UNKNOWN = ModelRule()
OFF = Thinking(mode="off")
ON = Thinking(mode="on")
AUTO = Thinking(mode="auto")
HIGH = Thinking(effort="high")
BUDGET = Thinking(budget=4000)


def target(ask_by: AskBy, rule: ModelRule = UNKNOWN, **quirks: Any) -> Target:
    return Target(Provider(name="host", quirks=Quirks(ask_by=ask_by, **quirks)), "model", "https://host.test/v1", rule)


def encode(thinking: Thinking, where: Target) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    fields, notices = write(thinking, where, "openai_chat")
    return fields, tuple(notices)


def encoded(thinking: Thinking, where: Target) -> tuple[dict[str, Any], list[str]]:
    fields, notices = encode(thinking, where)
    return fields, [notice.code for notice in notices]


TEMPLATE_ON = {"chat_template_kwargs": {"enable_thinking": True}}
TEMPLATE_OFF = {"chat_template_kwargs": {"enable_thinking": False}}

# Where nothing is known of the model: (off, high, 4000 tokens), each with the codes of the notices.
GOLDEN: dict[AskBy, tuple[tuple[dict[str, Any], list[str]], ...]] = {
    "reasoning_effort": (
        ({"reasoning_effort": "none"}, []),
        ({"reasoning_effort": "high"}, []),
        ({"reasoning_effort": "medium"}, ["budget_mapped"]),
    ),
    "reasoning_object": (
        ({"reasoning": {"enabled": False}}, []),
        ({"reasoning": {"effort": "high"}}, []),
        ({"reasoning": {"max_tokens": 4000}}, []),
    ),
    "thinking_toggle": (
        ({"thinking": {"type": "disabled"}}, []),
        ({"thinking": {"type": "enabled"}}, ["effort_not_sent"]),
        ({"thinking": {"type": "enabled", "budget_tokens": 4000}}, []),
    ),
    "thinking_toggle_and_effort": (
        ({"thinking": {"type": "disabled"}}, []),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}, []),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "medium"}, ["budget_mapped"]),
    ),
    "enable_thinking": (
        ({"enable_thinking": False}, []),
        ({"enable_thinking": True}, ["effort_not_sent"]),
        ({"enable_thinking": True, "thinking_budget": 4000}, []),
    ),
    "enable_thinking_and_effort": (
        ({"enable_thinking": False}, []),
        ({"enable_thinking": True, "reasoning_effort": "high"}, []),
        ({"enable_thinking": True, "thinking_budget": 4000}, []),
    ),
    "template": (
        (TEMPLATE_OFF, []),
        (TEMPLATE_ON, ["effort_not_sent"]),
        (TEMPLATE_ON, ["budget_not_sent"]),
    ),
    "template_and_effort": (
        (TEMPLATE_OFF, []),
        (TEMPLATE_ON | {"reasoning_effort": "high"}, []),
        (TEMPLATE_ON | {"reasoning_effort": "medium"}, ["budget_mapped"]),
    ),
    "prompt_mode": (
        ({"reasoning_effort": "none"}, []),
        ({"reasoning_effort": "high"}, []),
        ({"reasoning_effort": "medium"}, ["budget_mapped"]),
    ),
    "think": (
        ({"think": False}, []),
        ({"think": True}, ["effort_not_sent"]),
        ({"think": True}, ["budget_not_sent"]),
    ),
    "nothing": (
        ({}, ["off_not_sent"]),
        ({}, ["effort_not_sent"]),
        ({}, ["budget_not_sent"]),
    ),
}


# How other dialects ask; a row that mixes them up is one that cannot be asked.
FOREIGN: set[AskBy] = {"thinking_budget", "thinking_level", "max_reasoning_effort", "reasoning_config"}


def test_the_golden_table_has_every_form_of_asking() -> None:
    assert set(GOLDEN) | FOREIGN == set(get_args(AskBy))
    for ask_by in FOREIGN:
        assert [encoded(wish, target(ask_by)) for wish in (OFF, HIGH, BUDGET)] == list(GOLDEN["nothing"])


@pytest.mark.parametrize("ask_by", GOLDEN)
def test_off(ask_by: AskBy) -> None:
    assert encoded(OFF, target(ask_by)) == GOLDEN[ask_by][0]


@pytest.mark.parametrize("ask_by", GOLDEN)
def test_an_effort(ask_by: AskBy) -> None:
    assert encoded(HIGH, target(ask_by)) == GOLDEN[ask_by][1]


@pytest.mark.parametrize("ask_by", GOLDEN)
def test_a_budget(ask_by: AskBy) -> None:
    assert encoded(BUDGET, target(ask_by)) == GOLDEN[ask_by][2]


@pytest.mark.parametrize("thinking", [Thinking(), AUTO], ids=["unset", "auto"])
@pytest.mark.parametrize("ask_by", GOLDEN)
def test_nothing_is_sent_for_the_default_of_the_host(ask_by: AskBy, thinking: Thinking) -> None:
    assert encoded(thinking, target(ask_by)) == ({}, [])


@pytest.mark.parametrize(
    ("ask_by", "fields", "codes"),
    [
        ("reasoning_effort", {"reasoning_effort": "medium"}, ["effort_chosen"]),
        ("reasoning_object", {"reasoning": {"enabled": True}}, []),
        ("thinking_toggle", {"thinking": {"type": "enabled"}}, []),
        ("thinking_toggle_and_effort", {"thinking": {"type": "enabled"}}, []),
        ("enable_thinking", {"enable_thinking": True}, []),
        ("template", TEMPLATE_ON, []),
        ("template_and_effort", TEMPLATE_ON, []),
        ("prompt_mode", {"reasoning_effort": "medium"}, ["effort_chosen"]),
        ("nothing", {}, ["on_not_sent"]),
    ],
)
def test_on_without_an_amount(ask_by: AskBy, fields: dict[str, Any], codes: list[str]) -> None:
    assert encoded(ON, target(ask_by)) == (fields, codes)


@pytest.mark.parametrize("rule", [ModelRule(thinking="always"), ModelRule(thinking="optional", default="on")])
def test_on_needs_no_effort_where_the_model_thinks_anyway(rule: ModelRule) -> None:
    assert encoded(ON, target("reasoning_effort", rule)) == ({}, [])


def test_on_takes_the_effort_nearest_to_the_default() -> None:
    rule = ModelRule(thinking="optional", default="off", efforts=("high",))
    fields, notices = encode(ON, target("prompt_mode", rule))
    assert fields == {"reasoning_effort": "high"}
    assert notices == (Notice("effort_chosen", "this host needs an effort", "thinking", "on", "high"),)


def test_on_for_a_model_without_efforts_says_so() -> None:
    rule = ModelRule(thinking="optional", efforts=())
    assert encoded(ON, target("reasoning_effort", rule)) == ({}, ["on_not_sent"])


def test_a_model_that_is_off_by_default_is_switched_on_by_the_only_effort_of_its_host() -> None:
    rule = ModelRule(thinking="optional", default="off", efforts=())
    assert encoded(ON, target("reasoning_effort", rule)) == ({"reasoning_effort": "medium"}, ["effort_chosen"])
    assert encoded(BUDGET, target("reasoning_effort", rule)) == (
        {"reasoning_effort": "medium"},
        ["budget_not_sent", "effort_chosen"],
    )


@pytest.mark.parametrize("ask_by", GOLDEN)
def test_off_is_nothing_to_a_model_that_never_thinks(ask_by: AskBy) -> None:
    assert encoded(OFF, target(ask_by, ModelRule(thinking="never"))) == ({}, [])


@pytest.mark.parametrize("ask_by", GOLDEN)
def test_off_is_reported_and_not_sent_to_a_model_that_always_thinks(ask_by: AskBy) -> None:
    assert encoded(OFF, target(ask_by, ModelRule(thinking="always"))) == ({}, ["off_not_sent"])


def test_off_is_reported_where_no_effort_means_off() -> None:
    rule = ModelRule(thinking="optional", off_as_effort=False)
    assert encoded(OFF, target("reasoning_effort", rule)) == ({}, ["off_not_sent"])


def test_the_values_of_the_row_are_used() -> None:
    assert encoded(ON, target("thinking_toggle", toggle_on="adaptive")) == ({"thinking": {"type": "adaptive"}}, [])
    rule = ModelRule(template_key="thinking")
    assert encoded(ON, target("template", rule)) == ({"chat_template_kwargs": {"thinking": True}}, [])
    assert encoded(OFF, target("template", rule)) == ({"chat_template_kwargs": {"thinking": False}}, [])


def test_a_notice_names_the_value_sent_instead() -> None:
    (notice,) = encode(HIGH, target("thinking_toggle"))[1]
    assert (notice.setting, notice.asked, notice.sent) == ("thinking", "high", "on")
    (notice,) = encode(HIGH, target("nothing"))[1]
    assert (notice.asked, notice.sent) == ("high", "nothing")


def test_a_rule_may_ask_by_other_fields_than_its_host() -> None:
    assert encoded(HIGH, target("template", ModelRule(ask_by="reasoning_effort"))) == ({"reasoning_effort": "high"}, [])


def test_models_with_a_prompt_mode_are_switched_by_it() -> None:
    where = target("prompt_mode", ModelRule(thinking="always", efforts=()))
    assert encoded(ON, where) == ({"prompt_mode": "reasoning"}, [])
    assert encoded(HIGH, where) == ({"prompt_mode": "reasoning"}, ["effort_not_sent"])
    assert encoded(BUDGET, where) == ({"prompt_mode": "reasoning"}, ["budget_not_sent"])


# --- budgets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "effort"),
    [(1, "low"), (2048, "low"), (2049, "medium"), (8192, "medium"), (8193, "high"), (24576, "high"), (24577, "high")],
)
def test_a_budget_becomes_the_effort_that_usually_spends_as_much(tokens: int, effort: str) -> None:
    fields, notices = encode(Thinking(budget=tokens), target("reasoning_effort"))
    assert fields == {"reasoning_effort": effort}
    assert [(notice.code, notice.asked, notice.sent) for notice in notices] == [("budget_mapped", str(tokens), effort)]


@pytest.mark.parametrize(
    ("efforts", "tokens", "effort"),
    [
        (("low", "medium", "high", "xhigh", "max"), 100_000, "xhigh"),
        (("low", "high", "max"), 100_000, "max"),
        (("low", "high"), 100_000, "high"),
        (("low", "high"), 4000, "low"),
        (("medium", "high"), 1000, "medium"),
    ],
)
def test_a_mapped_budget_is_an_effort_of_the_model(efforts: Any, tokens: int, effort: str) -> None:
    where = target("reasoning_effort", ModelRule(thinking="optional", efforts=efforts))
    assert encoded(Thinking(budget=tokens), where) == ({"reasoning_effort": effort}, ["budget_mapped"])


def test_a_mapped_budget_follows_the_effort_map_of_the_provider() -> None:
    rule = ModelRule(thinking="optional", efforts=("low", "high", "max"), effort_map=(("medium", "high"),))
    assert encoded(BUDGET, target("reasoning_effort", rule)) == ({"reasoning_effort": "high"}, ["budget_mapped"])
    assert encoded(Thinking(budget=1000), target("reasoning_effort", rule))[0] == {"reasoning_effort": "low"}


def test_a_budget_for_a_model_that_takes_no_amount() -> None:
    rule = ModelRule(thinking="optional", default="on", efforts=())
    assert encoded(BUDGET, target("reasoning_effort", rule)) == ({}, ["budget_not_sent"])


@pytest.mark.parametrize(
    ("ask_by", "fields"),
    [
        ("reasoning_effort", {"budget_here": 4000}),
        ("thinking_toggle", {"thinking": {"type": "enabled"}, "budget_here": 4000}),
        ("thinking_toggle_and_effort", {"thinking": {"type": "enabled"}, "budget_here": 4000}),
        ("enable_thinking", {"enable_thinking": True, "budget_here": 4000}),
        ("template", TEMPLATE_ON | {"budget_here": 4000}),
        ("template_and_effort", TEMPLATE_ON | {"budget_here": 4000}),
    ],
)
def test_a_field_for_budgets_is_used(ask_by: AskBy, fields: dict[str, Any]) -> None:
    assert encoded(BUDGET, target(ask_by, budget_in="budget_here")) == (fields, [])


def test_a_field_for_budgets_may_be_inside_an_object() -> None:
    where = target("template", budget_in="chat_template_kwargs.thinking_budget")
    assert encoded(BUDGET, where) == (
        {"chat_template_kwargs": {"enable_thinking": True, "thinking_budget": 4000}},
        [],
    )


@pytest.mark.parametrize("ask_by", ["thinking_toggle", "thinking_toggle_and_effort"])
def test_a_toggle_carries_the_budget_of_models_that_have_one(ask_by: AskBy) -> None:
    rule = ModelRule(thinking="optional", budget=(1024, None))
    assert encoded(BUDGET, target(ask_by, rule)) == ({"thinking": {"type": "enabled", "budget_tokens": 4000}}, [])


def test_a_toggle_has_no_budget_for_models_without_one() -> None:
    where = target("thinking_toggle", ModelRule(thinking="optional"))
    assert encoded(BUDGET, where) == ({"thinking": {"type": "enabled"}}, ["budget_not_sent"])


def test_a_reasoning_object_has_a_budget_only_if_the_model_takes_one() -> None:
    switch = target("reasoning_object", ModelRule(thinking="optional", efforts=()))
    assert encoded(BUDGET, switch) == ({"reasoning": {"enabled": True}}, ["budget_not_sent"])
    efforts = target("reasoning_object", ModelRule(thinking="optional", efforts=("low", "high")))
    assert encoded(BUDGET, efforts) == ({"reasoning": {"effort": "low"}}, ["budget_mapped"])
    both = Thinking(effort="high", budget=1000)
    assert encoded(both, efforts) == ({"reasoning": {"effort": "high"}}, ["budget_not_sent"])
    budgets = target("reasoning_object", ModelRule(thinking="optional", efforts=("low",), budget=(1, None)))
    assert encoded(BUDGET, budgets) == ({"reasoning": {"max_tokens": 4000}}, [])


@pytest.mark.parametrize(
    ("model", "sent", "budget"),
    [
        ("qwen:qwen3.8-max", {"enable_thinking": True, "thinking_budget": 4000}, 4000),
        ("vllm:Qwen/Qwen3.8-27B", TEMPLATE_ON | {"thinking_token_budget": 4000}, 4000),
        ("qwen:qwen3.8-max", {"enable_thinking": True, "reasoning_effort": "low"}, None),
        ("vllm:Qwen/Qwen3.8-27B", TEMPLATE_ON | {"reasoning_effort": "low"}, None),
    ],
)
def test_a_model_that_takes_a_budget_or_an_effort_gets_one_of_them(
    model: str, sent: dict[str, Any], budget: int | None
) -> None:
    where = find_target(model, environ={})
    fields, told = encoded(Thinking(effort="low", budget=budget), where)
    assert (fields, told) == (sent, [] if budget is None else ["effort_not_sent"])


def test_an_effort_and_a_budget_each_go_where_the_host_has_a_place() -> None:
    both = Thinking(effort="low", budget=4000)
    assert encoded(both, target("reasoning_effort", budget_in="tokens")) == (
        {"tokens": 4000, "reasoning_effort": "low"},
        [],
    )
    assert encoded(both, target("reasoning_effort")) == ({"reasoning_effort": "low"}, ["budget_not_sent"])
    assert encoded(both, target("reasoning_object")) == ({"reasoning": {"max_tokens": 4000}}, [])


# --- what is shown ------------------------------------------------------------------------------------------------


def test_hidden_thinking_is_excluded_where_a_host_can_do_that() -> None:
    where = target("reasoning_object")
    assert encoded(Thinking(effort="low", show="none"), where) == (
        {"reasoning": {"effort": "low", "exclude": True}},
        [],
    )
    assert encoded(Thinking(show="none"), where) == ({"reasoning": {"exclude": True}}, [])
    assert encoded(Thinking(mode="off", show="none"), where) == ({"reasoning": {"enabled": False}}, [])
    assert encoded(Thinking(effort="low", show="none"), target("reasoning_effort")) == ({"reasoning_effort": "low"}, [])


def test_a_summary_is_asked_for_where_a_host_can_do_that() -> None:
    wish = Thinking(effort="low", summary="concise")
    assert encoded(wish, target("reasoning_object")) == ({"reasoning": {"effort": "low", "summary": "concise"}}, [])


_NEVER = "does not think"
_ASKED = "only if asked"
_ENDPOINT = "does not return"
_UNKNOWN = "not known whether"


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("openai:gpt-4.1", _NEVER),
        ("openai-responses:gpt-4.1", _NEVER),
        ("anthropic:claude-3-5-haiku-latest", _NEVER),
        ("ollama:gemma3", _NEVER),
        ("google:gemini-2.0-flash", _NEVER),
        ("google-openai:gemini-2.0-flash", _NEVER),
        ("cohere:command-a-03-2025", _NEVER),
        ("groq:llama-3.3-70b-versatile", _NEVER),
        ("bedrock:amazon.nova-pro-v1:0", _NEVER),
        ("anthropic:claude-haiku-4-5", _ASKED),
        ("anthropic:claude-opus-4-7", _ASKED),
        ("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", _ASKED),
        ("bedrock:amazon.nova-2-lite-v1:0", _ASKED),
        ("mistral:mistral-medium-latest", _ASKED),
        ("deepseek:deepseek-chat", _ASKED),
        ("openai-chat:gpt-5", _ENDPOINT),
        ("google-openai:gemini-2.5-flash", _ENDPOINT),
        ("mistral:mistral-large-latest", _UNKNOWN),
        ("cohere:command-of-tomorrow", _UNKNOWN),
        ("groq:of-tomorrow", _UNKNOWN),
        # A field asks for it, or the thinking comes unasked.
        ("openai:gpt-5", None),
        ("openrouter:openai/gpt-4o", None),
        ("google:gemini-2.5-flash", None),
        ("google-interactions:gemini-3.8-flash", None),
        ("anthropic:claude-sonnet-5-5", None),
        ("deepseek:deepseek-flash", None),
        ("cohere:command-a-reasoning-08-2025", None),
        ("ollama:qwen3", None),
        ("ollama:of-tomorrow", None),
    ],
)
def test_a_request_to_show_thinking_is_never_dropped_in_silence(
    model: str, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    explained = asides.explain(model, "?", thinking=Thinking(summary="auto"))
    told = [notice.detail for notice in explained.notices if notice.code == "summary_not_sent"]
    assert [why in detail for detail in told if why is not None] == [True] * (why is not None), told
    assert len(told) == (why is not None), told
    plain = asides.explain(model, "?", thinking=Thinking(show="none"))
    assert [notice.code for notice in plain.notices if notice.code == "summary_not_sent"] == []
