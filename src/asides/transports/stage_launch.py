"""The launchers behind ASIDES_STAGE: a stage in this process, if asides-stage is installed, or one elsewhere."""

from __future__ import annotations

import os

from asides.packages import PARTS, explain_missing, load_entry
from asides.providers.credentials import Secret
from asides.providers.stage_switch import read_stage_switch
from asides.transports.launch import Launcher, RunningServer

# No key of the user goes to the stage, but a request to some dialects has to carry one.
_KEY = Secret("stage")


def launch(model: str, *, wait: bool = True) -> RunningServer | None:
    """Return the stage of this process. Raises a ConfigError when the package is not installed."""
    start: Launcher | None = load_entry(PARTS, "stage")
    if start is None:
        raise explain_missing("ASIDES_STAGE=1", "stage")
    return start(model, wait=wait)


def find_running(model: str, *, wait: bool = True) -> RunningServer:  # noqa: ARG001 - as a launcher is called
    """Return the stage at the address in ASIDES_STAGE. The address is trusted: the user set it."""
    return describe_stage(read_stage_switch(os.environ) or "")


def describe_stage(url: str) -> RunningServer:
    """The stage at this address, as a launcher returns it."""
    # Requests bring the path with them.
    return RunningServer(url.removesuffix("/v1"), _KEY)
