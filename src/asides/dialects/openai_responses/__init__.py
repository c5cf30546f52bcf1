"""Responses, `POST /responses`: the dialect in which OpenAI's models show their thinking."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "openai_responses",
    DialectFacts(
        reply_paths=("/responses",),
        # openai-python 3.49, types/responses/response_create_params.py, 2026-11; and client_metadata, which the
        # vendor's own agent sends (Codex 0.166, 2026-11).
        stored_as="response",
        request_fields=(
            *("access_programs", "background", "client_metadata", "conversation", "context_management", "image"),
            *("include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model"),
            *("moderation", "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key"),
            *(
                "prompt_cache_options",
                "prompt_cache_retention",
                "reasoning",
                "safety_identifier",
                "service_tier",
                "store",
            ),
            *("stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p"),
            *("truncation", "user"),
        ),
        seal_kinds=("encrypted",),
        thinks_in_blocks=True,
        effort_updates=True,
        cache_since="2026-11-16",
        cache_source="developers.openai.com guides/prompt-caching: exact beginnings, with tools and schema; "
        "openrouter.ai model-migrations/gpt-6-astra: another effort changes the beginning",
    ),
    DialectCode("ResponsesDecoder", "ResponsesWriter", importer="import_items:import_items", errors="openai_chat"),
)
