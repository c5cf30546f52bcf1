"""`asides config`: every setting, its value and its origin, and where files are. Shows which keys are set, never a key.

`get`, `set` and `unset` are about one setting (config_edit). `trust` lets the settings file of the current folder set
everything; `untrust` takes that back.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from asides.cli.config_edit import get_setting, set_setting, unset_setting
from asides.cli.exit_codes import Exit
from asides.cli.keys import read_stored_keys
from asides.cli.line_input import HISTORY_FILE
from asides.cli.render import format_cell, format_columns, indent_lines, print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import RECORD, read_file_here, read_settings, trust, untrust
from asides.conversations.store.conversation_names import STORE_FILE
from asides.providers.credentials import KEY_FILE
from asides.providers.find import list_providers
from asides.providers.key_file import locate_key
from asides.settings import GROUPS, Settings, is_harmless
from asides.settings_files import FILE_NAME, FILE_VARIABLE, find_config_folder, find_state_folder
from asides.values.errors import ConfigError
from asides.values.mask_url import show_value
from asides.values.notices import escape_controls

# How many words each action takes.
_WORDS = ((None, 0), ("get", 1), ("set", 2), ("unset", 1), ("trust", 0), ("untrust", 0))
_USAGE = "`config`, `config get NAME`, `config set NAME VALUE`, `config unset NAME`, `config trust`, `config untrust`"


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the settings on stdout, or trust the file of the current folder."""
    words: list[str] = arguments.words
    if (arguments.action, len(words)) not in _WORDS:
        raise ConfigError(f"`asides config` is used so: {_USAGE}. Quote a value that has blanks.")
    match arguments.action:
        case "get":
            get_setting(words[0], terminal, as_json=arguments.json)
            return Exit.DONE
        case "set":
            set_setting(words[0], words[1], terminal)
            return Exit.DONE
        case "unset":
            unset_setting(words[0], terminal)
            return Exit.DONE
        case "trust":
            return _trust(arguments, terminal)
        case "untrust":
            was_trusted = untrust(os.environ)
            terminal.print_info(
                f"{FILE_NAME} of this folder {'is not trusted any more' if was_trusted else 'was not trusted'}."
            )
            return Exit.DONE
        case _:
            return _show(read_settings(terminal), arguments, terminal)


def _show(settings: Settings, arguments: Namespace, terminal: Terminal) -> int:
    stored = read_stored_keys(terminal)
    sources = ((row.name, locate_key(row, keys=stored)) for row in list_providers(settings.providers))
    keys = {name: source for name, source in sources if source is not None}
    if arguments.json:
        values = {
            name: {"value": msgspec.to_builtins(value), "origin": origin} for name, value, origin in settings.entries()
        }
        ignored = msgspec.to_builtins(settings.ignored)
        fields = {"settings": values, "files": settings.files, "keys": keys, "ignored": ignored}
        fields |= _list_own(settings)
        fields["paths"] = {name: {"path": path, "exists": exists} for name, path, exists in _list_paths(settings)}
        print_json(terminal, fields)
        return Exit.DONE
    table = [(name, escape_controls(format_cell(value)), origin) for name, value, origin in settings.entries()]
    lines = [*format_columns([("SETTING", "VALUE", "FROM"), *table]), ""]
    lines += [f"files read: {', '.join(settings.files) or 'none'}"]
    if settings.ignored:
        lines += ["ignored:"]
        lines += indent_lines(
            format_columns([(entry.name, f"{entry.file}: {entry.why}") for entry in settings.ignored])
        )
    for kind, names in _list_own(settings).items():
        lines += [f"your {kind}: {', '.join(map(escape_controls, names))}"] if names else []
    lines += ["files and where they are, or would be:"]
    lines += indent_lines(
        format_columns(
            [
                (name, path or "no home folder", "" if exists else "(none)")
                for name, path, exists in _list_paths(settings)
            ]
        )
    )
    lines += ["keys set:" if keys else "keys set: none"]
    lines += indent_lines(format_columns(list(keys.items())))
    print_lines(terminal, lines)
    return Exit.DONE


def _list_own(settings: Settings) -> dict[str, list[str]]:
    """The names that the user's tables define."""
    return {
        "providers": [row.name for row in settings.providers],
        "aliases": list(settings.aliases),
        "templates": list(settings.templates),
        "routes": list(settings.routes),
        "mcp": [table.name for table in settings.mcp],
    }


def _list_paths(settings: Settings) -> list[tuple[str, str | None, bool]]:
    """The files that asides reads or writes for this user: name, path, and whether it exists."""
    folder = find_config_folder(os.environ)
    named = os.environ.get(FILE_VARIABLE, "").strip()
    paths: list[tuple[str, Path | None]] = [
        ("settings", Path(named) if named else None if folder is None else folder / FILE_NAME),
        ("settings of this folder", None if named else Path.cwd() / FILE_NAME),
        ("keys", None if folder is None else folder / KEY_FILE),
        ("trusted files", None if folder is None else folder / RECORD),
    ]
    with suppress(ConfigError):
        state = find_state_folder(os.environ)
        # With the setting `store`, they are there.
        paths += [("conversations", state / STORE_FILE)] if settings.store is None else []
        paths += [("input history", state / HISTORY_FILE)]
    shown = [(name, path) for name, path in paths if not (named and name == "settings of this folder")]
    return [(name, None if path is None else str(path), path is not None and path.exists()) for name, path in shown]


# --- trust ------------------------------------------------------------------------------------------------------------


def _trust(arguments: Namespace, terminal: Terminal) -> int:
    file = read_file_here()
    allowed = [f"{name} = {escape_controls(repr(show_value(value)))}" for name, value in _list_values(file.document)]
    terminal.print_info(f"{file.place} (SHA-256 {file.digest[:16]}…) could then set:")
    for line in allowed or ["nothing more than it sets already"]:
        terminal.print_info(f"  {line}")
    if not arguments.yes and sys.stdin is not None and sys.stdin.isatty() and not _confirm(terminal):
        terminal.print_info("nothing was recorded.")
        return Exit.DONE
    record = trust(os.environ, file)
    terminal.print_info(f"trusted until it changes; recorded in {record}. `asides config untrust` undoes it.")
    return Exit.DONE


def _confirm(terminal: Terminal) -> bool:
    terminal.print_info("trust it? [y]es, [n]o")
    with suppress(EOFError):
        return input().strip().lower() in ("y", "yes")
    return False


def _list_values(document: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    """What trust would allow: every value that does not count without it, with its full name."""
    for key, value in document.items():
        name = f"{inside}{key}"
        if isinstance(value, Mapping) and (name.startswith("providers") or name in GROUPS):
            yield from _list_values(value, f"{name}.")
        elif not is_harmless(name.replace("-", "_"), value):
            yield escape_controls(name), value
