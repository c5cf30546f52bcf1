"""Tools at the command line: found by name, and approved by whoever sits there.

Not here: running them (the agent), and showing them at work (steps).
"""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from asides.agents.config import AgentOptions
from asides.agents.tools.function_tool import FunctionTool
from asides.agents.tools.runnable import Runnable
from asides.agents.tools.toolset import find_runnable
from asides.cli.read_body import reason_of
from asides.cli.steps import call_words
from asides.cli.terminal import Terminal
from asides.flows.run_config import Limits
from asides.values.errors import ConfigError
from asides.values.messages import ToolCall


def read_tooling(arguments: Namespace, terminal: Terminal) -> AgentOptions:
    """What a run with these tools needs."""
    tools = [tool for words in arguments.tools for tool in find_tools(words)]
    options: AgentOptions = {"tools": tools, "approve": Doorkeeper(terminal).ask}
    if arguments.confirm:
        options["approval"] = "ask"
    if arguments.max_turns is not None:
        options["limits"] = Limits(turns=arguments.max_turns)
    return options


# --- finding them -----------------------------------------------------------------------------------------------------


def find_tools(words: str) -> list[Runnable]:
    """The tools that `module:function` or `file.py:function` names; without a function, all that are marked as such."""
    place, _, name = words.partition(":")
    if not place:
        raise ConfigError("--tools needs a module or a file: MODULE:FUNCTION, or FILE.py:FUNCTION.")
    module = _load(place)
    if name:
        return [_named(module, place, name)]
    found = [value for value in vars(module).values() if isinstance(value, FunctionTool)]
    if not found:
        raise ConfigError(f"{place} marks nothing with @asides.tool. To do: mark it, or name it as {place}:NAME.")
    return list(found)


def _named(module: ModuleType, place: str, name: str) -> Runnable:
    value: Any = module
    for step in name.split("."):
        value = getattr(value, step, None)
    runnable = None if value is None else find_runnable(value)
    if runnable is None:
        raise ConfigError(f"{place} has no tool called {name}. To do: name a function of it.")
    return runnable


def _load(place: str) -> ModuleType:
    try:
        if place.endswith(".py"):
            return _load_file(Path(place))
        # As `python -m` does it: modules of the folder one stands in are found.
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        return import_module(place)
    except ModuleNotFoundError as problem:
        raise ConfigError(f"the tools of {place} are not found: there is no module {problem.name}.") from None
    except OSError as problem:
        raise ConfigError(f"the tools of {place} cannot be read: {reason_of(problem)}.") from None
    except ConfigError:
        raise
    except SystemExit:
        raise ConfigError(
            f"the tools of {place} cannot be loaded: loading it ends the program. To do: take the exit out of it."
        ) from None
    except Exception as problem:  # noqa: BLE001 - the code of whoever typed the name, and what it raises is his to know
        raise ConfigError(f"the tools of {place} cannot be loaded: {type(problem).__name__}: {problem}.") from None


def _load_file(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"there is no file {path} to take tools from.")
    module = module_from_spec(spec)
    # Types of its own are looked up by the module's name.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


# --- approving them ---------------------------------------------------------------------------------------------------


class Doorkeeper:
    """Asks whoever sits at the terminal before a call is run. Where nobody does, the answer is no."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._trusted: set[str] = set()

    def ask(self, call: ToolCall) -> bool | str:
        """Whether this call may be run: yes, no, or always from now on."""
        if call.name in self._trusted:
            return True
        if sys.stdin is None or not sys.stdin.isatty():
            return "nobody is there to approve it"
        # All of it: what is not shown here cannot be judged.
        self._terminal.figure(f"run {call_words(call, whole=True)}? [y]es, [n]o, [a]lways")
        answer = ""
        with suppress(EOFError):
            answer = input().strip().lower()
        if answer in ("a", "always"):
            self._trusted.add(call.name)
        return answer in ("y", "yes", "a", "always")
