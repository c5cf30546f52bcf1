"""Reads the user's input: the question, attached files, piped text, JSON, recorded bytes and the tools of `--tools`."""

from __future__ import annotations

import json
import re
import select
import sys
from argparse import Namespace
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

from asides.cli.render import describe_call
from asides.cli.terminal import Terminal
from asides.values.errors import ConfigError
from asides.values.json_schema import find_schema_fault
from asides.values.messages import Message
from asides.values.parts import Part, Text, ToolCall

if TYPE_CHECKING:
    # Tools load most of the library. They are imported when `--tools` is given, so that `separate` starts fast.
    from asides.agents.config import AgentOptions
    from asides.agents.tools.executor import Runnable
    from asides.settings import Settings

# Most pipes are readable sooner. After this wait, a note says that standard input is read.
_STDIN_WAIT_SECONDS = 1.0
_STDIN = "-"
_READ_SIZE = 64 * 1024


# --- the prompt -------------------------------------------------------------------------------------------------------


def read_prompt(arguments: Namespace, terminal: Terminal) -> Message:
    """The user's message: the files, then the words, then the piped text."""
    words = clean_text(" ".join(arguments.prompt)).strip()
    piped = "" if arguments.no_stdin or _STDIN in arguments.file else _read_piped_text(terminal, words)
    text = "\n\n".join(text for text in (words, piped.rstrip("\n")) if text)
    if (fill_prompt := getattr(arguments, "fill_prompt", None)) is not None:
        text = fill_prompt(text)
    if not text.strip() and not arguments.file:
        raise ConfigError("there is nothing to ask: write a question, pipe one in, or use `asides chat`.")
    parts = [_read_piped_file() if path == _STDIN else read_file(path) for path in arguments.file]
    return build_message(parts, text)


def build_message(parts: list[Part], words: str) -> Message:
    """A user's message. Neighbouring texts are joined, since not every host takes a list of texts."""
    from asides.intake.files import attach

    return Message("user", attach(parts, (Text(words),)))


def clean_text(argument: str) -> str:
    """An argument as text that can be sent: bytes of the shell that are not UTF-8 become U+FFFD."""
    try:
        return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # Half a character, which Windows allows.
        return argument.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_piped_text(terminal: Terminal, words: str) -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if words and not _has_input():
        terminal.print_note("reading standard input, to add it to the question (--no-stdin skips it) …")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("the piped input is not text in UTF-8; `-f -` attaches it as a file.") from None


def _read_piped_file() -> Part:
    """Standard input as a file: a picture that another program makes, say."""
    from asides.values.attachments import read_attachment

    data = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    if not data:
        raise ConfigError("-f - attaches piped input, but nothing is piped in. Pipe in a file, or name one.")
    return read_attachment(data, "-f -")


def _has_input() -> bool:
    try:
        return bool(select.select([sys.stdin], [], [], _STDIN_WAIT_SECONDS)[0])
    except (OSError, ValueError):
        return True  # On Windows, select() takes only sockets.


# --- files ------------------------------------------------------------------------------------------------------------


def read_file(path: str) -> Part:
    """A file, or a URL, as a part of a message."""
    from asides.values.attachments import read_attachment

    is_url = path.lower().startswith(("https://", "http://", "data:"))
    try:
        return read_attachment(path if is_url else Path(path), "-f")
    except ConfigError as problem:
        raise ConfigError(str(problem).removeprefix("-f: ")) from None


# --- JSON and recordings ----------------------------------------------------------------------------------------------


def read_json_object(text: str, where: str) -> dict[str, Any]:
    """A JSON object that the user wrote; errors name `where`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{where} has to be a JSON object, in braces.")
    return value


def read_json_file(path: str, option: str) -> dict[str, Any]:
    """The JSON object in a file that an option names."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{option} {path} cannot be read: {describe_read_error(error)}.") from None
    except ValueError:
        raise ConfigError(f"{option} is not a file path: it has a null character.") from None
    return read_json_object(text, f"{option} {path}")


def read_schema(value: str, option: str) -> dict[str, Any]:
    """A JSON schema: in a file, as JSON, or in the short notation. A provider would refuse a wrong one."""
    text = value.strip()
    if text.startswith("{"):
        return _check_schema(read_json_object(text, option), option)
    if _is_path(value):
        return _check_schema(read_json_file(value, option), f"{option} {value}")
    from asides.cli.schema_notation import parse_schema_notation

    return parse_schema_notation(clean_text(value), option)


def _is_path(value: str) -> bool:
    """Whether the value of `--schema` names a file; one that looks like a path does, even where there is none."""
    if re.search(r"[\n,]", value) and not value.endswith(".json"):
        return False
    with suppress(OSError, ValueError):  # Too long for a name, or with a null character.
        if Path(value).exists() and not Path(value).is_dir():
            return True
    return re.fullmatch(r"\S*[/\\\\]\S*|\S+\.\w+", value) is not None


def _check_schema(document: dict[str, Any], where: str) -> dict[str, Any]:
    """The schema, bare or in the envelope of a response format."""
    inner = document.get("json_schema", document)
    schema = inner.get("schema", document) if isinstance(inner, dict) and "schema" in inner else document
    try:
        fault = find_schema_fault(schema)
    except RecursionError:
        fault = "it is nested too deeply"
    if fault is not None:
        raise ConfigError(f"{where} is not a JSON schema: {fault}.")
    return document


@contextmanager
def open_chunks(name: str) -> Generator[Iterator[bytes]]:
    """The bytes of a file, or of standard input when the name is "-", in chunks as they arrive."""
    if name == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ConfigError("there is nothing to read: name a file, or pipe something in.")
        yield _read_chunks(sys.stdin.buffer)
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - closed below; errors inside the caller's block are the caller's
    except OSError as error:
        raise ConfigError(f"the file {name} cannot be read: {describe_read_error(error)}.") from None
    with file:
        yield _read_chunks(file)


def _read_chunks(file: BinaryIO) -> Iterator[bytes]:
    # read() would wait for all the bytes it was asked for; read1() returns those that have arrived.
    read = getattr(file, "read1", file.read)
    while data := read(_READ_SIZE):
        yield data


def describe_read_error(error: OSError | UnicodeDecodeError) -> str:
    """The reason why a file cannot be read."""
    return (error.strerror if isinstance(error, OSError) else None) or "it is not text in UTF-8"


# --- tools ------------------------------------------------------------------------------------------------------------


@contextmanager
def open_tools(arguments: Namespace, settings: Settings, terminal: Terminal) -> Generator[AgentOptions | None]:
    """Yield the options of a run with the tools of `--tools` and `--mcp`; None without any. The servers of `--mcp` are
    open inside the block.
    """
    if not arguments.mcp:
        yield read_tools(arguments, terminal)
        return
    from asides.cli.mcp_servers import open_servers

    with open_servers(arguments.mcp, settings, terminal) as served:
        yield read_tools(arguments, terminal, served)


def read_tools(arguments: Namespace, terminal: Terminal, served: Sequence[Runnable] = ()) -> AgentOptions | None:
    """The options of a run with the tools of `--tools` and those of servers; None without any."""
    if not arguments.tools and not served:
        return None
    from asides.flows.run_config import Limits

    options: AgentOptions = {"tools": [*find_tools(arguments.tools), *served], "approve": Approver(terminal).approve}
    if arguments.confirm:
        options["approval"] = "ask"
    if arguments.max_turns is not None:
        options["limits"] = Limits(turns=arguments.max_turns)
    return options


def find_tools(references: Iterable[str]) -> list[Runnable]:
    """The tools that `module:function` or `file.py:function` names; without a function, every @asides.tool in it."""
    return [tool for reference in references for tool in _load_tools(reference)]


def _load_tools(reference: str) -> list[Runnable]:
    from asides.agents.tools.function_tool import FunctionTool

    place, _, name = reference.partition(":")
    if not place:
        raise ConfigError("--tools needs a module or a file: MODULE:FUNCTION, or FILE.py:FUNCTION.")
    module = _load_module(place)
    if name:
        return [_get_tool(module, place, name)]
    found = [value for value in vars(module).values() if isinstance(value, FunctionTool)]
    if not found:
        raise ConfigError(
            f"{place} has no function marked with @asides.tool. Mark a function, or name one as {place}:NAME."
        )
    return list(found)


def _get_tool(module: ModuleType, place: str, name: str) -> Runnable:
    from asides.agents.tools.function_tool import find_runnable

    value: Any = module
    for step in name.split("."):
        value = getattr(value, step, None)
    runnable = None if value is None else find_runnable(value)
    if runnable is None:
        raise ConfigError(f"{place} has no tool called {name}. Name one of its functions.")
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
        raise ConfigError(f"the tools of {place} cannot be loaded: they exit the program. Remove the exit.") from None
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
            return "no one at the terminal can approve it"
        # Not shortened: the user cannot judge what is not shown.
        self._terminal.print_info(f"run {describe_call(call, whole=True)}? [y]es, [n]o, [a]lways")
        answer = ""
        with suppress(EOFError):
            answer = input().strip().lower()
        if answer in ("a", "always"):
            self._trusted.add(call.name)
        return answer in ("y", "yes", "a", "always")
