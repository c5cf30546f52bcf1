"""Ollama's own chat, `POST /api/chat`: a JSON document per line."""

from __future__ import annotations

from asides.dialects.dialect import DialectFacts, lazy_dialect

dialect = lazy_dialect("ollama", DialectFacts(seal_kinds=()))
