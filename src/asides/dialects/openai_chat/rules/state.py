"""The words for state that came back changed, incomplete, or from elsewhere. Only who issued the state can check it."""

from __future__ import annotations

from asides.dialects.rulebook import Rule

INVALID_SIGNATURE = Rule(
    kind="thinking_signature_invalid",
    text="messages.{place}.content.{number}: Invalid `signature` in `thinking` block",
    since="2025-02",
    source="anomalyco/opencode#6418; vybestack/llxprt-code#2335",
)
MODIFIED = Rule(
    kind="thinking_block_modified",
    text="messages.{place}.content.{number}: `thinking` or `redacted_thinking` blocks in the latest assistant message "
    "cannot be modified. These blocks must remain as they were in the original response.",
    since="2026-02-24",
    source="anomalyco/opencode#14716",
)
UNVERIFIED = Rule(
    kind="encrypted_reasoning_invalid",
    text="The encrypted content for item {name} could not be verified. Reason: Encrypted content could not be "
    "decrypted or parsed.",
    code="invalid_encrypted_content",
    since="2026-05-08",
    source="smallmain/vscode-unify-chat-provider#178",
)
UNDECRYPTED = Rule(
    kind="encrypted_reasoning_invalid",
    text="Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from "
    "a previous response.",
    code="invalid-argument",
    since="2026-07-18",
    source="Wei-Shaw/sub2api#4535",
)
# Real servers accept the rest and continue with less: only the stage refuses it.
NOT_WHOLE = Rule(
    kind=None,
    text="messages[{place}]: reasoning_details must come back whole, once, and in their order.",
    since="2025-11",
    source="openrouter.ai docs reasoning-tokens: the sequence must match that of the reply",
)
WITHOUT_DETAILS = Rule(
    kind=None,
    text="messages[{place}]: reasoning came back without its reasoning_details.",
    since="2026-06-25",
    source="OpenRouterTeam/ai-sdk-provider convert-to-openrouter-chat-messages.ts",
)
OTHER_THINKING = Rule(
    kind=None,
    text="messages[{place}]: the reasoning_content is not the one of this turn.",
    since="2026-08",
    source="docs.z.ai thinking-mode: exact and in order; api-docs.deepseek.com/guides/thinking_mode",
)
