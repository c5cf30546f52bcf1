"""The laws, for Responses: chunking, stream is whole, the server half inverts, nothing leaks, the next turn passes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.dialects import find_dialect
from asides.history.plan import plan
from asides.providers.find import find_provider, list_providers
from asides.providers.provider import Target
from asides.testing.conformance.response_bodies import decode_pieces, list_visible_texts, split_body
from asides.testing.stage import OpenStage, Say
from asides.values.events import (
    CommentaryDelta,
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
from asides.values.messages import Message, user
from asides.values.parts import Commentary, Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from tests.decoding import reply_of, sse
from tests.laws.replies import ARGUMENTS, LETTERS, SIZES, USAGES, WORDS, deltas
from tests.responses import DIALECT, call, message, reasoning, response
from tests.responses import events as told_events

ROWS = [spoken for row in list_providers() if (spoken := row.with_dialect(DIALECT)) is not None]
CANARY = "canary-7f3a-thought"
PLAIN = find_provider("openai-compatible").with_dialect(DIALECT)
assert PLAIN is not None
# Tags are another law's matter: words made up here may look like some.
UNTAGGED = msgspec.structs.replace(PLAIN, quirks=msgspec.structs.replace(PLAIN.quirks, tags=()), models=())
THOUGHTS = st.just("") | st.builds("".join, st.lists(WORDS, min_size=1, max_size=4))
SEARCH = ServerTool("web_search_call", "ws_1", "completed", '{"action":{"query":"sky"}}')
STRANGE = UnknownPart('{"type":"crystal_ball_call","id":"cb_1","vision":"fog"}')


def target_of(row: Any) -> Target:
    return Target(row, "made-up", row.base_url or "http://127.0.0.1:9/v1", row.rule("made-up"))


@st.composite
def responses_events(draw: st.DrawFn, thought: st.SearchStrategy[str] | None = None) -> list[Event]:
    """Events that a response can carry: items of every kind, in any order."""
    sizes = draw(SIZES)
    told: list[Event] = [ReplyStarted("made-up", "resp_1", None, draw(st.booleans()))]
    calls = False
    for block, kind in enumerate(
        draw(st.lists(st.sampled_from("thought text commentary call refusal tool custom strange".split()), max_size=6))
    ):
        match kind:
            case "thought":
                summary = draw(st.booleans())
                words = draw(THOUGHTS if thought is None else thought)
                shape: tuple[Any, ...] = (
                    ("summary", "responses_summary", "summary")
                    if summary
                    else ("raw", "responses_raw", "reasoning_text")
                )
                told += [ThinkingDelta(piece, block, *shape) for piece in deltas(words, sizes)]
                if not words or draw(st.booleans()):
                    told.append(
                        ThoughtSealed(Seal("encrypted", draw(st.text("abc=", min_size=1))), block, "hidden", shape[1])
                    )
            case "text":
                told += [TextDelta(piece, block) for piece in deltas(draw(LETTERS), sizes)]
            case "commentary":
                told += [CommentaryDelta(piece, block) for piece in deltas(draw(LETTERS), sizes)]
            case "refusal":
                told.append(RefusalDelta("I would rather not.", block))
            case "tool":
                told.append(PartArrived(SEARCH, block))
            case "strange":
                told.append(PartArrived(STRANGE, block))
            case _:
                calls = True
                custom = kind == "custom"
                raw = draw(LETTERS) if custom else msgspec.json.encode(draw(ARGUMENTS)).decode()
                told.append(ToolCallDelta(block, f"call_{block}", "look_up", custom=custom))
                told += [ToolCallDelta(block, arguments=piece, custom=custom) for piece in deltas(raw, sizes)]
    usage = draw(USAGES)
    if usage is not None:
        told.append(UsageReported(usage))
    if draw(st.booleans()):
        told.append(ReplyEnded(StopReason("tool_calls" if calls else "stop", "completed")))
    else:
        told.append(ReplyEnded(StopReason("length", "max_output_tokens")))
    return told


def written(events: Iterable[Event], *, stream: bool) -> bytes:
    writer = find_dialect(DIALECT).writer(model="made-up", stream=stream, include_usage=True)
    return b"".join(writer.write([event]) for event in events)


def said(reply: Reply) -> Reply:
    """The reply without what only its reader knows: where it came from, and the entries of its items."""
    return msgspec.structs.replace(reply, parts=tuple(map(_said, reply.parts)), origin=None, warnings=())


def _said(part: Part) -> Part:
    changes: dict[str, Any] = {}
    if hasattr(part, "origin"):
        changes["origin"] = None
    if isinstance(part, Thought):
        changes["complete"] = True
        changes["via"] = part.via if part.text else None
        changes["source"] = part.source if part.text else "responses_summary"
    if isinstance(part, (Thought, Text, Commentary, ToolCall)):
        changes["seals"] = tuple(Seal(seal.kind, seal.value) for seal in part.seals if seal.value)
    if isinstance(part, (ServerTool, UnknownPart)):
        item = json.loads(part.json)
        kept = {name: value for name, value in item.items() if name not in ("id", "status", "type")}
        changes["json"] = json.dumps(kept, sort_keys=True)
    return msgspec.structs.replace(part, **changes)


@given(events=responses_events())
@settings(max_examples=150, deadline=None)
def test_law_the_server_half_inverts_the_client_half(events: list[Event]) -> None:
    for stream in (True, False):
        reply, failure = reply_of([written(events, stream=stream)], target_of(UNTAGGED), DIALECT)
        assert failure is None
        assert said(reply) == said(fold(events))


@given(events=responses_events(), cuts=st.lists(st.integers(1, 60), min_size=1, max_size=6), row=st.sampled_from(ROWS))
@settings(max_examples=80, deadline=None)
def test_law_any_chunking_and_streamed_or_whole_give_the_same_reply(
    events: list[Event], cuts: list[int], row: Any
) -> None:
    target = target_of(row)
    body = written(events, stream=True)
    reply, failure = reply_of([body], target, DIALECT)
    assert failure is None
    pieces = split_body(body, cuts)
    assert reply_of(pieces, target, DIALECT) == (reply, None)
    assert reply_of([written(events, stream=False)], target, DIALECT)[0] == reply


@given(events=responses_events())
@settings(max_examples=80, deadline=None)
def test_law_what_was_read_is_written_and_read_again_as_the_same(events: list[Event]) -> None:
    target = target_of(UNTAGGED)
    first, _ = reply_of([written(events, stream=False)], target, DIALECT)
    for stream in (True, False):
        again, failure = reply_of([written(asides.simulate(first, 3), stream=stream)], target, DIALECT)
        assert failure is None
        assert [_entries(part) for part in again.parts] == [_entries(part) for part in first.parts]
        assert said(again) == said(first)


def _entries(part: Part) -> list[Any]:
    """What goes back of a part besides its words: the ids and phases, and reasoning whole."""
    seals = part.seals if isinstance(part, (Thought, Text, Commentary, ToolCall)) else ()
    items = [json.loads(seal.entry) for seal in seals if seal.entry]
    return [item if item["type"] == "reasoning" else (item.get("id"), item.get("phase")) for item in items]


@given(events=responses_events(thought=st.just(CANARY)), row=st.sampled_from(ROWS), cut=st.integers(0, 100))
@settings(max_examples=80, deadline=None)
def test_law_a_thought_leaks_nowhere(events: list[Event], row: Any, cut: int) -> None:
    body = written(events, stream=True)
    for there in (body, body[: len(body) * cut // 100]):
        decoded = decode_pieces([there], target_of(row), find_dialect(DIALECT))
        assert not any("canary" in text for text in list_visible_texts(decoded).values())


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_law_pain_C5_a_history_pruned_anyhow_has_no_unpaired_reasoning(data: st.DataObject) -> None:
    row = find_provider("openai-responses")
    target = Target(row, "gpt-5", row.base_url, row.rule("gpt-5"))
    history: list[Message] = []
    for _ in range(data.draw(st.integers(1, 3))):
        body = written(data.draw(responses_events()), stream=False)
        reply, _ = reply_of([body], target, DIALECT)
        pruned = tuple(part for part in reply.parts if data.draw(st.booleans()))
        history += [user("?"), Message("assistant", pruned)]
        if results := tuple(ToolResult(call.id, "x") for call in reply.tool_calls if data.draw(st.booleans())):
            history.append(Message("tool", results))
    planned = plan(asides.Prompt((*history, user("?"))), target)
    request, _ = find_dialect(DIALECT).encode(planned.prompt, target)
    items = json.loads(request.body)["input"]
    for place, item in enumerate(items):
        if item.get("type") == "reasoning":
            assert isinstance(item["summary"], list)
            behind = items[place + 1]
            assert behind.get("type", behind.get("role")) not in (
                "user",
                "function_call_output",
                "custom_tool_call_output",
            )
            assert behind.get("role") != "user"
            assert item.get("encrypted_content")
    outputs = [item["call_id"] for item in items if item.get("type", "").endswith("_output")]
    calls = [item["call_id"] for item in items if item.get("type") in ("function_call", "custom_tool_call")]
    assert sorted(outputs) == sorted(calls)


WRONG: st.SearchStrategy[Any] = st.sampled_from([None, 5, "x", [], {}, True, 1.5, [None], {"a": 1}, -1, "", [[]]])


def damaged(value: Any, draw: Any) -> Any:
    """The document with some of its values gone, or of another type."""
    if draw(st.integers(0, 19)) == 0:
        return draw(WRONG)
    if isinstance(value, dict):
        return {name: damaged(inner, draw) for name, inner in value.items() if draw(st.integers(0, 29))}
    return [damaged(inner, draw) for inner in value] if isinstance(value, list) else value


@given(data=st.data(), row=st.sampled_from(ROWS))
@settings(max_examples=60, deadline=None)
def test_law_no_damage_to_a_document_raises_and_what_came_of_it_can_be_sent(data: st.DataObject, row: Any) -> None:
    items = (reasoning("plan", encrypted="e", raw=("raw",)), message("Hello"), call())
    documents = [damaged(event, data.draw) for event in told_events(*items, size=4)]
    for body in (sse(*documents, done=False), json.dumps(damaged(response(*items), data.draw)).encode()):
        reply, _ = reply_of([body], target_of(row), DIALECT)
        again, _ = reply_of([body[:50], body[50:]], target_of(row), DIALECT)
        assert reply == again
        history = (user("?"), Message("assistant", reply.parts), user("?"))
        planned = plan(asides.Prompt(history), target_of(row), on_conflict="adjust")
        find_dialect(DIALECT).encode(planned.prompt, target_of(row))


@pytest.mark.parametrize("way", ["stateless", "stateful", "dropped"])
def test_law_random_conversations_with_tools_are_never_refused(way: str, stage: OpenStage) -> None:
    """The stage refuses what the real endpoint refuses; forty turns pass, however state is carried."""
    turns = iter(range(10_000))

    def play(_: Any) -> Say:
        turn = next(turns)
        if turn % 3 == 2:
            return Say(thinking=f"plan {turn}", text="I look." if turn % 2 else "", tool_calls=_calls(turn))
        return Say(thinking=f"plan {turn}", text=f"answer {turn}")

    served = stage(play)
    ways: dict[str, dict[str, Any]] = {
        "stateless": {"thinking": "low"},
        "stateful": {"stateful": True},
        "dropped": {"thinking": asides.Thinking(effort="low", replay="never")},
    }
    options = ways[way]
    history: list[Any] = [user("Begin.")]
    for turn in range(40):
        reply = asides.ask(
            "openai-responses:gpt-5",
            history,
            base_url=served.url,
            api_key="sk-1234567",
            stream=turn % 2 == 0,
            **options,
        )
        assert not [notice for notice in reply.warnings if notice.code.endswith("rejected")]
        results = tuple(ToolResult(call.id, "done") for call in reply.tool_calls)
        history += [reply, Message("tool", results) if results else user(f"Go on {turn}.")]
    assert len(served.requests) == 40
    assert all(request.problem is None for request in served.requests)
    encrypted = [item for item in served.requests[-1].json["input"] if item.get("encrypted_content")]
    assert bool(encrypted) == (way == "stateless")


def _calls(turn: int) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(f"call_{turn}_{number}", "look_up", {"at": number}) for number in range(1 + turn % 2))
