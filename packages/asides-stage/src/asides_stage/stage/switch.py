"""The launcher behind ASIDES_STAGE=1: a stage in this process, started by its first request."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from asides.settings_files import find_state_folder
from asides.transports.launch import RunningServer
from asides.transports.stage_launch import describe_stage
from asides.values.errors import ConfigError
from asides.values.fork_guard import call_in_children
from asides_stage.stage.server import Stage

_log = logging.getLogger("asides")
_WARNING = (
    "ASIDES_STAGE is set: the stage answers, an offline server, not a model; no request leaves this machine. "
    "Unset it to ask the providers."
)
_FILE = "stage.secret"
_SIZE = 32


def read_secret(environ: Mapping[str, str]) -> bytes:
    """The user's own secret for seals, from the state folder: a conversation that one process saves is accepted by the
    next. The first process creates it. Where nothing can be written, the seals are valid in this process only.
    """
    try:
        path = find_state_folder(environ) / _FILE
        if not path.exists():
            _create(path)
        kept = path.read_bytes()
    except (ConfigError, OSError):
        kept = b""
    return kept if len(kept) == _SIZE else secrets.token_bytes(_SIZE)


def _create(path: Path) -> None:
    """Create the file for its owner alone. Of several processes that do, the first one's file stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_SIZE))
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class _OwnStage:
    """The stage of this process, running or not."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stage: Stage | None = None

    def close(self) -> None:
        stage, self.stage = self.stage, None
        if stage is not None:
            stage.close()


_own = _OwnStage()


def launch(model: str, *, wait: bool = True) -> RunningServer | None:  # noqa: ARG001 - one stage plays every model
    """Return the stage of this process; start it if it does not run yet. All threads share it.

    Without `wait`, return None if it does not run yet.
    """
    own = _own
    if own.stage is None:
        if not wait:
            return None
        with own.lock:
            if own.stage is None:
                own.stage = Stage(secret=read_secret(os.environ)).start()
                # Without a configuration of logging, Python prints this on standard error.
                _log.warning(_WARNING)
    return describe_stage(own.stage.url)


def _forget_stage() -> None:
    """Start with none in a fork: the thread of the parent's stage does not run there."""
    global _own  # noqa: PLW0603 - one stage for the process
    _own = _OwnStage()


def _end() -> None:
    _own.close()


atexit.register(_end)
call_in_children(_forget_stage)
