"""Chat completions, `POST /chat/completions`: the dialect that most hosts speak."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "openai_chat",
    DialectFacts(
        reply_paths=("/chat/completions",),
        seal_kinds=("reasoning_details", "thought_signature"),
        refusals_as_text=True,
        cache_since="2026-11-16",
        cache_source="developers.openai.com guides/prompt-caching: exact beginnings, with tools and schema; "
        "other hosts alike",
    ),
    DialectCode("ChatDecoder", "ChatWriter", importer="import_messages:import_messages"),
)
