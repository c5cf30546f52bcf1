"""The open files of a process: `raise_file_limit()`, and how many connections fit."""

from __future__ import annotations

import sys

_MAX_FILES = 65_536
_RESERVED = 64
"""The files of a process besides its connections: stores, logs, libraries."""
_MAX_CONNECTIONS = 20_000


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one: many systems start processes with 1,024."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def count_connections() -> int:
    """The connections of clients that a process may have: each may need another one, to a provider."""
    if sys.platform == "win32":
        return _MAX_CONNECTIONS
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return max(16, min((soft - _RESERVED) // 2, _MAX_CONNECTIONS))
