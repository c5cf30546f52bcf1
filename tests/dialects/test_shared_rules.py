"""Rules that hold in every dialect because their code is shared."""

from __future__ import annotations

import pytest

from asides.dialects import DIALECTS, find_dialect
from asides.providers.provider import Target
from asides.providers.table import plain_row
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, Warned
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import Refusal, Text

every_dialect = pytest.mark.parametrize("name", sorted(DIALECTS))


REPLY: list[Event] = [ReplyStarted("m", "r1"), TextDelta("yes"), ReplyEnded(StopReason("stop"))]


@every_dialect
@pytest.mark.parametrize("stream", [True, False])
def test_nothing_is_written_after_the_end(name: str, stream: bool) -> None:
    alone, followed = (find_dialect(name).writer(model="m", stream=stream) for _ in range(2))
    whole = alone.write(REPLY)
    assert b"yes" in whole
    assert followed.write([*REPLY, TextDelta("no"), ReplyEnded(StopReason("length"))]) == whole
    assert followed.write([TextDelta("no")]) == b""


@every_dialect
def test_a_warning_is_not_written_and_begins_no_reply(name: str) -> None:
    plain, warned = (find_dialect(name).writer(model="m", stream=True) for _ in range(2))
    assert warned.write([Warned(Notice("odd", "something was odd"))]) == b""
    assert warned.write(REPLY) == plain.write(REPLY)


@every_dialect
def test_a_part_that_cannot_be_sent_gives_one_notice(name: str) -> None:
    message = Message("user", (Text("hello"), Refusal("no")))
    target = Target(plain_row(name), "m", "http://127.0.0.1:1/v1")
    request, notices = find_dialect(name).encode(Prompt((message, message)), target)
    assert [notice.code for notice in notices] == ["part_not_sent"]
    assert b"hello" in request.body
