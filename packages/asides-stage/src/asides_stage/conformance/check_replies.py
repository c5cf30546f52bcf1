"""Checks of decoding: a reply comes back the same, streamed or whole, in any pieces, with its thinking separate."""

from __future__ import annotations

import random

import msgspec

from asides.values.events import TextDelta, ThinkingDelta
from asides.values.fold import simulate
from asides.values.reply import Reply
from asides_stage.conformance.case import CANARY, PLAIN, UNCOUNTED, USAGE, Case, Example, Sample
from asides_stage.conformance.report import CheckSkipped, expect
from asides_stage.conformance.response_bodies import (
    Decoded,
    decode_pieces,
    list_chunkings,
    list_visible_texts,
    remove_origins,
    split_body,
)

_FORMS = ("streamed", "whole")


def _write(case: Case, sample: Sample, form: str) -> bytes:
    return case.write_sample(sample, stream=form == "streamed")


def _decode(case: Case, sample: Sample, form: str) -> Decoded:
    return _decode_body(case, _write(case, sample, form), f"{sample.name}, {form},")


def _decode_body(case: Case, body: bytes, what: str) -> Decoded:
    decoded = case.decode(body)
    expect(
        decoded.failure is None,
        expected=f"{what} to be read, since the dialect's own server half wrote it",
        actual=f"{type(decoded.failure).__name__}: {decoded.failure}",
        to_do="compare what writer() writes with what decoder() reads.",
    )
    return decoded


def thinking_is_extracted(case: Case) -> None:
    """The thinking that a server sends is in `reply.thinking`, streamed and whole; a stream has it first."""
    for sample in case.samples:
        for form in _FORMS:
            thought = _decode(case, sample, form).reply.thinking
            expect(
                thought.text == sample.thought,
                expected=f"the thinking of {sample.name}, {form}, in reply.thinking",
                actual=_describe_difference(sample.thought, thought.text if thought else None),
                to_do="emit a ThinkingDelta for each piece of it; a row names its fields in Quirks(thinking_in=…).",
            )
    events = case.decode(_write(case, PLAIN, "streamed")).events
    first_text = next((place for place, event in enumerate(events) if isinstance(event, TextDelta)), None)
    expect(
        any(isinstance(event, ThinkingDelta) for event in events[:first_text]),
        expected="ThinkingDeltas before the answer, in the order in which the server sends them",
        actual="the first TextDelta before any ThinkingDelta",
        to_do="emit deltas as they arrive; hold nothing back to the end.",
    )


def thinking_is_filtered_from_the_answer(case: Case) -> None:
    """The answer contains none of the thinking and misses none of its own text."""
    for sample in case.samples:
        for form in _FORMS:
            text = _decode(case, sample, form).reply.text
            expect(
                text == sample.text,
                expected=f"the answer of {sample.name}, {form}, in reply.text and nothing else",
                actual=_describe_difference(sample.text, text),
                to_do="emit TextDelta for the answer alone, once; a whole body goes through the same decoder.",
            )


def thinking_is_in_the_metadata(case: Case) -> None:
    """`metadata["thinking"]` is all of the thinking; its type and its source have their own keys."""
    for form in _FORMS:
        metadata = _decode(case, PLAIN, form).reply.metadata
        expect(
            metadata.get("thinking") == PLAIN.thought and "thinking_type" in metadata,
            expected=f"the thinking, {form}, accumulated in metadata['thinking'], with its type",
            actual=_describe_difference(PLAIN.thought, metadata.get("thinking")),
            to_do="give all deltas of one thought the same block number.",
        )
        expect(
            metadata["thinking_source"] != "none",
            expected="metadata['thinking_source'] to say where the thinking was",
            actual="none",
            to_do="give ThinkingDelta its source.",
        )


def nothing_leaks(case: Case) -> None:
    """A thought is in `.thinking` and nowhere else: not in a text, repr, message, argument or error of a reply, whether
    complete or cut anywhere.
    """
    for sample in case.samples:
        for form in _FORMS:
            body = _write(case, sample, form)
            steps = 10 if case.quick else 40
            # A whole body has the thought in one piece, so only its end is examined.
            streamed = form == "streamed"
            cuts = sorted({len(body) * step // steps for step in range(steps + 1)}) if streamed else [len(body)]
            for end in cuts:
                _check_leak(case, sample, body[:end], "" if end == len(body) else f" when cut after {end} bytes")


def _check_leak(case: Case, sample: Sample, body: bytes, when: str) -> None:
    for place, text in list_visible_texts(case.decode(body)).items():
        expect(
            CANARY not in text,
            expected=f"the thought of {sample.name} in reply.thinking alone",
            actual=f"it is also in {place}{when}",
            to_do="emit thinking as ThinkingDelta only; put no content into errors and warnings.",
        )


def deltas_add_up(case: Case) -> None:
    """The deltas add up to the final text and the final thinking: nothing twice, nothing lost."""
    for sample in case.samples:
        for form in _FORMS:
            events = _decode(case, sample, form).events
            for kind, final in ((TextDelta, sample.text), (ThinkingDelta, sample.thought)):
                joined = "".join(event.text for event in events if isinstance(event, kind))
                expect(
                    joined == final,
                    expected=f"the {kind.__name__}s of {sample.name}, {form}, to add up to what was sent",
                    actual=_describe_difference(final, joined),
                    to_do="emit each piece once; if a server repeats everything so far, emit the difference.",
                )
    streamed = case.decode(_write(case, PLAIN, "streamed")).events
    expect(
        sum(isinstance(event, TextDelta) for event in streamed) > 1,
        expected="several TextDeltas of an answer that is streamed in several pieces",
        actual="one",
        to_do="emit deltas as they arrive; hold nothing back to the end.",
    )


def streamed_is_whole(case: Case) -> None:
    """The same reply, streamed and whole, is the same value."""
    for sample in case.samples:
        streamed, whole = (_decode(case, sample, form).reply for form in _FORMS)
        expect(
            streamed == whole,
            expected=f"{sample.name}, streamed and whole, to be equal",
            actual=f"they differ in {', '.join(_list_differences(streamed, whole))}",
            to_do="decode a whole body as a stream of one chunk: one decoder, the same block numbers.",
        )


def any_chunking_is_the_same(case: Case) -> None:
    """Byte by byte, in threes, in random pieces, with empty reads: the same reply and the same error."""
    # The seed makes the pieces the same each time.
    chance = random.Random(7)
    for sample in case.samples[: 1 if case.quick else None]:
        for form in _FORMS:
            body = _write(case, sample, form)
            at_once = case.decode(body)
            chunkings = list_chunkings(body)[1 : 2 if case.quick else None]
            for _ in range(1 if case.quick else 3):
                chunkings.append(split_body(body, [chance.randint(1, 40) for _ in range(5)]))
            for pieces in chunkings:
                again = case.decode(*pieces)
                differences = ", ".join(_list_differences(again.reply, at_once.reply))
                expect(
                    again.reply == at_once.reply and repr(again.failure) == repr(at_once.failure),
                    expected=f"{sample.name}, {form}, to be the same in any pieces",
                    actual=f"another {differences or 'error'} in {len(pieces)} pieces",
                    to_do="take documents from a framing (wire/framing.py) and ignore where pieces end.",
                )


def the_server_half_inverts(case: Case) -> None:
    """The client half reads what the server half writes as the same: decode(write(events)) == events."""
    for sample in case.samples:
        for form in _FORMS:
            first = _decode(case, sample, form).reply
            calls = [(call.name, call.arguments) for call in first.tool_calls]
            expect(
                calls == [(call.name, call.arguments) for call in sample.calls],
                expected=f"the calls of {sample.name}, {form}",
                actual=f"{len(calls)} calls, of {len(sample.calls)}, or with other names or arguments",
                to_do="write calls in writer(), and read them in decoder().",
            )
            expect(
                first.stop.reason == sample.stop.reason,
                expected=f"the stop reason {sample.stop.reason!r}",
                actual=f"{first.stop.reason!r}",
                to_do="map the dialect's stop reasons to ours, in both directions.",
            )
            # The reply is now in the dialect's own terms, so every detail must survive.
            body = case.write(simulate(first, 5), stream=form == "streamed")
            again = _decode_body(case, body, f"{sample.name}, {form}, again,").reply
            expect(
                remove_origins(again) == remove_origins(first),
                expected=f"{sample.name}, {form}, to survive being written and read",
                actual=f"another {', '.join(_list_differences(again, first))}",
                to_do="let writer() write everything that decoder() reads.",
            )


def usage_is_normalised(case: Case) -> None:
    """Input includes cached tokens, output includes thinking, total is their sum; an unreported count is None."""
    for form in _FORMS:
        usage = _decode(case, PLAIN, form).reply.usage
        expect(
            (usage.input, usage.output, usage.total) == (USAGE.input, USAGE.output, USAGE.total),
            expected=f"input {USAGE.input}, output {USAGE.output}, total {USAGE.total}, {form}",
            actual=f"input {usage.input}, output {usage.output}, total {usage.total}",
            to_do="emit UsageReported(reported_usage(…)), with cached tokens in input and thinking in output.",
        )
        expect(
            usage.thinking in (USAGE.thinking, None) and usage.cached in (USAGE.cached, None),
            expected=f"thinking {USAGE.thinking} and cached {USAGE.cached}, or None if unreported",
            actual=f"thinking {usage.thinking}, cached {usage.cached}",
            to_do="leave out what the server does not report; 0 means zero, None means unreported.",
        )
        empty = _decode(case, UNCOUNTED, form).reply.usage
        counts = (empty.input, empty.output, empty.thinking, empty.total)
        expect(
            counts == (None, None, None, None),
            expected="None for counts that the server did not report",
            actual="input {}, output {}, thinking {}, total {}".format(*counts),
            to_do="emit UsageReported only if the server reports counts.",
        )


# --- the author's examples --------------------------------------------------------------------------------------------


def examples_are_read(case: Case) -> None:
    """Each example decodes without an error, the same in any pieces and in both forms, into what it must become."""
    if not case.examples:
        raise CheckSkipped(
            "no examples were given; with examples=[Example(whole=…, stream=…)] the check decodes bytes of the host"
        )
    for example in case.examples:
        _check_example(case, example)


def _check_example(case: Case, example: Example) -> None:
    """Check one example. No message shows its content, which belongs to the author."""
    bodies = example.bodies()
    expect(
        bool(bodies),
        expected=f"bytes in the example {example.name!r}",
        actual="none",
        to_do="give whole=, stream= or both.",
    )
    replies = [_decode_example(case, example, form, body) for form, body in bodies.items()]
    expect(
        all(reply == replies[0] for reply in replies),
        expected=f"{example.name!r} to be the same reply, whole and streamed",
        actual=f"they differ in {', '.join(_list_differences(replies[0], replies[-1]))}",
        to_do="decode both with asides.decode and compare; their ids and counts must be the same too.",
    )
    differing = example.differences(replies[0])
    expect(
        not differing,
        expected=f"{example.name!r} to become what the example says",
        actual=f"it differs in {', '.join(differing)}",
        to_do="decode it with asides.decode and compare.",
    )


def _decode_example(case: Case, example: Example, form: str, body: bytes) -> Reply:
    target = case.target
    if example.model is not None:
        target = msgspec.structs.replace(target, model=example.model, rule=case.row.rule(example.model))
    at_once = decode_pieces([body], target, case.dialect)
    expect(
        at_once.failure is None,
        expected=f"{example.name!r}, {form}, to be read",
        actual=f"{type(at_once.failure).__name__}",
        to_do="decode it with asides.decode, which raises the error.",
    )
    for pieces in list_chunkings(body)[1:]:
        again = decode_pieces(pieces, target, case.dialect)
        expect(
            again.reply == at_once.reply and again.failure is None,
            expected=f"{example.name!r}, {form}, to be the same in any pieces",
            actual=f"another reply in {len(pieces)} pieces",
            to_do="ignore where pieces end.",
        )
    return at_once.reply


def _list_differences(left: Reply, right: Reply) -> list[str]:
    fields = ("parts", "usage", "stop", "warnings", "model", "id", "origin", "complete", "stored")
    return [field for field in fields if getattr(left, field) != getattr(right, field)]


def _describe_difference(expected: str, actual: str | None) -> str:
    """Describe how a text differs from one of the suite's own samples, which may be shown."""
    if actual is None:
        return "none"
    place = next((at for at, pair in enumerate(zip(expected, actual, strict=False)) if pair[0] != pair[1]), None)
    place = min(len(expected), len(actual)) if place is None else place
    return f"{len(actual)} characters, of {len(expected)}, differing from {actual[place : place + 20]!r} on"
