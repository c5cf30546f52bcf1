"""Reads what a person types into `asides chat`: lines, pasted paragraphs, the input history, and text from an editor.

A pasted text is one input, however many lines it has, and nothing is sent before Enter is pressed on its own.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from asides.cli.private_files import make_private_folder, write_private_file
from asides.cli.terminal import Terminal
from asides.settings_files import find_state_folder
from asides.values.errors import AsidesError, ConfigError

PROMPT = "> "
_CONTINUED = "… "
HISTORY_FILE = "input-history.jsonl"
_MOST_ENTRIES = 1000
_LONGEST_ENTRY = 10_000
_MOST_BYTES = 2 * 1024 * 1024
# A terminal delivers pasted text in one piece; typed lines do not follow each other this quickly.
_PASTE_SECONDS = 0.05
_TYPED_SECONDS = 0.25


class LineReader:
    """Reads one input at a time from standard input."""

    def __init__(self, terminal: Terminal, history: InputHistory | None) -> None:
        self.is_interactive = sys.stdin is not None and sys.stdin.isatty()
        """Whether a person types."""
        self.unfinished = ""
        """What stood on the line when Ctrl-C was pressed."""
        self._terminal = terminal
        self._readline: Any = None
        self._history = history
        self._takes_pastes = False
        if reconfigure := getattr(sys.stdin, "reconfigure", None):
            reconfigure(errors="replace")
        # input() edits lines only if both ends are terminals.
        if self.is_interactive and terminal.out_is_terminal:
            with suppress(ImportError):
                self._set_up(import_module("readline"))

    def _set_up(self, readline: Any) -> None:
        self._readline = readline
        # Which library it is: libedit, as on macOS, hands over a pasted text line by line.
        if "libedit" not in (getattr(readline, "backend", "") or readline.__doc__ or ""):
            readline.parse_and_bind("set enable-bracketed-paste on")
            self._takes_pastes = os.environ.get("TERM") != "dumb"
        readline.set_auto_history(False)
        for entry in () if self._history is None else self._history.load():
            with suppress(UnicodeEncodeError):  # The language of this terminal may lack a character.
                readline.add_history(entry)

    def read(self) -> str:
        """The next input. Raises EOFError at its end."""
        if not self.is_interactive:
            line = sys.stdin.readline() if sys.stdin is not None else ""
            if not line:
                raise EOFError
            return line.rstrip("\n")
        self.unfinished = ""
        try:
            text = self._read_line(PROMPT)
            if not self._takes_pastes and _has_more():
                text = self._read_rest(text)
        except KeyboardInterrupt:
            if self._readline is not None:
                self.unfinished = self._readline.get_line_buffer()
            raise
        self._remember(text)
        return text

    def _read_line(self, prompt: str) -> str:
        if self._terminal.out_is_terminal:
            return input(prompt)
        # input() would write its prompt to stdout, which is for answers.
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return input()

    def _read_rest(self, first: str) -> str:
        """The other lines of a pasted text, until a typed line."""
        lines = [first]
        while True:
            started = time.monotonic()
            try:
                lines.append(self._read_line(_CONTINUED))
            except EOFError:  # Ctrl-D ends the text as Enter does.
                return "\n".join(lines).rstrip("\n")
            if time.monotonic() - started > _TYPED_SECONDS and not _has_more():
                return "\n".join(lines).rstrip("\n")

    def _remember(self, text: str) -> None:
        # As in a shell, a line that begins with a blank is not remembered.
        if self._readline is None or not text.strip() or text.startswith(" "):
            return
        place = self._readline.get_current_history_length()
        if place and self._readline.get_history_item(place) == text:
            return
        self._readline.add_history(text)
        if self._history is not None:
            self._history.add(text)


def _has_more() -> bool:
    """Whether more input is waiting."""
    try:
        return bool(select.select([sys.stdin], [], [], _PASTE_SECONDS)[0])
    except (OSError, ValueError):
        return False  # On Windows, select() takes only sockets.


# --- the input history ------------------------------------------------------------------------------------------------


class InputHistory:
    """What was typed in earlier chats: a file in the state folder, for its owner alone, one JSON string per line."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self._path = path
        self._report = report
        self._works = True

    def load(self) -> list[str]:
        """The last entries, the oldest first. A long file is shortened."""
        try:
            size, content = _read_end(self._path)
        except OSError:
            return []
        entries = [entry for line in content.splitlines() if (entry := _read_entry(line)) is not None]
        kept = entries[-_MOST_ENTRIES:]
        if len(entries) > 2 * _MOST_ENTRIES or size > _MOST_BYTES // 2:
            self._shorten(kept)
        return kept

    def add(self, entry: str) -> None:
        """Add an entry at the end. Where that is not possible, it is said once."""
        if not self._works or len(entry) > _LONGEST_ENTRY:
            return
        try:
            make_private_folder(self._path.parent)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(_write_entry(entry))
        except OSError as problem:
            self._works = False
            self._report(f"(the input history is not saved: {problem.strerror or problem})")

    def _shorten(self, entries: list[str]) -> None:
        lines: list[bytes] = []
        room = _MOST_BYTES // 4
        for entry in reversed(entries):
            line = _write_entry(entry)
            room -= len(line)
            if room < 0:
                break
            lines.append(line)
        with suppress(AsidesError):
            write_private_file(self._path, b"".join(reversed(lines)), "the input history")


def open_input_history(environ: Mapping[str, str], terminal: Terminal) -> InputHistory | None:
    """The input history of this user; None without a home folder."""
    try:
        return InputHistory(find_state_folder(environ) / HISTORY_FILE, terminal.print_note)
    except ConfigError:
        return None


def _read_end(path: Path) -> tuple[int, bytes]:
    """The size of a regular file, and its last bytes: of more than that, complete lines."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        start = max(status.st_size - _MOST_BYTES, 0)
        file.seek(start)
        content = file.read(_MOST_BYTES)
        return status.st_size, content.partition(b"\n")[2] if start else content


def _read_entry(line: bytes) -> str | None:
    try:
        entry = json.loads(line)
        # A damaged file may hold anything, and readline takes neither a NUL nor half a character.
        is_text = isinstance(entry, str) and bool(entry.strip()) and b"\0" not in entry.encode()
    except (ValueError, RecursionError):
        return None
    return entry if is_text else None


def _write_entry(entry: str) -> bytes:
    return json.dumps(entry).encode() + b"\n"


# --- the editor -------------------------------------------------------------------------------------------------------


def edit_text(text: str, environ: Mapping[str, str]) -> str:
    """Open the user's editor on this text, in a file that only its owner may read; returns what was saved."""
    chosen = environ.get("VISUAL", "").strip() or environ.get("EDITOR", "").strip()
    command = chosen or ("notepad" if sys.platform == "win32" else "vi")
    handle, name = tempfile.mkstemp(prefix="asides-", suffix=".md")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{text}\n" if text else "")
        code = _run_editor([*shlex.split(command), name])
        if code != 0:
            raise ConfigError(f"the editor {command} ended with code {code}, so nothing is sent.")
        return Path(name).read_text(encoding="utf-8", errors="replace").strip("\n")
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise ConfigError(
            f"the editor {command} cannot be used: {reason}. Set EDITOR to one that is installed."
        ) from None
    finally:
        with suppress(OSError):
            Path(name).unlink()


def _run_editor(command: list[str]) -> int:
    # Ctrl-C is for the editor. A handler, unlike SIG_IGN, is not inherited by it.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603 - the editor that the user chose
    finally:
        signal.signal(signal.SIGINT, before)
