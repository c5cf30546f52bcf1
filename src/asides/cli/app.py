"""`main(arguments)`: finds the command, runs it, and turns every error and signal into a message and an exit code.

Each command is a module that is loaded when it runs, so that `--help` is fast.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import TextIO

from asides.cli.arguments import COMMANDS, format_help, list_commands
from asides.cli.exit_codes import Exit, code_for_error
from asides.cli.parse_arguments import parse_arguments
from asides.cli.signals import Terminated, raise_on_signals
from asides.cli.terminal import Terminal, open_terminal
from asides.packages import EXTRAS, explain_missing

_PIPE_ERRORS = (BrokenPipeError, ConnectionResetError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if "_ARGCOMPLETE" in os.environ and arguments is None:
        from asides.cli.completion import complete_line

        complete_line(os.environ.get("COMP_LINE", ""))
    terminal = open_terminal()
    received: list[Exit] = []
    try:
        with raise_on_signals(received):
            code = _run(list(sys.argv[1:] if arguments is None else arguments), terminal)
        terminal.flush()
    except KeyboardInterrupt:
        return _end(terminal, Exit.INTERRUPTED)
    except Terminated:
        return _end(terminal, received[0])
    except _PIPE_ERRORS:
        return _end_without_reader()
    except Exception as error:  # noqa: BLE001 - no caller is left to report it
        if isinstance(error, OSError):
            _discard_broken_streams()
            if received:  # The terminal was closed, and is gone.
                return _end(terminal, received[0])
        with suppress(OSError):
            return _report_error(terminal, error)
        return _end_without_reader()
    return code


def _run(arguments: list[str], terminal: Terminal) -> int:
    name = arguments[0] if arguments else ""
    if name in ("-h", "--help"):
        name = "help"
    if name in COMMANDS or (_WORD.fullmatch(name) and name in list_commands()):
        return _run_command(name, arguments[1:], terminal)
    if name == "clean":  # A former command, not a question.
        terminal.print_error("`asides clean FILE` is now `asides doctor FILE --clean`.")
        return Exit.USAGE
    if name in EXTRAS:
        raise explain_missing(f"`asides {name}`", EXTRAS[name])
    if name in ("-V", "--version"):
        from asides import __version__

        terminal.write_answer(f"asides {__version__}\n")
        return Exit.DONE
    if not arguments and not _is_piped():
        sys.stderr.write(format_help())
        return Exit.USAGE
    if (command := _find_meant_command(name)) is not None:
        terminal.print_error(
            f"no command is called {name!r}; did you mean {command}? To ask a question that begins like this, put it "
            "in quotes or write `asides ask` before it."
        )
        return Exit.USAGE
    return _run_command("ask", arguments, terminal, is_bare=True)


def _run_command(name: str, arguments: list[str], terminal: Terminal, *, is_bare: bool = False) -> int:
    command = COMMANDS.get(name) or list_commands()[name]
    try:
        options = parse_arguments(name, command, arguments)
    except SystemExit as ended:
        # argparse has printed its message and ends the process; the caller of main() needs the code.
        return ended.code if isinstance(ended.code, int) else Exit.USAGE
    if is_bare and "--" not in arguments and len(options.prompt) == 1 and _is_command(options.prompt[0]):
        word = options.prompt[0]
        terminal.print_error(
            f"{word} is a command, and a command comes first: `asides {word} …`. To ask it as a question, write "
            "`asides ask` before everything."
        )
        return Exit.USAGE
    terminal.quiet = getattr(options, "quiet", False)
    with _quiet_log() if terminal.quiet else nullcontext(), _send_telemetry(name):
        return int(import_module(command.module).run(options, terminal))


@contextmanager
def _quiet_log() -> Generator[None]:
    """Log errors only, for `--quiet`: without a configuration, Python prints warnings on standard error."""
    logger = logging.getLogger("asides")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


# Commands that ask models in this process. `serve` sends its own.
_TRACED_COMMANDS = frozenset({"ask", "batch", "chat", "probe"})


def _send_telemetry(name: str) -> AbstractContextManager[None]:
    """Send telemetry of a command, if a variable of OpenTelemetry asks for it. Without one nothing of it is loaded."""
    if name not in _TRACED_COMMANDS or not any(variable.startswith("OTEL_") for variable in os.environ):
        return nullcontext()
    from asides.telemetry.exporters import send_telemetry

    return send_telemetry("asides")


# --- a bare question --------------------------------------------------------------------------------------------------


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file, and so may hold a question."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


_WORD = re.compile(r"[a-zA-Z][a-zA-Z-]{2,}")
_LONG_WORD = 7


def _find_meant_command(word: str) -> str | None:
    """The command that a single word is a misspelling of; None when it is the beginning of a question.

    One letter is wrong, missing or too much, or two are swapped; in a long word, twice. Typos rarely change the
    first letter of a command, so `what` does not match `chat`.
    """
    if not _WORD.fullmatch(word):
        return None
    lower = word.lower()
    starts = (lower[0], lower[1] + lower[0])
    most = 2 if len(lower) >= _LONG_WORD else 1
    near = [(_count_edits(lower, name), name) for name in {**EXTRAS, **list_commands()} if name.startswith(starts)]
    return min((pair for pair in near if pair[0] <= most), default=(0, None))[1]


def _is_command(word: str) -> bool:
    return word in EXTRAS or (_WORD.fullmatch(word) is not None and word in list_commands())


def _count_edits(word: str, name: str) -> int:
    """How many letters to change, add, remove or swap with their neighbour to get from one word to the other."""
    rows = [list(range(len(name) + 1))]
    for i, letter in enumerate(word, 1):
        last, row = rows[-1], [i]
        for j, other in enumerate(name, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == name[j - 2] and word[i - 2] == other:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def _report_error(terminal: Terminal, error: Exception) -> int:
    from asides.values.errors import AsidesError

    if os.environ.get("ASIDES_DEBUG") == "1":
        import traceback

        terminal.end_answer()
        traceback.print_exception(error)
    elif isinstance(error, AsidesError):
        from asides.cli.render import describe_error

        terminal.print_error(describe_error(error))
    elif isinstance(error, OSError) and error.strerror:
        terminal.print_error(f"the system says: {error.strerror}.")
    else:
        # Its message may contain the question, so it is not printed.
        kind = type(error).__name__
        terminal.print_error(f"unexpected {kind}: this is a bug in asides. ASIDES_DEBUG=1 shows where it happened.")
    return code_for_error(error)


def _end(terminal: Terminal, code: Exit) -> int:
    try:
        terminal.end_answer()
    except _PIPE_ERRORS:
        return _end_without_reader()
    except OSError:  # The terminal is gone.
        _discard_streams()
    return code


def _end_without_reader() -> int:
    _discard_broken_streams()
    return Exit.PIPE_CLOSED


def _discard_broken_streams() -> None:
    """Point broken streams at /dev/null. Python would try to flush them again when the interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _discard(stream)
        except ValueError:  # It is closed.
            continue


def _discard_streams() -> None:
    """Point both streams at /dev/null: one of them shows that it is broken only when something is written."""
    for stream in (sys.stdout, sys.stderr):
        _discard(stream)


def _discard(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
