"""Remove readable thinking from a history (`redact`), and mark thoughts that can no longer go back: seals that an edit
made void (`invalidate_seals`), and the rest of a turn that lost a thought (`withhold_broken_turns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from asides.history.turns import split_turns
from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.values.errors import UnknownProvider
from asides.values.messages import Message
from asides.values.parts import Part, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from asides.values.traits import HAS_WITHHELD, find_traits, has_thoughts
from asides.values.visibility import Visible

# The only type of `reasoning_details` entry that holds a token and no text.
_OPAQUE_DETAIL = "reasoning.encrypted"
# The fields of a seal's entry that hold text of the thought.
_TEXT_FIELDS = ("text", "summary", "content")


_SEALS: frozenset[Visible] = frozenset({"sealed"})


def redact(
    messages: Sequence[Message], *, rows: Sequence[Provider] = (), keep: frozenset[Visible] = _SEALS
) -> tuple[Message, ...]:
    """Remove readable thinking from the messages. Seals that work without the text stay.

    `keep` says what stays: thinking of these kinds, and seals with "sealed".

    A thought that cannot go back without its text loses its seals and is marked (`Thought.withheld`), with the rest of
    its turn (`withhold_broken_turns`). A second call changes nothing. `rows` are providers of the caller.
    """
    redacted = [_redact_message(message, keep) for message in messages]
    return withhold_broken_turns(redacted, rows=rows)


def redact_thought(thought: Thought) -> Thought:
    """Remove readable text from the only thought of a turn, like `redact`."""
    if not thought.text and not thought.seals:
        return thought
    redacted = _redact_part(thought, _find_textless_kinds(Message("assistant", (thought,))))
    return redacted if isinstance(redacted, Thought) else thought


def withhold_broken_turns(messages: Sequence[Message], *, rows: Sequence[Provider] = ()) -> tuple[Message, ...]:
    """Withhold all sealed thoughts of a turn in which one thought is withheld: a provider takes the blocks of a turn
    whole or not at all. Seals after it become void where a model binds them to all earlier messages, and are marked;
    those of a message that knows what it followed (`Message.prefix`) are left to `bind_prefix`.
    """
    if not find_traits(messages) & HAS_WITHHELD:
        return tuple(messages)
    whole: list[Message] = []
    for turn in split_turns(messages):
        lost = {
            part.origin for message in turn for part in message.parts if isinstance(part, Thought) and part.withheld
        }
        whole += [_withhold_sealed(message, lost) for message in turn] if lost else turn
    first = next(place for place, message in enumerate(whole) if _has_withheld(message))
    void = invalidate_seals(whole, first + 1, rows=rows)
    return tuple(message if message.prefix else marked for message, marked in zip(whole, void, strict=True))


def _has_withheld(message: Message) -> bool:
    return any(isinstance(part, Thought) and part.withheld for part in message.parts)


def _withhold_sealed(message: Message, makers: set[Origin | None]) -> Message:
    """Withhold the sealed thoughts of these makers. One with text keeps it, and its seals, and is not sent."""
    parts = tuple(
        _withhold(part) if isinstance(part, Thought) and part.seals and part.origin in makers else part
        for part in message.parts
    )
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def _withhold(thought: Thought) -> Thought:
    if thought.text:
        return msgspec.structs.replace(thought, replayable=False)
    return msgspec.structs.replace(thought, seals=(), withheld=True)


def _redact_message(message: Message, keep: frozenset[Visible]) -> Message:
    kinds = _find_textless_kinds(message) if "sealed" in keep else frozenset[str]()
    # Kept parts are not examined. A thought without its seals is no longer the one that its provider made.
    redacted = [_keep_part(part, keep) if _is_kept(part, keep) else _redact_part(part, kinds) for part in message.parts]
    if "sealed" not in keep:
        redacted = [part if part is None else _remove_seals(part) for part in redacted]
    parts = tuple(part for part in redacted if part is not None)
    message = drop_model_source(message)
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def drop_model_source(message: Message) -> Message:
    """Drop the JSON that a message of the model was read from: thinking may be in a field that was not read."""
    if message.source is None or message.role != "assistant":
        return message
    return msgspec.structs.replace(message, source=None)


def _is_kept(part: Part, keep: frozenset[Visible]) -> bool:
    if isinstance(part, UnknownPart):
        return "raw" in keep
    return isinstance(part, Thought) and part.kind in keep


def _keep_part(part: Part, keep: frozenset[Visible]) -> Part:
    """A part that stays. The item of a summary may hold the raw thinking too."""
    if "raw" in keep or not isinstance(part, Thought):
        return part
    seals = tuple(_remove_text(seal, ("content",)) for seal in part.seals)
    return part if seals == part.seals else msgspec.structs.replace(part, seals=seals)


def _remove_seals(part: Part) -> Part:
    if not part.seals:
        return part
    if isinstance(part, Thought):
        return msgspec.structs.replace(part, seals=(), replayable=False)
    return msgspec.structs.replace(part, seals=())


def _find_textless_kinds(message: Message) -> frozenset[str]:
    kinds = {"redacted", "encrypted"}
    if message.stored is not None:
        kinds.add("item")  # the provider has stored the text under the item's id
    seals = [seal for part in message.parts if isinstance(part, Thought) for seal in part.seals]
    if all(_is_opaque_detail(seal) for seal in seals if seal.kind == "reasoning_details"):
        kinds.add("reasoning_details")  # they are sent back together or not at all
    return frozenset(kinds)


def _redact_part(part: Part, kinds: frozenset[str]) -> Part | None:
    if isinstance(part, UnknownPart):
        return None if is_thinking(part) else part
    if not isinstance(part, Thought):
        return part
    if not part.text and not any(_has_text(seal) for seal in part.seals):
        return part  # it never had readable text
    seals = tuple(_select_usable_seals(part, kinds))
    return msgspec.structs.replace(part, text="", kind="hidden", seals=seals, withheld=part.withheld or not seals)


def is_thinking(part: UnknownPart) -> bool:
    """Whether the provider marked an unknown part as a thought, such as a picture drawn while thinking."""
    fields = _parse_object(part.json)
    return fields is not None and fields.get("thought") is True


def _select_usable_seals(thought: Thought, kinds: frozenset[str]) -> Iterable[Seal]:
    """The seals, without the text inside them, if they work without the text of their thought; else none of them."""
    # Where thinking comes in a field, this seal belongs to the whole message; elsewhere, to the text of its part.
    works = kinds | {"thought_signature"} if thought.source == "field" else kinds
    usable = [_remove_text(seal) for seal in thought.seals if seal.kind in works]
    return usable if all(seal.kind in works for seal in thought.seals if seal.value) else ()


def _is_opaque_detail(seal: Seal) -> bool:
    fields = _parse_object(seal.entry)
    return fields is not None and fields.get("type") == _OPAQUE_DETAIL and not _has_text(seal)


def _has_text(seal: Seal, names: Sequence[str] = _TEXT_FIELDS) -> bool:
    fields = _parse_object(seal.entry)
    return fields is not None and any(fields.get(name) for name in names)


def _remove_text(seal: Seal, names: Sequence[str] = _TEXT_FIELDS) -> Seal:
    fields = _parse_object(seal.entry)
    if fields is None or not _has_text(seal, names):
        return seal
    rest = {name: value for name, value in fields.items() if name not in names}
    rest.setdefault("summary", [])  # The provider requires the field; it may be empty.
    return msgspec.structs.replace(seal, entry=msgspec.json.encode(rest).decode())


def _parse_object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None


# --- void seals ---------------------------------------------------------------------------------------------------


def invalidate_seals(
    messages: Sequence[Message], from_index: int, *, rows: Sequence[Provider] = ()
) -> tuple[Message, ...]:
    """Mark thoughts from `from_index` on as not replayable if their seals depend on earlier messages.

    Only models whose row says `prefix_bound` make such seals. After an edit of message n, pass n + 1; after a change
    of the system prompt or the tools, pass 0. `rows` are providers of the caller and win over the built-in ones.
    """
    later = messages[from_index:]
    changed = [_invalidate(message, rows) if has_thoughts(message) else message for message in later]
    return (*messages[:from_index], *changed)


def _invalidate(message: Message, rows: Sequence[Provider]) -> Message:
    parts = tuple(
        msgspec.structs.replace(part, replayable=False)
        if isinstance(part, Thought) and part.complete and _is_bound(part, rows)
        else part
        for part in message.parts
    )
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def _is_bound(thought: Thought, rows: Sequence[Provider]) -> bool:
    makers = {thought.origin, *(seal.origin for seal in thought.seals)}
    return bool(thought.seals) and any(_binds_seals(maker, rows) for maker in makers if maker is not None)


def _binds_seals(maker: Origin, rows: Sequence[Provider]) -> bool:
    try:
        row = find_provider(maker.provider, rows)
    except UnknownProvider:
        return False
    return row.rule(maker.model).prefix_bound


def drop_stored_responses(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Drop the ids under which providers stored the messages, because the stored copies followed other messages."""
    return tuple(
        message if message.stored is None else msgspec.structs.replace(message, stored=None) for message in messages
    )
