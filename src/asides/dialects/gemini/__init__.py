"""Gemini's `POST …/models/{model}:generateContent` and `…:streamGenerateContent`."""

from __future__ import annotations

from asides.dialects.dialect import DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect("gemini", DialectFacts(seal_kinds=("thought_signature",), thinks_in_blocks=True))
