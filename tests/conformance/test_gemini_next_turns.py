"""For every open Gemini recording that continues a conversation: the request we build for that turn carries the
signatures that the recorded client sent, in their order, and its calls are all signed where the API asks for it.

The recorded clients were accepted; they may spell a signature in URL-safe base64, and put it on a neighbouring part.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides.dialects import find_dialect
from asides.dialects.gemini.server.read_request import read
from asides.history.plan import plan
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.values.messages import Message
from asides.values.parts import Part, ToolResult

FOLDER = Path(os.environ.get("ASIDES_RECORDINGS") or Path(__file__).parents[3] / "shared" / "recordings")

pytestmark = pytest.mark.recordings


@cache
def recordings() -> dict[str, dict[str, Any]]:
    if not (FOLDER / "manifest.jsonl").exists():
        return {}
    lines = (FOLDER / "manifest.jsonl").read_text().splitlines()
    return {entry["id"]: entry for entry in map(json.loads, lines) if entry["dialect"] == "gemini"}


CONTINUED = [entry for entry in recordings().values() if entry["continues_from"] in recordings()]


def history(entry: dict[str, Any]) -> tuple[Message, ...]:
    body = (FOLDER / entry["request_file"]).read_bytes()
    return read(body, f"/models/{entry['model']}:generateContent").prompt.messages


def signatures(contents: list[dict[str, Any]]) -> list[str]:
    found = [part.get("thoughtSignature") for content in contents for part in content["parts"]]
    return [value.replace("-", "+").replace("_", "/") for value in found if value]


def answered(message: Message, calls: list[str]) -> Message:
    """The message with its results under the ids that our reading gave the calls."""
    parts: list[Part] = [
        msgspec.structs.replace(part, call_id=calls.pop(0)) if isinstance(part, ToolResult) and calls else part
        for part in message.parts
    ]
    return msgspec.structs.replace(message, parts=tuple(parts))


@pytest.mark.skipif(not CONTINUED, reason="no folder of recordings beside this checkout")
@pytest.mark.parametrize("entry", CONTINUED, ids=lambda entry: entry["id"].rpartition("/")[2])
def test_the_next_turn_carries_the_signatures_that_were_accepted(entry: dict[str, Any]) -> None:
    before = recordings()[entry["continues_from"]]
    row = find_provider(entry["provider"])
    reply = asides.decode("gemini", (FOLDER / before["file"]).read_bytes(), provider=row, model=entry["model"])
    said = reply.to_message()
    assert said is not None
    calls = [call.id for call in reply.tool_calls]
    sent = history(entry)
    latest = max(place for place, message in enumerate(sent) if message.role == "assistant")
    behind = [message for message in sent[latest + 1 :] if message.role != "assistant"] or [
        message for message in sent[len(history(before)) :] if message.role == "tool"
    ]
    messages = (*history(before), said, *(answered(message, calls) for message in behind))

    target = Target(row, entry["model"], row.base_url, row.rule(entry["model"]))
    planned = plan(asides.Prompt(messages), target)
    request, _ = find_dialect("gemini").encode(planned.prompt, target)

    contents = json.loads(request.body)["contents"]
    recorded = [
        {"parts": [{"thoughtSignature": seal.value} for part in message.parts for seal in getattr(part, "seals", ())]}
        for message in sent
    ]
    assert signatures(contents) == signatures(recorded)
    # Byte for byte, and inside the part they came with.
    own = next(content for content in reversed(contents) if content["role"] == "model")
    assert [part.get("thoughtSignature") for part in own["parts"] if "thoughtSignature" in part] == [
        seal.value for seal in reply.seals
    ]
    assert not any(part.get("thought") for content in contents for part in content["parts"] if content is own)
