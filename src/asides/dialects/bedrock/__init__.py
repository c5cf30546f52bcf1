"""Converse, `POST /model/{model}/converse` and `…/converse-stream`: Amazon Bedrock's dialect for all its models."""

from __future__ import annotations

from asides.dialects.dialect import DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "bedrock",
    DialectFacts(
        json_mode=False,
        seal_kinds=("signature", "redacted"),
        thinks_in_blocks=True,
        cache_since="2026-11-16",
        cache_source="docs.aws.amazon.com bedrock/userguide/prompt-caching: tools, then system, then messages",
    ),
)
