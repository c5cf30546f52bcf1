"""`asides keys`: stores API keys in a file that only its owner may read, lists where keys come from, removes them.

No command prints a key, and none takes one as an argument: others can read command lines.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.private_files import hold_lock, write_private_file
from asides.cli.render import format_columns, print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.gateway_keys import VARIABLE, check_keys
from asides.providers.credentials import name_cloud, read_key
from asides.providers.find import find_provider, list_providers
from asides.providers.key_file import (
    GATEWAY_ENTRY,
    KeyFile,
    choose_stored_key,
    find_key_file,
    locate_key,
    read_key_file,
)
from asides.providers.provider import Provider
from asides.settings_files import find_config_folder
from asides.values.errors import ConfigError, UnknownProvider, redact_keys
from asides.values.notices import escape_controls

_MOST_CHARACTERS = 32 * 1024
_LONGEST_NAME = 64
_NAME = r"[\w.-]+"
# The first half of a pair: useless alone.
_ACCESS_KEY_ID = r"A[A-Z]{3}[A-Z0-9]{12,28}"


# What clients of our own gateway have to send.
_GATEWAY = Provider(name=GATEWAY_ENTRY, title="your gateway", key_env=(VARIABLE,))


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Carry out one of the actions."""
    path = find_key_file(os.environ)
    match arguments.action:
        case "path":
            _refuse_words(arguments)
            print_lines(terminal, [str(path)])
        case "set":
            _set(arguments, path, terminal)
        case "remove":
            _remove(arguments, path, terminal)
        case _:
            _refuse_words(arguments)
            _list(arguments, path, terminal)
    return Exit.DONE


def read_stored_keys(terminal: Terminal) -> dict[str, str]:
    """The keys of the key file, for commands that show where keys come from. Prints a note if it cannot be read."""
    try:
        return read_key_file(find_key_file(os.environ)).keys
    except ConfigError as problem:
        if find_config_folder(os.environ) is not None:
            terminal.print_note(f"warning: {problem}")
        return {}


def _refuse_words(arguments: Namespace) -> None:
    if arguments.name is not None:
        raise ConfigError(f"`asides keys {arguments.action or 'list'}` takes no more arguments.")


# --- set --------------------------------------------------------------------------------------------------------------


def _set(arguments: Namespace, path: Path, terminal: Terminal) -> None:
    if arguments.name is None:
        raise ConfigError("whose key? Write `asides keys set PROVIDER`; `asides providers` lists the names.")
    _refuse_key_as_argument(arguments)
    rows = read_settings(terminal).providers
    row = _find_row(arguments.name, rows, any_name=arguments.any_name)
    if row.quirks.auth == "nothing" or row.launcher:
        raise ConfigError(f"{row.name} takes no key.")
    # Whatever is wrong with the file, it is better known before a key is typed.
    read_key_file(path)
    key = _read_input(row)
    if row is _GATEWAY:
        check_keys((key,))

    def store(keys: dict[str, str]) -> None:
        keys[row.name] = key

    _change(path, store)
    terminal.print_info(f"stored the key for {row.name} ({len(key)} characters) in {path}.")
    if (origin := locate_key(row)) not in (None, "key file"):
        terminal.print_info(f"note: {origin} is set, and the environment wins over the file.")


def _refuse_key_as_argument(arguments: Namespace) -> None:
    """Refuse anything that may be a key, and show nothing of it."""
    name: str = arguments.name
    looks_like_key = redact_keys(name) != name or len(name) > _LONGEST_NAME or not re.fullmatch(_NAME, name)
    if not arguments.words and not looks_like_key:
        return
    raise ConfigError(
        "a key does not belong on the command line: other users can read it there, and the shell keeps it in its "
        "history. Write `asides keys set PROVIDER`, and paste the key when asked, or pipe it in; if the key you "
        "wrote is real, make a new one."
    )


def _find_row(name: str, rows: Sequence[Provider], *, any_name: bool) -> Provider:
    try:
        return find_provider(name, rows)
    except UnknownProvider as problem:
        if name == GATEWAY_ENTRY:
            return _GATEWAY
        if any_name:
            return Provider(name=name)
        raise UnknownProvider(f"{problem} Add --any-name if only your code defines it.") from None


def _read_input(row: Provider) -> str:
    """Read the key: typed and not shown, or piped."""
    try:
        if sys.stdin is not None and sys.stdin.isatty():
            text = _prompt(f"Key for {row.title or row.name} (not shown): ")
        else:
            text = "" if sys.stdin is None else sys.stdin.read(_MOST_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise ConfigError("the input is not text. Nothing was stored.") from None
    if not text.strip():
        raise ConfigError("no key was given, so nothing was stored.")
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"the input is longer than a key ({_MOST_CHARACTERS} characters). Nothing was stored.")
    key = read_key(text, row, "standard input").reveal()
    if name_cloud(row) == "aws" and re.fullmatch(_ACCESS_KEY_ID, key):
        raise ConfigError(
            "that is the id of a pair of keys and works only with its secret. Store the pair with `aws "
            f"configure`, which asides reads (extra asides[aws]); {row.name} takes an API key here."
        )
    return key


def _prompt(text: str) -> str:
    from getpass import GetPassWarning, getpass

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", GetPassWarning)
            return getpass(text)
    except GetPassWarning:
        raise ConfigError("this terminal would show the key. Pipe it into `asides keys set`.") from None
    except EOFError:
        return ""


def _change(path: Path, change: Callable[[dict[str, str]], None]) -> None:
    what = f"the key file {path}"
    with hold_lock(path, what):
        keys = dict(read_key_file(path).keys)
        change(keys)
        content = msgspec.json.format(msgspec.json.encode(KeyFile(dict(sorted(keys.items())))), indent=2)
        write_private_file(path, content + b"\n", what)


# --- remove and list --------------------------------------------------------------------------------------------------


def _remove(arguments: Namespace, path: Path, terminal: Terminal) -> None:
    if arguments.name is None or arguments.words:
        raise ConfigError("which key? Write `asides keys remove PROVIDER`; `asides keys list` lists them.")
    name: str = arguments.name
    if name not in read_key_file(path).keys:
        name = find_provider(name, read_settings(terminal).providers).name

    def remove(keys: dict[str, str]) -> None:
        if keys.pop(name, None) is None:
            stored = ", ".join(map(escape_controls, keys)) or "none"
            raise ConfigError(f"no key is stored for {name}. Stored are: {stored}.")

    _change(path, remove)
    terminal.print_info(f"removed the key for {name} from {path}.")
    if (origin := locate_key(_find_row(name, (), any_name=True))) is not None:
        terminal.print_info(f"note: a key is still set elsewhere: {origin}.")


def _list(arguments: Namespace, path: Path, terminal: Terminal) -> None:
    keys = read_key_file(path).keys
    rows = [*list_providers(read_settings(terminal).providers), _GATEWAY]
    found = [_describe(row, keys) for row in rows]
    listed = [entry for entry in found if entry is not None]
    named = {entry["entry"] for entry in listed}
    listed += [
        {"provider": name, "source": "key file", "characters": len(key), "entry": name, "unknown": True}
        for name, key in keys.items()
        if name not in named
    ]
    if arguments.json:
        print_json(terminal, {"path": str(path), "keys": listed})
        return
    if not listed:
        terminal.print_info("no key is set. Run `asides keys set PROVIDER`, or set the provider's variable.")
        return
    table = [(escape_controls(entry["provider"]), _format_source(entry), _format_length(entry)) for entry in listed]
    print_lines(terminal, format_columns([("PROVIDER", "KEY FROM", "KEY"), *table]))


def _describe(row: Provider, keys: dict[str, str]) -> dict[str, Any] | None:
    source = locate_key(row, keys=keys)
    if source is None:
        return None
    entry, key = choose_stored_key(row, keys)
    length: int | None = len(key) if source == "key file" else len(os.environ.get(source, "").strip()) or None
    return {"provider": row.name, "source": source, "characters": length, "entry": entry or None, "unknown": False}


def _format_source(entry: dict[str, Any]) -> str:
    source: str = entry["source"]
    if entry["unknown"]:
        return f"{source} (no row has this name here)"
    if source != "key file":
        return f"{source} (wins over the key file)" if entry["entry"] else source
    return source if entry["entry"] == entry["provider"] else f"{source}, as {escape_controls(entry['entry'])}"


def _format_length(entry: dict[str, Any]) -> str:
    return "found" if entry["characters"] is None else f"set, {entry['characters']} characters"
