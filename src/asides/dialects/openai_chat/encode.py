"""Encodes a planned prompt as a chat request: `encode(prompt, target) → (HttpRequest, notices)`. Pure.

In order: the request, thinking. Not here: messages (encode_messages), and whether the model accepts the settings
(history/check).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_post, encode_native_tool, join_url, merge_fields, report_tool_settings
from asides.dialects.openai_chat.encode_messages import encode_cache, encode_messages
from asides.providers.provider import THINKING_FIELDS, AskBy, Quirks, Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.thinking import Effort, Thinking, nearest_effort
from asides.values.tools import Tool

OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens")


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _build_body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    is_begun = prompt.begun_thinking is not None and target.quirks.continues == "prefix"
    return build_post(target, build_url(target, is_beta=is_begun), accept, body), tuple(notices)


def build_url(target: Target, *, is_beta: bool = False) -> str:
    """Build the address: the base URL, the dialect's path, and the row's query. `is_beta`: below /beta."""
    path = "/beta" if is_beta else urlsplit(target.base_url).path.rstrip("/")
    if not path.endswith(target.quirks.path):
        path += target.quirks.path
    return join_url(target, path)


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    rule, quirks = target.rule, target.quirks
    # The model and the messages come first, so that a longer conversation begins with the bytes of a shorter one.
    body: dict[str, Any] = {"model": target.model, "messages": encode_messages(prompt, target, notices, reuse=True)}
    body |= encode_tools(prompt, notices, tool=lambda tool: _encode_tool(tool, quirks), named=_encode_choice)
    if prompt.cache:
        body |= _encode_cache_settings(prompt, quirks, body)
    if prompt.output is not None:
        body |= _encode_output(prompt.output, target.facts.structured_output, notices)
    if prompt.max_tokens is not None and not any(name in prompt.extra for name in OUTPUT_LIMITS):
        body[target.facts.output_limit] = prompt.max_tokens
    body |= prompt.sampling.to_dict()
    if prompt.stop:
        body["stop"] = list(prompt.stop)
    if prompt.stream:
        body["stream"] = True
        if quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if rule.tool_stream and prompt.tools:
            body["tool_stream"] = True
    if prompt.metadata is not None:
        body["metadata"] = prompt.metadata
    if prompt.user is not None:
        body["user"] = prompt.user
    if rule.thinking != "never":
        # They ask the host to separate thinking; some hosts refuse them for a model that does not think.
        body |= dict(target.facts.fields)
    body = merge_fields(body, encode_thinking(prompt.thinking, target, notices))
    if prompt.begun_thinking is not None:
        _add_begun_turn(body, prompt.begun_thinking, target)
    return merge_fields(body, prompt.extra)


def _add_begun_turn(body: dict[str, Any], thinking: str, target: Target) -> None:
    """Add the beginning of the model's turn, which it continues with its answer."""
    match target.quirks.continues:
        case "prefix":
            field = target.quirks.replay_field or THINKING_FIELDS[0]
            body["messages"].append({"role": "assistant", "content": "", field: thinking, "prefix": True})
        case "final_message":
            # Templates strip the text between the tags, and a server looks for the message in what they made of it.
            content = f"<think>\n{thinking.strip()}\n</think>\n\n"
            body["messages"].append({"role": "assistant", "content": content})
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        case "nothing":
            pass


def _encode_cache_settings(prompt: Prompt, quirks: Quirks, body: dict[str, Any]) -> dict[str, Any]:
    """Ask for a cache: breakpoints where the host takes them, else the fields that its own cache has."""
    if quirks.cache_control:
        from asides.dialects.cache_marks import CHAT_CONTROLS, mark_request

        mark_request(prompt, body, CHAT_CONTROLS)
    if not quirks.cache_key:
        return {}
    from asides.dialects.cache_marks import encode_cache_key

    return encode_cache_key(prompt)


def encode_tools(
    prompt: Prompt,
    notices: list[Notice],
    *,
    tool: Callable[[Tool], dict[str, Any]],
    named: Callable[[str], dict[str, Any]],
) -> dict[str, Any]:
    """Encode the tools and the tool choice. Responses shares this; `tool` and `named` encode the parts that differ."""
    encoded: dict[str, Any] = {}
    if prompt.tools:
        encoded["tools"] = [tool(each) for each in prompt.tools]
    elif "tools" not in prompt.extra:
        notices += report_tool_settings(prompt, "tool_choice", "parallel_tool_calls")
        return encoded
    match prompt.tool_choice:
        case None:
            pass
        case "auto" | "none" | "required":
            encoded["tool_choice"] = prompt.tool_choice
        case name:
            encoded["tool_choice"] = named(name)
    if prompt.parallel_tool_calls is not None:
        encoded["parallel_tool_calls"] = prompt.parallel_tool_calls
    return encoded


def _encode_choice(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _is_own_tool(native: dict[str, Any], quirks: Quirks) -> bool:
    """Whether a tool is one of this host, or has the form of many: an object under the name of its type."""
    kind = native.get("type")
    if not isinstance(kind, str):
        return False
    own = any(kind == name or (name.endswith(":") and kind.startswith(name)) for name in quirks.server_tools)
    return own or kind == "builtin_function" or isinstance(native.get(kind), Mapping)


def _encode_tool(tool: Tool, quirks: Quirks) -> dict[str, Any]:
    if tool.native is not None:
        return encode_native_tool(tool, known=_is_own_tool(tool.native, quirks))
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    encoded: dict[str, Any] = {"type": "function", "function": function}
    return {**encoded, "cache_control": encode_cache(tool.cache)} if tool.cache and quirks.cache_control else encoded


def _encode_output(
    output: OutputSchema | Literal["json"],
    takes: Literal["json_schema", "json_object", "nothing"],
    notices: list[Notice],
) -> dict[str, Any]:
    if isinstance(output, OutputSchema) and takes == "json_schema":
        schema = {"name": output.name, "schema": output.schema, "strict": output.strict}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    asked = "json_schema" if isinstance(output, OutputSchema) else "json_object"
    if takes == "nothing":
        code = "schema_not_sent" if asked == "json_schema" else "json_not_sent"
        detail = "this host has no structured output; the prompt must say what you want"
        notices.append(Notice(code, detail, "output", asked, "nothing"))
        return {}
    if asked == "json_schema":
        detail = "this host promises JSON but takes no schema; the prompt must say what you want"
        notices.append(Notice("schema_not_sent", detail, "output", asked, "json_object"))
    return {"response_format": {"type": "json_object"}}


# --- thinking ---------------------------------------------------------------------------------------------------------

# The effort for a budget, for hosts that take only efforts: the one that usually spends about as many tokens. A budget
# above the last row is the highest effort that the host is known to take.
_EFFORT_FOR_BUDGET: tuple[tuple[int, Effort], ...] = ((2_048, "low"), (8_192, "medium"), (24_576, "high"))

# The effort for "on", for hosts that need an effort.
_DEFAULT_EFFORT: Effort = "medium"


def encode_thinking(thinking: Thinking, target: Target, notices: list[Notice]) -> dict[str, Any]:
    """Return the fields that ask this target for this thinking; {} if nothing was asked."""
    encoder = _ThinkingEncoder(thinking, target, notices)
    encoder.encode()
    return encoder.fields


class _ThinkingEncoder:
    """The fields for one host, while they are collected."""

    def __init__(self, thinking: Thinking, target: Target, notices: list[Notice]) -> None:
        self.thinking = thinking
        self.rule = target.rule
        self.has_learned = bool(target.learned)
        self.budget_in = target.facts.budget_in
        self.toggle_on = target.quirks.toggle_on
        self.ask_by: AskBy = target.facts.ask_by
        self.fields: dict[str, Any] = {}
        self.notices = notices

    def encode(self) -> None:
        if self.ask_by == "reasoning_object":
            self._add_object()  # it also controls which thinking is shown
        elif self.thinking.mode == "off":
            self._turn_off()
        elif self._is_asked():
            self._turn_on()

    def _is_asked(self) -> bool:
        # "auto" alone is the host's default, which needs no field.
        thinking = self.thinking
        return thinking.mode == "on" or thinking.effort is not None or thinking.budget is not None

    def _add_object(self) -> None:
        thinking = self.thinking
        fields: dict[str, Any] = {}
        if thinking.mode == "off":
            fields = {} if self._cannot_stop() else {"enabled": False}
        else:
            fields |= self._choose_amount() if self._is_asked() else {}
            if thinking.summary is not None:
                fields["summary"] = thinking.summary
            if thinking.show == "none":
                fields["exclude"] = True
        if fields:
            self.fields["reasoning"] = fields

    def _choose_amount(self) -> dict[str, Any]:
        """Return a budget or an effort, never both, since these hosts refuse both. A budget is more exact."""
        budget, effort = self.thinking.budget, self.thinking.effort
        if budget is not None and self._takes_budgets(or_unknown=True):
            return {"max_tokens": budget}
        effort = self._replace_budget(effort, budget)
        return {"enabled": True} if effort is None else {"effort": effort}

    def _cannot_stop(self) -> bool:
        """Whether "off" is not sent: to models that never think, and, with a notice, to those that always do."""
        if self.rule.thinking == "always":
            self._report_off()
        return self.rule.thinking in ("always", "never")

    def _turn_off(self) -> None:
        if self._cannot_stop():
            return
        match self.ask_by:
            case "reasoning_effort" | "prompt_mode":
                if self.rule.off_as_effort:
                    self.fields["reasoning_effort"] = "none"
                else:
                    self._report_off()
            case "thinking_toggle" | "thinking_toggle_and_effort":
                self.fields["thinking"] = {"type": "disabled"}
            case "enable_thinking" | "enable_thinking_and_effort":
                self.fields["enable_thinking"] = False
            case "template" | "template_and_effort":
                self.fields["chat_template_kwargs"] = {self.rule.template_key: False}
            case "think":
                self.fields["think"] = False
            case _:  # cannot be asked, or only in another dialect
                self._report_off()

    def _turn_on(self) -> None:
        match self.ask_by:
            case "reasoning_effort":
                self._ask_by_effort()
            case "thinking_toggle":
                self.fields["thinking"] = {"type": self.toggle_on}
                self._add_budget_or_report("thinking.budget_tokens" if self._takes_budgets(or_unknown=True) else None)
                self._report_effort()
            case "thinking_toggle_and_effort":
                self.fields["thinking"] = {"type": self.toggle_on}
                self._add_amount("thinking.budget_tokens" if self._takes_budgets() else None)
            case "enable_thinking":
                self.fields["enable_thinking"] = True
                self._add_budget_or_report("thinking_budget")
                self._report_effort()
            case "enable_thinking_and_effort":
                self.fields["enable_thinking"] = True
                self._add_amount("thinking_budget")
            case "template":
                self.fields["chat_template_kwargs"] = {self.rule.template_key: True}
                self._add_budget_or_report(None)
                self._report_effort()
            case "template_and_effort":
                self.fields["chat_template_kwargs"] = {self.rule.template_key: True}
                self._add_amount(None)
            case "prompt_mode":
                self._ask_by_prompt_mode()
            case "think":
                self.fields["think"] = True
                self._add_budget_or_report(None)
                self._report_effort()
            case _:  # cannot be asked, or only in another dialect
                self._add_budget_or_report(None)
                self._report_effort()
                if self.thinking.effort is None and self.thinking.budget is None:
                    self._report("on_not_sent", "this host cannot be asked to think", "on")

    def _takes_budgets(self, *, or_unknown: bool = False) -> bool:
        # For an unknown model the usual form of the dialect is sent (contract §3).
        return self.rule.budget is not None or (or_unknown and self.rule.thinking == "unknown")

    # --- the amount -------------------------------------------------------------------------------------------------

    def _ask_by_effort(self) -> None:
        if not self._add_amount(None):
            self._add_default_effort()

    def _ask_by_prompt_mode(self) -> None:
        if self.rule.thinking != "always":
            self._ask_by_effort()
            return
        self.fields["prompt_mode"] = "reasoning"
        self._add_budget_or_report(None)
        self._report_effort()

    def _add_amount(self, budget_field: str | None) -> bool:
        """Add the amount in a field for budgets or in `reasoning_effort`. False when no amount was asked for."""
        budget, effort = self.thinking.budget, self.thinking.effort
        added = budget is not None and self._add_budget(budget_field, budget)
        if not added:
            effort = self._replace_budget(effort, budget)
        elif self.rule.budget_excludes_effort and effort is not None:
            self._report("effort_not_sent", "this model takes a budget or an effort, not both", effort, str(budget))
            effort = None
        if effort is not None:
            self.fields["reasoning_effort"] = effort
        return added or effort is not None

    def _replace_budget(self, effort: Effort | None, budget: int | None) -> Effort | None:
        """Return the effort to send instead of a budget: the one asked for, or the nearest to the budget."""
        if budget is None:
            return effort
        if effort is None:
            return self._map_budget(budget)
        self._report("budget_not_sent", "this host takes an effort, not a budget", str(budget), effort)
        return effort

    def _add_budget_or_report(self, field: str | None) -> None:
        budget = self.thinking.budget
        if budget is not None and not self._add_budget(field, budget):
            self._report("budget_not_sent", "this host takes no thinking budget", str(budget), self._describe_sent())

    def _add_budget(self, field: str | None, budget: int) -> bool:
        path = self.budget_in or field
        if path is None:
            return False
        place: dict[str, Any] = self.fields
        *parents, leaf = path.split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
        place[leaf] = budget
        return True

    def _report_effort(self) -> None:
        effort = self.thinking.effort
        if effort is not None:
            self._report("effort_not_sent", "this host takes no effort", effort, self._describe_sent())

    def _describe_sent(self) -> str:
        return "on" if self.fields else "nothing"

    def _map_budget(self, budget: int) -> Effort | None:
        takes = self.rule.efforts
        if takes == ():
            self._report("budget_not_sent", "this model takes neither a budget nor an effort", str(budget), "on")
            return None
        # An effort above "high" is sent only to models that are known to take one.
        highest: Effort = "high" if takes is None else "xhigh" if "xhigh" in takes else "max"
        fitting: list[Effort] = [effort for most, effort in _EFFORT_FOR_BUDGET if budget <= most]
        nearest = fitting[0] if fitting else highest
        # If the provider itself maps an effort that it lacks, that counts before the nearest one.
        mapped = dict(self.rule.effort_map).get(nearest)
        sent = nearest if takes and nearest in takes else mapped or nearest_effort(nearest, takes or (nearest,))
        self._report("budget_mapped", "this host takes an effort, not a budget", str(budget), sent)
        return sent

    def _add_default_effort(self) -> None:
        """Add an effort if thinking is asked for without an amount and an effort is the only field for it."""
        if self.rule.thinking == "always" or self.rule.default == "on":
            return
        if self.rule.efforts == () and (self.rule.default is None or self.has_learned):
            self._report("on_not_sent", "this model takes no effort; it decides itself whether to think", "on")
            return
        sent = nearest_effort(_DEFAULT_EFFORT, self.rule.efforts or (_DEFAULT_EFFORT,))
        self._report("effort_chosen", "this host needs an effort", "on", sent)
        self.fields["reasoning_effort"] = sent

    # --- notices ----------------------------------------------------------------------------------------------------

    def _report_off(self) -> None:
        self._report("off_not_sent", "this model cannot be asked to stop thinking", "off")

    def _report(self, code: str, detail: str, asked: str, sent: str = "nothing") -> None:
        self.notices.append(Notice(code, detail, "thinking", asked, sent))
