"""What stands behind `Action:` and `Action Input:`, read as a call: a name, and arguments as JSON text. Pure.

Not here: where the two sections begin and end (sections), and what is said to a model that wrote them wrong (hints).
What does not read stays as it was written, so that it can be told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from asides.values.tools import Tool

NAME = re.compile(r"[\w.:/-]+")
"""A tool's name: one word."""

_FENCE = re.compile(r"(`{3,}|~{3,})(?:[\w+-]*[ \t]*(?:\n|(?=[{\[])))?")
_WITH_INPUT = re.compile(
    r"([\w.:/-]+)[`*\"']*[ \t]*\n?\s*"
    r"(?:(?:action[ _-]?)?(?:input|arguments|args|parameters)[*]*[ \t]*[:\uff1a][*]*\s*)?(?=[{`])(.*)",
    re.DOTALL | re.IGNORECASE,
)
_ANSWER = re.compile(r"final[ _-]?answer", re.IGNORECASE)
_NOTHING = frozenset({"", "none", "n/a", "na", "null", "no action", "no action needed", "nothing", "-"})
_NAMED_IN = ("name", "action", "tool", "tool_name", "function")
_GIVEN_IN = ("arguments", "action_input", "input", "args", "parameters", "tool_input")


_MOST_OF_A_NAME = 200


class Call(NamedTuple):
    """A call as the model wrote it; `name` is "" where it gave none."""

    name: str
    arguments: str
    trailing: bool = False
    """Words stood behind the arguments, which belong to nothing."""


class Answer(NamedTuple):
    """The model called its answer an action."""

    text: str


def read_action(name: str, given: str | None, tools: Sequence[Tool]) -> Call | Answer | None:
    """The call, the answer, or None where the model says that it does nothing. `given` is None without an input."""
    known = {tool.name: tool for tool in tools}
    head = unfenced(name)
    trailing = False
    if head.startswith("{"):
        value, end = first_value(head)
        if not isinstance(value, dict) or (word := _field(value, _NAMED_IN)) is None:
            return Call("", head)
        word = str(word)
        trailing = _is_more(head[end:])
        held = _field(value, _GIVEN_IN)
        given = given if held is None else _written(held)
    elif given is None and (both := _WITH_INPUT.match(head)) is not None:
        word, given = both[1], both[2]
    else:
        word = clean_name(head)
    word = _known_name(word, known)
    if word not in known and _ANSWER.fullmatch(word):
        return Answer(_answer_text(given or ""))
    if word not in known and word.lower() in _NOTHING and (word or not (given or "").strip()):
        # An empty Action is nothing only where something else was said; hints see to the rest.
        return None
    arguments, behind = _arguments(given or "", known.get(word))
    return Call(word, arguments, trailing or behind)


def is_prose(text: str, names: Collection[str] = ()) -> bool:
    """Whether what stands behind an `Action:` in plain words is words too, and no call: "Bob sends the mail".

    `names`: only these can be called.
    """
    head = text.lstrip()[:_MOST_OF_A_NAME].partition("\n")[0].strip()
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


def is_settled(text: str) -> bool:
    """Whether enough is there to tell: more than a line, or more than any name."""
    text = text.strip()
    return "\n" in text or len(text) > _MOST_OF_A_NAME


def clean_name(text: str) -> str:
    """A name without the marks that models put around it."""
    return text.strip("*`\"'.,; \t\r\n")


def unfenced(text: str) -> str:
    """A text without the code fence, or the backticks, that it stands in; behind an object they may be left."""
    text = text.strip()
    if (fence := _FENCE.match(text)) is not None:
        body = text[fence.end() :].strip()
        # An object knows its own end, and may hold a fence.
        return body if body.startswith("{") else body.partition(fence[1])[0].strip()
    if len(text) > 1 and text[0] == text[-1] == "`" and text.count("`") == 2:
        return text[1:-1].strip()
    return text


def first_value(text: str) -> tuple[Any, int]:
    """The JSON value that a text begins with, and where it ends; (None, 0) when it begins with none."""
    try:
        return json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, 0


def parameters_of(tool: Tool) -> dict[str, Any]:
    """The parameters of a tool, by name."""
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_of(tool: Tool) -> list[str]:
    """The names of the parameters that a tool cannot do without."""
    required = tool.parameters.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []


def _known_name(word: str, known: Mapping[str, Tool]) -> str:
    """The name as the tool has it, where only the case differs."""
    if word in known:
        return word
    alike = [name for name in known if name.lower() == word.lower()]
    return alike[0] if len(alike) == 1 else word


def _field(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _written(value: Any) -> str:
    """A value as the model would have written it behind `Action Input:`."""
    return value if isinstance(value, str) else json.dumps(value)


def _answer_text(given: str) -> str:
    text = unfenced(given)
    value, end = first_value(text)
    # An escape may be half of a character.
    return value.encode(errors="replace").decode() if isinstance(value, str) and end == len(text) else text


def _arguments(given: str, tool: Tool | None) -> tuple[str, bool]:
    """The arguments as JSON text, and whether there was more behind them."""
    text = unfenced(given)
    value, end = first_value(text)
    if isinstance(value, dict):
        return text[:end], _is_more(text[end:])
    if tool is None or not text or text.startswith("{"):
        return text, False
    parameters = parameters_of(tool)
    if not parameters:
        return "{}", False
    if len(parameters) > 1:
        return text, False
    # One parameter needs no name: whatever was given is meant for it.
    ((name, schema),) = parameters.items()
    kind = schema.get("type") if isinstance(schema, dict) else None
    whole = end == len(text) and (isinstance(value, str) or kind != "string")
    if text.lower() in _NOTHING and name not in required_of(tool):
        return "{}", False
    return json.dumps({name: value if whole else text}), False


def _is_more(behind: str) -> bool:
    """Whether there is anything behind an object but the end of its fence."""
    return bool(behind.strip("`~ \t\r\n"))
