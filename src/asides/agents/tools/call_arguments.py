"""Converts the arguments of a call to the types of the function's parameters, or describes the mismatch for the model.

It is lenient if the meaning is clear: numbers and booleans as text, a list or an object as JSON text, null for an
optional parameter.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import msgspec

from asides.agents.tools.executor import BadArguments
from asides.agents.tools.signatures import Parameter, Parameters
from asides.agents.tools.type_readers import TypeMismatch
from asides.values.error_words import suggest_name
from asides.values.json_schema import resolve_reference
from asides.values.parts import MAX_DEPTH, ToolCall, is_too_deep, read_arguments

_MAX_PROBLEM_LENGTH = 1500
_MAX_SCHEMA_LENGTH = 300


def read_call(call: ToolCall, parameters: Parameters) -> dict[str, Any]:
    """Read the keyword arguments for the function. Raises BadArguments, which lists everything that does not fit."""
    given = _read_custom_input(call, parameters) if call.custom else _read_object(call)
    known = {parameter.name: parameter for parameter in parameters.each}
    problems = [_describe_unknown(name, known) for name in given if name not in known]
    arguments: dict[str, Any] = {}
    for name, parameter in known.items():
        if name not in given:
            if parameter.required:
                problems.append(f"{name} is missing{_describe_expected(parameter, parameters)}")
            continue
        try:
            value = _read_value(parameter, given[name])
        except TypeMismatch as mismatch:
            found = "; ".join(f"{name}{where}: {what}" for where, what in mismatch.problems)
            problems.append(f"{found}{_describe_expected(parameter, parameters)}")
        else:
            if value is not msgspec.UNSET:
                arguments[name] = value
    if problems:
        raise _build_error(call, "; ".join(problems))
    return arguments


def _build_error(call: ToolCall, problem: str) -> BadArguments:
    if len(problem) > _MAX_PROBLEM_LENGTH:
        problem = f"{problem[:_MAX_PROBLEM_LENGTH]}…"
    return BadArguments(f"The arguments of {call.name} do not fit: {problem}. Call it again with ones that do.")


def _read_object(call: ToolCall) -> dict[str, Any]:
    if call.raw_arguments is None or call.arguments:
        return deepcopy(call.arguments)  # the function may change them, and the call goes back as the model made it
    given = read_arguments(call.raw_arguments)
    if given is not None:
        return given
    if is_too_deep(call.raw_arguments.encode("utf-8", "replace")):
        raise _build_error(call, f"they are nested deeper than {MAX_DEPTH} levels")
    try:
        found = type(msgspec.json.decode(call.raw_arguments)).__name__
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _build_error(call, f"they are not JSON ({error})") from None
    raise _build_error(call, f"they are a JSON {found} and not an object with a field for each argument") from None


def _read_custom_input(call: ToolCall, parameters: Parameters) -> dict[str, Any]:
    """Read the call's free text as the argument of a function that needs only one."""
    needed = [each for each in parameters.each if each.required] or list(parameters.each)
    if len(needed) != 1:
        raise _build_error(call, "the tool takes a JSON object and got text")
    return {needed[0].name: call.raw_arguments or ""}


def _describe_unknown(name: str, known: dict[str, Parameter]) -> str:
    hint = suggest_name(name, known, f"it takes {', '.join(known) or 'none'}")
    return f"there is no argument {name[:80]} ({hint})"


def _read_value(parameter: Parameter, value: Any) -> Any:
    """Convert the value to its type; UNSET if null means that nothing was given."""
    try:
        return parameter.reader.read(value)
    except TypeMismatch:
        if value is None and not parameter.required:
            return msgspec.UNSET
        decoded = _decode_json_text(value)
        if decoded is msgspec.UNSET:
            raise
        try:
            return parameter.reader.read(decoded)
        except TypeMismatch:
            pass  # The first problem, with the value before decoding, is the better message.
        raise


def _decode_json_text(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return msgspec.json.decode(value)
    return msgspec.UNSET


def _describe_expected(parameter: Parameter, parameters: Parameters) -> str:
    """Return the parameter's schema in parentheses; nothing if it is long."""
    resolved = resolve_reference(parameter.schema, parameters.definitions)
    schema = {key: value for key, value in resolved.items() if key != "title"}
    text = msgspec.json.encode(schema).decode()
    return f" (it takes {text})" if len(text) <= _MAX_SCHEMA_LENGTH and schema else ""
