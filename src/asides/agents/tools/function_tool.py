"""`@asides.tool` makes a typed function a tool; `build_toolset` reads the tools of an agent, in all their forms."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import FunctionType, MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, cast, get_args, overload

import msgspec

from asides.agents.tools.call_arguments import read_call
from asides.agents.tools.executor import Approval, Runnable
from asides.agents.tools.signatures import (
    Signature,
    _UndefinedType,
    build_unbound_error,
    is_unbound_method,
    read_signature,
    read_tool_name,
)
from asides.values.errors import ConfigError
from asides.values.parts import ToolCall
from asides.values.tools import Tool, read_tool

_MAX_WRAPPERS = 8
_NAMES = re.compile(r"[^\W\d]\w*")

Given = ParamSpec("Given")
Rest = ParamSpec("Rest")
Value = TypeVar("Value")
Owner = TypeVar("Owner")


class ToolOptions(msgspec.Struct, frozen=True):
    """The options of the decorator."""

    name: str | None = None
    description: str | None = None
    approval: Approval | None = None
    timeout: float | None = None
    fatal: tuple[type[BaseException], ...] = ()
    strict: bool | None = None


class FunctionTool(Generic[Given, Value]):
    """A function that is also a tool. Calling it calls the function; `run` takes a model's call."""

    def __init__(self, function: Callable[Given, Value], options: ToolOptions | None = None) -> None:
        import inspect

        self._options = options or ToolOptions()
        self._outer: Any = function
        # A staticmethod or classmethod object wraps the function that has the name, the types and the docstring.
        inner: Any = self._outer.__func__ if isinstance(self._outer, (staticmethod, classmethod)) else function
        if not callable(inner):
            raise ConfigError(f"a tool must be a function, not {type(inner).__name__}. Decorate a function.")
        self._function = inner
        kind: type[Any] = type(function)
        self._unbound = kind is classmethod or (kind is not staticmethod and is_unbound_method(inner))
        self._signature: Signature | None = None
        self._declared: tuple[object, ...] | None = None
        name = read_tool_name(inner, self._options.name)
        functools.update_wrapper(self, inner, updated=())
        if isinstance(inner, functools.partial):
            self.__doc__ = inner.func.__doc__
        self.__name__: str = getattr(inner, "__name__", name)
        self.__qualname__: str = getattr(inner, "__qualname__", name)
        called = inner if inspect.isroutine(inner) or isinstance(inner, functools.partial) else type(inner).__call__
        self.blocking = not (inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(called))
        """Whether calling the function does the work; False for an async function, which returns an awaitable."""
        # An annotation may name a type that is defined later. The signature is then read when the tool is first used.
        with contextlib.suppress(_UndefinedType):
            self._read_signature()

    def _read_signature(self) -> Signature:
        if self._signature is None:
            declared = _list_declared(self._function)
            self._signature = read_signature(
                self._function,
                name=self._options.name,
                description=self._options.description,
                strict=self._options.strict,
                without_first=self._unbound,
            )
            self._declared = declared
        return self._signature

    def has_read(self, function: object) -> bool:
        """Whether this is the tool of the plain function as it is declared now, so that none has to be made."""
        if self._outer is not function or self._declared is None or self._options != ToolOptions():
            return False
        declared = _list_declared(self._function)
        return (
            declared is not None
            and len(declared) == len(self._declared)
            and all(now is then for now, then in zip(declared, self._declared, strict=True))
        )

    @property
    def tool(self) -> Tool:
        """The tool as the model sees it."""
        self._check_bound()
        return self._read_signature().tool

    @property
    def approval(self) -> Approval | None:
        """Whether its calls may be run; None leaves it to the agent."""
        return self._options.approval

    @property
    def timeout(self) -> float | None:
        """Seconds that a call may take; None leaves it to the agent."""
        return self._options.timeout

    @property
    def fatal(self) -> tuple[type[BaseException], ...]:
        """Exceptions that end the run with ToolFailed; the model gets all others as error results."""
        return self._options.fatal

    def run(self, call: ToolCall) -> Any | Awaitable[Any]:
        """Call the function with the arguments of the call. Raises BadArguments when they do not fit."""
        self._check_bound()
        return self._function(**read_call(call, self._read_signature().parameters))

    def _check_bound(self) -> None:
        if self._unbound:
            raise build_unbound_error(self.__qualname__, self._options.name or self.__name__)

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Value:
        """Call the function as a plain function."""
        return cast("Value", self._function(*args, **kwargs))

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> FunctionTool[Given, Value]: ...

    @overload
    def __get__(
        self: FunctionTool[Concatenate[Owner, Rest], Value], instance: Owner, owner: type[Any] | None = None
    ) -> FunctionTool[Rest, Value]: ...

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> FunctionTool[Any, Value]:
        """Bind a method to its object, as functions do; a bound tool has no `self` parameter."""
        if not self._unbound or (instance is None and not isinstance(self._outer, classmethod)):
            return self
        bound = FunctionTool.__new__(FunctionTool)
        bound.__dict__.update(self.__dict__)
        bound._outer = bound._function = self._outer.__get__(instance, owner)
        bound.__dict__["__wrapped__"] = bound._function
        bound._unbound = False
        # Every object looks the same to the model.
        bound._signature = self._read_signature()
        return bound

    def __repr__(self) -> str:
        return f"FunctionTool({self._options.name or self.__name__})"


@overload
def tool(
    function: Callable[Given, Value],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    approval: Approval | None = None,
    timeout: float | None = None,
    fatal: type[BaseException] | tuple[type[BaseException], ...] = (),
    strict: bool | None = None,
) -> FunctionTool[Given, Value]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    approval: Approval | None = None,
    timeout: float | None = None,
    fatal: type[BaseException] | tuple[type[BaseException], ...] = (),
    strict: bool | None = None,
) -> Callable[[Callable[Given, Value]], FunctionTool[Given, Value]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    approval: Approval | None = None,
    timeout: float | None = None,
    fatal: type[BaseException] | tuple[type[BaseException], ...] = (),
    strict: bool | None = None,
) -> Any:
    """Make a typed function, sync or async, a tool that an agent can run; it can still be called as before.

    The model sees its name, the first paragraph of its docstring, and its parameters with their types, defaults and
    descriptions. `approval` says whether calls may be run ("allow", "deny", or "ask" the agent's handler), `timeout`
    how many seconds one may take, `fatal` which exceptions end the run instead of going to the model. `strict` asks
    the provider to hold the model to the schema. Raises ConfigError if a model could not call the function.
    """
    if approval is not None and approval not in get_args(Approval):
        raise ConfigError(f'approval={approval!r} is not known. Use "allow", "deny" or "ask".')
    seconds: Any = timeout
    if seconds is not None and not (isinstance(seconds, (int, float)) and seconds > 0):
        raise ConfigError("the timeout of a tool is not a number above zero. Pass seconds, or None.")
    kinds: tuple[Any, ...] = fatal if isinstance(fatal, tuple) else (fatal,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise ConfigError("fatal= has a value that is not an exception type. Pass exception types only.")
    options = ToolOptions(name, description, approval, timeout, kinds, strict)

    def decorate(decorated: Callable[..., Any]) -> FunctionTool[..., Any]:
        if isinstance(decorated, FunctionTool):
            raise ConfigError(f"{decorated.__name__} is already a tool. Decorate it once.")
        return FunctionTool(decorated, options)

    return decorate if function is None else decorate(function)


# --- the tools of an agent ------------------------------------------------------------------------------------------

ToolLike: TypeAlias = Tool | Mapping[str, Any] | Runnable | Callable[..., Any]
"""A tool, a dict in a provider's format, a typed function, or any object that is Runnable."""


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool that the model may call."""

    tool: Tool
    runnable: Runnable | None = None
    """Runs the calls; None leaves them to the caller."""


def _list_declared(function: object, depth: int = 0) -> tuple[object, ...] | None:
    """Everything that the signature of a plain function or method is read from; None for other callables."""
    if isinstance(function, MethodType):
        function = function.__func__
    if not isinstance(function, FunctionType) or depth > _MAX_WRAPPERS:
        return None
    if not vars(function).keys() <= {"__wrapped__"}:
        return None
    try:
        annotations = function.__annotations__
    except Exception:  # noqa: BLE001 - newer versions of Python run the annotations when they are first read
        return None
    names = [name for text in annotations.values() if isinstance(text, str) for name in _NAMES.findall(text)]
    declared = (
        *(function.__code__, function.__doc__, function.__name__, function.__defaults__),
        *(each for pair in (function.__kwdefaults__ or {}).items() for each in pair),
        *(each for pair in annotations.items() for each in pair),
        # A name in an annotation may refer to another type by now.
        *(function.__globals__.get(name) for name in names),
    )
    if "__wrapped__" not in vars(function):
        return declared
    wrapped = _list_declared(vars(function)["__wrapped__"], depth + 1)
    return None if wrapped is None else (*declared, *wrapped)


def find_runnable(tool: ToolLike, earlier: Mapping[str, OfferedTool] | None = None) -> Runnable | None:
    """Find the runnable of a tool; None for a mere description, whose calls are left to the caller."""
    if isinstance(tool, FunctionTool):
        return tool
    if isinstance(tool, (Tool, Mapping)):
        return None
    # A class also has the attributes of its objects, but cannot be run.
    if isinstance(tool, Runnable) and not isinstance(tool, type):
        return tool
    if callable(tool):
        known = earlier.get(tool.__name__) if earlier and isinstance(tool, (FunctionType, MethodType)) else None
        if known is not None and isinstance(known.runnable, FunctionTool) and known.runnable.has_read(tool):
            return known.runnable
        return FunctionTool(tool)
    raise ConfigError(f"a tool must be a Tool, a dict or a function, not {type(tool).__name__}. Pass one of them.")


def read_offer(tool: ToolLike, earlier: Mapping[str, OfferedTool] | None = None) -> OfferedTool:
    """Read a tool in any form, with its runnable. Raises ConfigError for anything that is not a tool."""
    if isinstance(tool, Tool):
        return OfferedTool(tool)
    if isinstance(tool, Mapping):
        return OfferedTool(read_tool(tool))
    runnable = find_runnable(tool, earlier)
    if runnable is None:
        raise AssertionError("only descriptions have no runnable")
    return OfferedTool(runnable.tool, runnable)


def build_toolset(
    tools: Iterable[ToolLike], earlier: Mapping[str, OfferedTool] | None = None
) -> dict[str, OfferedTool]:
    """Read the tools; returns them by name, in their order. Raises ConfigError if two have the same name.

    A function of an `earlier` toolset is not read again, unless it is declared differently now.
    """
    given: Any = tools
    if isinstance(given, (Mapping, str)) or not isinstance(given, Iterable):
        raise ConfigError("tools is a list, even for one tool. Write tools=[…].")
    offered: dict[str, OfferedTool] = {}
    for tool in tools:
        offer = read_offer(tool, earlier)
        if offer.tool.name in offered:
            raise ConfigError(f"two tools are called {offer.tool.name}. Rename one, as with asides.tool(name=…).")
        offered[offer.tool.name] = offer
    return offered
