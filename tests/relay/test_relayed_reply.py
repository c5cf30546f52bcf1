"""Targets in order: the next one is asked before the first byte, and never after it."""

from __future__ import annotations

from typing import Any

from asides.testing import Stage
from asides.testing.stage import Say
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
