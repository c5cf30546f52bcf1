"""JSON lines as Parquet: the types of the columns, and what has no one type."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.datasets.parquet_output import find_shape, merge_shapes


@pytest.mark.parametrize(
    ("left", "right", "merged"),
    [
        (1, 2.5, "float"),
        (1, "x", "json"),
        (True, 1, "json"),
        (None, "x", "text"),
        (1 << 70, 1, "json"),
        ([1], [None, 2.0], ["float"]),
        ([1], {"a": 1}, "json"),
        ({"a": 1}, {"b": "x"}, {"a": "int", "b": "text"}),
        ({}, {"a": None}, {"a": None}),
        ({str(n): 1 for n in range(60)}, {f"_{n}": 1 for n in range(60)}, "json"),
        ({str(n): 1 for n in range(200)}, None, "json"),
    ],
)
def test_types_are_merged(left: Any, right: Any, merged: Any) -> None:
    assert merge_shapes(find_shape(left), find_shape(right)) == merged
    assert merge_shapes(find_shape(right), find_shape(left)) == merged


def test_what_is_deep_is_json() -> None:
    deep: Any = 1
    for _ in range(50):
        deep = [deep]
    assert json.dumps(find_shape(deep)).count("[") == 6
