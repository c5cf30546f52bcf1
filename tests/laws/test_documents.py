"""The laws for Ollama's chat, Cohere's chat and Converse: chunking, stream is whole, the server half inverts, nothing
leaks, history returns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import find_dialect
from asides.history.plan import plan
from asides.providers.find import list_providers
from asides.providers.provider import Provider, Quirks, ReplayRule, Target
from asides.values.events import (
    Event,
    PartArrived,
    ReplyEnded,
    ReplyStarted,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.fold import fold
from asides.values.messages import Message, Prompt, user
from asides.values.parts import Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage, normalise_usage
from asides_stage.conformance.response_bodies import decode_pieces, list_visible_texts, split_body
from tests.decoding import reply_of
from tests.laws.replies import ARGUMENTS, LETTERS, SIZES, WORDS, deltas

CANARY = "canary-7f3a-thought"
MODEL = "made-up"
SEALS = st.text("ABCabc012+/", min_size=4, max_size=20).map(lambda text: text[: len(text) // 4 * 4])
COUNTS = st.integers(0, 999)


def calls(draw: st.DrawFn, first: int, sizes: list[int]) -> list[Event]:
    """Up to two calls; some without an id, as older servers leave them."""
    events: list[Event] = []
    for number in range(first, first + draw(st.integers(0, 2))):
        raw = msgspec.json.encode(draw(ARGUMENTS)).decode()
        events.append(ToolCallDelta(number, f"call_{number}", "look_up"))
        events += [ToolCallDelta(number, arguments=piece) for piece in deltas(raw, sizes)]
    return events


def ended(events: list[Event], words: dict[StopKind, str], draw: st.DrawFn) -> list[Event]:
    """With an end: one that is cut by a limit while it thought has an incomplete thought."""
    called = any(isinstance(event, ToolCallDelta) for event in events)
    reason: StopKind = draw(st.sampled_from(["tool_calls" if called else "stop", "length"]))
    spoken = [event for event in events if isinstance(event, (TextDelta, ThinkingDelta, ThoughtSealed, ToolCallDelta))]
    cut = reason == "length" and bool(spoken) and isinstance(spoken[-1], ThinkingDelta)
    return [*events, ReplyEnded(StopReason(reason, words[reason]), cut)]


@st.composite
def chat_lines(draw: st.DrawFn, *, thought: st.SearchStrategy[str] = WORDS) -> list[Event]:
    """What a reply in Ollama's language can carry: one thought, one text, calls."""
    sizes = draw(SIZES)
    events: list[Event] = [ReplyStarted(MODEL)]
    if draw(st.booleans()) or thought is not WORDS:
        events += [ThinkingDelta(piece, 0, "raw", "field", "thinking") for piece in deltas(draw(thought), sizes)]
    events += [TextDelta(piece, 1) for piece in deltas(draw(st.just("") | LETTERS), sizes)]
    events += calls(draw, 2, sizes)
    if draw(st.booleans()):
        events.append(UsageReported(normalise_usage(input=draw(COUNTS), output=draw(COUNTS))))
    return ended(events, {"stop": "stop", "tool_calls": "stop", "length": "length"}, draw)


@st.composite
def content_items(draw: st.DrawFn, *, thought: st.SearchStrategy[str] = WORDS) -> list[Event]:
    """What a reply in Cohere's language can carry: items in any order, calls with a plan, citations."""
    sizes = draw(SIZES)
    events: list[Event] = [ReplyStarted(MODEL, "reply-1")]
    kinds = draw(st.lists(st.sampled_from(["thinking", "text"]), max_size=4))
    for number, kind in enumerate(kinds if thought is WORDS else ["thinking", *kinds]):
        if kind == "thinking":
            events += [ThinkingDelta(one, number, "raw", "block", "content") for one in deltas(draw(thought), sizes)]
        else:
            events += [TextDelta(piece, number) for piece in deltas(draw(LETTERS), sizes)]
            if draw(st.booleans()):
                entry = f'[{{"start":0,"end":1,"text":"é","content_index":{number}}}]'
                events.append(ThoughtSealed(Seal("citations", "", None, entry), number, source="block"))
    asked = calls(draw, 10, sizes)
    planned = draw(st.booleans())
    if asked and planned:
        asked.append(ThoughtSealed(Seal("tool_plan", "", None, '"I will look \\"it\\" up."'), 10, source="block"))
    events += asked
    if draw(st.booleans()):
        read, output, thinking, cached = (draw(COUNTS) for _ in range(4))
        events.append(UsageReported(normalise_usage(input=read, output=output, thinking=thinking, cached=cached)))
    texts = any(isinstance(event, (TextDelta, ToolCallDelta)) for event in events)
    words: dict[StopKind, str] = {"stop": "COMPLETE", "tool_calls": "TOOL_CALL", "length": "MAX_TOKENS"}
    *events, last = ended(events, words, draw)
    assert isinstance(last, ReplyEnded)
    return [*events, msgspec.structs.replace(last, truncated_thought=last.truncated_thought and not texts)]


@st.composite
def content_blocks(draw: st.DrawFn, *, thought: st.SearchStrategy[str] = WORDS) -> list[Event]:
    """What a reply of Converse can carry: blocks of every kind in any order."""
    sizes = draw(SIZES)
    events: list[Event] = [ReplyStarted(MODEL)]
    kinds = draw(
        st.lists(st.sampled_from(["thinking", "redacted", "text", "call", "tool", "result", "new"]), max_size=6)
    )
    for number, kind in enumerate(kinds if thought is WORDS else ["thinking", *kinds]):
        match kind:
            case "thinking":
                pieces = deltas(draw(thought), sizes)
                events += [ThinkingDelta(piece, number, "raw", "block", "reasoningContent") for piece in pieces]
                if draw(st.booleans()):
                    events.append(ThoughtSealed(Seal("signature", draw(SEALS)), number, "raw", "block"))
            case "redacted":
                events.append(ThoughtSealed(Seal("redacted", draw(SEALS)), number, "hidden", "block"))
            case "text":
                events += [TextDelta(piece, number) for piece in deltas(draw(LETTERS), sizes)]
                if draw(st.booleans()):
                    entry = '[{"title":"é","location":{"documentChar":{"start":0}}}]'
                    events.append(ThoughtSealed(Seal("citations", "", None, entry), number, source="block"))
            case "call":
                raw = msgspec.json.encode(draw(ARGUMENTS)).decode()
                events.append(ToolCallDelta(number, f"tooluse_{number}", "look_up"))
                events += [ToolCallDelta(number, arguments=piece) for piece in deltas(raw, sizes)]
            case "tool":
                told = '{"toolUse":{"input":{"snippet":"é"},"name":"run","toolUseId":"t1","type":"server_tool_use"}}'
                events.append(PartArrived(ServerTool("run", "t1", None, told), number))
            case "result":
                told = (
                    '{"toolResult":{"content":[{"json":{"out":1}}],"status":"success","toolUseId":"t1","type":"ran"}}'
                )
                events.append(PartArrived(ServerTool("ran", "t1", "success", told), number))
            case _:
                events.append(PartArrived(UnknownPart('{"made_up":{"of":[1,{"two":null}]}}'), number))
    if draw(st.booleans()):
        read, cached, output = draw(COUNTS), draw(COUNTS), draw(COUNTS)
        told_usage = Usage(read + cached, output, None, cached, read + cached + output)
        events.append(UsageReported(told_usage))
    last = next((event for event in reversed(events) if getattr(event, "block", None) is not None), None)
    called = any(isinstance(event, ToolCallDelta) for event in events)
    reason: StopKind = draw(st.sampled_from(["tool_calls" if called else "stop", "length"]))
    words = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
    cut = reason == "length" and isinstance(last, ThinkingDelta)
    return [*events, ReplyEnded(StopReason(reason, words[reason]), cut)]


class Language(NamedTuple):
    """A dialect, and the replies that it can carry."""

    name: str
    replies: Any
    path: str = ""

    def target(self, row: Provider | None = None) -> Target:
        usual = Provider(
            name="example",
            dialect=self.name,
            base_url="http://127.0.0.1:9",
            quirks=Quirks(tags=(), path={"ollama": "/api/chat", "cohere": "/chat"}.get(self.name, "")),
            replay=(ReplayRule(when="sealed" if self.name == "bedrock" else "all"),),
        )
        row = row or usual
        return Target(row, MODEL, row.base_url, row.rule(MODEL))

    def rows(self) -> list[Provider]:
        spoken = [row.with_dialect(self.name) for row in list_providers()]
        return [row for row in spoken if row is not None]

    def written(self, events: list[Event], *, stream: bool) -> bytes:
        writer = find_dialect(self.name).writer(model=MODEL, stream=stream)
        return b"".join(writer.write([event]) for event in events)

    def decoded(self, pieces: list[bytes], target: Target) -> Reply:
        reply, failure = reply_of(pieces, target, self.name)
        assert failure is None, failure
        return reply


LANGUAGES = [
    Language("ollama", chat_lines),
    Language("cohere", content_items),
    Language("bedrock", content_blocks, f"/model/{MODEL}/converse"),
]
each = pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)


def said(reply: Reply) -> Reply:
    """The reply without where it came from, which only the reader knows, and what only the reader finds unknown."""
    warnings = tuple(notice for notice in reply.warnings if notice.code != "unknown_content_part")
    parts = tuple(anonymous(part) for part in reply.parts)
    return msgspec.structs.replace(reply, parts=parts, origin=None, warnings=warnings)


def anonymous(part: Part) -> Part:
    changes: dict[str, Any] = {"origin": None} if hasattr(part, "origin") else {}
    if seals := part.seals:
        changes["seals"] = tuple(msgspec.structs.replace(seal, origin=None) for seal in seals)
    return msgspec.structs.replace(part, **changes)


@each
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_law_the_server_half_inverts_the_client_half(language: Language, data: st.DataObject) -> None:
    events = data.draw(language.replies())
    for stream in (True, False):
        reply = language.decoded([language.written(events, stream=stream)], language.target())
        assert said(reply) == said(fold(events))


@each
@given(data=st.data(), cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6))
@settings(max_examples=80, deadline=None)
def test_law_any_chunking_gives_the_same_reply(language: Language, data: st.DataObject, cuts: list[int]) -> None:
    events, row = data.draw(language.replies()), data.draw(st.sampled_from(language.rows()))
    body, target = language.written(events, stream=data.draw(st.booleans())), language.target(row)
    pieces = split_body(body, cuts)
    assert language.decoded(pieces, target) == language.decoded([body], target)


@each
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_law_streamed_and_whole_give_the_same_reply(language: Language, data: st.DataObject) -> None:
    events, row = data.draw(language.replies()), data.draw(st.sampled_from(language.rows()))
    streamed, whole = (language.written(events, stream=stream) for stream in (True, False))
    target = language.target(row)
    assert language.decoded([streamed], target) == language.decoded([whole], target)


@each
@given(data=st.data(), cut=st.integers(0, 100))
@settings(max_examples=80, deadline=None)
def test_law_a_thought_leaks_nowhere(language: Language, data: st.DataObject, cut: int) -> None:
    """Whole or cut anywhere: the canary is in `.thinking` and in nothing that a person reads by accident."""
    events = data.draw(language.replies(thought=st.just(CANARY)))
    target = language.target(data.draw(st.sampled_from(language.rows())))
    body = language.written(events, stream=True)
    for bytes_there in (body, body[: len(body) * cut // 100]):
        seen = list_visible_texts(decode_pieces([bytes_there], target, find_dialect(language.name)))
        assert not any("canary" in text for text in [*seen.values(), *map(repr, events)])
    assert CANARY in language.decoded([body], target).metadata["thinking"]


@each
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_law_a_turn_returns_as_it_came(language: Language, data: st.DataObject) -> None:
    """Every part that the provider needs goes back in its order and byte for byte, and nothing else does."""
    events = data.draw(language.replies())
    target = language.target()
    reply = language.decoded([language.written(events, stream=True)], target)
    results = tuple(ToolResult(call.id, "42", call.name) for call in reply.tool_calls)
    history = (
        user("go"),
        Message("assistant", reply.parts),
        *([Message("tool", results)] if results else []),
        user("?"),
    )
    planned = plan(Prompt(history), target)
    request, _ = find_dialect(language.name).encode(planned.prompt, target)
    served = find_dialect(language.name).read(request.body, language.path)
    returned = [part for one in served.prompt.messages if one.role == "assistant" for part in one.parts]
    expected = [part for part in reply.parts if goes_back(part, language)]
    while language.name == "bedrock" and expected and isinstance(expected[-1], Thought):
        expected.pop()  # a turn that ends with thinking is refused
    assert [comparable(part) for part in returned] == [comparable(part) for part in expected]


def goes_back(part: Part, language: Language) -> bool:
    match part:
        case Text():
            return language.name != "bedrock" or bool(part.text.strip())
        case Thought() if language.name == "bedrock":
            return part.complete and any(seal.value for seal in part.seals)
        case Thought():
            return part.complete
        case _:
            return True


def comparable(part: Part) -> Any:
    """A part as far as a request can carry it."""
    match part:
        case Thought():
            return ("thought", part.text, [(seal.kind, seal.value) for seal in part.seals if seal.value])
        case Text():
            return ("text", part.text)
        case ToolCall():
            return ("call", part.id, part.name, part.arguments)
        case ServerTool() | UnknownPart():
            return ("kept", msgspec.json.decode(part.json))
        case _:
            return part
