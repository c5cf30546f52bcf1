"""A JSON value against a JSON schema: `checker_of(schema)`. What is wrong is said with its place, without its content.

Not here: types, which read and check in one go (wanted). The library that checks is imported when it is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from asides.agents.outputs.misfit import Misfit
from asides.agents.outputs.schemas import kind_of
from asides.values.errors import ConfigError

# The library writes a function and has it compiled: odd schemas make it trip in many ways, which mean one thing.
_SCHEMA_FAULTS = (ValueError, LookupError, TypeError, AttributeError, NameError, SyntaxError, RecursionError, re.error)


def checker_of(schema: dict[str, Any]) -> Callable[[Any], None]:
    """A function that raises Misfit for what does not fit. Raises ConfigError for what is no schema.

    Drafts 4, 6, 7 and 2019-09. Nothing is fetched: a reference to another document is refused.
    """
    import fastjsonschema

    def compiled(*, use_formats: bool) -> Callable[[Any], Any]:
        made: Callable[[Any], Any] = fastjsonschema.compile(
            schema, handlers=_Nowhere(), use_default=False, use_formats=use_formats
        )
        return made

    try:
        try:
            check = compiled(use_formats=True)
        except fastjsonschema.JsonSchemaDefinitionException:
            check = compiled(use_formats=False)  # a format of somebody's own is no reason to refuse
    except _SCHEMA_FAULTS as problem:
        raise ConfigError(
            f"output is no JSON schema that can be checked ({type(problem).__name__}). To do: correct it."
        ) from None

    def checked(value: Any) -> None:
        try:
            check(value)
        except fastjsonschema.JsonSchemaValueException as problem:
            raise Misfit(_words(problem)) from None
        except RecursionError:
            raise Misfit("$: it is nested too deeply") from None

    return checked


class _Nowhere(dict[str, Callable[[str], Any]]):
    """Stands where the library would look for whom to fetch a document with, and has nobody."""

    def __contains__(self, scheme: object) -> bool:
        return True

    def __getitem__(self, scheme: str) -> Callable[[str], Any]:
        return _refuse


def _refuse(_: str) -> Any:
    raise ConfigError("the schema of output refers to another document. To do: put its definitions into $defs.")


def _words(problem: Any) -> str:
    place = "$" + str(problem.name or "data").removeprefix("data")
    rule, told = problem.rule, problem.rule_definition
    match rule:
        case "type":
            expected = f"expected {told if isinstance(told, str) else ' or '.join(told)}"
        case "enum":
            expected = f"expected one of {_json(told)}"
        case "required":
            missing = [name for name in told if isinstance(problem.value, dict) and name not in problem.value]
            return f"{place}: these fields are missing: {_json(missing)}"
        case "additionalProperties":
            known = list((problem.definition or {}).get("properties", {}))
            return f"{place}: only these fields may be there: {_json(known)}"
        case None:
            expected = "expected something else"
        case _:
            expected = f"expected {rule} {_json(told)}"
    return f"{place}: {expected}, found {kind_of(problem.value)}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
