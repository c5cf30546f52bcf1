"""Every open recording of a real server decodes to its golden values: whole, byte by byte, in its real network chunks.

The recordings are not part of this project. They are read where a folder of them lies beside the checkout (or where
ASIDES_RECORDINGS names one); without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.providers.find import find_provider
from asides.providers.provider import Provider, Target
from asides.providers.table import plain_row
from asides.values import errors
from asides.values.errors import AsidesError, ProviderError, to_line
from asides.values.reply import Reply
from tests.conformance.disagreements import DISAGREEMENTS, disagrees
from tests.decoding import reply_of

FOLDER = Path(os.environ.get("ASIDES_RECORDINGS") or Path(__file__).parents[3] / "shared" / "recordings")
# The dialects of the recordings, and what they are called here.
DIALECTS = {
    "bedrock_converse": "bedrock",
    "cohere": "cohere",
    "ollama": "ollama",
    "gemini": "gemini",
    "anthropic_messages": "anthropic",
    "openai_chat": "openai_chat",
    "mistral": "openai_chat",
    "openai_responses": "openai_responses",
}

pytestmark = pytest.mark.recordings


@cache
def manifest() -> list[dict[str, Any]]:
    if not (FOLDER / "manifest.jsonl").exists():
        return []
    lines = (FOLDER / "manifest.jsonl").read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["dialect"] in DIALECTS]


@cache
def golden() -> dict[str, dict[str, Any]]:
    lines = (FOLDER / "expected.jsonl").read_text().splitlines()
    return {entry["id"]: entry for entry in map(json.loads, lines)}


def row_of(entry: dict[str, Any]) -> Provider:
    dialect = DIALECTS[entry["dialect"]]
    try:
        row = find_provider(entry["provider"])
    except errors.UnknownProvider:
        return plain_row(dialect)
    return row.with_dialect(dialect) or plain_row(dialect)


def target_of(entry: dict[str, Any]) -> Target:
    row, model = row_of(entry), entry["model"] or ""
    return Target(row, model, row.base_url, row.rule(model))


def squeezed(text: str) -> str:
    """Text without the white space that joining and trimming may change."""
    return "".join(text.split())


def input_as_sent(entry: dict[str, Any], reply: Reply) -> int | None:
    """Our input includes what the cache read and wrote; Messages and Converse leave both out of it."""
    if reply.usage.input is None:
        return reply.usage.input
    documents = reply.raw if reply.streamed else [reply.raw]
    if entry["dialect"] == "bedrock_converse":
        holders = [document.get("metadata") or document for document in documents]
        return next((holder["usage"]["inputTokens"] for holder in holders if "usage" in holder), None)
    if entry["dialect"] != "anthropic_messages":
        return reply.usage.input
    told = [
        holder["usage"]
        for document in documents
        for holder in (document, document.get("message"))
        if isinstance(holder, dict) and isinstance(holder.get("usage"), dict)
    ]
    written = [count for usage in told if (count := usage.get("cache_creation_input_tokens")) is not None]
    return reply.usage.input - (reply.usage.cached or 0) - (written[-1] if written else 0)


def differences(entry: dict[str, Any], reply: Reply, failure: AsidesError | None) -> dict[str, tuple[object, object]]:
    """What is not as the golden values have it: field → (ours, theirs)."""
    expected = golden()[entry["id"]]
    found: dict[str, tuple[object, object]] = {}

    def compare(field: str, ours: object, theirs: object) -> None:
        if ours != theirs and not disagrees(entry["id"], field):
            found[field] = (ours, theirs)

    compare("error", failure is not None, bool(expected["error"]))
    if expected["answer"] is not None:
        tagged = expected["inline_tags"]
        compare(
            "answer",
            reply.text.strip() if tagged else reply.text,
            expected["answer"].strip() if tagged else expected["answer"],
        )
    if any(phase in body for body in reply.payloads for phase in (b'"phase":"commentary"', b'"phase": "commentary"')):
        compare("commentary", reply.commentary, expected["answer"])
    compare("thinking", squeezed(reply.thinking.text if reply.thinking else ""), squeezed(expected["thinking"] or ""))
    # What does not parse, or is no JSON at all, has no arguments in the golden values.
    calls = [(call.name, call.arguments if call.raw_arguments is None else None) for call in reply.tool_calls]
    compare("tool_calls", calls, [(call["name"], call["arguments"]) for call in expected["tool_calls"]])
    usage, theirs = reply.usage, expected["usage"]
    compare("input", input_as_sent(entry, reply), theirs["input_tokens"])
    compare("reasoning", usage.thinking, theirs["reasoning_tokens"])
    compare("cached", usage.cached, theirs["cached_tokens"])
    # Golden usage is as sent; ours includes thinking on every host, and says so.
    included = theirs["output_tokens"]
    if included is not None and usage.origin == "derived" and usage.output != included:
        included += theirs["reasoning_tokens"] or 0
    compare("output", usage.output, included)
    compare("finish_reason", reply.stop.raw, expected["finish_reason"])
    compare("signatures", [seal.value for seal in reply.seals], expected["signatures"])
    compare("refusal", reply.refusal or "", expected["refusal"] or "")
    return found


def readings(entry: dict[str, Any], body: bytes) -> dict[str, list[bytes]]:
    ways = {"whole": [body], "byte by byte": [body[place : place + 1] for place in range(len(body))]}
    if entry["chunks_file"]:
        start, pieces = 0, []
        for size in json.loads((FOLDER / entry["chunks_file"]).read_text()):
            pieces.append(body[start : start + size])
            start += size
        ways["network chunks"] = [*pieces, body[start:]]
    return ways


@pytest.mark.skipif(not manifest(), reason="no folder of recordings beside this checkout")
@pytest.mark.parametrize("entry", manifest(), ids=lambda entry: entry["id"].rpartition("/")[2])
def test_a_recording_decodes_to_its_golden_values(entry: dict[str, Any]) -> None:
    body = (FOLDER / entry["file"]).read_bytes()
    target, dialect = target_of(entry), DIALECTS[entry["dialect"]]
    if entry["status"] >= 400:
        error = find_dialect(dialect).error(entry["status"], {}, body, target)
        assert isinstance(error, ProviderError)
        assert to_line(golden()[entry["id"]]["error"]) in str(error)
        return
    ways = readings(entry, body)
    reply, failure = reply_of(ways.pop("whole"), target, dialect)
    assert differences(entry, reply, failure) == {}
    for way, pieces in ways.items():
        again, failure_again = reply_of(pieces, target, dialect)
        assert again == reply, way
        assert repr(failure_again) == repr(failure), way


@pytest.mark.skipif(not manifest(), reason="no folder of recordings beside this checkout")
def test_every_disagreement_is_still_one() -> None:
    ids = [entry["id"] for entry in manifest()]
    for ending, _ in DISAGREEMENTS:
        assert any(name.endswith(ending) for name in ids), ending
