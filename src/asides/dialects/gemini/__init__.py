"""Gemini's `POST …/models/{model}:generateContent` and `…:streamGenerateContent`."""

from __future__ import annotations

from asides.dialects.dialect import DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "gemini",
    DialectFacts(
        seal_kinds=("thought_signature",),
        thinks_in_blocks=True,
        returns_call_ids=False,
        pairs_by_turn=True,
        blank_texts=True,
        budget_below_limit=False,
        cache_since="2026-11-16",
        cache_source="ai.google.dev gemini-api/docs/caching: requests with a common beginning; unsure: thinking",
    ),
)
