"""Connections without waiting: a socket with its TLS layers, and the pool of idle ones, shared by both transports."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import finalize

from asides.values.fork_guard import ForkGuard, call_in_children

if TYPE_CHECKING:
    import ssl

READ_SIZE = 64 * 1024
NEXT_ADDRESS_SECONDS = 0.25
"""Head start of each address of a host over the next one (RFC 8305)."""
_MAX_IDLE = 256
_KEEP_ALIVE_SECONDS = 60.0

Address: TypeAlias = tuple[int, int, int, Any]
"""Family, type, protocol and address of a socket."""


class Route(NamedTuple):
    """What a connection leads to. Connections of equal routes are interchangeable."""

    secure: bool
    host: str
    port: int
    proxy: str | None


class Connection:
    """A connected socket and its TLS layers, outermost first. A forgotten connection is closed without a warning."""

    __slots__ = ("__weakref__", "_close", "_forks", "_layers", "ended", "idle_since", "route", "sock")

    def __init__(self, sock: socket.socket, route: Route) -> None:
        self.sock = sock
        self.route = route
        self.idle_since = 0.0
        self._forks = ForkGuard()
        self.ended = False
        """Whether the peer announced the end inside TLS, so that the socket need not be read."""
        self._layers: list[TlsLayer] = []
        # The finalizer keeps the socket alive: the garbage collector never finds one that is open.
        self._close = finalize(self, sock.close)

    def add_tls(self, layer: TlsLayer) -> None:
        """Add a TLS layer inside of the others, after its handshake."""
        self._layers.append(layer)

    def wrap(self, data: bytes) -> bytes:
        """Encrypt content for the socket."""
        for layer in reversed(self._layers):
            data = layer.encrypt(data)
        return data

    def unwrap(self, data: bytes) -> bytes | None:
        """Decrypt bytes of the socket, b"" for its end. None: more bytes are needed."""
        received: bytes | None = data
        for layer in self._layers:
            if received is None:
                return None
            received = layer.decrypt(received)
            self.ended = self.ended or layer.ended
        return received

    def is_stale(self, now: float) -> bool:
        """Whether an idle connection is too old, closed by the server, or has bytes that were not requested."""
        if now - self.idle_since > _KEEP_ALIVE_SECONDS:
            return True
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            pass
        return True

    @property
    def is_inherited(self) -> bool:
        """Whether it belongs to the parent of this process."""
        return self._forks.is_in_child

    def shut(self) -> None:
        """End both directions, which wakes a thread or task that waits for the socket.

        Not in a forked child: that would also end the parent's connection.
        """
        if not self.is_inherited:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        self._close()


class TlsLayer:
    """TLS over bytes in memory, so that it can run inside another TLS layer and in both transports."""

    __slots__ = ("_incoming", "_outgoing", "_session", "_want_read", "ended")

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        import ssl

        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host.rstrip("."))
        self._want_read = ssl.SSLWantReadError
        self.ended = False

    def shake_hands(self, received: bytes | None) -> bool:
        """Continue the handshake with the next bytes of the peer; returns whether it is complete. Raises SSLError."""
        if received:
            self._incoming.write(received)
        try:
            self._session.do_handshake()
        except self._want_read:
            return False
        return True

    def take_outgoing(self) -> bytes:
        """The bytes of the handshake for the peer."""
        return self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        """Encrypt content."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._session.write(rest) :]
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes | None:
        """Decrypt bytes of the peer; b"" at its end, also at one without TLS's own farewell. None: needs more."""
        import ssl

        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        pieces: list[bytes] = []
        try:
            while piece := self._session.read(READ_SIZE):
                pieces.append(piece)
            self.ended = True
        except ssl.SSLWantReadError:
            return b"".join(pieces) or None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self.ended = True
        return b"".join(pieces)


class ConnectionPool:
    """Idle connections by route. Lists and dicts are used atomically, so threads need no lock and a fork is safe."""

    def __init__(self) -> None:
        self._idle: dict[Route, list[Connection]] = {}
        self._next_sweep = 0.0
        # Closing the parent's sockets in a forked child leaves the parent's copies open.
        call_in_children(self.close)

    def take(self, route: Route) -> Connection | None:
        """The most recently used idle connection that still works, or None."""
        idle = self._idle.get(route)
        while idle:
            with suppress(IndexError):  # Another thread may take the last one.
                connection = idle.pop()
                if not connection.is_stale(time.monotonic()):
                    return connection
                connection.close()
        return None

    def give(self, connection: Connection) -> None:
        """Keep a connection for later requests."""
        now = connection.idle_since = time.monotonic()
        if connection.sock.gettimeout() != 0.0:
            connection.sock.setblocking(False)
        if now >= self._next_sweep:
            self._next_sweep = now + _KEEP_ALIVE_SECONDS
            self._sweep(now)
        idle = self._idle.setdefault(connection.route, [])
        if len(idle) >= _MAX_IDLE or connection.is_inherited:
            connection.close()
        else:
            idle.append(connection)

    def _sweep(self, now: float) -> None:
        for route, idle in list(self._idle.items()):
            for connection in reversed(list(idle)):
                with suppress(ValueError):  # Another thread took it.
                    # Remove it first: looking at a connection in use would wait for its response.
                    idle.remove(connection)
                    if connection.is_stale(now):
                        connection.close()
                    else:
                        idle.insert(0, connection)
            if not idle:
                self._idle.pop(route, None)

    def close(self) -> None:
        """Close all idle connections."""
        idle, self._idle = self._idle, {}
        for connection in chain.from_iterable(idle.values()):
            connection.close()


def find_numeric_addresses(host: str, port: int) -> list[Address] | None:
    """The addresses of a host that is an IP address itself. None: its name has to be resolved."""
    if not (host[-1:].isdigit() or ":" in host):
        return None
    with suppress(socket.gaierror):
        return order_addresses(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST))
    return None


def order_addresses(found: list[Any]) -> list[Address]:
    """Addresses in the order in which to try them: the families alternate, starting with the resolver's first."""
    addresses: list[Address] = [(family, kind, protocol, address) for family, kind, protocol, _, address in found]
    first = [address for address in addresses if address[0] == addresses[0][0]]
    others = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for pair in zip_longest(first, others) for address in pair if address is not None]


def open_socket(address: Address) -> socket.socket:
    """A socket that does not block, for one address."""
    sock = socket.socket(*address[:3])
    sock.setblocking(False)
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def choose_problem(problems: list[OSError]) -> OSError:
    """The error to report when no address could be reached: the first, which is of the preferred address."""
    return problems[0] if problems else OSError("the host has no address")
