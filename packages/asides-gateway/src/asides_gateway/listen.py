"""Open the sockets of a gateway: `open_sockets(host, port)`. Errors say what to do."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from ipaddress import ip_address

from asides.values.errors import ConfigError

_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""What a machine without IPv6 says about an address of it."""

SEND_BUFFER = 128 * 1024
"""The bytes that the kernel keeps for a client, twice over on Linux."""


def can_share_ports() -> bool:
    """Whether several processes may listen on one port, and the system shares the connections out among them."""
    return hasattr(socket, "SO_REUSEPORT") and os.name == "posix"


def open_sockets(host: str, port: int, *, shares: bool = False) -> list[socket.socket]:
    """Bind a socket for each address of a host, all of one port; 0: a free one. They do not listen yet.

    `shares`: other processes that do the same get some of the connections.
    """
    opened: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, address in _find_addresses(host, port):
            try:
                opened.append(_bind(family, address, port, shares=shares))
            except OSError as problem:
                if problem.errno not in _NOT_HERE:
                    raise
                missing = problem
                continue
            port = opened[0].getsockname()[1]
        if not opened and missing is not None:
            raise missing
    except OSError as problem:
        close_sockets(opened)
        raise ConfigError(_explain(problem, host, port)) from None
    return opened


def close_sockets(sockets: list[socket.socket]) -> None:
    """Close them all."""
    for each in sockets:
        with suppress(OSError):
            each.close()


def check_free(host: str, port: int) -> None:
    """Raise a ConfigError if anything uses the port, a process too that would share it."""
    if port:
        close_sockets(open_sockets(host, port))


def name_address(opened: socket.socket) -> str:
    """The address of a socket, as clients write it. One that listens everywhere is named as this machine reaches it."""
    host, port = opened.getsockname()[:2]
    if ip_address(str(host).partition("%")[0]).is_unspecified:
        host = "::1" if opened.family == socket.AF_INET6 else "127.0.0.1"
    return f"http://[{host}]:{port}" if opened.family == socket.AF_INET6 else f"http://{host}:{port}"


def _find_addresses(host: str, port: int) -> list[tuple[int, str]]:
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((int(family), str(address[0])) for family, _, _, _, address in found))


def _bind(family: int, address: str, port: int, *, shares: bool) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # A port whose last connections are still being closed is free.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it. The kernel's own size grows to megabytes, which a client that does not read
        # makes the gateway take from its provider and keep.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        if shares:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind((address, port))
    except BaseException:
        opened.close()
        raise
    return opened


def _explain(problem: OSError, host: str, port: int) -> str:
    if isinstance(problem, socket.gaierror):
        return f"cannot resolve the address {host} (DNS). Write one of this machine, such as 127.0.0.1."
    match problem.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} of {host} is in use: another gateway may be running. Stop it, or use "
                "another port, such as --port 0 for a free one."
            )
        case errno.EACCES | errno.EPERM:
            return f"port {port} is reserved for the system. Use one above 1023, such as --port 4242."
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            return f"{host} is not an address of this machine. Write one that is, such as 127.0.0.1."
        case _:
            return f"port {port} of {host} cannot be opened: {problem.strerror or problem}."
