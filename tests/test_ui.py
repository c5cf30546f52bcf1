"""`asides.ui`: what is no stream, and options that do not exist, are refused with what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.values.events import ReplyEnded, ReplyStarted, StopReason, TextDelta


async def coroutine() -> None:
    pass


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("text", "not a str. Pass asides.stream"),
        (None, "not None. Pass"),
        ({"a": 1}, "not a dict. Pass"),
        (asides.Reply(), "Pass asides.simulate"),
        (coroutine, "Await it first"),
    ],
)
def test_what_is_no_stream_is_refused(source: Any, words: str) -> None:
    for write in (asides.ui.vercel, asides.ui.vercel_chunks, asides.ui.ag_ui, asides.ui.ag_ui_events):
        writer: Any = write
        with pytest.raises(asides.ConfigError, match=words.replace(".", r"\.")):
            writer(source() if callable(source) else source)


def test_options_are_checked() -> None:
    write: Any = asides.ui.vercel
    with pytest.raises(asides.ConfigError, match=r"no option 'thinkng'; did you mean thinking\?"):
        write([], thinkng=False)
    with pytest.raises(asides.ConfigError, match="carry must be a StateKeys, not a str"):
        write([], carry="key")
    with pytest.raises(asides.ConfigError, match="visibility is not valid"):
        write([], visibility={"user": ["everything"]})
    agent: Any = asides.ui.ag_ui
    with pytest.raises(asides.ConfigError, match="run must be the RunAgentInput that the client posted, not a str"):
        agent([], run="{}")


def test_something_else_among_the_events_is_named() -> None:
    mixed: Any = [TextDelta("a"), "b"]
    with pytest.raises(TypeError, match=r"str is not an event\. Pass the events of stream"):
        list(asides.ui.vercel(mixed))


def test_a_whole_reply_goes_out_as_events() -> None:
    reply = asides.fold([ReplyStarted(), TextDelta("Hello."), ReplyEnded(StopReason("stop"))])
    body = b"".join(asides.ui.vercel(asides.simulate(reply)))
    assert json.dumps("Hello.").encode() in body
