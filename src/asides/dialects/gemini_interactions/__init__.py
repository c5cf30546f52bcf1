"""Gemini Interactions, `POST …/interactions`: a conversation as a list of steps, which the server can store."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "gemini_interactions",
    DialectFacts(
        reply_paths=("/interactions",),
        path_mark=r"/interactions(?:/|$)",
        # ai.google.dev gemini-api/docs/interactions, 2026-11.
        request_fields=(
            *("agent", "agent_config", "background", "cached_content", "continuation_token", "environment"),
            *("generation_config", "input", "labels", "model", "previous_interaction_id", "response_format"),
            *("response_mime_type", "response_modalities", "service_tier", "store", "stream", "system_instruction"),
            *("tools", "webhook_config"),
        ),
        stored_as="interaction",
        # In Google's own words (2026-01): rules.UNKNOWN_PREVIOUS.
        unknown_previous="Invalid turn token: {id}",
        seal_kinds=("step_signature",),
        seals_are_bytes=True,
        thinks_in_blocks=True,
        untranslatable=("agent_config", "background", "cached_content", "continuation_token", "environment"),
        routing_fields=("service_tier", "webhook_config"),
        cache_since="2026-11-18",
        cache_source="ai.google.dev gemini-api/docs/interactions: a stored conversation is cached between its turns; "
        "unsure: what changes the beginning",
    ),
    DialectCode("InteractionsDecoder", "InteractionsWriter", importer="import_steps:import_steps", lists="gemini"),
)
