"""The law: whatever a server does, a blocking and an awaiting client see the same events, reply, error and partial."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from asides.values.errors import AsidesError
from asides.values.parts import ToolCall
from asides_stage.stage import Fail, Garbage, Hang, OpenStage, Raw, Refuse, Say, Scene
from tests.decoding import chunk, sse, stream, whole
from tests.shells import Outcome, stream_async, stream_sync

REPLY = {"thinking": "first this, then that", "text": "forty-two, as everybody knows", "id": "chatcmpl-1", "piece": 4}
SCENES: dict[str, Scene] = {
    "thinking and text": Say(**REPLY),  # type: ignore[arg-type]
    "tool calls": Say(tool_calls=(ToolCall("call_1", "look", {"at": "the sky"}),), id="chatcmpl-1"),
    "refusal": Say(refusal="I would rather not.", id="chatcmpl-1"),
    "byte by byte": Say(text="42", thinking="plan", id="chatcmpl-1", chunk=1),
    "tags": Raw(body=stream({"content": "<thi"}, {"content": "nk>plan</think>4"}, {"content": "2"})),
    "whole although a stream was asked for": Raw(body=whole({"content": "42"}), content_type="application/json"),
    "ten megabytes in one line": Raw(body=stream({"content": "x" * 10_000_000})),
    "an error in place of the reply": Raw(body=sse({"error": {"message": "no such model", "code": "model_not_found"}})),
    "an error in the middle": Raw(body=sse(chunk({"content": "half"}), {"error": {"message": "busy", "code": 503}})),
    "broken JSON": Raw(body=sse(chunk({"content": "half"}), done=False) + b"data: {nonsense\n\n"),
    "no end": Raw(body=sse(chunk({"content": "half"}), done=False)),
    "nothing": Raw(body=b""),
    "a page": Garbage(),
    "a page that says no": Garbage(status=502),
    "wrong key": Fail(status=401, message="Incorrect API key provided"),
    "unknown model": Fail(status=404, message="no such model"),
    "too fast": Fail(status=429, retry_after=3600),
    "down": Fail(status=500),
    "hung up on": Refuse(),
    "reset": Refuse(reset=True),
    "silence": Hang(),
    **{f"cut after {bytes_}": Say(**REPLY, cut_after=bytes_) for bytes_ in (1, 150, 700, 1500)},  # type: ignore[arg-type]
    "cut behind the last word": Raw(body=stream({"content": "42"}), cut_after=len(stream({"content": "42"}))),
    "silent in the middle": Say(**REPLY, hang_after=700),  # type: ignore[arg-type]
}


def told(error: AsidesError | None) -> tuple[Any, ...]:
    """An error without what differs from run to run: the port, and the number of the request."""
    if error is None:
        return (None,)
    words = re.sub(r"127\.0\.0\.1:\d+", "HOST", re.sub(r"stage-\d+", "stage-N", str(error)))
    return type(error), words, error.partial, getattr(error, "status", None), getattr(error, "body", None)


def comparable(outcome: Outcome, url: str) -> tuple[Any, ...]:
    events = [str(msgspec.to_builtins(event)).replace(url, "URL") for event in outcome.events]
    return events, outcome.reply, told(outcome.error), outcome.partial


@pytest.mark.requirement("FT-08")
@pytest.mark.parametrize("name", SCENES)
def test_both_shells_see_the_same(name: str, stage: OpenStage) -> None:
    open_stage = stage(SCENES[name])
    sync, async_ = (shell(open_stage.url, retries=0, timeout=0.5) for shell in (stream_sync, stream_async))
    assert comparable(sync, open_stage.url) == comparable(async_, open_stage.url)
    assert (sync.reply is None) == (sync.error is not None)
