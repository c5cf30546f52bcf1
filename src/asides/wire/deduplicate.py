"""The same text told twice comes out once: on several channels (`Echoes`, `Shadow`), or from
the beginning each time (`Increments`).

Not here: which channels there are.
"""

from __future__ import annotations


class Echoes:
    """One running text that several channels may carry. What a channel repeats of it is dropped; what it adds comes
    out.

    Each channel has its own place in the text, so nothing is searched and nothing is compared twice. A channel that
    says something else than what is already there is `differing` and is not listened to any more.
    """

    __slots__ = ("_pieces", "_places", "differing")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._places: dict[str, tuple[int, int]] = {}
        self.differing: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def text(self) -> str:
        """All that came out."""
        return "".join(self._pieces)

    def take(self, channel: str, text: str) -> str:
        """The part of `text` that is new."""
        pieces = self._pieces
        piece, offset = self._places.get(channel, (0, 0))
        if piece < len(pieces):
            if channel in self.differing:
                return ""
            start = 0
            while piece < len(pieces) and start < len(text):
                there = pieces[piece][offset : offset + len(text) - start]
                if text[start : start + len(there)] != there:
                    self.differing.add(channel)
                    return ""
                start += len(there)
                offset += len(there)
                if offset == len(pieces[piece]):
                    piece, offset = piece + 1, 0
            text = text[start:]
        if text:
            pieces.append(text)
            piece, offset = len(pieces), 0
        self._places[channel] = (piece, offset)
        return text


class Shadow:
    """A text that may repeat one which is already out: held while it does, released whole once it differs."""

    __slots__ = ("_held", "_matched", "_original")

    def __init__(self, original: str) -> None:
        self._original: str | None = original
        self._held: list[str] = []
        self._matched = 0

    def take(self, text: str) -> str:
        """What of `text`, and of what was held, can be released."""
        if self._original is None:
            return text
        if self._original.startswith(text, self._matched):
            self._matched += len(text)
            self._held.append(text)
            return ""
        self._original = None
        return "".join(self._held) + text


# A chain of texts that each repeat the one before could be chance while it is this short.
_CERTAIN_LENGTH = 8
_CERTAIN_LINKS = 3


class Increments:
    """Deltas, from a server that may send everything so far each time instead.

    Such a server is recognised by its first texts, each beginning with the one before; until then the doubtful ones are
    held. For one that is known for it (`snapshots`) less is enough, but not nothing: it may send deltas after all, and
    two that begin alike. Once `settled`, texts need not come through here any more.
    """

    __slots__ = ("_certain", "_chain", "_suspect", "_whole", "settled")

    def __init__(self, *, snapshots: bool = False) -> None:
        self.settled = False
        self._suspect = snapshots
        self._certain = False
        self._whole = ""
        self._chain: list[str] = []

    def take(self, text: str) -> str:
        """What of `text` can be released."""
        if self._certain:
            if text.startswith(self._whole):
                fresh = text[len(self._whole) :]
                self._whole = text
                return fresh
            self._whole += text
            return text
        chain = self._chain
        if not chain:
            chain.append(text)
            return text
        if text.startswith(chain[-1]) and (self._suspect or len(text) > len(chain[-1])):
            chain.append(text)
            sure = self._suspect and len(chain[-2]) >= _CERTAIN_LENGTH
            if sure or (len(chain) >= _CERTAIN_LINKS and len(text) >= _CERTAIN_LENGTH):
                self._certain, self._whole = True, text
                return text[len(chain[0]) :]
            return ""
        released = "".join(chain[1:]) + text
        if self._suspect:
            self._certain, self._whole = True, chain[0] + released
        else:
            self.settled = True
        return released

    def finish(self) -> str:
        """What is still held: too little to call it repetition, so it is released as it came, except from a suspect."""
        chain, self._chain = self._chain, []
        if self.settled or self._certain or not chain:
            held = ""
        elif self._suspect:
            held = chain[-1][len(chain[0]) :]
        else:
            held = "".join(chain[1:])
        self.settled = True
        return held
