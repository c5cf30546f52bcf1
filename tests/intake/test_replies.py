"""`asides.read`: the reply in what another library holds, streamed or whole; and the errors for everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

import asides
from asides.dialects import plain_row
from asides.flows.offline import read, read_replies
from asides.intake.detect import detect_dialect
from asides.values.errors import AsidesError, ConfigError
from asides.values.messages import Message, user
from tests.intake.objects.test_langchain_objects import SHAPES, ai
from tests.intake.objects.test_pydantic_ai_objects import SHAPES as RESPONSES
from tests.intake.objects.test_read_objects import BLOCKS, CHAT, CLAUDE, HELD, ITEMS, Model

EXAMPLES = sorted(
    path for path in (Path(__file__).parent.parent / "examples").glob("*/*/*") if path.stem in ("whole", "stream")
)


def hold(value: Any) -> Any:
    """Plain values as a client holds them: an object for each object."""
    if isinstance(value, dict):
        return Model(**{name: hold(inner) for name, inner in value.items()})
    return [hold(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: "/".join(path.parts[-3:]))
def test_an_object_reads_as_its_bytes_do(path: Path) -> None:
    """Law: for every example, streamed and whole, what a client made of the bytes is the reply in the bytes."""
    body = path.read_bytes()
    try:
        dialect = detect_dialect(body)
        row = msgspec.structs.replace(plain_row(dialect), base_url="")
        expected = asides.decode(dialect, body, provider=row)
    except AsidesError:
        pytest.skip("an error, which no client has as an object")
    documents = [msgspec.json.decode(payload) for payload in expected.payloads if payload != b"[DONE]"]
    held = documents if expected.streamed else documents[0]
    if not all(isinstance(document, dict) for document in documents) or "error" in documents[-1]:
        pytest.skip("no object")
    assert read(held) == expected
    assert read(hold(held)) == expected


@pytest.mark.parametrize("name", HELD)
def test_the_thinking_is_apart(name: str) -> None:
    reply = read(HELD[name])
    assert reply.thinking
    assert (reply.text, reply.thinking.text) == ("so", "why")


@pytest.mark.parametrize(
    ("held", "seals"),
    [
        ([Model(**block) for block in BLOCKS], ["s"]),
        ([Model(**item) for item in ITEMS], []),
        ([Model(**CHAT)], []),
        (Model(**BLOCKS[0]), ["s"]),
    ],
)
def test_blocks_and_items_alone_are_a_reply(held: Any, seals: list[str]) -> None:
    reply = read(held)
    assert reply.thinking
    assert (reply.thinking.text, [seal.value for seal in reply.seals]) == ("why", seals)


def test_who_made_it_can_be_named() -> None:
    unknown, named = read(CLAUDE), read(CLAUDE, provider="anthropic", model="claude-opus-4-5")
    assert unknown.seals[0].origin == asides.Origin("anthropic-compatible", "", "")
    assert named.seals[0].origin == asides.Origin("anthropic", "https://api.anthropic.com/v1", "claude-opus-4-5")
    reply = asides.Reply()
    assert read(reply) is reply


class Chunk:
    """As LangChain's chunks: they know how to add themselves."""

    type = "AIMessageChunk"

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Chunk) -> Self:
        return type(self)(self.text + other.text)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {**ai(self.text), "type": "AIMessageChunk", "tool_calls": []}


class BadChunk(Chunk):
    def __add__(self, other: Chunk) -> Self:
        raise ValueError("a secret")


def test_chunks_that_know_how_to_add_themselves_are_added() -> None:
    assert read([Chunk("a"), Chunk("b"), Chunk("c")]).text == "abc"
    with pytest.raises(ConfigError, match=r"the chunks cannot be added: ValueError") as caught:
        read([BadChunk("a"), BadChunk("b")])
    assert "secret" not in str(caught.value)


def test_events_of_a_helper_are_the_stream_inside_them() -> None:
    chunks = [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": each}}]}
        for each in ("a", "b")
    ]
    end = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    events: list[Any] = []
    for chunk in [*chunks, end]:
        events += [
            Model(type="chunk", chunk=Model(**chunk), snapshot={"choices": []}),
            Model(type="content.delta", delta="x"),
        ]
    assert (read(events).text, read(events).stop.reason) == ("ab", "stop")


def test_a_stream_that_breaks_off_raises_as_it_does_live() -> None:
    with pytest.raises(AsidesError) as caught:
        read([{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "half"}}]}])
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


def generate() -> Any:
    yield from ()


HISTORY = [{"role": "user", "content": "?"}, CHAT]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "a NoneType|None cannot be read|not a message"),
        (42, "not a message"),
        ("text", r"use asides.decode\(None, body\)"),
        (b"{}", r"asides.decode"),
        ([], "the list is empty. Pass a response"),
        (generate(), "a generator is a stream that was not read. Collect it, asides.read"),
        ([generate()], "item 0 of the list: a generator is a stream"),
        (user("x"), "a message of asides already"),
        ({"role": "user", "content": "x"}, "not a reply of a model"),
        ({"type": "human", "content": "x"}, "not a reply of a model"),
        ({"a": 1}, r"Pass a response, .* give a history to ask\(…\) or to asides.Conversation"),
        (HISTORY, "a list of messages, not one reply"),
        ([CLAUDE, CLAUDE], "a list of messages, not one reply"),
        ({"type": "content_block_stop", "index": 0}, r"one piece of a stream. Collect all .*list\(stream\)"),
        ({"choices": [{"message": CHAT}] * 2}, "has 2 answers. Pass one of its choices"),
        (object(), "neither a message nor a response"),
    ],
)
def test_anything_else_says_what_it_is_and_what_to_do(value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(value)


def test_a_conversation_counts_the_usage_of_responses() -> None:
    chat = asides.Conversation(messages=["?", SHAPES["anthropic"][1]])
    assert (chat.usage.input, chat.usage.output, chat.usage.thinking) == (10, 5, 3)
    chat.append(user("and?"))
    chat.append(Model(**RESPONSES["gemini"][1]))
    assert (chat.usage.input, len(chat)) == (20, 4)
    chat.extend(Model(role="user", content="one object, which can be iterated"))
    assert chat.messages[-1] == user("one object, which can be iterated")


def test_what_is_no_response_stays_for_whoever_reads_messages() -> None:
    broken, two = object(), {"choices": [{"message": CHAT}] * 2}
    items: list[Any] = ["x", None, broken, two, CHAT, Message("user", "x"), ("system", "x")]
    assert all(after is before for after, before in zip(read_replies(items), items, strict=True))
