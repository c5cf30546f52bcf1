"""The table of refusals: `explain` finds the kind of an error body, `read_rejection` also the names and limits in it.

The text decides before the status: relays answer bad requests with 429 or 502. Loaded when a provider refuses a
request; `refusals.toml` has the wordings.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, TypeAlias

import msgspec

from asides.providers.error_bodies import PAGE, ErrorMessage, find_innermost, list_error_messages
from asides.values.errors import ProviderError
from asides.values.rejections import Place, Rejection, RejectionKind
from asides.values.thinking import EFFORTS

OtherKind: TypeAlias = Literal["tools_undefined", "tools_unsupported", "schema_unsupported", "call_ids_refused"]
"""Refusals that can be repaired and concern neither reasoning state nor its settings."""


class Wording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One wording: a pattern for flattened texts. Every text that it matches contains one of the phrases."""

    phrases: tuple[str, ...]
    pattern: str
    except_status: tuple[int, ...] = ()


class Refusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Wordings of one kind with the date and the source of their report."""

    kind: RejectionKind
    date: str
    source: str
    wordings: tuple[Wording, ...]


class OtherRefusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Wordings of a refusal without a `RejectionKind`."""

    kind: OtherKind
    date: str
    source: str
    wordings: tuple[Wording, ...]


class RefusalTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`refusals.toml`. The first refusal that matches wins."""

    refusal: tuple[Refusal, ...]
    other: tuple[OtherRefusal, ...]


@cache
def load_refusals() -> RefusalTable:
    """Read `refusals.toml`."""
    import tomllib
    from importlib.resources import files

    text = (files("asides.providers") / "refusals.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), RefusalTable)


# --- the kind -----------------------------------------------------------------------------------------------------


def explain(
    body: bytes, *, message: str, code: str | None = None, status: int | None = None
) -> tuple[RejectionKind | None, str]:
    """Find the kind of a refusal and the message for people: a wrapper's words are followed by those inside it.

    The kind is None if the refusal concerns neither reasoning state nor settings.
    """
    messages = list_error_messages(body, message, code or "")
    found = _find(messages, status)
    if found is None:
        kind, inner = _classify_unknown(messages, status), find_innermost(messages)
    else:
        kind, inner = found[0].kind, found[1]
    if inner is None or (message and not inner.depth) or (inner.text in message and "{" not in message):
        return kind, message
    is_wrapper = "{" not in message and 0 < len(message) < _LONGEST_WRAPPER and message.rstrip(".") not in inner.text
    return kind, f"{message.strip().rstrip('.:')}: {inner.text}" if is_wrapper else inner.text


def read_rejection(error: ProviderError) -> Rejection | None:
    """Read what a refusal names; None if it has no kind."""
    kind = error.kind
    if kind is None:
        return None
    messages = list_error_messages(error.body, error._said[0], error.code or "") or list_error_messages("", str(error))
    found = _find(messages, error.status)
    if found is None or found[0].kind != kind:
        innermost = find_innermost(messages)
        return Rejection(kind, "" if innermost is None else innermost.text)
    refusal, message = found
    low, high, counted = find_limits(message.text)
    return Rejection(
        kind,
        message.text,
        find_places(message.text, message.param),
        find_ids(message.text),
        find_names(message.text, message.param),
        find_values(message.text),
        low,
        high,
        counted,
        refusal.source,
        refusal.date,
    )


def find_other_kind(text: str) -> OtherKind | None:
    """Find the kind of a refusal that has no `RejectionKind` and can be repaired; None if its words are unknown."""
    flat = flatten(ErrorMessage(text))
    return next((entry.kind for entry in load_refusals().other if _match(entry.wordings, flat, None)), None)


def _find(messages: list[ErrorMessage], status: int | None) -> tuple[Refusal, ErrorMessage] | None:
    # The innermost first: the outer ones describe the wrapper, the innermost one the request.
    for message in sorted(messages, key=lambda message: -message.depth):
        refusal = match_refusal(flatten(message), status)
        if refusal is not None:
            return refusal, message
    return None


def match_refusal(text: str, status: int | None = None) -> Refusal | None:
    """Find the refusal that has the words of a flattened text."""
    for refusal in load_refusals().refusal:
        if _match(refusal.wordings, text, status):
            other = _MISTAKEN.get(refusal.kind)
            return None if other is not None and re.search(other, text) else refusal
    return None


def _match(wordings: tuple[Wording, ...], text: str, status: int | None) -> bool:
    return any(
        any(map(text.__contains__, wording.phrases))
        and status not in wording.except_status
        and re.search(wording.pattern, text) is not None
        for wording in wordings
    )


# --- texts --------------------------------------------------------------------------------------------------------

_LONGEST_WRAPPER = 120
_LONGEST = 4000
# Ciphertexts.
_LONG_WORD = r"(\S{80})\S{80,}(\S{20})"
# Texts that match a kind by mistake: too many tokens per minute, not per request; unsupported input types.
_RATE = r"tokens per (?:min|day|hour)|\btpm\b|rate.?limit|quota|throttl|please wait|too many requests"
_MEDIA = r"\b(?:image|picture|audio|video|pdf|vision)"
_MISTAKEN: dict[RejectionKind, str] = {"unknown_param": _MEDIA, "context_length": _RATE}
_QUOTES = str.maketrans("", "", "\"'`´‘’“”«»\\")
# A quoted sentence is the user's: servers quote names and values.
_SENTENCE = (
    r"(?<![\w\"'`])(?:\"(?=\S)([^\"\n]{30,2000})\"|'(?=\S)([^'\n]{30,2000})'(?!\w)|`(?=\S)([^`\n]{30,2000})`"
    r"|“([^”]{30,2000})”)"
)
_SPEAKS = r"(?:error|errors|response|body|said|returned|upstream|exception|failed)\W{0,4}$"


def flatten(message: ErrorMessage) -> str:
    """The text that patterns match: the parameter and the code, then the message in lower case and without quotes."""
    text = re.sub(_LONG_WORD, r"\1…\2", message.text)[:_LONGEST]
    text = re.sub(_SENTENCE, _hide_sentence, text)
    if "&" in text:
        from html import unescape

        text = unescape(text)
    text = re.sub(r"\\[nrt]|\s+", " ", text).replace("’", "'").lower()
    text = text.replace("can't", "cannot").replace("n't", " not").translate(_QUOTES)
    place = f"[param={message.param.lower()}] [code={message.code.lower()}]".translate(_QUOTES)
    return f"{place} {text}"


def _hide_sentence(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 24, 0) : found.start()].lower()
    quoted = found[0][1:-1]
    if quoted.count(" ") < 4 or not before.strip() or re.search(_SPEAKS, before):
        return found[0]
    return " … "


# A refusal made only of these words gives no reason.
_EMPTY_WORDS = frozenset(
    (
        "a again an and api api_error argument bad bad_request bad_response_status_code be body capierror check "
        "code complete completed contains could details docs documentation encountered error errors failed for "
        "format from has http in incorrect invalid invalid_argument is issue message midstream no none not null "
        "occurred of openai_error param parameter parameters params please problem process processed processing "
        "provider request requests response returned see something sorry status the to try unable unexpected "
        "unknown upstream was we went while with wrong your "
    ).split()
)
# Codes that give the reason.
_TELLING_CODE = r"key|auth|quota|rate|model|balance|billing|credit|permission|not_found|filter|policy|safety|overload"
_HIDES = r"upstream (?:request failed|error)|midstream error"


def _classify_unknown(messages: list[ErrorMessage], status: int | None) -> RejectionKind | None:
    """The kind of a refusal without a known wording: opaque if the server gives no reason."""
    if any(message.code == PAGE or re.search(_TELLING_CODE, message.code.lower()) for message in messages):
        return None
    texts = [message.text.lower() for message in messages]
    if not all(_EMPTY_WORDS.issuperset(re.findall(r"[^\W\d]+", text)) for text in texts):
        return None
    hides = any(re.search(_HIDES, text) for text in texts) and (status is None or status < 400 or status in (500, 502))
    return "opaque_provider_error" if hides or status in (400, 422) else None


_MOST = 32

# --- places, ids and names ------------------------------------------------------------------------------------------

_ROOT = r"(?:messages|input|contents|context_management|thinking|output_config|generation_?config|tools|system|include)"
_PATH = rf"\b{_ROOT}(?:\.\w{{1,40}}|\.\*{{3}}|\[[\w*]{{0,8}}\]){{1,12}}"
_STEP = r"\w+|\*{3}"
_INDEX = r"(?i)(?:message |at )(?:at )?(?:index|position) (\d{1,6})"
_ITEM_ID = r"\b(?:rs|fc|msg|resp|call|toolu|tooluse|ctc|ws|cmp)_(?!ids?\b)[\w-]{1,120}"
_NAMES = (
    r"[`'\"]([A-Za-z][\w.\[\]:-]{1,60})[`'\"]",
    r"the ([A-Za-z][\w.]{2,60}) (?:parameter|field|argument)\b",
    r"(?:parameter|field|argument|name|key)(?: supplied)?:? ([A-Za-z][\w.]{2,60})",
    r"invalid ([a-z_]{3,40}):",
    r"model: ([a-z]+[A-Z]\w{1,40})\b",
    r"\b([a-z]{2,20}(?:_[a-z]{1,20}){1,4})\b",
)
_NO_NAME = frozenset(
    "is are supplied and or in for with to not of the specified must does cannot should will was has received".split()
)
_ADDRESS = r"https?://\S{1,400}"


def find_places(text: str, param: str = "") -> tuple[Place, ...]:
    """The paths in a request that a text names, such as `messages.3.content.0` and `input[4].id`."""
    places: list[Place] = [_split(found[0]) for found in re.finditer(_PATH, f"{param} {text}")]
    places += [("messages", int(found[1])) for found in re.finditer(_INDEX, text)]
    return tuple(dict.fromkeys(places))[:_MOST]


def _split(path: str) -> Place:
    return tuple(int(step) if step.isdecimal() else step for step in re.findall(_STEP, path))


def find_ids(text: str) -> tuple[str, ...]:
    """The ids of items, responses and tool calls that a text names."""
    return tuple(dict.fromkeys(re.findall(_ITEM_ID, text)))[:_MOST]


def find_names(text: str, param: str = "") -> tuple[str, ...]:
    """The parameters, fields, functions and models that a text names: the one beside it first, then as they come."""
    found: list[tuple[int, str]] = [(-1, param)] if param and " " not in param else []
    text = re.sub(_ADDRESS, " ", text)
    for pattern in _NAMES:
        found += [(match.start(1), match[1].rstrip(".:")) for match in re.finditer(pattern, text)]
    names = (name for _place, name in sorted(found))
    kept = (name for name in names if name.lower() not in _NO_NAME and not re.fullmatch(_ITEM_ID, name))
    return tuple(dict.fromkeys(kept))[:_MOST]


# --- values and limits ----------------------------------------------------------------------------------------------

_ITEM = r"[\"'`]?[A-Za-z][\w.-]{0,30}[\"'`]?(?: ?\([^)]{0,20}\))?"
_ITEMS = rf"{_ITEM}(?:(?:\s?,\s?(?:and |or )?|\s?\|\s?|\s(?:and|or)\s){_ITEM}){{0,15}}"
_LISTED = (
    r"(?i)(?:(?:supported|allowed|valid|accepted|permitted) (?:values|levels|types|efforts|options)(?: are| is)?:?"
    r"|(?:must|should) be one of:?|expected (?:one of|tags):?|supported:|allowed:|please use|restricted to"
    rf"|(?:(?:must|should) be|expected)(?= [\"'`])) {{0,2}}[\[(]?({_ITEMS})"
)
_AT_MOST_LEVEL = r"(?i)use effort [\"'`]?(\w{2,12})[\"'`]? or (?:below|lower)"
_ONLY = (
    r"(?i)only (?:the default \()?(\d[\d.]{0,7}?)\)? (?:value )?is (?:allowed|supported)"
    r"|may only be set to (\d[\d.]{0,7})|must be (\d[\d.]{0,7}) for this model"
)
_WORD = r"[A-Za-z][\w.-]{0,30}"
_NO_VALUE = frozenset({"and", "or", "integers", "the", "either", "a", "an", "for", "this", "that", "to", "is", "only"})

_ANNOUNCES_LIST = (
    r"(?i)\b(?:support(?:ed|s)|allowed|valid|accept(?:ed|s)|permitted|expected|available|one of|must be|should be"
    r"|choose|use)\b"
)
_EFFORT = r"(?<![\w-])[a-z]+(?![\w-])"

_NUMBER = r"(\d[\d.]{0,12})"
_RANGE = rf"(?i)(?:between|from|range\D{{0,12}}) ?\[?{_NUMBER}(?: ?,| and| to|-) ?{_NUMBER}|\[{_NUMBER}, {_NUMBER}\]"
_AT_LEAST = rf"(?i)(?:at least|greater than or equal to|>=|minimum(?: of| is)?|no less than) ?{_NUMBER}"
_AT_MOST = (
    r"(?i)(?:at most|less than or equal to|<=|maximum(?: context| prompt| input)?(?: length)?(?: of| is)?"
    rf"|not greater than|no more than|\d(?: tokens)? >|limit(?: of| is|:)?) ?{_NUMBER}(?![\d.]| ?\+)"
)
_COUNTED = (
    rf"(?i){_NUMBER} \+ \d|{_NUMBER}(?: tokens)? >|resulted in {_NUMBER} tokens|contains {_NUMBER} tokens"
    rf"|count (?:of |\(){_NUMBER}|\({_NUMBER} (?:of text input|in the messages)"
)


def find_values(text: str) -> tuple[str, ...]:
    """The values that would be accepted, as a text lists them: `'low', 'medium', and 'high'`."""
    only = re.search(_ONLY, text) or re.search(_AT_MOST_LEVEL, text)
    if only is not None:
        return (next(group for group in only.groups() if group).rstrip("."),)
    for listed in re.finditer(_LISTED, text):
        words = re.findall(_WORD, re.sub(r"\([^)]*\)", "", listed[1]))
        values = dict.fromkeys(word.rstrip(".") for word in words if word.lower() not in _NO_VALUE)
        if values:
            return tuple(values)
    return ()


def find_efforts(text: str, refused: str = "") -> tuple[str, ...]:
    """The efforts that a text offers instead of the refused one, "none" among them, in their usual order."""
    known = {*EFFORTS, "none"} - {refused}
    found = known.intersection(value.lower() for value in find_values(text))
    for rest in reversed(re.split(_ANNOUNCES_LIST, text)[1:]):
        found = found or known.intersection(re.findall(_EFFORT, rest.lower()))
    return tuple(effort for effort in ("none", *EFFORTS) if effort in found)


def find_limits(text: str) -> tuple[float | None, float | None, float | None]:
    """The smallest and the largest number that would be accepted, and the number of tokens that was counted."""
    between = re.search(_RANGE, text)
    if between is not None:
        low, high = [_to_number(group) for group in between.groups() if group]
    else:
        low, high = _search(_AT_LEAST, text), _search(_AT_MOST, text)
    return low, high, _search(_COUNTED, text)


def _search(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text)
    return None if found is None else _to_number(next(group for group in found.groups() if group))


def _to_number(text: str) -> float | None:
    try:
        return float(text.rstrip("."))
    except ValueError:
        return None
