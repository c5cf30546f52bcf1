"""What saved blocks show and a request does not: signatures without the text that they cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from asides.dialects.anthropic.rules.history import THOUGHTS
from asides.dialects.anthropic.rules.words import BLOCK_MODIFIED, TEXT_MISSING
from asides.dialects.rulebook import BrokenRule, SavedHistory, Wire, as_objects


def check_saved(items: Sequence[Wire], history: SavedHistory) -> Iterator[BrokenRule]:
    """Yield the rules that the blocks break for certain, though a request alone does not show it."""
    seen: set[str] = set()
    for place, item in enumerate(items):
        for number, block in enumerate(as_objects(item.get("content"))):
            if block.get("type") not in THOUGHTS or not (seal := read_seal(block)):
                continue
            path = f"messages[{place}].content[{number}]"
            if seal in seen:
                yield BLOCK_MODIFIED.shown(path, "the signature of this block is that of an earlier one")
            elif (
                block["type"] == "thinking" and isinstance(block.get("thinking"), str) and has_lost_text(block, history)
            ):
                yield TEXT_MISSING.shown(path, "the block has lost its text, which its signature covers")
            seen.add(seal)


def has_lost_text(block: Wire, history: SavedHistory) -> bool:
    """Whether the text is gone that a signature covers. Where no request is known, "" may be right."""
    text, omits = block.get("thinking"), history.target.rule.display == "omitted"
    if not isinstance(text, str):
        return not omits
    return not text.strip() and (text != "" or (history.is_request and not omits))


def read_seal(block: Wire) -> str:
    """Return the seal of a block that is a thought; "" without one."""
    seal = block.get("data" if block.get("type") == "redacted_thinking" else "signature")
    return seal.strip() if isinstance(seal, str) else ""
