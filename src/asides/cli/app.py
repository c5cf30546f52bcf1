"""`main(arguments)`: finds the command, runs it, and turns every error and signal into a message and an exit code.

Not here: the commands. Each is a module that is loaded when it runs, so that `--help` is fast.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType

from asides.cli.arguments import COMMANDS, format_help
from asides.cli.exit_codes import Exit, code_for_error
from asides.cli.parse_arguments import parse_arguments
from asides.cli.terminal import Terminal, open_terminal

_PIPE_ERRORS = (BrokenPipeError, ConnectionResetError)


class _Terminated(BaseException):
    """SIGTERM arrived. Raised in the main thread, so that connections are closed and the live line is erased."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    terminal = open_terminal()
    try:
        with _raise_on_sigterm():
            code = _run(list(sys.argv[1:] if arguments is None else arguments), terminal)
        terminal.flush()
    except KeyboardInterrupt:
        return _end(terminal, Exit.INTERRUPTED)
    except _Terminated:
        return _end(terminal, Exit.TERMINATED)
    except _PIPE_ERRORS:
        return _end_without_reader()
    except Exception as error:  # noqa: BLE001 - no caller is left to report it
        if isinstance(error, OSError):
            _discard_broken_streams()
        with suppress(*_PIPE_ERRORS):
            return _report_error(terminal, error)
        return _end_without_reader()
    return code


def _run(arguments: list[str], terminal: Terminal) -> int:
    name = arguments[0] if arguments else ""
    if name in ("-h", "--help"):
        name = "help"
    command = COMMANDS.get(name)
    if command is not None:
        try:
            options = parse_arguments(name, command, arguments[1:])
        except SystemExit as ended:
            # argparse has printed its message and ends the process; the caller of main() needs the code.
            return ended.code if isinstance(ended.code, int) else Exit.USAGE
        terminal.quiet = getattr(options, "quiet", False)
        return int(import_module(command.module).run(options, terminal))
    if not arguments:
        sys.stderr.write(format_help())
        return Exit.USAGE
    if name in ("-V", "--version"):
        from asides import __version__

        terminal.write_answer(f"asides {__version__}\n")
        return Exit.DONE
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    advice = f"did you mean {close[0]}?" if close else f"the commands are {', '.join(COMMANDS)}."
    terminal.print_error(f"no command is called {name!r}; {advice}")
    return Exit.USAGE


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
    with suppress(*_PIPE_ERRORS):
        terminal.end_answer()
        return code
    return _end_without_reader()


def _end_without_reader() -> int:
    _discard_broken_streams()
    return Exit.PIPE_CLOSED


def _discard_broken_streams() -> None:
    """Point broken streams at /dev/null. Python would try to flush them again when the interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
        except ValueError:  # It is closed.
            continue


@contextmanager
def _raise_on_sigterm() -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
