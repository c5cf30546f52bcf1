"""Removes repetition from text that a server sends twice: on several channels (`SharedText`, `RepeatFilter`), or from
the beginning each time (`SnapshotFilter`).
"""

from __future__ import annotations


class SharedText:
    """One running text that several channels may carry. A channel's repetition is dropped; its new text is returned.

    Each channel has its own position in the text, so nothing is searched and nothing is compared twice. A channel that
    contradicts the text is added to `differing` and ignored from then on.
    """

    __slots__ = ("_positions", "differing", "pieces")

    def __init__(self, pieces: list[str] | None = None) -> None:
        self.pieces: list[str] = [] if pieces is None else pieces
        """The text returned so far; a list that the caller passed grows with it."""
        self._positions: dict[str, tuple[int, int]] = {}
        self.differing: set[str] = set()

    def feed(self, channel: str, text: str) -> str:
        """Add text of a channel; return the new part of it."""
        pieces = self.pieces
        piece, offset = self._positions.get(channel, (0, 0))
        if piece < len(pieces):
            if channel in self.differing:
                return ""
            start = 0
            while piece < len(pieces) and start < len(text):
                known = pieces[piece][offset : offset + len(text) - start]
                if text[start : start + len(known)] != known:
                    self.differing.add(channel)
                    return ""
                start += len(known)
                offset += len(known)
                if offset == len(pieces[piece]):
                    piece, offset = piece + 1, 0
            text = text[start:]
        if text:
            pieces.append(text)
            piece, offset = len(pieces), 0
        self._positions[channel] = (piece, offset)
        return text


class RepeatFilter:
    """Holds a text while it repeats an earlier one; releases all of it once it differs."""

    __slots__ = ("_held", "_matched", "_original")

    def __init__(self, original: str) -> None:
        self._original: str | None = original
        self._held: list[str] = []
        self._matched = 0

    def feed(self, text: str) -> str:
        """Add text; return the text that can be released now."""
        if self._original is None:
            return text
        if self._original.startswith(text, self._matched):
            self._matched += len(text)
            self._held.append(text)
            return ""
        self._original = None
        return "".join(self._held) + text


# Below these sizes, texts that each repeat the one before may do so by chance.
_CERTAIN_LENGTH = 8
_CERTAIN_COUNT = 3


class SnapshotFilter:
    """Turns snapshots into deltas, for a server that may send either.

    A server that sends snapshots is recognised by its first texts: each begins with the one before. Until that is
    certain, doubtful texts are held. Where the provider's row says `snapshots`, less evidence is enough, but some is
    needed: the server may send deltas after all, and two of them may begin alike.
    """

    __slots__ = ("_certain", "_expected", "_size", "_texts", "_whole", "inactive")

    def __init__(self, *, snapshots: bool = False) -> None:
        self.inactive = False
        """The server sends deltas: texts need not be fed any more."""
        self._expected = snapshots
        self._certain = False
        self._whole: list[str] = []
        self._size = 0
        self._texts: list[str] = []
        """The texts so far, each beginning with the one before."""

    def feed(self, text: str) -> str:
        """Add text; return the text that can be released now."""
        if self._certain:
            return self._feed_certain(text)
        texts = self._texts
        if not texts:
            texts.append(text)
            return text
        if text.startswith(texts[-1]) and (self._expected or len(text) > len(texts[-1])):
            texts.append(text)
            long_enough = self._expected and len(texts[-2]) >= _CERTAIN_LENGTH
            if long_enough or (len(texts) >= _CERTAIN_COUNT and len(text) >= _CERTAIN_LENGTH):
                self._certain, self._whole, self._size = True, [text], len(text)
                return text[len(texts[0]) :]
            return ""
        released = "".join(texts[1:]) + text
        if self._expected:
            self._certain, self._whole = True, [texts[0], released]
            self._size = len(texts[0]) + len(released)
        else:
            self.inactive = True
        return released

    def _feed_certain(self, text: str) -> str:
        # Joined only for a text that is long enough to be the next snapshot, so that the time stays linear.
        if len(text) >= self._size:
            whole = "".join(self._whole)
            if text.startswith(whole):
                self._whole, self._size = [text], len(text)
                return text[len(whole) :]
            self._whole = [whole]
        self._whole.append(text)
        self._size += len(text)
        return text

    def finish(self) -> str:
        """Return the held text: as deltas, or, where the row says snapshots, as the last snapshot."""
        texts, self._texts = self._texts, []
        if self.inactive or self._certain or not texts:
            held = ""
        elif self._expected:
            held = texts[-1][len(texts[0]) :]
        else:
            held = "".join(texts[1:])
        self.inactive = True
        return held
