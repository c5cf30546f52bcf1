"""What hosts of chat completions refuse: `check` yields every broken rule.

The common rules hold everywhere. A row names the further rule sets that its host enforces (`Quirks.enforces`).
chat_request: a request as the rules see it. messages: pairs, content and order. settings: efforts, switches, sampling.
returned_thinking: the thinking of earlier turns. gateways: spellings of gateways, and their upstreams. state: the words
for state that only its issuer can check. saved: what a file shows, and no request.
"""

from __future__ import annotations

from collections.abc import Iterator

from asides.dialects.openai_chat.rules import gateways, messages, returned_thinking, settings, state
from asides.dialects.openai_chat.rules.chat_request import ChatRequest, Check
from asides.dialects.openai_chat.rules.messages import PairWords
from asides.dialects.openai_chat.rules.saved import check_saved
from asides.dialects.rulebook import BrokenRule, Rule, WireRequest
from asides.providers.provider import Target

__all__ = ["RULES", "check", "check_saved"]

RULE_SETS: dict[str, Check] = {
    "known_fields": settings.check_known_fields,
    "reasoning_settings": settings.check_reasoning_settings,
    "unforced_while_thinking": settings.check_unforced,
    "switch_and_sampling": settings.check_switch_and_sampling,
    "not_disabled": settings.check_not_disabled,
    "thinking_switch": settings.check_thinking_switch,
    "asked_thinking_streamed": settings.check_thinking_streamed,
    "switch_values": settings.check_switch_values,
    "efforts_by_model": settings.check_efforts_by_model,
    "own_efforts": settings.check_own_efforts,
    "reasoning_modes": settings.check_reasoning_modes,
    "listed_efforts": settings.check_penalties,
    "template_efforts": settings.check_template_effort,
    "one_switch": settings.check_one_spelling,
    "levels_by_model": settings.check_levels,
    "no_web_search": settings.check_no_web_search,
    "no_system_role": messages.check_no_system_role,
    "text_content": messages.check_text_content,
    "pictures_since_2026_11": messages.check_pictures_2026,
    "system_first": messages.check_system_first,
    "leading_system": messages.check_system_role,
    "json_arguments": messages.check_arguments,
    "filled_messages": messages.check_blanks,
    "filled_chat": messages.check_chat_content,
    "filled_calls": messages.check_filled_calls,
    "short_ids": messages.check_short_ids,
    "named_calls": messages.check_named_calls,
    "no_developer": messages.check_no_developer,
    "one_channel": messages.check_channels,
    "user_query": messages.check_user_query,
    "asked": messages.check_asked,
    "alternating_users": messages.check_alternating_users,
    "template_without_system": messages.check_template_without_system,
    "content_elements": messages.check_elements,
    "strict_order": messages.check_order,
    "template_alternation": messages.check_alternation,
    "alternation_of_2025": messages.check_interleaved,
    "continued_message": messages.check_continued,
    "no_prefill": messages.check_prefill,
    "thinking_refused": returned_thinking.check_thinking_refused,
    "loop_thinking": returned_thinking.check_loop_thinking,
    "turn_thinking": returned_thinking.check_turn_thinking,
    "dated_thinking": returned_thinking.check_dated_thinking,
    "tool_turn_thinking": returned_thinking.check_tool_turns,
    "tool_turn_thinking_2026": returned_thinking.check_tool_turns_plain,
    "reasoning_field": returned_thinking.check_reasoning_field,
    "assistant_fields": returned_thinking.check_assistant_fields,
    "strict_messages": returned_thinking.check_strict_messages,
    "one_reasoning_spelling": gateways.check_one_reasoning_spelling,
    "one_thinking_level": gateways.check_one_thinking_level,
    "thinking_blocks": gateways.check_thinking_blocks,
    "signed_upstream": gateways.check_signed_upstream,
    "tool_turns_upstream": gateways.check_tool_turns_upstream,
    "forced_tools_upstream": gateways.check_forced_tools_upstream,
    "effort_or_config": gateways.check_effort_or_config,
    "call_signatures": gateways.check_call_signatures,
    "opaque_state": gateways.check_opaque,
}
PAIR_WORDS: dict[str, PairWords] = {
    "numbered_pairs": messages.NUMBERED_PAIRS,
    "one_pair_error": messages.ONE_PAIR_ERROR,
    "block_pairs": messages.BLOCK_PAIRS,
}
"""The words for unpaired calls and results, where they differ from the usual ones."""
GATEWAY_RULES = (
    gateways.ONE_SPELLING,
    gateways.EFFORT_OR_BUDGET,
    gateways.MANDATORY,
    gateways.CONTEXT,
    gateways.ONE_LEVEL,
)
"""Rules that a gateway checks itself. All others are its upstream's."""


def _list_rules() -> Iterator[Rule]:
    for module in (gateways, state, messages, settings, returned_thinking):
        for value in vars(module).values():
            if isinstance(value, Rule):
                yield value
            elif isinstance(value, PairWords):
                yield from (value.missing, value.orphaned, value.twice)


RULES = tuple(dict.fromkeys(_list_rules()))
"""Every rule, with its words, its date and its source."""


def check(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    """Yield every rule that the request breaks at this target, in the order in which the server checks."""
    asked, enforced = ChatRequest(request, target), target.facts.enforces
    for name in enforced:
        if name in RULE_SETS:
            yield from RULE_SETS[name](asked)
    words = next((PAIR_WORDS[name] for name in enforced if name in PAIR_WORDS), messages.USUAL_PAIRS)
    yield from messages.check_pairs(asked, words)
    yield from messages.check_content(asked)
