"""Connects to an MCP server, as a child process or at a URL; mutes the official client; explains failed connections."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from asides.values.errors import ConfigError, redact_keys
from asides.values.redaction import build_redactor

if TYPE_CHECKING:
    from mcp.client import Transport

_STDERR_BYTES = 2048
_STDERR_CHARACTERS = 500
_STDERR_WAIT_SECONDS = 1.0
_MESSAGE_CHARACTERS = 300
# The most that a server may send as one answer, decompressed. The official client limits events to 1 MB, which is less
# than a photograph, and other bodies not at all.
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
# A shorter value of `env=` ("1", "true") is not a secret, and redacting it would damage the text.
_MIN_SECRET_LENGTH = 6
# The official client logs all messages, and its HTTP library all addresses.
_MUTED_LOGGERS = ("mcp", "client", "httpx2", "httpcore2")
# The loggers of modules that load only when they are needed.
_LATE_LOGGERS = tuple(f"httpcore2.{name}" for name in ("connection", "http11", "http2", "proxy", "socks"))


class RequestRefused(Exception):
    """The server, or the official client, refused a request or its answer; the message is for the model."""


# --- configuration --------------------------------------------------------------------------------------------------


class Stdio(msgspec.Struct, frozen=True):
    """A program that is started as a child process and addressed through its standard input and output."""

    command: str
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None

    @property
    def label(self) -> str:
        """The name of the server until it has sent its name."""
        return Path(self.command).stem or "mcp"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Its values that may be secret."""
        return tuple(value for value in self.env.values() if len(value) >= _MIN_SECRET_LENGTH)

    def __repr__(self) -> str:
        # Arguments and environment often hold tokens.
        return f"Stdio({self.command!r}, <{len(self.arguments)} arguments>, env={sorted(self.env)})"


class Http(msgspec.Struct, frozen=True):
    """A URL that speaks streamable HTTP."""

    url: str
    headers: Mapping[str, str] = {}

    @property
    def label(self) -> str:
        """The name of the server until it has sent its name."""
        return urlsplit(self.url).hostname or "mcp"

    @property
    def address(self) -> str:
        """The URL without the parts that may be secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What may be secret in it: its headers, also without `Bearer`, and the login and the query of the URL."""
        parts = urlsplit(self.url)
        login = unquote(parts.netloc.rpartition("@")[0])
        values = [*self.headers.values(), login.partition(":")[2], *(value for _, value in parse_qsl(parts.query))]
        found = [word for value in values for word in (value, *value.split()[1:])]
        return tuple(value for value in found if len(value) >= _MIN_SECRET_LENGTH)

    def __repr__(self) -> str:
        return f"Http({self.address!r}, headers={dict.fromkeys(self.headers, '***')})"


ServerConfig: TypeAlias = Stdio | Http


def redact_words(text: str, config: ServerConfig) -> str:
    """Return the words of a server without keys, and without anything secret of its configuration."""
    return redact_keys(build_redactor(config.secrets)(text))


# --- the connection -------------------------------------------------------------------------------------------------


class ServerDiagnostics:
    """The end of a child's standard error and the last HTTP status, to explain why a server did not open."""

    def __init__(self) -> None:
        self._stderr = b""
        self._reader: threading.Thread | None = None
        self.status: int | None = None
        """The status of the last HTTP response."""

    def open_stderr_pipe(self) -> int:
        """Return the writing end of a pipe for a child's standard error.

        A thread reads the pipe until its writers have closed it: a child would block on a full pipe.
        """
        reading, writing = os.pipe()
        self._reader = threading.Thread(
            target=self._read_stderr, args=(reading,), name="asides-mcp-stderr", daemon=True
        )
        self._reader.start()
        return writing

    def _read_stderr(self, pipe: int) -> None:
        try:
            while chunk := os.read(pipe, 65536):
                self._stderr = (self._stderr + chunk)[-_STDERR_BYTES:]
        finally:
            os.close(pipe)

    def redact_stderr(self, config: Stdio) -> str:
        """Return the end of the standard error on one line, without keys and without the values of `env=`."""
        text = " ".join(self._stderr.decode(errors="replace").split())
        text = redact_words(text, config)
        return f"…{text[-_STDERR_CHARACTERS:]}" if len(text) > _STDERR_CHARACTERS else text

    def wait(self) -> None:
        """Wait until the standard error of a child that has ended was read."""
        if self._reader is not None:
            # A process that the child started may still hold the pipe, so the wait is short; the thread is a daemon.
            self._reader.join(_STDERR_WAIT_SECONDS)


def load_official_client() -> None:
    """Load all of the official client, so that its loggers exist. Raises ConfigError if it is not installed."""
    from importlib import import_module

    try:
        import_module("mcp.client.streamable_http")
        import_module("mcp.client.subscriptions")
    except ImportError:
        raise ConfigError("tools of MCP servers need another package. Run pip install 'asides[mcp]'") from None


# --- logs of the official client ------------------------------------------------------------------------------------

_muted_threads: set[int] = set()


class _MuteThreads(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - the signature is logging's
        return threading.get_ident() not in _muted_threads


_MUTE_THREADS = _MuteThreads()


@contextmanager
def mute_client_logs() -> Generator[None]:
    """Mute the official client in this thread until the block ends; other threads log as before.

    Its modules must be loaded already.
    """
    for name in (*list(logging.Logger.manager.loggerDict), *_LATE_LOGGERS):
        if name.partition(".")[0] in _MUTED_LOGGERS:
            # A filter holds only for its own logger, so each gets it; adding it twice changes nothing.
            logging.getLogger(name).addFilter(_MUTE_THREADS)
    thread = threading.get_ident()
    _muted_threads.add(thread)
    try:
        yield
    finally:
        _muted_threads.discard(thread)


def _check_folder(folder: str) -> None:
    # The start of a child does not distinguish a missing folder from a missing command.
    if not Path(folder).is_dir():
        raise NotADirectoryError(folder)


@asynccontextmanager
async def open_transport(config: ServerConfig, diagnostics: ServerDiagnostics) -> AsyncGenerator[Transport]:
    """Yield the official transport, not yet connected; leave the block after it has been closed."""
    match config:
        case Stdio():
            from mcp.client.stdio import StdioServerParameters, stdio_client

            if config.cwd is not None:
                _check_folder(config.cwd)
            parameters = StdioServerParameters(
                command=config.command, args=list(config.arguments), env=dict(config.env), cwd=config.cwd
            )
            try:
                with os.fdopen(diagnostics.open_stderr_pipe(), "w") as stderr:
                    yield stdio_client(parameters, errlog=stderr)
            finally:
                diagnostics.wait()
        case Http():
            # The official package's own factory: it sets the timeouts, and no HTTP library is imported here.
            from mcp.client.streamable_http import streamable_http_client
            from mcp.shared._httpx_utils import create_mcp_http_client

            async def take_response(response: Any) -> None:
                diagnostics.status = response.status_code
                _bound_body(response, _MAX_ANSWER_BYTES)

            client = create_mcp_http_client(dict(config.headers))
            client.event_hooks = {"response": [take_response]}
            async with client:
                yield streamable_http_client(config.url, http_client=client, max_sse_event_size=_MAX_ANSWER_BYTES)


def _bound_body(response: Any, limit: int) -> None:
    """Make the reading of a body end with an error once it is larger than this. A stream of events may be endless; the
    official client bounds each event.
    """
    if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return
    from mcp.client import streamable_http

    # The official client makes an error of this request of it, and the connection stays.
    stream_error: type[Exception] = vars(streamable_http)["httpx2"].StreamError
    read = response.aiter_bytes

    async def read_bounded(*options: Any, **named: Any) -> AsyncGenerator[bytes]:
        size = 0
        async with aclosing(read(*options, **named)) as parts:
            async for part in parts:
                size += len(part)
                if size > limit:
                    raise stream_error(f"the answer is larger than {limit} bytes")
                yield part

    response.aiter_bytes = read_bounded


# --- failures -------------------------------------------------------------------------------------------------------


def explain_failure(
    label: str, config: ServerConfig, diagnostics: ServerDiagnostics, error: BaseException, start_timeout: float
) -> ConfigError:
    """Build the error of a server that could not be opened, with the reason and advice."""
    causes = list(_find_causes(error))
    if any(isinstance(cause, TimeoutError) for cause in causes):
        what = f"it did not answer within {start_timeout:g} seconds"
        advice = "Raise start_timeout=, or look at the server"
    elif isinstance(config, Stdio):
        what, advice = _explain_child(config, diagnostics, causes)
    else:
        what, advice = _explain_address(config, diagnostics, causes)
    return ConfigError(f"the MCP server {label} could not be opened: {what}. {advice}.")


def _explain_child(config: Stdio, diagnostics: ServerDiagnostics, causes: list[BaseException]) -> tuple[str, str]:
    for cause in causes:
        if isinstance(cause, NotADirectoryError):
            return "the folder of cwd= does not exist", "Correct it"
        if isinstance(cause, FileNotFoundError):
            return f"there is no command {config.command!r}", "Install it, or give its whole path"
        if isinstance(cause, OSError):
            return f"{config.command!r} does not run ({(cause.strerror or type(cause).__name__).lower()})", "Correct it"
    if any(map(is_connection_closed, causes)):
        stderr = diagnostics.redact_stderr(config)
        output = f"; its last output: {stderr.rstrip('.')}" if stderr else " and wrote nothing"
        return f"{config.command!r} ended before it answered{output}", "Run the command in a terminal to see why"
    return _explain_protocol_error(config, causes), "Check that it is an MCP server"


def _explain_address(config: Http, diagnostics: ServerDiagnostics, causes: list[BaseException]) -> tuple[str, str]:
    status = diagnostics.status
    if status is None:
        return f"no server answers at {config.address}", "Start the server, or check the URL"
    if status in (401, 403):
        return f"{config.address} answered {status}", "Check the key in headers="
    if status >= 400:
        return f"{config.address} answered {status}", "Check the URL, the path included"
    return f"{config.address}: {_explain_protocol_error(config, causes)}", "Check that it is an MCP server"


def _explain_protocol_error(config: ServerConfig, causes: list[BaseException]) -> str:
    from mcp import MCPError

    for cause in causes:
        if isinstance(cause, RequestRefused):
            return str(cause)
        if isinstance(cause, MCPError):
            return redact_words(cause.message, config)[:_MESSAGE_CHARACTERS].rstrip(".")
    return f"it does not answer as an MCP server does ({type(causes[-1]).__name__})"


def _find_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, or the errors inside a group at any depth, and the errors that they were raised from."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _find_causes(inner)
    else:
        yield error
    if error.__context__ is not None:
        yield from _find_causes(error.__context__)


def has_ended_early(error: BaseException) -> bool:
    """Whether a connection failed to open because the other side ended it."""
    return any(map(is_connection_closed, _find_causes(error)))


def is_connection_closed(error: BaseException) -> bool:
    """Whether a request failed because the connection has ended."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
