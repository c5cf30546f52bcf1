"""Cohere's chat in its second version, `POST /v2/chat`."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "cohere", DialectFacts(reply_paths=("/chat",), seal_kinds=()), DialectCode("ChatDecoder", "ChatWriter")
)
