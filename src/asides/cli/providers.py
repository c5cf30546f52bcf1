"""`asides providers`: the table of providers, or one of them in full. Prints whether a key is set, never a key.

Not here: the facts themselves (providers/table).
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.keys import read_stored_keys
from asides.cli.models import format_rules
from asides.cli.render import format_cell, format_columns, indent_lines, print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.providers.find import find_provider, list_providers
from asides.providers.key_file import locate_key
from asides.providers.provider import Provider

_CREDENTIALS_IN_URL = re.compile(r"//[^/@\s]*@")


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print a table of all providers, or everything about one."""
    rows = read_settings(terminal).providers
    keys = read_stored_keys(terminal)
    if arguments.name is not None:
        row = find_provider(arguments.name, rows)
        if arguments.json:
            print_json(terminal, _encode(row, keys))
        else:
            print_lines(terminal, _format_provider(row, keys))
        return Exit.DONE
    every = list_providers(rows)
    if arguments.json:
        print_json(terminal, [_encode(row, keys) for row in every])
        return Exit.DONE
    lines = [(row.name, _format_key(row, keys), _format_address(row), _format_facts(row)) for row in every]
    print_lines(terminal, format_columns([("PROVIDER", "KEY", "ADDRESS", "FACTS"), *lines]))
    terminal.print_note("`asides providers NAME` shows one in full.")
    return Exit.DONE


def _format_key(row: Provider, keys: Mapping[str, str]) -> str:
    source = locate_key(row, keys=keys)
    if source is not None:
        return f"{source} (set)"
    if row.quirks.auth == "nothing" or not row.key_env:
        return "none needed" if row.key == "optional" or row.quirks.auth == "nothing" else "--api-key"
    return f"{row.key_env[0]} (optional)" if row.key == "optional" else row.key_env[0]


def _format_address(row: Provider) -> str:
    return _hide_credentials(row.base_url) or "--base-url"


def _hide_credentials(url: str) -> str:
    address, mark, _ = url.partition("?")
    return _CREDENTIALS_IN_URL.sub("//***@", address) + ("?***" if mark else "")


def _format_facts(row: Provider) -> str:
    return " ".join(fact for fact in (row.tier, row.since) if fact)


def _format_provider(row: Provider, keys: Mapping[str, str]) -> list[str]:
    fields = [
        ("provider", f"{row.name}{f' ({row.title})' if row.title else ''}"),
        ("also called", ", ".join(row.aliases)),
        ("dialect", row.dialect),
        ("address", _format_address(row)),
        ("address from", ", ".join(row.base_url_env)),
        ("key", _format_key(row, keys)),
        ("key from", ", ".join(row.key_env)),
        ("facts", _format_facts(row)),
        ("docs", row.docs),
        *((f"quirk {name}", value) for name, value in _list_quirks(row).items()),
    ]
    lines = format_columns([(f"{name}:", value) for name, value in fields if value])
    if row.models:
        sources = dict.fromkeys((rule.since, rule.source) for rule in row.models if rule.source)
        lines += ["", "rules for models (the first match counts):", *indent_lines(format_rules(row.models))]
        lines += ["", "sources of these rules:", *indent_lines(format_columns(list(sources)))]
    if row.replay:
        replay = [(rule.models, rule.when, rule.since, rule.source) for rule in row.replay]
        lines += ["", "earlier thinking that is sent back:", *indent_lines(format_columns(replay))]
    return lines


def _list_quirks(row: Provider) -> dict[str, str]:
    """The quirks that differ from the default."""
    default = msgspec.to_builtins(type(row.quirks)())
    quirks = msgspec.to_builtins(row.quirks)
    return {name: format_cell(value) for name, value in quirks.items() if value != default[name]}


def _encode(row: Provider, keys: Mapping[str, str]) -> dict[str, Any]:
    """The row as JSON fields, without values that may be secrets of the user."""
    fields: dict[str, Any] = msgspec.to_builtins(row)
    fields["base_url"] = _hide_credentials(row.base_url)
    if row.tier == "yours":
        fields["headers"] = [[name, "***"] for name, _ in row.headers]
        fields["query"] = [[name, value if value.startswith("$") else "***"] for name, value in row.query]
    fields["key_set_by"] = locate_key(row, keys=keys)
    return fields
