"""Gemini's `POST …/models/{model}:generateContent` and `…:streamGenerateContent`."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "gemini",
    DialectFacts(
        reply_paths=(":generateContent", ":streamGenerateContent"),
        # ai.google.dev api/generate-content, 2026-11. Each name may also be in snake_case.
        request_fields=(
            *("cachedContent", "contents", "generationConfig", "labels", "model", "safetySettings", "serviceTier"),
            *("store", "systemInstruction", "toolConfig", "tools"),
        ),
        seal_kinds=("thought_signature", "thought_part"),
        thinks_in_blocks=True,
        returns_call_ids=False,
        pairs_by_turn=True,
        blank_texts=True,
        budget_below_limit=False,
        cache_since="2026-11-16",
        cache_source="ai.google.dev gemini-api/docs/caching: requests with a common beginning; unsure: thinking",
    ),
    DialectCode("ContentDecoder", "ContentWriter", importer="import_contents:import_contents"),
)
