"""The launcher behind ASIDES_STAGE=1: a stage in this process, started by its first request."""

from __future__ import annotations

import atexit
import logging
import threading

from asides.transports.launch import RunningServer
from asides.transports.stage_launch import describe_stage
from asides.values.fork_guard import call_in_children
from asides_stage.stage.server import Stage

_log = logging.getLogger("asides")
_WARNING = (
    "ASIDES_STAGE is set: the stage answers, an offline server, not a model; no request leaves this machine. "
    "Unset it to ask the providers."
)
# The same in every process: a conversation that one saves is accepted by the next. It protects nothing.
_SECRET = b"the stage behind ASIDES_STAGE"


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
                own.stage = Stage(secret=_SECRET).start()
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
