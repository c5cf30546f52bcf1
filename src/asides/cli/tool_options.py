"""`--tools`, `--confirm` and `--max-turns`: finds the functions that they name, and asks for approval.

Not here: running the tools (agents), and showing their calls (render).
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
from asides.cli.inputs import describe_read_error
from asides.cli.render import describe_call
from asides.cli.terminal import Terminal
from asides.flows.run_config import Limits
from asides.values.errors import ConfigError
from asides.values.messages import ToolCall


def read_tool_options(arguments: Namespace, terminal: Terminal) -> AgentOptions:
    """The options of a run with these tools."""
    tools = [tool for words in arguments.tools for tool in find_tools(words)]
    options: AgentOptions = {"tools": tools, "approve": Approver(terminal).approve}
    if arguments.confirm:
        options["approval"] = "ask"
    if arguments.max_turns is not None:
        options["limits"] = Limits(turns=arguments.max_turns)
    return options


# --- finding tools ---------------------------------------------------------------------------------------------------


def find_tools(words: str) -> list[Runnable]:
    """The tools that `module:function` or `file.py:function` names; without a function, every @asides.tool in it."""
    place, _, name = words.partition(":")
    if not place:
        raise ConfigError("--tools needs a module or a file: MODULE:FUNCTION, or FILE.py:FUNCTION.")
    module = _load_module(place)
    if name:
        return [_get_tool(module, place, name)]
    found = [value for value in vars(module).values() if isinstance(value, FunctionTool)]
    if not found:
        raise ConfigError(
            f"{place} marks nothing with @asides.tool. To do: mark a function, or name one as {place}:NAME."
        )
    return list(found)


def _get_tool(module: ModuleType, place: str, name: str) -> Runnable:
    value: Any = module
    for step in name.split("."):
        value = getattr(value, step, None)
    runnable = None if value is None else find_runnable(value)
    if runnable is None:
        raise ConfigError(f"{place} has no tool called {name}. To do: name one of its functions.")
    return runnable


def _load_module(place: str) -> ModuleType:
    try:
        if place.endswith(".py"):
            return _load_file(Path(place))
        # Modules in the current folder are found, as with `python -m`.
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        return import_module(place)
    except ModuleNotFoundError as error:
        raise ConfigError(f"the tools of {place} cannot be found: there is no module {error.name}.") from None
    except OSError as error:
        raise ConfigError(f"the tools of {place} cannot be read: {describe_read_error(error)}.") from None
    except ConfigError:
        raise
    except SystemExit:
        raise ConfigError(
            f"the tools of {place} cannot be loaded: loading it ends the program. To do: remove the exit."
        ) from None
    except Exception as error:  # noqa: BLE001 - it is the user's code, and its error is for the user to see
        raise ConfigError(f"the tools of {place} cannot be loaded: {type(error).__name__}: {error}.") from None


def _load_file(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"there is no file {path} to load tools from.")
    module = module_from_spec(spec)
    # Its type hints are resolved through the name of the module.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


# --- approving calls -------------------------------------------------------------------------------------------------


class Approver:
    """Asks the user before a tool call runs. Without a person at the terminal, the answer is no."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._trusted: set[str] = set()

    def approve(self, call: ToolCall) -> bool | str:
        """Whether this call may run: yes, no, or always from now on; a text is the reason for a no."""
        if call.name in self._trusted:
            return True
        if sys.stdin is None or not sys.stdin.isatty():
            return "nobody is there to approve it"
        # Not shortened: the user cannot judge what is not shown.
        self._terminal.print_info(f"run {describe_call(call, whole=True)}? [y]es, [n]o, [a]lways")
        answer = ""
        with suppress(EOFError):
            answer = input().strip().lower()
        if answer in ("a", "always"):
            self._trusted.add(call.name)
        return answer in ("y", "yes", "a", "always")
