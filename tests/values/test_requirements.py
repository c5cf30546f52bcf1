"""One reply for every provider, by requirement: the same fields whoever answers, and events while it still speaks."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

import asides
from asides.history.export import export_messages
from asides.providers.provider import ModelRule, Quirks
from asides.values.events import TextDelta, ThinkingDelta
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage
from asides_stage.stage import OpenStage, Say
from tests import responses
from tests.conversations.both_shells import MODELS, PLAIN, each_model, options
from tests.decoding import chunk, decoded, events_of, sse, stream, target, whole
from tests.dialects.anthropic import messages as claude
from tests.loopback import ReceivedRequest, serving

TAGS = Quirks(tags=("think",))


def thinking_view(reply: Reply) -> tuple[str | None, str | None, str]:
    """What `metadata` says of the thinking: the text, its type, its source."""
    metadata = reply.metadata
    return metadata.get("thinking"), metadata.get("thinking_type"), metadata["thinking_source"]


# --- where thinking came from ---------------------------------------------------------------------------------------

FIELD = {"content": "42", "reasoning_content": "plan"}
TAGGED = {"content": "<think>plan</think>42"}
NONE = {"content": "42"}
SUMMARY = (responses.reasoning("plan"), responses.message("42"))
RAW = (responses.reasoning(raw=("plan",)), responses.message("42"))
RAW_HOST = responses.target(Quirks(raw_reasoning="shown"), ModelRule())


@pytest.mark.requirement("S0-03", "S0-05", "S0-06", "S0-15", "S0-48", "S1-27")
@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda body: decoded(body(FIELD), target(quirks=TAGS)), ("plan", "raw", "field")),
        (lambda body: decoded(body(TAGGED), target(quirks=TAGS)), ("plan", "raw", "tags")),
        (lambda body: decoded(body(NONE), target(quirks=TAGS)), (None, None, "none")),
    ],
    ids=["a field", "tags", "nothing"],
)
@pytest.mark.parametrize("body", [whole, stream], ids=["whole", "streamed"])
def test_S0_07_the_source_of_thinking_is_named_at_a_compatible_server(
    read: Callable[[Any], Reply], expected: tuple[str | None, str | None, str], body: Callable[..., bytes]
) -> None:
    reply = read(body)
    assert (thinking_view(reply), reply.text) == (expected, "42")


@pytest.mark.requirement("S0-48")
@pytest.mark.parametrize(
    ("items", "to", "expected"),
    [
        (SUMMARY, responses.target(), ("plan", "summary", "responses_summary")),
        (RAW, RAW_HOST, ("plan", "raw", "responses_raw")),
        (SUMMARY[1:], responses.target(), (None, None, "none")),
    ],
    ids=["a summary", "raw reasoning", "nothing"],
)
def test_S0_07_the_source_of_thinking_is_named_on_responses(
    items: tuple[Any, ...], to: Any, expected: tuple[str | None, str | None, str]
) -> None:
    reply = responses.both_ways(*items, to=to)
    assert (thinking_view(reply), reply.text) == (expected, "42")


# --- the same reply for everybody -----------------------------------------------------------------------------------


@pytest.mark.requirement("S0-04", "S0-13", "S0-32", "S0-63", "S1-01", "P5", "FT-60")
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@each_model
def test_FT_02_every_dialect_fills_the_same_reply(model: str, streaming: bool, stage: OpenStage) -> None:
    """The stage plays each of them on this machine; nothing reaches for the network."""
    opened = stage(Say(thinking="a plan", text="forty-two", usage=Usage(10, 9, 4, None, 19)), Say(text="43"))
    thinks, does_not = (asides.ask(model, "?", stream=streaming, **options(model, opened)) for _ in range(2))
    assert (thinks.text, thinks.content, thinks.outcome, thinks.stop.reason) == (
        "forty-two",
        "forty-two",
        "answered",
        "stop",
    )
    thought = thinks.thinking
    assert thought is not None
    assert thinking_view(thinks) == ("a plan", thought.kind, thought.source)
    assert (thought.text, thought.kind in ("raw", "summary")) == ("a plan", True)
    assert thought.source in ("field", "block", "responses_summary")
    assert [type(part) for part in thinks.parts if getattr(part, "text", "")] == [Thought, Text]
    assert (thinks.usage.input, thinks.usage.output, thinks.usage.total) == (10, 9, 19)
    assert thinks.model == model.partition(":")[2]
    assert isinstance(thinks.raw, list if streaming else dict)
    always = {"model", "usage", "raw", "thinking_source"}
    assert set(thinks.metadata) == always | {"thinking", "thinking_type"}
    assert (set(does_not.metadata), does_not.text) == (always, "43")
    # Responses and Interactions have state of a thought also where no word of it is shown.
    hidden = does_not.thinking.source if does_not.thinking and does_not.thinking.kind == "hidden" else "none"
    assert does_not.metadata["thinking_source"] == hidden
    assert (thinks.metadata["usage"], thinks.metadata["model"], thinks.metadata["raw"]) == (
        thinks.usage,
        thinks.model,
        thinks.raw,
    )


@pytest.mark.requirement("FT-60")
@each_model
def test_P5_calls_of_tools_and_broken_streams_are_played_in_every_dialect(model: str, stage: OpenStage) -> None:
    call = ToolCall("call_1", "look_up", {"n": 1})
    broken = Say(thinking="a plan " * 40, text="forty-two", cut_after=600, piece=5)
    opened = stage(Say(thinking="a plan", tool_calls=(call,)), broken)
    tools = [{"name": "look_up", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}]
    reply = asides.ask(model, "?", tools=tools, **options(model, opened))
    assert [(one.name, one.arguments) for one in reply.tool_calls] == [("look_up", {"n": 1})]
    assert (reply.outcome, reply.metadata["thinking"]) == ("tool_calls", "a plan")
    with pytest.raises(asides.TransportError), asides.stream(model, "?", **options(model, opened)) as events:
        list(events)


# --- what is optional -----------------------------------------------------------------------------------------------


def test_S2_15_a_message_has_a_field_for_reasoning_only_when_there_is_some() -> None:
    thinks, does_not = (decoded(whole(message)).to_message() for message in (FIELD, NONE))
    assert thinks is not None
    assert does_not is not None
    assert export_messages([thinks], "openai", thinking=True) == [
        {"role": "assistant", "content": "42", "reasoning_content": "plan"}
    ]
    assert export_messages([does_not], "openai", thinking=True) == [{"role": "assistant", "content": "42"}]


@pytest.mark.parametrize("thinking", [None, 0, 4])
def test_S2_16_usage_has_reasoning_tokens_only_when_they_were_counted(thinking: int | None, stage: OpenStage) -> None:
    opened = stage(Say(text="42", usage=Usage(10, 9, thinking, None, 19)))
    reply = asides.ask(PLAIN, "?", **options(PLAIN, opened))
    expected = {"prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19}
    if thinking is not None:
        expected["completion_tokens_details"] = {"reasoning_tokens": thinking}  # type: ignore[assignment]
    assert reply.raw["usage"] == expected
    assert reply.usage.thinking == thinking


def test_S2_17_the_reasoning_is_that_of_the_first_choice_or_none() -> None:
    def body(*messages: dict[str, Any]) -> bytes:
        choices = [
            {"index": place, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
            for place, message in enumerate(messages)
        ]
        return json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": choices}).encode()

    other = {"content": "43", "reasoning_content": "another plan"}
    first = decoded(body(FIELD, other)).thinking
    assert first is not None
    assert first.text == "plan"
    assert not decoded(body(NONE, other)).thinking
    assert not decoded(body()).thinking


def test_S2_25_a_reasoning_model_has_both_and_so_has_its_message() -> None:
    reply = decoded(whole(FIELD))
    message = reply.to_message()
    assert message is not None
    assert reply.thinking
    assert (reply.text, reply.thinking.text) == ("42", "plan")
    thought = Thought("plan", "raw", "field", reply.origin, via="reasoning_content")
    assert message == Message("assistant", (thought, Text("42")))


# --- while it still speaks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "a "}, {"reasoning_content": "plan"}],
        [{"reasoning_content": "a "}, {"content": ""}, {"reasoning_content": "plan"}, {"content": None}],
        [{"reasoning": "a "}, {"reasoning": "plan"}, {"role": "assistant"}],
    ],
    ids=["reasoning alone", "with empty content between", "the other field"],
)
def test_S0_29_reasoning_in_a_stream_is_never_content_though_no_content_comes(deltas: list[dict[str, Any]]) -> None:
    body = stream(*deltas)
    events, failure = events_of([body], target())
    assert failure is None
    assert [event for event in events if isinstance(event, TextDelta)] == []
    reply = decoded(body)
    assert (reply.text, reply.metadata["thinking"]) == ("", "a plan")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_S0_29_reasoning_in_a_stream_is_never_content_wherever_it_comes(place: int) -> None:
    deltas: list[dict[str, Any]] = [{"content": "forty"}, {"content": "-two"}]
    deltas.insert(place, {"reasoning_content": "a plan"})
    events, _ = events_of([stream(*deltas)], target())
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "forty-two"
    assert decoded(stream(*deltas)).text == "forty-two"


THOUGHTS = ["First ", "I look, ", "then I ", "leap."]
CHAT_EVENTS = [*[sse(chunk({"reasoning_content": text}), done=False) for text in THOUGHTS], stream({"content": "42"})]
CLAUDE_EVENTS = [
    sse(claude.start(), claude.begin(0, type="thinking", thinking="", signature=""), done=False)
    + sse(claude.delta(0, type="thinking_delta", thinking=THOUGHTS[0]), done=False),
    *[sse(claude.delta(0, type="thinking_delta", thinking=text), done=False) for text in THOUGHTS[1:]],
    sse(claude.stop(0), *claude.text(1, "42"), *claude.end(), done=False),
]


@pytest.mark.requirement("S0-12", "FT-08")
@pytest.mark.parametrize("awaits", [False, True], ids=["blocking", "awaiting"])
@pytest.mark.parametrize(
    ("model", "pieces"),
    [(PLAIN, CHAT_EVENTS), ("anthropic:claude-sonnet-4-5", CLAUDE_EVENTS)],
    ids=["chat", "anthropic"],
)
def test_S3_05_a_delta_is_handed_out_before_the_next_one_is_sent(model: str, pieces: list[bytes], awaits: bool) -> None:
    """The server sends a delta only when the reader has had the one before; held back, nothing would ever follow."""
    had = threading.Semaphore(1)

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for piece in pieces:
            if not had.acquire(timeout=5):
                return False
            connection.sendall(piece)
        return False

    seen: list[str] = []

    def take(event: object) -> None:
        if isinstance(event, ThinkingDelta):
            seen.append(event.text)
            had.release()

    async def read_awaiting(url: str) -> Reply:
        client = asides.AsyncClient(base_url=url, api_key="k", timeout=2, retries=0)
        async with client, client.stream(model, "?", **MODELS[model]) as events:
            async for event in events:
                take(event)
            return events.reply

    with serving(answer) as server:
        if awaits:
            reply = asyncio.run(read_awaiting(server.url))
        else:
            client = asides.Client(base_url=server.url, api_key="k", timeout=2, retries=0)
            with client, client.stream(model, "?", **MODELS[model]) as events:
                for event in events:
                    take(event)
                reply = events.reply
    assert seen == THOUGHTS
    assert (reply.text, reply.metadata["thinking"]) == ("42", "".join(THOUGHTS))


def test_S2_05_a_reasoning_model_of_openai_streams_like_others(stage: OpenStage) -> None:
    opened = stage(Say(text="forty-two, as everybody knows", piece=6))
    with asides.stream("openai-chat:o1", "?", base_url=opened.url, api_key="k") as events:
        told = [event.text for event in events if isinstance(event, TextDelta)]
    assert opened.requests[0].json["stream"] is True
    assert len(told) > 1
    assert "".join(told) == "forty-two, as everybody knows"
