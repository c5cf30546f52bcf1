"""A Ray cluster of two nodes as a process: prints its address, and ends when its stdin does. Not a test.

A line on stdin kills the second node, with its actors.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

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
