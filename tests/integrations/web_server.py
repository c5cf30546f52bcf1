"""Web applications over real sockets, for tests of front ends: an ASGI one with uvicorn, and a plain WSGI one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


@contextmanager
def serve_asgi(answer: Callable[[Any], Any], headers: Any) -> Generator[str]:
    """Serve what `answer` gives for each posted body; yield the address."""

    async def post(request: Request) -> StreamingResponse:
        return StreamingResponse(answer(await request.json()), headers=headers)

    app = Starlette(routes=[Route("/", post, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        pass


@contextmanager
def serve_wsgi(answer: Callable[[Any], Iterable[bytes]], headers: Any) -> Generator[str]:
    """Serve what `answer` gives for each posted body, blocking; yield the address."""

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        start_response("200 OK", list(dict(headers).items()))
        return answer(body)

    server: WSGIServer = make_server("127.0.0.1", 0, app, handler_class=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
