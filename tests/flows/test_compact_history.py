"""A provider compacts a history on its own: the flow by itself. Over sockets: tests/conversations/test_compact.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.flows.call import Call
from asides.flows.compact_history import CompactedHistory, compact_history
from asides.flows.steps import Done, Head, Open, Read, Sleep, advance
from asides.providers.find import find_target
from asides.values.errors import ConnectionLost

ITEM = {"id": "cmp_1", "type": "compaction", "encrypted_content": "b3BhcXVl"}
KEPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one?"}]}
CALL = Call(
    asides.Prompt(
        (asides.user("one?"), asides.assistant("One.")),
        system="Be brief.",
        tools=(asides.Tool("look", "", {"type": "object"}),),
        max_tokens=50,
    ),
    find_target("openai-responses:gpt-5.4"),
)


def run(call: Call, *bodies: Any, status: int = 200) -> tuple[CompactedHistory, list[Open], list[Any]]:
    """Carry out the flow with these bytes, one read each; an error is thrown into it."""
    flow = compact_history(call, jitter=lambda: 0.0)
    opened: list[Open] = []
    slept: list[Any] = []
    waiting = list(bodies)
    step = advance(flow)
    while not isinstance(step, Done):
        if isinstance(step, Open):
            opened.append(step)
            step = advance(flow, Head(status, {}))
        elif isinstance(step, Read):
            data = waiting.pop(0) if waiting else b""
            step = advance(flow, data) if isinstance(data, bytes) else advance(flow, None, data)
        else:
            assert isinstance(step, Sleep)
            slept.append(step.seconds)
            step = advance(flow)
    return step.result, opened, slept


def write(*items: dict[str, Any]) -> bytes:
    return json.dumps({"object": "response.compaction", "output": items, "usage": {"input_tokens": 3}}).encode()


def test_what_comes_back_belongs_to_its_provider_and_tools_are_not_sent() -> None:
    body = write(KEPT, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="}, ITEM)
    compacted, (opened,), _ = run(CALL, body[:20], body[20:])
    assert json.loads(opened.request.body).keys() == {"model", "input", "instructions"}
    origin = CALL.target.origin
    question, turn = compacted.messages
    assert question == asides.user("one?")
    thought, item = turn.parts
    assert isinstance(thought, asides.Thought)
    assert isinstance(item, asides.UnknownPart)
    assert [thought.origin, item.origin, *(seal.origin for seal in thought.seals)] == [origin] * 3
    assert json.loads(item.json) == ITEM
    assert compacted.usage.input == 3


def test_a_lost_connection_is_tried_again() -> None:
    compacted, opened, slept = run(CALL, ConnectionLost("gone"), write(KEPT, ITEM))
    assert (len(opened), len(slept), len(compacted.messages)) == (2, 1, 2)


def test_an_error_of_the_provider_is_raised_without_the_key() -> None:
    with pytest.raises(asides.BadRequest, match="too small to compact"):
        run(CALL, b'{"error": {"message": "too small to compact"}}', status=400)


@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-7", "groq:qwen/qwen3-32b", "deepseek:deepseek-v4"])
def test_others_cannot(model: str) -> None:
    call = Call(asides.Prompt((asides.user("one?"),)), find_target(model))
    with pytest.raises(asides.Unsupported, match="by='model'"):
        run(call)
