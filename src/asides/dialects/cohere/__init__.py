"""Cohere's chat in its second version, `POST /v2/chat`."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "cohere",
    DialectFacts(
        reply_paths=("/chat",),
        seal_kinds=(),
        # docs.cohere.com reference/chat, 2026-11.
        request_fields=(
            *("citation_options", "documents", "frequency_penalty", "k", "logprobs", "max_tokens", "messages", "model"),
            *(
                "p",
                "presence_penalty",
                "priority",
                "response_format",
                "safety_mode",
                "seed",
                "stop_sequences",
                "stream",
            ),
            *("strict_tools", "temperature", "thinking", "tool_choice", "tools"),
        ),
    ),
    DialectCode("ChatDecoder", "ChatWriter"),
)
