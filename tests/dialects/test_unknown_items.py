"""Whole bodies with an item of an unknown type beside malformed ones: it survives as it came, and so do the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.values.parts import Text, UnknownPart

NOVEL = {"type": "novel", "id": 7, "deep": {"a": [1, "é"]}}
SAYS = {"type": "text", "text": "42"}


def _anthropic(*content: Any) -> dict[str, Any]:
    return {"type": "message", "id": "m", "model": "c", "content": content, "stop_reason": "end_turn"}


def _cohere(*content: Any) -> dict[str, Any]:
    return {"id": "r", "message": {"role": "assistant", "content": content}, "finish_reason": "COMPLETE"}


def _bedrock(*content: Any) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}


def _gemini(*parts: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}


BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "anthropic": (_anthropic("odd", SAYS, NOVEL), NOVEL),
    "cohere": (_cohere("odd", SAYS, NOVEL), NOVEL),
    "bedrock": (_bedrock("odd", {"text": "42"}, {"novel": NOVEL}), {"novel": NOVEL}),
    "gemini": (_gemini({"text": "42"}, {"novel": NOVEL}), {"novel": NOVEL}),
}


@pytest.mark.parametrize("dialect", BODIES)
def test_an_unknown_item_survives_beside_malformed_ones(dialect: str) -> None:
    body, item = BODIES[dialect]
    reply = asides.decode(dialect, json.dumps(body).encode())
    text, unknown = reply.parts
    assert isinstance(text, Text)
    assert text.text == "42"
    assert isinstance(unknown, UnknownPart)
    assert json.loads(unknown.json) == item
    assert any("unknown" in notice.code for notice in reply.warnings)


@pytest.mark.parametrize("dialect", BODIES)
def test_invalid_characters_in_an_unknown_item_are_replaced(dialect: str) -> None:
    body, _ = BODIES[dialect]
    reply = asides.decode(dialect, json.dumps(body, ensure_ascii=False).encode().replace("é".encode(), b"\xc3"))
    unknown = reply.parts[-1]
    assert isinstance(unknown, UnknownPart)
    assert "\ufffd" in unknown.json
    assert "invalid_text" in [notice.code for notice in reply.warnings]


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock", "cohere", "gemini"])
def test_many_unknown_items_take_linear_time(dialect: str) -> None:
    body, _ = BODIES[dialect]
    document = json.dumps(body)
    item = json.dumps(BODIES[dialect][1])
    reply = asides.decode(dialect, document.replace(item, ",".join([item] * 8_000)).encode())
    assert len(reply.parts) == 8_001
