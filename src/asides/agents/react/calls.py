"""Parses the text after `Action:` and `Action Input:` as a call, and corrects models that write it wrong. Pure.

A call has a name, and arguments as JSON text; text that cannot be parsed stays as it is, for the correction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from asides.values.messages import Message, user
from asides.values.parts import ToolCall
from asides.values.reply import Reply
from asides.values.tools import Tool

NAME = re.compile(r"[\w.:/-]+")
"""A tool's name: one word."""

_FENCE = re.compile(r"(`{3,}|~{3,})(?:[\w+-]*[ \t]*(?:\n|(?=[{\[])))?")
_WITH_INPUT = re.compile(
    r"([\w.:/-]+)[`*\"']*\s*"
    r"(?:(?:action[ _-]?)?(?:input|arguments|args|parameters)[*]*[ \t]*[:\uff1a][*]*\s*)?(?=[{`])(.*)",
    re.DOTALL | re.IGNORECASE,
)
_ANSWER = re.compile(r"final[ _-]?answer", re.IGNORECASE)
_NOTHING = frozenset({"", "none", "n/a", "na", "null", "no action", "no action needed", "nothing", "-"})
_NAME_FIELDS = ("name", "action", "tool", "tool_name", "function")
_INPUT_FIELDS = ("arguments", "action_input", "input", "args", "parameters", "tool_input")
# The only argument of the tool that some models make of the answer, without its blanks, hyphens and underscores.
_ANSWER_FIELDS = frozenset(
    "answer finalanswer response finalresponse result finalresult output finaloutput text content message value input "
    "actioninput argument arguments query summary".split()
)
_MAX_NAME = 200


# --- parsing --------------------------------------------------------------------------------------------------------


class ActionCall(NamedTuple):
    """A call as the model wrote it; `name` is "" where it gave none."""

    name: str
    arguments: str
    trailing: bool = False
    """Text followed the arguments and was left out."""


class AnswerAction(NamedTuple):
    """An answer that the model wrote as an action."""

    text: str


def parse_action(
    name: str, given: str | None, tools: Sequence[Tool], *, keeps_objects: bool = False
) -> ActionCall | AnswerAction | None:
    """Parse an action: a call, an answer, or None for an action like "none". `given` is None without an input.

    `keeps_objects`: the answer is a JSON object itself, not an object that names it.
    """
    known = {tool.name: tool for tool in tools}
    head = strip_code_fence(name)
    trailing = False
    if head.startswith("{"):
        value, end = parse_first_value(head)
        if not isinstance(value, dict) or (tool_name := _find_field(value, _NAME_FIELDS)) is None:
            return ActionCall("", head)
        tool_name = str(tool_name)
        trailing = _has_more(head[end:])
        inner = _find_field(value, _INPUT_FIELDS)
        given = given if inner is None else _to_text(inner)
    elif given is None and (both := _WITH_INPUT.match(head)) is not None:
        tool_name, given = both[1], both[2]
    else:
        tool_name = clean_name(head)
    tool_name = _match_name(tool_name, known)
    if tool_name not in known and _ANSWER.fullmatch(tool_name):
        return AnswerAction(_parse_answer(given or "", keeps_objects))
    if tool_name not in known and tool_name.lower() in _NOTHING and (tool_name or not (given or "").strip()):
        # An empty Action counts as nothing only without an input. With one, `find_problem` reports it.
        return None
    arguments, has_more = _parse_arguments(given or "", known.get(tool_name))
    return ActionCall(tool_name, arguments, trailing or has_more)


def is_prose(text: str, names: Collection[str] = ()) -> bool:
    """Whether the text after an `Action:` in an answer is prose and not a call: "Bob sends the mail".

    `names`: only these can be called.
    """
    head = text.lstrip()[:_MAX_NAME].partition("\n")[0].strip()
    word = clean_name(head)
    if not word or head[0] in "{[`~" or word.lower() in _NOTHING or _ANSWER.fullmatch(word):
        return False
    if _WITH_INPUT.match(head):
        return False
    found = NAME.match(word)
    if found is None:
        return True
    if found.end() == len(word):
        return bool(names) and word.lower() not in {name.lower() for name in names}
    return word[found.end()] not in "{(["


def is_decided(text: str) -> bool:
    """Whether the text is long enough for `is_prose`: more than a line, or longer than any name."""
    text = text.strip()
    return "\n" in text or len(text) > _MAX_NAME


def clean_name(text: str) -> str:
    """Remove quotes, asterisks and punctuation around a name."""
    return text.strip("*`\"'.,; \t\r\n")


def strip_code_fence(text: str) -> str:
    """Remove the code fence or the backticks around a text. Those after an object may stay."""
    text = text.strip()
    if (fence := _FENCE.match(text)) is not None:
        body = text[fence.end() :].strip()
        # An object ends by itself, and may contain a fence.
        return body if body.startswith("{") else body.partition(fence[1])[0].strip()
    if len(text) > 1 and text[0] == text[-1] == "`" and text.count("`") == 2:
        return text[1:-1].strip()
    return text


def parse_first_value(text: str) -> tuple[Any, int]:
    """Parse the JSON value at the beginning of a text. Returns it and its end; (None, 0) when there is none."""
    try:
        return json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, 0


def list_parameters(tool: Tool) -> dict[str, Any]:
    """The parameters of a tool, by name."""
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def list_required(tool: Tool) -> list[str]:
    """The names of the required parameters of a tool."""
    required = tool.parameters.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []


def _match_name(word: str, known: Mapping[str, Tool]) -> str:
    """The name of the tool that differs only in case; without one, the given name."""
    if word in known:
        return word
    alike = [name for name in known if name.lower() == word.lower()]
    return alike[0] if len(alike) == 1 else word


def _find_field(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _to_text(value: Any) -> str:
    """A value as the model would have written it after `Action Input:`."""
    return value if isinstance(value, str) else json.dumps(value)


def _parse_answer(given: str, keeps_objects: bool) -> str:
    """Read an answer that is written as the input of an action: text, a JSON string, or the only argument of a tool."""
    text = strip_code_fence(given)
    value, end = parse_first_value(text)
    if isinstance(value, dict) and len(value) == 1 and not keeps_objects and not _has_more(text[end:]):
        ((name, inner),) = value.items()
        if _fold_name(name) in _ANSWER_FIELDS and isinstance(inner, (str, int, float)):
            value, end = _to_text(inner), len(text)
    # An escape may be half of a surrogate pair.
    return value.encode(errors="replace").decode() if isinstance(value, str) and end == len(text) else text


def _fold_name(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _parse_arguments(given: str, tool: Tool | None) -> tuple[str, bool]:
    """Parse the arguments. Returns them as JSON text, and whether more text follows them."""
    text = strip_code_fence(given)
    value, end = parse_first_value(text)
    if isinstance(value, dict):
        return text[:end], _has_more(text[end:])
    if tool is None or not text or text.startswith("{"):
        return text, False
    parameters = list_parameters(tool)
    if not parameters:
        return "{}", False
    if len(parameters) > 1:
        return text, False
    # A single parameter needs no name: the input is its value.
    ((name, schema),) = parameters.items()
    kind = schema.get("type") if isinstance(schema, dict) else None
    whole = end == len(text) and (isinstance(value, str) or kind != "string")
    if text.lower() in _NOTHING and name not in list_required(tool):
        return "{}", False
    return json.dumps({name: value if whole else text}), False


def _has_more(rest: str) -> bool:
    """Whether anything but the end of a fence follows an object."""
    return bool(rest.strip("`~ \t\r\n"))


# --- corrections ----------------------------------------------------------------------------------------------------

_FORM = 'Action: the name of one tool\nAction Input: {"parameter": "value"}'
_EXAMPLES: dict[str, Any] = {"string": "…", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
_MAX_EXAMPLES = 6


def find_problem(reply: Reply, tools: Sequence[Tool] = ()) -> str | None:
    """Find what is wrong with the form of a translated reply, as text for the model; None when nothing is.

    `tools` are those of the prompt before `encode_prompt`. They show whether input is missing, and how a call is
    written. An unknown tool is not a problem of form.
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
    """Build the message that describes the problem to the model."""
    return user(f"That could not be read. {problem}")


def _check_text(reply: Reply) -> str | None:
    if reply.outcome not in ("unterminated", "unanswered"):
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
    example = {each: _make_example(parameters[each]) for each in shown[:_MAX_EXAMPLES]}
    return f"Action: {tool.name}\nAction Input: {json.dumps(example, ensure_ascii=False)}"


def _make_example(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return "…"
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    kind = schema.get("type")
    return _EXAMPLES.get(kind, "…") if isinstance(kind, str) else "…"
