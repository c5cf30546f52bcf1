"""Ollama's chat, `POST /api/chat`: a JSON document per line."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "ollama",
    DialectFacts(
        reply_paths=("/api/chat",),
        seal_kinds=(),
        returns_call_ids=False,
        # ollama 0.13, api/types.go (ChatRequest, GenerateRequest).
        request_fields=(
            *("context", "format", "images", "keep_alive", "logprobs", "messages", "model", "options", "prompt", "raw"),
            *("shift", "stream", "suffix", "system", "template", "think", "tools", "top_logprobs", "truncate"),
        ),
    ),
    DialectCode("ChatLineDecoder", "ChatLineWriter"),
)
