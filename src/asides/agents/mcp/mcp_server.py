"""An MCP server and its tools, for an agent: `with McpServer.stdio("uvx", "mcp-server-time") as time: time.tools`."""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from asides.agents.mcp.connect import Http, RequestRefused, ServerConfig, Stdio
from asides.agents.mcp.names_and_results import (
    build_error,
    build_public_names,
    convert_result,
    is_selected,
    sanitize_name,
)
from asides.agents.mcp.session import ConnectionLost, ServerInfo, Session
from asides.agents.tools.executor import Approval, BadArguments
from asides.values.errors import ConfigError
from asides.values.parts import ToolCall, ToolResult
from asides.values.tools import Tool

if TYPE_CHECKING:
    from typing import Self

    from mcp.types import Tool as ListedTool

_NAME = re.compile(r"[a-zA-Z0-9_-]{0,32}")
_APPROVALS = ("allow", "deny", "ask", None)


class McpTool(msgspec.Struct, frozen=True, eq=False):
    """A tool of an MCP server, for an agent to run. Its server has to be open."""

    server: McpServer
    own_name: str
    """The name that the server uses for it."""
    tool: Tool
    """The tool as the model sees it."""
    approval: Approval | None = None
    """Whether its calls may be run; None leaves it to the agent."""
    timeout: float | None = None
    """Seconds that a call may take; None leaves it to the agent."""

    @property
    def fatal(self) -> tuple[type[BaseException], ...]:
        """ConfigError: a server that is not open is a mistake in the program, which no model can correct."""
        return (ConfigError,)

    @property
    def blocking(self) -> bool:
        """`run` returns an awaitable."""
        return False

    def run(self, call: ToolCall) -> Coroutine[Any, Any, ToolResult]:
        """Return the result when awaited, on any event loop; cancelling it cancels the request.

        A failure of the server is a result with `is_error`. Raises BadArguments when the arguments are not a JSON
        object, and ConfigError when the server is not open.
        """
        return self.server._call(self.own_name, call)

    def __repr__(self) -> str:
        return f"McpTool({self.tool.name!r})"


class McpServer:
    """A server that offers tools. It is open inside `with` or `async with`, or between `open` and `close`.

    Made by `McpServer.stdio` or `McpServer.http`. One object serves sync and async agents, and any number of threads
    and event loops concurrently: the connection lives in its own thread.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        name: str | None = None,
        allow: str | Sequence[str] = "*",
        deny: str | Sequence[str] = (),
        approval: Approval | None = None,
        timeout: float | None = None,
        start_timeout: float = 30.0,
    ) -> None:
        if name is not None and not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} cannot be the name of an MCP server: it becomes part of the names of its tools. "
                "Use up to 32 of the characters a-z A-Z 0-9 _ and -."
            )
        if approval not in _APPROVALS:
            raise ConfigError(f'approval={approval!r} is not known. Write "allow", "deny" or "ask".')
        if start_timeout <= 0 or (timeout is not None and timeout <= 0):
            raise ConfigError("timeout= and start_timeout= are seconds, more than 0. Correct them.")
        self._config = config
        self._name = name
        self._allow = (allow,) if isinstance(allow, str) else tuple(allow)
        self._deny = (deny,) if isinstance(deny, str) else tuple(deny)
        self._approval: Approval | None = approval
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._ending: list[Session] = []
        """Sessions that ended by themselves, whose threads may still run."""
        self._finalizer: weakref.finalize[[], McpServer] | None = None
        self._info = ServerInfo(None, None)
        self._tools_listing: tuple[ListedTool, ...] | None = None
        """The listing that `_tools` was built from."""
        self._tools: tuple[McpTool, ...] = ()

    @classmethod
    def stdio(
        cls,
        command: str | os.PathLike[str],
        *arguments: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        name: str | None = None,
        allow: str | Sequence[str] = "*",
        deny: str | Sequence[str] = (),
        approval: Approval | None = None,
        timeout: float | None = None,
        start_timeout: float = 30.0,
    ) -> Self:
        """A program that starts as a child process when the server is opened, and ends when it is closed.

        It gets `env` and a few variables of this process (PATH, HOME and the like), and none of your keys. `name` is
        the prefix of the names of its tools; by default it is the name that the server sends, and "" means no prefix.
        `allow` and `deny` are patterns (`read_*`) for the names that the server uses. `approval` and `timeout` apply to
        each of its tools. `start_timeout` limits the start, until the tools are known.
        """
        config = Stdio(
            os.fspath(command),
            tuple(os.fspath(argument) for argument in arguments),
            dict(env or {}),
            None if cwd is None else os.fspath(cwd),
        )
        return cls(
            config, name=name, allow=allow, deny=deny, approval=approval, timeout=timeout, start_timeout=start_timeout
        )

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
        allow: str | Sequence[str] = "*",
        deny: str | Sequence[str] = (),
        approval: Approval | None = None,
        timeout: float | None = None,
        start_timeout: float = 30.0,
    ) -> Self:
        """A server at a URL that speaks streamable HTTP. `headers` are sent with each request.

        The other arguments are those of `stdio`.
        """
        if not url.lower().startswith(("http://", "https://")):
            raise ConfigError("the URL of an MCP server starts with http:// or https://. Correct it.")
        config = Http(url, dict(headers or {}))
        return cls(
            config, name=name, allow=allow, deny=deny, approval=approval, timeout=timeout, start_timeout=start_timeout
        )

    @property
    def name(self) -> str:
        """The prefix of the names of its tools: `name=`, or the name that the server sends."""
        if self._name is not None:
            return self._name
        return sanitize_name(self._info.name or self._config.label)[:32]

    @property
    def instructions(self) -> str | None:
        """The server's instructions for a model. They are not added to any prompt."""
        return self._info.instructions

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """Its current tools, filtered by `allow` and `deny`."""
        listing = self._get_session().listing
        if listing is not self._tools_listing:
            self._tools, self._tools_listing = self._build_tools(listing), listing
        return self._tools

    def open(self) -> Self:
        """Connect and list the tools. Raises ConfigError if that fails."""
        session = self._start_session()
        try:
            self._accept_session(session, session.ready.result())
        except BaseException:
            session.close()
            raise
        return self

    async def aopen(self) -> Self:
        """`open`, async."""
        import asyncio

        session = self._start_session()
        try:
            self._accept_session(session, await asyncio.wrap_future(session.ready))
        except BaseException:
            await session.aclose()
            raise
        return self

    def close(self) -> None:
        """End the connection and its child process, if any: the child is asked, then terminated, then killed.

        Waiting calls get an error result. May be called twice; the server can be opened again.
        """
        for session in self._release_sessions():
            session.close()

    async def aclose(self) -> None:
        """`close`, async."""
        for session in self._release_sessions():
            await session.aclose()

    def refresh(self) -> tuple[McpTool, ...]:
        """List the tools again. A server that announces changes does not need it."""
        session = self._get_running_session()
        session.ready.result()
        try:
            session.refresh()
        except (ConnectionLost, RequestRefused) as error:
            raise self._build_listing_error(error) from None
        return self.tools

    async def arefresh(self) -> tuple[McpTool, ...]:
        """`refresh`, async."""
        import asyncio

        session = self._get_running_session()
        await asyncio.wrap_future(session.ready)
        try:
            await session.arefresh()
        except (ConnectionLost, RequestRefused) as error:
            raise self._build_listing_error(error) from None
        return self.tools

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.aopen()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        state = "closed" if self._session is None else f"{len(self.tools)} tools"
        return f"McpServer({self.name!r}, {self._config!r}, {state})"

    @property
    def _label(self) -> str:
        return self._name or self._config.label

    def _start_session(self) -> Session:
        if self._session is not None:
            raise ConfigError(f"the MCP server {self.name} is already open. Open it once.")
        return Session(self._label, self._config, self._start_timeout)

    def _accept_session(self, session: Session, info: ServerInfo) -> None:
        if session.listing and not any(is_selected(tool.name, self._allow, self._deny) for tool in session.listing):
            names = ", ".join(tool.name for tool in session.listing[:20])
            raise ConfigError(
                f"allow= and deny= leave none of the {len(session.listing)} tools of the MCP server "
                f"{self._label}. Correct them; it has {names}."
            )
        self._info = info
        with self._lock:
            self._adopt_session(session)

    def _adopt_session(self, session: Session) -> None:
        self._session = session
        if self._finalizer is not None:
            self._finalizer.detach()
        # An open server that is garbage-collected ends its child process and its thread.
        self._finalizer = weakref.finalize(self, session.request_stop)
        self._finalizer.atexit = False  # The session does that, and waits.

    def _release_sessions(self) -> list[Session]:
        with self._lock:
            sessions = [*self._ending, *([self._session] if self._session is not None else [])]
            self._session, self._ending = None, []
            if self._finalizer is not None:
                self._finalizer.detach()
        return sessions

    def _get_running_session(self) -> Session:
        """Return the session, or a new one if the last one ended by itself. It may not be ready."""
        with self._lock:
            session = self._get_session()
            if session.has_ended:
                self._ending = [*(earlier for earlier in self._ending if earlier.is_alive), session]
                session = Session(self._label, self._config, self._start_timeout, session.listing)
                self._adopt_session(session)
            return session

    def _get_session(self) -> Session:
        if self._session is None:
            raise ConfigError(
                f"the MCP server {self.name} is not open. Use it inside `with` or `async with`, or call open()."
            )
        return self._session

    def _build_tools(self, listing: tuple[ListedTool, ...]) -> tuple[McpTool, ...]:
        selected = {tool.name: tool for tool in listing if is_selected(tool.name, self._allow, self._deny)}
        names = build_public_names(self.name, selected)
        return tuple(
            McpTool(
                self,
                own_name,
                Tool(names[own_name], listed.description or listed.title or "", listed.input_schema),
                self._approval,
                self._timeout,
            )
            for own_name, listed in selected.items()
        )

    async def _call(self, own_name: str, call: ToolCall) -> ToolResult:
        import asyncio

        self._get_session()
        if call.raw_arguments is not None:
            raise BadArguments("the arguments are not a JSON object; call the tool again with one")
        try:
            # An agent also has a timeout, but a sync agent only stops waiting and does not cancel the request.
            async with asyncio.timeout(self._timeout):
                session = self._get_running_session()
                await asyncio.wrap_future(session.ready)
                return convert_result(call, await session.call(own_name, call.arguments))
        except TimeoutError:
            reason = f"did not answer within {self._timeout:g} seconds, and was asked to stop"
        except ConnectionLost:
            reason = "ended before it answered; whether it ran the tool is not known"
        except ConfigError:
            reason = "ended, and could not be opened again"
        except RequestRefused as error:
            reason = f"did not run {own_name}: {error}"
        return build_error(call, f"the server {self.name} {reason}")

    def _build_listing_error(self, error: ConnectionLost | RequestRefused) -> ConfigError:
        reason = "it has ended" if isinstance(error, ConnectionLost) else str(error)
        return ConfigError(f"the MCP server {self.name} did not list its tools: {reason}. Look at the server.")
