"""Gemini's `POST …/models/{model}:generateContent` and `…:streamGenerateContent`."""

from __future__ import annotations

from asides.dialects.dialect import DialectFacts, lazy_dialect

dialect = lazy_dialect("gemini", DialectFacts(seal_kinds=()))
