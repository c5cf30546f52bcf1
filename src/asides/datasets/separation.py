"""Separates the value of one row, a text, a conversation or a recorded response, and says how sure the result is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from asides.values.errors import ConfigError
from asides.wire.inline_tags import GRAMMARS, Position, Separated, Splitter, StartsInside, separate_with
from asides.wire.inline_tags.scanner import SOLID, ends_in_code
from asides.wire.inline_tags.strays import StrayFinder, find_strays

Verdict: TypeAlias = Literal["closed", "none", "lone_close", "unclosed", "empty_answer", "stray_tag", "unreadable"]
"""What was found in a row.

- closed: thinking, in blocks with both tags or in a field of its own
- none: no thinking
- lone_close: the text began inside the thinking, and only its closing tag came
- unclosed: the text ended inside the thinking, so the answer may be in it
- empty_answer: there is thinking or nothing, and no answer
- stray_tag: a tag, a piece of one or a copy of the thinking is left over, so the thinking may end elsewhere
- unreadable: the row has no text, messages or response that can be read
"""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
# A tuple: the order of a set differs from process to process, and with it the key of a cached result.
DEFAULT_UNDECIDED: tuple[Verdict, ...] = ("unclosed", "empty_answer", "stray_tag", "unreadable")
"""The verdicts after which a person has to look at the row."""


class TagSettings(msgspec.Struct, frozen=True):
    """How tags are read; the settings of `asides.separate`."""

    tags: tuple[str | tuple[str, str], ...] | None = None
    position: Position = "auto"
    starts_inside: StartsInside = "auto"

    def make_splitter(self) -> Splitter:
        """A splitter with these settings. Raises ConfigError if one of them is wrong."""
        try:
            return Splitter(self.tags, self.position, self.starts_inside)
        except ValueError as problem:
            raise ConfigError(str(problem)) from None


def find_tag_settings(model: str) -> TagSettings:
    """How a model writes tags. Raises ConfigError or UnknownProvider for an unknown one."""
    from asides.providers.find import find_target

    facts = find_target(model).facts
    # What the row leaves open is decided by the text: a saved text may have begun inside a thought.
    starts_inside: StartsInside = facts.starts_inside or "auto"
    return TagSettings(tuple(facts.tags) or None, facts.tag_position, starts_inside)


class Separation(msgspec.Struct):
    """The result for one row."""

    verdict: Verdict
    grammar: str = ""
    """The grammar of the tags; "field" for thinking in a field of its own, "" for none."""
    answer: str | list[str] | None = None
    """A text; for a conversation a list with one for each message of the model."""
    thinking: str | list[str | None] | None = None
    commentary: str | list[str] | None = None
    reason: str = ""
    """Why it is undecided."""
    turns: Any = None
    """The separated messages of a conversation."""
    note: str = ""
    """What the columns do not hold, such as a second choice."""


# A shorter piece may be the beginning of other text, such as a quotation in Markdown.
_CLEAR_PIECE = 4

_REASONS: dict[Verdict, str] = {
    "unclosed": "the text ends inside the thinking; the answer may be in it",
    "empty_answer": "there is no answer",
}


def separate_text(text: object, settings: TagSettings) -> Separation:
    """Separate one text."""
    if not isinstance(text, str):
        what = "is null" if text is None else f"is not text but {type(text).__name__}"
        return Separation("unreadable", reason=f"the value {what}")
    if settings == _DEFAULT_SETTINGS and (plain := separate_plain(text)) is not None:
        return plain
    return separate_ordinary(text, settings)


def separate_ordinary(text: str, settings: TagSettings) -> Separation:
    """Separate one text with a splitter."""
    splitter = settings.make_splitter()
    found = separate_with(splitter, text)
    verdict, reason = judge(splitter, found, text, settings)
    return Separation(verdict, splitter.grammar, found.text, found.thinking, found.commentary or None, reason)


def separate_plain(text: str) -> Separation | None:
    """What `separate_ordinary` makes of a text without tags, or of `<think>…</think>…` without others.

    None for other texts. Most rows are so, and a few searches are quicker than a splitter.
    """
    strays = find_strays(None)
    thinking, begin = None, 0
    if text.startswith(_OPEN):
        end = text.find(_CLOSE)
        first = SOLID.search(text, end + len(_CLOSE)) if end >= 0 else None
        if first is None:
            return None
        thinking, begin = text[len(_OPEN) : end], first.start()
        if not thinking or thinking.isspace() or strays.may_hold(thinking) or ends_in_code(thinking):
            return None
    answer = text[begin:]
    if strays.may_hold(answer) or strays.ends_in_piece(answer):
        return None
    if thinking is not None:
        return Separation("closed", "think", answer, thinking)
    if not answer or answer.isspace() or STRIPPED_HARMONY.match(answer) or _begins_with_piece(strays, answer, 1):
        return None
    return Separation("none", "", answer)


_DEFAULT_SETTINGS = TagSettings()
_OPEN, _CLOSE = "<think>", "</think>"


def judge(splitter: Splitter, found: Separated, text: str, settings: TagSettings) -> tuple[Verdict, str]:
    """What a separated text says about its thinking, and why it is undecided."""
    answer, thinking = found.text, found.thinking
    strays = find_strays(settings.tags)
    if found.truncated or _CUT_HEADER.fullmatch(answer):
        return "unclosed", _REASONS["unclosed"]
    if settings.position == "auto" and _has_later_block(splitter.grammar, answer, text):
        return "stray_tag", "a block after the beginning of the answer may be a quotation"
    if strays.is_in_answer(answer) or (found.commentary and strays.is_in_answer(found.commentary)):
        return "stray_tag", "a tag, or a piece of one, is left in the answer"
    if strays.ends_in_piece(answer):
        return "stray_tag", "the answer ends in a piece of a tag"
    if thinking is not None:
        if strays.is_in_thinking(thinking):
            return "stray_tag", "a tag, or a piece of one, is left in the thinking"
        if splitter.nests:
            return "stray_tag", "the thinking has a block inside, and may end elsewhere"
        if ends_in_code(thinking):
            return "stray_tag", "the thinking may quote a tag in code, and end elsewhere"
        if splitter.lacks_close or splitter.lacks_header:
            return "stray_tag", f"a {'closing tag' if splitter.lacks_close else 'header'} is missing"
        if strays.begins_with_half(answer, splitter.grammar):
            return "stray_tag", "the answer begins with a piece of a tag"
        if splitter.began_inside and _begins_with_piece(strays, thinking, 1):
            return "stray_tag", "the text begins with a piece of a tag"
    elif STRIPPED_HARMONY.match(answer):
        return "stray_tag", "the text has harmony's channels without their tokens"
    elif _begins_with_piece(strays, answer, _CLEAR_PIECE):
        return "stray_tag", "the text begins with a piece of a tag"
    if not answer or answer.isspace():
        return "empty_answer", _REASONS["empty_answer"]
    if thinking is None and not splitter.began_inside:
        return "none", ""
    return ("lone_close" if splitter.began_inside else "closed"), ""


STRIPPED_HARMONY = re.compile(r"\s*(?:assistant)?analysis(?P<thought>.*?)assistantfinal(?P<answer>.*)", re.DOTALL)
"""A text in harmony from a server that removed its tokens: `analysisThey ask … assistantfinal42`."""
# A header of harmony that was cut off before its message began.
_CUT_HEADER = re.compile(
    r"\s*(?:<\|start\|>assistant)?<\|channel\|>\s*(?:an?a?l?y?s?i?s?)?\s*(?:<\|?m?e?s?s?a?g?e?\|?)?\s*"
)
# The end of a name in capitals, or of a name that a line break ends: `K>`, `<THI`, `ght\n`.
_CUT_NAME = re.compile(r"\s*(?:</?\s*[A-Z]|[A-Z:_]*>)")
_CUT_LINE = re.compile(r"(?:<?\|?channel>)?(?:thought|hought|ought|ught|ght|ht|t)\n")


def _has_later_block(grammar: str, answer: str, text: str) -> bool:
    """Whether a block was taken out of an answer that had begun. Grammars with headers have such messages anyway."""
    known = GRAMMARS.get(grammar)
    if not grammar or (known is not None and (known.header or known.first or known.control)):
        return False
    return not text.endswith(answer) and not text.rstrip().endswith(answer.rstrip())


def _begins_with_piece(strays: StrayFinder, text: str, shortest: int) -> bool:
    """Whether a text begins with a part of an opening tag."""
    if strays.begins_with_piece(text, shortest) or _CUT_LINE.match(text):
        return True
    return _CUT_NAME.match(text) is not None and strays.begins_with_piece(text.lower(), shortest)


# Shorter thoughts may be a part of the answer: "The capital of France is Paris."
_SHORTEST_COPY = 40
# At the beginning or the end of the answer, in lines of its own.
_SHORTEST_COPY_APART = 8
_WORD = re.compile(r"\S+")


def collapse(text: str) -> str:
    """A text with one blank in place of several."""
    return " ".join(text.split())


def find_copy(thought: str, answer: str) -> tuple[int, int] | None:
    """The place where an answer repeats a thought, also with other blanks; None if it does not."""
    first = _WORD.search(thought)
    if first is None or first[0] not in answer:
        return None
    words, said = collapse(thought), collapse(answer)
    at = said.find(words)
    if at < 0 or len(words) < _SHORTEST_COPY_APART:
        return None
    if len(words) >= _SHORTEST_COPY:
        return _find_words(words, at, said, answer)
    if at == 0:
        start, end = _find_words(words, 0, said, answer)
        if "\n" in answer[end : len(answer) - len(answer[end:].lstrip())]:
            return start, end
    if said.endswith(words):
        start, end = _find_words(words, len(said) - len(words), said, answer)
        if "\n" in answer[len(answer[:start].rstrip()) : start] and answer[:start].strip():
            return start, end
    return None


def _find_words(words: str, at: int, said: str, answer: str) -> tuple[int, int]:
    """The place in an answer of words that are at this place when its blanks are collapsed."""
    before = at - said.count(" ", 0, at)
    return _find_letter(answer, before), _find_letter(answer, before + len(words) - words.count(" ") - 1) + 1


def _find_letter(text: str, count: int) -> int:
    """The position of the non-blank character with this index."""
    for found in _WORD.finditer(text):
        if count < len(found[0]):
            return found.start() + count
        count -= len(found[0])
    return len(text)


def merge_verdicts(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a conversation: the worst of its messages, and thinking before none."""
    worst: Verdict = "none"
    for verdict in verdicts:
        if _ORDER.index(verdict) > _ORDER.index(worst):
            worst = verdict
    return worst


_ORDER: tuple[Verdict, ...] = ("none", "closed", "lone_close", "empty_answer", "unclosed", "stray_tag", "unreadable")
