"""Ollama's chat, `POST /api/chat`: a JSON document per line."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "ollama",
    DialectFacts(reply_paths=("/api/chat",), seal_kinds=(), returns_call_ids=False),
    DialectCode("ChatLineDecoder", "ChatLineWriter"),
)
