"""Messages, `POST /v1/messages`: the dialect of Claude, which other hosts also use."""

from __future__ import annotations

from asides.dialects.dialect import DialectFacts, make_lazy_dialect

dialect = make_lazy_dialect(
    "anthropic",
    DialectFacts(
        json_mode=False,
        seal_kinds=("signature", "redacted"),
        thinks_in_blocks=True,
        # "Requests which include `tool_use` or `tool_result` blocks must define tools" (api.anthropic.com, 2026-11).
        tools_field="tools",
        joins_turns=True,
    ),
)
