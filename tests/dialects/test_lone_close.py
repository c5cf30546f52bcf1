"""A closing tag alone: the chat template opened the tag, and the server has no parser for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides import dialects
from asides.providers.find import find_target
from asides.providers.provider import ModelRule, Provider, Target
from asides.providers.quirks import Quirks
from asides.providers.settle import settle
from asides.values.events import TextDelta, TextReclassified, ThinkingDelta, Warned
from asides.values.fold import Fold
from asides.values.reply import Reply
from asides_stage.conformance.response_bodies import decode_pieces
from tests import decoding
from tests.dialects.test_tagged_text import WRITERS
from tests.wire.inline_tags.test_every_grammar import FORMS, NAMES, SECRET

MODELS = ["some-model", "Qwen/Qwen3-8B", "moonshotai/Kimi-K2-Thinking", "zai-org/GLM-4.5", "zai-org/GLM-4.6"]


def streamed(text: str, to: Target, size: int = 4) -> Reply:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return decoding.decoded(decoding.stream(*({"content": piece} for piece in pieces)), to)


def whole(text: str, to: Target) -> Reply:
    return decoding.decoded(decoding.whole({"content": text}), to)


def show(reply: Reply) -> Any:
    thinking = reply.thinking.text if reply.thinking else ""
    kinds = [type(part).__name__ for part in reply.parts]
    return reply.text, thinking, kinds, [notice.code for notice in reply.warnings]


@pytest.mark.parametrize("provider", ["vllm", "sglang", "openai-compatible"])
@pytest.mark.parametrize("model", MODELS)
def test_what_came_before_it_is_thinking_streamed_and_whole(provider: str, model: str) -> None:
    to = find_target(f"{provider}:{model}", base_url="http://127.0.0.1:1/v1")
    expected = ("answer", "hidden", ["Thought", "Text"])
    for reply in (streamed("hidden</think>\n\nanswer", to), whole("hidden</think>\n\nanswer", to)):
        assert show(reply)[:3] == expected
        assert [notice.code for notice in reply.warnings] in (["text_reclassified"], [])


@pytest.mark.parametrize("dialect", sorted(WRITERS))
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hidden</think>answer", ("answer", "hidden", ["Thought", "Text"], ["text_reclassified"])),
        ("hidden</think>", ("", "hidden", ["Thought"], ["text_reclassified"])),
        ("</think>answer", ("answer", "", ["Text"], [])),
        ("\n\n</think>\n\nanswer", ("answer", "", ["Text"], [])),
        ("a</think>b<think>c</think>d", ("bd", "a\n\nc", ["Thought", "Text"] * 2, ["text_reclassified"])),
        ("a </thin", ("a </thin", "", ["Text"], [])),
        ("Say `</think>` twice.", ("Say `</think>` twice.", "", ["Text"], [])),
        ("```\n</think>\n```\nx", ("```\n</think>\n```\nx", "", ["Text"], [])),
        ("R: ```\nx</think>A", ("A", "R: ```\nx", ["Thought", "Text"], ["text_reclassified"])),
        ("```\nR</think>A", ("A", "```\nR", ["Thought", "Text"], ["text_reclassified"])),
        ("sure. <think>x</think>A", ("sure. <think>x</think>A", "", ["Text"], ["tag_in_answer"])),
        ("sure. `<think>` A", ("sure. `<think>` A", "", ["Text"], [])),
        ("<think>x</think>A", ("A", "x", ["Thought", "Text"], [])),
    ],
)
def test_every_dialect_moves_the_same_text(dialect: str, text: str, expected: Any) -> None:
    row = Provider(name="example", base_url="http://127.0.0.1:9", dialect=dialect, quirks=Quirks(tags=("think",)))
    to = Target(row, "made-up", row.base_url, ModelRule())
    for size in (1, 5, 1000):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert show(decoding.decoded(WRITERS[dialect](pieces), to, dialect)) == expected


@pytest.mark.parametrize("name", [name for name in NAMES if FORMS[name].model])
def test_no_grammar_leaks_at_a_server_without_a_parser(name: str) -> None:
    """The canary: whole, streamed and begun inside, at a server that has no parser."""
    form = FORMS[name]
    to = find_target(f"vllm:{form.model}")
    for begin in (form.opening, ""):
        source = f"{begin}{SECRET}{form.closing}A b.{form.end}"
        once, again = whole(source, to), streamed(source, to)
        assert once.parts == again.parts
        assert (once.text, once.thinking.text.strip() if once.thinking else "") == ("A b.", SECRET)


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("sure. <think>x</think>A", "anywhere", ("sure. A", "x")),
        ("sure. <think>x</think>A", "leading", ("sure. <think>x</think>A", "")),
    ],
)
def test_the_position_decides_about_a_tag_in_the_middle(text: str, position: str, expected: tuple[str, str]) -> None:
    to = settle(find_target("vllm:some-model"), overrides={"tag_position": position})
    for reply in (streamed(text, to), whole(text, to)):
        assert show(reply)[:2] == expected


def test_a_caller_who_says_that_the_text_begins_outside_keeps_the_tag() -> None:
    to = settle(find_target("vllm:some-model"), overrides={"starts_inside": False})
    for reply in (streamed("a</think>b", to), whole("a</think>b", to)):
        assert show(reply) == ("a</think>b", "", ["Text"], [])


def test_a_server_that_sends_thinking_in_a_field_has_a_parser() -> None:
    body = decoding.stream({"reasoning_content": "plan"}, {"content": "a"}, {"content": "</think>b"})
    assert decoding.decoded(body, find_target("vllm:some-model")).text == "a</think>b"


def test_a_host_that_never_inlines_sends_its_tags_as_text() -> None:
    reply = streamed("a</think>b", find_target("openai-chat:gpt-4.1"))
    assert show(reply) == ("a</think>b", "", ["Text"], [])


def test_text_comes_at_once_and_moves_later() -> None:
    to = find_target("vllm:some-model")
    decoder = dialects.find_dialect("openai_chat").decoder(to)
    fold, seen = Fold(), list[Any]()
    for piece in ("hid", "den", "</think>", "answer"):
        document = json.dumps({"id": "r", "model": "m", "choices": [{"index": 0, "delta": {"content": piece}}]})
        events = decoder.feed(f"data: {document}\n\n".encode())
        fold.feed(events)
        seen += events
        if piece == "den":
            assert fold.reply().text == "hidden"
    kinds = [type(event) for event in seen if isinstance(event, (TextDelta, ThinkingDelta, TextReclassified, Warned))]
    assert kinds == [TextDelta, TextDelta, TextReclassified, Warned, TextDelta]
    moved = next(event for event in seen if isinstance(event, TextReclassified))
    assert (moved.text, moved.kind, moved.source) == ("hidden", "raw", "tags")
    reply = fold.reply()
    assert (reply.text, reply.thinking.text if reply.thinking else None) == ("answer", "hidden")


def test_text_that_came_in_the_same_batch_is_thinking_from_the_start() -> None:
    to = find_target("vllm:some-model")
    body = decoding.stream({"content": "hidden"}, {"content": "</think>answer"})
    events = decode_pieces([body], to, dialects.find_dialect("openai_chat")).events
    assert not any(isinstance(event, TextReclassified) for event in events)
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["hidden"]
