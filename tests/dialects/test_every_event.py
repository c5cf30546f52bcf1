"""Every server half writes every event so that it reads back, or the table here says why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import pytest

from asides.dialects import DIALECTS, find_dialect
from asides.providers.provider import Target
from asides.providers.table import plain_row
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.notices import Notice
from asides.values.parts import Image, UnknownPart
from asides.values.thinking import Seal
from asides.values.usage import normalise_usage
from asides_stage.conformance.response_bodies import decode_pieces

HOW_TO_ADD = """{event} is an event without an answer in the server half of {dialect}. To do:
1. Say in src/asides/dialects/server_half.py what a dialect does that cannot write it: a case in
   ReplyWriter._write_one, and a method as _write_commentary. Override it in server/write_reply.py of the others.
2. Read it in src/asides/dialects/*/decode.py, where it is on the wire.
3. Here, in tests/dialects/test_every_event.py: give a sample of it in SAMPLES and a case in is_read_back, and name the
   dialects that cannot carry it in NOT_ON_THIS_WIRE, each with the reason."""

_CITATIONS = '[{"start":0,"end":2,"text":"42"}]'
_MADE_UP = UnknownPart('{"type":"made_up","of":[1,2]}')

# An event of each class. It follows a text, which is block 0.
SAMPLES: dict[type, Event] = {
    ReplyStarted: ReplyStarted("sample-model"),
    ThinkingDelta: ThinkingDelta("six times seven", 1),
    ThoughtSealed: ThoughtSealed(Seal("signature", "c2VhbA=="), 1),
    TextDelta: TextDelta("the sample", 1),
    TextReclassified: TextReclassified("42", 0),
    CommentaryDelta: CommentaryDelta("I look it up.", 1),
    RefusalDelta: RefusalDelta("I would rather not.", 1),
    ToolCallDelta: ToolCallDelta(1, "call_1", "look_up", '{"n":1}'),
    PartArrived: PartArrived(_MADE_UP, 1),
    UsageReported: UsageReported(normalise_usage(input=10, output=5)),
    Warned: Warned(Notice("odd", "something was odd")),
    ReplyEnded: ReplyEnded(StopReason("length")),
}

# Seals and parts are a dialect's own: what these can carry instead of the sample above.
OWN_SAMPLES: dict[tuple[str, type], Event] = {
    ("cohere", ThoughtSealed): ThoughtSealed(Seal("citations", "", None, _CITATIONS), 0),
    ("gemini", ThoughtSealed): ThoughtSealed(Seal("thought_signature", "c2VhbA=="), 1),
    ("gemini_interactions", ThoughtSealed): ThoughtSealed(Seal("step_signature", "c2VhbA=="), 1),
    ("openai_chat", ThoughtSealed): ThoughtSealed(Seal("thought_signature", "c2VhbA=="), 1),
    ("openai_responses", ThoughtSealed): ThoughtSealed(Seal("encrypted", "c2VhbA=="), 1),
    ("bedrock", PartArrived): PartArrived(UnknownPart('{"madeUp":{"of":[1,2]}}'), 1),
    ("gemini", PartArrived): PartArrived(UnknownPart('{"madeUp":{"of":[1,2]}}'), 1),
    ("ollama", PartArrived): PartArrived(Image(data=b"picture"), 1),
}

NOT_ON_THIS_WIRE: dict[tuple[str, type], str] = {
    **{(name, TextReclassified): "a stream cannot take text back; whole, it is a thought" for name in DIALECTS},
    **{(name, Warned): "a warning is for our user, not for a client on the wire" for name in DIALECTS},
    **{
        (name, CommentaryDelta): "it has no place for commentary, and its clients take every text for the answer"
        for name in ("anthropic", "bedrock", "cohere", "gemini", "gemini_interactions", "ollama")
    },
    ("bedrock", ReplyStarted): "a response does not name its model",
    ("cohere", ReplyStarted): "a response does not name its model",
    ("bedrock", RefusalDelta): "a refusal is text here",
    ("cohere", RefusalDelta): "a refusal is text here",
    ("gemini_interactions", RefusalDelta): "a refusal is text here",
    ("ollama", RefusalDelta): "a refusal is text here",
    ("ollama", ThoughtSealed): "a chat line has no field for a seal",
    ("openai_chat", PartArrived): "a chat completion is text and calls; it has no field for another part",
}


def sample_of(name: str, kind: type) -> Event:
    """An event of this class that the dialect can carry; a failure with the files to touch where there is none."""
    sample = OWN_SAMPLES.get((name, kind)) or SAMPLES.get(kind)
    if sample is None:
        pytest.fail(HOW_TO_ADD.format(event=kind.__name__, dialect=name))
    return sample


def reply_with(sample: Event) -> list[Event]:
    """A short reply with this event in it."""
    start = sample if isinstance(sample, ReplyStarted) else ReplyStarted("m")
    end = sample if isinstance(sample, ReplyEnded) else ReplyEnded(StopReason("stop"))
    between = [] if sample in (start, end) else [sample]
    return [start, TextDelta("42", 0), *between, end]


def is_read_back(sample: Event, events: Sequence[Event]) -> bool:
    """Whether events of this class carry what the sample says. A dialect may have other numbers for its blocks."""
    found: list[Any] = [event for event in events if type(event) is type(sample)]
    match sample:
        case ReplyStarted():
            return any(event.model == sample.model for event in found)
        case ThinkingDelta() | TextDelta() | CommentaryDelta() | RefusalDelta():
            return sample.text in "".join(event.text for event in found)
        case ThoughtSealed():
            return any(
                (event.seal.kind, event.seal.value) == (sample.seal.kind, sample.seal.value)
                and (sample.seal.entry is None or _parse(event.seal.entry) == _parse(sample.seal.entry))
                for event in found
            )
        case ToolCallDelta():
            pieces = [(event.id, event.name) for event in found if event.id is not None]
            arguments = "".join(event.arguments for event in found)
            return pieces == [(sample.id, sample.name)] and arguments == sample.arguments
        case PartArrived():
            return any(_without_origin(event.part) == sample.part for event in found)
        case TextReclassified():
            return any(event.text == sample.text for event in found)
        case UsageReported():
            counts = (sample.usage.input, sample.usage.output)
            return any((event.usage.input, event.usage.output) == counts for event in found)
        case Warned():
            return any(event.notice == sample.notice for event in found)
        case ReplyEnded():
            return any(event.stop.reason == sample.stop.reason for event in found)


def _parse(entry: str | None) -> Any:
    return None if entry is None else msgspec.json.decode(entry)


def _without_origin(part: Any) -> Any:
    """The part without where it came from, which only a reader knows."""
    return msgspec.structs.replace(part, origin=None) if hasattr(part, "origin") else part


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_an_event_is_written_and_reads_back_or_is_on_the_table(name: str, kind: type, stream: bool) -> None:
    sample = sample_of(name, kind)
    dialect, target = find_dialect(name), Target(plain_row(name), "m", "http://127.0.0.1:1/v1")
    body = dialect.writer(model="m", stream=stream).write(reply_with(sample))
    decoded = decode_pieces([body], target, dialect)
    assert decoded.failure is None
    reason = NOT_ON_THIS_WIRE.get((name, kind))
    if reason is None:
        assert is_read_back(sample, decoded.events), HOW_TO_ADD.format(event=kind.__name__, dialect=name)
    else:
        assert not is_read_back(sample, decoded.events), f"it reads back: take it off the table ({reason})"


def test_an_event_that_is_new_fails_with_the_files_to_touch() -> None:
    class Sneezed(msgspec.Struct, frozen=True):
        """An event that no writer knows yet."""

    with pytest.raises(pytest.fail.Exception, match=r"Sneezed is an event without an answer") as failure:
        sample_of("gemini", Sneezed)
    for file in ("server/write_reply.py", "dialects/server_half.py", "decode.py", "test_every_event.py"):
        assert file in str(failure.value)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("odd", ['{"type":"made_up","of":1e999}', '{"of":[1]}', "[1]", "7"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_unknown_part_of_any_shape_is_written_or_left_out(dialect: str, odd: str, stream: bool) -> None:
    """The caller gets the rest of the reply."""
    writer: Any = find_dialect(dialect).writer(model="sample-model", stream=stream)
    events: list[Event] = [
        ReplyStarted("sample-model"),
        TextDelta("42", 0),
        PartArrived(UnknownPart(odd), 1),
        ReplyEnded(StopReason("stop")),
    ]
    assert b"42" in writer.write(events)
    assert not odd.startswith(("[", "7")) or [notice.code for notice in writer.notices] == ["part_not_written"]
