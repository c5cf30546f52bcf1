"""Checks of bytes that no good server sends: cut, changed, unknown, broken.

Nothing crashes, no cut goes unnoticed, and unknown content is reported in a warning.
"""

from __future__ import annotations

from typing import Any

from asides.values import errors
from asides.values.errors import AsidesError
from asides_stage.conformance.case import CALLING, PLAIN, Case
from asides_stage.conformance.report import CheckFailed, CheckSkipped, expect
from asides_stage.conformance.response_bodies import (
    Decoded,
    add_unknown_fields,
    insert_event,
    read_documents,
    replace_documents,
    vary_values,
)

_BROKEN_BODIES = (
    b"",
    b"\n\n",
    b"{",
    b"[",
    b"null",
    b"3",
    b'"text"',
    b"[]",
    b"{}",
    b'{"error": null}',
    b"<html><body>502 Bad Gateway</body></html>",
    b"data: {\n\n",
    b"data: [DONE]\n\n",
    b"\xff\xfe{}",
    b"\0\0\0\x10garbage",
    b"[" * 3000,
    b'{"x_made_up": ' + b"[" * 3000,
)
_UNKNOWN_EVENT = {"type": "made_up_event", "x_made_up": {"of": [1, {"two": None}]}}
# What the guard of DocumentDecoder turns into a ProtocolError; in a dialect under test it is a fault of its code.
_CRASHES = (TypeError, LookupError, AttributeError, AssertionError, NameError, ArithmeticError)
# Each status and its error.
_REFUSALS: tuple[tuple[int, type[errors.ProviderError]], ...] = (
    (400, errors.BadRequest),
    (401, errors.AuthError),
    (403, errors.AuthError),
    (404, errors.NotFound),
    (429, errors.RateLimited),
    (500, errors.Overloaded),
    (503, errors.Overloaded),
)


def _decode(case: Case, what: str, *pieces: bytes) -> Decoded:
    """Decode a body; a decoder must never raise."""
    try:
        decoded = case.decode(*pieces)
        if decoded.failure is not None and isinstance(crash := decoded.failure.__cause__, _CRASHES):
            raise crash
    except Exception as problem:
        raise CheckFailed(
            f"a decoder that does not raise on {what}",
            f"{type(problem).__name__} was raised",
            "read documents with DocumentDecoder.read, which leaves out what does not fit; put errors into .failure.",
        ) from problem
    expect(
        decoded.failure is None or isinstance(decoded.failure, AsidesError),  # pyright: ignore[reportUnnecessaryIsInstance] - an author's may be anything
        expected=f"an error of asides for {what}",
        actual=type(decoded.failure).__name__,
        to_do="set .failure to a ProtocolError, a ConnectionLost or a ProviderError.",
    )
    return decoded


def unknown_fields_change_nothing(case: Case) -> None:
    """Unknown fields in every object of a body crash nothing and change nothing."""
    for sample in (PLAIN, CALLING):
        for stream in (True, False):
            body = case.write_sample(sample, stream=stream)
            documents = read_documents(body)
            if documents is None:
                raise CheckSkipped("the framing of this dialect is unknown, so its documents cannot be found")
            strange = replace_documents(body, [add_unknown_fields(document) for document in documents])
            plain, decoded = case.decode(body), _decode(case, "unknown fields", strange)
            expect(
                decoded.failure is None,
                expected="a body with unknown fields to be read",
                actual=f"{type(decoded.failure).__name__}: {decoded.failure}",
                to_do="accept unknown fields: a wire struct reads only the fields that it declares.",
            )
            # Unknown fields inside arguments belong to the model, so calls are not compared.
            expect(
                (decoded.reply.text, decoded.reply.thinking) == (plain.reply.text, plain.reply.thinking),
                expected="the same answer and thinking with unknown fields around them",
                actual="another answer or thinking",
                to_do="read fields by their names alone.",
            )


def unknown_events_are_reported(case: Case) -> None:
    """An unknown event inside a stream crashes nothing, changes nothing, and is reported in a warning."""
    body = case.write_sample(PLAIN, stream=True)
    if read_documents(body) is None:
        raise CheckSkipped("the framing of this dialect is unknown, so no event can be inserted")
    plain, decoded = case.decode(body), _decode(case, "an unknown event", insert_event(body, _UNKNOWN_EVENT))
    expect(
        decoded.failure is None,
        expected="a stream with an unknown event to be read",
        actual=f"{type(decoded.failure).__name__}: {decoded.failure}",
        to_do="switch on the type of an event as a string, and warn about unknown types.",
    )
    expect(
        (decoded.reply.text, decoded.reply.thinking) == (plain.reply.text, plain.reply.thinking),
        expected="the same answer and thinking around an unknown event",
        actual="another answer or thinking",
        to_do="take nothing from an unknown event.",
    )
    expect(
        len(decoded.reply.warnings) > len(plain.reply.warnings),
        expected="a warning about the unknown event in reply.warnings",
        actual="none",
        to_do='call warn("unknown_event", …) for an unknown event.',
    )


def values_of_other_types_crash_nothing(case: Case) -> None:
    """A body with one value of another type is read without that value, or is a typed error."""
    for sample, stream in ((PLAIN, True), (CALLING, False), (PLAIN, False), (CALLING, True))[: 2 if case.quick else 4]:
        body = case.write_sample(sample, stream=stream)
        documents = read_documents(body)
        if documents is None:
            raise CheckSkipped("the framing of this dialect is unknown, so its documents cannot be found")
        for place in _spread(len(documents), 3 if case.quick else 12):
            changes = list(vary_values(documents[place]))
            for number in _spread(len(changes), 15 if case.quick else 250):
                changed: list[Any] = [*documents[:place], changes[number], *documents[place + 1 :]]
                _decode(case, "a value of another type", replace_documents(body, changed))


def _spread(count: int, most: int) -> list[int]:
    """Return this many indexes of a list, spread from its first to its last."""
    return sorted({round(step * (count - 1) / max(most - 1, 1)) for step in range(most)}) if count else []


def broken_bodies_are_typed_errors(case: Case) -> None:
    """A body that is not a reply becomes an error of asides, the same byte by byte, and the decoder never raises."""
    for body in _BROKEN_BODIES:
        what = f"a body of {len(body)} bytes that is not a reply"
        at_once = _decode(case, what, body)
        by_bytes = _decode(case, what, *(body[place : place + 1] for place in range(len(body))))
        expect(
            repr(at_once.failure) == repr(by_bytes.failure),
            expected="the same error in any pieces",
            actual=f"{type(at_once.failure).__name__} at once, {type(by_bytes.failure).__name__} byte by byte",
            to_do="decide at the end of a body, not at the end of a piece.",
        )
        if body not in (b"{}", b"[]", b'{"error": null}', b"data: [DONE]\n\n"):
            expect(
                at_once.failure is not None,
                expected=f"an error for {what} ({body[:12]!r})",
                actual="a reply",
                to_do="set .failure if no document arrived, or if one cannot be read.",
            )


def a_cut_stream_is_never_silently_short(case: Case) -> None:
    """A stream that is cut anywhere is an error with the partial reply, unless everything had arrived."""
    for sample in (PLAIN, CALLING):
        body = case.write_sample(sample, stream=True)
        whole = case.decode(body).reply
        step = max(1, len(body) // (25 if case.quick else 150))
        for end in range(1, len(body), step):
            decoded = _decode(case, "a stream that was cut", body[:end])
            reply = decoded.reply
            if decoded.failure is None:
                expect(
                    (reply.text, reply.thinking, reply.tool_calls) == (whole.text, whole.thinking, whole.tool_calls),
                    expected="an error for a stream that was cut",
                    actual=f"a reply without its end, cut after {end} of {len(body)} bytes",
                    to_do="set .failure in finish() unless the server marked the end of the reply.",
                )
            else:
                expect(
                    whole.text.startswith(reply.text) and not reply.complete,
                    expected="what arrived before the cut, in a partial reply that is not complete",
                    actual="something else",
                    to_do="emit deltas as they arrive, and ReplyEnded only for a complete reply.",
                )


def bytes_after_the_end_change_nothing(case: Case) -> None:
    """Blank lines, comments and keep-alives after the end are not part of the reply."""
    body = case.write_sample(PLAIN, stream=True)
    content_type = case.dialect.writer(model=case.model, stream=True).content_type
    if "event-stream" in content_type and not content_type.startswith("application"):
        extras = [b": a comment\n\n", b"\n\n\n", b"event: ping\n\n"]
    elif body[:1] in (b"{", b"["):
        extras = [b"\n", b"\n\n \n"]
    else:
        raise CheckSkipped(f"in {content_type} nothing can follow the end")
    plain = case.decode(body)
    for extra in extras:
        decoded = _decode(case, "bytes after the end", body, extra)
        expect(
            decoded.reply == plain.reply and decoded.failure is None,
            expected="the same reply with blanks or a comment after it",
            actual="another reply" if decoded.failure is None else f"{type(decoded.failure).__name__}",
            to_do="ignore what is not a document; let a framing (wire/framing.py) split the body.",
        )


def errors_are_typed(case: Case) -> None:
    """An error response becomes the error of its status and names the provider, even if its body is not JSON."""
    for status, kind in _REFUSALS:
        for body in (case.dialect.write_error(status, "it was refused"), b"<html>no</html>", b"", b"[3]", b"[" * 3000):
            try:
                error = case.dialect.error(status, {}, body, case.target)
            except Exception as problem:
                raise CheckFailed(
                    f"an error for status {status}",
                    f"{type(problem).__name__} was raised while it was made",
                    "make it with provider_errors.from_status, and read the body leniently.",
                ) from problem
            expect(
                isinstance(error, kind) and error.status == status,
                expected=f"{kind.__name__} for status {status}",
                actual=f"{type(error).__name__} with status {error.status}",
                to_do="make errors with provider_errors.from_status(status, provider=…, message=…, body=…).",
            )
            expect(
                case.row.name in str(error),
                expected="the provider's name in the message",
                actual="a message without it",
                to_do="pass provider=target.provider.name to provider_errors.from_status.",
            )
        message = str(case.dialect.error(status, {}, case.dialect.write_error(status, "it was refused"), case.target))
        expect(
            "it was refused" in message,
            expected="the server's message in the error",
            actual="an error without it",
            to_do="read the message that write_error() writes.",
        )
