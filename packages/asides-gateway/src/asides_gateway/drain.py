"""Let the replies of a gateway end: `drain(server, app, seconds)`.

uvicorn's own shutdown resets connections that wait to be accepted, and closes those whose request is still arriving.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from asides_gateway.client_connection import ClientConnection

if TYPE_CHECKING:
    import uvicorn

    from asides_gateway.web import Application

_log = logging.getLogger("asides.gateway")
_LOOK_SECONDS = 0.02
_LOOKS = 4
_ARRIVE_SECONDS = 2.0
"""How long a client that has connected may take to send its request. Its connection was accepted."""
_MOST_LATE = 1000
"""Upper bound of the connections that are accepted at the last moment; the backlog is smaller."""
# How long the handlers of replies that are cut may take to end.
_CUT_SECONDS = 0.5


async def drain(server: uvicorn.Server, app: Application, seconds: float) -> int:
    """Stop listening, close connections that wait for a request, and let the others end. Returns how many were cut.

    A connection ends when its client has all that was written to it, not when it was written.
    """
    await _stop_listening(server)
    # Responses that never end by themselves, such as the inspector's, end now.
    await app.shutdown()
    loop = asyncio.get_running_loop()
    connections, tasks = server.server_state.connections, server.server_state.tasks
    deadline = loop.time() + seconds
    idle: set[object] = set()
    arrived_by = loop.time() + _ARRIVE_SECONDS
    while connections and loop.time() < deadline:
        idle = _close_idle(list(connections), idle, may_arrive=loop.time() < arrived_by)
        await asyncio.sleep(_LOOK_SECONDS)
    if cut := len(connections):
        _log.warning("%d replies did not end within %g s and are cut", cut, seconds)
    for connection in list(connections):
        connection.transport.abort()
    if tasks:
        # A handler whose client has left ends by itself.
        _, late = await asyncio.wait(list(tasks), timeout=_CUT_SECONDS)
        for task in late:
            task.cancel()
    return cut


async def _stop_listening(server: uvicorn.Server) -> None:
    """Take the connections that wait to be accepted, then stop: closing resets those that are left."""
    for listening in _list_sockets(server):
        with suppress(OSError):
            # Stop queueing connections. A client that is turned away retries and finds the port closed.
            listening.listen(0)
        listening.detach()
    # Poll several times: after a scheduling pause one pass may see nothing.
    for _ in range(_LOOKS):
        await asyncio.sleep(_LOOK_SECONDS / _LOOKS)
    # From here to the end of the servers nothing waits. The event loop may not have looked for milliseconds.
    late = [connection for listening in _list_sockets(server) for connection in _accept_waiting(listening)]
    for each in server.servers:
        each.close()
    loop = asyncio.get_running_loop()
    for connection in late:
        with suppress(OSError):
            await loop.connect_accepted_socket(
                lambda: ClientConnection(config=server.config, server_state=server.server_state, app_state={}),
                connection,
            )


def _list_sockets(server: uvicorn.Server) -> list[socket.socket]:
    """The listening sockets. They are the event loop's, which closes them: detach each."""
    return [socket.socket(fileno=each.fileno()) for opened in server.servers for each in opened.sockets]


def _accept_waiting(listening: socket.socket) -> list[socket.socket]:
    """Accept the connections that wait, without the event loop."""
    found: list[socket.socket] = []
    with suppress(OSError):  # BlockingIOError: the backlog is empty.
        listening.setblocking(False)
        while len(found) < _MOST_LATE:
            connection, _ = listening.accept()
            connection.setblocking(False)
            found.append(connection)
    listening.detach()
    return found


def _close_idle(connections: Iterable[object], idle: set[object], *, may_arrive: bool) -> set[object]:
    """Close the connections that wait for a request, and have been for a while: one may just have arrived. Returns
    those that wait now. `may_arrive`: a connection that had no request yet is waited for."""
    waiting: set[object] = set()
    for connection in connections:
        if not isinstance(connection, ClientConnection):
            continue
        if not connection.is_idle:
            connection.shutdown()  # It closes after this request.
        elif connection in idle and not (may_arrive and not connection.had_request):
            if not connection.transport.get_write_buffer_size():
                connection.transport.abort()
        else:
            waiting.add(connection)
    return waiting
