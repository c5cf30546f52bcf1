"""The request behind a recorded reply of Converse, Ollama or Cohere carries what the provider wants back of it.

Compared with what the recorded client sent and the provider accepted, as far as it sent thinking. Skipped where no
recordings are.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.history.plan import plan
from asides.values.messages import Message, Prompt, user
from asides.values.parts import ToolResult
from tests.conformance.test_recordings import DIALECTS, FOLDER, manifest, target_of
from tests.decoding import reply_of

pytestmark = pytest.mark.recordings

OURS = ("bedrock_converse", "ollama", "cohere")
Wire = dict[str, Any]


def continued() -> list[tuple[Wire, Wire]]:
    """Recordings with the one that they go on from, where the request that did so was recorded and accepted."""
    known = {entry["id"]: entry for entry in manifest()}
    return [
        (known[entry["continues_from"]], entry)
        for entry in manifest()
        if entry["dialect"] in OURS
        and entry["continues_from"] in known
        and entry["request_file"]
        and entry["status"] == 200
    ]


def our_turn(before: Wire) -> tuple[Wire, list[str]]:
    """The recorded reply as we send it back, and the opaque tokens that it came with."""
    dialect, target = DIALECTS[before["dialect"]], target_of(before)
    reply, failure = reply_of([(FOLDER / before["file"]).read_bytes()], target, dialect)
    assert failure is None
    turn = reply.to_message()
    assert turn is not None
    results = tuple(ToolResult(call.id, "42", call.name) for call in reply.tool_calls)
    history = (user("go"), turn, Message("tool", results) if results else user("go on"))
    body = find_dialect(dialect).encode(plan(Prompt(history), target).prompt, target)[0].body
    sent = next(message for message in json.loads(body)["messages"] if message["role"] == "assistant")
    return sent, [seal.value for seal in reply.seals]


def their_turn(entry: Wire) -> Wire:
    turns = json.loads((FOLDER / entry["request_file"]).read_text())["messages"]
    last: Wire = [turn for turn in turns if turn["role"] == "assistant"][-1]
    return last


def sealed_blocks(turn: Wire) -> list[Any]:
    """What a provider checks of a turn of Converse: its thoughts and calls, in their order."""
    kept = [block for block in turn["content"] if "reasoningContent" in block or "toolUse" in block]
    return [{name: value for name, value in block.items() if name != "type"} for block in kept]


@pytest.mark.skipif(not continued(), reason="no folder of recordings beside this checkout")
@pytest.mark.parametrize(("before", "entry"), continued(), ids=lambda entry: entry["id"].rpartition("/")[2])
def test_a_turn_goes_back_as_it_was_accepted(before: Wire, entry: Wire) -> None:
    (ours, seals), theirs = our_turn(before), their_turn(entry)
    assert all(seal in json.dumps(ours) for seal in seals)
    match before["dialect"]:
        case "bedrock_converse":
            assert sealed_blocks(ours) == sealed_blocks(theirs)
        case "ollama":
            if theirs.get("thinking") and theirs.get("tool_calls"):
                # Where it came in tags, clients differ in the blanks around it.
                assert ours["thinking"].strip() == theirs["thinking"].strip()
            assert "<think>" not in ours["content"]
        case _:
            assert ours.get("tool_plan") == (theirs.get("tool_plan") or ours.get("tool_plan"))


@pytest.mark.skipif(not continued(), reason="no folder of recordings beside this checkout")
def test_there_are_recordings_of_every_kind_of_token() -> None:
    """Signatures, redacted thoughts, a plan, thinking of a turn that calls tools: none of these is tested in vain."""
    turns = [json.dumps(our_turn(before)[0]) for before, _ in continued()]
    for mark in ('"signature"', '"redactedContent"', '"tool_plan"', '"thinking"'):
        assert any(mark in turn for turn in turns), mark
