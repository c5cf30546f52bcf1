"""The Ray cluster of a batch: the one that runs already, one at an address, or a new one on this machine."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from asides.database.postgres_url import is_postgres_url
from asides.values.errors import ConfigError

_LOCAL = "local"
_PROBE_SECONDS = 10.0
_STORE_BYTES = 100_000_000
"""Ray's shared memory on this machine. Rows and answers do not go through it."""
# For a cluster on this machine: listen on loopback only, send no usage statistics, and log little.
_LOCAL_ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}


def require_ray() -> None:
    """Raise a ConfigError if Ray is not installed."""
    if find_spec("ray") is None:
        raise ConfigError("Ray is not installed. Run pip install 'asides[ray]', here and on every node.")


@contextmanager
def open_cluster(address: str | None, cpus: int) -> Generator[Any]:
    """The module of Ray, connected. Closed at the end, unless the program had opened it.

    `address`: host:port, `auto`, or `local`, which starts a cluster with this many CPUs. None: RAY_ADDRESS, or local.
    """
    require_ray()
    place = address or os.environ.get("RAY_ADDRESS") or _LOCAL
    if place == _LOCAL:
        for name, value in _LOCAL_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    ray = _load("ray")
    _load("ray.data")
    if ray.is_initialized():
        yield ray
        return
    _connect(ray, place, cpus)
    try:
        yield ray
    finally:
        ray.shutdown()


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as problem:
        raise ConfigError(
            f"Ray cannot be loaded: {problem}. Run pip install 'asides[ray]', which has Ray Data, here and on "
            "every node."
        ) from None


def _connect(ray: Any, place: str, cpus: int) -> None:
    _probe(place)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        if place == _LOCAL:
            ray.init(address=_LOCAL, num_cpus=cpus, include_dashboard=False, object_store_memory=_STORE_BYTES, **quiet)
        else:
            ray.init(address=place, **quiet)
    except Exception as problem:  # noqa: BLE001 - Ray raises errors of many kinds
        words = describe_problem(problem)
        if place == _LOCAL:
            raise ConfigError(
                f"Ray could not be started on this machine: {words}. See the logs in /tmp/ray/session_latest, or"
                " run the batch without it (live)."
            ) from None
        raise ConfigError(
            f"the Ray cluster at {place} cannot be reached: {words}. Check the address, that the cluster runs, "
            "and that it has the same versions of Ray and Python; `local` starts one on this machine."
        ) from None


def _probe(place: str) -> None:
    """Raise a ConfigError if the address refuses connections: Ray would try for minutes, then end the process."""
    named = re.fullmatch(r"(?:ray://)?\[?(.+?)\]?:(\d+)", place)
    if named is None or place.startswith(_LOCAL):
        return
    try:
        socket.create_connection((named[1], int(named[2])), timeout=_PROBE_SECONDS).close()
    except (OSError, OverflowError) as problem:
        raise ConfigError(
            f"no Ray cluster answers at {place}: {getattr(problem, 'strerror', None) or problem}. Check the "
            "address, and that the cluster runs; `local` starts one on this machine."
        ) from None


def describe_problem(problem: BaseException) -> str:
    """An error of Ray in one line. Its text has whole tracebacks."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[-1] if lines else 'no details'}"[:300].rstrip(".")


def check_ledger(ray: Any, place: str) -> None:
    """Raise a ConfigError if the ledger is a file, and the cluster has other machines."""
    if is_postgres_url(place):
        return
    machines = {(node["NodeManagerAddress"], node["NodeManagerHostname"]) for node in list_nodes(ray)}
    if len(machines) > 1:
        raise ConfigError(
            f"the ledger is a SQLite file, and the Ray cluster has {len(machines)} machines, which cannot share it. "
            "Put the ledger into PostgreSQL, with ledger or the setting store, as postgresql://user@host/name."
        )


def list_nodes(ray: Any) -> list[dict[str, Any]]:
    """The nodes of the cluster that are alive."""
    return [node for node in ray.nodes() if node["Alive"]]


def count_cpus(ray: Any) -> int:
    """The CPUs of the cluster."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
