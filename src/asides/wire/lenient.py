"""JSON that almost fits its type: what does not fit is left out and told, the rest is read.

Not here: any type. A document that is not JSON at all breaks the dialect, and is the only thing that raises.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from asides.values.errors import ProtocolError

Read = TypeVar("Read")

_MISFIT = re.compile(r" - at `\$\.(.+)`$")
_ITEM = re.compile(r"\[(\d+|\.\.\.)\]")
_MOST_MISFITS = 64
INVALID_TEXT = ("invalid_text", "characters that do not read were replaced by U+FFFD")
"""The notice for it."""
# An escape: a pair of surrogates, half a pair, or any other.
_ESCAPE = re.compile(r"\\(?:(ud[89ab]..\\ud[c-f]..)|(ud[89a-f]..)|.)", re.IGNORECASE | re.DOTALL)


def legible(payload: bytes) -> bytes:
    """The same bytes; where characters were cut in two (`read_document`), others with U+FFFD in their place.

    For types that keep parts of a document unread: what is passed over is not checked.
    """
    readable = payload
    if not payload.isascii():
        try:
            payload.decode()
        except UnicodeDecodeError:
            readable = payload.decode("utf-8", "replace").encode()
    if b"\\ud" in readable or b"\\uD" in readable:
        mended = _mended(readable.decode()).encode()
        return payload if mended == payload else mended
    return readable


def _mended(text: str) -> str:
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[2] else found[0], text)


def read_document(payload: bytes) -> tuple[Any, bool]:
    """The document, and whether characters had to be replaced in it: some servers cut one in two between two deltas, as
    bytes or as escapes. Raises `ProtocolError` when it is no JSON.
    """
    try:
        return msgspec.json.decode(payload), False
    except RecursionError:
        raise ProtocolError("a document is nested deeper than can be read.", payload=payload) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        try:
            return msgspec.json.decode(_mended(payload.decode("utf-8", "replace"))), True
        except msgspec.DecodeError:
            raise ProtocolError(f"a document is not JSON ({problem}).", payload=payload) from None


def misfit(problem: msgspec.ValidationError) -> tuple[str, ...] | None:
    """Where a value of another type than any server ever sent stands: a path, "*" for every item of a list."""
    found = _MISFIT.search(str(problem))
    if not found:
        return None
    return tuple(_ITEM.sub(".*", found.group(1)).split("."))


def without(document: Any, path: tuple[str, ...]) -> Any:
    """The document without what stands at the path."""
    if not path:
        return None
    step, rest = path[0], path[1:]
    if step == "*":
        if not isinstance(document, list):
            return document
        return [without(item, rest) for item in document] if rest else []
    if not isinstance(document, dict) or step not in document:
        return document
    if not rest:
        return {name: value for name, value in document.items() if name != step}
    return {**document, step: without(document[step], rest)}


def read_leniently(
    payload: bytes, decoder: msgspec.json.Decoder[Read], problem: msgspec.ValidationError
) -> tuple[Read, list[str]]:
    """The document that made `decoder` raise `problem`, read without its misfits, and where those stood.

    Raises `ProtocolError` when nothing of the kind can be read from it.
    """
    try:
        document = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as broken:
        raise ProtocolError(f"a document is not JSON ({broken}).", payload=payload) from None
    left_out: list[str] = []
    for _ in range(_MOST_MISFITS):
        path = misfit(problem)
        if path is None:
            break
        left_out.append(".".join(path))
        document = without(document, path)
        try:
            return decoder.decode(msgspec.json.encode(document)), left_out
        except msgspec.ValidationError as next_problem:
            problem = next_problem
    raise ProtocolError(f"a document does not read ({problem}).", payload=payload)
