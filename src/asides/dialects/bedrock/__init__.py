"""Converse, `POST /model/{model}/converse` and `…/converse-stream`: Amazon Bedrock's dialect for all its models."""

from __future__ import annotations

from asides.dialects.dialect import DialectCode, DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "bedrock",
    DialectFacts(
        reply_paths=("/converse", "/converse-stream"),
        # docs.aws.amazon.com bedrock API_runtime_Converse, 2026-11.
        request_fields=(
            *("additionalModelRequestFields", "additionalModelResponseFieldPaths", "guardrailConfig"),
            *("inferenceConfig", "messages", "outputConfig", "performanceConfig", "promptVariables", "requestMetadata"),
            *("serviceTier", "system", "toolConfig"),
        ),
        json_mode=False,
        seal_kinds=("signature", "redacted"),
        thinks_in_blocks=True,
        # "The toolConfig field must be defined when using toolUse and toolResult content blocks" (Converse, 2026-08).
        tools_field="toolConfig",
        joins_turns=True,
        forbids_calls=False,
        cache_since="2026-11-16",
        cache_source="docs.aws.amazon.com bedrock/userguide/prompt-caching: tools, then system, then messages",
    ),
    DialectCode("ConverseDecoder", "ConverseWriter", error_headers=True),
)
