"""A file that is there whole or not at all, and for its owner's eyes alone. Not here: what is in it."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from asides.values.errors import ConfigError


def write_whole(path: Path, content: bytes) -> None:
    """Put the content in the place of the file, in one step: whoever reads finds the old or the new, also after a
    crash. What is at the end of a link is replaced, not the link.
    """
    try:
        target = Path(os.path.realpath(path))
        # A new file of this kind is its owner's alone; that suits what people say to a model.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
        _settle(target.parent)
    except (OSError, ValueError) as problem:
        raise ConfigError(
            f"the conversation cannot be saved to {path}: {_reason(problem)}. To do: name a file in a "
            "folder that can be written to."
        ) from None


def read_whole(path: Path) -> bytes:
    """The content of the file."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        raise ConfigError(
            f"the conversation {path} cannot be read: {_reason(problem)}. To do: name a file that save() wrote."
        ) from None


def home_known(path: str | os.PathLike[str]) -> Path:
    """The path, with the home folder that a leading ~ means."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # "~somebody", and there is no such user.
        raise ConfigError(
            f"the conversation {os.fspath(path)} has no place: there is no such home folder. To do: name another one."
        ) from None


def _reason(problem: OSError | ValueError) -> str:
    """Why, in words. A ValueError is about the name itself: a NUL in it, half a character."""
    return str(problem) if isinstance(problem, ValueError) else problem.strerror or str(problem)


def _settle(folder: Path) -> None:
    """The renaming itself is on the disk only when the folder is. Not every system lets folders be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
