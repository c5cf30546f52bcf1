"""What hosts of Messages refuse: `check(request, target)`.

words       every rule, as data
settings    thinking, effort, sampling, tools and limits, by the facts of the model
history     order of blocks, calls and results, and thinking in the wrong place
saved       signatures in a file whose text is gone

`target.facts.enforces` names the rule sets of a host: Claude's own, or those of hosts that serve other models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from asides.dialects.anthropic.rules import words
from asides.dialects.anthropic.rules.history import THOUGHTS, check_history, list_turns
from asides.dialects.anthropic.rules.saved import check_saved
from asides.dialects.anthropic.rules.settings import ClaudeRequest, check_settings
from asides.dialects.rulebook import BrokenRule, Rule, WireRequest
from asides.providers.provider import Target

RULES = words.RULES

__all__ = ["RULES", "check", "check_saved"]


def check(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    """Yield every rule that the request breaks at this target, in the order in which the server checks."""
    read = read_request(request, target)
    for name in target.facts.enforces:
        if name in _RULE_SETS:
            yield from _RULE_SETS[name](read)


def read_request(request: WireRequest, target: Target) -> ClaudeRequest:
    """Return the request as the rules see it. Betas are in a header, or at the clouds in the body."""
    in_header = request.headers.get("anthropic-beta", "").split(",")
    in_body = request.body.get("anthropic_beta")
    betas = frozenset(map(str.strip, in_header)) | frozenset(map(str, in_body if isinstance(in_body, list) else ()))
    return ClaudeRequest(request.body, target, betas=betas, today=request.today)


def check_claude(request: ClaudeRequest) -> Iterator[BrokenRule]:
    """Yield every rule of Claude's servers that a request breaks."""
    if request.body.get("thread") is not None:
        yield words.THREADS_UNSUPPORTED.broken("thread")
    yield from check_settings(request)
    yield from check_history(request)


def _check_tool_thinking(request: ClaudeRequest) -> Iterator[BrokenRule]:
    """While the model thinks, which it does unasked, each turn with calls must bring its thinking."""
    yield from _check_results(request, words.RESULT_ORPHANED)
    if request.thinking.get("type") == "disabled":
        return
    for turn in list_turns(request):
        kinds = {block.get("type") for block in turn.blocks}
        if turn.role == "assistant" and "tool_use" in kinds and not kinds & set(THOUGHTS):
            yield words.THINKING_REQUIRED.broken(f"messages[{turn.place}]")


def _check_numbered_errors(request: ClaudeRequest) -> Iterator[BrokenRule]:
    kind = request.thinking.get("type")
    if kind not in (None, "adaptive", "disabled"):
        yield words.TYPE_INVALID.broken("thinking.type", type=kind)
    for turn in list_turns(request):
        for number, block in enumerate(turn.blocks):
            if block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
                yield words.ARGUMENTS_INVALID.broken(turn.path(number), id=block.get("id"))
    yield from _check_results(request, words.RESULT_UNKNOWN)


def _check_results(request: ClaudeRequest, rule: Rule) -> Iterator[BrokenRule]:
    """Check that each result has its call before it."""
    called: set[str] = set()
    for turn in list_turns(request):
        for number, block in enumerate(turn.blocks):
            if block.get("type") == "tool_use":
                called.add(str(block.get("id")))
            elif block.get("type") == "tool_result" and str(block.get("tool_use_id")) not in called:
                yield rule.broken(turn.path(number), place=turn.write_place(number), id=block.get("tool_use_id"))


_RULE_SETS: dict[str, Callable[[ClaudeRequest], Iterator[BrokenRule]]] = {
    "claude_rules": check_claude,
    "tool_thinking": _check_tool_thinking,
    "numbered_errors": _check_numbered_errors,
}
