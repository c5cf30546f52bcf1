"""A Ray cluster of two nodes as a process: prints its address, and ends when its stdin does. Not a test.

A line on stdin kills the second node, with its actors.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

RAY_ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Loopback alone.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # Workers are nice by default, and starve beside other tests.
}


class TwoNodes(NamedTuple):
    """The cluster."""

    address: str
    session: Path
    """Where Ray keeps its logs."""
    process: subprocess.Popen[str]

    def kill_second_node(self) -> None:
        """Kill a node with its actors."""
        assert self.process.stdin is not None
        self.process.stdin.write("kill\n")
        self.process.stdin.flush()


@contextmanager
def open_two_nodes() -> Generator[TwoNodes]:
    """Start the cluster; it ends with the block."""
    from tests.cli.children import environment

    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, __file__], stdin=pipe, stdout=pipe, env=environment(RAY_ENVIRONMENT), text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address, session = process.stdout.readline().split()
        yield TwoNodes(address, Path(session), process)
        process.stdin.close()
        process.wait(60)


if __name__ == "__main__":
    node: dict[str, Any] = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100_000_000}
    cluster: Any = import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(**node)
    sys.stdout.write(f"{cluster.address} {cluster.head_node.get_session_dir_path()}\n")
    sys.stdout.flush()
    if sys.stdin.readline():
        cluster.remove_node(second, allow_graceful=False)
    sys.stdin.read()
    cluster.shutdown()
