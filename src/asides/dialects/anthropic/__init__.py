"""Messages, `POST /v1/messages`: the dialect of Claude, which other hosts also use."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "anthropic",
    DialectFacts(
        reply_paths=("/messages",),
        # anthropic-sdk-python 2.8, types/beta, 2026-11. The clouds take the version of the dialect, and the betas, in
        # the body.
        request_fields=(
            *("anthropic_beta", "anthropic_version", "betas", "cache_control", "compaction", "container"),
            *("context_management", "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens"),
            *(
                "mcp_servers",
                "messages",
                "metadata",
                "model",
                "output_config",
                "output_format",
                "service_tier",
                "speed",
            ),
            *("stop_sequences", "stream", "system", "temperature", "thinking", "thread", "tool_choice", "tools"),
            *("top_k", "top_p", "user_profile_id", "workspace_id"),
        ),
        json_mode=False,
        seal_kinds=("signature", "redacted"),
        thinks_in_blocks=True,
        # "Requests which include `tool_use` or `tool_result` blocks must define tools" (api.anthropic.com, 2026-11).
        tools_field="tools",
        joins_turns=True,
        effort_updates=True,
        cache_since="2026-11-16",
        cache_source="platform.claude.com build-with-claude/prompt-caching and effort: a change is read again from "
        "there on, in the order tools, system, messages; tool_choice, thinking and the effort change the messages",
    ),
    DialectCode("MessagesDecoder", "MessagesWriter", importer="import_messages:import_messages", error_headers=True),
)
