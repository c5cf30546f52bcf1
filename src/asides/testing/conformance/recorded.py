"""The author's own examples: whole and streamed are the same reply, in any pieces, and it is what was expected.

What they say is the author's; it is in no message here.
"""

from __future__ import annotations

import msgspec

from asides.providers.provider import Target
from asides.testing.conformance.case import Case, Example
from asides.testing.conformance.report import NotHere, expect
from asides.testing.conformance.response_bodies import Decoded, decode_pieces, list_chunkings


def examples_are_read(case: Case) -> None:
    """Each example is read without an error, is the same in any pieces and in both forms, and is what it must be."""
    if not case.examples:
        raise NotHere(
            "no examples were given; with examples=[Example(whole=…, stream=…)] the host's own bytes are read"
        )
    for example in case.examples:
        _examine(case, example)


def _examine(case: Case, example: Example) -> None:
    bodies = example.bodies()
    expect(
        bool(bodies),
        expected=f"bytes in the example {example.name!r}",
        came="none",
        to_do="give whole=, stream= or both.",
    )
    read = {form: _read(case, example, form, body) for form, body in bodies.items()}
    replies = [decoded.reply for decoded in read.values()]
    expect(
        all(reply == replies[0] for reply in replies),
        expected=f"{example.name!r} to be the same reply, whole and streamed",
        came=f"they differ in {', '.join(_differences(replies[0], replies[-1]))}",
        to_do="decode both with asides.decode and compare; the ids and counts of the two have to be the same too.",
    )
    differing = example.differences(replies[0])
    expect(
        not differing,
        expected=f"{example.name!r} to become what the example says",
        came=f"it differs in {', '.join(differing)}",
        to_do="decode it with asides.decode and compare.",
    )


def _read(case: Case, example: Example, form: str, body: bytes) -> Decoded:
    target = _target(case, example)
    at_once = decode_pieces([body], target, case.dialect)
    expect(
        at_once.failure is None,
        expected=f"{example.name!r}, {form}, to be read",
        came=f"{type(at_once.failure).__name__}",
        to_do="decode it with asides.decode, which raises the error.",
    )
    for pieces in list_chunkings(body)[1:]:
        again = decode_pieces(pieces, target, case.dialect)
        expect(
            again.reply == at_once.reply and again.failure is None,
            expected=f"{example.name!r}, {form}, to be the same in any pieces",
            came=f"another reply in {len(pieces)} pieces",
            to_do="never look at the edge of a piece.",
        )
    return at_once


def _target(case: Case, example: Example) -> Target:
    if example.model is None:
        return case.target
    return msgspec.structs.replace(case.target, model=example.model, rule=case.row.rule(example.model))


def _differences(left: object, right: object) -> list[str]:
    fields = ("parts", "usage", "stop", "warnings", "model", "id", "stored")
    return [field for field in fields if getattr(left, field) != getattr(right, field)]
