"""Writes the user's own files: whole or not at all, for their owner alone, one writer at a time.

Not here: what the files hold (keys, trust, config).
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from asides.cli.saved_conversations import make_private_folder
from asides.settings_files import is_open_to_others
from asides.values.errors import ConfigError

# Another command holds a lock for milliseconds.
_LOCK_SECONDS = 10.0
_POLL_SECONDS = 0.02


def write_private_file(path: Path, content: bytes, what: str) -> None:
    """Replace a file in one step. A new one can be read by its owner alone; an old one keeps its mode and its owner.

    A link stays: the file that it names is replaced. `what` names the file in errors.
    """
    target = Path(os.path.realpath(path))
    folder = target.parent
    try:
        make_private_folder(folder)
        if is_open_to_others(folder.stat()):
            raise ConfigError(f"others may write to {folder}, so a file there is worth nothing. To do: chmod o-w it.")
        old = _read_status(target)
        # mkstemp makes files that only their owner may read.
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if old is not None:
                Path(name).chmod(stat.S_IMODE(old.st_mode))
                if os.name == "posix" and os.geteuid() == 0:
                    # The administrator, with the home of a user: the file stays the user's.
                    os.chown(name, old.st_uid, old.st_gid)
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as problem:
        raise ConfigError(f"{what} cannot be written: {problem.strerror or problem}.") from None


def _read_status(path: Path) -> os.stat_result | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is no regular file")
    return status


@contextmanager
def hold_lock(path: Path, what: str) -> Generator[None]:
    """Hold the lock of a file while it is read and written, so that two commands at once lose nothing.

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
        while not _try_lock(handle):
            if time.monotonic() > deadline:
                raise ConfigError(f"{what} is in use by another command. To do: end that one, and try again.")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
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
