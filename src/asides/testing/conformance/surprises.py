"""Bytes that no good server sends: cut, changed, unknown, broken. Nothing crashes, nothing is silently short, and what
was not understood is told.
"""

from __future__ import annotations

from typing import Any

from asides.testing.conformance.case import CALLING, PLAIN, Case
from asides.testing.conformance.report import Broken, NotHere, expect
from asides.testing.conformance.response_bodies import (
    Decoded,
    documents_of,
    with_documents,
    with_more_fields,
    with_other_values,
    with_stranger,
)
from asides.values import errors
from asides.values.errors import AsidesError

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
_STRANGER = {"type": "made_up_event", "x_made_up": {"of": [1, {"two": None}]}}
# The status, and what it is.
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
    """What became of it. A decoder raises nothing, whatever it is fed."""
    try:
        decoded = case.decode(*pieces)
    except Exception as problem:
        raise Broken(
            f"a decoder that raises nothing when it is fed {what}",
            f"{type(problem).__name__} was raised",
            "read documents with DocumentDecoder.read, which leaves out what does not fit; put errors into .failure.",
        ) from problem
    expect(
        decoded.failure is None or isinstance(decoded.failure, AsidesError),  # pyright: ignore[reportUnnecessaryIsInstance] - an author's may be anything
        expected=f"an error of asides for {what}",
        came=type(decoded.failure).__name__,
        to_do="set .failure to a ProtocolError, a ConnectionLost or a ProviderError.",
    )
    return decoded


def unknown_fields_change_nothing(case: Case) -> None:
    """Fields that nobody has heard of, in every object of a body, crash nothing and change nothing."""
    for sample in (PLAIN, CALLING):
        for stream in (True, False):
            body = case.body_of(sample, stream=stream)
            documents = documents_of(body)
            if documents is None:
                raise NotHere("the framing of this dialect is its own, so that its documents are not found")
            strange = with_documents(body, [with_more_fields(document) for document in documents])
            plain, decoded = case.decode(body), _decode(case, "unknown fields", strange)
            expect(
                decoded.failure is None,
                expected="a body with unknown fields to be read",
                came=f"{type(decoded.failure).__name__}: {decoded.failure}",
                to_do="do not refuse unknown fields: wire structs take only what they know.",
            )
            # Inside arguments they are the model's own.
            expect(
                (decoded.reply.text, decoded.reply.thinking) == (plain.reply.text, plain.reply.thinking),
                expected="the same answer and thinking with unknown fields around them",
                came="others",
                to_do="read fields by their names alone.",
            )


def unknown_events_are_told(case: Case) -> None:
    """An event that nobody has heard of, in the middle of a stream, crashes nothing, changes nothing, and is told."""
    body = case.body_of(PLAIN, stream=True)
    if documents_of(body) is None:
        raise NotHere("the framing of this dialect is its own, so that no event can be put into it")
    plain, decoded = case.decode(body), _decode(case, "an unknown event", with_stranger(body, _STRANGER))
    expect(
        decoded.failure is None,
        expected="a stream with an unknown event to be read",
        came=f"{type(decoded.failure).__name__}: {decoded.failure}",
        to_do="switch on the type of an event as a string, and warn about what is not known.",
    )
    expect(
        (decoded.reply.text, decoded.reply.thinking) == (plain.reply.text, plain.reply.thinking),
        expected="the same answer and thinking around an unknown event",
        came="others",
        to_do="take nothing from an event that is not known.",
    )
    expect(
        len(decoded.reply.warnings) > len(plain.reply.warnings),
        expected="a warning about the unknown event in reply.warnings",
        came="none",
        to_do='call warn("unknown_event", …) for what is not known.',
    )


def values_of_other_kinds_crash_nothing(case: Case) -> None:
    """A body in which one value is of another kind is read without it, or is a typed error."""
    for sample, stream in ((PLAIN, True), (CALLING, False), (PLAIN, False), (CALLING, True))[: 2 if case.quick else 4]:
        body = case.body_of(sample, stream=stream)
        documents = documents_of(body)
        if documents is None:
            raise NotHere("the framing of this dialect is its own, so that its documents are not found")
        for place in _spread(len(documents), 3 if case.quick else 12):
            changes = list(with_other_values(documents[place]))
            for number in _spread(len(changes), 15 if case.quick else 250):
                told: list[Any] = [*documents[:place], changes[number], *documents[place + 1 :]]
                _decode(case, "a value of another kind", with_documents(body, told))


def _spread(count: int, most: int) -> list[int]:
    """So many places of a list, from its first to its last."""
    return sorted({round(step * (count - 1) / max(most - 1, 1)) for step in range(most)}) if count else []


def broken_bodies_are_typed_errors(case: Case) -> None:
    """What is no reply at all is an error of asides, the same byte by byte, and raises nothing on the way."""
    for body in _BROKEN_BODIES:
        what = f"a body of {len(body)} bytes that is no reply"
        at_once = _decode(case, what, body)
        by_bytes = _decode(case, what, *(body[place : place + 1] for place in range(len(body))))
        expect(
            repr(at_once.failure) == repr(by_bytes.failure),
            expected="the same error in any pieces",
            came=f"{type(at_once.failure).__name__} at once, {type(by_bytes.failure).__name__} byte by byte",
            to_do="decide at the end of a body, not at the edge of a piece.",
        )
        if body not in (b"{}", b"[]", b'{"error": null}', b"data: [DONE]\n\n"):
            expect(
                at_once.failure is not None,
                expected=f"an error for {what} ({body[:12]!r})",
                came="a reply",
                to_do="set .failure where no document came, or where one does not read.",
            )


def a_cut_stream_is_never_silently_short(case: Case) -> None:
    """Wherever a stream is cut: an error, with what had come; or all of it had come."""
    for sample in (PLAIN, CALLING):
        body = case.body_of(sample, stream=True)
        whole = case.decode(body).reply
        step = max(1, len(body) // (25 if case.quick else 150))
        for end in range(1, len(body), step):
            decoded = _decode(case, "a stream that was cut", body[:end])
            came = decoded.reply
            if decoded.failure is None:
                expect(
                    (came.text, came.thinking, came.tool_calls) == (whole.text, whole.thinking, whole.tool_calls),
                    expected="an error for a stream that was cut",
                    came=f"a reply without its end, cut after {end} of {len(body)} bytes",
                    to_do="set .failure in finish() unless the server said that the reply is over.",
                )
            else:
                expect(
                    whole.text.startswith(came.text) and not came.complete,
                    expected="what had come before the cut in the partial reply, which is not complete",
                    came="something else",
                    to_do="emit deltas as they come, and ReplyEnded only for a reply that is whole.",
                )


def a_surprise_behind_the_end_changes_nothing(case: Case) -> None:
    """Blank lines, comments and keep-alives behind the last word are no part of the reply."""
    body = case.body_of(PLAIN, stream=True)
    content_type = case.dialect.writer(model=case.model, stream=True).content_type
    if "event-stream" in content_type and not content_type.startswith("application"):
        surprises = [b": a comment\n\n", b"\n\n\n", b"event: ping\n\n"]
    elif body[:1] in (b"{", b"["):
        surprises = [b"\n", b"\n\n \n"]
    else:
        raise NotHere(f"in {content_type} nothing can stand behind the end")
    plain = case.decode(body)
    for surprise in surprises:
        decoded = _decode(case, "something behind the end", body, surprise)
        expect(
            decoded.reply == plain.reply and decoded.failure is None,
            expected="the same reply with blanks or a comment behind it",
            came="another" if decoded.failure is None else f"{type(decoded.failure).__name__}",
            to_do="ignore what is no document; let a framing (wire/framing.py) cut the body.",
        )


def errors_are_typed(case: Case) -> None:
    """A refusal is the error of its status, names the provider and says what to do; a page that is no JSON too."""
    for status, kind in _REFUSALS:
        for body in (case.dialect.write_error(status, "it was refused"), b"<html>no</html>", b"", b"[3]", b"[" * 3000):
            try:
                error = case.dialect.error(status, {}, body, case.target)
            except Exception as problem:
                raise Broken(
                    f"an error for status {status}",
                    f"{type(problem).__name__} was raised while it was made",
                    "make it with errors.from_status, and read the body leniently.",
                ) from problem
            expect(
                isinstance(error, kind) and error.status == status,
                expected=f"{kind.__name__} for status {status}",
                came=f"{type(error).__name__} with status {error.status}",
                to_do="make errors with errors.from_status(status, provider=…, message=…, body=…).",
            )
            expect(
                case.row.name in str(error),
                expected="the provider's name in the message",
                came="a message without it",
                to_do="pass provider=target.provider.name to errors.from_status.",
            )
        told = str(case.dialect.error(status, {}, case.dialect.write_error(status, "it was refused"), case.target))
        expect(
            "it was refused" in told,
            expected="the server's own words in the message",
            came="a message without them",
            to_do="read the message that write_error() writes.",
        )
