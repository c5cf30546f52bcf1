"""A history without readable thinking: `withheld(messages)`, for what is saved where nobody asked to keep it.

What a provider can read alone stays, so that the next turn is as good as before wherever words are not needed for it.
Not here: what becomes of a thought whose words are gone (plan drops it, and says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from asides.providers.provider import Provider
from asides.values.messages import Message, Part, UnknownPart
from asides.values.thinking import Seal, Thought

# The entries of `reasoning_details` that hold a token and no words.
_WORDLESS_ENTRY = "reasoning.encrypted"
# Where the objects that carried a seal have words of the thought.
_WORDS = ("text", "summary", "content")


def withheld(messages: Sequence[Message], *, rows: Sequence[Provider] = ()) -> tuple[Message, ...]:
    """The messages without readable thinking, with the seals that suffice alone.

    A thought that cannot go back without its words is marked (`Thought.withheld`) and has no seals any more. Where a
    model's seals hold only behind the very same messages, those behind such a thought are worthless and marked too.
    Doing it twice changes nothing; `rows` are the caller's own.
    """
    kept = tuple(_without_words(message) for message in messages)
    first = next((place for place, message in enumerate(kept) if _lost_thoughts(message)), len(kept))
    return invalidate_seals(kept, first + 1, rows=rows)


def _lost_thoughts(message: Message) -> bool:
    return any(isinstance(part, Thought) and part.withheld for part in message.parts)


def _without_words(message: Message) -> Message:
    alone = _alone_in(message)
    kept = (_part_without_words(part, alone) for part in message.parts)
    parts = tuple(part for part in kept if part is not None)
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def _alone_in(message: Message) -> frozenset[str]:
    """The kinds of seals in a message that suffice without the words they came with."""
    kinds = {"redacted", "encrypted"}
    if message.stored is not None:
        kinds.add("item")  # the provider has the words, under the item's id
    seals = [seal for part in message.parts if isinstance(part, Thought) for seal in part.seals]
    if all(_is_token(seal) for seal in seals if seal.kind == "reasoning_details"):
        kinds.add("reasoning_details")  # they go back all together or not at all
    return frozenset(kinds)


def _part_without_words(part: Part, alone: frozenset[str]) -> Part | None:
    if isinstance(part, UnknownPart):
        return None if came_as_thought(part) else part
    if not isinstance(part, Thought):
        return part
    if not part.text and not any(_has_words(seal) for seal in part.seals):
        return part  # hidden to begin with: what there is of it is all that goes back
    seals = tuple(_sufficient(part, alone))
    bare = msgspec.structs.replace(part, text="", kind="hidden", seals=seals)
    return bare if seals else msgspec.structs.replace(bare, withheld=True)


def came_as_thought(part: UnknownPart) -> bool:
    """Whether something that nobody knows came as a thought, such as a picture that was drawn on the way."""
    fields = _object(part.json)
    return fields is not None and fields.get("thought") is True


def _sufficient(thought: Thought, alone: frozenset[str]) -> Iterable[Seal]:
    """The seals that mean something without the words of their thought, without words of their own."""
    for seal in thought.seals:
        # This one belongs to the whole message where thinking comes in a field, and else to the words of its part.
        of_message = seal.kind == "thought_signature" and thought.source == "field"
        if seal.kind in alone or of_message:
            yield _wordless(seal)


def _is_token(seal: Seal) -> bool:
    fields = _object(seal.entry)
    return fields is not None and fields.get("type") == _WORDLESS_ENTRY and not _has_words(seal)


def _has_words(seal: Seal) -> bool:
    fields = _object(seal.entry)
    return fields is not None and any(fields.get(name) for name in _WORDS)


def _wordless(seal: Seal) -> Seal:
    fields = _object(seal.entry)
    if fields is None or not _has_words(seal):
        return seal
    kept = {name: value for name, value in fields.items() if name not in _WORDS}
    # The field has to be there, and may be empty.
    return msgspec.structs.replace(seal, entry=msgspec.json.encode({**kept, "summary": []}).decode())


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None
