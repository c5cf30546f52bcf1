"""Finds thinking and commentary inside one text, and returns the text without them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import unescape
from typing import Literal, NamedTuple, TypeAlias

from asides.datasets.formats import Span, find_spans
from asides.datasets.separation import STRIPPED_HARMONY, find_copy
from asides.providers.models.open_weights import find_written_tags
from asides.wire.inline_tags import (
    DEFAULT_TAGS,
    GRAMMARS,
    Piece,
    Position,
    Splitter,
    join_pieces,
    may_hold_tags,
    separate_with,
)
from asides.wire.inline_tags.grammars import Role, find_rules
from asides.wire.inline_tags.strays import EXPORTED_TAGS, RARE_TAGS

FoundKind: TypeAlias = Literal["closed", "unclosed", "lone_close", "empty", "later", "copied", "unreadable"]
"""closed: between tags; unclosed: the closing tag is missing; lone_close: the opening tag is missing; empty: tags
without thinking; later: between tags after the beginning of the answer; copied: the text repeats the reasoning that is
stored beside it; unreadable: the row cannot be read, and may have any.
"""
FoundChannel: TypeAlias = Literal["thinking", "commentary"]
Tag: TypeAlias = str | tuple[str, str]

_KEPT_DETAILS = re.compile(r"(?:\s*<details type=\"reasoning\".*?</details>)+\s*", re.DOTALL)


_MAX_THOUGHTS = 64


class FoundInText(NamedTuple):
    """Thinking or commentary inside a text."""

    channel: FoundChannel
    grammar: str
    """The name of its grammar; "" for a copy."""
    kind: FoundKind
    text: str
    is_removed: bool = True
    """Whether it is removed in the cleaned text."""


_ESCAPED_BRACKET = "&lt;"


class CheckedText(NamedTuple):
    """The findings in a text."""

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
    exported = () if keeps_details else EXPORTED_TAGS
    return tuple(dict.fromkeys((*written, *DEFAULT_TAGS, *RARE_TAGS, *exported)))


def check_text(
    text: str,
    tags: Sequence[Tag],
    position: Position,
    thoughts: Sequence[str] = (),
    *,
    keeps_details: bool = False,
    is_message: bool = False,
) -> CheckedText:
    """Find thinking in the text of an answer. `thoughts` is the reasoning that is stored beside it.

    With `keeps_details`, blocks of `details` at the beginning are in their place. A text that is a whole conversation
    has places for thinking; with `is_message`, the text is the content of one message.
    """
    if keeps_details and (kept := _KEPT_DETAILS.match(text)) is not None:
        checked = check_text(text[kept.end() :], tags, position, thoughts, is_message=is_message)
        return checked._replace(cleaned=kept[0] + checked.cleaned)
    if (spans := find_spans(text, is_message=is_message)) is not None:
        return _check_conversation(text, spans, tags, position)
    return _check_answer(text, tags, position, thoughts)


def _check_conversation(text: str, spans: Sequence[Span], tags: Sequence[Tag], position: Position) -> CheckedText:
    """Check each answer in a conversation. Nothing is removed of one that ends inside a block: its turn may be cut."""
    found: list[FoundInText] = []
    thoughts: list[str] = []
    cleaned: list[str] = []
    mentions, place = False, 0
    for kind, start, end in spans:
        said = text[start:end]
        if kind == "thinking":
            thoughts.append(said)
        if kind not in ("text", "commentary"):
            continue
        checked = _check_answer(said, tags, position, thoughts[-_MAX_THOUGHTS:])
        mentions |= checked.mentions
        found += (each._replace(is_removed=False) if checked.is_open else each for each in checked.found)
        cleaned += (text[place:start], said if checked.is_open else checked.cleaned)
        place = end
    cleaned.append(text[place:])
    return CheckedText(tuple(found), "".join(cleaned), mentions)


def _check_answer(text: str, tags: Sequence[Tag], position: Position, thoughts: Sequence[str]) -> CheckedText:
    checked = CheckedText((), text)
    if "harmony" in tags and (stripped := STRIPPED_HARMONY.match(text)) is not None:
        found = FoundInText("thinking", "harmony", "closed", stripped["thought"].strip())
        return CheckedText((found,), stripped["answer"])
    if may_hold_tags(text, tuple(tags)):
        checked = _check_tags(text, tags, position)
    if not checked.found and text.lstrip().startswith(_ESCAPED_BRACKET):
        # Only a person can decide whether the rest is escaped too.
        escaped = _check_tags(unescape(text), tags, position).found
        checked = checked._replace(found=tuple(each._replace(is_removed=False) for each in escaped))
    for thought in thoughts:
        if (copy := find_copy(thought, checked.cleaned)) is not None:
            checked = _remove_copy(checked, *copy)
    return checked


def _check_tags(text: str, tags: Sequence[Tag], position: Position) -> CheckedText:
    checker = TextChecker(tags, position)
    checker.feed(text)
    return checker.finish()


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
    """Finds thinking in a text that comes in pieces.

    At the position "auto", blocks after the beginning are found as well, and stay: they may be quotations.
    """

    def __init__(self, tags: Sequence[Tag], position: Position) -> None:
        self._tags = tuple(tags)
        self._finds_later = position == "auto"
        self._splitter = Splitter(tags, "leading" if self._finds_later else position, "auto")
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
        separated = join_pieces(self._pieces + splitter.finish(), truncated=splitter.truncated)
        answer, thinking, commentary = separated.text, separated.thinking, separated.commentary
        grammar, is_open = splitter.grammar, splitter.truncated
        found: list[FoundInText] = []
        if thinking:
            kind: FoundKind = "lone_close" if splitter.began_inside else "unclosed" if is_open else "closed"
            found.append(FoundInText("thinking", grammar, kind, thinking))
        if commentary:
            found.append(FoundInText("commentary", grammar, "closed", commentary))
        # A text that is one tag is data about tags, such as a token in a vocabulary.
        is_one_tag = is_open or (splitter.began_inside and not answer.strip())
        has_block = splitter.began_with_thinking or (grammar and not _has_controls(grammar))
        if not found and has_block and not is_one_tag:
            found.append(FoundInText("thinking", grammar, "empty", ""))
        left_tag = splitter.left_tag and not found
        text = answer if found else "".join(self._texts)
        if self._finds_later and may_hold_tags(answer, self._tags) and (later := self._find_later(answer)) is not None:
            found.append(later)
            left_tag = False
        return CheckedText(tuple(found), text, left_tag, is_open)

    def _find_later(self, answer: str) -> FoundInText | None:
        """The blocks in an answer that had begun; None if they have no end, as where a text names a tag."""
        splitter = Splitter(self._tags, "anywhere", starts_inside=False)
        found = separate_with(splitter, answer)
        if found.truncated or not found.thinking:
            return None
        return FoundInText("thinking", splitter.grammar, "later", found.thinking, is_removed=False)


def _has_controls(grammar: str) -> bool:
    """Whether a grammar also has tags that are not of thinking."""
    found = GRAMMARS.get(grammar)
    return found is not None and bool(found.control or found.header or found.first)


def _remove_copy(checked: CheckedText, start: int, end: int) -> CheckedText:
    """Remove a copy at the beginning. If it is the whole answer, or inside it, only a person can say which is right."""
    answer = checked.cleaned
    rest = answer[end:].lstrip()
    is_removed = not answer[:start].strip() and bool(rest)
    copy = FoundInText("thinking", "", "copied", answer[start:end], is_removed)
    return checked._replace(found=(*checked.found, copy), cleaned=rest if is_removed else answer)
