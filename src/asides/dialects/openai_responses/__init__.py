"""Responses, `POST /responses`: the dialect in which OpenAI's models show their thinking."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "openai_responses",
    DialectFacts(
        reply_paths=("/responses",),
        seal_kinds=("encrypted",),
        thinks_in_blocks=True,
        effort_updates=True,
        cache_since="2026-11-16",
        cache_source="developers.openai.com guides/prompt-caching: exact beginnings, with tools and schema; "
        "openrouter.ai model-migrations/gpt-6-astra: another effort changes the beginning",
    ),
    DialectCode("ResponsesDecoder", "ResponsesWriter", importer="import_items:import_items", errors="openai_chat"),
)
