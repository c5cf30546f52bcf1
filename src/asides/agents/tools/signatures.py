"""A typed function as a tool: its name, its docstring, the schema of its parameters. Not here: running it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, get_type_hints

import msgspec

from asides.agents.tools.docstrings import read_docstring
from asides.agents.tools.parameters import Declared, Parameters, _UnknownType, read_parameters
from asides.values.errors import ConfigError
from asides.values.json_schema import closed
from asides.values.tools import Tool

# What every provider accepts as a name.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Signature(msgspec.Struct, frozen=True):
    """A function as the model sees it, and how to read a call for it."""

    tool: Tool
    parameters: Parameters


def tool_of(function: Callable[..., Any]) -> Tool:
    """A typed function as a tool: its name, the first paragraph of its docstring, the schema of its signature.

    Parameters are described in the docstring, or by `Annotated[int, msgspec.Meta(description="…", ge=1)]`.
    """
    return read_signature(function).tool


def read_signature(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool | None = None,
    without_first: bool = False,
) -> Signature:
    """The signature of a function, of a method or of anything else that can be called.

    `without_first` is for a method that is not bound yet. Raises a ConfigError that says why a model could not call it.
    """
    import inspect

    name = checked_name(function, name)
    if not without_first and is_unbound_method(function):
        raise ConfigError(f"{function.__qualname__} is a method of nobody. To do: give it bound, as in thing.{name}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"the tool {name} yields, and a tool gives back one value. To do: return it.")
    declared = _declared(function, name)
    words = read_docstring(inspect.getdoc(_spoken(function)) or inspect.getdoc(function) or "")
    parameters = read_parameters(name, declared[1:] if without_first else declared, words.parameters)
    schema = parameters.schema()
    if strict:
        schema = closed(schema, parameters.definitions)
    return Signature(Tool(name, words.summary if description is None else description, schema, strict), parameters)


def checked_name(function: Callable[..., Any], name: str | None) -> str:
    """The name of a tool: the one it is given, or that of the function."""
    found = getattr(function, "__name__", "") if name is None else name
    if name is None and not found.isidentifier():
        kind = found or type(function).__name__
        raise ConfigError(f"{kind} cannot be a tool: it has no name. To do: use def, or asides.tool(…, name=…).")
    if not _NAME.fullmatch(found):
        raise ConfigError(
            f"{found[:80]!r} cannot be the name of a tool: it is at most 64 letters of ASCII, digits, _ and -. "
            "To do: give it another with asides.tool(name=…)."
        )
    return found


def is_unbound_method(function: Callable[..., Any]) -> bool:
    """Whether a function was written in a class and waits for its `self` or `cls`."""
    code = getattr(function, "__code__", None)
    where = getattr(function, "__qualname__", "").rpartition(".")[0]
    if code is None or hasattr(function, "__self__") or not where or where.endswith("<locals>"):
        return False
    return bool(code.co_argcount) and code.co_varnames[0] in ("self", "cls")


def _spoken(function: Any) -> Any:
    """Where the words and the types of something callable stand."""
    import inspect

    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    return type(function).__call__


def _declared(function: Callable[..., Any], name: str) -> list[Declared]:
    import inspect

    try:
        hints = _hints(function)
        signature = inspect.signature(function)
    except NameError as problem:
        raise _UnknownType(
            f"the signature of the tool {name} does not read ({problem}). To do: correct it, or define the type "
            "outside of any function."
        ) from None
    except (TypeError, ValueError) as problem:
        raise ConfigError(f"the signature of the tool {name} does not read ({problem}). To do: correct it.") from None
    # What a partial has filled in is nobody else's to say or to see.
    filled = function.keywords if isinstance(function, partial) else {}
    found: list[Declared] = []
    for parameter in signature.parameters.values():
        if parameter.name in filled:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            bare = parameter.replace(annotation=parameter.empty, default=parameter.empty)
            raise ConfigError(
                f"the tool {name} cannot take {bare}: a model gives arguments by name. To do: name its parameters."
            )
        default = msgspec.UNSET if parameter.default is parameter.empty else parameter.default
        kind = hints.get(parameter.name, Any)
        found.append(Declared(parameter.name, Any if kind is object else kind, default))
    return found


def _hints(function: Any) -> dict[str, Any]:
    spoken = _spoken(function)
    hints = get_type_hints(spoken, include_extras=True)
    if isinstance(spoken, type):
        # The class has the fields of a dataclass and its like; one of another sort says what it is made from.
        made_from: Any = vars(spoken).get("__init__", object.__init__)
        hints |= get_type_hints(made_from, include_extras=True)
    return hints
