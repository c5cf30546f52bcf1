"""The words for stored responses, encrypted reasoning and accounts: only the server that holds them can check them."""

from __future__ import annotations

import msgspec

from asides.dialects.rulebook import Rule

NOT_VERIFIED = Rule(
    kind="encrypted_reasoning_invalid",
    text="The encrypted content {shown} could not be verified.",
    code="invalid_encrypted_content",
    since="2025-12-16",
    source="openai/codex#8100, #9045; Azure without a code: openai/openai-agents-python#2063, 2025-11-10",
)
NOT_DECRYPTED = Rule(
    kind="encrypted_reasoning_invalid",
    text="The encrypted content {shown} could not be verified. Reason: Encrypted content could not be decrypted or "
    "parsed.",
    code="invalid_encrypted_content",
    since="2026-05-08",
    source="smallmain/vscode-unify-chat-provider#178: inside of a stream that was opened with 200",
)
WRONG_ACCOUNT = Rule(
    kind="encrypted_reasoning_wrong_account",
    text="The encrypted content {shown} could not be verified. Reason: Encrypted content organization_id did not match "
    "the target organization.",
    code="invalid_encrypted_content",
    since="2026-03-06",
    source="openai/codex#13724",
)
MISSING = Rule(
    kind="reasoning_item_missing",
    text="Item '{name}' of type '{type}' was provided without its required 'reasoning' item: '{leader}'.",
    param="input",
    since="2025-10-11",
    source="mastra-ai/mastra#8738; continuedev/continue#12620",
)
NOT_PERSISTED = Rule(
    kind="item_not_persisted",
    text="Item with id '{name}' not found. Items are not persisted when `store` is set to false. Try again with "
    "`store` set to true, or remove this item from your input.",
    status=404,
    param="input",
    since="2025-07",
    source="can1357/oh-my-pi#41",
)
NOT_RETAINED = Rule(
    kind="item_not_persisted",
    text="Item with id '{name}' not found. Items are not persisted for Zero Data Retention organizations. Remove this "
    "item from your input and try again.",
    status=404,
    param="input",
    since="2025-04-25",
    source="openai/openai-agents-python#605",
)
RELAYED = Rule(
    kind="opaque_provider_error",
    text="Upstream request failed",
    status=502,
    since="2026-06-04",
    source="Wei-Shaw/sub2api#3038: hides an encrypted item that could not be verified",
)
EXPIRED = Rule(
    kind="item_not_persisted",
    text="Referenced reasoning item '{name}' was not found or has expired.",
    since="2026-09-11",
    source="can1357/oh-my-pi#11791",
)
UNVERIFIED = Rule(
    kind="summary_not_allowed",
    text="Your organization must be verified to generate reasoning summaries. Please go to: "
    "https://platform.openai.com/settings/organization/general and click on Verify Organization. If you just verified, "
    "it can take up to 15 minutes for access to propagate.",
    param="reasoning.summary",
    code="unsupported_value",
    since="2026-04-03",
    source="continuedev/continue#12031",
)
PREVIOUS_MISSING = Rule(
    kind="previous_response_missing",
    text="Previous response with id '{name}' not found.",
    param="previous_response_id",
    code="previous_response_not_found",
    since="2025-03",
    source="errors of the live service in public files; 400 or 404 in different captures",
)
PREVIOUS_FORBIDDEN = Rule(
    kind="previous_response_forbidden",
    text="Previous response cannot be used for this organization due to Zero Data Retention.",
    param="previous_response_id",
    since="2026-06-12",
    source="can1357/oh-my-pi#2341",
)
NOT_VERIFIED_UNCODED = msgspec.structs.replace(NOT_VERIFIED, code=None)
