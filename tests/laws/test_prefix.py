"""The bytes of a request are the beginning of the next one, up to the closing brackets, unless `explain` names a reason
at or before the first difference. Over random conversations, every dialect and every row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import find_dialect
from asides.dialects.dialect import DialectFacts
from asides.history.cache_break import CacheBreak, drop_marks, find_cache_break
from asides.history.plan import encode_plan, plan
from asides.providers.provider import Target
from asides.providers.table import PROVIDERS
from asides.values.errors import AsidesError
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool
from tests.laws.test_encode_once import ASKED, LIKELY, TARGETS

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
    messages = data.draw(conversations(target))
    prompt = Prompt(messages, thinking=asked, tools=TOOLS if target.rule.tools else ())
    lengths = [*list_requests(messages), len(messages)]
    when = target.provider.replay_rule(target.family or target.model).when
    for length in lengths[1:]:
        question = (user("and?"),) if length == len(messages) else ()
        found = check(msgspec.structs.replace(prompt, messages=(*messages[:length], *question)), target)
        if found is None:
            continue
        # A rule by which thoughts go back for a while takes them out when the while is over, and no other does.
        assert (found.reason, when) == ("replay", "since_last_user") or found.reason == "thinking"
        assert found.reason == "replay" or target.rule.begins_with_thinking or not target.rule.tools_while_thinking


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
