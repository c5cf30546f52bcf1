"""Quirks of a host: names of fields as people type them, and no quirk that does not exist."""

from __future__ import annotations

import msgspec
import pytest

from asides.dialects import DIALECTS
from asides.providers.find import list_providers
from asides.providers.quirks import THINKING_FIELDS, Quirks, trim_names


@pytest.mark.parametrize(
    ("names", "trimmed"),
    [((), ()), (("a", " b ", "\tc\n"), ("a", "b", "c")), (("", "  "), ()), ((" ", "a"), ("a",))],
)
def test_padding_goes_and_a_blank_name_is_none(names: tuple[str, ...], trimmed: tuple[str, ...]) -> None:
    assert trim_names(names) == trimmed


@pytest.mark.parametrize(
    ("given", "read"), [((" musing ",), ("musing",)), ((), THINKING_FIELDS), (("", " "), THINKING_FIELDS)]
)
def test_thinking_is_always_read_from_some_field(given: tuple[str, ...], read: tuple[str, ...]) -> None:
    assert Quirks(thinking_in=given).thinking_in == read
    assert msgspec.convert({"thinking_in": list(given)}, Quirks).thinking_in == read


@pytest.mark.parametrize("table", [{"thinking_on": []}, {"ask_by": "shouting"}, {"pictures": "yes"}])
def test_a_quirk_that_does_not_exist_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError, match=next(iter(table))):
        msgspec.convert(table, Quirks)


SET_ELSEWHERE = {"heuristics", "tag_position", "fragmented_tags", "system_role", "calls_alone"}
"""Set by the caller, a model's rule, a refusal or the row that `asides probe` writes: their docstrings say by which."""


def test_every_other_quirk_is_set_by_a_row() -> None:
    plain = Quirks()
    rows = [row for provider in list_providers() for dialect in DIALECTS if (row := provider.with_dialect(dialect))]
    unset = [
        name
        for name in Quirks.__struct_fields__
        if all(getattr(row.quirks, name) == getattr(plain, name) for row in rows)
    ]
    assert set(unset) == SET_ELSEWHERE
