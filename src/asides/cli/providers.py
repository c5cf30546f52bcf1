"""`asides providers`: the table of providers, or one of them in full. Prints whether a key is set, never a key."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.keys import read_stored_keys
from asides.cli.layout import find_width, shorten, wrap_columns, wrap_field
from asides.cli.models import format_rules
from asides.cli.render import format_cell, format_columns, print_json, print_lines
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
            print_lines(terminal, _format_provider(row, locate_key(row, keys=keys), find_width(terminal)))
        return Exit.DONE
    every = list_providers(rows)
    if arguments.json:
        print_json(terminal, [_encode(row, keys) for row in every])
        return Exit.DONE
    print_lines(terminal, _format_table(every, keys, find_width(terminal)))
    terminal.print_note(
        "Keys: in the variable shown, or with `asides keys set`. `asides providers NAME` shows one in full."
    )
    return Exit.DONE


# --- the table --------------------------------------------------------------------------------------------------------

KeyState: TypeAlias = Literal["found", "not needed", "not found"]


def _judge_key(row: Provider, source: str | None) -> KeyState:
    if source is not None:
        return "found"
    return "not needed" if row.key == "optional" or row.quirks.auth == "nothing" else "not found"


def _format_table(rows: Sequence[Provider], stored: Mapping[str, str], width: int | None) -> list[str]:
    """The providers whose key is there come first. A terminal gets groups and no more than its width."""
    sources = {row.name: locate_key(row, keys=stored) for row in rows}
    groups: dict[KeyState, list[Provider]] = {state: [] for state in get_args(KeyState)}
    for row in rows:
        groups[_judge_key(row, sources[row.name])].append(row)
    if width is None:
        table = [
            (row.name, _format_key(row, sources[row.name]), _format_address(row), _format_facts(row))
            for group in groups.values()
            for row in group
        ]
        return format_columns([("PROVIDER", "KEY", "ADDRESS", "FACTS"), *table])
    cells = {row.name: (row.name, _format_source(row, sources[row.name]), _format_host(row, width)) for row in rows}
    names, keys = (max(len(cell[place]) for cell in cells.values()) for place in (0, 1))
    has_hosts = width >= _NARROW
    lines: list[str] = []
    for state, group in groups.items():
        lines += [_HEADINGS[state]] if group else []
        for row in group:
            name, key, host = cells[row.name]
            lines.append(shorten(f"  {name:<{names}}  {key:<{keys}}  {host if has_hosts else ''}".rstrip(), width))
    return lines


_HEADINGS: dict[KeyState, str] = {
    "found": "key found",
    "not needed": "no key needed",
    "not found": "no key found",
}
_WIDE = 110
_NARROW = 70


def _format_source(row: Provider, source: str | None) -> str:
    if source is None and row.quirks.auth == "nothing":
        return ""
    return source or next(iter(row.key_env), "" if row.key == "optional" else "--api-key")


def _format_host(row: Provider, width: int) -> str:
    """The address; only its host where there is little room."""
    address = _format_address(row)
    return address if width >= _WIDE else address.partition("://")[2].partition("/")[0] or address


def _format_key(row: Provider, source: str | None) -> str:
    if row.quirks.auth == "nothing" or not row.key_env:
        return "none needed" if row.key == "optional" or row.quirks.auth == "nothing" else "--api-key"
    if source is not None:
        return f"{source} (set)"
    return f"{row.key_env[0]} (optional)" if row.key == "optional" else row.key_env[0]


def _format_address(row: Provider) -> str:
    return _hide_credentials(row.base_url) or "--base-url"


def _hide_credentials(url: str) -> str:
    address, mark, _ = url.partition("?")
    return _CREDENTIALS_IN_URL.sub("//***@", address) + ("?***" if mark else "")


def _format_facts(row: Provider) -> str:
    return " ".join(fact for fact in (row.tier, row.since) if fact)


# --- one provider -----------------------------------------------------------------------------------------------------


def _format_provider(row: Provider, source: str | None, width: int | None) -> list[str]:
    fields = [
        ("provider", f"{row.name}{f' ({row.title})' if row.title else ''}"),
        ("also called", ", ".join(row.aliases)),
        ("dialect", row.dialect),
        ("address", _format_address(row)),
        ("address from", ", ".join(row.base_url_env)),
        ("key", _format_key(row, source)),
        ("key from", ", ".join(row.key_env)),
        ("facts", _format_facts(row)),
        ("docs", row.docs),
        *((f"quirk {name}", value) for name, value in _list_quirks(row).items()),
    ]
    shown = [(f"{name}:", value) for name, value in fields if value]
    column = max(len(name) for name, _ in shown) + 2
    lines = [line for name, value in shown for line in wrap_field(name, value, width, column)]
    if row.models:
        sources = dict.fromkeys((rule.since, rule.source) for rule in row.models if rule.source)
        lines += ["", "rules for models (the first match counts):", *format_rules(row.models, width, indent=2)]
        lines += ["", "sources of these rules:", *wrap_columns(list(sources), width, indent=2)]
    if row.replay:
        replay = [(rule.models, rule.when, rule.since, rule.source) for rule in row.replay]
        lines += ["", "earlier thinking that is sent back:", *wrap_columns(replay, width, indent=2)]
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
    source = locate_key(row, keys=keys)
    fields["key_set_by"] = source
    fields["key_state"] = _judge_key(row, source)
    return fields
