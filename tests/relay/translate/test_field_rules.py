"""The table of the fields."""

from __future__ import annotations

from asides.dialects import DIALECTS
from asides.relay.translate.field_rules import FIELD_RULES, split_fields


def test_the_table_knows_every_dialect() -> None:
    assert set(FIELD_RULES) == set(DIALECTS)
    assert split_fields("gemini", {"generationConfig": {"a": 1}, "b": 2}) == {"generationConfig.a": 1, "b": 2}
