"""`asides config`: every setting, its value and its origin. Prints which API keys are set, never a key."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.providers import find_key_variable
from asides.cli.render import format_cell, format_columns, indent_lines, print_json, print_lines
from asides.cli.terminal import Terminal
from asides.providers.find import list_providers
from asides.settings import load_settings


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the settings on stdout."""
    settings = load_settings()
    keys = {
        row.name: variable
        for row in list_providers(settings.providers)
        if (variable := find_key_variable(row)) is not None
    }
    own = [row.name for row in settings.providers]
    if arguments.json:
        values = {
            name: {"value": msgspec.to_builtins(value), "origin": origin} for name, value, origin in settings.entries()
        }
        print_json(terminal, {"settings": values, "files": settings.files, "providers": own, "keys": keys})
        return Exit.DONE
    table = [(name, format_cell(value), origin) for name, value, origin in settings.entries()]
    lines = [*format_columns([("SETTING", "VALUE", "FROM"), *table]), ""]
    lines += [f"files read: {', '.join(settings.files) or 'none'}"]
    if own:
        lines += [f"your providers: {', '.join(own)}"]
    lines += ["keys set:" if keys else "keys set: none"]
    lines += indent_lines(format_columns(list(keys.items())))
    print_lines(terminal, lines)
    return Exit.DONE
