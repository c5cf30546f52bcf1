"""Reads a typed function: its name, its docstring, and its parameters with their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from asides.agents.tools.type_readers import Reader, build_reader, encode_custom, is_pydantic_field
from asides.values.errors import ConfigError
from asides.values.json_schema import close_objects, hoist_definitions
from asides.values.tools import Tool

# Every provider accepts such a name.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class _UndefinedType(ConfigError):
    """An annotation names a type that is not defined, or not yet."""


class DeclaredParameter(msgspec.Struct, frozen=True):
    """A parameter as the function declares it."""

    name: str
    kind: Any
    """Its annotation, `Any` where it has none."""
    default: Any = msgspec.UNSET


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a function."""

    name: str
    required: bool
    reader: Reader
    schema: dict[str, Any]
    """Its JSON schema, which may refer to the definitions of the function."""


class Parameters(msgspec.Struct, frozen=True):
    """All parameters of a function."""

    each: tuple[Parameter, ...]
    definitions: dict[str, Any]
    """The definitions that the schemas refer to as `#/$defs/…`."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of an object that has the parameters as its fields."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {parameter.name: parameter.schema for parameter in self.each},
            "required": [parameter.name for parameter in self.each if parameter.required],
        }
        return {**schema, "$defs": self.definitions} if self.definitions else schema


class Signature(msgspec.Struct, frozen=True):
    """A function as the model sees it, and the parameters to read a call with."""

    tool: Tool
    parameters: Parameters


# --- functions ------------------------------------------------------------------------------------------------------


def read_signature(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool | None = None,
    without_first: bool = False,
) -> Signature:
    """Read the signature of a function, a method or another callable.

    `without_first` is for a method that is not bound yet. Raises a ConfigError that says why a model could not call it.
    """
    import inspect

    name = read_tool_name(function, name)
    if not without_first and is_unbound_method(function):
        raise build_unbound_error(function.__qualname__, name)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"the tool {name} is a generator, and a tool returns one value. Use return.")
    declared = _read_declarations(function, name)
    docstring = read_docstring(inspect.getdoc(_find_documented(function)) or inspect.getdoc(function) or "")
    parameters = read_parameters(name, declared[1:] if without_first else declared, docstring.parameters)
    schema = parameters.schema()
    if strict:
        schema = close_objects(schema, parameters.definitions)
    return Signature(Tool(name, docstring.summary if description is None else description, schema, strict), parameters)


def read_tool_name(function: Callable[..., Any], name: str | None) -> str:
    """Read the name of a tool: `name`, or the function's name. Raises ConfigError if providers would refuse it."""
    found = getattr(function, "__name__", "") if name is None else name
    if name is None and not found.isidentifier():
        kind = found or type(function).__name__
        raise ConfigError(f"{kind} cannot be a tool: it has no name. Use def, or asides.tool(…, name=…).")
    if not _NAME.fullmatch(found):
        raise ConfigError(
            f"{found[:80]!r} cannot be the name of a tool: a name has at most 64 ASCII letters, digits, _ and -. "
            "Give it another with asides.tool(name=…)."
        )
    return found


def is_unbound_method(function: Callable[..., Any]) -> bool:
    """Whether a function was written in a class and still needs its `self` or `cls`."""
    code = getattr(function, "__code__", None)
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    if code is None or hasattr(function, "__self__") or not owner or owner.endswith("<locals>"):
        return False
    return bool(code.co_argcount) and code.co_varnames[0] in ("self", "cls")


def build_unbound_error(qualified_name: str, name: str) -> ConfigError:
    """Build the error for a method that was passed without its object."""
    return ConfigError(f"{qualified_name} is not bound to an object. Pass a bound method, as in thing.{name}.")


# --- parameters -----------------------------------------------------------------------------------------------------


def read_parameters(function: str, declared: Sequence[DeclaredParameter], descriptions: dict[str, str]) -> Parameters:
    """Read the parameters of the function with this name. `descriptions` are the defaults for parameters without one.

    Raises a ConfigError that names a parameter whose type JSON cannot hold.
    """
    each: list[Parameter] = []
    definitions: dict[str, Any] = {}
    for parameter in declared:
        reader = _build_reader(function, parameter)
        schema: dict[str, Any] = hoist_definitions(reader.schema(), definitions)
        # The description of the parameter replaces that of its type.
        if text := _find_description(parameter.kind) or descriptions.get(parameter.name):
            schema["description"] = text
        required = parameter.default is msgspec.UNSET
        if not required:
            _add_default(schema, parameter.default)
        each.append(Parameter(parameter.name, required, reader, schema))
    # Last, so that definitions shared by two parameters are recognised as the same.
    for name in list(definitions):
        definitions[name] = hoist_definitions(definitions[name], definitions)
    return Parameters(tuple(each), definitions)


def _build_reader(function: str, parameter: DeclaredParameter) -> Reader:
    if is_pydantic_field(parameter.default):
        raise ConfigError(
            f"the tool {function} has Field(…) as the default of {parameter.name}. Write "
            f"{parameter.name}: Annotated[type, Field(…)], and the default after it."
        )
    try:
        return build_reader(parameter.kind)
    except NameError as error:
        raise _UndefinedType(
            f"the parameter {parameter.name} of the tool {function} cannot be read ({error})."
        ) from None
    except (TypeError, ValueError) as error:
        # Some of msgspec's messages are a page of advice for its own users, with the reason in the last line.
        reason = str(error).strip().split("\n")[-1] if str(error).startswith("Generating") else str(error)
        reason = " ".join(reason.split())[:300]
        raise ConfigError(
            f"the tool {function} has a type that JSON cannot hold: {parameter.name} ({reason}). Change it."
        ) from None


def _find_description(kind: Any) -> str | None:
    """Find the description in `Annotated`: a string, or an object that has one; also inside `X | None`."""
    if get_origin(kind) is Annotated:
        for mark in kind.__metadata__:
            text = mark if isinstance(mark, str) else getattr(mark, "description", getattr(mark, "documentation", None))
            if isinstance(text, str) and text:
                return text
        return None
    parts = get_args(kind) if type(None) in get_args(kind) else ()
    return next((text for part in parts if (text := _find_description(part))), None)


def _add_default(schema: dict[str, Any], default: Any) -> None:
    try:
        encoded = msgspec.to_builtins(default, str_keys=True, enc_hook=encode_custom)
        msgspec.json.encode(encoded)
    except (TypeError, ValueError, RecursionError):
        return  # JSON cannot hold the default. The model leaves the argument out, and the function uses its default.
    schema["default"] = encoded


def _read_declarations(function: Callable[..., Any], name: str) -> list[DeclaredParameter]:
    import inspect

    try:
        hints = _read_hints(function)
        signature = inspect.signature(function)
    except NameError as error:
        raise _UndefinedType(
            f"the signature of the tool {name} cannot be read ({error}). Correct it, or define the type "
            "outside of any function."
        ) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the signature of the tool {name} cannot be read ({error}). Correct it.") from None
    # The model does not see the arguments that a partial has filled in.
    filled = function.keywords if isinstance(function, partial) else {}
    found: list[DeclaredParameter] = []
    for parameter in signature.parameters.values():
        if parameter.name in filled:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            bare = parameter.replace(annotation=parameter.empty, default=parameter.empty)
            raise ConfigError(
                f"the tool {name} cannot take {bare}: a model gives arguments by name. Name its parameters."
            )
        default = msgspec.UNSET if parameter.default is parameter.empty else parameter.default
        kind = hints.get(parameter.name, Any)
        found.append(DeclaredParameter(parameter.name, Any if kind is object else kind, default))
    return found


def _read_hints(function: Any) -> dict[str, Any]:
    documented = _find_documented(function)
    hints = get_type_hints(documented, include_extras=True)
    if isinstance(documented, type):
        # A dataclass and its like annotate the class; other classes annotate `__init__`.
        initializer: Any = vars(documented).get("__init__", object.__init__)
        hints |= get_type_hints(initializer, include_extras=True)
    return hints


def _find_documented(function: Any) -> Any:
    """Find the object that has the docstring and the annotations of a callable."""
    import inspect

    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    return type(function).__call__


# --- docstrings -----------------------------------------------------------------------------------------------------

_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*$")
_NUMPY = re.compile(r"^(?:Parameters|Other Parameters)\s*\n-{3,}\s*$", re.MULTILINE)
_FIELD = re.compile(r"^[:@](?P<field>\w+)(?:[ \t]+(?P<names>[^:\n]*))?:[ \t]*(?P<text>.*)$")
_PARAMETER_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
# The start of a section, also without a blank line before it.
_SECTION_START = re.compile(
    r"^(?:[:@]\w+[^:\n]*:.*|(?:[A-Z]\w+)(?: [A-Z]\w+)?:[ \t]*(?:\n[ \t]+\S.*)|[A-Z][\w ]*\n-{3,}[ \t]*)$", re.MULTILINE
)
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(?P<names>\w+)[ \t]*(?:\([^\n]*?\))?[ \t]*:(?:[ \t]+(?P<text>.*)|[ \t]*)$")
_NUMPY_ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:, *\*{0,2}\w+)*)[ \t]*(?::.*)?$")


class Docstring(msgspec.Struct, frozen=True):
    """The summary and the parameters of a docstring."""

    summary: str = ""
    """The first paragraph, on one line."""
    parameters: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Name → description on one line, for parameters that have one."""


def read_docstring(text: str) -> Docstring:
    """Read a docstring whose indentation was removed, as by `inspect.cleandoc`."""
    first_section = _SECTION_START.search(text)
    prose = text[: first_section.start()] if first_section else text
    lines = text.split("\n")
    parameters = {**_read_google(lines), **_read_numpy(text), **_read_sphinx(lines)}
    return Docstring(_join_lines(prose.strip().partition("\n\n")[0]), parameters)


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_google(lines: list[str]) -> dict[str, str]:
    """Read sections like `Args:`, with an indented entry for each parameter."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        if _GOOGLE.match(line):
            found |= _read_entries(_take_indented(lines[number + 1 :], deeper_than=0), _GOOGLE_ENTRY)
    return found


def _read_numpy(text: str) -> dict[str, str]:
    """Read sections underlined with dashes: a line `name : type`, and the description indented below it."""
    found: dict[str, str] = {}
    for header in _NUMPY.finditer(text):
        section = text[header.end() :].lstrip("\n")
        end = re.search(r"^[A-Z][\w ]*\n-{3,}[ \t]*$", section, re.MULTILINE)
        found |= _read_entries((section[: end.start()] if end else section).split("\n"), _NUMPY_ENTRY)
    return found


def _read_sphinx(lines: list[str]) -> dict[str, str]:
    """Read lines like `:param name: text` or `:param type name: text`, with the indented lines below them."""
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        field = _FIELD.match(line)
        if field is None or field["field"] not in _PARAMETER_FIELDS or not (field["names"] or "").strip():
            continue
        name = field["names"].split()[-1].lstrip("*\\")
        description = _join_lines(" ".join([field["text"], *_take_indented(lines[number + 1 :], deeper_than=0)]))
        if description:
            found[name] = description
    return found


def _take_indented(lines: list[str], *, deeper_than: int) -> list[str]:
    """Take the leading lines that are indented, and the blank lines between them."""
    for number, line in enumerate(lines):
        if line.strip() and _measure_indent(line) <= deeper_than:
            return lines[:number]
    return lines


def _read_entries(lines: list[str], entry: re.Pattern[str]) -> dict[str, str]:
    """Read the entries at the indentation of the first line, each with the deeper lines below it."""
    found: dict[str, str] = {}
    filled = [line for line in lines if line.strip()]
    if not filled:
        return found
    margin = _measure_indent(filled[0])
    for number, line in enumerate(filled):
        head = entry.match(line.strip()) if _measure_indent(line) == margin else None
        if head is None:
            continue
        same_line = head.groupdict().get("text") or ""
        description = _join_lines(" ".join([same_line, *_take_indented(filled[number + 1 :], deeper_than=margin)]))
        for name in head["names"].split(","):
            if description:
                found[name.strip().lstrip("*")] = description
    return found
