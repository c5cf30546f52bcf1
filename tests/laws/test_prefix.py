"""The bytes of a request are the beginning of the next one, up to the closing brackets, unless `explain` names a reason
at or before the first difference. Over random conversations, every dialect and every row.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import asides
from asides.dialects import find_dialect, find_facts
from asides.dialects.dialect import DialectFacts
from asides.history.cache_break import CacheBreak, drop_marks, find_cache_break
from asides.history.plan import encode_plan, plan
from asides.providers.provider import Target
from asides.providers.table import PROVIDERS
from asides.values.errors import AsidesError
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.thinking import Effort, Seal, Thinking, Thought
from asides.values.tools import Tool
from asides_stage import OpenStage, Say, Stage
from asides_stage.stage.prompt_cache import CacheUse
from tests.laws.likely_messages import ASKED, LIKELY, TARGETS
from tests.laws.theatre import HOUSES

LISTS = ("messages", "contents", "input")
TOOLS = (Tool("look", "Look at it."), Tool("find"))


def encode(prompt: Prompt, target: Target) -> bytes | None:
    try:
        planned = plan(prompt, target, on_conflict="adjust")
        return encode_plan(planned, target, find_dialect(target.dialect), on_conflict="adjust")[0].body
    except AsidesError:
        return None


def find_list(body: bytes) -> tuple[str, int, int]:
    """The name of the list of messages, and where it begins and ends."""
    text = body.decode()
    fields = json.loads(text)
    name = next(name for name in LISTS if name in fields)
    start = text.index(f'"{name}":[') + len(name) + 3
    _, length = json.JSONDecoder().raw_decode(text[start:])
    return name, start, start + length


def cut(body: bytes) -> str:
    """A request up to the closing brackets of its messages."""
    _, _, end = find_list(body)
    return body.decode()[:end].rstrip("]}")


def find_first_difference(old: str, new: str) -> int | None:
    """The place of the first difference in the longer request; None if it begins with the shorter one."""
    if new.startswith(old):
        return None
    return next((place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), len(new))


def find_start(body: bytes, found: CacheBreak) -> int:
    """Where the place that the break names begins in the request."""
    name, start, _ = find_list(body)
    match = re.match(rf"{name}\[(\d+)\]", found.path)
    if match is None:
        return 0  # before all messages
    text, place = body.decode(), start + 1
    for _ in range(int(match[1])):
        _, length = json.JSONDecoder().raw_decode(text[place:])
        place += length + 1
    return place


def check(prompt: Prompt, target: Target) -> CacheBreak | None:
    """The law, for the last request of a history; returns what `explain` would show."""
    answered = [place for place, message in enumerate(prompt.messages) if message.role == "assistant" and place]
    found = find_cache_break(prompt, target, on_conflict="adjust")
    if not answered:
        assert found is None
        return None
    before = encode(msgspec.structs.replace(prompt, messages=prompt.messages[: answered[-1]]), target)
    now = encode(prompt, target)
    if before is None or now is None:
        return found
    difference = find_first_difference(cut(before), now.decode())
    if difference is not None and found is None:
        # The same content, as a text and as a list that has grown.
        assert find_first_difference(cut(dump(before)), dump(now).decode()) is None or grows(before, now)
    elif difference is not None and found is not None:
        assert find_start(now, found) <= difference
        assert found.why
    return found


def dump(body: bytes) -> bytes:
    return json.dumps(drop_marks(json.loads(body)), separators=(",", ":"), ensure_ascii=False).encode()


def grows(before: bytes, now: bytes) -> bool:
    """Whether the last message became a list of parts by one that was added to it, and all before it is the same."""
    (name, _, _), old, new = find_list(before), json.loads(before), json.loads(now)
    place = len(old[name]) - 1
    same = old[name][:place] == new[name][:place]
    first, longer = old[name][place]["content"], new[name][place]["content"]
    return same and isinstance(first, str) and longer[0] == {"type": "text", "text": first}


# --- any history ------------------------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(st.lists(LIKELY, min_size=2, max_size=10), st.sampled_from(TARGETS), ASKED, st.booleans())
def test_a_request_begins_with_the_one_before_or_a_reason_is_named(
    history: list[Message], target: Target, asked: Thinking, has_tools: bool
) -> None:
    prompt = Prompt((*history, user("and?")), thinking=asked, tools=TOOLS if has_tools else ())
    found = check(prompt, target)
    if found is not None and found.message is not None:
        assert 0 <= found.message < len(prompt.messages)


# --- conversations as they are: nobody changes the past ------------------------------------------------------------


def list_targets() -> list[Target]:
    """A model of each rule of each row, in each dialect of the row."""
    targets: dict[tuple[str, str, str], Target] = {}
    for row in PROVIDERS:
        for dialect in (row.dialect, *(variant.dialect for variant in row.also)):
            spoken = row.with_dialect(dialect) or row
            for glob in [rule.models for rule in spoken.models] + ["some-model"]:
                model = re.sub(r"\[(.)[^]]*\]", r"\1", glob).replace("*", "x" if glob == "*" else "")
                rule = spoken.rule(model)
                target = Target(spoken, model, spoken.base_url or "http://127.0.0.1:9/v1", rule)
                targets.setdefault((row.name, dialect, repr((rule, spoken.replay_rule(model)))), target)
    return list(targets.values())


EVERY_TARGET = list_targets()
WISHES = (Thinking(), Thinking(mode="on"), Thinking(mode="off"))
SEAL_KINDS = ("signature", "encrypted", "thought_signature", "reasoning_details")


def make_seal(target: Target, number: int) -> Seal:
    facts = getattr(find_dialect(target.dialect), "facts", DialectFacts())
    kind = (facts.seal_kinds or SEAL_KINDS[:1])[0]
    entries = {
        "encrypted": f'{{"type":"reasoning","id":"rs_{number}","summary":[],"encrypted_content":"c2VhbA{number}"}}',
        "reasoning_details": f'{{"type":"reasoning.text","text":"hm {number}","signature":"s","index":0}}',
    }
    return Seal(kind, f"c2VhbA{number}", target.origin, entries.get(kind))


@st.composite
def conversations(draw: st.DrawFn, target: Target) -> tuple[Message, ...]:
    """Turns of a user and a model, with tools, interleaved thinking and calls that nobody ran."""
    messages: list[Message] = [system("Be brief.")] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        messages.append(user(f"question {len(messages)}"))
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            number += 1
            messages.append(draw(turns(target, number, calls=draw(st.integers(1, 2)))))
            results = [
                ToolResult(call.id, f"result {number}", draw(st.sampled_from([None, call.name])))
                for call in messages[-1].tool_calls
                if draw(st.sampled_from([True, True, True, False]))
            ]
            messages += [Message("tool", (result,)) for result in results]
        number += 1
        messages.append(draw(turns(target, number, calls=0)))
    return tuple(messages)


@st.composite
def turns(draw: st.DrawFn, target: Target, number: int, calls: int) -> Message:
    parts: list[Part] = []
    via = target.facts.thinking_in[0] if target.facts.thinking_in else None
    in_blocks = getattr(find_dialect(target.dialect), "facts", DialectFacts()).thinks_in_blocks
    if draw(st.booleans()):
        seals = (make_seal(target, number),) if in_blocks or target.facts.replay_as == "details" else ()
        parts.append(Thought(f"hm {number}", "raw", "block" if in_blocks else "field", target.origin, seals, via))
    if not calls or draw(st.booleans()):
        parts.append(Text(draw(st.sampled_from([f"words {number}", f"words {number}\n", " lines\n\n"]))))
    style = draw(st.sampled_from(["call_{number}_{place}", "call_{place}", "functions.look:{number}.{place}"]))
    ids = [style.format(number=number, place=place) for place in range(calls)]
    return assistant(*parts, *(ToolCall(call_id, "look", {"at": number}) for call_id in ids))


def list_requests(messages: Sequence[Message]) -> list[int]:
    """The lengths of the history at which the model was asked."""
    return [place for place, message in enumerate(messages) if message.role == "assistant"]


@settings(max_examples=1000, deadline=None)
@given(
    st.data(), st.sampled_from(EVERY_TARGET), st.sampled_from([Thinking(), Thinking(mode="on"), Thinking(mode="off")])
)
def test_a_conversation_that_only_grows_is_never_sent_anew(
    data: st.DataObject, target: Target, asked: Thinking
) -> None:
    # A model that never thinks makes no thoughts that could go back.
    assume(target.rule.thinking != "never")
    # These turns do not say with which effort they were made, so a message may have to set the lowest one.
    assume(target.rule.effort_updates is None or asked.mode != "off")
    messages = data.draw(conversations(target))
    prompt = Prompt(messages, thinking=asked, tools=TOOLS if target.rule.tools else ())
    lengths = [*list_requests(messages), len(messages)]
    when = target.provider.replay_rule(target.family or target.model).when
    for length in lengths[1:]:
        question = (user("and?"),) if length == len(messages) else ()
        found = check(msgspec.structs.replace(prompt, messages=(*messages[:length], *question)), target)
        if found is None:
            continue
        if found.reason == "history" and target.thinks(asked) is False and target.refuses_thoughts_while_off:
            # Without thinking, the thoughts of an open turn stay out until it is over.
            continue
        if found.reason == "history" and [each.role for each in messages[length - 2 : length]] == ["assistant"] * 2:
            # The model continued a message whose calls have no result: `explain` says that its form changed.
            continue
        # A rule by which thoughts go back for a while takes them out when the while is over, and no other does.
        assert (found.reason, when) == ("replay", "since_last_user") or found.reason == "thinking"
        # A turn under way keeps its thinking, or has none: it cannot be set otherwise in the middle of it.
        bound = target.rule.begins_with_thinking or "disabled" in target.rule.forms
        assert found.reason == "replay" or bound


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.provider.name)
def test_calls_of_another_model_stay_as_they_were_sent_when_their_turn_is_over(target: Target) -> None:
    history = (
        user("go"),
        assistant(ToolCall("call_1", "look", {"at": 1})),
        Message("tool", (ToolResult("call_1", "there", "look"),)),
    )
    before = encode(Prompt(history, tools=TOOLS), target)
    now = encode(Prompt((*history, assistant("done"), user("and?")), tools=TOOLS), target)
    assert before is not None
    assert now is not None
    assert now.decode().startswith(cut(before))


# --- effort that changes ----------------------------------------------------------------------------------------------

CHANGING = [target for target in EVERY_TARGET if target.rule.effort_updates is not None]
EFFORTS: tuple[Effort | None, ...] = (None, "low", "medium", "high", "max")


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([target for target in CHANGING if find_facts(target.dialect).effort_updates]),
    st.lists(st.tuples(st.sampled_from(EFFORTS), st.integers(0, 2)), min_size=2, max_size=6),
)
def test_effort_that_changes_leaves_the_past_as_it_was_sent(
    target: Target, questions: list[tuple[Effort | None, int]]
) -> None:
    messages: tuple[Message, ...] = ()
    bodies: list[bytes] = []
    for number, (effort, calls) in enumerate(questions):
        messages = (*messages, user(f"question {number}"))
        for step in range(calls + 1):
            prompt = Prompt(messages, thinking=Thinking(effort=effort), tools=TOOLS, cache=True)
            planned = plan(prompt, target)
            body = encode_plan(planned, target, find_dialect(target.dialect))[0].body
            assert effort in (None, planned.effort) or step
            if bodies:
                found = find_cache_break(prompt, target)
                # Thinking is shown from the first effort on that anybody asked for; nothing else changes.
                is_first = found is not None and json.loads(bodies[0]).keys() < json.loads(body).keys()
                assert found is None or (found.reason == "thinking" and is_first)
                old, new = cut(dump(bodies[-1])), dump(body).decode()
                assert new.startswith(old)
            bodies.append(body)
            last = ToolCall(f"call_{number}_{step}", "look", {}) if step < calls else Text(f"answer {number}")
            messages = (*messages, Message("assistant", (last,), effort=planned.effort))
            if isinstance(last, ToolCall):
                messages = (*messages, Message("tool", (ToolResult(last.id, "there", "look"),)))


# --- what a provider's cache reads ------------------------------------------------------------------------------------

QUESTIONS = ("one two three", "four five", "six", "seven eight nine ten")


KEYS = {name: "k" for row in PROVIDERS for name in row.key_env}


def ask_all(stage: Stage, model: str, base_url: str | None, thinking: Sequence[Any]) -> list[CacheUse]:
    """Ask the questions in one conversation; returns what the cache did for each."""
    with asides.Client() as client:
        chat = asides.Conversation(model, client=client, base_url=base_url, system="Be brief.", cache=True)
        for question, amount in zip(QUESTIONS, thinking, strict=True):
            chat.ask(question, thinking=amount, max_tokens=20_000)
    uses = [request.cache for request in stage.requests]
    return [use for use in uses if use is not None]


def check_uses(uses: list[CacheUse]) -> None:
    assert len(uses) == len(QUESTIONS)
    for before, now in pairwise(uses):
        assert now.read_parts >= before.parts, "the whole request before comes from the cache"
        assert now.read > 0


# One has a rule that takes thoughts out again. A gateway's breakpoints are inside its messages, where the stage's cache
# compares them.
CACHED = sorted(name for name, house in HOUSES.items() if house.provider not in ("zai", "openrouter"))


@pytest.mark.parametrize("name", CACHED)
def test_each_request_reads_the_one_before_from_the_cache(name: str, stage: OpenStage) -> None:
    house = HOUSES[name]
    open_stage = stage([Say(thinking=f"hm {number}", text=f"answer {number}") for number in range(4)], cache=True)
    base_url = open_stage.url.removesuffix("/v1") + house.base
    with mock.patch.dict(os.environ, {"AWS_REGION": "us-east-1", **KEYS}):
        check_uses(ask_all(open_stage, house.model, base_url, [house.thinking] * 4))


@pytest.mark.parametrize(
    "model", ["openai-responses:gpt-6-astra", "anthropic:claude-opus-5-5", "anthropic:claude-opus-5"]
)
def test_effort_that_changes_reads_the_past_from_the_cache(
    model: str, stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_stage = stage([Say(thinking=f"hm {number}", text=f"answer {number}") for number in range(4)], cache=True)
    monkeypatch.setenv("ASIDES_STAGE", open_stage.url)
    check_uses(ask_all(open_stage, model, None, ["high", "low", "low", "max"]))


def test_an_effort_of_the_whole_request_that_changes_is_read_anew(stage: OpenStage) -> None:
    """The other way round: what breaks the law is seen."""
    open_stage = stage([Say(thinking=f"hm {number}", text=f"answer {number}") for number in range(4)], cache=True)
    uses = ask_all(open_stage, "anthropic:claude-opus-4-6", open_stage.url, ["high", "off", "high", "off"])
    with pytest.raises(AssertionError, match="comes from the cache"):
        check_uses(uses)
