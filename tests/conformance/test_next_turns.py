"""The request behind a recorded reply carries what the recorded client sent back and the provider accepted.

Every signature and redacted block, byte for byte, and every block in its order. Skipped where no recordings are.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.history.plan import plan
from asides.values.messages import Message
from tests.conformance.test_recordings import FOLDER, manifest, target_of
from tests.decoding import reply_of

pytestmark = pytest.mark.recordings

Block = dict[str, Any]


def continued() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Recordings with the one that they go on from, where the request that did so was recorded and accepted."""
    known = {entry["id"]: entry for entry in manifest()}
    return [
        (known[entry["continues_from"]], entry)
        for entry in manifest()
        if entry["dialect"] == "anthropic_messages"
        and entry["continues_from"] in known
        and entry["request_file"]
        and entry["status"] == 200
    ]


def sent_back(before: dict[str, Any], entry: dict[str, Any]) -> tuple[list[Block], list[Block]]:
    """The assistant turn as the recorded client sent it, and as we do."""
    recorded = json.loads((FOLDER / entry["request_file"]).read_text())
    turns = recorded["messages"]
    place = max(number for number, turn in enumerate(turns) if turn["role"] == "assistant")
    body = {**recorded, "model": recorded.get("model") or entry["model"]}
    head, tail = ({**body, "messages": turns[:place]}, {**body, "messages": turns[place + 1 :]})
    target = target_of(before)
    reply, failure = reply_of([(FOLDER / before["file"]).read_bytes()], target, "anthropic")
    assert failure is None
    turn = reply.to_message()
    assert turn is not None
    dialect = find_dialect("anthropic")
    opening = dialect.read(json.dumps(head).encode()).prompt
    closing: tuple[Message, ...] = ()
    if tail["messages"]:
        closing = dialect.read(json.dumps(tail).encode()).prompt.messages
    prompt = msgspec.structs.replace(opening, messages=(*opening.messages, turn, *closing))
    planned = plan(prompt, target, on_conflict="adjust").prompt
    ours = json.loads(dialect.encode(planned, target)[0].body)["messages"]
    mine = [message["content"] for message in ours if message["role"] == "assistant"][-1]
    return _blocks(turns[place]["content"]), _blocks(mine)


def _blocks(content: str | list[Block]) -> list[Block]:
    """Blocks without what clients add, leave out or set to null as they like."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return [_plain(block) for block in content]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    kept = {name: inner for name, inner in value.items() if name not in ("cache_control", "caller", "citations")}
    return {name: _plain(inner) for name, inner in kept.items() if inner is not None}


@pytest.mark.skipif(not continued(), reason="no folder of recordings beside this checkout")
@pytest.mark.parametrize(("before", "entry"), continued(), ids=lambda entry: entry["id"].rpartition("/")[2])
def test_what_was_accepted_is_what_we_send(before: dict[str, Any], entry: dict[str, Any]) -> None:
    theirs, ours = sent_back(before, entry)
    assert ours == theirs
