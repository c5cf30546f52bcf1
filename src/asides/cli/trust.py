"""The settings of the command line, and the record of the files in other folders that the user trusts.

The record is `trusted.json` in the user's configuration folder: the path of each file and the SHA-256 of its content.
A file that has changed is not trusted any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from asides.cli.private_files import hold_lock, write_private_file
from asides.cli.render import PRINTED_WITH_SETTINGS, describe_notice
from asides.cli.terminal import Terminal
from asides.settings import Settings, load_settings
from asides.settings_files import FILE_NAME, find_config_folder, is_open_to_others, parse, read_regular_file
from asides.values.errors import ConfigError

RECORD = "trusted.json"


class _Record(msgspec.Struct):
    files: dict[str, str] = {}


def read_settings(terminal: Terminal, **explicit: Any) -> Settings:
    """The settings, with the files that the user trusts. Prints a note for whatever is ignored."""
    environ = os.environ
    settings = load_settings(environ, trusts=lambda path, content: is_trusted(environ, path, content), **explicit)
    for notice in settings.notices:
        if notice.code in PRINTED_WITH_SETTINGS:
            terminal.print_note(f"warning: {describe_notice(notice)}")
    return settings


# --- the record -------------------------------------------------------------------------------------------------------


class FoundFile(NamedTuple):
    """The settings file of the current folder, as it was read."""

    place: str
    digest: str
    document: dict[str, Any]


def read_file_here() -> FoundFile:
    """Read the settings file of the current folder. What is shown of it and what is recorded is the same content."""
    path = Path(FILE_NAME)
    try:
        content, _ = read_regular_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"there is no {FILE_NAME} in this folder, so there is nothing to trust.") from None
    except OSError as problem:
        raise ConfigError(f"the settings file {path} cannot be read: {problem}.") from None
    return FoundFile(_locate(path), sha256(content).hexdigest(), parse(path, content))


def is_trusted(environ: Mapping[str, str], path: Path, content: bytes) -> bool:
    """Whether the user trusts the file at this path with this content."""
    return _read_record(environ).files.get(_locate(path)) == sha256(content).hexdigest()


def trust(environ: Mapping[str, str], file: FoundFile) -> Path:
    """Record that the user trusts this file. Returns the path of the record."""

    def add(files: dict[str, str]) -> None:
        files[file.place] = file.digest

    return _change_record(environ, add)


def untrust(environ: Mapping[str, str]) -> bool:
    """Forget the file of the current folder. Returns whether the record named it."""
    place = _locate(Path(FILE_NAME))
    if place not in _read_record(environ).files:
        return False
    _change_record(environ, lambda files: files.pop(place, None))
    return True


def _locate(path: Path) -> str:
    """The place of a file: its real folder and its name. A link stays a link, since its content is recorded anyway."""
    return str(Path(os.path.realpath(path.parent)) / path.name)


def _read_record(environ: Mapping[str, str]) -> _Record:
    """The record; empty if there is none, if it cannot be read, or if others may write to it."""
    folder = find_config_folder(environ)
    if folder is not None:
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            content, status = read_regular_file(folder / RECORD)
            if not is_open_to_others(status) and not is_open_to_others(folder.stat()):
                return msgspec.json.decode(content, type=_Record)
    return _Record()


def _change_record(environ: Mapping[str, str], change: Callable[[dict[str, str]], object]) -> Path:
    """Read, change and write the record. Concurrent commands lose nothing."""
    folder = find_config_folder(environ)
    if folder is None:
        raise ConfigError("there is no home folder to record trusted files in. Set HOME or XDG_CONFIG_HOME.")
    path = folder / RECORD
    what = f"the record {path}"
    with hold_lock(path, what):
        files = dict(_read_record(environ).files)
        change(files)
        content = msgspec.json.format(msgspec.json.encode(_Record(files)), indent=2)
        write_private_file(path, content + b"\n", what)
    return path
