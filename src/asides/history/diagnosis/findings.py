"""The values of a diagnosis: `Finding`, `Diagnosis`, and the dated facts behind each kind of refusal (`FACTS`).

Not here: how a fault is found (the rules beside this module), and what a provider's row says about its models.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from asides.values.json_form import JsonForm

HistoryFormat: TypeAlias = Literal["openai_chat", "anthropic", "openai_responses", "gemini", "asides"]
"""A format of histories: that of a dialect, or our own saved conversations."""

Effect: TypeAlias = Literal["refused", "ignored"]
"""refused: the request would fail. ignored: the model does not see it, and the request passes."""


class Finding(msgspec.Struct, JsonForm, frozen=True):
    """One part of a history, or one setting beside it, that the model does not take as it is."""

    kind: str | None
    """The kind of the refusal, as `ProviderError.kind` has it; None where it is none of those."""
    effect: Effect
    path: str
    """The place in the file: "messages[3].content[0]", or the name of a setting."""
    message: int | None
    """The number of the message, or the item, in the file."""
    part: int | None
    """The number of the part in its message."""
    detail: str
    """What is wrong."""
    repair: str
    """What the repaired history has instead; "" where nothing changes."""
    since: str = ""
    """The date of the fact: year-month(-day)."""
    source: str = ""

    def __str__(self) -> str:
        kind = f" ({self.kind})" if self.kind else ""
        return f"{self.path}: {self.effect}{kind}: {self.detail}"


class Diagnosis(msgspec.Struct, JsonForm, frozen=True):
    """What a model would refuse of a history, and the history that it takes."""

    _private = {"repaired": "both"}

    model: str
    """The model, as provider:model."""
    format: HistoryFormat
    findings: tuple[Finding, ...]
    repaired: Any
    """The document in the same format, repaired; equal to the given one if it was sound."""
    notes: tuple[str, ...] = ()
    """What could not be checked."""

    @property
    def sound(self) -> bool:
        """Whether the model would take the history as it is."""
        return not self.refused

    @property
    def refused(self) -> tuple[Finding, ...]:
        """The findings for which the request would fail."""
        return tuple(finding for finding in self.findings if finding.effect == "refused")

    @property
    def ignored(self) -> tuple[Finding, ...]:
        """The findings about parts that the model does not see. They stay in the repaired history."""
        return tuple(finding for finding in self.findings if finding.effect == "ignored")

    def __repr__(self) -> str:
        kinds = [finding.kind for finding in self.refused]
        return f"Diagnosis(model={self.model!r}, format={self.format!r}, sound={self.sound}, refused={kinds})"


class Fact(msgspec.Struct, frozen=True):
    """The date and the source of a rule that all hosts of a dialect share."""

    since: str
    source: str


_CLAUDE_THINKING = "platform.claude.com build-with-claude/extended-thinking"
_REASONING = "platform.openai.com/docs/guides/reasoning"
_SIGNATURES = "ai.google.dev/gemini-api/docs/thought-signatures"
_TOOL_USE = "platform.claude.com agents-and-tools/tool-use; platform.openai.com/docs/guides/function-calling"

# A fact of the provider's row wins over these. The reports are of people whose sessions were stuck.
FACTS: dict[str, Fact] = {
    "thinking_signature_invalid": Fact("2025-05", f"{_CLAUDE_THINKING}; opencode#6418; openclaw#107221"),
    "thinking_prefix_mismatch": Fact("2026-08", "platform.claude.com preserved-thinking"),
    "thinking_signature_missing": Fact("2025-05", f"{_CLAUDE_THINKING}; claude-code#63943"),
    "thinking_text_missing": Fact("2025-05", f"{_CLAUDE_THINKING}; the API's schema"),
    "thinking_block_modified": Fact("2025-05", f"{_CLAUDE_THINKING}; claude-code#12311; litellm#20698"),
    "thinking_must_lead": Fact("2025-02", f"{_CLAUDE_THINKING}; opencode#3077"),
    "thinking_order": Fact("2025-02", f"{_CLAUDE_THINKING}: a message with thinking begins with it"),
    "thinking_final_block": Fact("2025-05", "claude-code#63374; the API's error"),
    "thinking_present_while_disabled": Fact("2025-05", f"{_CLAUDE_THINKING}; the API's error"),
    "reasoning_item_orphaned": Fact("2025-06", f"{_REASONING}; continue#8933; vercel/ai#7099"),
    "reasoning_item_missing": Fact("2025-06", f"{_REASONING}; continue#12620"),
    "half_character": Fact("2025-06", "claude-code#2108: no low surrogate in string; opencode#13985"),
    "item_not_persisted": Fact("2025-06", f"{_REASONING}; opencode#7724; vercel/ai#7543"),
    "encrypted_reasoning_invalid": Fact("2025-12", f"{_REASONING}; openai/codex#8145"),
    "encrypted_reasoning_wrong_account": Fact("2025-12", f"{_REASONING}; openai/codex#8145"),
    "reasoning_item_id_invalid": Fact("2025-06", "the API's error: ids begin with rs, and have 64 characters at most"),
    "reasoning_item_duplicate": Fact("2025-12", "the API's error: Duplicate item found"),
    "reasoning_content_nonempty": Fact("2025-12", "the API's error: reasoning text is not taken back"),
    "thought_signature_missing": Fact("2025-11", f"{_SIGNATURES}; cline#7974"),
    "thought_signature_invalid": Fact("2025-11", f"{_SIGNATURES}; docs.apiyi.com"),
    "reasoning_content_required": Fact("2025-12", "api-docs.deepseek.com guides/thinking_mode; kimi-cli kosong"),
    "reasoning_field_rejected": Fact("2026-06", "agentjido/req_llm#772; the hosts' errors"),
    "tool_result_missing": Fact("2024-04", _TOOL_USE),
    "tool_result_orphaned": Fact("2024-04", _TOOL_USE),
    "tool_turn_order": Fact("2024-04", f"{_TOOL_USE}; ai.google.dev/gemini-api/docs/function-calling"),
    "tool_arguments_invalid": Fact("2024-04", f"{_TOOL_USE}; the hosts' errors"),
    "empty_content": Fact("2024-03", "the APIs' errors: text must not be blank"),
    "role_alternation": Fact("2024-03", "the APIs' errors: a conversation begins with the user; avante.nvim#2695"),
    "system_position": Fact("2024-03", "platform.claude.com api/messages: the system prompt is a field of its own"),
    "prefill_unsupported": Fact("2026-02", "platform.claude.com whats-new: no prefill from 4.6 on"),
    "prefill_with_thinking": Fact("2025-02", f"{_CLAUDE_THINKING}: no prefill while thinking"),
    "reasoning_params_conflict": Fact("2025-02", "danny-avila/LibreChat#6076; omeryasirkucuk/amx#66"),
    "context_edit_needs_thinking": Fact("2025-11", "anthropics/claude-code#11971"),
    "tool_ids": Fact("2024-04", "the APIs' errors: ids of calls are unique and have a fixed alphabet"),
    "summary_missing": Fact("2025-08", "the API's error: Missing required parameter: summary; newo-ether/Agora#141"),
    "tools_undefined": Fact("2024-04", "the API's error: a history with tool calls must define tools"),
}
"""By kind; the last three are of faults that have no kind."""
