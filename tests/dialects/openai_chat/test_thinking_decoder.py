"""Thinking outside the text of a chat message: several fields, snapshots, reasoning_details, content parts."""

from __future__ import annotations

from typing import Any

import pytest

from asides.dialects.openai_chat.decode import read_part_seals
from asides.providers.provider import Quirks
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.wire.lenient import read_thought_text
from tests.decoding import decoded, stream, target, whole


def thoughts(reply: Reply) -> list[tuple[str, str, str | None]]:
    return [(part.text, part.kind, part.via) for part in reply.parts if isinstance(part, Thought)]


def test_two_fields_with_the_same_text_are_one_thought() -> None:
    deltas = [{"reasoning": piece, "reasoning_content": piece} for piece in ("plan ", "it")]
    assert [text for text, _, _ in thoughts(decoded(stream(*deltas, {"content": "42"})))] == ["plan it"]


def test_a_field_that_contradicts_the_first_is_left_out_with_one_warning() -> None:
    deltas = [{"reasoning_content": "plan it"}, {"reasoning": "another plan"}, {"reasoning": " and more"}]
    reply = decoded(stream(*deltas, {"content": "42"}))
    assert [text for text, _, _ in thoughts(reply)] == ["plan it"]
    assert [notice.code for notice in reply.warnings] == ["other_thinking_field"]


def test_a_field_that_repeats_the_thinking_in_tags_is_dropped() -> None:
    deltas = [{"content": "<think>plan it</think>42"}, {"reasoning_content": "plan it"}]
    reply = decoded(stream(*deltas), target(quirks=Quirks(tags=("think",))))
    assert ([text for text, _, _ in thoughts(reply)], reply.text) == (["plan it"], "42")


def test_snapshots_in_a_field_are_one_thought() -> None:
    deltas = [{"reasoning_content": "plan it carefully"[:end]} for end in (5, 9, 13, 17)]
    assert [text for text, _, _ in thoughts(decoded(stream(*deltas, {"content": "42"})))] == ["plan it carefully"]


def entry(**fields: Any) -> dict[str, Any]:
    return {"reasoning_details": [fields]}


def test_fragments_of_reasoning_details_are_merged_and_stored_unchanged() -> None:
    deltas = [
        entry(type="reasoning.text", index=0, text="plan "),
        entry(type="reasoning.text", index=0, text="it", id="r1"),
        entry(type="reasoning.text", index=0, signature="sig"),
        entry(type="reasoning.summary", index=1, summary="short"),
    ]
    reply = decoded(stream(*deltas, {"content": "42"}))
    assert [(text, kind) for text, kind, _ in thoughts(reply)] == [("plan it", "raw"), ("short", "summary")]
    seal = reply.parts[0].seals[0]
    assert (seal.kind, seal.value) == ("reasoning_details", "sig")
    entries = [{"type": "reasoning.text", "index": 0, "text": "plan it", "id": "r1", "signature": "sig"}]
    again = decoded(whole({"content": "42", "reasoning_details": entries}))
    assert again.parts[0].text == "plan it"  # type: ignore[union-attr]


def test_a_plain_field_beside_reasoning_details_has_the_text() -> None:
    both = {"reasoning": "plan it", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "plan it"}]}
    assert thoughts(decoded(stream(both, {"content": "42"}))) == [("plan it", "raw", "reasoning")]


@pytest.mark.parametrize(
    ("part", "text", "seals"),
    [
        ({"type": "thinking", "thinking": "plan", "signature": "s"}, "plan", [("signature", "s")]),
        ({"type": "thinking", "thinking": [{"type": "text", "text": "pl"}, {"text": "an"}]}, "plan", []),
        ({"type": "reasoning", "summary": [{"text": "plan", "signature": "s"}]}, "plan", [("signature", "s")]),
        ({"type": "redacted_thinking", "data": "d"}, "", [("redacted", "d")]),
        ({"type": "thinking", "thinking": 7}, "", []),
    ],
)
def test_a_thinking_part_has_its_text_and_seals_in_any_form(
    part: dict[str, Any], text: str, seals: list[tuple[str, str]]
) -> None:
    assert (read_thought_text(part), read_part_seals(part)) == (text, seals)
