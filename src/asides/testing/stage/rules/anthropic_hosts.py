"""Other models that speak Messages, each with rules of its own: DeepSeek's and MiniMax's.

Their thinking has no signature that anybody checks. Not here: Claude's rules (claude_settings, claude_history).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from asides.testing.stage.rules import DetailedRefusal, Rule, claude_texts
from asides.testing.stage.rules.claude_seals import THOUGHTS
from asides.testing.stage.rules.claude_settings import ClaudeRequest

HostRules: TypeAlias = Callable[[ClaudeRequest], Iterator[DetailedRefusal]]

THINKING_REQUIRED = Rule(
    kind="reasoning_content_required",
    text="The `content[].thinking` in the thinking mode must be passed back to the API.",
    since="2026-08-14",
    source="esengine/DeepSeek-Reasonix#8902: DeepSeek",
)
TYPE_INVALID = Rule(
    kind="thinking_mode_unsupported",
    text='invalid params, invalid thinking.type: "{type}" (allowed: adaptive, disabled) (2013)',
    since="2026-06-24",
    source="HenriGrimm/Minnow#364: MiniMax",
)
RESULT_UNKNOWN = Rule(
    kind="tool_result_orphaned",
    text="invalid params, tool result's tool id({id}) not found (2013)",
    since="2026-02-11",
    source="MiniMax-AI/MiniMax-M2#76: MiniMax",
)
ARGUMENTS_INVALID = Rule(
    kind="tool_arguments_invalid",
    text="invalid params, invalid function arguments json string, tool_call_id: {id} (2013)",
    since="2026-06-19",
    source="earendil-works/pi#5468: MiniMax",
)
RULES = tuple(value for value in globals().values() if isinstance(value, Rule))


def find_host(model: str) -> HostRules | None:
    """Return the rules of the maker of this model, if it has its own."""
    name = model.lower()
    if "deepseek-" in name:
        return _check_deepseek
    return _check_minimax if "minimax-" in name else None


def _check_deepseek(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    """While it thinks, which it does unasked, each turn with calls must bring its thinking."""
    yield from _check_results(request, claude_texts.RESULT_ORPHANED, None)
    if request.thinking.get("type") == "disabled":
        return
    for message in request.messages:
        kinds = {block.get("type") for block in message["content"]}
        if message.get("role") == "assistant" and "tool_use" in kinds and not kinds & set(THOUGHTS):
            yield THINKING_REQUIRED.refuse()


def _check_minimax(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    kind = request.thinking.get("type")
    if kind not in (None, "adaptive", "disabled"):
        yield TYPE_INVALID.refuse(_write_minimax, type=kind)
    for message in request.messages:
        for block in message["content"]:
            if block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
                yield ARGUMENTS_INVALID.refuse(_write_minimax, id=block.get("id"))
    yield from _check_results(request, RESULT_UNKNOWN, _write_minimax)


def _check_results(
    request: ClaudeRequest, rule: Rule, write: Callable[[int, str], bytes] | None
) -> Iterator[DetailedRefusal]:
    """Check that each result has its call before it."""
    called: set[object] = set()
    for place, message in enumerate(request.messages):
        for number, block in enumerate(message["content"]):
            if block.get("type") == "tool_use":
                called.add(block.get("id"))
            elif block.get("type") == "tool_result" and block.get("tool_use_id") not in called:
                where = f"messages.{place}.content.{number}"
                yield rule.refuse(write, place=where, id=block.get("tool_use_id"))


def _write_minimax(status: int, text: str) -> bytes:
    error = {"type": "bad_request_error", "message": text, "http_code": str(status)}
    return msgspec.json.encode({"type": "error", "error": error})
