"""Corrections for a model that did not follow the form of ReAct: `find_problem`, `build_correction`.

Not here: how often a model is corrected (flows/output_format). The text says what is wrong and shows the right form. It
repeats nothing of the model's thinking.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from asides.agents.react.calls import NAME, list_parameters, list_required, parse_first_value
from asides.values.messages import Message, ToolCall, user
from asides.values.reply import Reply
from asides.values.tools import Tool

_FORM = 'Action: the name of one tool\nAction Input: {"parameter": "value"}'
_EXAMPLES: dict[str, Any] = {"string": "…", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
_MOST_EXAMPLES = 6


def find_problem(reply: Reply, tools: Sequence[Tool] = ()) -> str | None:
    """The problem of a translated reply, as text for the model that wrote it; None when there is none.

    `tools` are those of the prompt before `encode_prompt`. They reveal missing input, and the text shows how to call
    them. An unknown tool is not a problem of form.
    """
    calls = reply.tool_calls
    if len(calls) > 1:
        return (
            f"Your reply has {len(calls)} Actions; none of them was run. Write one Action with its Action Input and "
            f"stop, and the result comes with the next message:\n\n{_FORM}"
        )
    if any(notice.code == "answer_and_action" for notice in reply.warnings):
        return (
            "Your reply has both an Action and a Final Answer; the Action was not run. Write either one Action with "
            "its Action Input and stop, or the Final Answer alone."
        )
    known = {tool.name: tool for tool in tools}
    return next((_check_call(call, known) for call in calls), None) if calls else _check_text(reply)


def build_correction(problem: str) -> Message:
    """The message that tells the model what `find_problem` found."""
    return user(f"That could not be read. {problem}")


def _check_text(reply: Reply) -> str | None:
    if reply.outcome != "unterminated":
        return None
    invented = any(notice.code == "observation_invented" for notice in reply.warnings)
    problem = (
        "You wrote an Observation yourself; only a tool can give one."
        if invented
        else "Your reply has neither an Action nor a Final Answer."
    )
    return f"{problem} To use a tool, write:\n\n{_FORM}\n\nIf you know the answer, write:\n\nFinal Answer: the answer"


def _check_call(call: ToolCall, tools: dict[str, Tool]) -> str | None:
    tool = tools.get(call.name)
    if not call.name:
        return f"Your Action does not say which tool to use. Write:\n\n{_FORM}"
    if not NAME.fullmatch(call.name):
        return (
            "Write the name of one tool and nothing else after Action:, and its input after Action Input:. "
            f"Write:\n\n{_show_form(call.name, tool)}"
        )
    if call.raw_arguments is not None:
        return (
            f"The Action Input of {call.name} is not {_describe_json(call.raw_arguments)}. Write one JSON object, with "
            f"double quotes and closed braces, and nothing after it:\n\n{_show_form(call.name, tool)}"
        )
    if tool is not None and not call.arguments and (needed := list_required(tool)):
        return f"The tool {call.name} needs {', '.join(needed)} as input. Write:\n\n{_show_form(call.name, tool)}"
    return None


def _describe_json(raw: str) -> str:
    value, end = parse_first_value(raw)
    if end and not isinstance(value, dict):
        return "an object"
    try:
        json.loads(raw)
    except json.JSONDecodeError as problem:
        return f"valid JSON ({problem.msg}, line {problem.lineno}, column {problem.colno})"
    except (ValueError, RecursionError):
        pass
    return "valid JSON"


def _show_form(name: str, tool: Tool | None) -> str:
    if tool is None:
        return _FORM if not NAME.fullmatch(name) else f'Action: {name}\nAction Input: {{"parameter": "value"}}'
    parameters = list_parameters(tool)
    shown = [each for each in list_required(tool) if each in parameters] or list(parameters)
    example = {each: _make_example(parameters[each]) for each in shown[:_MOST_EXAMPLES]}
    return f"Action: {tool.name}\nAction Input: {json.dumps(example, ensure_ascii=False)}"


def _make_example(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return "…"
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    kind = schema.get("type")
    return _EXAMPLES.get(kind, "…") if isinstance(kind, str) else "…"
