"""Laws of repairs, over random damage: what is repaired is sound, and nothing is lost in silence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.history.doctor.diagnose import Diagnosis, diagnose
from asides.history.plan import plan
from asides.intake.documents import import_messages
from asides.providers.find import find_target
from asides.values.errors import ConfigError
from asides.values.messages import Prompt
from asides_stage.stage import Stage
from tests.history.doctor.damage import damage
from tests.history.doctor.naive_client import post
from tests.history.doctor.test_diagnose import (
    CLAUDE,
    DEEPSEEK,
    GEMINI,
    GEMINI_CHAT,
    GPT,
    KIMI,
    MISTRAL,
    ROUTER,
    Speaker,
    hold,
    open_stage,
)

SPEAKERS = {speaker.name: speaker for speaker in (CLAUDE, GPT, GEMINI, DEEPSEEK, KIMI, MISTRAL, GEMINI_CHAT, ROUTER)}
# Each history also goes to models that do not speak its language.
TARGETS = [*SPEAKERS, "anthropic:claude-opus-5-5", "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "groq:qwen3"]
SECRETS = ("I look up number", "It is clear.")


@cache
def healthy(name: str) -> str:
    """A conversation with the strict stage, once for all examples."""
    with open_stage() as stage:
        return json.dumps(hold(stage, SPEAKERS[name]))


def list_name(speaker: Speaker) -> str:
    return next(name for name in ("messages", "input", "contents") if name in speaker.body([]))


def list_strings(value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a document, with the name of its field."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str):
                yield name, inner
            elif name != "thinking":  # some hosts have a list of texts there
                yield from list_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from list_strings(inner)


def count_words(items: list[Any]) -> Counter[str]:
    """How often each thing was said, called or returned. Thinking does not count."""
    words: Counter[str] = Counter()
    for name, text in list_strings(items):
        if name in ("text", "content", "output") and text.strip() and not any(secret in text for secret in SECRETS):
            words[text.strip()] += 1
        if (name, text) == ("name", "look_up"):
            words["a call, or a result that names it"] += 1
    return words


def _without_details(value: Any) -> Any:
    """The history without `reasoning_details`, whose texts are thinking: a repair may join the pieces of one."""
    if isinstance(value, dict):
        return {name: _without_details(inner) for name, inner in value.items() if name != "reasoning_details"}
    return [_without_details(inner) for inner in value] if isinstance(value, list) else value


def check_laws(items: list[Any], speaker: Speaker, target: str, *, as_request: bool) -> Diagnosis | None:
    given_history: Any = speaker.body(items) if as_request else items
    kept = deepcopy(given_history)
    try:
        found = diagnose(given_history, target, format_name=speaker.format)
    except ConfigError:
        # Nothing was left of it, or a message is none any more.
        return None
    assert given_history == kept
    again = diagnose(found.repaired, target, format_name=speaker.format)
    assert again.sound, (found.findings, again.refused)
    assert again.repaired == found.repaired
    if found.sound:
        assert found.repaired == given_history
    repaired = found.repaired[list_name(speaker)] if as_request else found.repaired
    lost = count_words(items) - count_words(repaired)
    told = [finding for finding in found.refused if "left out" in finding.repair]
    assert lost.total() <= 4 * len(told), (lost, found.findings)
    for word in ("What is it?", "And then?", "It is 42."):
        assert lost[word] < max(count_words(items)[word], 1), "only a copy may go"
        assert count_words(repaired)[word] <= count_words(items)[word], "nothing is said twice"
    for name, text in list_strings(_without_details(repaired)):
        if name in ("text", "content", "output") and any(secret in text for secret in SECRETS):
            assert (name, text) in list(list_strings(items)), "thinking became text"
    for finding in found.findings:
        assert finding.effect == "ignored" or finding.repair
        assert finding.path
        assert finding.effect == "ignored" or finding.source, finding
    return found


@pytest.mark.parametrize("name", SPEAKERS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), as_request=st.booleans(), target=st.sampled_from(TARGETS) | st.none())
def test_a_repaired_history_is_sound_and_loses_nothing_in_silence(
    name: str, seed: int, as_request: bool, target: str | None
) -> None:
    items = json.loads(healthy(name))
    damage(items, seed)
    check_laws(items, SPEAKERS[name], target or name, as_request=as_request)


@pytest.mark.parametrize("name", [name for name in SPEAKERS if not name.startswith("google:")])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_plan_leaves_a_sound_history_alone(name: str, seed: int) -> None:
    items = json.loads(healthy(name))
    damage(items, seed)
    found = check_laws(items, SPEAKERS[name], name, as_request=False)
    if found is None:
        return
    messages = import_messages(found.repaired, SPEAKERS[name].format)
    planned = plan(
        Prompt(messages), find_target(name if name != GPT.name else "openai-responses:gpt-5"), on_conflict="adjust"
    )
    dropped = [decision for decision in planned.decisions if decision.action == "drop"]
    ignored = diagnose(found.repaired, name).ignored
    assert len(dropped) == len(ignored), (dropped, ignored)
    codes = {notice.code for notice in planned.notices}
    if name == GPT.name:
        return  # an output may follow its call later, and the plan puts it behind the call
    assert codes.isdisjoint({"orphan_tool_result", "dangling_tool_call", "blank_message_dropped"})


@pytest.mark.parametrize("name", [name for name in SPEAKERS if name != ROUTER.name])
def test_what_is_repaired_is_accepted(name: str) -> None:
    speaker = SPEAKERS[name]
    refused = 0
    with open_stage() as stage:
        base = hold(stage, speaker)
        for seed in range(40):
            items = deepcopy(base)
            damage(items, seed, most=1)
            if not items:
                continue
            body = speaker.body(items)
            refused += _send(stage, speaker, body) != 200
            assert _send(stage, speaker, diagnose(body, name).repaired) == 200, seed
    assert refused > 5


def _send(stage: Stage, speaker: Speaker, body: dict[str, Any]) -> int:
    return post(stage, speaker.format, body, model=speaker.model).status


# --- anything at all --------------------------------------------------------------------------------------------------

_KEYS = st.sampled_from([
    "role", "content", "type", "text", "thinking", "signature", "data", "id", "name", "input", "tool_use_id", "parts",
    "functionCall", "functionResponse", "args", "response", "thought", "thoughtSignature", "tool_calls", "function",
    "arguments", "tool_call_id", "reasoning_content", "reasoning", "reasoning_details", "extra_content", "call_id",
    "output", "summary", "encrypted_content", "message", "payload", "index", "function_call", "model",
])  # fmt: skip
_WORDS = st.sampled_from([
    "user", "assistant", "model", "tool", "system", "text", "thinking", "redacted_thinking", "tool_use", "tool_result",
    "message", "reasoning", "function_call", "function_call_output", "item_reference", "reasoning.text", "{}", "", " ",
    "rs_1", "fc_1", "x",
])  # fmt: skip
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_ITEMS = st.lists(st.dictionaries(_KEYS, _VALUES, max_size=5) | _VALUES, min_size=1, max_size=4)
_BODIES = st.dictionaries(
    st.sampled_from(["messages", "input", "contents", "system", "tools", "thinking", "model", "asides", "store"]),
    _ITEMS | _VALUES,
    max_size=5,
)


@settings(max_examples=400, deadline=None)
@given(
    history=_ITEMS | _BODIES,
    target=st.sampled_from(TARGETS),
    format_name=st.sampled_from(["auto", "openai", "anthropic", "responses", "gemini", "asides"]),
)
def test_whatever_is_read_is_repaired_or_refused_with_an_error(history: Any, target: str, format_name: str) -> None:
    try:
        found = diagnose(history, target, format_name=format_name)
    except ConfigError as problem:
        if "cannot be repaired" in str(problem):
            raise AssertionError from problem
        return
    again = diagnose(found.repaired, target, format_name=found.format)
    assert again.sound, (found.findings, again.refused)
    assert again.repaired == found.repaired
