"""One request against its model's rule: what raises, what is adjusted instead, and the notice of each."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.history.check import OnConflict, check_request
from asides.providers.find import find_target
from asides.providers.provider import ModelRule, Provider, Target
from asides.values.errors import InvalidThinking
from asides.values.messages import Message, Prompt, RequestSource, Sampling, assistant, user
from asides.values.notices import Notice
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thinking
from asides.values.tools import Tool


def check(rule: ModelRule, prompt: Prompt, on_conflict: OnConflict = "adjust") -> tuple[Prompt, list[Notice]]:
    row = Provider(name="example", base_url="http://127.0.0.1:9/v1")
    notices: list[Notice] = []
    return check_request(prompt, Target(row, "m", row.base_url, rule), on_conflict, notices), notices


def prompt(**fields: Any) -> Prompt:
    given: dict[str, Any] = {"messages": (user("?"),), **fields}
    return Prompt(**given)


OPTIONAL = ModelRule(thinking="optional", efforts=("low", "high"), budget=(1024, 8000))
CLAUDE = ModelRule(
    thinking="optional",
    default="off",
    forms=("enabled", "disabled"),
    budget=(1024, None),
    begins_with_thinking=True,
    prefill="without_thinking",
)
CALLED = (user("?"), assistant(ToolCall("c1", "f")), Message("tool", (ToolResult("c1", "42"),)))
PREFILLED = (user("?"), assistant("The answer is"))
TOOLS = (Tool("f"),)
UNSET = Thinking()


@pytest.mark.parametrize(
    ("rule", "given", "changes", "setting", "notice"),
    [
        pytest.param(
            ModelRule(thinking="never"),
            prompt(thinking=Thinking(effort="low")),
            {"thinking": UNSET},
            "thinking",
            ("thinking_unsupported", "on", "nothing"),
            id="a model that does not think",
        ),
        pytest.param(
            ModelRule(thinking="always", efforts=("low", "high")),
            prompt(thinking=Thinking(mode="off", effort="high")),
            {"thinking": Thinking(effort="low")},
            "thinking",
            ("thinking_cannot_stop", "off", "low"),
            id="a model that cannot stop",
        ),
        pytest.param(
            OPTIONAL,
            prompt(thinking=Thinking(budget=100), max_tokens=9000),
            {"thinking": Thinking(budget=1024)},
            "thinking",
            ("budget_adjusted", "100", "1024"),
            id="a budget below the least",
        ),
        pytest.param(
            OPTIONAL,
            prompt(thinking=Thinking(budget=9000), max_tokens=99_000),
            {"thinking": Thinking(budget=8000)},
            "thinking",
            ("budget_adjusted", "9000", "8000"),
            id="a budget above the most",
        ),
        pytest.param(
            OPTIONAL,
            prompt(thinking=Thinking(budget=4000), max_tokens=3000),
            {"thinking": Thinking(budget=1500)},
            "thinking",
            ("budget_adjusted", "4000", "1500"),
            id="a budget that leaves nothing for the answer",
        ),
        pytest.param(
            ModelRule(thinking="optional", forbids=("temperature",)),
            prompt(thinking=Thinking(mode="on"), sampling=Sampling(temperature=0.5, seed=1)),
            {"sampling": Sampling(seed=1)},
            "temperature",
            ("setting_dropped", "set", "nothing"),
            id="a setting that a thinking model refuses",
        ),
        pytest.param(
            ModelRule(thinking="optional", forbids=("stop",)),
            prompt(thinking=Thinking(mode="on"), stop=("END",)),
            {"stop": ()},
            "stop",
            ("setting_dropped", "set", "nothing"),
            id="a stop word that a thinking model refuses",
        ),
        pytest.param(
            ModelRule(thinking="always", forced_tools=False),
            prompt(tools=TOOLS, tool_choice="f"),
            {"tool_choice": "auto"},
            "tool_choice",
            ("tool_choice_adjusted", "f", "auto"),
            id="a forced tool",
        ),
        pytest.param(
            ModelRule(thinking="always", forced_tools="required"),
            prompt(tools=TOOLS, tool_choice="f"),
            {"tool_choice": "required"},
            "tool_choice",
            ("tool_choice_adjusted", "f", "required"),
            id="a certain tool, where only some tool may be forced",
        ),
        pytest.param(
            ModelRule(thinking="optional", tools_while_thinking=False),
            prompt(tools=TOOLS, thinking=Thinking(effort="low")),
            {"thinking": UNSET},
            "thinking",
            ("thinking_dropped", "low", "nothing"),
            id="tools beside thinking",
        ),
        pytest.param(
            ModelRule(thinking="optional", prefill="never"),
            prompt(messages=PREFILLED),
            {"messages": (*PREFILLED, Message("user", (Text("Continue."),)))},
            "messages",
            ("prefill_adjusted", "to continue", "a request to continue"),
            id="words of the assistant at the end",
        ),
        pytest.param(
            ModelRule(thinking="optional", prefill="without_thinking"),
            prompt(messages=PREFILLED, thinking=Thinking(effort="low")),
            {"thinking": Thinking(mode="off")},
            "thinking",
            ("thinking_dropped", "on", "off"),
            id="words of the assistant at the end, while thinking",
        ),
    ],
)
def test_a_contradiction_raises_or_is_adjusted_with_one_notice(
    rule: ModelRule, given: Prompt, changes: dict[str, Any], setting: str, notice: tuple[str, str, str]
) -> None:
    with pytest.raises(InvalidThinking, match=r"^example:m: .*, or pass on_conflict='adjust'\.$") as caught:
        check(rule, given, "raise")
    assert caught.value.setting == setting
    sent, notices = check(rule, given)
    assert sent == msgspec.structs.replace(given, **changes)
    assert [(found.setting, (found.code, found.asked, found.sent)) for found in notices] == [(setting, notice)]


@pytest.mark.parametrize(
    ("rule", "given", "changes", "notices"),
    [
        pytest.param(OPTIONAL, prompt(), {}, [], id="nothing asked"),
        pytest.param(OPTIONAL, prompt(system=""), {"system": None}, [], id="an empty system prompt"),
        pytest.param(
            OPTIONAL,
            prompt(thinking=Thinking(mode="off", effort="high")),
            {"thinking": Thinking(mode="off")},
            [],
            id="off wins over an effort beside it",
        ),
        pytest.param(
            ModelRule(thinking="never"), prompt(thinking=Thinking(mode="off")), {"thinking": UNSET}, [], id="off anyway"
        ),
        pytest.param(
            ModelRule(),
            prompt(thinking=Thinking(effort="max")),
            {},
            [("unknown_model", None, None)],
            id="an unknown model is sent what was asked",
        ),
        pytest.param(
            OPTIONAL,
            prompt(thinking=Thinking(effort="max")),
            {"thinking": Thinking(effort="high")},
            [("effort_mapped", "max", "high")],
            id="the nearest effort",
        ),
        pytest.param(
            OPTIONAL,
            prompt(thinking=Thinking(effort="minimal")),
            {"thinking": Thinking(effort="low")},
            [("effort_mapped", "minimal", "low")],
            id="low is near enough to the least",
        ),
        pytest.param(
            ModelRule(thinking="optional", efforts=("high", "max")),
            prompt(thinking=Thinking(effort="minimal")),
            {"thinking": Thinking(mode="off")},
            [("effort_mapped", "minimal", "off")],
            id="not to think is nearest to the least",
        ),
        pytest.param(
            ModelRule(thinking="optional", efforts=()),
            prompt(thinking=Thinking(effort="high")),
            {"thinking": Thinking(mode="on")},
            [("effort_mapped", "high", "on")],
            id="no efforts",
        ),
        pytest.param(
            ModelRule(thinking="optional", efforts=("low", "max"), effort_map=(("medium", "max"),)),
            prompt(thinking=Thinking(effort="medium")),
            {"thinking": Thinking(effort="max")},
            [("effort_mapped", "medium", "max")],
            id="the map of the rule",
        ),
        pytest.param(
            OPTIONAL,
            prompt(thinking=Thinking(budget=2000)),
            {"max_tokens": 2000 + 4096},
            [("max_tokens_chosen", None, "6096")],
            id="room for an answer",
        ),
        pytest.param(
            ModelRule(thinking="optional", budget=(1, None), max_output=5000),
            prompt(thinking=Thinking(budget=2000)),
            {"max_tokens": 5000},
            [("max_tokens_chosen", None, "5000")],
            id="no more room than the model has",
        ),
        pytest.param(
            ModelRule(thinking="optional", budget=(1, None), interleaves="always"),
            prompt(thinking=Thinking(budget=4000), max_tokens=3000, tools=TOOLS),
            {},
            [],
            id="thinking between calls may exceed the limit",
        ),
        pytest.param(
            ModelRule(default_max_tokens=4096),
            prompt(),
            {"max_tokens": 4096},
            [("max_tokens_chosen", None, "4096")],
            id="a model that needs a limit",
        ),
        pytest.param(
            ModelRule(thinking="optional", default="off", forbids=("temperature",)),
            prompt(sampling=Sampling(temperature=0.5)),
            {},
            [],
            id="a model that does not think by habit takes the setting",
        ),
        pytest.param(
            ModelRule(thinking="optional", prefill="without_thinking"),
            prompt(messages=PREFILLED, thinking=Thinking(mode="off")),
            {},
            [],
            id="words of the assistant at the end, without thinking",
        ),
        pytest.param(
            CLAUDE,
            prompt(messages=CALLED, thinking=Thinking(budget=2000), max_tokens=9000),
            {"thinking": Thinking(mode="off")},
            [("thinking_paused", "2000", "off")],
            id="a turn under way without its thinking",
        ),
        pytest.param(
            msgspec.structs.replace(CLAUDE, forms=("adaptive", "enabled", "disabled")),
            prompt(messages=CALLED, thinking=Thinking(budget=2000), max_tokens=9000),
            {"thinking": Thinking(mode="auto")},
            [("thinking_paused", "2000", "auto")],
            id="a turn under way without its thinking, where the model may decide",
        ),
        pytest.param(
            ModelRule(thinking="always", forced_tools=False),
            prompt(tools=TOOLS, tool_choice="none"),
            {},
            [],
            id="no tool is forced",
        ),
        pytest.param(
            ModelRule(thinking="always", forced_tools="required"),
            prompt(tools=TOOLS, tool_choice="required"),
            {},
            [],
            id="some tool is forced, where that is allowed",
        ),
        pytest.param(
            ModelRule(thinking="always", forms=("adaptive", "between_tools")),
            prompt(thinking=Thinking(mode="off")),
            {"thinking": Thinking(mode="between_tools")},
            [("form_adjusted", "off", "between_tools")],
            id="off, where the least is to think between calls of tools",
        ),
    ],
)
def test_what_contradicts_nothing_is_fitted_without_an_error(
    rule: ModelRule, given: Prompt, changes: dict[str, Any], notices: list[tuple[str, str | None, str | None]]
) -> None:
    sent, found = check(rule, given, "raise")
    assert sent == msgspec.structs.replace(given, **changes)
    assert [(notice.code, notice.asked, notice.sent) for notice in found] == notices


def test_a_budget_that_fills_the_limit_at_its_least_raises_the_limit() -> None:
    sent, notices = check(OPTIONAL, prompt(thinking=Thinking(budget=1024), max_tokens=1024))
    assert (sent.thinking, sent.max_tokens) == (Thinking(budget=1024), 1024 + 4096)
    assert [notice.code for notice in notices] == ["budget_adjusted", "max_tokens_chosen"]


def test_a_budget_as_large_as_the_limit_is_sent_where_the_server_takes_it() -> None:
    target = find_target("google:gemini-2.5-flash", environ={})
    given = prompt(thinking=Thinking(budget=4096), max_tokens=4096)
    notices: list[Notice] = []
    assert check_request(given, target, "raise", notices) == given
    assert [notice.code for notice in notices] == ["budget_fills_limit"]


def test_a_request_that_was_read_without_a_limit_gets_none() -> None:
    target = find_target("google:gemini-2.5-flash", environ={})
    given = prompt(thinking=Thinking(budget=4096))
    assert check_request(given, target, "raise", []).max_tokens == 4096 + 4096
    read = msgspec.structs.replace(given, source=RequestSource("gemini", {}))
    assert check_request(read, target, "raise", []).max_tokens is None


def test_a_forced_tool_beside_a_budget_has_its_own_rule() -> None:
    rule = ModelRule(thinking="optional", budget=(1024, None), forced_tools_with_budget=False)
    given = prompt(tools=TOOLS, tool_choice="required", thinking=Thinking(budget=2000), max_tokens=9000)
    assert check(rule, given)[0].tool_choice == "auto"
    assert check(rule, msgspec.structs.replace(given, thinking=Thinking(mode="on")), "raise")[1] == []


def test_an_assumed_rule_adjusts_and_never_raises() -> None:
    rule = ModelRule(thinking="always", efforts=("low",), assumed=True)
    sent, notices = check(rule, prompt(thinking=Thinking(mode="off")), "raise")
    assert sent.thinking == Thinking(effort="low")
    assert [notice.code for notice in notices] == ["unknown_model", "thinking_cannot_stop"]


def test_a_prompt_in_which_nothing_changes_is_returned_itself() -> None:
    for rule in (ModelRule(), OPTIONAL, CLAUDE):
        for given in (prompt(), prompt(system="s", max_tokens=9, tools=TOOLS, tool_choice="auto")):
            checked, notices = check(rule, given, "raise")
            assert checked is given
            assert notices == []
    blank = check(OPTIONAL, prompt(system=""))[0]
    assert blank.system is None


@pytest.mark.parametrize(
    ("stream_only", "thinking", "streams"),
    [
        (True, Thinking(), True),
        (True, Thinking(mode="off"), True),
        ("thinking", Thinking(), True),
        ("thinking", Thinking(mode="off"), False),
        (False, Thinking(), False),
    ],
)
def test_a_model_that_answers_only_as_a_stream_is_streamed(stream_only: Any, thinking: Thinking, streams: bool) -> None:
    rule = ModelRule(thinking="optional", default="on", stream_only=stream_only)
    sent, notices = check(rule, prompt(thinking=thinking, stream=False), "raise")
    assert sent.stream is streams
    assert [notice.code for notice in notices] == ["streamed"] * streams


def test_a_model_that_does_not_think_may_take_one_value_of_a_setting() -> None:
    rule = ModelRule(thinking="optional", default="on", off_sampling=(("temperature", 0.6),))
    off = Thinking(mode="off")
    only = prompt(thinking=off, sampling=Sampling(temperature=0.6))
    assert check(rule, only, "raise") == (only, [])
    sent, notices = check(rule, prompt(thinking=off, sampling=Sampling(temperature=1.0)))
    assert (sent.sampling, [notice.code for notice in notices]) == (Sampling(), ["setting_dropped"])
