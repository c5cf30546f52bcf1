"""The prompt of a step, dressed for the way that the answer gets its form: `dressed(prompt, wanted, way)`. Pure.

Also the words that go into the conversation: a call for the form, and what was wrong with an answer. Not here: when
(flows).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.agents.outputs.misfit import Misfit
from asides.agents.outputs.output_type import Wanted
from asides.agents.outputs.strategy import Way
from asides.agents.outputs.strict_schema import plain_shapes
from asides.values.messages import Message, OutputSchema, Prompt, user
from asides.values.tools import Tool

_replace = msgspec.structs.replace


def dressed(prompt: Prompt, wanted: Wanted[Any], way: Way, *, final: bool = False) -> Prompt:
    """The prompt as it is sent in a step of this way; the given one stays as it is.

    `final`: nothing is to be done any more but to answer, so no tool of the user's is called. A way of two phases needs
    it, once, behind the message `closing(wanted)`; others may use it when a run has to come to its end.
    """
    match way.kind:
        case "native":
            return _native(prompt, wanted, way, final=final)
        case "tool":
            return _by_tool(prompt, wanted, way, final=final)
        case "instructed":
            output = "json" if way.json_mode else None
            return _without_calls(_instructed(_replace(prompt, output=output), _in_words(wanted)), way, final=final)


def _native(prompt: Prompt, wanted: Wanted[Any], way: Way, *, final: bool) -> Prompt:
    forces_a_call = bool(prompt.tools) and prompt.tool_choice not in (None, "auto", "none")
    # A step that has to call a tool has no answer to form, and some hosts refuse both (vercel/ai#16540, 2026-07).
    if (way.two_phase or forces_a_call) and not final:
        return _replace(prompt, output=None)
    schema = wanted.schema
    if not isinstance(schema, OutputSchema):
        # Hosts that know JSON without a schema refuse a prompt that does not speak of it.
        prompt = _instructed(prompt, _in_words(wanted))
    elif way.shapes_only:
        schema = _replace(schema, schema=plain_shapes(schema.schema) or schema.schema)
    return _without_calls(_replace(prompt, output=schema), way, final=final)


def _without_calls(prompt: Prompt, way: Way, *, final: bool) -> Prompt:
    if not final or not prompt.tools:
        return prompt
    if way.two_phase:
        return _replace(prompt, tools=(), tool_choice=None, parallel_tool_calls=None)
    # Kept, since hosts refuse a history with calls of tools that they are not told of.
    return _replace(prompt, tool_choice="none", parallel_tool_calls=None)


def _by_tool(prompt: Prompt, wanted: Wanted[Any], way: Way, *, final: bool) -> Prompt:
    choice = prompt.tool_choice
    alone = final or not prompt.tools or choice == "none"
    if alone:
        choice = way.tool if way.forced else "auto"
    elif choice in (None, "auto"):
        # Text alone is no answer in this way, so some tool is called in any case.
        choice = "required" if way.forced else "auto"
    words = (
        f"Give your final answer by calling the tool {way.tool}, once, and not as text. Call it alone, when you have "
        "everything that you need."
    )
    if final:
        words = f"Call the tool {way.tool} now, with your final answer. Call no other tool and give no answer as text."
    described = final_tool(wanted, way)
    return _replace(_instructed(prompt, words), tools=(*prompt.tools, described), tool_choice=choice, output=None)


def final_tool(wanted: Wanted[Any], way: Way) -> Tool:
    """The tool that takes the answer."""
    schema = wanted.schema.schema if isinstance(wanted.schema, OutputSchema) else {"type": "object"}
    return Tool(way.tool, "Takes your final answer, in the form that it must have.", schema)


def _instructed(prompt: Prompt, words: str) -> Prompt:
    system = f"{prompt.system}\n\n{words}" if prompt.system and prompt.system.strip() else words
    return _replace(prompt, system=system)


def _in_words(wanted: Wanted[Any]) -> str:
    if not isinstance(wanted.schema, OutputSchema):
        return "Your final answer is one JSON object and nothing else: no other words, no code fence."
    return (
        "Your final answer is one JSON value and nothing else: no other words, no code fence. It must fit this JSON "
        f"schema:\n{schema_text(wanted)}"
    )


def schema_text(wanted: Wanted[Any]) -> str:
    """The schema as JSON, on one line."""
    schema = wanted.schema.schema if isinstance(wanted.schema, OutputSchema) else {"type": "object"}
    return msgspec.json.encode(schema).decode()


def closing(wanted: Wanted[Any]) -> Message:
    """What is said before the last call of a way of two phases: the answer is there, now it gets its form."""
    return user(f"Give your answer once more, now as JSON and nothing else. The JSON schema:\n{schema_text(wanted)}")


def repair(problem: Misfit) -> Message:
    """The message that tells the model what was wrong. An answer that came as a call is told so in its result."""
    if problem.results:
        return Message("tool", problem.results)
    return user(problem.words)
