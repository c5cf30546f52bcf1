"""The front door: `main(argv)` finds the command, runs it, and turns whatever happens into words and an exit code.

Not here: what the commands do. Each is a module that is loaded when it is asked for, since `--help` should not wait.
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

from asides.cli.exit_codes import Exit, of_error
from asides.cli.options import COMMANDS, describe, parse
from asides.cli.terminal import Terminal, of_process

_PIPE_ERRORS = (BrokenPipeError, ConnectionResetError)


class _Terminated(BaseException):
    """SIGTERM came. Raised in the main thread, so that connections are closed and the live line is erased."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    terminal = of_process()
    try:
        with _termination_raised():
            code = _run(list(sys.argv[1:] if arguments is None else arguments), terminal)
        terminal.flush()
    except KeyboardInterrupt:
        return _leave(terminal, Exit.INTERRUPTED)
    except _Terminated:
        return _leave(terminal, Exit.TERMINATED)
    except _PIPE_ERRORS:
        return _abandon()
    except Exception as problem:  # noqa: BLE001 - the last place where anything can still be said
        if isinstance(problem, OSError):
            _give_up_broken_streams()
        with suppress(*_PIPE_ERRORS):
            return _complain(terminal, problem)
        return _abandon()
    return code


def _run(arguments: list[str], terminal: Terminal) -> int:
    name = arguments[0] if arguments else ""
    command = COMMANDS.get(name)
    if command is not None:
        try:
            options = parse(name, command, arguments[1:])
        except SystemExit as ended:
            # argparse has said what there was to say, and ends the process; whoever called main() wants the number.
            return ended.code if isinstance(ended.code, int) else Exit.USAGE
        terminal.quiet = getattr(options, "quiet", False)
        return int(getattr(import_module(command.module), command.function)(options, terminal))
    if not arguments:
        sys.stderr.write(describe())
        return Exit.USAGE
    if name in ("-h", "--help", "help"):
        terminal.answer(describe())
        return Exit.DONE
    if name in ("-V", "--version"):
        from asides.values.version import VERSION

        terminal.answer(f"asides {VERSION}\n")
        return Exit.DONE
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(COMMANDS)}."
    terminal.complain(f"no command is called {name!r}; {meant}")
    return Exit.USAGE


def _complain(terminal: Terminal, problem: Exception) -> int:
    from asides.values.errors import AsidesError

    if os.environ.get("ASIDES_DEBUG") == "1":
        import traceback

        terminal.end_answer()
        traceback.print_exception(problem)
    elif isinstance(problem, AsidesError):
        from asides.cli.render import error_line

        terminal.complain(error_line(problem))
    elif isinstance(problem, OSError) and problem.strerror:
        terminal.complain(f"the system says: {problem.strerror}.")
    else:
        # Its message may hold anything, the question included.
        kind = type(problem).__name__
        terminal.complain(f"unexpected {kind}: this is a bug of asides. ASIDES_DEBUG=1 shows where it happened.")
    return of_error(problem)


def _leave(terminal: Terminal, code: Exit) -> int:
    with suppress(*_PIPE_ERRORS):
        terminal.end_answer()
        return code
    return _abandon()


def _abandon() -> int:
    """Nobody reads any more."""
    _give_up_broken_streams()
    return Exit.PIPE_CLOSED


def _give_up_broken_streams() -> None:
    """Point streams that take no more nowhere: what they still hold would be tried again when the interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
        except ValueError:  # It is closed.
            continue


@contextmanager
def _termination_raised() -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
