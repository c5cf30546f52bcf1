"""Change members of a JSON object in its bytes, so that everything else stays byte for byte: `splice_body`, and
`keep_bytes` for a request that was rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

import msgspec

_KEY = re.compile(rb'\s*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)
_BLANKS = re.compile(rb"\s*")
_NOTHING: Mapping[str, bytes] = {}
_CONTENT = ("content", "refusal")
_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Member(msgspec.Struct, frozen=True):
    """A member of the object: where it begins and ends, and where its value begins."""

    name: str
    start: int
    value: int
    end: int


def find_members(body: bytes) -> list[Member] | None:
    """The members of the JSON object, in order; None if the body is not one, or if two members have one name."""
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
    changes: dict[str, bytes | None] = {member.name: None for member in members if member.name in drop}
    for member in members:
        is_other = model is not None and member.name == "model" and member.name not in drop
        if is_other and msgspec.json.decode(body[member.value : member.end]) != model:
            changes["model"] = msgspec.json.encode(model)
    return _change(body, members, changes)


def keep_bytes(body: bytes, planned: bytes, refused: Container[str] = ()) -> bytes:
    """The planned body, with the bytes of `body` for every member that says the same in both; `body` itself, if all
    members do. Members that say nothing stay, unless they are `refused`.
    """
    members = find_members(body)
    if not members:
        return planned
    added = dict(_DECODER.decode(planned))
    changes: dict[str, bytes | None] = {}
    for member in members:
        value, other = body[member.value : member.end], added.pop(member.name, None)
        if other is None:
            if member.name in refused or not _says_nothing(value):
                changes[member.name] = None
        elif not _say_same(value, bytes(other)):
            changes[member.name] = bytes(other)
    return _change(body, members, changes, {name: bytes(value) for name, value in added.items()})


def _change(
    body: bytes, members: Sequence[Member], changes: Mapping[str, bytes | None], added: Mapping[str, bytes] = _NOTHING
) -> bytes:
    """The body with other values of members, and with `added` ones at its end. None: without that member."""
    if not changes and not added:
        return body
    pieces = [body[: members[0].start]]
    before: Member | None = None
    for member in members:
        value = changes.get(member.name, body[member.value : member.end])
        if value is not None:
            comma = b"" if len(pieces) == 1 or before is None else body[before.end : member.start]
            pieces += [comma, body[member.start : member.value], value]
        before = member
    for name, value in added.items():
        comma = b"" if len(pieces) == 1 else b","
        pieces += [comma, msgspec.json.encode(name), b":", value]
    return b"".join([*pieces, body[members[-1].end :]])


def _says_nothing(value: bytes) -> bool:
    return value in (b"null", b"false", b'""', b"[]", b"{}")


def _say_same(one: bytes, other: bytes) -> bool:
    """Whether two values are the same JSON. A text may also be a list of one block, and missing content null."""
    if one == other:
        return True
    try:
        first, second = msgspec.json.decode(one), msgspec.json.decode(other)
        return bool(first == second or _unify(first) == _unify(second))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _unify(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unify(inner) for name, inner in value.items() if inner is not None or name not in _CONTENT}
    if not isinstance(value, list):
        return value
    match value:
        case [{"type": "text" | "input_text" | "output_text", "text": str() as text, **more}] if not more:
            return text
        case _:
            return [_unify(item) for item in value]
