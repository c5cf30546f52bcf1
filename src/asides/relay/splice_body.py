"""Change members of a JSON object in its bytes, so that everything else stays byte for byte: `splice_body`."""

from __future__ import annotations

import re
from collections.abc import Container

import msgspec

_KEY = re.compile(rb'\s*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)
_BLANKS = re.compile(rb"\s*")
_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Member(msgspec.Struct, frozen=True):
    """A member of the object: where it begins and ends, and where its value begins."""

    name: str
    start: int
    value: int
    end: int


def find_members(body: bytes) -> list[Member] | None:
    """The members of the JSON object, in order; None if the body is none, or if two members have one name."""
    try:
        values = _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    opening = _BLANKS.match(body)
    place = 0 if opening is None else opening.end() + 1
    if not values:
        return []
    members: list[Member] = []
    for name, raw in values.items():
        key = _KEY.match(body, place)
        value = bytes(raw)
        if key is None or msgspec.json.decode(key[1]) != name or not body.startswith(value, key.end()):
            return None
        end = key.end() + len(value)
        members.append(Member(name, key.start(1), key.end(), end))
        after = _BLANKS.match(body, end)
        place = (end if after is None else after.end()) + 1  # behind the comma, or the closing brace
    return members if body[place - 1 : place] == b"}" else None


def splice_body(body: bytes, model: str | None, drop: Container[str] = ()) -> bytes | None:
    """The body with another model's name, and without some members; None if that cannot be done in its bytes.

    `model` is None for a dialect that names the model in the path.
    """
    members = find_members(body)
    if members is None:
        return None
    pieces: list[bytes] = []
    place = 0
    for number, member in enumerate(members):
        if member.name in drop:
            # With the comma behind it; the last member with the one before it.
            start, end = member.start, member.end
            if number + 1 < len(members):
                end = members[number + 1].start
            elif number:
                start = members[number - 1].end
            pieces.append(body[place : max(place, start)])
            place = max(place, end)
        elif model is not None and member.name == "model":
            new = msgspec.json.encode(model)
            if msgspec.json.decode(body[member.value : member.end]) != model:
                pieces += [body[place : member.value], new]
                place = member.end
    return b"".join([*pieces, body[place:]]) if place else body
