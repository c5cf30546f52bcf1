"""Finds thinking in tags inside arbitrary text: known grammars first, then any pair of marks."""

from __future__ import annotations

import re

import msgspec

from asides.providers.quirks import ANY_TAGS, TagPosition
from asides.wire.inline_tags import GRAMMARS, may_hold_tags, separate

# Elements that answers are written in, and wrappers of the answer itself. No model thinks in them.
_ANSWER_NAMES = frozenset(
    "a abbr answer article b blockquote body br code dd details div dl dt em figure final footer h1 h2 h3 h4 h5 h6 head"
    " header hr html i img kbd li link main mark math meta nav ol output p pre q reply response result s script section"
    " small span strong style sub summary sup svg table tbody td text th thead time title tool_call tr u ul var"
    " xml 答案 回答".split()
)
_NAME = r"[^\W\d_][\w:.-]{0,40}"
_LEFT = r"[<\[{(◁【«⟦]{1,3}\|?"
_RIGHT = r"\|?[>\]})▷】»⟧]{1,3}"
# Opening marks at the beginning of a text, each with the form of its closing mark. {name} is the name as written.
_OPENINGS: tuple[tuple[str, str], ...] = (
    (rf"<(?P<name>{_NAME})\s[^<>`\n]{{0,100}}>", "</{name}>"),
    (rf"(?P<left>{_LEFT})(?P<name>{_NAME})(?P<right>{_RIGHT})", "{left}/{name}{right}"),
)
_DOUBLED = re.compile(r"\s*([<\[{(◁【«⟦])\1")
# The part of a mark's name that says "begin", and its counterpart for the end.
_BEGIN = re.compile(r"\A(?:begin|start|open)(?=[ _:.-])|(?<=[_:.-])(?:begin|start|open)\Z", re.IGNORECASE)
_ENDS = {"begin": "end", "start": "end", "open": "close"}
# Closing marks without an opening one, and the form of the opening mark.
_ORPHANS: tuple[tuple[str, str], ...] = (
    (rf"</(?P<name>{_NAME})>", "<{name}>"),
    (rf"<\|/(?P<name>{_NAME})\|>", "<|{name}|>"),
    (rf"\[/(?P<name>{_NAME})\]", "[{name}]"),
    (rf"◁/(?P<name>{_NAME})▷", "◁{name}▷"),
)
_TOKEN = re.compile(r"<\|[^<>|\n]{1,40}\|>")
# A heading over the thinking and one over the answer, such as "### Thinking" and "### Answer".
_HEADINGS = re.compile(
    r"\s*(?P<open>(?:#{1,6} *|\*\*)?(?:my )?(?:thinking|thoughts?|thought process|reasoning|analysis|scratchpad)"
    r"(?: process)?(?:\*\*)?:?(?:\*\*)?)(?:[ \t]*\n|(?<=:)[ \t]|(?<=:\*\*)[ \t])(?P<thought>.+?)\n[ \t]*"
    r"(?P<close>(?:#{1,6} *|\*\*)?(?:the |my )?(?:final )?(?:answer|response|reply)(?:\*\*)?:?(?:\*\*)?)(?=\s)",
    re.IGNORECASE | re.DOTALL,
)
_FRAGMENTS = 2
# Some thousand tokens. Text beyond the requested length is not searched.
_LONGEST = 32 * 1024
_THINKING_WORDS = re.compile(
    r"think|thought|reasoning|analys|scratch|monolog|reflect|ponder|deliberat|rationale|inner|\bcot\b|cot_|_cot|muse|musing"
    r"|chain|internal",
    re.IGNORECASE,
)
_USUAL_ENDS = re.compile(r"\A(?:end|close|stop|finish|/)|(?:end|close|stop)\Z|of_thought|_end", re.IGNORECASE)


class FoundTags(msgspec.Struct, frozen=True):
    """Thinking that was seen in tags inside a text."""

    tag: str | tuple[str, str]
    """The name of a grammar, or the marks before and after the thinking."""
    thinking: str
    answer: str
    starts_inside: bool = False
    """The text began in its thinking: only the closing mark came."""
    position: TagPosition = "auto"
    fragmented: bool = False
    """The tag was closed and opened again and again."""

    def __repr__(self) -> str:
        return (
            f"FoundTags({self.tag!r}, starts_inside={self.starts_inside}, thinking=<{len(self.thinking)} characters>)"
        )


def suggests_thinking(name: str) -> bool:
    """Whether a tag or a field is named like thinking."""
    return _THINKING_WORDS.search(name) is not None


def find_tags(text: str, *, cut: bool = False) -> FoundTags | None:
    """Find thinking in tags; None when there is none. `cut`: the text ended before its end, so a tag may be open."""
    if len(text) > _LONGEST:
        text, cut = text[:_LONGEST], True
    if not text.strip():
        return None
    # A known tag inside doubled brackets is another tag.
    doubled = _find_pair(text, cut=cut) if _DOUBLED.match(text) else None
    return doubled or _find_known(text) or _find_pair(text, cut=cut) or _find_orphan(text) or _find_headings(text)


def _find_known(text: str) -> FoundTags | None:
    """Thinking in a known grammar: first those that servers leave in, then the rare ones."""
    every = (*map(str, ANY_TAGS), *(name for name in GRAMMARS if name not in ANY_TAGS))
    names = [name for name in every if may_hold_tags(text, (name,))]
    for starts_inside, position in ((False, "auto"), (True, "auto"), (False, "anywhere")):
        for name in names:
            found = separate(text, (name,), position, "auto" if starts_inside else False)  # type: ignore[arg-type]
            if not found.thinking or (starts_inside and not found.text.strip()):
                continue
            if position == "anywhere" and name not in ANY_TAGS:
                continue
            fragmented = len(re.findall(r"</[^<>]{1,40}>\s*<[^<>/]{1,40}>", text)) >= _FRAGMENTS
            return FoundTags(
                name,
                found.thinking,
                found.text,
                starts_inside,
                "anywhere" if position == "anywhere" else "auto",
                fragmented and not starts_inside,
            )
    return None


def _find_pair(text: str, *, cut: bool) -> FoundTags | None:
    """Thinking between an opening mark at the start and its closing mark, followed by an answer."""
    body = text.lstrip()
    for opening, closing in _OPENINGS:
        found = re.match(opening, body)
        if found is None or found["name"].lower() in _ANSWER_NAMES:
            continue
        usual = closing.format(**found.groupdict())
        close = _find_close(body, found, usual)
        if close is None:
            if cut and suggests_thinking(found["name"]) and body[found.end() :].strip():
                return FoundTags((found[0], usual), body[found.end() :], "")
            continue
        thinking, _, answer = body[found.end() :].partition(close)
        if thinking.strip() and (answer.strip() or suggests_thinking(found["name"])):
            return FoundTags((found[0], close), thinking, answer.lstrip())
    return None


def _find_close(body: str, opening: re.Match[str], usual: str) -> str | None:
    """The mark that closes the block: the usual one, one that says "end" for "begin", or, of tokens, the next token."""
    if usual in body[opening.end() :]:
        return usual
    ending = _BEGIN.sub(_write_end, opening["name"], count=1)
    paired = opening[0].replace(opening["name"], ending, 1)
    if paired != opening[0] and paired in body[opening.end() :]:
        return paired
    if not opening[0].startswith("<|"):
        return None
    later = _TOKEN.search(body, opening.end())
    if later is None or later[0] == opening[0]:
        return None
    inner = later[0][2:-2]
    return later[0] if _USUAL_ENDS.search(inner) or suggests_thinking(inner) or suggests_thinking(opening[0]) else None


def _write_end(word: re.Match[str]) -> str:
    """The word for the end, in the letters of the word for the beginning."""
    end = _ENDS[word[0].lower()]
    return end.upper() if word[0].isupper() else end.capitalize() if word[0].istitle() else end


def _find_orphan(text: str) -> FoundTags | None:
    """Thinking before a closing mark without an opening one, which was in the model's template."""
    for closing, opening in _ORPHANS:
        found = re.search(closing, text)
        if found is None or found["name"].lower() in _ANSWER_NAMES:
            continue
        before, after = text[: found.start()], text[found.end() :]
        opened = opening.format(name=found["name"])
        if opened[:-1] in before or not before.strip() or not after.strip():
            continue
        # The splitter recognizes code, where a mark is only quoted.
        read = separate(text, ((opened, found[0]),))
        if read.thinking:
            return FoundTags((opened, found[0]), read.thinking, read.text, starts_inside=True)
    return None


def _find_headings(text: str) -> FoundTags | None:
    found = _HEADINGS.match(text)
    if found is None or not text[found.end() :].strip():
        return None
    return FoundTags((found["open"], found["close"]), found["thought"], text[found.end() :].lstrip())
