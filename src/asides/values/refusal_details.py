"""What the text of a refusal names: places in the request, ids of items, parameters, accepted values and limits.

A repair reads them. The texts are a server's, so nothing in them is trusted: each search is bounded. Not here: the kind
of a refusal (rejections).
"""

from __future__ import annotations

import re
from typing import TypeAlias

from asides.values.thinking import EFFORTS

Place: TypeAlias = tuple[str | int, ...]

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
