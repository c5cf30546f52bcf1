"""Writes a request for thinking with the switch of its target: `write(thinking, target, dialect) → fields, notices`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from asides.providers.provider import ModelRule, Target
from asides.providers.quirks import Quirks
from asides.providers.switches import table
from asides.providers.switches.read import read
from asides.providers.switches.table import Fields, Switch, Values, find_switch, put
from asides.values.messages import RequestSource
from asides.values.notices import Notice
from asides.values.thinking import Effort, Thinking, nearest_effort

# The effort for "on", for hosts that need an effort.
_DEFAULT_EFFORT: Effort = "medium"


def write(
    thinking: Thinking,
    target: Target,
    dialect: str,
    *,
    source: RequestSource | None = None,
    max_tokens: int | None = None,
) -> tuple[Fields, list[Notice]]:
    """The fields that ask this target for this thinking, and what could not be asked; {} if nothing was asked.

    Fields of a request in this dialect come back as they came if they ask for the same and the target knows them.
    """
    writer = _Writer(thinking, target, max_tokens)
    known = _WRITERS.get(dialect)
    if known is None:
        _write_levels(writer, table.SWITCHES[dialect][0])
    else:
        known(writer)
    _report_unshown(writer, dialect)
    if source is not None and source.dialect == dialect and not writer.notices:
        given = _select_fields(source.fields, dialect)
        # Reading takes the fields out, so it gets its own.
        if given and given != writer.fields and read(dialect, _select_fields(source.fields, dialect)) == thinking:
            if _takes_fields(target, dialect, given):
                return given, []
            detail = "this host has other fields for thinking than the request, or none"
            asked, sent = (", ".join(each) or "nothing" for each in (given, writer.fields))
            writer.report("thinking_field_changed", detail, asked, sent)
    return writer.fields, writer.notices


def _report_unshown(writer: _Writer, dialect: str) -> None:
    """Report that thinking was asked to be shown and no field asks for that, and what would help."""
    if not writer.asks_to_show or any(notice.setting == "summary" for notice in writer.notices):
        return
    if (why := _explain_unshown(writer, dialect)) is not None:
        writer.report("summary_not_sent", why, str(writer.thinking.summary), setting="summary")


def _explain_unshown(writer: _Writer, dialect: str) -> str | None:
    """Why no thinking will be seen; None if some may be."""
    rule, row = writer.rule, writer.target.provider
    if rule.thinking == "never":
        return "this model does not think. Ask one that does"
    # Hosts that take an object have a field for it, and Responses are the endpoint that shows it.
    is_chat = dialect == "openai_chat" and writer.target.facts.ask_by != "reasoning_object"
    if rule.kind == "hidden" or (rule.kind == "summary" and is_chat):
        # A row that names another host is one of its endpoints; the host chooses the one that shows thinking.
        named = f"{row.host}:{writer.target.model}" if row.host else "another endpoint of it"
        other = f"{named if dialect == 'openai_chat' else 'a model of another maker'} may"
        return f"this endpoint does not return the thinking of this model; {other}"
    if writer.thinking.asked or writer.fields:
        return None
    if rule.default == "off":
        return 'this model thinks only if asked to, for example with thinking="low"'
    if rule.thinking == "unknown" and row.key == "required":
        return 'it is not known whether this model thinks unasked. To ask it to, set thinking="low"'
    return None


def _select_fields(fields: Mapping[str, Any], dialect: str) -> Fields:
    """The fields of a request that ask for thinking."""
    selected: Fields = {}
    own = [path for switch in table.SWITCHES[dialect] for path in switch.list_paths()]
    for path in (*own, *table.OTHER_NAMES.get(dialect, ())):
        *parents, leaf = path.split(".")
        holder: Any = fields
        for name in parents:
            holder = holder.get(name) if isinstance(holder, Mapping) else None
        if isinstance(holder, Mapping) and holder.get(leaf) is not None:
            put(selected, path, holder[leaf])
    return selected


def _takes_fields(target: Target, dialect: str, given: Fields) -> bool:
    """Whether these fields are of a switch of the target, as far as is known."""
    quirks, facts = target.quirks, target.facts
    if target.rule.thinking == "never" or quirks.transport != "direct":
        return False  # some models refuse all of them, and some clouds refuse redundant ones
    if dialect != "openai_chat":
        return True
    row = target.provider
    if facts.ask_by == Quirks().ask_by and not target.learned and (not row.base_url or row.tier == "yours"):
        return True  # nothing is known of this host
    switch = find_switch(dialect, facts.ask_by, target.rule.template_key)
    known = () if switch is None else (*switch.list_paths(), *filter(None, [facts.budget_in]))
    return given.keys() <= {path.partition(".")[0] for path in known}


class _Writer:
    """The fields of one request while they are collected."""

    def __init__(self, thinking: Thinking, target: Target, max_tokens: int | None) -> None:
        self.thinking = thinking
        self.target = target
        self.rule: ModelRule = target.rule
        self.max_tokens = max_tokens
        self.fields: Fields = {}
        self.notices: list[Notice] = []

    def put(self, switch: Switch, *values: tuple[str, Any]) -> None:
        for path, value in values:
            put(self.fields, f"{switch.inside}.{path}" if switch.inside else path, value)

    @property
    def asks_to_show(self) -> bool:
        """Whether the caller asked to see the thinking, whatever its amount."""
        return self.thinking.summary is not None and self.thinking.show != "none" and self.thinking.mode != "off"

    def report(
        self, code: str, detail: str, asked: str, sent: str | None = "nothing", *, setting: str = "thinking"
    ) -> None:
        self.notices.append(Notice(code, detail, setting, asked, sent))


# --- chat completions and Responses -----------------------------------------------------------------------------------

# The effort for a budget, for hosts that take only efforts: the one that usually spends about as many tokens. A budget
# above the last row is the highest effort that the host is known to take.
_EFFORT_FOR_BUDGET: tuple[tuple[int, Effort], ...] = ((2_048, "low"), (8_192, "medium"), (24_576, "high"))


def _write_chat(writer: _Writer) -> None:
    facts, toggle_on = writer.target.facts, writer.target.quirks.toggle_on
    switch = find_switch("openai_chat", facts.ask_by, writer.rule.template_key)
    if switch is table.TOGGLE and toggle_on != "enabled":
        switch = msgspec.structs.replace(table.TOGGLE, on=((table.TOGGLE.on[0][0], toggle_on),))
    sends_effort = switch is not None and (not switch.on or facts.ask_by == switch.with_effort)
    if switch is table.PROMPT_MODE and writer.rule.thinking != "always":
        switch, sends_effort = table.EFFORT, True
    _ChatWriter(writer, switch, facts.budget_in, sends_effort).write()


def _write_responses(writer: _Writer) -> None:
    thinking, target = writer.thinking, writer.target
    if writer.rule.thinking == "never":
        return
    _ChatWriter(writer, table.RESPONSES, None, True).write()
    # A host that sends its raw reasoning unasked has no summary.
    usual = "auto" if thinking.wanted and target.quirks.raw_reasoning != "shown" else None
    summary = (thinking.summary or usual) if thinking.show != "none" else None
    if summary is not None and target.restrictions.summaries:
        writer.put(table.RESPONSES, (table.RESPONSES.summary, summary))
    elif summary is not None:
        detail = "this organisation gets no summaries of reasoning; asked without one"
        writer.report("summary_refused", detail, summary, setting="summary")


class _ChatWriter:
    """Writes the switch of a host that takes an effort, a budget, or neither."""

    def __init__(self, writer: _Writer, switch: Switch | None, budget_in: str | None, sends_effort: bool) -> None:
        self.writer = writer
        self.thinking, self.rule = writer.thinking, writer.rule
        self.switch = switch
        self.budget_in = budget_in
        self.sends_effort = sends_effort

    def write(self) -> None:
        if self.switch is table.OBJECT:
            self._write_object(table.OBJECT)  # it also controls which thinking is shown
        elif self.thinking.mode == "off":
            self._turn_off()
        elif self._is_asked():
            self._turn_on()

    def _is_asked(self) -> bool:
        # "auto" alone is the host's default, which needs no field.
        thinking = self.thinking
        return thinking.mode == "on" or thinking.effort is not None or thinking.budget is not None

    def _write_object(self, switch: Switch) -> None:
        thinking = self.thinking
        if thinking.mode == "off":
            if not self._cannot_stop():
                self.writer.put(switch, *switch.off)
            return
        if self._is_asked():
            self.writer.put(switch, *self._choose_amount(switch))
        if thinking.summary is not None:
            self.writer.put(switch, (switch.summary, thinking.summary))
        if thinking.show == "none":
            self.writer.put(switch, *switch.hidden)

    def _choose_amount(self, switch: Switch) -> Values:
        """Return a budget or an effort, never both, since these hosts refuse both. A budget is more exact."""
        budget, effort = self.thinking.budget, self.thinking.effort
        if budget is not None and self._takes_budgets(or_unknown=True):
            return ((switch.budget, budget),)
        effort = self._replace_budget(effort, budget)
        return switch.on if effort is None else ((switch.effort, effort),)

    def _cannot_stop(self) -> bool:
        """Whether "off" is not sent: to models that never think, and, with a notice, to those that always do."""
        if self.rule.thinking == "always":
            self._report_off()
        return self.rule.thinking in ("always", "never")

    def _turn_off(self) -> None:
        if self._cannot_stop():
            return
        switch = self.switch
        by_effort = switch is not None and any(path == switch.effort for path, _ in switch.off)
        if switch is None or (by_effort and not self.rule.off_as_effort):
            self._report_off()
        else:
            self.writer.put(switch, *switch.off)

    def _turn_on(self) -> None:
        switch = self.switch
        if switch is None:
            self._add_budget_or_report("")
            self._report_effort()
            if self.thinking.effort is None and self.thinking.budget is None:
                self.writer.report("on_not_sent", "this host cannot be asked to think", "on")
            return
        self.writer.put(switch, *switch.on)
        is_taken = not switch.needs_rule or self._takes_budgets(or_unknown=not self.sends_effort)
        budget_field = switch.budget if is_taken else ""
        if not self.sends_effort:
            self._add_budget_or_report(budget_field)
            self._report_effort()
        elif not self._add_amount(switch, budget_field) and not switch.on:
            self._add_default_effort(switch)

    def _takes_budgets(self, *, or_unknown: bool = False) -> bool:
        # For an unknown model the usual form of the dialect is sent (contract §3).
        return self.rule.budget is not None or (or_unknown and self.rule.thinking == "unknown")

    def _add_amount(self, switch: Switch, budget_field: str) -> bool:
        """Add the amount in a field for budgets or in that of the effort. False when no amount was asked for."""
        budget, effort = self.thinking.budget, self.thinking.effort
        added = budget is not None and self._add_budget(budget_field, budget)
        if not added:
            effort = self._replace_budget(effort, budget)
        elif self.rule.budget_excludes_effort and effort is not None:
            detail = "this model takes a budget or an effort, not both"
            self.writer.report("effort_not_sent", detail, effort, str(budget))
            effort = None
        if effort is not None:
            self.writer.put(switch, (switch.effort, effort))
        return added or effort is not None

    def _replace_budget(self, effort: Effort | None, budget: int | None) -> Effort | None:
        """Return the effort to send instead of a budget: the one asked for, or the nearest to the budget."""
        if budget is None:
            return effort
        if effort is None:
            return self._map_budget(budget)
        self.writer.report("budget_not_sent", "this host takes an effort, not a budget", str(budget), effort)
        return effort

    def _add_budget_or_report(self, field: str) -> None:
        budget = self.thinking.budget
        if budget is not None and not self._add_budget(field, budget):
            detail = "this host takes no thinking budget"
            self.writer.report("budget_not_sent", detail, str(budget), self._describe_sent())

    def _add_budget(self, field: str, budget: int) -> bool:
        path = self.budget_in or field
        if path:
            put(self.writer.fields, path, budget)
        return bool(path)

    def _report_effort(self) -> None:
        effort = self.thinking.effort
        if effort is not None:
            self.writer.report("effort_not_sent", "this host takes no effort", effort, self._describe_sent())

    def _describe_sent(self) -> str:
        return "on" if self.writer.fields else "nothing"

    def _map_budget(self, budget: int) -> Effort | None:
        takes = self.rule.efforts
        if takes == ():
            detail = "this model takes neither a budget nor an effort"
            self.writer.report("budget_not_sent", detail, str(budget), "on")
            return None
        # An effort above "high" is sent only to models that are known to take one.
        highest: Effort = "high" if takes is None else "xhigh" if "xhigh" in takes else "max"
        fitting: list[Effort] = [effort for most, effort in _EFFORT_FOR_BUDGET if budget <= most]
        nearest = fitting[0] if fitting else highest
        # If the provider itself maps an effort that it lacks, that counts before the nearest one.
        mapped = dict(self.rule.effort_map).get(nearest)
        sent = nearest if takes and nearest in takes else mapped or nearest_effort(nearest, takes or (nearest,))
        self.writer.report("budget_mapped", "this host takes an effort, not a budget", str(budget), sent)
        return sent

    def _add_default_effort(self, switch: Switch) -> None:
        """Add an effort if thinking is asked for without an amount and an effort is the only field for it."""
        if self.rule.thinking == "always" or self.rule.default == "on":
            return
        if self.rule.efforts == () and (self.rule.default is None or self.writer.target.learned):
            detail = "this model takes no effort; it decides itself whether to think"
            self.writer.report("on_not_sent", detail, "on")
            return
        sent = nearest_effort(_DEFAULT_EFFORT, self.rule.efforts or (_DEFAULT_EFFORT,))
        self.writer.report("effort_chosen", "this host needs an effort", "on", sent)
        self.writer.put(switch, (switch.effort, sent))

    def _report_off(self) -> None:
        self.writer.report("off_not_sent", "this model cannot be asked to stop thinking", "off")


# --- Messages and Converse --------------------------------------------------------------------------------------------


def _write_messages(writer: _Writer) -> None:
    _write_form(writer, table.ENABLED, table.ADAPTIVE, table.BETWEEN_TOOLS)


def _write_form(writer: _Writer, enabled: Switch, adaptive: Switch, between_tools: Switch) -> None:
    thinking, rule = writer.thinking, writer.rule
    if rule.thinking == "never":
        return
    if not thinking.asked:
        _ask_to_show(writer, adaptive)
        return
    if thinking.mode == "off":
        can_stop = rule.thinking != "always" and (not rule.forms or "disabled" in rule.forms)
        # Models that are off by default need no field, and not every cloud takes "disabled" for them.
        if can_stop and rule.default != "off":
            writer.put(enabled, *enabled.off)
        return
    switch = enabled
    if thinking.budget is None and thinking.mode == "between_tools":
        switch = between_tools
    elif thinking.budget is None and (not rule.forms or "adaptive" in rule.forms):
        # Clones know the older "enabled"; without a budget it means on.
        switch = adaptive
    writer.put(switch, *switch.on)
    if thinking.budget is not None:
        writer.put(switch, (switch.budget, thinking.budget))
    shown = switch.hidden if thinking.show == "none" else switch.shown
    if thinking.display is not None:
        writer.put(switch, (switch.display, thinking.display))
    elif rule.display is not None and rule.display != shown[0][1] and thinking.mode != "between_tools":
        writer.put(switch, *shown)
    if thinking.effort is not None:
        writer.put(switch, (switch.effort, thinking.effort))


def _ask_to_show(writer: _Writer, adaptive: Switch) -> None:
    """Ask a model that thinks by default to show it. The amount stays the model's own."""
    rule = writer.rule
    if writer.asks_to_show and rule.display == "omitted" and rule.default == "on" and "adaptive" in rule.forms:
        writer.put(adaptive, *adaptive.on, *adaptive.shown)


def _write_converse(writer: _Writer) -> None:
    thinking, rule, ask_by = writer.thinking, writer.rule, writer.target.facts.ask_by
    if ask_by == "thinking_toggle":
        _write_form(writer, *table.CONVERSE)
        return
    if not thinking.asked or rule.thinking == "never":
        return
    switch = find_switch("bedrock", ask_by)
    if thinking.mode == "off":
        # A model that is off by default needs no field; the plan has handled models that always think.
        if rule.default == "off":
            return
        if rule.thinking == "optional" and switch is table.CONVERSE_OBJECT:
            writer.put(table.CONVERSE_OBJECT, *table.CONVERSE_OBJECT.off)
        else:
            writer.report("off_not_sent", "how to turn thinking off for this model is not known here", "off")
        return
    if thinking.mode == "auto" and thinking.effort is None and thinking.budget is None:
        return
    effort = thinking.effort
    if thinking.budget is not None:
        sent = effort or ("nothing" if ask_by == "nothing" else _DEFAULT_EFFORT)
        writer.report("budget_not_sent", "this model takes no thinking budget here", str(thinking.budget), sent)
    if effort is None and ask_by != "nothing":
        effort = _DEFAULT_EFFORT if rule.efforts is None or _DEFAULT_EFFORT in rule.efforts else rule.efforts[-1]
        if thinking.budget is None:
            writer.report("effort_chosen", "this model needs an effort", "on", effort)
    if switch is None:
        writer.report("on_not_sent", "how to turn thinking on for this model is not known here", "on", None)
    else:
        writer.put(switch, *switch.on, (switch.effort, effort))


# --- other dialects ---------------------------------------------------------------------------------------------------


def _write_cohere(writer: _Writer) -> None:
    thinking, switch = writer.thinking, table.COHERE
    if not thinking.asked or writer.rule.thinking == "never":
        return
    if thinking.mode == "off":
        writer.put(switch, *switch.off)
        return
    if thinking.effort is not None:
        writer.report("effort_not_sent", "this host takes no effort", thinking.effort, "on")
    if thinking.budget is not None:
        writer.put(switch, *switch.on, (switch.budget, thinking.budget))
    elif thinking.mode != "auto" or thinking.effort is not None:
        writer.put(switch, *switch.on)


# The efforts that the switch takes besides true and false.
_OLLAMA_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "max")


def _write_ollama(writer: _Writer) -> None:
    thinking, rule, switch = writer.thinking, writer.rule, table.OLLAMA
    if not thinking.asked or rule.thinking == "never":
        return
    if thinking.mode == "off":
        writer.put(switch, *switch.off)
        return
    if thinking.budget is not None:
        detail = "this host takes no thinking budget"
        writer.report("budget_not_sent", detail, str(thinking.budget), thinking.effort or "on")
    if thinking.effort is None:
        # Models that can think do so by default.
        if thinking.mode != "auto" or thinking.budget is not None:
            writer.put(switch, *switch.on)
    elif rule.efforts == ():
        writer.put(switch, *switch.on)
    else:
        sent = nearest_effort(thinking.effort, _OLLAMA_EFFORTS)
        if sent != thinking.effort:
            writer.report("effort_mapped", "the nearest effort of this host", thinking.effort, sent)
        writer.put(switch, (switch.effort, sent))


# Efforts as budgets in tokens, as Google's OpenAI endpoint maps them; it has no "minimal", which gets the least.
_BUDGETS: dict[Effort, int] = {
    "minimal": 512,
    "low": 1_024,
    "medium": 8_192,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 32_768,
}
# The level for a budget, for models that take levels: the one that usually spends about as many tokens.
_LEVEL_FOR_BUDGET: tuple[tuple[int, Effort], ...] = ((512, "minimal"), (2_048, "low"), (8_192, "medium"))
_LEVELS: tuple[Effort, ...] = ("minimal", "low", "medium", "high")


def _write_gemini(writer: _Writer) -> None:
    _write_levels(writer, table.LEVEL, budgets=True)


def _write_levels(writer: _Writer, switch: Switch, *, budgets: bool = False) -> None:
    """Write a level, or a budget where the dialect has them too."""
    thinking, rule, ask_by = writer.thinking, writer.rule, writer.target.facts.ask_by
    if rule.thinking == "never" or not (thinking.asked or writer.asks_to_show):
        return
    if thinking.asked and ask_by == "thinking_budget" and budgets:
        _write_budget(writer)
    elif thinking.asked and ask_by != "nothing":
        _write_level(writer, switch)
    if thinking.mode != "off":
        # Thoughts are shown only on request, and only as summaries.
        writer.put(switch, *(switch.hidden if thinking.show == "none" else switch.shown))


def _write_budget(writer: _Writer) -> None:
    thinking, switch = writer.thinking, table.BUDGET
    if thinking.mode == "off":
        writer.put(switch, *switch.off)
    elif thinking.budget is not None:
        writer.put(switch, (switch.budget, thinking.budget))
    elif thinking.effort is None:
        writer.put(switch, *switch.on)
    else:
        least, most = writer.rule.budget or (1, None)
        tokens = _BUDGETS[thinking.effort]
        if writer.max_tokens is not None:
            # The limit includes thinking, so thinking gets at most half of it.
            tokens = min(tokens, writer.max_tokens // 2)
        tokens = max(tokens, least) if most is None else min(max(tokens, least), most)
        writer.report("effort_mapped", "this model takes a budget in tokens", thinking.effort, str(tokens))
        writer.put(switch, (switch.budget, tokens))


def _write_level(writer: _Writer, switch: Switch) -> None:
    thinking, takes = writer.thinking, writer.rule.efforts
    if takes == ():
        if thinking.effort or thinking.budget or thinking.mode == "off":
            asked = thinking.effort or str(thinking.budget or "off")
            writer.report("effort_not_sent", "the level of this model cannot be set", asked)
        return
    sent = thinking.effort
    if thinking.mode == "off":
        sent = (takes or _LEVELS)[0]
        writer.report("off_not_sent", "no level turns thinking off; the least was sent", "off", sent)
    elif thinking.budget is not None:
        fitting: list[Effort] = [level for most, level in _LEVEL_FOR_BUDGET if thinking.budget <= most]
        nearest = fitting[0] if fitting else _LEVELS[-1]
        sent = nearest_effort(nearest, takes or _LEVELS)
        writer.report("budget_mapped", "this model takes a level, not a budget", str(thinking.budget), sent)
    elif sent is not None:
        sent = nearest_effort(sent, takes or _LEVELS)
        if sent != thinking.effort:
            writer.report("effort_mapped", "the nearest level", str(thinking.effort), sent)
    if sent is not None:
        writer.put(switch, (switch.effort, sent.upper() if switch.upper else sent))


_WRITERS: dict[str, Callable[[_Writer], None]] = {
    "openai_chat": _write_chat,
    "openai_responses": _write_responses,
    "anthropic": _write_messages,
    "bedrock": _write_converse,
    "cohere": _write_cohere,
    "gemini": _write_gemini,
    "ollama": _write_ollama,
}
