"""The kinds of refusals (`ProviderError.kind`), and what a refusal names."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

Place: TypeAlias = tuple[str | int, ...]
"""A path in a request, such as `("messages", 3, "content", 0)`."""

StateKind: TypeAlias = Literal[
    "thinking_signature_invalid",
    "thinking_prefix_mismatch",
    "binding_control_unavailable",
    "compaction_signature_mismatch",
    "thinking_signature_missing",
    "thinking_text_missing",
    "thinking_block_modified",
    "thinking_must_lead",
    "thinking_order",
    "thinking_final_block",
    "thinking_present_while_disabled",
    "reasoning_item_orphaned",
    "reasoning_item_missing",
    "item_not_persisted",
    "encrypted_reasoning_invalid",
    "encrypted_reasoning_wrong_account",
    "encrypted_reasoning_unsupported",
    "previous_response_missing",
    "previous_response_forbidden",
    "reasoning_item_id_invalid",
    "reasoning_item_duplicate",
    "reasoning_content_nonempty",
    "thought_signature_missing",
    "thought_signature_invalid",
    "reasoning_content_required",
    "reasoning_field_rejected",
    "tool_result_missing",
    "tool_result_orphaned",
    "tool_turn_order",
    "tool_arguments_invalid",
    "empty_content",
    "role_alternation",
    "system_position",
]
SettingKind: TypeAlias = Literal[
    "thinking_mode_unsupported",
    "adaptive_unsupported",
    "between_tools_unsupported",
    "thinking_cannot_disable",
    "thinking_unsupported_model",
    "effort_unsupported_param",
    "effort_unsupported_value",
    "effort_thinking_conflict",
    "effort_tools_endpoint",
    "reasoning_params_conflict",
    "budget_too_small",
    "budget_exceeds_max_tokens",
    "budget_out_of_range",
    "sampling_with_thinking",
    "sampling_unsupported",
    "tool_choice_with_thinking",
    "tool_choice_unsupported",
    "prefill_unsupported",
    "prefill_with_thinking",
    "context_edit_needs_thinking",
    "summary_not_allowed",
    "stream_required",
    "unknown_param",
    "context_length",
    "opaque_provider_error",
]
RejectionKind: TypeAlias = StateKind | SettingKind
"""Why a provider refused: `ProviderError.kind`."""

STATE_KINDS: frozenset[RejectionKind] = frozenset(get_args(StateKind))
"""Something is wrong with what was sent back of earlier turns: repair the history."""
SETTING_KINDS: frozenset[RejectionKind] = frozenset(get_args(SettingKind))
"""Something is wrong with a setting of this request: change that one."""
KINDS: tuple[RejectionKind, ...] = (*get_args(StateKind), *get_args(SettingKind))


class Rejection(msgspec.Struct, frozen=True):
    """Why a provider refused, and what it names. Texts may quote the request, so the repr shows none."""

    kind: RejectionKind
    text: str = ""
    """The innermost message."""
    where: tuple[Place, ...] = ()
    ids: tuple[str, ...] = ()
    """Items and tool calls: `rs_…`, `fc_…`, `msg_…`, `call_…`, `toolu_…`."""
    names: tuple[str, ...] = ()
    """Parameters, fields, functions and models, as the message spells them; the parameter beside it first."""
    values: tuple[str, ...] = ()
    """The values that would be accepted, if the message lists them."""
    at_least: float | None = None
    at_most: float | None = None
    counted: float | None = None
    """The tokens that the server counted, where they were too many."""
    source: str = ""
    since: str = ""
    """Where and when the wording was reported."""

    def __repr__(self) -> str:
        return f"Rejection({self.kind!r}, where={self.where!r})"
