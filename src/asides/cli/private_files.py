"""Writes the user's own files, with their folders: whole or not at all, for their owner alone, one writer at a time."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from asides.settings_files import is_open_to_others
from asides.values.errors import ConfigError

# Another command holds a lock for milliseconds.
_LOCK_SECONDS = 10.0
_POLL_SECONDS = 0.02


def write_private_file(path: Path, content: bytes, what: str) -> None:
    """Replace a file in one step. A new one can be read by its owner alone; an old one keeps its mode and its owner.

    A link stays: the file that it names is replaced. `what` names the file in errors.
    """
    from asides.conversations.serialise import replace_file  # Most commands write no file.

    target = Path(os.path.realpath(path))
    folder = target.parent
    try:
        make_private_folder(folder)
        if is_open_to_others(folder.stat()):
            raise ConfigError(f"others may write to {folder}, so its files cannot be trusted. Run chmod o-w it.")
        old = _read_status(target)
        replace_file(target, content, None if old is None else partial(_take_over, old))
    except OSError as problem:
        raise ConfigError(f"{what} cannot be written: {problem.strerror or problem}.") from None


def _take_over(old: os.stat_result, path: Path) -> None:
    path.chmod(stat.S_IMODE(old.st_mode))
    if os.name == "posix" and os.geteuid() == 0:
        # The administrator, with the home of a user: the file stays the user's.
        os.chown(path, old.st_uid, old.st_gid)


def make_private_folder(folder: Path) -> None:
    """Create the folder and those above it that are missing, each for its owner alone. Existing ones do not change."""
    if not folder.is_dir():
        if folder.parent != folder:
            make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _read_status(path: Path) -> os.stat_result | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is not a regular file")
    return status


@contextmanager
def hold_lock(path: Path, what: str) -> Generator[None]:
    """Hold the lock of a file while it is read and written, so that concurrent commands lose nothing.

    The lock is an empty file beside it. It ends with the process, however that ends.
    """
    place = path.with_name(f".{path.name}.lock")
    try:
        make_private_folder(place.parent)
        handle = os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as problem:
        raise ConfigError(f"{what} cannot be written: {problem.strerror or problem}.") from None
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while not try_lock(handle):
            if time.monotonic() > deadline:
                raise ConfigError(f"{what} is in use by another command. Stop it, and try again.")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Whether the lock is ours now. A disk without locks, such as some network disks, gives it to everyone."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True
