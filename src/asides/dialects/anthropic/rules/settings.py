"""Which settings Claude's servers refuse: thinking, effort, budgets, sampling, forced tools, unknown fields."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cached_property
from typing import Any

from asides.dialects import find_facts
from asides.dialects.anthropic.encode import INTERLEAVED, UPDATES
from asides.dialects.anthropic.rules import words
from asides.dialects.anthropic.wire import SAMPLING
from asides.dialects.rulebook import BrokenRule, Wire, as_object, as_objects
from asides.providers.provider import ModelRule, Target

BINDING_CONTROLS = "thinking-binding-controls-2026-08-01"
"""The beta for `thinking.block_binding`."""
_ADAPTIVE_NAMED_SINCE = date(2026, 4, 25)
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_COUNTED = ("text", "thinking", "content", "input")
_MAX_STRICT_TOOLS = 20
_MAX_UNIONS = 16
# The fields of thinking: anthropic-sdk-python 2.8, types/beta, 2026-11.
_THINKING_FIELDS = {
    "enabled": frozenset({"type", "budget_tokens", "display", "block_binding"}),
    "adaptive": frozenset({"type", "display", "block_binding"}),
    "disabled": frozenset({"type"}),
    "between_tools": frozenset({"type"}),
}


class ClaudeRequest:
    """A request in the shape of Messages, as Claude's rules see it."""

    def __init__(
        self, body: Wire, target: Target, *, betas: frozenset[str], today: date, needs_limit: bool = True
    ) -> None:
        """`needs_limit`: whether `max_tokens` must be given."""
        self.body = body
        self.target = target
        self.betas = betas
        self.today = today
        self.needs_limit = needs_limit
        self.messages = [_to_blocks(message) for message in as_objects(body.get("messages"))]

    @property
    def rule(self) -> ModelRule | None:
        """The facts of the model; None if only the rules of all models hold."""
        found = self.target.rule
        return None if found.assumed or found.thinking == "unknown" else found

    @cached_property
    def thinking(self) -> Wire:
        """The settings for thinking; {} if there are none."""
        return as_object(self.body.get("thinking"))

    @cached_property
    def thinks(self) -> bool:
        """Whether the model is known to think before it answers."""
        kind = self.thinking.get("type")
        if kind is None:
            return self.rule is not None and self.rule.default == "on"
        return kind not in ("disabled", "between_tools")

    @property
    def is_off(self) -> bool:
        """Whether the model is known not to think before it answers."""
        return not self.thinks and (bool(self.thinking) or self.rule is not None)

    @property
    def hides_thinking(self) -> bool:
        """Whether the reply leaves the text of its thinking out."""
        display = self.thinking.get("display")
        if display is None:
            return self.rule is not None and self.rule.display == "omitted"
        return bool(display == "omitted")


def _to_blocks(message: Wire) -> Wire:
    content = message.get("content")
    return {
        **message,
        "content": [{"type": "text", "text": content}] if isinstance(content, str) else as_objects(content),
    }


def check_settings(request: ClaudeRequest) -> Iterator[BrokenRule]:
    """Yield every rule that the settings of a request break."""
    body, known = request.body, find_facts("anthropic").request_fields
    yield from (words.EXTRA_INPUT.broken(name, field=name) for name in body if name not in known)
    if request.needs_limit and not isinstance(body.get("max_tokens"), int):
        yield words.MAX_TOKENS_MISSING.broken("max_tokens")
    yield from _check_thinking(request)
    yield from _check_effort(request)
    yield from _check_sampling(request)
    yield from _check_forced_tool(request)
    yield from _check_tools(request)
    yield from _check_context_edits(request)
    yield from _check_length(request)


def _check_thinking(request: ClaudeRequest) -> Iterator[BrokenRule]:
    thinking = request.thinking
    if not thinking:
        return
    kind = str(thinking.get("type"))
    known = _THINKING_FIELDS.get(kind)
    if known is None:
        yield words.TYPE_UNKNOWN.broken("thinking.type", type=kind)
        return
    if request.rule is not None:
        yield from _check_type(kind, request.target.model, request.rule)
    if "block_binding" in thinking and BINDING_CONTROLS not in request.betas:
        yield words.BINDING_UNAVAILABLE.broken("thinking.block_binding", type=f".{kind}")
    for name in thinking:
        if name not in known or (name == "display" and thinking[name] == "updates" and UPDATES not in request.betas):
            yield words.EXTRA_INPUT.broken(f"thinking.{name}", field=f"thinking.{kind}.{name}")
    if kind != "enabled":
        return
    budget, limit = thinking.get("budget_tokens"), request.body.get("max_tokens")
    if not isinstance(budget, int):
        yield words.BUDGET_MISSING.broken("thinking.budget_tokens")
    elif budget < 1024:
        yield words.BUDGET_SMALL.broken("thinking.budget_tokens")
    elif isinstance(limit, int) and budget >= limit and INTERLEAVED not in request.betas:
        yield words.BUDGET_LARGE.broken("thinking.budget_tokens")


def _check_type(kind: str, model: str, rule: ModelRule) -> Iterator[BrokenRule]:
    if kind in rule.forms:
        return
    if rule.thinking == "never":
        if kind != "disabled":
            yield words.THINKING_UNSUPPORTED.broken("thinking", model=model)
        return
    off = words.ONLY_BETWEEN_TOOLS if "between_tools" in rule.forms else words.CANNOT_DISABLE
    yield {
        "enabled": words.ENABLED_UNSUPPORTED,
        "adaptive": words.ADAPTIVE_UNSUPPORTED,
        "between_tools": words.BETWEEN_TOOLS_UNSUPPORTED,
    }.get(kind, off).broken("thinking.type")


def _check_effort(request: ClaudeRequest) -> Iterator[BrokenRule]:
    rule, before = request.rule, None
    for path, effort in _list_efforts(request):
        if effort not in _EFFORTS:
            yield words.EFFORT_UNKNOWN.broken(path)
            continue
        if rule is None:
            continue
        if rule.efforts is not None and effort not in rule.efforts:
            levels = ", ".join(sorted(rule.efforts))
            yield (words.EFFORT_LEVEL if rule.efforts else words.EFFORT_UNSUPPORTED).broken(
                path, effort=effort, levels=levels
            )
        most = rule.max_effort_while_off
        if request.is_off and most is not None and _EFFORTS.index(effort) > _EFFORTS.index(most):
            yield words.EFFORT_WITHOUT_THINKING.broken(path, effort=effort)
        is_later = path.startswith("messages")
        if is_later and request.thinking.get("type") == "between_tools" and effort != (before or "high"):
            place = path.partition("]")[0].replace("[", ".")
            yield words.EFFORT_CHANGED.broken(path, message=place, effort=effort, before=before or "high")
        before = effort


def _list_efforts(request: ClaudeRequest) -> Iterator[tuple[str, Any]]:
    """Yield the effort of the request, and those that messages of the system set from their place on."""
    for path, holder in (
        ("", request.body),
        *((f"messages[{place}].", message) for place, message in enumerate(request.messages)),
    ):
        effort = as_object(holder.get("output_config")).get("effort")
        if effort is not None:
            yield f"{path}output_config.effort", effort


def _check_sampling(request: ClaudeRequest) -> Iterator[BrokenRule]:
    body, rule = request.body, request.rule
    given = [name for name in SAMPLING if body.get(name) is not None]
    if rule is not None and set(SAMPLING) <= set(rule.refuses):
        yield from (words.SAMPLING_DEPRECATED.broken(name, name=name) for name in given)
        return
    if rule is not None and rule.temperature_or_top_p and {"temperature", "top_p"} <= set(given):
        yield words.SAMPLING_BOTH.broken("top_p")
    if not request.thinks:
        return
    if "temperature" in given and body["temperature"] != 1:
        yield words.TEMPERATURE.broken("temperature")
    if "top_k" in given:
        yield words.TOP_K.broken("top_k")
    if "top_p" in given and not 0.95 <= float(body["top_p"]) <= 1:
        yield words.TOP_P.broken("top_p")


def _check_forced_tool(request: ClaudeRequest) -> Iterator[BrokenRule]:
    if as_object(request.body.get("tool_choice")).get("type") not in ("any", "tool"):
        return
    rule = request.rule
    if rule is not None and rule.thinking == "always" and rule.forced_tools is not True:
        yield words.FORCED_TOOL_NEVER.broken("tool_choice")
    if request.thinking.get("type") == "enabled":
        yield words.FORCED_TOOL.broken("tool_choice")


def _check_tools(request: ClaudeRequest) -> Iterator[BrokenRule]:
    tools = as_objects(request.body.get("tools"))
    strict = [tool for tool in tools if tool.get("strict") is True]
    if len(strict) > _MAX_STRICT_TOOLS:
        yield words.STRICT_TOOLS.broken("tools", count=len(strict))
    unions = _count_unions([tool.get("input_schema") for tool in strict])
    unions += _count_unions(as_object(request.body.get("output_config")).get("format"))
    if unions > _MAX_UNIONS:
        yield words.UNION_TYPES.broken("tools", count=unions)
    for number, tool in enumerate(tools):
        schema = tool.get("input_schema")
        if isinstance(schema, dict) and "type" not in schema:
            yield words.SCHEMA_TYPE_MISSING.broken(f"tools[{number}].input_schema", number=number)


def _count_unions(schema: Any) -> int:
    """Count the parameters of several types."""
    if isinstance(schema, list):
        return sum(map(_count_unions, schema))
    if not isinstance(schema, dict):
        return 0
    return (isinstance(schema.get("type"), list) or "anyOf" in schema) + sum(map(_count_unions, schema.values()))


def _check_context_edits(request: ClaudeRequest) -> Iterator[BrokenRule]:
    edits = as_objects(as_object(request.body.get("context_management")).get("edits"))
    for number, edit in enumerate(edits):
        kind, path = str(edit.get("type")), f"context_management.edits[{number}]"
        if kind.startswith("clear_thinking") and request.is_off:
            or_adaptive = " or adaptive" if request.today >= _ADAPTIVE_NAMED_SINCE else ""
            yield words.CLEAR_THINKING.broken(path, or_adaptive=or_adaptive)
        if kind.startswith("compact_") and as_object(edit.get("trigger")).get("value", 50_000) < 50_000:
            yield words.TRIGGER_SMALL.broken(f"{path}.trigger", number=number)


def _check_length(request: ClaudeRequest) -> Iterator[BrokenRule]:
    limit = request.rule.context if request.rule is not None else None
    if limit is None:
        return
    tokens, asked = count_words([request.body.get("system"), request.messages]), request.body.get("max_tokens")
    if tokens > limit:
        yield words.PROMPT_LONG.broken("messages", tokens=tokens, limit=limit)
    elif isinstance(asked, int) and tokens + asked > limit:
        yield words.SUM_LONG.broken("max_tokens", tokens=tokens, max_tokens=asked, limit=limit)


def count_words(value: Any) -> int:
    """Count the words of all texts in a value: a lower bound of its tokens."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, dict):
        value = [inner for name, inner in value.items() if name in _COUNTED]
    return sum(map(count_words, value)) if isinstance(value, list) else 0
