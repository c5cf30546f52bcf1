"""The form of an answer for a target that may not take it as the caller asked: `fit_output(prompt, target)`.

A schema that the target does not take is written into the instructions: a caller who parses the answer gets JSON from
every model. Loaded only for requests that ask for a form.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.agents.outputs.output_type import OutputType
from asides.agents.outputs.schemas import is_strict_schema, simplify_schema
from asides.agents.outputs.strategy import add_schema_instructions, choose_strategy
from asides.dialects import find_facts
from asides.providers.provider import Target
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice

_HAS_STRICT = ("openai_chat", "openai_responses")
"""The dialects whose strict mode refuses some schemas."""


def fit_output(prompt: Prompt, caller: str, target: Target) -> tuple[Prompt, list[Notice]]:
    """Return the prompt with the form of the answer as the target takes it, and notices of what was changed."""
    if prompt.output is None:
        return prompt, []
    output_type: OutputType[Any] = OutputType(prompt.output, False, msgspec.json.decode)
    strategy = choose_strategy(output_type, prompt, target)
    if strategy.kind != "native" or strategy.two_phase:
        return _instruct(prompt, output_type, target)
    output = prompt.output
    if not isinstance(output, OutputSchema):
        # Hosts with a JSON mode refuse a prompt that does not mention JSON; a caller of that mode has mentioned it.
        return prompt if caller == target.dialect else add_schema_instructions(prompt, output_type), []
    if strategy.shapes_only:
        schema = simplify_schema(output.schema) or output.schema
        changed = [Notice("schema_simplified", "bounds of the schema were sent as descriptions", "output")]
        simple = msgspec.structs.replace(output, schema=schema)
        return msgspec.structs.replace(prompt, output=simple), changed if schema != output.schema else []
    is_new_mode = caller not in _HAS_STRICT and target.dialect in _HAS_STRICT
    if is_new_mode and output.strict and not is_strict_schema(output.schema):
        detail = "strict mode refuses this schema here; it was sent without"
        loose = msgspec.structs.replace(output, strict=False)
        return msgspec.structs.replace(prompt, output=loose), [Notice("schema_not_strict", detail, "output")]
    return prompt, []


def _instruct(prompt: Prompt, output_type: OutputType[Any], target: Target) -> tuple[Prompt, list[Notice]]:
    can_mode = target.facts.structured_output != "nothing" and find_facts(target.dialect).json_mode
    thinks = bool(target.thinks(prompt.thinking))
    blocked = (prompt.tools and not target.facts.output_with_tools) or (
        thinks and not target.quirks.output_while_thinking
    )
    mode = "json" if can_mode and not blocked else None
    instructed = add_schema_instructions(msgspec.structs.replace(prompt, output=mode), output_type)
    detail = "this model does not accept an output format; it was written into the instructions"
    return instructed, [Notice("schema_instructed", detail, "output")]
