"""scripts/drift.py on types of our own: what it builds, what it finds, and what a judgement covers. No network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import drift

ROOT: dict[str, Any] = {
    "type": "object",
    "title": "Message",
    "properties": {
        "type": {"const": "message", "default": "message"},
        "id": {"type": "string"},
        "content": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Text"}, {"$ref": "#/$defs/Hologram"}]}},
        "stop_reason": {"enum": ["end_turn", "made_up"]},
        "weather": {"anyOf": [{"$ref": "#/$defs/Weather"}, {"type": "null"}]},
        "usage": {"$ref": "#/$defs/Usage"},
    },
    "required": ["id", "content", "usage"],
    "$defs": {
        "Text": {
            "type": "object",
            "properties": {"type": {"const": "text"}, "text": {"type": "string"}, "mood": {"type": "string"}},
            "required": ["type", "text"],
        },
        "Hologram": {
            "type": "object",
            "properties": {"type": {"const": "hologram"}, "size": {"type": "integer"}},
            "required": ["type", "size"],
        },
        "Weather": {"type": "object", "properties": {"rain": {"type": "boolean"}}},
        "Usage": {
            "type": "object",
            "properties": {"input_tokens": {"type": "integer"}, "output_tokens": {"type": "integer"}},
            "required": ["input_tokens", "output_tokens"],
        },
    },
}


def find() -> dict[str, str]:
    return {finding.key: finding.what for finding in drift.find_all({"anthropic message": ROOT})}


def test_the_smallest_body_has_what_is_required_and_the_name_of_its_type() -> None:
    types = drift.Types(ROOT)
    assert types.build(ROOT) == {
        "type": "message",
        "id": "text",
        "content": [],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def test_what_is_not_read_and_what_is_not_known_is_found() -> None:
    assert find() == {
        "anthropic message Message.content=Hologram": "not known (unknown_part)",
        "anthropic message Message.stop_reason=made_up": "not known (unknown_stop)",
        "anthropic message Message.weather": "not read",
        "anthropic message Text.mood": "not read",
    }


def test_a_judgement_covers_its_findings_and_is_reported_when_nothing_needs_it() -> None:
    text = """
    [[judged]]
    keys = ["anthropic * Message.weather*", "anthropic * Message.colour"]
    reason = "the weather is none of ours"
    date = "2026-11-18"
    """
    findings = [drift.Finding(key, what) for key, what in find().items()]
    unjudged, judged, unneeded = drift.sort_out(findings, drift.read_judgements(text))
    assert len(unjudged) == len(findings) - 1
    assert [finding.key.partition("=")[0] for finding, _ in judged] == ["anthropic message Message.weather"]
    assert unneeded == ["anthropic * Message.colour"]


def test_every_judgement_has_a_reason_and_a_date() -> None:
    judgements = drift.read_judgements(drift.JUDGED.read_text())
    assert judgements
    assert all(each.reason and each.keys and each.date >= "2026-11-18" for each in judgements)


@pytest.mark.parametrize("root", ["anthropic event", "openai_responses event", "cohere event", "bedrock event"])
def test_the_events_around_one_make_a_whole_reply(root: str) -> None:
    said, codes = drift.read_reply(root, {"type": "ping"} if root != "bedrock event" else {"messageStart": {}})
    assert said[1] == "None"
    assert codes == [] or root == "cohere event"
