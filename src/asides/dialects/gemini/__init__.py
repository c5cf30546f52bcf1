"""Gemini's `POST …/models/{model}:generateContent` and `…:streamGenerateContent`."""

from __future__ import annotations

from asides.dialects.dialect import DialectFacts
from asides.dialects.lazy_dialect import lazy_dialect

dialect = lazy_dialect("gemini", DialectFacts(seal_kinds=()))
