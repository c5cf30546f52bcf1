"""Thinking in tags of an answer: every dialect uses the same class and gives the same events."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any, Literal

import pytest

from asides.dialects.tagged_text import TaggedText
from asides.providers.provider import ModelRule, Provider, Quirks, Target
from asides.values.events import CommentaryDelta, Event, TextDelta, ThinkingDelta
from asides.wire.inline_tags import Splitter, StartsInside
from tests import decoding
from tests.decoding import sse


def target(
    starts_inside: StartsInside = False, *, fragmented: bool = False, tags: tuple[str, ...] = ("think",)
) -> Target:
    return decoding.target(
        quirks=Quirks(tags=tags, fragmented_tags=fragmented), rule=ModelRule(starts_inside=starts_inside)
    )


_NAMES: dict[type, str] = {ThinkingDelta: "thinking", CommentaryDelta: "commentary", TextDelta: "text"}


def shown(events: list[Event]) -> list[tuple[str, int, str]]:
    """The texts of the events: what they are, their block, their text."""
    return [
        (_NAMES[type(event)], event.block, event.text)
        for event in events
        if isinstance(event, (ThinkingDelta, CommentaryDelta, TextDelta))
    ]


def split(text: TaggedText, *pieces: str, cut: bool = False) -> list[tuple[str, int, str]]:
    events: list[Event] = []
    for piece in pieces:
        text.feed(piece, events)
    text.finish(events, cut=cut)
    return shown(events)


def test_every_segment_is_a_separate_block() -> None:
    text = TaggedText(10, target())
    assert split(text, "<think>plan</th", "ink>42") == [("thinking", 10, "plan"), ("text", 11, "42")]
    assert (text.first_text_block, text.last_text_block, text.thinking) == (11, 11, ["plan"])
    assert not text.truncated


HARMONY = (
    "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>commentary<|message|>I look it up.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>42<|return|>"
)


@pytest.mark.parametrize("size", [1, 3, 7, 500])
def test_commentary_in_the_text_is_a_channel_of_its_own(size: int) -> None:
    pieces = [HARMONY[start : start + size] for start in range(0, len(HARMONY), size)]
    blocks: dict[int, tuple[str, str]] = {}
    for kind, block, text in split(TaggedText(10, target(tags=("harmony",))), *pieces):
        blocks[block] = kind, blocks.get(block, ("", ""))[1] + text
    assert blocks == {10: ("thinking", "R"), 11: ("commentary", "I look it up."), 12: ("text", "42")}


def test_a_whole_message_may_be_commentary() -> None:
    for tags in ((), ("think",)):
        text = TaggedText(10, target(tags=tags))
        text.says = CommentaryDelta
        assert split(text, "I look", " it up.") == [("commentary", 10, "I look"), ("commentary", 10, " it up.")]


def test_without_tags_the_text_is_one_block() -> None:
    assert split(TaggedText(10, target(tags=())), "<think>", "42") == [("text", 10, "<think>"), ("text", 10, "42")]


def test_another_part_is_another_block_and_so_is_a_part_between_texts() -> None:
    text, events = TaggedText(10, target()), list[Event]()
    text.feed("one", events, 0)
    assert text.open_block("refusal", events) == text.open_block("refusal", events) == 11
    text.feed("two", events, 1)
    assert shown(events) == [("text", 10, "one"), ("text", 12, "two")]


def test_a_thought_that_a_field_has_shown_is_not_shown_twice() -> None:
    assert split(TaggedText(10, target(), field_thinking=["plan it"]), "<think>plan it</think>42") == [
        ("text", 11, "42")
    ]
    other = split(TaggedText(10, target(), field_thinking=["plan it"]), "<think>something else</think>42")
    assert other == [("thinking", 10, "something else"), ("text", 11, "42")]


def test_a_held_thought_comes_before_the_part_that_follows_it() -> None:
    text, events = TaggedText(10, target(), field_thinking=["another"]), list[Event]()
    text.feed("<think>plan</think>", events)
    assert shown(events) == []
    assert text.open_block("thinking", events) == 11
    assert shown(events) == [("thinking", 10, "plan")]


def test_a_text_begins_inside_a_tag_only_where_it_is_first_and_no_field_has_the_thinking() -> None:
    assert split(TaggedText(10, target(True)), "plan</think>42") == [("thinking", 10, "plan"), ("text", 11, "42")]
    assert split(TaggedText(10, target(True), first=False), "42") == [("text", 10, "42")]
    assert split(TaggedText(10, target(True), field_thinking=["plan"]), "42") == [("text", 10, "42")]


def test_tags_that_close_with_every_chunk_are_one_thought() -> None:
    pieces = ("<think>a</think>", "<think>b</think>", "42")
    assert [block for _, block, _ in split(TaggedText(10, target(fragmented=True)), *pieces)] == [10, 10, 11]
    assert [block for _, block, _ in split(TaggedText(10, target()), *pieces)] == [10, 11, 12]


def test_undecided_text_of_a_reply_that_broke_off_is_thinking_in_the_first_block() -> None:
    text = TaggedText(10, target("auto"))
    assert split(text, "maybe a plan", cut=True) == [("thinking", 10, "maybe a plan")]
    assert text.truncated
    assert split(TaggedText(10, target("auto")), "an answer") == [("text", 10, "an answer")]


TEXTS = (
    "",
    " ",
    "\ufeff",
    "a",
    " a",
    "\n\na < b",
    "a<think>b</think>c",
    "<think>b",
    "</think>`",
    "<think>b</think>c",
    "<",
    "b</think>c",
    "[THINK]",
    "◁",
)


class AlwaysSplit(TaggedText):
    """Splits also the texts that need no splitting."""

    def feed(self, text: str, events: list[Event], part: int = 0) -> None:
        """Add text."""
        if self._tags and self._splitter is None:
            starts_inside = False if self._field_thinking else self._starts_inside
            late = self._late and not self._field_thinking
            self._sizes = self._sizes if late else None
            self._splitter = Splitter(self._tags, self._facts.tag_position, starts_inside, late=late)
        if self._splitter is None:
            super().feed(text, events, part)
        else:
            self._emit(self._splitter.feed(text), events, part)
            self._report_left_tag(self._splitter, events)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("position", ["auto", "leading", "anywhere"])
@pytest.mark.parametrize("starts_inside", [False, True, "auto"])
def test_texts_that_need_no_splitting_give_what_a_splitter_gives(
    position: Literal["auto", "leading", "anywhere"], starts_inside: StartsInside, step: int
) -> None:
    """Every third way to feed three texts, another third for the next three; all with the marker `thorough`."""
    row = Provider(name="example", base_url="http://127.0.0.1:9", quirks=Quirks(tag_position=position))
    to = decoding.target(row, rule=ModelRule(starts_inside=starts_inside))
    ways = list(product((0, 1), ([], ["x"])))
    for number, texts in enumerate(product(TEXTS, TEXTS, ("", "d", "</think>d", "<think>d</think>"))):
        for part, seen in ways[number % step :: step]:
            results: list[object] = []
            for kind in (TaggedText, AlwaysSplit):
                text, events = kind(10, to, field_thinking=list(seen)), list[Event]()
                for place, piece in enumerate(texts):
                    text.feed(piece, events, part * place)
                text.finish(events)
                results.append((shown(events), text.truncated, text.first_text_block, text.last_text_block))
            assert results[0] == results[1], (texts, part, seen)


# --- all dialects -------------------------------------------------------------------------------------------------


def chat(pieces: list[str]) -> bytes:
    return decoding.stream(*({"content": piece} for piece in pieces))


def anthropic(pieces: list[str]) -> bytes:
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in pieces
    ]
    begin = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    start: dict[str, Any] = {"type": "message_start", "message": {"id": "m"}}
    return sse(start, begin, *deltas, end, {"type": "message_stop"}, done=False)


def responses(pieces: list[str]) -> bytes:
    deltas = [{"type": "response.output_text.delta", "output_index": 0, "delta": piece} for piece in pieces]
    end: dict[str, Any] = {"type": "response.completed", "response": {"id": "r", "status": "completed"}}
    return sse(*deltas, end, done=False)


def lines(*documents: object) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def bedrock(pieces: list[str]) -> bytes:
    deltas = [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": piece}}} for piece in pieces]
    return lines(*deltas, {"messageStop": {"stopReason": "end_turn"}}, {"metadata": {}})


def cohere(pieces: list[str]) -> bytes:
    deltas = [
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}} for piece in pieces
    ]
    return sse(*deltas, {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}, done=False)


def ollama(pieces: list[str]) -> bytes:
    deltas = [{"message": {"content": piece}, "done": False} for piece in pieces]
    return lines(*deltas, {"message": {"content": ""}, "done": True, "done_reason": "stop"})


WRITERS: dict[str, Callable[[list[str]], bytes]] = {
    "openai_chat": chat,
    "anthropic": anthropic,
    "openai_responses": responses,
    "bedrock": bedrock,
    "cohere": cohere,
    "ollama": ollama,
}


@pytest.mark.parametrize("dialect", WRITERS)
@pytest.mark.parametrize(
    ("starts_inside", "pieces", "thinking", "answer"),
    [
        (False, ["<thi", "nk>plan</think>", "4", "2"], "plan", "42"),
        (False, ["42 ", "<think>is no tag here"], None, "42 <think>is no tag here"),
        (True, ["plan", "</think>42"], "plan", "42"),
        ("auto", ["plan</thi", "nk>42"], "plan", "42"),
        ("auto", ["The answer ", "is 42."], None, "The answer is 42."),
        (False, ["<think>never closed"], "never closed", ""),
    ],
)
def test_every_dialect_splits_the_same_text_into_the_same_reply(
    dialect: str, starts_inside: StartsInside, pieces: list[str], thinking: str | None, answer: str
) -> None:
    row = Provider(name="example", base_url="http://127.0.0.1:9", dialect=dialect, quirks=Quirks(tags=("think",)))
    to = Target(row, "made-up", row.base_url, ModelRule(starts_inside=starts_inside))
    reply = decoding.decoded(WRITERS[dialect](pieces), to, dialect)
    assert (reply.thinking.text if reply.thinking else None, reply.text) == (thinking, answer)


def test_a_whole_list_of_texts_is_split_like_a_stream_of_them() -> None:
    texts = [{"type": "text", "text": "Hello "}, {"type": "text", "text": "<think>this stays</think>"}]
    whole = decoding.decoded(decoding.whole({"content": texts}), target())
    streamed = decoding.decoded(decoding.stream(*({"content": [text]} for text in texts)), target())
    assert whole.text == streamed.text == "Hello <think>this stays</think>"
