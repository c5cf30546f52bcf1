"""The two ways to an MCP server, a child process and an address, and why one did not lead there, in words.

Not here: what is said on the way (session).
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from asides.values.errors import ConfigError, redact_keys

if TYPE_CHECKING:
    from mcp.client import Transport

_TAIL_BYTES = 2048
_TAIL_CHARACTERS = 500
_TAIL_SECONDS = 1.0
_MESSAGE_CHARACTERS = 300
# The official client's own limit of 1 MB is less than a photograph.
_LARGEST_ANSWER = 64 * 1024 * 1024
# A shorter value of the environment ("1", "true") is no secret, and hiding it would hide half of what was said.
_SHORTEST_SECRET = 6


class Stdio(msgspec.Struct, frozen=True):
    """A program that is started as a child and spoken to through its standard input and output."""

    command: str
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None

    @property
    def label(self) -> str:
        """What to call the server as long as it has not said its name."""
        return Path(self.command).stem or "mcp"

    def __repr__(self) -> str:
        # Arguments and environment are where people put tokens.
        return f"Stdio({self.command!r}, <{len(self.arguments)} arguments>, env={sorted(self.env)})"


class Http(msgspec.Struct, frozen=True):
    """An address that speaks streamable HTTP."""

    url: str
    headers: Mapping[str, str] = {}

    @property
    def label(self) -> str:
        """What to call the server as long as it has not said its name."""
        return urlsplit(self.url).hostname or "mcp"

    @property
    def address(self) -> str:
        """The URL without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return f"Http({self.address!r}, headers={dict.fromkeys(self.headers, '***')})"


Way: TypeAlias = Stdio | Http


class Heard:
    """What came from the server besides its answers, kept only to say why it did not start."""

    def __init__(self) -> None:
        self._tail = b""
        self._reader: threading.Thread | None = None
        self.status: int | None = None
        """Of the last HTTP response."""

    def listen(self) -> int:
        """The end of a pipe for the standard error of a child. It is read as long as somebody holds the other end,
        since a child that nobody reads stops."""
        reading, writing = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(reading,), name="asides-mcp-stderr", daemon=True)
        self._reader.start()
        return writing

    def _read(self, pipe: int) -> None:
        try:
            while said := os.read(pipe, 65536):
                self._tail = (self._tail + said)[-_TAIL_BYTES:]
        finally:
            os.close(pipe)

    def last_words(self, way: Stdio) -> str:
        """The end of its standard error on one line, without keys and without the values of `env=`."""
        words = " ".join(self._tail.decode(errors="replace").split())
        for value in sorted(way.env.values(), key=len, reverse=True):
            if len(value) >= _SHORTEST_SECRET:
                words = words.replace(value, "***")
        words = redact_keys(words)
        return f"…{words[-_TAIL_CHARACTERS:]}" if len(words) > _TAIL_CHARACTERS else words

    def wait(self) -> None:
        """Wait until a child that has ended has been heard to its end."""
        if self._reader is not None:
            # A process that the child started and left behind may hold the pipe; the thread is a daemon.
            self._reader.join(_TAIL_SECONDS)


def _check_folder(folder: str) -> None:
    # The start of a child would not tell a missing folder from a missing command.
    if not Path(folder).is_dir():
        raise NotADirectoryError(folder)


@asynccontextmanager
async def opened(way: Way, heard: Heard) -> AsyncGenerator[Transport]:
    """The official transport for `way`, not yet connected; the block is left once it has been closed."""
    match way:
        case Stdio():
            from mcp.client.stdio import StdioServerParameters, stdio_client

            if way.cwd is not None:
                _check_folder(way.cwd)
            parameters = StdioServerParameters(
                command=way.command, args=list(way.arguments), env=dict(way.env), cwd=way.cwd
            )
            try:
                with os.fdopen(heard.listen(), "w") as errors:
                    yield stdio_client(parameters, errlog=errors)
            finally:
                heard.wait()
        case Http():
            # The factory of the official package, so that its time limits hold and no HTTP library is named here.
            from mcp.client.streamable_http import streamable_http_client
            from mcp.shared._httpx_utils import create_mcp_http_client

            async def note(response: Any) -> None:
                heard.status = response.status_code

            client = create_mcp_http_client(dict(way.headers))
            client.event_hooks = {"response": [note]}
            async with client:
                yield streamable_http_client(way.url, http_client=client, max_sse_event_size=_LARGEST_ANSWER)


def no_way(label: str, way: Way, heard: Heard, problem: BaseException, patience: float) -> ConfigError:
    """The error for a server that could not be opened: what happened, and what to do."""
    found = list(_causes(problem))
    if any(isinstance(cause, TimeoutError) for cause in found):
        what, advice = f"it did not answer within {patience:g} seconds", "raise start_timeout=, or look at the server"
    elif isinstance(way, Stdio):
        what, advice = _child_problem(way, heard, found)
    else:
        what, advice = _address_problem(way, heard, found)
    return ConfigError(f"the MCP server {label} could not be opened: {what}. To do: {advice}.")


def _child_problem(way: Stdio, heard: Heard, found: list[BaseException]) -> tuple[str, str]:
    for cause in found:
        if isinstance(cause, NotADirectoryError):
            return "the folder of cwd= is not there", "correct it"
        if isinstance(cause, FileNotFoundError):
            return f"there is no command {way.command!r}", "install it, or give its whole path"
        if isinstance(cause, OSError):
            return f"{way.command!r} does not run ({(cause.strerror or type(cause).__name__).lower()})", "correct it"
    if any(map(is_closed, found)):
        words = heard.last_words(way)
        said = f"; the last that it said: {words.rstrip('.')}" if words else " and said nothing"
        return f"{way.command!r} ended before it answered{said}", "run the command in a terminal and see"
    return _told(found), "check that it is an MCP server"


def _address_problem(way: Http, heard: Heard, found: list[BaseException]) -> tuple[str, str]:
    if heard.status in (401, 403):
        return f"{way.address} answered {heard.status}", "check the key in headers="
    if heard.status is not None and heard.status >= 400:
        return f"{way.address} answered {heard.status}", "check the URL, the path included"
    if heard.status is None:
        return f"nobody answers at {way.address}", "start the server, or check the URL"
    return f"{way.address}: {_told(found)}", "check that it is an MCP server"


def _told(found: list[BaseException]) -> str:
    from mcp import MCPError

    for cause in found:
        if isinstance(cause, MCPError):
            return redact_keys(cause.message)[:_MESSAGE_CHARACTERS].rstrip(".")
    return f"it does not speak as an MCP server does ({type(found[-1]).__name__})"


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group, however deep, and what they were raised for; the problem itself where it is none."""
    if isinstance(problem, BaseExceptionGroup):
        for inner in problem.exceptions:
            yield from _causes(inner)
    else:
        yield problem
    if problem.__context__ is not None:
        yield from _causes(problem.__context__)


def ended_early(problem: BaseException) -> bool:
    """Whether a connection ended before it was one."""
    return any(map(is_closed, _causes(problem)))


def is_closed(problem: BaseException) -> bool:
    """Whether a request failed because the connection has ended."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    return isinstance(problem, MCPError) and problem.code == CONNECTION_CLOSED
