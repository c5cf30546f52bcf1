"""The strategy to get an answer of a given type from a model: `choose_strategy`, `apply_strategy`. Pure.

In order of preference: "native", the provider gets the schema; "tool", the model calls one more tool with its answer;
"instructed", the schema is in the instructions. Every answer is checked. Thinking is never switched off: if a model
cannot be forced to call a tool while it thinks, the instructions ask it to.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from asides.agents.outputs.output_type import OutputMismatch, OutputType
from asides.agents.outputs.schemas import simplify_schema
from asides.dialects import find_facts
from asides.providers.provider import Target
from asides.values.messages import Message, OutputSchema, Prompt, user
from asides.values.notices import Notice
from asides.values.tools import Tool

StrategyKind: TypeAlias = Literal["native", "tool", "instructed"]

FINAL_TOOL = "final_answer"

_replace = msgspec.structs.replace

INSTRUCTED = Notice(
    "output_instructed", "the model gets the schema in its instructions", "output", "json_schema", "instructions"
)
_BY_TOOL = Notice("output_by_tool", "this model gives its answer by calling a tool", "output", "json_schema", "tool")
_TWO_PHASES = Notice(
    "output_in_two_phases",
    "this host takes no schema together with tools; a last request without tools asks for the answer as JSON",
    "output",
)


class Strategy(msgspec.Struct, frozen=True):
    """How the answer gets its form, for all steps of a run."""

    kind: StrategyKind
    tool: str = FINAL_TOOL
    """The name of the extra tool, which no tool of the prompt has."""
    forced: bool = False
    """The model may be forced to call a tool."""
    two_phase: bool = False
    """The host does not take schema and tools together. The tools are used first, without the schema; a last request
    without tools asks for the answer as JSON."""
    json_mode: bool = False
    """The host has a JSON mode, but takes no schema."""
    shapes_only: bool = False
    """The schema is sent without bounds, which the host refuses."""
    notices: tuple[Notice, ...] = ()
    """Notices about the choice."""


# --- choosing ---------------------------------------------------------------------------------------------------------


def choose_strategy(output_type: OutputType[Any], prompt: Prompt, target: Target, *, in_text: bool = False) -> Strategy:
    """Choose the best strategy for this model and prompt. It depends on the prompt's tools and thinking.

    `in_text`: the model writes its tool calls as text, which a schema would prevent.
    """
    if in_text:
        return Strategy("instructed", notices=(INSTRUCTED,))
    rule, quirks = target.rule, target.quirks
    thinks = bool(target.thinks(prompt.thinking))
    takes = target.facts.structured_output
    if thinks and not quirks.output_while_thinking:
        takes = "nothing"
    two_phase = bool(prompt.tools) and not target.facts.output_with_tools
    two_phase_notices = (_TWO_PHASES,) if two_phase else ()
    has_json_mode = takes != "nothing" and find_facts(target.dialect).json_mode
    schema = output_type.schema
    if not isinstance(schema, OutputSchema):
        if has_json_mode:
            return Strategy("native", two_phase=two_phase, notices=two_phase_notices)
        return Strategy("instructed")
    shapes_only = quirks.schema_words == "shapes"
    if takes == "json_schema" and (not shapes_only or simplify_schema(schema.schema) is not None):
        return Strategy("native", two_phase=two_phase, shapes_only=shapes_only, notices=two_phase_notices)
    if rule.tools is True and (rule.tools_while_thinking or not prompt.thinking.wanted):
        by_name = rule.forced_tools is True
        forced = not thinks or (by_name and (prompt.thinking.budget is None or rule.forced_tools_with_budget))
        return Strategy("tool", tool=_find_free_name(prompt), forced=forced, notices=(_BY_TOOL,))
    return Strategy("instructed", json_mode=has_json_mode and not two_phase, notices=(INSTRUCTED,))


def _find_free_name(prompt: Prompt) -> str:
    taken = {tool.name for tool in prompt.tools}
    name, number = FINAL_TOOL, 1
    while name in taken:
        number += 1
        name = f"{FINAL_TOOL}_{number}"
    return name


# --- applying ---------------------------------------------------------------------------------------------------------


def apply_strategy(prompt: Prompt, output_type: OutputType[Any], strategy: Strategy, *, final: bool = False) -> Prompt:
    """Build the prompt of a step.

    `final`: the model must answer and may not call any of the user's tools. A two-phase strategy needs this once, after
    the message `ask_for_json`; other strategies may use it to end a run.
    """
    match strategy.kind:
        case "native":
            return _apply_native(prompt, output_type, strategy, final=final)
        case "tool":
            return _apply_tool(prompt, output_type, strategy, final=final)
        case "instructed":
            output = "json" if strategy.json_mode else None
            instructed = add_schema_instructions(_replace(prompt, output=output), output_type)
            return _forbid_calls(instructed, strategy) if final else instructed


def _apply_native(prompt: Prompt, output_type: OutputType[Any], strategy: Strategy, *, final: bool) -> Prompt:
    forces_a_call = bool(prompt.tools) and prompt.tool_choice not in (None, "auto", "none")
    # A step that must call a tool has no answer, and some hosts refuse a schema there (vercel/ai#16540, 2026-07).
    if (strategy.two_phase or forces_a_call) and not final:
        return _replace(prompt, output=None)
    schema = output_type.schema
    if not isinstance(schema, OutputSchema):
        # Hosts with a JSON mode refuse a prompt that does not mention JSON.
        prompt = add_schema_instructions(prompt, output_type)
    elif strategy.shapes_only:
        schema = _replace(schema, schema=simplify_schema(schema.schema) or schema.schema)
    prompt = _replace(prompt, output=schema)
    return _forbid_calls(prompt, strategy) if final else prompt


def _forbid_calls(prompt: Prompt, strategy: Strategy) -> Prompt:
    if not prompt.tools:
        return prompt
    if strategy.two_phase:
        return _replace(prompt, tools=(), tool_choice=None, parallel_tool_calls=None)
    # The tools stay, since hosts refuse a history with calls of tools that the request does not list.
    return _replace(prompt, tool_choice="none", parallel_tool_calls=None)


def _apply_tool(prompt: Prompt, output_type: OutputType[Any], strategy: Strategy, *, final: bool) -> Prompt:
    choice = prompt.tool_choice
    only_final = final or not prompt.tools or choice == "none"
    if only_final:
        choice = strategy.tool if strategy.forced else "auto"
    elif choice in (None, "auto"):
        # With this strategy text does not count as an answer, so the model has to call some tool.
        choice = "required" if strategy.forced else "auto"
    instructions = (
        f"Give your final answer by calling the tool {strategy.tool}, once, and not as text. Call it alone, when you "
        "have everything that you need."
    )
    if final:
        instructions = (
            f"Call the tool {strategy.tool} now, with your final answer. Call no other tool and give no answer as text."
        )
    tools = (*prompt.tools, build_final_tool(output_type, strategy))
    return _replace(_add_instructions(prompt, instructions), tools=tools, tool_choice=choice, output=None)


def build_final_tool(output_type: OutputType[Any], strategy: Strategy) -> Tool:
    """The tool that takes the answer."""
    schema = output_type.schema.schema if isinstance(output_type.schema, OutputSchema) else {"type": "object"}
    return Tool(strategy.tool, "Takes your final answer, in the form that it must have.", schema)


def _add_instructions(prompt: Prompt, text: str) -> Prompt:
    system = f"{prompt.system}\n\n{text}" if prompt.system and prompt.system.strip() else text
    return _replace(prompt, system=system)


def add_schema_instructions(prompt: Prompt, output_type: OutputType[Any]) -> Prompt:
    """Add the schema to the instructions, for a model that accepts no schema."""
    return _add_instructions(prompt, _describe_schema(output_type))


def _describe_schema(output_type: OutputType[Any]) -> str:
    if not isinstance(output_type.schema, OutputSchema):
        return "Your final answer is one JSON object and nothing else: no other words, no code fence."
    return (
        "Your final answer is one JSON value and nothing else: no other words, no code fence. It must fit this JSON "
        f"schema:\n{encode_schema(output_type)}"
    )


def encode_schema(output_type: OutputType[Any]) -> str:
    """The schema as JSON, on one line."""
    schema = output_type.schema.schema if isinstance(output_type.schema, OutputSchema) else {"type": "object"}
    return msgspec.json.encode(schema).decode()


def ask_for_json(output_type: OutputType[Any]) -> Message:
    """Build the message before the last request of a two-phase strategy: it asks for the answer as JSON."""
    schema = encode_schema(output_type)
    return user(f"Give your answer once more, now as JSON and nothing else. The JSON schema:\n{schema}")


def ask_for_correction(problem: OutputMismatch) -> Message:
    """Build the message that asks for a corrected answer. An answer that came as a call gets a tool result."""
    return Message("tool", problem.results) if problem.results else user(problem.feedback)
