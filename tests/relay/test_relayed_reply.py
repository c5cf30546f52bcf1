"""Targets in order: the next one is asked before the first byte, and never after it."""

from __future__ import annotations

from typing import Any

import pytest

from asides.relay.state.envelope import make_envelope
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import PartState, TurnState
from asides.values.thinking import Seal
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import ROUTES, Door, load


def _chat(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "?"}], **more}


def test_two_replies_are_never_spliced() -> None:
    cut = Say(text="A long answer that never ends. " * 9, piece=10, cut_after=2000)
    with Stage([cut, Say(text="other")]) as stage:
        response = Door(stage, settings=load(routes=ROUTES)).post("/v1/chat/completions", _chat("best", stream=True))
        assert len(stage.requests) == 1
    assert b"other" not in response.body
    assert b'"error"' in response.body


# --- envelopes --------------------------------------------------------------------------------------------------------

_KEYS = RelayKeys((b"k" * 32,))
_ENVELOPE = make_envelope(
    TurnState((PartState(0, "thought", (Seal("signature", "c2VhbA=="),)),)),
    _KEYS.find_tenant(""),
    has_vault=False,
    reference="",
)[0]
_TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "fine"}
_ODD_PLACES: dict[str, list[dict[str, Any]]] = {
    "a field of a message": [{"role": "user", "content": "?", "metadata": {"signature": _ENVELOPE}}],
    "a message of the user": [
        {"role": "user", "content": [{"type": "thinking", "thinking": "x", "signature": _ENVELOPE}]},
        {"role": "user", "content": "?"},
    ],
    "a call": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [{**_TOOL_USE, "signature": _ENVELOPE}]},
        {"role": "user", "content": [_RESULT]},
    ],
    "a block inside a result": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [_TOOL_USE]},
        {"role": "user", "content": [{**_RESULT, "content": [{"type": "redacted_thinking", "data": _ENVELOPE}]}]},
    ],
    "behind a blank": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": f" {_ENVELOPE}"}]},
        {"role": "user", "content": "?"},
    ],
    "a request that cannot be read": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": _ENVELOPE}]},
        {"role": "user", "content": 7},
    ],
}


@pytest.mark.parametrize("place", _ODD_PLACES)
def test_no_provider_sees_an_envelope(place: str) -> None:
    body = {"model": "anthropic:claude-opus-4-5", "max_tokens": 99, "messages": _ODD_PLACES[place]}
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        response = Door(stage, keys=_KEYS).post("/v1/messages", body)
        assert response.status in (200, 400)
        assert not any(b"asd1." in received.body for received in stage.requests)


def test_words_that_look_like_an_envelope_are_forwarded_as_they_are() -> None:
    text = f'{{"signature": "{_ENVELOPE}"}} asd1. is what it begins with'
    body = {"model": "anthropic:claude-opus-4-5", "max_tokens": 99, "messages": [{"role": "user", "content": text}]}
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        response = Door(stage, keys=_KEYS).post("/v1/messages", body)
        assert response.outcome is not None
        assert response.outcome.mode == "forward"
        assert stage.requests[0].json["messages"][0]["content"] == text
