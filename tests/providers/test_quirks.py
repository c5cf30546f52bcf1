"""Quirks of a host: names of fields as people type them, and no quirk that does not exist."""

from __future__ import annotations

import msgspec
import pytest

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
