"""`asides config`: every setting, its value and its origin. Prints which API keys are set, never a key.

`asides config trust` lets the settings file of the current folder set everything; `untrust` takes that back.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.render import format_cell, format_columns, indent_lines, print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_file_here, read_settings, trust, untrust
from asides.providers.credentials import locate_key
from asides.providers.find import list_providers
from asides.settings import Settings, is_harmless
from asides.settings_files import FILE_NAME
from asides.values.notices import escape_controls


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the settings on stdout, or trust the file of the current folder."""
    match arguments.action:
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
    keys = {
        row.name: variable for row in list_providers(settings.providers) if (variable := locate_key(row)) is not None
    }
    own = [row.name for row in settings.providers]
    if arguments.json:
        values = {
            name: {"value": msgspec.to_builtins(value), "origin": origin} for name, value, origin in settings.entries()
        }
        ignored = msgspec.to_builtins(settings.ignored)
        fields = {"settings": values, "files": settings.files, "providers": own, "keys": keys, "ignored": ignored}
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
    if own:
        lines += [f"your providers: {', '.join(map(escape_controls, own))}"]
    lines += ["keys set:" if keys else "keys set: none"]
    lines += indent_lines(format_columns(list(keys.items())))
    print_lines(terminal, lines)
    return Exit.DONE


# --- trust ------------------------------------------------------------------------------------------------------------


def _trust(arguments: Namespace, terminal: Terminal) -> int:
    file = read_file_here()
    allowed = [f"{name} = {escape_controls(repr(value))}" for name, value in _list_values(file.document)]
    terminal.print_info(f"{file.place} (SHA-256 {file.digest[:16]}…) could then set:")
    for line in allowed or ["nothing more than it sets already"]:
        terminal.print_info(f"  {line}")
    if not arguments.yes and sys.stdin is not None and sys.stdin.isatty() and not _confirm(terminal):
        terminal.print_info("nothing was recorded.")
        return Exit.DONE
    record = trust(os.environ, file)
    terminal.print_info(f"trusted until it changes; recorded in {record}. `asides config untrust` takes it back.")
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
        if isinstance(value, Mapping) and (name.startswith("providers") or name == "timeouts"):
            yield from _list_values(value, f"{name}.")
        elif not is_harmless(name.replace("-", "_"), value):
            yield escape_controls(name), value
