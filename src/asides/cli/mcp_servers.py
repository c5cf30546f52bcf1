"""The MCP servers of `--mcp`: a command, a URL, the NAME of [mcp.NAME] in the settings, or a JSON file of servers.

They are opened for one command and end with it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from asides.agents.mcp.mcp_server import McpServer, McpTool
from asides.cli.inputs import read_json_file
from asides.cli.terminal import LiveLine, Terminal
from asides.settings import Settings
from asides.settings_files import McpTable
from asides.values.error_words import suggest_name
from asides.values.errors import ConfigError

_OPTION = "--mcp"
# Names in the library's errors, and where a user of the command line sets them.
_PLACES = {
    "start_timeout=": "start_timeout in [mcp.NAME] of asides.toml",
    "headers=": "headers in [mcp.NAME] of asides.toml",
    "cwd=": "cwd",
    "allow= and deny=": "allow and deny",
}
_VARIABLE = re.compile(r"\$\{(\w+)\}|^\$(\w+)$")
_HTTP_TYPES = ("http", "streamable-http", "streamableHttp", "streamable_http")


class ServerTable(msgspec.Struct, forbid_unknown_fields=True):
    """A table [mcp.NAME]: a program (`command`) or an address (`url`)."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    allow: str | list[str] = "*"
    deny: str | list[str] = []
    approval: Literal["allow", "deny", "ask"] | None = None
    timeout: float | None = None
    start_timeout: float = 30.0


@contextmanager
def open_servers(references: Iterable[str], settings: Settings, terminal: Terminal) -> Generator[list[McpTool]]:
    """Yield the tools of these servers, which are open inside the block. Raises ConfigError where one cannot be."""
    servers = [server for reference in references for server in find_servers(reference, settings.mcp)]
    with ExitStack() as stack:
        for server in servers:
            _open(server, stack, terminal)
        tools = [tool for server in servers for tool in server.tools]
        _refuse_same_names(tools)
        yield tools


def _open(server: McpServer, stack: ExitStack, terminal: Terminal) -> None:
    # A first start may download the program.
    line = LiveLine(terminal, lambda: f"starting the MCP server {server.name}…")
    line.start()
    try:
        stack.enter_context(server)
    except ConfigError as error:
        message = str(error)
        for option, place in _PLACES.items():
            message = message.replace(option, place)
        raise ConfigError(message) from None
    finally:
        line.stop()
    if not server.tools:
        terminal.print_note(f"warning: the MCP server {server.name} offers no tools")


def _refuse_same_names(tools: Iterable[McpTool]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.tool.name in seen:
            raise ConfigError(
                f"two MCP servers have a tool {tool.tool.name!r}. Name each server once, or give "
                "them names of their own, as [mcp.NAME] in asides.toml."
            )
        seen.add(tool.tool.name)


# --- what --mcp names -------------------------------------------------------------------------------------------------


def find_servers(reference: str, tables: Iterable[McpTable] = ()) -> list[McpServer]:
    """The servers that a value of `--mcp` names, not yet open."""
    text = reference.strip()
    if not text:
        raise ConfigError(f"{_OPTION} needs a server: a command, a URL, a name from the settings, or a JSON file.")
    if text.lower().startswith(("http://", "https://")):
        return [McpServer.http(text)]
    path, _, chosen = text.partition("#")
    if path.lower().endswith(".json"):
        return list(_read_file(path, chosen))
    named = {table.name: table for table in tables}
    if text in named:
        table = named[text]
        return [_build(text, table.table, f"{table.where}: [mcp.{text}]", ServerTable)]
    return [_build_command(text, named)]


def _build_command(text: str, named: Mapping[str, object]) -> McpServer:
    try:
        command, *arguments = _split(text)
    except ValueError as error:
        raise ConfigError(f"{_OPTION} {text!r} is not a command: {str(error).lower()}.") from None
    if not arguments and "/" not in command and os.sep not in command:
        from shutil import which

        if which(command) is None:
            raise ConfigError(_explain_unknown(command, named))
    return McpServer.stdio(command, *arguments)


def _split(text: str) -> list[str]:
    """The words of a command line, as a shell splits them. On Windows a backslash is part of a path."""
    if os.name == "posix":
        return shlex.split(text)
    return [word.strip('"') for word in shlex.split(text, posix=False)]


def _explain_unknown(word: str, named: Mapping[str, object]) -> str:
    hint = suggest_name(word, named, f"the settings name {', '.join(named) or 'none'}.")
    return f"{_OPTION} {word}: there is no [mcp.{word}] in the settings and no command of that name; {hint}"


def _read_file(path: str, chosen: str) -> Iterator[McpServer]:
    """The servers of a file in the form that many clients share: {"mcpServers": {"name": {"command": …}}}."""
    document = read_json_file(path, _OPTION)
    servers = document.get("mcpServers", document.get("servers"))
    if not isinstance(servers, dict) or not servers:
        raise ConfigError(f'{_OPTION} {path} names no server. Write {{"mcpServers": {{"NAME": {{…}}}}}}.')
    if chosen and chosen not in servers:
        raise ConfigError(f"{_OPTION} {path} has no server {chosen!r}; it has {', '.join(map(str, servers))}.")
    for name, table in servers.items():
        if chosen in ("", name) and not (isinstance(table, dict) and table.get("disabled") is True and not chosen):
            yield _build(name, table, f"{path}: {name}", _FileTable)


class _FileTable(ServerTable, forbid_unknown_fields=False):
    """A server in a JSON file. Other clients have more fields, which are ignored."""

    type: str | None = None


def _build(name: str, table: object, where: str, kind: type[ServerTable]) -> McpServer:
    try:
        read = msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where} is not a valid MCP server: {error}.") from None
    if (read.command is None) == (read.url is None):
        raise ConfigError(f"{where} needs a command or a url, and not both.")
    declared = getattr(read, "type", None)
    if declared is not None and declared not in (_HTTP_TYPES if read.url is not None else ("stdio",)):
        raise ConfigError(f"{where} has the type {declared!r}; asides speaks stdio and http (streamable HTTP).")
    prefix = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:32]
    options: dict[str, Any] = {
        "name": prefix,
        "allow": read.allow,
        "deny": read.deny,
        "approval": read.approval,
        "timeout": read.timeout,
        "start_timeout": read.start_timeout,
    }
    expand = _Expander(where)
    if read.url is not None:
        return McpServer.http(expand(read.url), headers=expand.all(read.headers), **options)
    command = os.path.expanduser(expand(read.command or ""))  # noqa: PTH111 - a word may stay a word
    cwd = None if read.cwd is None else Path(expand(read.cwd)).expanduser()
    return McpServer.stdio(command, *map(expand, read.args), env=expand.all(read.env), cwd=cwd, **options)


class _Expander:
    """Puts variables of the environment where a table has `${NAME}`, or `$NAME` as a whole value."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __call__(self, text: str) -> str:
        return _VARIABLE.sub(self._get, text)

    def all(self, values: Mapping[str, str]) -> dict[str, str]:
        return {name: self(value) for name, value in values.items()}

    def _get(self, found: re.Match[str]) -> str:
        name = found[1] or found[2]
        value = os.environ.get(name)
        if value is None:
            raise ConfigError(f"{self._where} uses ${name}, which is not in the environment. Set it.")
        return value
