"""JSON that is still arriving: every prefix can be shown, every chunking gives the same, the end is strict."""

from __future__ import annotations

import itertools
import json
import sys
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from asides.wire.partial_json import MAX_DEPTH, PartialJson, _select_certain, partial

_SCALARS = (
    some.none()
    | some.booleans()
    | some.integers(-(2**70), 2**70)
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text()
    | some.sampled_from(["\U0001f600", '"\\/\b\f\n\r\t', "\\u0041", "é\u2028"])
)
_VALUES = some.recursive(
    _SCALARS, lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner), max_leaves=12
)


@some.composite
def documents(draw: some.DrawFn) -> str:
    """JSON as different writers write it: escaped or not, on one line or on many."""
    value = draw(_VALUES)
    return json.dumps(value, ensure_ascii=draw(some.booleans()), indent=draw(some.sampled_from([None, 2])))


def shown(text: str, cuts: list[int]) -> list[Any]:
    """What is shown after each piece, copied, since it is live."""
    document = PartialJson()
    seen: list[Any] = []
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    for start, end in itertools.pairwise(places):
        document.feed(text[start:end])
        seen.append(json.loads(json.dumps(document.value)))
    return seen


@settings(deadline=None)
@given(documents())
def test_the_whole_text_gives_the_value_that_a_strict_reader_gives(text: str) -> None:
    assert partial(text) == msgspec.json.decode(text)
    assert json.dumps(partial(text)) == json.dumps(msgspec.json.decode(text))


@settings(deadline=None)
@given(documents())
def test_every_prefix_can_be_shown_and_objects_only_grow(text: str) -> None:
    keys: set[str] = set()
    for end in range(len(text) + 1):
        value = partial(text[:end])
        if isinstance(value, dict):
            assert keys <= set(value)
            keys = set(value)


@settings(deadline=None)
@given(documents(), some.lists(some.integers(0, 200)))
def test_every_chunking_and_every_look_in_between_end_in_the_same_value(text: str, cuts: list[int]) -> None:
    assert shown(text, cuts)[-1:] == shown(text, [])[-1:]
    assert shown(text, list(range(len(text))))[-1:] == shown(text, [])[-1:]


@settings(deadline=None)
@given(some.text(alphabet='{}[]":,\\u0d8e1-+.tfnrualse \n\x00\ud800é', max_size=40), some.lists(some.integers(0, 40)))
def test_text_that_is_not_json_is_no_error_in_any_chunking(text: str, cuts: list[int]) -> None:
    whole, pieces = PartialJson(), PartialJson()
    whole.feed(text)
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    for start, end in itertools.pairwise(places):
        pieces.feed(text[start:end])
    assert (repr(whole.value), whole.complete) == (repr(pieces.value), pieces.complete)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("  \n", None),
        ("{", {}),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a":', {}),
        ('{"a": "', {"a": ""}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u00e', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude00', {"a": "x\U0001f600"}),
        ('{"a": "x\\\\', {"a": "x\\"}),
        ('{"a": -', {}),
        ('{"a": 12', {"a": 12}),
        ('{"a": 12.', {"a": 12}),
        ('{"a": 12.5e', {"a": 12.5}),
        ('{"a": tru', {}),
        ('{"a": true', {"a": True}),
        ("[1, [2, {", [1, [2, {}]]),
        ("[1,", [1]),
        ('{"a": 1} and then some', {"a": 1}),
        ('{"a": 1, b', {"a": 1}),
        ('{"a": 1, "a": 2', {"a": 2}),
        ("[1 2]", [1]),
        ("[1-2]", [1]),
        ("[truth]", []),
        ('["\\x"]', [""]),
        ('["a\nb"]', ["a"]),
        ("No JSON.", None),
        ('"half', "half"),
    ],
)
def test_the_value_of_every_prefix(text: str, value: Any) -> None:
    assert partial(text) == value
    assert shown(text, list(range(len(text))))[-1:] in ([value], [])


def test_it_says_when_the_value_is_whole() -> None:
    document = PartialJson()
    seen: list[bool] = []
    for piece in ('{"a"', ": [1]", "}", " ", "x"):
        document.feed(piece)
        seen.append(document.complete)
    assert seen == [False, False, True, True, False]


def test_reading_the_value_does_not_change_later_values() -> None:
    document = PartialJson()
    for piece in ("[", '"a', 'b"', ", 1", "2", ", tr", "ue", "]"):
        document.feed(piece)
        _ = document.value
        _ = document.value
    assert document.value == ["ab", 12, True]


def _steps(text: str, size: int) -> int:
    """How many lines of the reader run for a text in pieces: counted, since a clock would measure the neighbours."""
    document, count = PartialJson(), 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        if "partial_json" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for start in range(0, len(text), size):
            document.feed(text[start : start + size])
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("unit", ['{"a": "bcd"}, ', '"x\\n\\u00e9 y", ', "[[1, 2], 3], ", "-12.5e3, "])
def test_the_work_is_linear_in_the_text_however_it_is_cut(unit: str) -> None:
    short, long = "[" + unit * 50, "[" + unit * 200
    assert _steps(long, 3) < 4.4 * _steps(short, 3)


def _seconds(length: int) -> float:
    text = '{"a": "' + "x" * length + '"}'
    begun = time.process_time()
    document = PartialJson()
    for start in range(0, len(text), 16):
        document.feed(text[start : start + 16])
    assert len(document.value["a"]) == length
    return time.process_time() - begun


def test_a_long_string_in_small_pieces_is_joined_once() -> None:
    """A reader that joined at each piece would take sixteen times as long for four times the text."""
    assert min(_seconds(2_000_000) for _ in range(2)) < 9 * min(_seconds(500_000) for _ in range(3))


@settings(deadline=None)
@given(documents() | some.text(alphabet='["\\\\u0d8eE1bn \ud83d\ude00é\x00', max_size=30).map('["'.__add__))
def test_a_look_at_every_character_shows_what_one_look_shows(text: str) -> None:
    document = PartialJson()
    for end, character in enumerate(text, start=1):
        document.feed(character)
        assert document.value == partial(text[:end])


def test_a_look_at_every_piece_of_a_long_string_reads_each_character_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0

    def select(body: str) -> str:
        nonlocal read
        read += len(body)
        return _select_certain(body)

    monkeypatch.setattr("asides.wire.partial_json._select_certain", select)
    document = PartialJson()
    text = '{"a": "' + "x\\n\\u00e9" * 2_000
    for start in range(0, len(text), 5):
        document.feed(text[start : start + 5])
        assert document.snapshot() is not None
    assert document.value == {"a": "x\né" * 2_000}
    assert read < 3 * len(text)


def test_a_number_beyond_any_float_is_no_error() -> None:
    assert partial("1e400") is None
    assert partial("[1, 1e400, 2]") == [1]


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":', " [ "])
def test_what_is_nested_without_end_is_followed_to_a_bound(opening: str) -> None:
    document = PartialJson()
    document.feed(opening * 100_000)
    depth, value = 0, document.value
    while value:
        depth, value = depth + 1, value[0] if isinstance(value, list) else value["a"]
    assert depth <= MAX_DEPTH
    document.feed("]" * 100_000)
    assert not document.complete


def test_ordinary_nesting_is_followed() -> None:
    assert partial("[" * 300 + "1" + "]" * 300) is not None
    document = PartialJson()
    document.feed("[" * 300 + "1" + "]" * 300)
    assert document.complete
