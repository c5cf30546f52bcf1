"""Finds thinking and commentary inside one text, and returns the text without them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from asides.providers.models.open_weights import find_written_tags
from asides.values.parts import join_commentary
from asides.values.thinking import join_thoughts
from asides.wire.inline_tags import DEFAULT_TAGS, Channel, Piece, Position, Splitter, may_hold_tags
from asides.wire.inline_tags.grammars import Role, find_rules

FoundKind: TypeAlias = Literal["closed", "unclosed", "lone_close", "empty", "copied"]
"""closed: between tags; unclosed: the closing tag is missing; lone_close: the opening tag is missing; empty: tags
without thinking; copied: the text repeats the reasoning that is stored beside it.
"""
FoundChannel: TypeAlias = Literal["thinking", "commentary"]
Tag: TypeAlias = str | tuple[str, str]

# Shorter thoughts may be the answer itself: "The capital of France is Paris."
_SHORTEST_COPY = 40


class FoundInText(NamedTuple):
    """Thinking or commentary inside a text."""

    channel: FoundChannel
    grammar: str
    """The names of its grammars; "" for a copy."""
    kind: FoundKind
    text: str
    is_removed: bool = True
    """Whether the cleaned text is without it."""


class CheckedText(NamedTuple):
    """What is inside a text."""

    found: tuple[FoundInText, ...]
    cleaned: str
    mentions: bool = False
    """The answer had begun before an opening tag, which therefore counts as part of it."""
    is_open: bool = False
    """The text ends inside a block."""


@lru_cache(maxsize=256)
def list_tags(model: str | None, *, keeps_details: bool) -> tuple[str, ...]:
    """The grammars that can occur in a text of a model. `keeps_details`: the program stores thinking in `details`."""
    written = () if model is None else tuple(map(str, find_written_tags(model)))
    exported = () if keeps_details else ("details",)
    return tuple(dict.fromkeys((*written, *DEFAULT_TAGS, *exported)))


def check_text(text: str, tags: Sequence[Tag], position: Position, thoughts: Sequence[str] = ()) -> CheckedText:
    """Find thinking in the text of an answer. `thoughts` is the reasoning that is stored beside it."""
    checked = CheckedText((), text)
    if may_hold_tags(text, tuple(tags)):
        checker = TextChecker(tags, position)
        checker.feed(text)
        checked = checker.finish()
    for thought in thoughts:
        words = thought.strip()
        if len(words) >= _SHORTEST_COPY and words in checked.cleaned:
            checked = _remove_copy(checked, words)
    return checked


def has_closing_tag(text: str, tags: Sequence[Tag]) -> bool:
    """Whether a text has a tag that ends a block, in code too."""
    matcher = find_rules(tuple(tags)).within(None)
    at = 0
    while (hit := matcher.trigger(text, at)) is not None:
        found = matcher.whole(text, hit.start())
        if found is not None and (tag := matcher.find_tag(found)) is not None and tag.role is Role.CLOSE:
            return True
        at = hit.start() + 1
    return False


class TextChecker:
    """Finds thinking in a text that comes in pieces."""

    def __init__(self, tags: Sequence[Tag], position: Position) -> None:
        self._splitter = Splitter(tags, position, "auto")
        self._texts: list[str] = []
        self._pieces: list[Piece] = []
        self.length = 0

    def feed(self, text: str) -> None:
        """Add text."""
        self.length += len(text)
        self._texts.append(text)
        self._pieces += self._splitter.feed(text)

    def finish(self) -> CheckedText:
        """Return what was found: the text is complete."""
        splitter = self._splitter
        blocks: dict[tuple[Channel, int], list[str]] = {}
        for segment, channel, piece in self._pieces + splitter.finish():
            blocks.setdefault((channel, segment), []).append(piece)
        if not splitter.grammars:
            return CheckedText((), "".join(self._texts), splitter.left_tag)

        def join(wanted: Channel) -> list[str]:
            return ["".join(pieces) for (channel, _), pieces in blocks.items() if channel is wanted]

        answer = "".join(join(Channel.ANSWER))
        thinking = join_thoughts(join(Channel.THINKING)) or ""
        commentary = join_commentary(join(Channel.COMMENTARY))
        grammar = ", ".join(splitter.grammars)
        kind: FoundKind = "lone_close" if splitter.lone_close else "unclosed" if splitter.truncated else "closed"
        found: list[FoundInText] = []
        if thinking:
            found.append(FoundInText("thinking", grammar, kind, thinking))
        if commentary:
            found.append(FoundInText("commentary", grammar, "closed", commentary))
        if not found:
            # A text that is one tag is data about tags, such as a token in a vocabulary.
            if splitter.truncated or (splitter.lone_close and not answer.strip()):
                return CheckedText((), "".join(self._texts), is_open=splitter.truncated)
            found.append(FoundInText("thinking", grammar, "empty", ""))
        return CheckedText(tuple(found), answer, splitter.left_tag, splitter.truncated)


def _remove_copy(checked: CheckedText, words: str) -> CheckedText:
    """Remove a copy at the beginning. If it is the whole answer, or inside it, only a person can say which is right."""
    answer = checked.cleaned.lstrip()
    rest = answer.removeprefix(words).lstrip()
    is_removed = answer.startswith(words) and bool(rest)
    copy = FoundInText("thinking", "", "copied", words, is_removed)
    return checked._replace(found=(*checked.found, copy), cleaned=rest if is_removed else checked.cleaned)
