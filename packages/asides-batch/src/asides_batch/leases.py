"""Who works on a claimed request: the name of this process as an owner, and whether the process of another has ended.

A claim has a lease, which its owner renews. When the owner's process is known to have ended, no process waits for the
lease.
"""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

RENEW_SECONDS = 30.0
_SEPARATOR = "|"


def create_owner() -> str:
    """A name for this run of this process: machine, process, and a part that no other run has."""
    pid = os.getpid()
    return _SEPARATOR.join((name_machine(), str(pid), _read_start(pid), secrets.token_hex(8)))


def has_ended(owner: str) -> bool:
    """Whether the process of an owner is known to have ended. False for one on another machine: its lease decides."""
    machine, pid, start, _ = [*owner.split(_SEPARATOR), "", "", "", ""][:4]
    if machine != name_machine() or not pid.isdecimal():
        return False
    return not _is_alive(int(pid)) or _read_start(int(pid)) != start


def _is_alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # Signal 0 would end the process there. Its lease decides.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def name_machine() -> str:
    """A name for the machine; on Linux with the PID namespace, since containers number processes for themselves."""
    try:
        processes = Path("/proc/self/ns/pid").readlink()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname().replace(_SEPARATOR, "")
    return f"{socket.gethostname()}/{processes}/{boot}".replace(_SEPARATOR, "")


def _read_start(pid: int) -> str:
    """When a process started, in ticks, to distinguish processes with the same number; "" if unknown."""
    try:
        # After the name, which may hold anything, in parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    # A zombie: it has ended, but its parent has not waited for it.
    return "ended" if fields[:1] == ["Z"] else fields[19]
