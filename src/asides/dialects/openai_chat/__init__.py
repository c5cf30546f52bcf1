"""Chat completions, `POST /chat/completions`: the dialect that most hosts speak."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "openai_chat",
    DialectFacts(
        reply_paths=("/chat/completions",),
        # openai-python 3.49, types/chat/completion_create_params.py, and what other hosts add (2026-11).
        request_fields=(
            *("audio", "best_of", "chat_template_kwargs", "enable_thinking", "extra_body", "frequency_penalty"),
            *("function_call", "functions", "include_reasoning", "logit_bias", "logprobs", "max_completion_tokens"),
            *("max_tokens", "messages", "metadata", "min_p", "modalities", "model", "models", "n", "options"),
            *("parallel_tool_calls", "plugins", "prediction", "presence_penalty", "preset", "prompt_cache_key"),
            *(
                "prompt_mode",
                "provider",
                "reasoning",
                "reasoning_effort",
                "repetition_penalty",
                "response_format",
                "route",
            ),
            *("safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature"),
            *("thinking", "thinking_budget", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "transforms"),
            *("usage", "user", "verbosity", "web_search_options"),
        ),
        seal_kinds=("reasoning_details", "thought_signature"),
        refusals_as_text=True,
        cache_since="2026-11-16",
        cache_source="developers.openai.com guides/prompt-caching: exact beginnings, with tools and schema; "
        "other hosts alike",
    ),
    DialectCode("ChatDecoder", "ChatWriter", importer="import_messages:import_messages"),
)
