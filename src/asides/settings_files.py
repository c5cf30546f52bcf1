"""Finds and reads settings files, and says which of them are trusted.

A file that the user named, and the one in the user's configuration folder, are. One that was only found in the current
folder may come from elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from asides.values.errors import ConfigError
from asides.values.notices import Notice, escape_controls

FILE_NAME = "asides.toml"
FILE_VARIABLE = "ASIDES_CONFIG"
FOLDER_VARIABLES = ("XDG_CONFIG_HOME", "HOME", "USERPROFILE")
"""The variables that decide where the user's configuration folder is."""
MCP_TABLES = "mcp"
NOT_TRUSTED = "it was found in the current folder, which is not trusted"
# Far beyond any real file. The parser takes minutes for a key of many parts, so a line has no more dots than this.
_MAX_BYTES = 1024 * 1024
_MAX_DOTS = 200

Trusts: TypeAlias = Callable[[Path, bytes], bool]
"""Whether the user trusts the file at this path with exactly this content."""


class SettingsFile(msgspec.Struct, frozen=True):
    """A settings file as it was read."""

    path: Path
    document: dict[str, Any]
    distrust: str | None = None
    """Why it may set only what is harmless; None for a trusted file."""


class McpTable(msgspec.Struct, frozen=True):
    """A table [mcp.NAME] of a trusted file: an MCP server for `--mcp NAME` (cli/mcp_servers reads it)."""

    name: str
    where: str
    """The file."""
    table: Any

    def __repr__(self) -> str:
        # It often holds tokens.
        return f"McpTable({self.name!r}, {self.where!r})"


def find_config_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The paths of settings files, in order of precedence. The files need not exist."""
    if named := environ.get(FILE_VARIABLE, "").strip():
        return (Path(named),)
    folder = find_config_folder(environ)
    return (Path(FILE_NAME),) if folder is None else (Path(FILE_NAME), folder / FILE_NAME)


def find_config_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's configuration folder; None without a home. A relative path counts as none: it may be anyone's."""
    for variable, inside in zip(FOLDER_VARIABLES, ("", ".config", ".config"), strict=True):
        if (value := environ.get(variable, "").strip()) and Path(value).is_absolute():
            return Path(value) / inside / "asides"
    return None


def read_files(
    environ: Mapping[str, str], files: Sequence[str | Path] | None, trusts: Trusts | None
) -> Iterator[SettingsFile]:
    """Read the named files, or else the found ones, in order of precedence."""
    is_named = files is not None or bool(environ.get(FILE_VARIABLE, "").strip())
    paths = find_config_files(environ) if files is None else tuple(map(Path, files))
    for path in paths:
        try:
            # Read once: the content that is judged is the content that counts.
            content, status = _read_named(path) if is_named else read_regular_file(path)
        except (FileNotFoundError, NotADirectoryError):
            if is_named:
                raise ConfigError(f"the settings file {path} does not exist; create it, or name another.") from None
            continue
        except OSError as problem:
            raise ConfigError(f"the settings file {path} cannot be read: {problem}.") from None
        distrust: str | None = None
        if not is_named and path != Path(FILE_NAME):
            is_open = is_open_to_others(status) or is_open_to_others(path.parent.stat())
            distrust = f"others may write to it or to its folder (chmod o-w {path.parent} {path})" if is_open else None
        elif not is_named:
            if any(_is_same_file(status, other) for other in paths[1:]):
                continue  # The user's own file, which comes next.
            distrust = None if trusts is not None and trusts(path, content) else NOT_TRUSTED
        yield SettingsFile(path, parse(path, content), distrust)


def parse(path: Path, content: bytes) -> dict[str, Any]:
    """Parse the content of a settings file."""
    import tomllib

    if any(line.count(b".") > _MAX_DOTS for line in content.splitlines()):
        raise ConfigError(f"the settings file {path} has a line with more than {_MAX_DOTS} dots; break it up.")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as problem:
        raise ConfigError(f"the settings file {path} cannot be read: {problem}.") from None
    except (ValueError, RecursionError) as problem:  # A ValueError: a number of thousands of digits.
        raise ConfigError(f"the settings file {path} is not TOML: {problem}.") from None


def read_mcp_tables(tables: object, path: Path) -> list[McpTable]:
    """The tables [mcp.NAME] of a file. They start programs, so only a trusted file's count."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: {MCP_TABLES} is a table of tables: [{MCP_TABLES}.NAME].")
    return [McpTable(name, str(path), table) for name, table in tables.items()]


def _read_named(path: Path) -> tuple[bytes, os.stat_result]:
    """The content of anything that can be read, a pipe too, and its status."""
    with path.open("rb") as file:
        return file.read(), os.fstat(file.fileno())


def read_regular_file(path: Path) -> tuple[bytes, os.stat_result]:
    """The content of a regular file and its status. A pipe or a device, behind a link too, would never end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise OSError(f"it is longer than {_MAX_BYTES} bytes")
        return content, status


def is_open_to_others(status: os.stat_result) -> bool:
    """Whether every user of this machine may write to a file, or replace those of a folder. Windows does not say."""
    is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    return os.name == "posix" and bool(status.st_mode & stat.S_IWOTH) and not is_sticky


def _is_same_file(status: os.stat_result, path: Path) -> bool:
    try:
        return os.path.samestat(status, path.stat())
    except OSError:
        return False


# --- what a file may not set ------------------------------------------------------------------------------------------


class IgnoredSetting(msgspec.Struct, frozen=True):
    """A value of a file that does not count."""

    name: str
    """The setting, or providers.NAME for a row. Printable."""
    file: str
    why: str


def report_ignored(ignored: Sequence[IgnoredSetting]) -> list[Notice]:
    """A notice for each file with ignored settings."""
    notices: list[Notice] = []
    for file, why in dict.fromkeys((entry.file, entry.why) for entry in ignored):
        names = [entry.name for entry in ignored if (entry.file, entry.why) == (file, why)]
        listed = ", ".join(names[:_MAX_NAMES]) + (f" and {len(names) - _MAX_NAMES} more" if names[_MAX_NAMES:] else "")
        detail = f"{file} may not set {listed}, which is ignored: {why}."
        if why == NOT_TRUSTED:
            detail += (
                f" Read the file; if you trust it, run `asides config trust` for the command line, and for "
                f"code set {FILE_VARIABLE}={file} or pass settings=load_settings(files=[{file!r}])"
            )
        notices.append(Notice("untrusted_settings", detail.rstrip(".")))
    return notices


_MAX_NAMES = 5


def shorten_name(name: str) -> str:
    """A name from elsewhere, as it may be shown."""
    return escape_controls(name if len(name) <= 60 else f"{name[:60]}…")


STATE_VARIABLE = "ASIDES_STATE"


def find_state_folder(environ: Mapping[str, str]) -> Path:
    """ASIDES_STATE; else `asides` in XDG_STATE_HOME, or in ~/.local/state."""
    if named := environ.get(STATE_VARIABLE, "").strip():
        return Path(named).expanduser()
    if folder := environ.get("XDG_STATE_HOME", "").strip():
        return Path(folder) / "asides"
    home = environ.get("HOME", "").strip() or environ.get("USERPROFILE", "").strip()
    if not home:
        raise ConfigError(f"there is no home folder to save conversations in. Set {STATE_VARIABLE}.")
    return Path(home) / ".local" / "state" / "asides"
