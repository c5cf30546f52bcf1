"""Let the replies of a gateway end: `drain(runner, seconds)`.

aiohttp's own shutdown stops reading requests that are still arriving, and forgets what a slow client has not read yet.
This is the only module that looks inside its connections.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Any

from aiohttp import web

_log = logging.getLogger("asides.gateway")
_LOOK_SECONDS = 0.02
_LOOKS = 4
_ARRIVE_SECONDS = 2.0
"""How long a client that has connected may take to send its request. It found somebody who listens."""
_MOST_LATE = 1000
"""How many connections are accepted at the last moment. They were let in before, so it is never so many."""
# How long the handlers of replies that are cut may take to end.
_CUT_SECONDS = 0.5


async def drain(runner: web.AppRunner, seconds: float) -> int:
    """Stop listening, close connections that wait for a request, and let the others end. Returns how many were cut.

    A connection ends when its client has all that was written to it, not when it was written.
    """
    await _stop_listening(runner)
    # Responses that never end by themselves, such as the inspector's, end now.
    await runner.shutdown()
    server: Any = runner.server
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    idle: set[Any] = set()
    arrived_by = loop.time() + _ARRIVE_SECONDS
    while server.connections and loop.time() < deadline:
        idle = _close_idle(server.connections, idle, may_arrive=loop.time() < arrived_by)
        await asyncio.sleep(_LOOK_SECONDS)
    if cut := len(server.connections):
        _log.warning("%d replies did not end within %g s and are cut", cut, seconds)
    await server.shutdown(_CUT_SECONDS)
    return cut


async def _stop_listening(runner: web.AppRunner) -> None:
    """Take the connections that wait to be accepted, then stop: closing resets those that are left."""
    for listening in _list_sockets(runner):
        with suppress(OSError):
            # No more shall queue up. Whoever is not let in tries again, and finds the port closed.
            listening.listen(0)
        listening.detach()
    # Several times: a process that was kept from running finds its clock run out before it has looked for anyone.
    for _ in range(_LOOKS):
        await asyncio.sleep(_LOOK_SECONDS / _LOOKS)
    # From here to the end of the sites nothing waits. The event loop may not have looked for milliseconds.
    late = [connection for listening in _list_sockets(runner) for connection in _accept_waiting(listening)]
    for site in runner.sites:
        await site.stop()
    for connection in late:
        with suppress(OSError):
            server: Any = runner.server
            await asyncio.get_running_loop().connect_accepted_socket(server, connection)


def _list_sockets(runner: web.AppRunner) -> list[socket.socket]:
    """The listening sockets. They are the event loop's, which closes them: detach each."""
    servers = [getattr(site, "_server", None) for site in runner.sites]
    return [socket.socket(fileno=each.fileno()) for server in servers for each in getattr(server, "sockets", ())]


def _accept_waiting(listening: socket.socket) -> list[socket.socket]:
    """Accept the connections that wait, without the event loop."""
    found: list[socket.socket] = []
    with suppress(OSError):  # It ends with BlockingIOError: nobody waits.
        listening.setblocking(False)
        while len(found) < _MOST_LATE:
            connection, _ = listening.accept()
            connection.setblocking(False)
            found.append(connection)
    listening.detach()
    return found


def _close_idle(connections: list[Any], idle: set[Any], *, may_arrive: bool) -> set[Any]:
    """Close the connections that wait for a request, and have been for a while: one may just have arrived. Returns
    those that wait now. `may_arrive`: a connection that had no request yet is waited for."""
    waiting: set[Any] = set()
    for connection in connections:
        if not _is_idle(connection):
            # Its last one, once all of it is here.
            if (request := connection._current_request) is not None and request.content.is_eof():
                connection.close()
        elif connection in idle and not (may_arrive and not connection._request_count):
            connection.force_close()
        else:
            waiting.add(connection)
    return waiting


def _is_idle(connection: Any) -> bool:
    return not connection._request_in_progress
