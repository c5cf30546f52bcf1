"""The arguments of a call, read as what the function takes; or the words that tell a model what is wrong with them.

Lenient where it is plain what a model means: numbers and booleans as text, a list or an object as JSON text, null for
what may be left out. Not here: the types (parameters).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.agents.tools.parameters import Parameter, Parameters
from asides.agents.tools.runnable import BadArguments
from asides.agents.tools.type_readers import TypeMisfit
from asides.values.json_schema import resolved
from asides.values.messages import ToolCall, read_arguments

_LONGEST = 1500
_LONGEST_SCHEMA = 300


def read_call(call: ToolCall, parameters: Parameters) -> dict[str, Any]:
    """The keyword arguments for the function. Raises BadArguments, which names everything that does not fit."""
    given = _custom(call, parameters) if call.custom else _object(call)
    known = {parameter.name: parameter for parameter in parameters.each}
    problems = [_unknown(name, known) for name in given if name not in known]
    arguments: dict[str, Any] = {}
    for name, parameter in known.items():
        if name not in given:
            if parameter.required:
                problems.append(f"{name} is missing{_takes(parameter, parameters)}")
            continue
        try:
            value = _read(parameter, given[name])
        except TypeMisfit as misfit:
            told = "; ".join(f"{name}{where}: {what}" for where, what in misfit.problems)
            problems.append(f"{told}{_takes(parameter, parameters)}")
        else:
            if value is not msgspec.UNSET:
                arguments[name] = value
    if problems:
        raise _bad(call, "; ".join(problems))
    return arguments


def _bad(call: ToolCall, problem: str) -> BadArguments:
    if len(problem) > _LONGEST:
        problem = f"{problem[:_LONGEST]}…"
    return BadArguments(f"The arguments of {call.name} do not fit: {problem}. To do: call it again with ones that do.")


def _object(call: ToolCall) -> dict[str, Any]:
    if call.raw_arguments is None or call.arguments:
        return call.arguments
    given = read_arguments(call.raw_arguments)
    if given is not None:
        return given
    try:
        found = type(msgspec.json.decode(call.raw_arguments)).__name__
    except msgspec.DecodeError as problem:
        raise _bad(call, f"they are no JSON ({problem})") from None
    raise _bad(call, f"they are a JSON {found}, and not an object with a field for each argument") from None


def _custom(call: ToolCall, parameters: Parameters) -> dict[str, Any]:
    """Text of its own form is the one argument of a function that needs just one."""
    needed = [each for each in parameters.each if each.required] or list(parameters.each)
    if len(needed) != 1:
        raise _bad(call, "it takes a JSON object, and got text")
    return {needed[0].name: call.raw_arguments or ""}


def _unknown(name: str, known: dict[str, Parameter]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    told = f"did you mean {close[0]}?" if close else f"it takes {', '.join(known) or 'none'}"
    return f"there is no argument {name[:80]} ({told})"


def _read(parameter: Parameter, value: Any) -> Any:
    """The value as its type; UNSET where null stands for nothing given."""
    try:
        return parameter.reader.read(value)
    except TypeMisfit:
        if value is None and not parameter.required:
            return msgspec.UNSET
        inner = _json_in(value)
        if inner is msgspec.UNSET:
            raise
        try:
            return parameter.reader.read(inner)
        except TypeMisfit:
            pass  # what is wrong with it as it came is the better word
        raise


def _json_in(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            pass
    return msgspec.UNSET


def _takes(parameter: Parameter, parameters: Parameters) -> str:
    """What the parameter wants, as a short schema; nothing where it is long."""
    schema = {key: value for key, value in resolved(parameter.schema, parameters.definitions).items() if key != "title"}
    written = msgspec.json.encode(schema).decode()
    return f" (it takes {written})" if len(written) <= _LONGEST_SCHEMA and schema else ""
