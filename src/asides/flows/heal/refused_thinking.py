"""Repairs of the amount and the form of thinking: one function for each kind of refusal, smallest change first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from asides.dialects.refused_fields import has_field
from asides.flows.heal.refused_request import Fix, ListFixes, RefusedRequest
from asides.providers.refusals import find_efforts
from asides.providers.switches.table import OLLAMA, PROMPT_MODE, list_budget_fields
from asides.values.rejections import RejectionKind
from asides.values.thinking import EFFORTS, Effort, Thinking

_FORMS = ("enabled", "adaptive", "disabled")
_LEAST_BUDGET = 1024


def describe(thinking: Thinking) -> str:
    """An amount of thinking in a word."""
    amount = thinking.effort or (None if thinking.budget is None else str(thinking.budget))
    return amount or thinking.mode or "nothing"


def fix_thinking(refused: RefusedRequest, detail: str, *changes: tuple[str, Any], setting: str = "thinking") -> Fix:
    """A fix of how much the model thinks, or of another setting."""
    asked = describe(refused.planned.thinking) if setting == "thinking" else None
    return Fix(detail, changes, setting=setting, asked=asked)


# --- thinking ---------------------------------------------------------------------------------------------------------


def _change_form(refused: RefusedRequest) -> Iterator[Fix]:
    """Another value of `thinking.type`: one that the refusal lists, or the other one."""
    rule, text = refused.target.rule, refused.rejection.text.lower()
    listed = tuple(form for form in (*_FORMS, "between_tools") if form in map(str.lower, refused.rejection.values))
    sent = refused.body.get("thinking")
    refused_form = sent.get("type") if isinstance(sent, dict) else None
    if PROMPT_MODE.name in text.replace(" ", "_"):
        yield fix_thinking(
            refused, "this model has no reasoning mode", ("ask_by", "reasoning_effort"), ("thinking", "optional")
        )
        return
    other = "adaptive" if refused_form != "adaptive" else "enabled"
    forms = listed or tuple(form for form in (other, "disabled") if form != refused_form)
    detail = (
        f"this model does not take the thinking type {refused_form}" if refused_form else "another form of thinking"
    )
    more: list[tuple[str, Any]] = [("forms", forms)]
    if other in forms:
        more.append(("toggle_on", other))
    if other == "enabled":
        more.append(("budget", rule.budget or (_LEAST_BUDGET, None)))
    yield fix_thinking(refused, detail, *more)
    yield from _stop_asking(refused)


def _think_by_budget(refused: RefusedRequest) -> Iterator[Fix]:
    budget = refused.target.rule.budget or (_LEAST_BUDGET, None)
    changes = (("forms", ("enabled", "disabled")), ("budget", budget), ("efforts", ()), ("toggle_on", "enabled"))
    yield fix_thinking(refused, "this model thinks with a budget", *changes)
    yield from _stop_asking(refused)


def _drop_between_tools(refused: RefusedRequest) -> Iterator[Fix]:
    rule = refused.target.rule
    forms = tuple(form for form in rule.forms or _FORMS if form != "between_tools")
    detail = "this model cannot be asked to think only between calls of tools"
    yield fix_thinking(refused, detail, ("forms", forms if "disabled" in forms else (*forms, "disabled")))
    yield fix_thinking(refused, detail, ("forms", forms))
    yield from _stop_asking(refused)


def _let_it_think(refused: RefusedRequest) -> Iterator[Fix]:
    rule, detail = refused.target.rule, "this model cannot stop thinking"
    forms: tuple[str, ...] = tuple(form for form in rule.forms if form != "disabled")
    if "between_tools" in refused.rejection.text:
        yield fix_thinking(
            refused, detail, ("forms", (*(form for form in forms if form != "between_tools"), "between_tools"))
        )
    always = ("thinking", "always")
    if efforts := _list_efforts(refused):
        yield fix_thinking(refused, detail, always, ("forms", forms), ("efforts", efforts))
    yield fix_thinking(refused, detail, always, ("forms", forms), ("off_as_effort", False))
    yield fix_thinking(refused, detail, always, ("forms", forms), ("efforts", ()), ("ask_by", "nothing"))


def _stop_asking(refused: RefusedRequest) -> Iterator[Fix]:
    yield fix_thinking(refused, "this model cannot be asked to think", ("thinking", "never"))


# --- efforts ----------------------------------------------------------------------------------------------------------


def _list_offered(refused: RefusedRequest) -> tuple[str, ...]:
    """The efforts that the refusal offers, "none" among them."""
    return find_efforts(refused.rejection.text, describe(refused.planned.thinking))


def _list_efforts(refused: RefusedRequest) -> tuple[Effort, ...]:
    listed = _list_offered(refused)
    return tuple(effort for effort in EFFORTS if effort in listed)


def _drop_effort(refused: RefusedRequest) -> Iterator[Fix]:
    if listed := _list_efforts(refused):
        changes = (("efforts", listed), ("off_as_effort", "none" in _list_offered(refused)))
        yield fix_thinking(refused, "this model takes other efforts", *changes)
    yield fix_thinking(refused, "this model takes no effort", ("efforts", ()), ("off_as_effort", False))
    yield from _stop_asking(refused)


def _lower_effort(refused: RefusedRequest) -> Iterator[Fix]:
    """The efforts that the refusal lists; without a list, all but the refused one."""
    if not _list_offered(refused):
        asked = refused.planned.thinking.effort
        known: Sequence[Effort] = refused.target.rule.efforts or EFFORTS
        others = tuple(effort for effort in known if effort != asked)
        # A switch that also takes efforts is turned on instead.
        if asked is not None and others and OLLAMA.effort not in refused.body:
            yield fix_thinking(refused, "this model takes other efforts", ("efforts", others))
    yield from _drop_effort(refused)


def _limit_effort(refused: RefusedRequest) -> Iterator[Fix]:
    known: Sequence[Effort] = refused.target.rule.efforts or EFFORTS
    upto = tuple(effort for effort in known if EFFORTS.index(effort) <= EFFORTS.index("high"))
    yield fix_thinking(refused, "this effort needs more thinking than was asked for", ("efforts", upto))
    yield from _drop_effort(refused)


def _change_endpoint(refused: RefusedRequest) -> Iterator[Fix]:
    """The other endpoint, where the row has it; else no effort."""
    row = refused.target.provider
    if row.dialect == "openai_chat" and row.with_dialect("openai_responses") is not None:
        detail = "this model takes tools and an effort only at the Responses endpoint"
        yield Fix(detail, (("dialect", "openai_responses"),), setting="endpoint", asked="chat", sent="responses")
    detail = "this model takes no effort beside tools here"
    yield fix_thinking(refused, detail, ("tools_while_thinking", "off"), ("off_as_effort", True))
    yield fix_thinking(refused, detail, ("tools_while_thinking", False))


# --- budgets ----------------------------------------------------------------------------------------------------------


def _raise_budget(refused: RefusedRequest) -> Iterator[Fix]:
    least = int(refused.rejection.at_least or _LEAST_BUDGET)
    most = (refused.target.rule.budget or (0, None))[1]
    yield fix_thinking(refused, f"a thinking budget is at least {least} tokens here", ("budget", (least, most)))


def _fit_budget_to_limit(refused: RefusedRequest) -> Iterator[Fix]:
    budget = refused.target.rule.budget or (_LEAST_BUDGET, None)
    yield fix_thinking(
        refused, "the limit of the output includes thinking", ("budget", budget), ("interleaves", "never")
    )


def _limit_budget(refused: RefusedRequest) -> Iterator[Fix]:
    low, high = refused.rejection.at_least, refused.rejection.at_most
    least = int(low) if low else (refused.target.rule.budget or (1, None))[0]
    if low or high:
        most = int(high) if high else None
        if most is None or most >= least:
            yield fix_thinking(refused, "another thinking budget", ("budget", (least, most)))
    for name in list_budget_fields():
        if has_field(refused.body, name, refused.prompt.extra):
            yield fix_thinking(refused, "this model takes no such budget", ("refused_fields", (name,)))


FIXES: dict[RejectionKind, ListFixes] = {
    "thinking_mode_unsupported": _change_form,
    "adaptive_unsupported": _think_by_budget,
    "between_tools_unsupported": _drop_between_tools,
    "thinking_cannot_disable": _let_it_think,
    "thinking_unsupported_model": _stop_asking,
    "effort_unsupported_param": _drop_effort,
    "effort_unsupported_value": _lower_effort,
    "effort_thinking_conflict": _limit_effort,
    "effort_tools_endpoint": _change_endpoint,
    "budget_too_small": _raise_budget,
    "budget_exceeds_max_tokens": _fit_budget_to_limit,
    "budget_out_of_range": _limit_budget,
}
"""What may repair a refusal of this kind, smallest change first."""
