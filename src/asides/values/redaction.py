"""Removes from a text what must not be shown: known secrets in any spelling, and quotes of other texts.

Used where something has failed, so it may take a moment.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from asides.values.messages import Prompt
from asides.values.parts import Commentary, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thought

HIDDEN = "***"
_CUT = "…"
# A shorter secret may be an ordinary word ("none", "test"), and is removed only as a whole word.
_SHORTEST_WORD, _SHORTEST_SECRET = 4, 8
# Longer secrets are recognised by this prefix even if cut off; of very long ones only this prefix is used.
_LONG, _HEAD, _MOST = 24, 16, 128
_BASE64 = "[A-Za-z0-9+/_-]{0,4}"
_MORE_OF_IT = r"[^\s\"'`<>,;()\[\]{}]*"

Redact: TypeAlias = Callable[[str], str]
_Span: TypeAlias = tuple[int, int]


# --- secrets ----------------------------------------------------------------------------------------------------------


class _Form:
    """One spelling of a secret."""

    __slots__ = ("_escapes", "_needle", "_pattern")

    def __init__(self, pattern: str, needle: str, escapes: int | None = None) -> None:
        self._pattern = pattern
        self._needle = needle.lower()
        """What is in every text that this form is in, in lower case: found much faster than the pattern."""
        self._escapes = escapes
        """Number of escapes from which the secret may be spelled without the needle; None: no escapes."""

    def take_out(self, text: str, lower: str, escapes: int) -> str:
        if self._needle in lower or (self._escapes is not None and escapes >= self._escapes):
            return re.sub(self._pattern, HIDDEN, text, flags=re.IGNORECASE)
        return text


def build_redactor(secrets: Iterable[str]) -> Redact:
    """Return a function that replaces these secrets by ***: plain, in any case, percent-encoded, escaped as in JSON or
    HTML, in hexadecimal, and in base64, also inside a longer encoded text such as `user:key`.
    """
    forms = [form for secret in sorted(set(secrets), key=len, reverse=True) for form in _list_forms(secret)]

    def redact(text: str) -> str:
        lower = text.lower()
        escapes = sum(map(lower.count, ("%", "\\u", "\\x", "&#")))
        for form in forms:
            text = form.take_out(text, lower, escapes)
        return text

    return redact if forms else str


def redact_bytes(data: bytes, redact: Redact) -> bytes:
    """Redact bytes in any encoding that contains ASCII, which is what secrets are made of."""
    return redact(data.decode("latin-1")).encode("latin-1")


def _list_forms(secret: str) -> list[_Form]:
    """The spellings of a secret, the longest first."""
    if len(secret) < _SHORTEST_WORD or not secret.isascii():
        return []
    if len(secret) < _SHORTEST_SECRET:
        return [_Form(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", secret)]
    data = secret.encode()
    more = _MORE_OF_IT if len(secret) > _MOST else ""
    forms = [_build_escaped_form(secret[:_MOST], more), _Form(data.hex(), data.hex())]
    if len(secret) >= _LONG:
        forms.append(_build_escaped_form(secret[:_HEAD], _MORE_OF_IT))
    for before in range(3):
        core = _encode_core(data, before)
        spellings = dict.fromkeys((core, core.replace("+", "-").replace("/", "_")))
        forms += [_Form(f"{_BASE64}{re.escape(text)}{_BASE64}={{0,2}}", text) for text in spellings]
    return forms


def _build_escaped_form(text: str, more: str) -> _Form:
    """The form of a text whose characters may be escaped. Letters and digits are escaped only if all of them are."""
    needle = max(re.split(r"[\W_]", text), key=len)
    return _Form("".join(map(_match_character, text)) + more, needle, len(text) // 2)


def _match_character(character: str) -> str:
    """A pattern for one character in every spelling that a server may echo it in."""
    code = ord(character)
    escapes = rf"(?:%(?:25)*|\\+u00|\\+x){code:02x}|&(?:amp;)?#(?:0*{code}|x0*{code:x});"
    named = {"&": "|&amp;", "<": "|&lt;", ">": "|&gt;", '"': "|&quot;", "'": "|&apos;"}.get(character, "")
    return rf"(?:\\*{re.escape(character)}|{escapes}{named})"


def _encode_core(data: bytes, before: int) -> str:
    """The part of a base64 text that this data determines if `before` bytes (modulo 3) precede it."""
    encoded = b64encode(b"\0" * before + data).decode()
    return encoded[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]


# --- quotes -----------------------------------------------------------------------------------------------------------

# This many matching letters and digits, ignoring all other characters, are a quote and not a coincidence.
_QUOTE = 16
_STEP = _QUOTE // 2
# A whole text that is shorter is a quote too, between other words.
_SHORTEST_QUOTE = 3
_NO_LETTER = r"[\W_]+"
# One character, or the escape of one as JSON writes it.
_CHARACTER = r"(?s)\\u([0-9a-fA-F]{4})|\\[nrtbfv0\"'/\\]|(.)"
_WORD = r"[^\s\"'`,;:()\[\]{}<>]+"
_SHORTEST_TOKEN = 6


def list_texts(prompt: Prompt) -> list[str]:
    """The content of a request: what users, tools and models said and thought, seals, and the arguments of calls."""
    texts = [prompt.system or "", prompt.user or "", *(prompt.metadata or {}).values()]
    for message in prompt.messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                texts += [*_list_strings(part.arguments), part.raw_arguments or ""]
            elif isinstance(part, (Text, Commentary, Refusal, Thought, ToolResult)):
                texts.append(part.text)
            elif isinstance(part, (ServerTool, UnknownPart)):
                texts.append(part.json)
            texts += [text for seal in part.seals for text in (seal.value, seal.entry or "")]
    return [text for text in texts if text]


def _list_strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [text for each in inner for text in _list_strings(each)]


def hide_quotes(text: str, texts: Sequence[str], keep: Iterable[str] = ()) -> str:
    """Replace by … whatever `text` quotes of `texts`: long passages, whole short texts, and numbers, names and other
    words that are not plain lower case. Case, spaces, punctuation and JSON's escapes do not matter. Words in `keep`
    stay.
    """
    letters, places = _skim(text)
    whole = "\0".join(re.sub(_NO_LETTER, "", source).casefold() for source in texts)
    spans = [(places[start][0], places[end - 1][1]) for start, end in _find_passages(letters, whole)]
    spans += _find_short_texts(letters, places, texts)
    spans += _find_tokens(text, texts, frozenset(keep))
    return _cut_out(text, sorted(spans))


def _skim(text: str) -> tuple[str, list[_Span]]:
    """The letters and digits of a text, case-folded, and the position of each."""
    letters: list[str] = []
    places: list[_Span] = []
    for found in re.finditer(_CHARACTER, text):
        character = chr(int(found[1], 16)) if found[1] else found[2] or ""
        for letter in character.casefold() if character.isalnum() else "":
            letters.append(letter)
            places.append(found.span())
    return "".join(letters), places


def _find_passages(letters: str, whole: str) -> Iterable[_Span]:
    """Every passage of at least `_QUOTE` letters that occurs in `whole`."""
    last = len(letters) - _QUOTE
    known: dict[int, bool] = {}
    for middle in range(0, len(letters) - _STEP + 1, _STEP):
        # Every passage of that length contains one of these pieces.
        if letters[middle : middle + _STEP] in whole:
            for start in range(max(middle - _STEP, 0), min(middle, last) + 1):
                if start not in known:
                    known[start] = letters[start : start + _QUOTE] in whole
                    if known[start]:
                        yield start, start + _QUOTE


def _find_short_texts(letters: str, places: Sequence[tuple[int, int]], texts: Sequence[str]) -> Iterable[_Span]:
    """Every occurrence of a whole short text that is not part of a longer word."""
    for short in {re.sub(_NO_LETTER, "", source).casefold() for source in texts if len(source) < 8 * _QUOTE}:
        start = letters.find(short) if _SHORTEST_QUOTE <= len(short) < 2 * _QUOTE else -1
        while start >= 0:
            end = start + len(short)
            first, last = places[start][0], places[end - 1][1]
            is_after_letter = start > 0 and places[start - 1][1] == first
            if not is_after_letter and (end == len(places) or places[end][0] != last):
                yield first, last
            start = letters.find(short, start + 1)


def _find_tokens(text: str, texts: Sequence[str], keep: frozenset[str]) -> Iterable[_Span]:
    for found in re.finditer(_WORD, text):
        token = found[0].strip(".!?…")
        is_plain = token[1:].lower() == token[1:] and not any(map(str.isdigit, token))
        is_word = len(token) < _SHORTEST_TOKEN or is_plain or token in keep
        if not is_word and any(token in source for source in texts):
            yield found.start(), found.start() + len(token)


def _cut_out(text: str, spans: Iterable[_Span]) -> str:
    pieces: list[str] = []
    end = 0
    for start, stop in spans:
        if stop <= end:
            continue
        between = text[end:start]
        # Passages with nothing but marks between them are one quote.
        if not pieces or re.sub(_NO_LETTER, "", between):
            pieces += [between, _CUT]
        end = stop
    return "".join([*pieces, text[end:]])
