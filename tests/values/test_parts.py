"""The arguments of calls, and how deeply JSON is nested."""

from __future__ import annotations

import json
import random
from typing import Any, get_args

import pytest

from asides.values.parts import Part, has_many_brackets, is_too_deep, read_arguments


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('"null"', {}),
        ('"\\"twice\\""', None),
        ("[1]", None),
        ("3", None),
        ('{"a": ', None),
        ('"not json"', None),
        ("[" * 100_000, None),
    ],
)
def test_arguments_are_an_object_or_do_not_parse(raw: str, arguments: dict[str, Any] | None) -> None:
    assert read_arguments(raw) == arguments


@pytest.mark.parametrize(
    ("document", "deep"),
    [
        (b"[" * 200 + b"]" * 200, False),
        (b"[" * 201 + b"]" * 201, True),
        (b'{"a":' * 201 + b"1" + b"}" * 201, True),
        (b"[" + b"[[],{}]," * 1000 + b"1]", False),
        (b'["' + b"[" * 1000 + b'"]', False),
        (b'["\\"' + b"[" * 1000 + b'\\\\", ' + b"[" * 200 + b"]" * 201, True),
        (b"[" * 100_000, True),
        (b"]" * 1000 + b"[" * 100, False),
        (b"", False),
    ],
    ids=["200", "201", "objects", "flat", "in a string", "after a string", "not closed", "not opened", "empty"],
)
def test_nesting_is_measured_outside_of_strings(document: bytes, deep: bool) -> None:
    assert is_too_deep(document) is deep


def test_texts_with_brackets_quotes_and_backslashes_add_no_level() -> None:
    rng = random.Random(7)
    odd = ["[", "]", "{", "}", '"', "\\", '\\"', "[[", '"[', "a", "é", "\n"]

    def draw_text() -> str:
        return "".join(rng.choices(odd, k=rng.randint(0, 6)))

    for _ in range(300):
        levels = rng.choice([190, 199, 200, 209, 230])  # lists in objects may count as a few levels less
        value: Any = draw_text()
        for _ in range(levels - 1):
            value = [draw_text(), value] if rng.random() < 0.5 else {draw_text(): value}
        document = json.dumps([value, *(draw_text() for _ in range(rng.choice([0, 2000])))]).encode()
        assert is_too_deep(document) is (levels > 200)


@pytest.mark.parametrize("size", [0, 10_000])
def test_brackets_are_counted_up_to_the_limit(size: int) -> None:
    for lists in (0, 100, 200, 201):
        for objects in (0, 100, 101, 200, 1000):
            document = b"[" * lists + b"x" * size + b"{" * objects
            assert has_many_brackets(document) is (lists + objects > 200)


@pytest.mark.parametrize("raw", ["[" * 300 + "]" * 300, '{"a":' * 300 + "1" + "}" * 300, '{"a": 1e999}', '{"\ud800"'])
def test_arguments_that_no_later_step_could_hold_are_not_parsed(raw: str) -> None:
    assert read_arguments(raw) is None


@pytest.mark.parametrize("kind", get_args(Part), ids=lambda kind: kind.__name__)
def test_every_part_has_seals_or_says_that_it_cannot(kind: type) -> None:
    """`part.seals` needs no list of the parts without any."""
    assert "seals" in kind.__struct_fields__ or getattr(kind, "seals", None) == ()  # type: ignore[attr-defined]
