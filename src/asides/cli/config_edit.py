"""`asides config get`, `set` and `unset`: one setting, read from all sources, or written to the user's own file.

A value is checked as the settings check it before anything is written.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import msgspec

from asides.cli.edit_toml import parse_name, set_value, unset_value
from asides.cli.private_files import hold_lock, write_private_file
from asides.cli.render import print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.providers.find import find_target
from asides.settings import GROUPS, SETTINGS, Settings, load_settings
from asides.settings_files import FILE_NAME, FILE_VARIABLE, MCP_TABLES, find_config_folder, parse, read_regular_file
from asides.values.errors import ConfigError, UnknownModel, UnknownProvider, redact_keys
from asides.values.mask_url import show_value
from asides.values.notices import escape_controls

_BOOL_WORDS = {"yes": True, "on": True, "no": False, "off": False}


def find_user_file() -> Path:
    """The settings file that `set` writes: the one that ASIDES_CONFIG names, else that of the configuration folder."""
    if named := os.environ.get(FILE_VARIABLE, "").strip():
        return Path(named)
    folder = find_config_folder(os.environ)
    if folder is None:
        raise ConfigError("there is no home folder for settings. Set HOME or XDG_CONFIG_HOME.")
    return folder / FILE_NAME


# --- get --------------------------------------------------------------------------------------------------------------


def get_setting(name: str, terminal: Terminal, *, as_json: bool) -> None:
    """Print the value that holds: text as it is, anything else as JSON, nothing for what is unset."""
    settings = read_settings(terminal)
    known = _normalise(name)
    value, origin = _look_up(settings, known)
    plain = msgspec.to_builtins(value)
    if as_json:
        print_json(terminal, {"name": known, "value": plain, "origin": origin})
    elif isinstance(plain, str):
        print_lines(terminal, [escape_controls(plain) if terminal.out_is_terminal else plain])
    else:
        print_lines(terminal, ["" if plain is None else msgspec.json.encode(plain).decode()])


def _look_up(settings: Settings, name: str) -> tuple[Any, str]:
    if name in SETTINGS:
        return next((value, origin) for each, value, origin in settings.entries() if each == name)
    first, *rest = parse_name(name)
    if first == "providers":
        raise ConfigError("rows may hold secrets, so they are not printed here. Run `asides providers NAME`.")
    if first == MCP_TABLES:
        raise ConfigError("MCP servers may hold secrets, so they are not printed. Look into the settings file.")
    group: Any = msgspec.to_builtins(getattr(settings, first)) if first in settings.__struct_fields__ else None
    if first in GROUPS and isinstance(group, dict):
        group = {key: show_value(value) for key, value in group.items()}
    for part in rest:
        group = group.get(part) if isinstance(group, dict) else None
    if group is None:
        settings.origin(name)  # Raises the error that names the settings.
    return group, "several" if first in GROUPS else "file"


def _normalise(name: str) -> str:
    return changed if (changed := name.replace("-", "_")) in SETTINGS else name


# --- set and unset ----------------------------------------------------------------------------------------------------


def set_setting(name: str, text: str, terminal: Terminal) -> None:
    """Write a value to the user's file."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"the value of {name} is not valid text. Nothing was changed.") from None
    path = find_user_file()
    with _hold_lock(path):
        before = _read(path)
        place = _find_spelling(before, _normalise(name))
        problems: list[ConfigError] = []
        for value in _list_readings(text):
            after = set_value(before, place, value)
            try:
                _check(after, path, _normalise(name))
            except ConfigError as problem:
                problems.append(problem)
                continue
            break
        else:
            raise problems[0]  # That of the likeliest reading.
        write_private_file(path, after.encode(), f"the settings file {path}")
    terminal.print_info(f"set {name} in {path}.")
    _mention_origin(name, path, terminal)


def unset_setting(name: str, terminal: Terminal) -> None:
    """Remove a value from the user's file."""
    path = find_user_file()
    with _hold_lock(path):
        before = _read(path)
        try:
            after = unset_value(before, _find_spelling(before, _normalise(name)))
        except ConfigError as problem:
            raise ConfigError(f"{path}: {problem}") from None
        # A row may build on another value, and the rest must still be valid.
        _check(after, path, "")
        write_private_file(path, after.encode(), f"the settings file {path}")
    terminal.print_info(f"removed {name} from {path}.")
    _mention_origin(name, path, terminal)


def _hold_lock(path: Path) -> AbstractContextManager[None]:
    """The lock of all settings files. It is in the configuration folder: a file that is named may be in any folder."""
    folder = find_config_folder(os.environ)
    return nullcontext() if folder is None else hold_lock(folder / FILE_NAME, f"the settings file {path}")


def _read(path: Path) -> str:
    try:
        content, _ = read_regular_file(path)
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise ConfigError(f"the settings file {path} cannot be read: {problem.strerror or problem}.") from None
    parse(path, content)
    return content.decode()


def _find_spelling(text: str, name: str) -> tuple[str, ...]:
    """The path of a setting as the file spells it: `-` and `_` are the same in the names of settings."""
    path = parse_name(name)
    if name not in SETTINGS:
        return path
    document: Any = parse(Path(FILE_NAME), text.encode())
    found_path: list[str] = []
    for part in path:
        keys = document if isinstance(document, dict) else {}
        found_path.append(next((key for key in keys if key.replace("-", "_") == part), part))
        document = keys.get(found_path[-1])
    return tuple(found_path)


def _list_readings(text: str) -> Iterator[Any]:
    """What a text on the command line may mean, the likeliest first: a value of TOML, a text, a switch, a list."""
    import tomllib

    if "\n" not in text and "\r" not in text:
        with suppress(ValueError):
            # In a list, so that nothing is taken for a comment.
            values = tomllib.loads(f"values = [{text}]")["values"]
            if len(values) == 1:
                yield values[0]
    yield text
    if text.strip().lower() in _BOOL_WORDS:
        yield _BOOL_WORDS[text.strip().lower()]
    if text.strip():
        yield [part.strip() for part in text.split(",") if part.strip()]


def _check(text: str, path: Path, name: str) -> None:
    """Raise the error that the settings would raise for this text."""
    with tempfile.TemporaryDirectory(prefix="asides-") as folder:
        file = Path(folder) / FILE_NAME
        file.write_text(text, encoding="utf-8", newline="")
        try:
            settings = load_settings({}, files=[file])
        except ConfigError as problem:
            message = re.sub(rf"(?:file )?{re.escape(str(file))}: ", "", str(problem)).replace(str(file), str(path))
            raise ConfigError(redact_keys(message)) from None
    if name == "model" and settings.model is not None and settings.model not in getattr(settings, "aliases", {}):
        try:
            find_target(settings.model, rows=settings.providers, environ=os.environ)
        except (UnknownProvider, UnknownModel) as problem:
            raise ConfigError(f"model is not valid: {problem}") from None
        except ConfigError:
            pass  # The address needs a variable, which may be set later.


def _mention_origin(name: str, path: Path, terminal: Terminal) -> None:
    """Say so if the value that holds comes from elsewhere."""
    known = _normalise(name)
    if known not in SETTINGS:
        return
    origin = read_settings(terminal).origin(known)
    if origin not in ("default", f"file {path}"):
        terminal.print_info(f"note: {known} comes from {origin}, which wins.")
