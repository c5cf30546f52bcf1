"""The facts about vendors' batches: each has its date and source, and holds for its own dialects alone."""

from __future__ import annotations

from decimal import Decimal

import pytest

from asides.providers.batch_facts import find_batch_facts, require_batch_facts
from asides.providers.find import find_target
from asides.values.errors import Unsupported

MODELS = ("openai:gpt-4.1", "openai-responses:gpt-5.2", "anthropic:claude-opus-5-5", "google:gemini-3-flash-preview")


@pytest.mark.parametrize("model", MODELS)
def test_every_fact_has_its_date_and_source(model: str) -> None:
    facts = find_batch_facts(find_target(model))
    assert facts is not None
    assert facts.since >= "2026-11-16"
    assert "/" in facts.source
    assert facts.price == Decimal("0.5")
    assert facts.most_requests >= 1000
    assert facts.most_inline_bytes <= facts.most_bytes


def test_another_dialect_of_the_same_provider_has_none() -> None:
    with pytest.raises(Unsupported, match="google-openai has no batches"):
        require_batch_facts(find_target("google-openai:gemini-3-flash-preview"))
