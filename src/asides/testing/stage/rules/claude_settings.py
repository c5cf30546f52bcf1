"""Which settings Claude's servers refuse: thinking, effort, budgets, sampling, forced tools, unknown fields.

A request is read in the shape of Messages; Bedrock's is brought into it first. Not here: the messages (claude_history),
and the words (claude_texts).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cached_property
from typing import Any

from asides.testing.stage.rules import DetailedRefusal, Wire
from asides.testing.stage.rules import claude_texts as texts
from asides.testing.stage.rules.claude_generations import Generation, find_generation

INTERLEAVED = "interleaved-thinking-2025-05-14"
BINDING_CONTROLS = "thinking-binding-controls-2026-08-01"
DISPLAY_UPDATES = "thinking-display-updates-2026-08-18"
PREFIX_CHECKED_SINCE = date(2026, 8, 31)
"""Accounts made on this day or later have the prefix of their thinking checked (platform.claude.com
preserved-thinking)."""
_ADAPTIVE_NAMED_SINCE = date(2026, 4, 25)
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_COUNTED = ("text", "thinking", "content", "input")
_SAMPLING = ("temperature", "top_p", "top_k")
# The fields of a request, of thinking and of blocks: anthropic-sdk-python 2.8, types/beta, 2026-11. The clouds take the
# version of the dialect, and the betas, in the body.
_FIELDS = frozenset({
    "anthropic_beta", "anthropic_version", "betas", "cache_control", "compaction", "container", "context_management",
    "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens", "mcp_servers", "messages",
    "metadata", "model", "output_config", "output_format", "service_tier", "speed", "stop_sequences", "stream",
    "system", "temperature", "thinking", "thread", "tool_choice", "tools", "top_k", "top_p", "user_profile_id",
    "workspace_id",
})  # fmt: skip
_THINKING_FIELDS = {
    "enabled": frozenset({"type", "budget_tokens", "display", "block_binding"}),
    "adaptive": frozenset({"type", "display", "block_binding"}),
    "disabled": frozenset({"type"}),
    "between_tools": frozenset({"type"}),
}


class ClaudeRequest:
    """One request, as the rules look at it."""

    def __init__(
        self,
        body: Wire,
        *,
        model: str,
        account: str,
        betas: frozenset[str],
        today: date,
        is_old_account: bool,
        needs_limit: bool = True,
    ) -> None:
        self.body = body
        self.model = model
        self.account = account
        self.betas = betas
        self.today = today
        self.is_old_account = is_old_account
        """Whether the account is from before the day on which the prefix began to be checked."""
        self.needs_limit = needs_limit
        """Whether `max_tokens` must be given."""
        self.generation: Generation | None = find_generation(model)
        self.messages = [_to_blocks(message) for message in body.get("messages") or []]

    @cached_property
    def thinking(self) -> Wire:
        """The settings for thinking; {} if there are none."""
        found = self.body.get("thinking")
        return found if isinstance(found, dict) else {}

    @cached_property
    def thinks(self) -> bool:
        """Whether the model thinks before it answers."""
        kind = self.thinking.get("type")
        if kind is None:
            return self.generation is not None and self.generation.thinks_unasked
        return kind not in ("disabled", "between_tools")

    @property
    def hides_thinking(self) -> bool:
        """Whether the reply leaves the text of its thinking out."""
        display = self.thinking.get("display")
        if display is None:
            return self.generation is not None and self.generation.hides_thinking
        return bool(display == "omitted")

    @property
    def effort(self) -> str | None:
        """The effort that the request names."""
        found = self.body.get("output_config")
        return found.get("effort") if isinstance(found, dict) else None

    @property
    def checks_prefix(self) -> bool:
        """Whether thinking holds only after the conversation that it was made in."""
        generation = self.generation
        if generation is None or not generation.prefix_bound:
            return False
        is_new = not self.is_old_account and self.today >= PREFIX_CHECKED_SINCE
        return generation.prefix_bound_for_all or is_new

    @property
    def drops_unbound(self) -> bool:
        """Whether the request asks to drop thinking of another conversation, instead of refusing it."""
        binding = self.thinking.get("block_binding")
        return isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "drop_block"


def _to_blocks(message: Wire) -> Wire:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    return {**message, "content": blocks}


def check_settings(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    """Yield every rule that the settings of a request break."""
    body = request.body
    yield from (texts.EXTRA_INPUT.refuse(field=name) for name in body if name not in _FIELDS)
    if request.needs_limit and not isinstance(body.get("max_tokens"), int):
        yield texts.MAX_TOKENS_MISSING.refuse()
    yield from _check_thinking(request)
    yield from _check_effort(request)
    yield from _check_sampling(request)
    yield from _check_forced_tool(request)
    yield from _check_context_edits(request)
    yield from _check_length(request)


def _check_thinking(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    thinking, generation = request.thinking, request.generation
    if not thinking:
        return
    kind = thinking.get("type")
    known = _THINKING_FIELDS.get(str(kind))
    if known is None:
        yield texts.TYPE_UNKNOWN.refuse(type=kind)
        return
    if generation is not None:
        yield from _check_type(str(kind), request.model, generation)
    if "block_binding" in thinking and BINDING_CONTROLS not in request.betas:
        yield texts.BINDING_UNAVAILABLE.refuse()
    yield from (texts.EXTRA_INPUT.refuse(field=f"thinking.{kind}.{name}") for name in thinking if name not in known)
    if thinking.get("display") == "updates" and DISPLAY_UPDATES not in request.betas:
        yield texts.EXTRA_INPUT.refuse(field=f"thinking.{kind}.display")
    if kind != "enabled":
        return
    budget, limit = thinking.get("budget_tokens"), request.body.get("max_tokens")
    if not isinstance(budget, int):
        yield texts.BUDGET_MISSING.refuse()
    elif budget < 1024:
        yield texts.BUDGET_SMALL.refuse()
    elif isinstance(limit, int) and budget >= limit and INTERLEAVED not in request.betas:
        yield texts.BUDGET_LARGE.refuse()


def _check_type(kind: str, model: str, generation: Generation) -> Iterator[DetailedRefusal]:
    if kind in generation.types:
        return
    if not generation.types:
        if kind != "disabled":
            yield texts.THINKING_UNSUPPORTED.refuse(model=model)
        return
    match kind:
        case "enabled":
            yield texts.ENABLED_UNSUPPORTED.refuse()
        case "adaptive":
            yield texts.ADAPTIVE_UNSUPPORTED.refuse()
        case "between_tools":
            yield texts.BETWEEN_TOOLS_UNSUPPORTED.refuse()
        case _:
            only_between = "between_tools" in generation.types
            yield (texts.ONLY_BETWEEN_TOOLS if only_between else texts.CANNOT_DISABLE).refuse()


def _check_effort(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    generation, asked = request.generation, request.effort
    efforts: list[tuple[int | None, Any]] = [(None, asked), *_list_later_efforts(request)]
    before = asked
    for place, effort in efforts:
        if effort is None:
            continue
        if effort not in _EFFORTS:
            yield texts.EFFORT_UNKNOWN.refuse()
            continue
        if generation is None:
            continue
        if not generation.efforts:
            yield texts.EFFORT_UNSUPPORTED.refuse()
        elif effort not in generation.efforts:
            yield texts.EFFORT_LEVEL.refuse(effort=effort, levels=", ".join(sorted(generation.efforts)))
        most = generation.most_effort_without_thinking
        if not request.thinks and most is not None and _EFFORTS.index(effort) > _EFFORTS.index(most):
            yield texts.EFFORT_WITHOUT_THINKING.refuse(effort=effort)
        if place is not None and request.thinking.get("type") == "between_tools" and effort != (before or "high"):
            yield texts.EFFORT_CHANGED.refuse(message=f"messages.{place}", effort=effort, before=before or "high")
        before = effort


def _list_later_efforts(request: ClaudeRequest) -> Iterator[tuple[int, Any]]:
    """Yield the efforts that messages of the system set from their place on."""
    for place, message in enumerate(request.messages):
        config = message.get("output_config")
        if isinstance(config, dict) and config.get("effort") is not None:
            yield place, config["effort"]


def _check_sampling(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    body, generation = request.body, request.generation
    given = [name for name in _SAMPLING if body.get(name) is not None]
    if generation is not None and not generation.takes_sampling:
        yield from (texts.SAMPLING_DEPRECATED.refuse(name=name) for name in given)
        return
    if generation is not None and generation.one_of_temperature_and_top_p and {"temperature", "top_p"} <= set(given):
        yield texts.SAMPLING_BOTH.refuse()
    if not request.thinks:
        return
    if "temperature" in given and body["temperature"] != 1:
        yield texts.TEMPERATURE.refuse()
    if "top_k" in given:
        yield texts.TOP_K.refuse()
    if "top_p" in given and not 0.95 <= float(body["top_p"]) <= 1:
        yield texts.TOP_P.refuse()


def _check_forced_tool(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    choice = request.body.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") not in ("any", "tool"):
        return
    if request.generation is not None and not request.generation.forced_tools:
        yield texts.FORCED_TOOL_NEVER.refuse()
    if request.thinking.get("type") == "enabled":
        yield texts.FORCED_TOOL.refuse()


def _check_context_edits(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    management = request.body.get("context_management") or {}
    for number, edit in enumerate(management.get("edits") or []):
        kind = str(edit.get("type"))
        if kind.startswith("clear_thinking") and not request.thinks:
            or_adaptive = " or adaptive" if request.today >= _ADAPTIVE_NAMED_SINCE else ""
            yield texts.CLEAR_THINKING.refuse(or_adaptive=or_adaptive)
        trigger = edit.get("trigger") or {}
        if kind.startswith("compact_") and trigger.get("value", 50_000) < 50_000:
            yield texts.TRIGGER_SMALL.refuse(number=number)


def _check_length(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    if request.generation is None:
        return
    tokens, limit = count_words([request.body.get("system"), request.messages]), request.generation.context
    asked = request.body.get("max_tokens")
    if tokens > limit:
        yield texts.PROMPT_LONG.refuse(tokens=tokens, limit=limit)
    elif isinstance(asked, int) and tokens + asked > limit:
        yield texts.SUM_LONG.refuse(tokens=tokens, max_tokens=asked, limit=limit)


def count_words(value: Any) -> int:
    """Count the words of all texts in a value, as the stage counts tokens."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, dict):
        value = [inner for name, inner in value.items() if name in _COUNTED]
    return sum(map(count_words, value)) if isinstance(value, list) else 0
