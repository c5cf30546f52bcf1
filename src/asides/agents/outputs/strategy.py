"""Which way a model is brought to an answer of a given form: `way_for(wanted, prompt, target) → Way`. Pure.

In this order: "native", the provider is told the schema; "tool", the model is given one more tool and calls it with
its answer; "instructed", the schema stands in the instructions and what comes is checked. Thinking is never switched
off for it: where a model that thinks cannot be forced to call a tool, it is asked to. Not here: the prompt (dressing).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from asides.agents.outputs.output_type import Wanted
from asides.agents.outputs.strict_schema import plain_shapes
from asides.dialects import find_facts
from asides.providers.provider import Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice

WayKind: TypeAlias = Literal["native", "tool", "instructed"]

FINAL_TOOL = "final_answer"


class Way(msgspec.Struct, frozen=True):
    """How the answer gets its form, for all steps of a run."""

    kind: WayKind
    tool: str = FINAL_TOOL
    """What the extra tool is called; no tool of the prompt has the name."""
    forced: bool = False
    """The model may be forced to call a tool."""
    two_phase: bool = False
    """Schema and tools do not go together here: the tools are used first, without the schema; a last call without them
    brings the answer into its form."""
    json_mode: bool = False
    """The host is told to give JSON, though it takes no schema."""
    shapes_only: bool = False
    """The schema is sent without bounds, which the host refuses."""
    notices: tuple[Notice, ...] = ()
    """What is worth knowing of the choice."""


def way_for(wanted: Wanted[Any], prompt: Prompt, target: Target, *, in_text: bool = False) -> Way:
    """The best way that this model has, for this prompt: its tools and the thinking that is asked for count.

    `in_text`: the model keeps to a protocol of words, calls of tools included, which a schema would not let it speak.
    """
    if in_text:
        return Way("instructed", notices=(_told_in_words(),))
    rule, quirks = target.rule, target.quirks
    thinks = _thinks(prompt, target)
    takes = rule.structured_output or quirks.structured_output
    if thinks and not quirks.output_while_thinking:
        takes = "nothing"
    together = quirks.output_with_tools if rule.output_with_tools is None else rule.output_with_tools
    apart = bool(prompt.tools) and not together
    has_json_mode = takes != "nothing" and find_facts(target.dialect).json_mode
    schema = wanted.schema
    if not isinstance(schema, OutputSchema):
        if has_json_mode:
            return Way("native", two_phase=apart, notices=_two_phases(apart))
        return Way("instructed")
    shapes_only = quirks.schema_words == "shapes"
    if takes == "json_schema" and (not shapes_only or plain_shapes(schema.schema) is not None):
        return Way("native", two_phase=apart, shapes_only=shapes_only, notices=_two_phases(apart))
    if rule.tools and (rule.tools_while_thinking or not prompt.thinking.wanted):
        forced = not thinks or (rule.forced_tools and (prompt.thinking.budget is None or rule.forced_tools_with_budget))
        told = Notice(
            "output_by_tool", "this model gives its answer by calling a tool", "output", "json_schema", "tool"
        )
        return Way("tool", tool=_free_name(prompt), forced=forced, notices=(told,))
    return Way("instructed", json_mode=has_json_mode and not apart, notices=(_told_in_words(),))


def _told_in_words() -> Notice:
    return Notice("output_instructed", "the model is told the schema in words", "output", "json_schema", "instructions")


def _two_phases(apart: bool) -> tuple[Notice, ...]:
    if not apart:
        return ()
    detail = "schema and tools do not go together here; a last call without tools brings the answer into its form"
    return (Notice("output_in_two_phases", detail, "output"),)


def _thinks(prompt: Prompt, target: Target) -> bool:
    thinking, rule = prompt.thinking, target.rule
    if thinking.mode == "off":
        return rule.thinking == "always"
    return thinking.wanted or rule.thinking == "always" or rule.default == "on"


def _free_name(prompt: Prompt) -> str:
    taken = {tool.name for tool in prompt.tools}
    name, number = FINAL_TOOL, 1
    while name in taken:
        number += 1
        name = f"{FINAL_TOOL}_{number}"
    return name
