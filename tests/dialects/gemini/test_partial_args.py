"""Arguments in pieces: every kind of value, paths of every form, long texts, and a call that broke off."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.gemini.decode import PartialArguments
from asides.dialects.gemini.wire import PartialArg


def put_together(*pieces: dict[str, Any]) -> Any:
    arguments = PartialArguments()
    for piece in pieces:
        assert arguments.add(msgspec.convert(piece, PartialArg))
    return json.loads(arguments.to_json(whole=True))


def test_every_kind_of_value() -> None:
    assert put_together(
        {"jsonPath": "$.text", "stringValue": ""},
        {"jsonPath": "$.whole", "numberValue": 2.0},
        {"jsonPath": "$.part", "numberValue": 2.5},
        {"jsonPath": "$.no", "boolValue": False},
        {"jsonPath": "$.nothing", "nullValue": None},
    ) == {"text": "", "whole": 2, "part": 2.5, "no": False, "nothing": None}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.a", {"a": "x"}),
        ("a", {"a": "x"}),
        ("$.a.b", {"a": {"b": "x"}}),
        ("$['a b'][\"c'd\"]", {"a b": {"c'd": "x"}}),
        ("$.a[1]", {"a": [None, "x"]}),
        ("$.a[0][0].b", {"a": [[{"b": "x"}]]}),
    ],
)
def test_paths(path: str, expected: Any) -> None:
    assert put_together({"jsonPath": path, "stringValue": "x"}) == expected


@pytest.mark.parametrize("path", ["$", "$..a", "$.a[", "$.a[?]", "$.a[99999999]"])
def test_paths_that_cannot_be_parsed(path: str) -> None:
    assert not PartialArguments().add(PartialArg(path, "x"))


def test_a_text_grows_only_where_more_was_announced() -> None:
    assert put_together(
        {"jsonPath": "$.a", "stringValue": "one", "willContinue": True},
        {"jsonPath": "$.a", "stringValue": " two"},
        {"jsonPath": "$.b", "stringValue": "old"},
        {"jsonPath": "$.b", "stringValue": "new"},
        {"jsonPath": "$.c", "stringValue": "cut", "willContinue": True},
        {"jsonPath": "$.d", "numberValue": 1},
    ) == {"a": "one two", "b": "new", "c": "cut", "d": 1}


def test_a_place_inside_something_else_changes_nothing() -> None:
    assert put_together({"jsonPath": "$.a[0]", "numberValue": 1}, {"jsonPath": "$.a.b", "numberValue": 2}) == {"a": [1]}


def test_a_long_text_is_joined_once() -> None:
    arguments = PartialArguments()
    for _ in range(50_000):
        arguments.add(PartialArg("$.text", "0123456789", will_continue=True))
    assert len(arguments.to_json(whole=True)) == 500_000 + len('{"text":""}')


def test_arguments_that_broke_off_do_not_parse() -> None:
    arguments = PartialArguments()
    arguments.add(PartialArg("$.a", "x"))
    arguments.merge({"b": 1})
    with pytest.raises(json.JSONDecodeError):
        json.loads(arguments.to_json(whole=False))


def test_empty_items_before_an_index_do_not_fill_the_memory() -> None:
    arguments = PartialArguments()
    added = [arguments.add(PartialArg(f"$.list{number}[10000]", "x")) for number in range(1_000)]
    assert added == [True] * 10 + [False] * 990
    assert not arguments.add(PartialArg("$.deep" + "[9999]" * 1_000, "x"))
    assert arguments.add(PartialArg("$.list0[3]", "y"))
    assert len(arguments.to_json(whole=True)) < 1_000_000


def test_items_one_after_the_other_are_not_limited() -> None:
    pieces = [{"jsonPath": f"$.items[{number}]", "numberValue": number} for number in range(5_000)]
    assert put_together(*pieces)["items"] == [*range(5_000)]
