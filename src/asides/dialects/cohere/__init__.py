"""Cohere's chat in its second version, `POST /v2/chat`."""

from __future__ import annotations

from asides.dialects.dialect import DialectFacts, lazy_dialect

dialect = lazy_dialect("cohere", DialectFacts(seal_kinds=()))
