"""An MCP server and its tools, for an agent: `with McpServer.stdio("uvx", "mcp-server-time") as time: time.tools`.

Not here: the connection (session), the ways to it (ways), what its results become (content).
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from asides.agents.mcp.connect import Http, Stdio, Way
from asides.agents.mcp.content import convert_result, failed
from asides.agents.mcp.naming import public_names, spelled, wanted
from asides.agents.mcp.session import Gone, Refused, Session, Welcome
from asides.agents.tools.runnable import Approval, BadArguments
from asides.values.errors import ConfigError
from asides.values.messages import ToolCall, ToolResult
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
    """What the server calls it."""
    tool: Tool
    """As the model sees it."""
    approval: Approval | None = None
    """Whether its calls may be run; None leaves it to the agent."""
    timeout: float | None = None
    """Seconds that a call may take; None leaves it to the agent."""

    @property
    def fatal(self) -> tuple[type[BaseException], ...]:
        """A server that nobody opened is a mistake in the program, and nothing that a model could mend."""
        return (ConfigError,)

    @property
    def blocking(self) -> bool:
        """`run` gives an awaitable."""
        return False

    def run(self, call: ToolCall) -> Coroutine[Any, Any, ToolResult]:
        """What gives the result when awaited, on any event loop; cancelling that cancels the request.

        What goes wrong on the server's side is a result with `is_error`. Raises BadArguments when the arguments are no
        JSON object, and ConfigError when the server is not open.
        """
        return self.server._call(self.own_name, call)

    def __repr__(self) -> str:
        return f"McpTool({self.tool.name!r})"


class McpServer:
    """A server that offers tools. It is open inside `with` or `async with`, or between `open` and `close`.

    Made by `McpServer.stdio` or `McpServer.http`. One object serves blocking and awaiting agents, and any number of
    threads and event loops at once: the connection lives in a thread of its own.
    """

    def __init__(
        self,
        way: Way,
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
                f"{name!r} cannot be the name of an MCP server, since it stands in front of the names of its tools. "
                "To do: name it with up to 32 of the characters a-z A-Z 0-9 _ and -."
            )
        if approval not in _APPROVALS:
            raise ConfigError(f'approval={approval!r} says nothing. To do: write "allow", "deny" or "ask".')
        if start_timeout <= 0 or (timeout is not None and timeout <= 0):
            raise ConfigError("timeout= and start_timeout= are seconds, more than 0. To do: correct them.")
        self._way = way
        self._name = name
        self._allow = (allow,) if isinstance(allow, str) else tuple(allow)
        self._deny = (deny,) if isinstance(deny, str) else tuple(deny)
        self._approval: Approval | None = approval
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._ending: list[Session] = []
        """Sessions that ended by themselves, whose threads may still be at it."""
        self._let_go: weakref.finalize[[], McpServer] | None = None
        self._welcome = Welcome(None, None)
        self._made_of: tuple[ListedTool, ...] | None = None
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
        """A program that is started as a child when the server is opened, and ended when it is closed.

        It gets `env` and a few variables of this process (PATH, HOME and their like), and none of your keys. `name`
        stands in front of the names of its tools; without it the server's own name does, and with "" nothing. `allow`
        and `deny` are patterns (`read_*`) for the names that the server has for its tools. `approval` and `timeout`
        hold for each of its tools. `start_timeout` is for the start: until the tools are known.
        """
        way = Stdio(
            os.fspath(command),
            tuple(os.fspath(argument) for argument in arguments),
            dict(env or {}),
            None if cwd is None else os.fspath(cwd),
        )
        return cls(
            way, name=name, allow=allow, deny=deny, approval=approval, timeout=timeout, start_timeout=start_timeout
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
        """A server at an address that speaks streamable HTTP. `headers` go along with each request.

        The other arguments are those of `stdio`.
        """
        if not url.lower().startswith(("http://", "https://")):
            raise ConfigError("the URL of an MCP server starts with http:// or https://. To do: correct it.")
        way = Http(url, dict(headers or {}))
        return cls(
            way, name=name, allow=allow, deny=deny, approval=approval, timeout=timeout, start_timeout=start_timeout
        )

    @property
    def name(self) -> str:
        """What stands in front of the names of its tools: `name=`, or what the server calls itself."""
        if self._name is not None:
            return self._name
        return spelled(self._welcome.name or self._way.label)[:32]

    @property
    def instructions(self) -> str | None:
        """What the server would have a model know of it. It is the server's text: nothing puts it into a prompt."""
        return self._welcome.instructions

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """Its tools as they are now, without those that `allow` and `deny` leave out."""
        listing = self._opened().listing
        if listing is not self._made_of:
            self._tools, self._made_of = self._made(listing), listing
        return self._tools

    def open(self) -> Self:
        """Connect, and get to know the tools. Raises ConfigError when that does not work."""
        session = self._begin()
        try:
            self._accept(session, session.ready.result())
        except BaseException:
            session.close()
            raise
        return self

    async def aopen(self) -> Self:
        """`open`, awaiting."""
        import asyncio

        session = self._begin()
        try:
            self._accept(session, await asyncio.wrap_future(session.ready))
        except BaseException:
            await session.aclose()
            raise
        return self

    def close(self) -> None:
        """End the connection and, where there is one, the child process: it is asked, then terminated, then killed.

        Calls that still wait are told that the server is gone. May be called twice; `open` may follow.
        """
        for session in self._left():
            session.close()

    async def aclose(self) -> None:
        """`close`, awaiting."""
        for session in self._left():
            await session.aclose()

    def refresh(self) -> tuple[McpTool, ...]:
        """Ask the server for its tools again. A server that can tell of changes does so by itself."""
        session = self._again()
        session.ready.result()
        try:
            session.refresh()
        except (Gone, Refused) as problem:
            raise self._unlisted(problem) from None
        return self.tools

    async def arefresh(self) -> tuple[McpTool, ...]:
        """`refresh`, awaiting."""
        import asyncio

        session = self._again()
        await asyncio.wrap_future(session.ready)
        try:
            await session.arefresh()
        except (Gone, Refused) as problem:
            raise self._unlisted(problem) from None
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
        return f"McpServer({self.name!r}, {self._way!r}, {state})"

    @property
    def _label(self) -> str:
        return self._name or self._way.label

    def _begin(self) -> Session:
        if self._session is not None:
            raise ConfigError(f"the MCP server {self.name} is open already. To do: open it once.")
        return Session(self._label, self._way, self._start_timeout)

    def _accept(self, session: Session, welcome: Welcome) -> None:
        if session.listing and not any(wanted(tool.name, self._allow, self._deny) for tool in session.listing):
            names = ", ".join(tool.name for tool in session.listing[:20])
            raise ConfigError(
                f"allow= and deny= leave none of the {len(session.listing)} tools of the MCP server "
                f"{self._label}. To do: correct them; it has {names}."
            )
        self._welcome = welcome
        with self._lock:
            self._take(session)

    def _take(self, session: Session) -> None:
        self._session = session
        if self._let_go is not None:
            self._let_go.detach()
        # Whoever lets go of an open server without closing it does not keep a child and a thread for it.
        self._let_go = weakref.finalize(self, session.ask_to_stop)
        self._let_go.atexit = False  # The session sees to that, and waits.

    def _left(self) -> list[Session]:
        with self._lock:
            left = [*self._ending, *([self._session] if self._session is not None else [])]
            self._session, self._ending = None, []
            if self._let_go is not None:
                self._let_go.detach()
        return left

    def _again(self) -> Session:
        """The session; another one where the last has ended by itself. It may not be ready."""
        with self._lock:
            session = self._opened()
            if session.over:
                self._ending = [*(earlier for earlier in self._ending if earlier.alive), session]
                session = Session(self._label, self._way, self._start_timeout, session.listing)
                self._take(session)
            return session

    def _opened(self) -> Session:
        if self._session is None:
            raise ConfigError(
                f"the MCP server {self.name} is not open. To do: use it inside `with` or `async with`, or call open()."
            )
        return self._session

    def _made(self, listing: tuple[ListedTool, ...]) -> tuple[McpTool, ...]:
        taken = {tool.name: tool for tool in listing if wanted(tool.name, self._allow, self._deny)}
        names = public_names(self.name, taken)
        return tuple(
            McpTool(
                self,
                own,
                Tool(names[own], listed.description or listed.title or "", listed.input_schema),
                self._approval,
                self._timeout,
            )
            for own, listed in taken.items()
        )

    async def _call(self, own_name: str, call: ToolCall) -> ToolResult:
        import asyncio

        self._opened()
        if call.raw_arguments is not None:
            raise BadArguments("the arguments are not a JSON object; call the tool again with one")
        try:
            # An agent sees to the time as well; a blocking one can only stop to wait, and the request would go on.
            async with asyncio.timeout(self._timeout):
                session = self._again()
                await asyncio.wrap_future(session.ready)
                return convert_result(call, await session.call(own_name, call.arguments))
        except TimeoutError:
            words = f"did not answer within {self._timeout:g} seconds, and was told to stop"
        except Gone:
            words = "has gone before it answered; whether it did what it was asked is not known"
        except ConfigError:
            words = "has gone, and could not be opened again"
        except Refused as problem:
            words = f"did not run {own_name}: {problem}"
        return failed(call, f"the server {self.name} {words}")

    def _unlisted(self, problem: Gone | Refused) -> ConfigError:
        why = "it has gone" if isinstance(problem, Gone) else str(problem)
        return ConfigError(f"the MCP server {self.name} did not list its tools: {why}. To do: look at the server.")
