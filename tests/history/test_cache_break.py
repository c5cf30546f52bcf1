"""Where the prompt cache ends: the place and the reason, for each kind of change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import asides
from asides.history.cache_break import CacheBreak, SentBefore, drop_marks, find_cache_break, find_difference
from asides.providers.find import find_target
from asides.providers.provider import ReplayRule
from asides.values.messages import Message, Prompt, ProviderState, assistant, system, user
from asides.values.parts import ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool

CLAUDE = find_target("anthropic:claude-opus-4-6")
_ZAI = find_target("zai:glm-5")
_FOR_A_WHILE = ReplayRule(when="since_last_user", since="2026-11", source="made up")
GLM = msgspec.structs.replace(_ZAI, provider=msgspec.structs.replace(_ZAI.provider, replay=(_FOR_A_WHILE,)))
HISTORY = (user("2 + 2?"), assistant("4"), user("3 + 3?"), assistant("6"), user("and?"))


def test_a_history_that_only_grows_has_no_break() -> None:
    assert find_cache_break(Prompt(HISTORY, system="Be brief."), CLAUDE) is None
    assert asides.explain("anthropic:claude-opus-4-6", list(HISTORY)).cache_break_at is None


def test_a_first_question_has_nothing_before_it() -> None:
    assert find_cache_break(Prompt(HISTORY[:1]), CLAUDE) is None
    assert find_cache_break(Prompt((assistant("hello"), user("hi"))), CLAUDE) is None


def test_thoughts_that_go_back_for_a_while_are_named_when_the_while_is_over() -> None:
    thought = Thought("hm", "raw", "field", GLM.origin, via="reasoning_content")
    called = assistant(thought, ToolCall("c1", "look", {}))
    history = (user("go"), called, Message("tool", (ToolResult("c1", "there", "look"),)))
    assert find_cache_break(Prompt(history), GLM) is None
    found = find_cache_break(Prompt((*history, assistant("done"), user("and?"))), GLM)
    assert found is not None
    assert (found.reason, found.message, found.part) == ("replay", 1, 0)
    assert found.path == "messages[1].reasoning_content"
    assert "since_last_user" in found.why
    assert found.since
    assert found.source


def test_a_model_that_others_asked_before_has_nothing_in_its_cache() -> None:
    other = find_target("anthropic:claude-opus-4-5")
    thought = Thought("hm", "summary", "block", other.origin, (Seal("signature", "c2VhbA", other.origin),))
    found = find_cache_break(Prompt((user("go"), assistant(thought, "done"), user("and?"))), CLAUDE)
    assert found is not None
    assert (found.reason, found.path, found.message) == ("model", "model", 0)
    assert "claude-opus-4-5" in found.why


def test_a_system_message_that_is_moved_to_the_front_is_named() -> None:
    found = find_cache_break(Prompt((*HISTORY, system("Now be long."), user("?"))), CLAUDE)
    assert found is not None
    assert (found.reason, found.path, found.message) == ("system", "system", None)
    assert "moved to the front" in found.why


def test_an_empty_question_is_named_when_it_is_left_out() -> None:
    target = find_target("deepseek:deepseek-flash")
    found = find_cache_break(Prompt((user("2 + 2?"), assistant("4"), user(" "), assistant("yes?"), user("go"))), target)
    assert found is not None
    assert (found.reason, found.message, found.why) == ("history", 2, "empty messages were left out")


def test_a_continued_message_is_named() -> None:
    target = find_target("anthropic:claude-sonnet-4-5")
    found = find_cache_break(Prompt((user("count"), assistant("1, 2, "), assistant("3"), user("and?"))), target)
    assert found is not None
    assert (found.reason, found.message) == ("history", 1)
    assert "continued" in found.why


@pytest.mark.parametrize(
    ("change", "reason", "path"),
    [
        ({"system": "Be long."}, "system", "system"),
        ({"tools": (Tool("find"),)}, "tools", "tools"),
        ({"tool_choice": "none"}, "tool_choice", "tool_choice"),
        ({"thinking": Thinking(effort="high")}, "thinking", "thinking"),
        ({"output": asides.OutputSchema("answer", {"type": "object"})}, "thinking", "output_config"),
    ],
)
def test_a_changed_setting_is_named_where_the_request_before_is_known(
    change: dict[str, Any], reason: str, path: str
) -> None:
    first = Prompt(HISTORY[:3], system="Be brief.", tools=(Tool("look"),))
    now = msgspec.structs.replace(first, messages=HISTORY)
    assert find_cache_break(now, CLAUDE, before=SentBefore(first, CLAUDE)) is None
    found = find_cache_break(msgspec.structs.replace(now, **change), CLAUDE, before=SentBefore(first, CLAUDE))
    assert found is not None
    assert (found.reason, found.path, found.message) == (reason, path, None)
    assert found.source


@pytest.mark.parametrize("earlier", ["Be brief.", None])
def test_another_system_prompt_is_named_where_it_is_a_message(earlier: str | None) -> None:
    first = Prompt(HISTORY[:3], system=earlier)
    for prompt in ("Be long.", None if earlier else "Be brief."):
        now = msgspec.structs.replace(first, messages=HISTORY, system=prompt)
        found = find_cache_break(now, GLM, before=SentBefore(first, GLM))
        assert found is not None
        assert (found.reason, found.message) == ("system", None)


@pytest.mark.parametrize("change", [{"max_tokens": 50_000}, {"stop": ("x",)}, {"stream": False}])
def test_settings_that_no_prompt_holds_break_nothing(change: dict[str, Any]) -> None:
    first = Prompt(HISTORY[:3])
    now = msgspec.structs.replace(first, messages=HISTORY, **change)
    assert find_cache_break(now, CLAUDE, before=SentBefore(first, CLAUDE)) is None


def test_an_edited_past_is_named_where_the_request_before_is_known() -> None:
    edited = (user("2 + 3?"), *HISTORY[1:])
    found = find_cache_break(Prompt(edited), CLAUDE, before=SentBefore(Prompt(HISTORY[:3]), CLAUDE))
    assert found == CacheBreak(
        "history", "the messages before were changed, left out or replaced", "messages[0].content", 0
    )
    shorter = find_cache_break(Prompt(HISTORY[2:]), CLAUDE, before=SentBefore(Prompt(HISTORY[:3]), CLAUDE))
    assert shorter is not None
    assert shorter.message == 0


def test_nothing_is_compared_where_the_provider_stores_the_past() -> None:
    target = find_target("openai-responses:gpt-5.5")
    assert find_cache_break(Prompt(HISTORY, state=ProviderState(resume=True)), target) is None


def test_what_was_sent_before_shows_no_prompt() -> None:
    assert "2 + 2" not in repr(SentBefore(Prompt(HISTORY), CLAUDE))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ".a[1].b"),
        ({"a": 1}, {"a": 1, "b": 2}, ".b"),
        ([1], [1, 2], "[1]"),
        ([1, 2], [1], "[1]"),
        ({"a": 1}, [1], ""),
    ],
)
def test_the_first_difference_has_a_path(old: Any, new: Any, path: str | None) -> None:
    assert find_difference(old, new) == path


def test_the_last_message_may_grow() -> None:
    one, two = {"type": "text", "text": "a"}, {"type": "text", "text": "b"}
    assert find_difference({"content": "a"}, {"content": [one, two]}, may_grow=True) is None
    assert find_difference({"content": [one]}, {"content": [one, two]}, may_grow=True) is None
    assert find_difference({"content": [one]}, {"content": [two]}, may_grow=True) == ".content[0].text"


def test_cache_breakpoints_are_no_difference() -> None:
    marked = {"content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}
    assert drop_marks(marked) == {"content": "a"}
    assert drop_marks([{"text": "a"}, {"cachePoint": {"type": "default"}}]) == [{"text": "a"}]
