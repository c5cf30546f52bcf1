"""The table of the fields."""

from __future__ import annotations

from asides.dialects import DIALECTS, find_facts
from asides.relay.translate.field_rules import FIELD_RULES, find_rule, split_fields


def test_the_table_knows_every_dialect() -> None:
    declared = {name for name in DIALECTS if find_facts(name).untranslatable}
    assert set(FIELD_RULES) | declared == set(DIALECTS)
    assert find_rule("gemini_interactions", "background").action == "refuse"
    assert find_rule("gemini_interactions", "service_tier").action == "quiet"
    assert find_rule("gemini_interactions", "safety_settings").action == "tell"
    assert split_fields("gemini", {"generationConfig": {"a": 1}, "b": 2}) == {"generationConfig.a": 1, "b": 2}
