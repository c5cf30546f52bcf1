"""The laws of reading: what a server says comes back the same, streamed or whole, in any pieces, its thinking apart.

Not here: bytes that no good server sends (surprises), and requests (asking, turns).
"""

from __future__ import annotations

import random

from asides.testing.conformance.case import CANARY, PLAIN, UNCOUNTED, USAGE, Case, Sample
from asides.testing.conformance.report import expect
from asides.testing.conformance.response_bodies import (
    Decoded,
    list_chunkings,
    remove_origins,
    split_body,
    visible_texts,
)
from asides.values.events import Event, TextDelta, ThinkingDelta
from asides.values.reply import Reply
from asides.values.simulate import simulate
from asides.values.usage import Usage

_FORMS = (True, False)


def _named(stream: bool) -> str:
    return "streamed" if stream else "whole"


def _read(case: Case, body: bytes, what: str) -> Decoded:
    decoded = case.decode(body)
    expect(
        decoded.failure is None,
        expected=f"{what} to be read, since the dialect's own server half wrote it",
        came=f"{type(decoded.failure).__name__}: {decoded.failure}",
        to_do="compare what writer() writes with what decoder() takes.",
    )
    return decoded


def thinking_is_extracted(case: Case) -> None:
    """What a server sends as thinking is in `reply.thinking`, streamed and whole; and live, before the answer."""
    for sample in case.samples:
        for stream in _FORMS:
            decoded = _read(case, case.body_of(sample, stream=stream), f"{sample.name}, {_named(stream)},")
            thought = decoded.reply.thinking
            expect(
                thought is not None and thought.text == sample.thought,
                expected=f"the thinking of {sample.name}, {_named(stream)}, in reply.thinking",
                came=_told(sample.thought, None if thought is None else thought.text),
                to_do="emit a ThinkingDelta for each piece of it; a row names its fields in Quirks(thinking_in=…).",
            )
    pieces = case.decode(case.body_of(PLAIN, stream=True)).events
    first_text = next((place for place, event in enumerate(pieces) if isinstance(event, TextDelta)), None)
    expect(
        any(isinstance(event, ThinkingDelta) for event in pieces[:first_text]),
        expected="thinking to be told before the answer, in the order in which it is sent",
        came="the first TextDelta before any ThinkingDelta",
        to_do="emit deltas when they come; hold nothing back to the end.",
    )


def thinking_is_filtered_from_the_answer(case: Case) -> None:
    """The answer is the answer: not a letter of the thinking is in it, and none of its own is missing."""
    for sample in case.samples:
        for stream in _FORMS:
            reply = _read(case, case.body_of(sample, stream=stream), f"{sample.name}, {_named(stream)},").reply
            expect(
                reply.text == sample.text,
                expected=f"the answer of {sample.name}, {_named(stream)}, in reply.text and nothing else",
                came=_told(sample.text, reply.text),
                to_do="emit TextDelta for the answer alone, once; a whole body goes through the same decoder.",
            )


def thinking_is_in_the_metadata(case: Case) -> None:
    """`metadata["thinking"]` is all of the thinking, under that very key; its type and source stand beside it."""
    for stream in _FORMS:
        decoded = _read(case, case.body_of(PLAIN, stream=stream), f"{PLAIN.name}, {_named(stream)},")
        metadata = decoded.reply.metadata
        expect(
            metadata.get("thinking") == PLAIN.thought and "thinking_type" in metadata,
            expected=f"the thinking, {_named(stream)}, accumulated in metadata['thinking'], with its type",
            came=_told(PLAIN.thought, metadata.get("thinking")),
            to_do="give all deltas of one thought the same block number.",
        )
        expect(
            metadata["thinking_source"] != "none",
            expected="metadata['thinking_source'] to say where the thinking stood",
            came="none",
            to_do="give ThinkingDelta its source.",
        )


def nothing_leaks(case: Case) -> None:
    """A thought is in `.thinking` and nowhere else that is seen: no text, repr, message, argument or error; the reply
    whole, or cut anywhere.
    """
    for sample in case.samples:
        for stream in _FORMS:
            body = case.body_of(sample, stream=stream)
            steps = 10 if case.quick else 40
            # Whole there is but one place to look: the thought in one piece.
            cuts = sorted({len(body) * step // steps for step in range(steps + 1)}) if stream else [len(body)]
            for end in cuts:
                _check_leak(case, sample, body[:end], "" if end == len(body) else f" when cut after {end} bytes")


def _check_leak(case: Case, sample: Sample, body: bytes, when: str) -> None:
    for place, text in visible_texts(case.decode(body)).items():
        expect(
            CANARY not in text,
            expected=f"the thought of {sample.name} in reply.thinking alone",
            came=f"it stands in {place}{when}",
            to_do="emit thinking as ThinkingDelta only; errors and warnings carry no content.",
        )


def deltas_add_up(case: Case) -> None:
    """Concatenated deltas are the final text and the final thinking: nothing doubled, nothing lost, nothing empty."""
    for sample in case.samples:
        for stream in _FORMS:
            decoded = _read(case, case.body_of(sample, stream=stream), f"{sample.name}, {_named(stream)},")
            for kind, final in ((TextDelta, sample.text), (ThinkingDelta, sample.thought)):
                deltas = [event.text for event in decoded.events if isinstance(event, kind)]
                expect(
                    "".join(deltas) == final,
                    expected=f"the {kind.__name__}s of {sample.name}, {_named(stream)}, to add up to what was sent",
                    came=_told(final, "".join(deltas)),
                    to_do="emit each piece once; where a server repeats everything so far, emit the difference.",
                )
    streamed = case.decode(case.body_of(PLAIN, stream=True)).events
    expect(
        sum(isinstance(event, TextDelta) for event in streamed) > 1,
        expected="several TextDeltas of an answer that is streamed in several pieces",
        came="one",
        to_do="emit deltas when they come; hold nothing back to the end.",
    )


def streamed_is_whole(case: Case) -> None:
    """The same reply, streamed and whole, is the same value."""
    for sample in case.samples:
        streamed, whole = (
            _read(case, case.body_of(sample, stream=stream), f"{sample.name}, {_named(stream)},").reply
            for stream in _FORMS
        )
        expect(
            streamed == whole,
            expected=f"{sample.name}, streamed and whole, to be equal",
            came=f"they differ in {', '.join(_differences(streamed, whole))}",
            to_do="take a whole body for a stream of one chunk: one decoder, the same block numbers.",
        )


def any_chunking_is_the_same(case: Case) -> None:
    """Byte by byte, in threes, in random pieces, with empty reads: the same reply and the same error."""
    # The same pieces each time.
    chance = random.Random(7)
    for sample in case.samples[: 1 if case.quick else None]:
        for stream in _FORMS:
            body = case.body_of(sample, stream=stream)
            at_once = case.decode(body)
            ways = list_chunkings(body)[1 : 2 if case.quick else None]
            ways += [split_body(body, [chance.randint(1, 40) for _ in range(5)]) for _ in range(1 if case.quick else 3)]
            for pieces in ways:
                again = case.decode(*pieces)
                expect(
                    again.reply == at_once.reply and repr(again.failure) == repr(at_once.failure),
                    expected=f"{sample.name}, {_named(stream)}, to be the same in any pieces",
                    came=f"another {', '.join(_differences(again.reply, at_once.reply)) or 'error'} "
                    f"in {len(pieces)} pieces",
                    to_do="take documents from a framing (wire/framing.py) and never look at the edge of a piece.",
                )


def the_server_half_inverts(case: Case) -> None:
    """What the server half writes, the client half reads as the same: decode(write(events)) == events."""
    for sample in case.samples:
        for stream in _FORMS:
            first = _read(case, case.body_of(sample, stream=stream), f"{sample.name}, {_named(stream)},").reply
            calls = [(call.name, call.arguments) for call in first.tool_calls]
            expect(
                calls == [(call.name, call.arguments) for call in sample.calls],
                expected=f"the calls of {sample.name}, {_named(stream)}",
                came=f"{len(calls)} calls, of {len(sample.calls)}, or with other names or arguments",
                to_do="write calls in writer(), and read them in decoder().",
            )
            expect(
                first.stop.reason == sample.stop.reason,
                expected=f"the stop reason {sample.stop.reason!r}",
                came=f"{first.stop.reason!r}",
                to_do="map the reasons of the dialect to ours, both ways.",
            )
            # Now in the dialect's own words, every detail has to survive.
            again = _read(
                case, case.write(_own(first), stream=stream), f"{sample.name}, {_named(stream)}, again,"
            ).reply
            expect(
                remove_origins(again) == remove_origins(first),
                expected=f"{sample.name}, {_named(stream)}, to survive being written and read",
                came=f"another {', '.join(_differences(again, first))}",
                to_do="let writer() write everything that decoder() reads.",
            )


def usage_is_normalised(case: Case) -> None:
    """Input includes what was cached, output includes thinking, total is their sum; what was not told is None."""
    for stream in _FORMS:
        usage = _read(case, case.body_of(PLAIN, stream=stream), f"{PLAIN.name}, {_named(stream)},").reply.usage
        expect(
            (usage.input, usage.output, usage.total) == (USAGE.input, USAGE.output, USAGE.total),
            expected=f"input {USAGE.input}, output {USAGE.output}, total {USAGE.total}, {_named(stream)}",
            came=f"input {usage.input}, output {usage.output}, total {usage.total}",
            to_do="emit UsageReported(reported_usage(…)), with cached tokens in input and thinking in output.",
        )
        expect(
            usage.thinking in (USAGE.thinking, None) and usage.cached in (USAGE.cached, None),
            expected=f"thinking {USAGE.thinking} and cached {USAGE.cached}, or None where the dialect cannot tell",
            came=f"thinking {usage.thinking}, cached {usage.cached}",
            to_do="leave out what the server does not tell; 0 is zero, None is not told.",
        )
        untold = _read(case, case.body_of(UNCOUNTED, stream=stream), f"{UNCOUNTED.name}, {_named(stream)},").reply.usage
        expect(
            (untold.input, untold.output, untold.thinking, untold.total) == (None, None, None, None),
            expected="None for counts that were not told",
            came=f"{_counts(untold)}",
            to_do="emit UsageReported only where the server told counts.",
        )


def _own(reply: Reply) -> list[Event]:
    return simulate(reply, 5)


def _counts(usage: Usage) -> str:
    return f"input {usage.input}, output {usage.output}, thinking {usage.thinking}, total {usage.total}"


def _differences(left: Reply, right: Reply) -> list[str]:
    fields = ("parts", "usage", "stop", "warnings", "model", "id", "origin", "complete", "stored")
    return [field for field in fields if getattr(left, field) != getattr(right, field)]


def _told(expected: str, came: str | None) -> str:
    """How one of the suite's own texts differs from what came; those may be shown."""
    if came is None:
        return "none"
    place = next((at for at, pair in enumerate(zip(expected, came, strict=False)) if pair[0] != pair[1]), None)
    place = min(len(expected), len(came)) if place is None else place
    return f"{len(came)} characters, of {len(expected)}, differing from {came[place : place + 20]!r} on"
