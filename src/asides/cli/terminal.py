"""Where words go: the answer to stdout, alone; everything else to stderr, dim where that is a terminal.

Not here: which words (render). This module knows lines, colours and who is looking.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

_DIM = "\x1b[2m"
_RED = "\x1b[31m"
_PLAIN = "\x1b[0m"
_ERASE = "\r\x1b[K"
_REDRAW_SECONDS = 0.1
# Shorter waits are not worth a line that comes and goes.
_PATIENCE_SECONDS = 0.3

# A model's words are not to steer the terminal: control characters become visible ones. "\r" goes, since "\r\n" is
# common and a lone one would let later words cover earlier ones.
_VISIBLE: dict[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    ord("\r"): None,
    0x7F: "\u2421",
}


class Terminal:
    """The two streams of the process as one place to write, safe to use from the thread of a live line."""

    def __init__(self, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> None:
        self._out = out
        self._err = err
        self._lock = threading.RLock()
        self.quiet = False
        """No notes: only what was asked for, and errors."""
        self.out_is_terminal = out.isatty()
        self.err_is_terminal = err.isatty()
        self.carries_unicode = "utf" in (getattr(out, "encoding", None) or "").lower()
        """Whether stdout can carry every character."""
        ansi = self.err_is_terminal and _speaks_ansi(environ)
        self._coloured = ansi and not environ.get("NO_COLOR")
        self.redraws = ansi
        """Whether a line can be drawn and erased again."""
        # The cursor is one when both streams end at a screen: each must know where the other left it.
        self._shared = self.out_is_terminal and self.err_is_terminal
        self._out_open = False
        self._err_open = False
        self._broken = False
        self._gap_due = False
        self._live = ""

    # --- stdout: the answer -------------------------------------------------------------------------------------------

    def answer(self, text: str) -> None:
        """More of the answer."""
        if not text:
            return
        with self._lock:
            self._end_line_of_err()
            if self._gap_due:
                self._err.write("\n")
                self._gap_due = False
            self._err.flush()
            self._broken = False
            # Noted before it is written: Ctrl-C may come in the middle of the write.
            self._out_open = not text.endswith("\n")
            self._out.write(text.translate(_VISIBLE) if self.out_is_terminal else text)

    def end_answer(self) -> None:
        """The answer is over, whole or not: whatever comes next begins a line."""
        with self._lock:
            self.erase()
            if self._out_open:
                self._out.write("\n")
                self._out_open = self._broken = False
            self._end_line_of_err()
            self._gap_due = False
            self.flush()

    # --- stderr: everything else --------------------------------------------------------------------------------------

    def aside(self, text: str) -> None:
        """More of the thinking that is shown."""
        if not text:
            return
        with self._lock:
            self._turn_to_err()
            shown = text.translate(_VISIBLE) if self.err_is_terminal else text
            # Reset with every piece, so that a process that is killed leaves no dim terminal behind.
            self._err_open, self._gap_due = not text.endswith("\n"), self._shared
            self._err.write(self._styled(shown, _DIM))

    def end_aside(self) -> None:
        """A thought is over; the next one is set apart by a blank line."""
        with self._lock:
            self._end_line_of_err()
            self._err.write("\n")

    def note(self, text: str) -> None:
        """A quiet line: a warning, a figure."""
        if not self.quiet:
            self._line(text, _DIM)

    def figure(self, text: str) -> None:
        """A quiet line that was asked for."""
        self._line(text, _DIM)

    def complain(self, text: str) -> None:
        """What went wrong, behind whatever there is of the answer."""
        with self._lock:
            self.end_answer()
            self._line(text, lead="asides: ")

    def _line(self, text: str, style: str = "", lead: str = "") -> None:
        with self._lock:
            self._turn_to_err()
            self._end_line_of_err()
            shown = text.translate(_VISIBLE) if self.err_is_terminal else text
            self._err.write(f"{self._styled(lead, _RED) if lead else ''}{self._styled(shown, style)}\n")
            self._err.flush()

    # --- the live line ------------------------------------------------------------------------------------------------

    def draw(self, text: str) -> None:
        """Show a line in place of the one drawn before, where nothing else stands on it."""
        with self._lock:
            if not self.redraws or self._err_open or (self._shared and self._out_open):
                return
            width = shutil.get_terminal_size().columns
            shown = text if len(text) < width else text[: max(width - 1, 0)]
            if shown != self._live:
                erase, self._live = _ERASE if self._live else "", shown
                self._err.write(f"{erase}{self._styled(shown, _DIM)}")
                self._err.flush()

    def erase(self) -> None:
        """Take the live line away."""
        with self._lock:
            if self._live:
                self._live = ""
                self._err.write(_ERASE)
                self._err.flush()

    # --- the seams ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Hand over what was written."""
        with self._lock:
            self._err.flush()
            self._out.flush()

    def _turn_to_err(self) -> None:
        self.erase()
        if self._shared:
            self._out.flush()
            if self._out_open and not self._broken:
                # The line break goes to stderr: stdout has the answer alone.
                self._err.write("\n")
                self._broken = True

    def _end_line_of_err(self) -> None:
        self.erase()
        if self._err_open:
            self._err.write("\n")
            self._err_open = False

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{_PLAIN}" if style and self._coloured else text


def of_process() -> Terminal:
    """The terminal of this process. Characters that a stream cannot carry are written as escapes, not raised."""
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            # Started with the stream closed (`>&-`): what goes there goes nowhere.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return Terminal(sys.stdout, sys.stderr, os.environ)


def _speaks_ansi(environ: Mapping[str, str]) -> bool:
    if environ.get("TERM") == "dumb":
        return False
    # The old console of Windows shows escapes as they are.
    return sys.platform != "win32" or any(name in environ for name in ("WT_SESSION", "ANSICON", "TERM"))


class LiveLine:
    """Draws what `words` says, again and again, until it is stopped; then nothing of it is left."""

    def __init__(self, terminal: Terminal, words: Callable[[], str]) -> None:
        self._terminal = terminal
        self._words = words
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, or begin again, on a terminal that can redraw a line."""
        if self._terminal.redraws and not self._terminal.quiet and self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="asides-live-line", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End it and take the line away. May be asked twice."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._terminal.erase()

    def _run(self) -> None:
        wait = _PATIENCE_SECONDS
        # Whoever watched may be gone; the thread that writes the answer finds that out for itself.
        with suppress(OSError, ValueError):
            while not self._stopped.wait(wait):
                self._terminal.draw(self._words())
                wait = _REDRAW_SECONDS
