"""The laws for generateContent: chunking, stream is whole, the server half inverts, nothing leaks, history returns."""

from __future__ import annotations

import json

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
from asides.values.fold import fold, simulate
from asides.values.messages import Message, Prompt, user
from asides.values.parts import File, Image, ServerTool, ToolResult, UnknownPart
from asides.values.thinking import Seal
from asides.values.usage import Usage
from asides_stage.conformance.response_bodies import decode_pieces, list_visible_texts, remove_origins, split_body
from tests.decoding import reply_of
from tests.laws.replies import ARGUMENTS, LETTERS, SIZES, WORDS, deltas

ROWS = [row for row in list_providers() if row.dialect == "gemini"]
CANARY = "canary-7f3a-thought"
MODEL = "gemini-3-pro-preview"
GOOGLE = next(row for row in ROWS if row.name == "google")
SIGNATURES = st.text("ABCabc012+/=", min_size=4, max_size=20)
STOPS: dict[StopKind, str] = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "unknown": "OTHER"}


def target_of(row: Provider, model: str = MODEL) -> Target:
    return Target(row, model, row.base_url or "http://127.0.0.1:9/v1beta", row.rule(model))


@st.composite
def contents(draw: st.DrawFn, *, thought: st.SearchStrategy[str] | None = None) -> list[Event]:
    """Events that content can carry: parts of every kind in any order, usage, an end.

    A signed text is one delta, and two unsigned texts of a kind do not touch: on the wire they would be one.
    """
    sizes = draw(SIZES)
    events: list[Event] = [ReplyStarted(MODEL, "r1")]
    thoughts = thought if thought is not None else WORDS
    kinds = draw(
        st.lists(
            st.sampled_from(
                [
                    "thought",
                    "signed thought",
                    "hidden",
                    "text",
                    "signed text",
                    "empty",
                    "call",
                    "signed call",
                    "picture",
                    "file",
                    "code",
                    "new",
                ]
            ),
            max_size=7,
        )
    )
    before = ""
    called = False
    for number, kind in enumerate(kinds):
        seal: Event = ThoughtSealed(Seal("thought_signature", draw(SIGNATURES)), number, "hidden", "block")
        match kind:
            case "thought" if before != kind:
                events += [ThinkingDelta(piece, number, "summary", "block") for piece in deltas(draw(thoughts), sizes)]
            case "text" if before != kind:
                events += [TextDelta(piece, number) for piece in deltas(draw(LETTERS), sizes)]
            case "signed thought":
                events += [ThinkingDelta(draw(thoughts), number, "summary", "block"), seal]
            case "signed text":
                events += [TextDelta(draw(LETTERS), number), seal]
            case "hidden":
                events.append(seal)
            case "empty":
                events += [TextDelta("", number), seal]
            case "call" | "signed call":
                called = True
                events.append(ToolCallDelta(number, f"call_{number}", "look_up"))
                raw = msgspec.json.encode(draw(ARGUMENTS)).decode()
                events += [ToolCallDelta(number, arguments=piece) for piece in deltas(raw, sizes)]
                events += [seal] if kind == "signed call" else []
            case "picture":
                events += [PartArrived(Image(data=b"hi", media_type="image/webp"), number), seal]
            case "file":
                events.append(PartArrived(File("audio.wav", b"hi", media_type="audio/wav"), number))
            case "code":
                tool = ServerTool("executableCode", json='{"executableCode":{"code":"1"}}')
                events.append(PartArrived(tool, number))
            case "new":
                events.append(PartArrived(UnknownPart('{"hologram":{}}'), number))
            case _:
                continue
        before = kind
    answer, thinking = draw(st.integers(0, 99)), draw(st.none() | st.integers(0, 99))
    if draw(st.booleans()):
        output = answer + (thinking or 0)
        events.append(
            UsageReported(Usage(7, output, thinking, None, 7 + output, "derived" if thinking else "reported"))
        )
    reason: StopKind = draw(st.sampled_from(sorted(STOPS)))
    events.append(ReplyEnded(StopReason("tool_calls" if reason == "stop" and called else reason, STOPS[reason])))
    return events


def written(events: list[Event], *, stream: bool) -> bytes:
    writer = find_dialect("gemini").writer(model=MODEL, stream=stream, include_usage=True)
    return b"".join(writer.write([event]) for event in events)


@given(events=contents())
@settings(max_examples=150, deadline=None)
def test_law_the_server_half_inverts_the_client_half(events: list[Event]) -> None:
    for stream in (True, False):
        reply, failure = reply_of([written(events, stream=stream)], target_of(GOOGLE), "gemini")
        assert failure is None
        assert remove_origins(reply) == remove_origins(fold(events))


@given(events=contents(), cuts=st.lists(st.integers(1, 40), min_size=1, max_size=6), row=st.sampled_from(ROWS))
@settings(max_examples=100, deadline=None)
def test_law_any_chunking_and_a_list_give_the_same_reply(events: list[Event], cuts: list[int], row: Provider) -> None:
    body = written(events, stream=True)
    reply, failure = reply_of([body], target_of(row), "gemini")
    pieces = split_body(body, cuts)
    assert reply_of(pieces, target_of(row), "gemini") == (reply, failure)
    listed = b"[%b]" % b",\n".join(chunk.removeprefix(b"data: ") for chunk in body.split(b"\r\n\r\n") if chunk)
    assert reply_of([listed], target_of(row), "gemini") == (reply, failure)
    assert failure is None


@given(events=contents(), row=st.sampled_from(ROWS))
@settings(max_examples=100, deadline=None)
def test_law_streamed_and_whole_give_the_same_reply(events: list[Event], row: Provider) -> None:
    streamed, whole = (reply_of([written(events, stream=each)], target_of(row), "gemini")[0] for each in (True, False))
    assert streamed == whole
    assert fold(simulate(whole, 3)) == whole


@given(events=contents(thought=st.just(CANARY)), cut=st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_law_a_thought_leaks_nowhere(events: list[Event], cut: int) -> None:
    body = written(events, stream=True)
    for there in (body, body[: len(body) * cut // 100]):
        seen = list_visible_texts(decode_pieces([there], target_of(GOOGLE), find_dialect("gemini")))
        assert not any("canary" in text for text in [*seen.values(), *map(repr, events)])


@given(events=contents())
@settings(max_examples=100, deadline=None)
def test_law_the_history_returns(events: list[Event]) -> None:
    """What goes back is what came, part by part, signatures byte for byte; only thoughts without one stay away."""
    target = target_of(GOOGLE)
    body = written(events, stream=False)
    reply, _ = reply_of([body], target, "gemini")
    turn = reply.to_message()
    assert turn is not None
    results: list[Message] = [Message("tool", (ToolResult(call.id, "1", call.name),)) for call in turn.tool_calls]
    planned = plan(Prompt((user("?"), turn, *results, user("go on"))), target)
    request, _ = find_dialect("gemini").encode(planned.prompt, target)
    came = _joined(json.loads(body)["candidates"][0]["content"]["parts"])
    expected = [part for part in came if not part.get("thought") or "thoughtSignature" in part]
    back = [content for content in json.loads(request.body)["contents"] if content["role"] == "model"]
    assert [_without_stand_in(part) for content in back for part in content["parts"]] == expected


def _without_stand_in(part: dict[str, object]) -> dict[str, object]:
    """A call that came without a signature goes back with the documented placeholder."""
    if part.get("thoughtSignature") != "skip_thought_signature_validator":
        return part
    return {name: value for name, value in part.items() if name != "thoughtSignature"}


def _joined(parts: list[dict[str, object]]) -> list[dict[str, object]]:
    """Texts that a writer cut, together again."""
    joined: list[dict[str, object]] = []
    for part in parts:
        last = joined[-1] if joined else {}
        if set(part) == set(last) and set(part) in ({"text"}, {"text", "thought"}):
            joined[-1] = {**part, "text": f"{last['text']}{part['text']}"}
        else:
            joined.append(part)
    return joined
