"""The laws for Messages: chunking, stream is whole, the server half inverts, nothing leaks, history returns."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import find_dialect
from asides.history.plan import plan
from asides.providers.find import list_providers
from asides.providers.provider import Provider, Target
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.fold import fold
from asides.values.messages import Message, Prompt
from asides.values.parts import ServerTool, Text, ToolResult, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides.values.usage import normalise_usage
from asides_stage.conformance.response_bodies import decode_pieces, list_visible_texts, split_body
from tests.decoding import reply_of
from tests.laws.replies import ARGUMENTS, LETTERS, SIZES, WORDS, deltas

ROWS = [row for row in list_providers() if row.dialect == "anthropic"]
CANARY = "canary-7f3a-thought"
MODEL = "claude-sonnet-4-5"
CLAUDE = next(row for row in ROWS if row.name == "anthropic")
SEALS = st.text("ABCabc012+/=", min_size=4, max_size=20)
_THOUGHTS = ("thinking", "redacted_thinking")


def target_of(row: Provider, model: str = MODEL) -> Target:
    return Target(row, model, row.base_url or "http://127.0.0.1:9/v1", row.rule(model))


@st.composite
def blocks(draw: st.DrawFn, *, thought: st.SearchStrategy[str] | None = None) -> list[Event]:
    """Events that a message can carry: blocks of every kind in any order, usage, an end."""
    sizes = draw(SIZES)
    events: list[Event] = [ReplyStarted("claude-sonnet-4-5", "msg_1")]
    thoughts = thought if thought is not None else WORDS
    kinds = draw(
        st.lists(st.sampled_from(["thinking", "hidden", "redacted", "text", "call", "tool", "new"]), max_size=6)
    )
    for number, kind in enumerate(kinds):
        match kind:
            case "thinking":
                events += [
                    ThinkingDelta(piece, number, "summary", "block", "thinking")
                    for piece in deltas(draw(thoughts), sizes)
                ]
                if draw(st.booleans()):
                    events.append(ThoughtSealed(Seal("signature", draw(SEALS)), number, "summary", "block"))
            case "hidden":
                events.append(ThoughtSealed(Seal("signature", draw(SEALS)), number, "summary", "block"))
            case "redacted":
                events.append(ThoughtSealed(Seal("redacted", draw(SEALS)), number, "hidden", "block"))
            case "text":
                events += [TextDelta(piece, number) for piece in deltas(draw(LETTERS), sizes)]
                if draw(st.booleans()):
                    entry = '[{"type":"char_location","cited_text":"é","n":1}]'
                    events.append(ThoughtSealed(Seal("citations", "", None, entry), number, source="block"))
            case "call":
                raw = msgspec.json.encode(draw(ARGUMENTS)).decode()
                events.append(ToolCallDelta(number, f"toolu_{number}", "look_up"))
                if draw(st.booleans()):
                    entry = '{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}'
                    events.append(ThoughtSealed(Seal("caller", "", None, entry), number, source="block"))
                events += [ToolCallDelta(number, arguments=piece) for piece in deltas(raw, sizes)]
            case "tool":
                told = '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"é"}}'
                events.append(PartArrived(ServerTool("server_tool_use", "srvtoolu_1", None, told), number))
            case _:
                events.append(PartArrived(UnknownPart('{"type":"made_up","of":[1,{"two":null}]}'), number))
    stop = draw(st.sampled_from(["end_turn", "tool_use", "stop_sequence", "pause_turn", "refusal"]))
    if stop == "refusal" and draw(st.booleans()):
        events.append(RefusalDelta("I would rather not.", 99))
    counts = draw(st.none() | st.tuples(*[st.integers(0, 999)] * 4))
    if counts is not None:
        read, cached, answer, thinking = counts
        events.append(
            UsageReported(
                normalise_usage(input=read + cached, output=answer + thinking, thinking=thinking, cached=cached)
            )
        )
    reasons = {"end_turn": "stop", "tool_use": "tool_calls", "stop_sequence": "stop", "pause_turn": "pause"}
    events.append(ReplyEnded(StopReason(reasons.get(stop, "refusal"), stop)))  # type: ignore[arg-type]
    return events


def written(events: list[Event], *, stream: bool) -> bytes:
    writer = find_dialect("anthropic").writer(model="made-up", stream=stream)
    return b"".join(writer.write([event]) for event in events)


def said(reply: Reply) -> Reply:
    """The reply without where it came from, which only the reader knows, and what only the reader finds unknown."""
    parts: list[Any] = []
    for part in reply.parts:
        changes: dict[str, Any] = {"origin": None} if hasattr(part, "origin") else {}
        if seals := part.seals:
            changes["seals"] = tuple(msgspec.structs.replace(seal, origin=None) for seal in seals)
        parts.append(msgspec.structs.replace(part, **changes))
    warnings = tuple(notice for notice in reply.warnings if notice.code != "unknown_part")
    return msgspec.structs.replace(reply, parts=tuple(parts), origin=None, warnings=warnings)


@given(events=blocks())
@settings(max_examples=150, deadline=None)
def test_law_the_server_half_inverts_the_client_half(events: list[Event]) -> None:
    for stream in (True, False):
        reply, failure = reply_of([written(events, stream=stream)], target_of(CLAUDE), "anthropic")
        assert failure is None
        assert said(reply) == said(fold(events))


@given(events=blocks(), cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6), row=st.sampled_from(ROWS))
@settings(max_examples=100, deadline=None)
def test_law_any_chunking_gives_the_same_reply(events: list[Event], cuts: list[int], row: Provider) -> None:
    body = written(events, stream=True)
    target = target_of(row)
    pieces = split_body(body, cuts)
    assert reply_of(pieces, target, "anthropic") == (reply_of([body], target, "anthropic")[0], None)


@given(events=blocks(), row=st.sampled_from(ROWS))
@settings(max_examples=100, deadline=None)
def test_law_streamed_and_whole_give_the_same_reply(events: list[Event], row: Provider) -> None:
    streamed, _ = reply_of([written(events, stream=True)], target_of(row), "anthropic")
    whole, _ = reply_of([written(events, stream=False)], target_of(row), "anthropic")
    assert streamed == whole


@given(events=blocks(thought=st.just(CANARY)), cut=st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_law_a_thought_leaks_nowhere(events: list[Event], cut: int) -> None:
    """Whole or cut anywhere: the canary is in `.thinking` and in nothing that a person reads by accident."""
    body = written(events, stream=True)
    for bytes_there in (body, body[: len(body) * cut // 100]):
        seen = list_visible_texts(decode_pieces([bytes_there], target_of(CLAUDE), find_dialect("anthropic")))
        assert not any("canary" in text for text in seen.values())


@given(events=blocks())
@settings(max_examples=100, deadline=None)
def test_law_a_signed_turn_returns_as_it_came(events: list[Event]) -> None:
    """Every signature, redacted block, call and server block goes back, in order and with the same bytes."""
    target = target_of(CLAUDE)
    body = written(events, stream=False)
    reply, _ = reply_of([body], target, "anthropic")
    came = [
        block
        for block in msgspec.json.decode(body)["content"]
        if not (block["type"] == "text" and not block["text"].strip())
        and not (block["type"] == "thinking" and not block["signature"])
    ]
    # The server refuses a call of its own tools without its result.
    answered = {block.get("tool_use_id") for block in came}
    came = [block for block in came if block["type"] != "server_tool_use" or block["id"] in answered]
    if came and came[0]["type"] not in _THOUGHTS:
        # A turn with thinking that does not begin with it is refused.
        came = [block for block in came if block["type"] not in _THOUGHTS]
    while came and came[-1]["type"] in _THOUGHTS:
        came.pop()  # a turn that ends with thinking is refused
    turn = reply.to_message()
    assert turn is not None
    results = tuple(ToolResult(call.id, "done") for call in turn.tool_calls)
    history = (
        Message("user", (Text("go"),)),
        turn,
        *((Message("tool", results),) if results else ()),
        Message("user", (Text("on"),)),
    )
    planned = plan(Prompt(history), target).prompt
    sent = msgspec.json.decode(find_dialect("anthropic").encode(planned, target)[0].body)["messages"]
    assert [message["content"] for message in sent if message["role"] == "assistant"] == ([came] if came else [])


@given(events=blocks())
@settings(max_examples=60, deadline=None)
def test_law_no_thought_of_another_model_goes_out(events: list[Event]) -> None:
    reply, _ = reply_of([written(events, stream=False)], target_of(CLAUDE, "claude-opus-4-1"), "anthropic")
    turn = reply.to_message()
    assert turn is not None
    target = target_of(CLAUDE)
    history = (Message("user", (Text("go"),)), turn, Message("user", (Text("on"),)))
    planned = plan(Prompt(history), target).prompt
    assert not any(isinstance(part, Thought) and part.seals for message in planned.messages for part in message.parts)
    assert b'"signature"' not in find_dialect("anthropic").encode(planned, target)[0].body


@given(events=blocks())
@settings(max_examples=60, deadline=None)
def test_law_every_value_survives_json(events: list[Event]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(events), type=list[Event]) == events
    reply = fold(events)
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply
