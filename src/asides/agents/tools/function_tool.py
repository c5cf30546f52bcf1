"""`@asides.tool`: a typed function that a model may call, and that is still the function. Not here: who runs it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, get_args, overload

import msgspec

from asides.agents.tools.call_arguments import read_call
from asides.agents.tools.parameters import _UnknownType
from asides.agents.tools.runnable import Approval
from asides.agents.tools.signatures import Signature, checked_name, is_unbound_method, read_signature
from asides.values.errors import ConfigError
from asides.values.messages import ToolCall
from asides.values.tools import Tool

Given = ParamSpec("Given")
Rest = ParamSpec("Rest")
Value = TypeVar("Value")
Owner = TypeVar("Owner")


class ToolOptions(msgspec.Struct, frozen=True):
    """What the decorator was told."""

    name: str | None = None
    description: str | None = None
    approval: Approval | None = None
    timeout: float | None = None
    fatal: tuple[type[BaseException], ...] = ()
    strict: bool | None = None


class FunctionTool(Generic[Given, Value]):
    """A function with what a model needs to call it. Calling it is calling the function; `run` takes a model's call."""

    def __init__(self, function: Callable[Given, Value], options: ToolOptions | None = None) -> None:
        import inspect

        self._options = options or ToolOptions()
        self._outer: Any = function
        # Python calls neither before it is bound; what they hold is what has the name, the types and the words.
        inner: Any = self._outer.__func__ if isinstance(self._outer, (staticmethod, classmethod)) else function
        if not callable(inner):
            raise ConfigError(f"a tool is a function, not {type(inner).__name__}. To do: decorate a function.")
        self._function = inner
        kind: type[Any] = type(function)
        self._unbound = kind is classmethod or (kind is not staticmethod and is_unbound_method(inner))
        self._signature: Signature | None = None
        name = checked_name(inner, self._options.name)
        functools.update_wrapper(self, inner, updated=())
        if isinstance(inner, functools.partial):
            self.__doc__ = inner.func.__doc__
        self.__name__: str = getattr(inner, "__name__", name)
        self.__qualname__: str = getattr(inner, "__qualname__", name)
        called = inner if inspect.isroutine(inner) or isinstance(inner, functools.partial) else type(inner).__call__
        self.blocking = not (inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(called))
        """Whether the function does its work when it is called; False for an async one."""
        # A type that is defined below the function is there when the tool is first used.
        with contextlib.suppress(_UnknownType):
            self._read()

    def _read(self) -> Signature:
        if self._signature is None:
            told = self._options
            self._signature = read_signature(
                self._function,
                name=told.name,
                description=told.description,
                strict=told.strict,
                without_first=self._unbound,
            )
        return self._signature

    @property
    def tool(self) -> Tool:
        """As the model sees it."""
        self._check_bound()
        return self._read().tool

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
        """Exceptions that end the run with ToolFailed; all others are told to the model."""
        return self._options.fatal

    def run(self, call: ToolCall) -> Any | Awaitable[Any]:
        """What the function gives for the arguments of the call. Raises BadArguments when they do not fit."""
        self._check_bound()
        return self._function(**read_call(call, self._read().parameters))

    def _check_bound(self) -> None:
        if self._unbound:
            name = self._options.name or self.__name__
            raise ConfigError(f"{self.__qualname__} is a method of nobody. To do: give it bound, as in thing.{name}.")

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Value:
        """Call the function, as if it were not a tool."""
        return cast("Value", self._function(*args, **kwargs))

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> FunctionTool[Given, Value]: ...

    @overload
    def __get__(
        self: FunctionTool[Concatenate[Owner, Rest], Value], instance: Owner, owner: type[Any] | None = None
    ) -> FunctionTool[Rest, Value]: ...

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> FunctionTool[Any, Value]:
        """A method of somebody, as with functions: what is bound needs no `self` any more."""
        if not self._unbound or (instance is None and not isinstance(self._outer, classmethod)):
            return self
        bound = FunctionTool.__new__(FunctionTool)
        bound.__dict__.update(self.__dict__)
        bound._outer = bound._function = self._outer.__get__(instance, owner)
        bound.__dict__["__wrapped__"] = bound._function
        bound._unbound = False
        # What the model sees of a method is the same for everybody.
        bound._signature = self._read()
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
    """A typed function, sync or async, as a tool that an agent can run; it can still be called as before.

    The model sees its name, the first paragraph of its docstring, and its parameters with their types, defaults and
    descriptions. `approval` says whether calls may be run ("allow", "deny", or "ask" the agent's handler), `timeout`
    how many seconds one may take, `fatal` which exceptions end the run instead of being told to the model. `strict`
    asks the provider to hold the model to the schema. Raises ConfigError where a model could not call the function.
    """
    if approval is not None and approval not in get_args(Approval):
        raise ConfigError(f'approval={approval!r} is not known. To do: use "allow", "deny" or "ask".')
    seconds: Any = timeout
    if seconds is not None and not (isinstance(seconds, (int, float)) and seconds > 0):
        raise ConfigError("the timeout of a tool is no number above zero. To do: give it seconds, or None.")
    kinds: tuple[Any, ...] = fatal if isinstance(fatal, tuple) else (fatal,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise ConfigError("fatal= holds something that is no exception. To do: give it types of exceptions.")
    options = ToolOptions(name, description, approval, timeout, kinds, strict)

    def decorate(decorated: Callable[..., Any]) -> FunctionTool[..., Any]:
        if isinstance(decorated, FunctionTool):
            raise ConfigError(f"{decorated.__name__} is a tool already. To do: decorate it once.")
        return FunctionTool(decorated, options)

    return decorate if function is None else decorate(function)
