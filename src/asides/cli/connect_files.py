"""Writes the settings of a gateway into the files of other programs, and takes them out again.

Everything else in a file stays as it is. The file as it was before the first change is kept beside it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from asides.cli.connect_clients import ConfigFile, FileFormat, ValuePath
from asides.cli.edit_env import parse_env, remove_variables, set_variables
from asides.cli.edit_json import look_up, parse_json, remove_values, set_values
from asides.cli.edit_toml import remove_table, set_value, unset_value
from asides.cli.private_files import hold_lock, write_private_file
from asides.settings_files import find_config_folder, read_regular_file
from asides.values.errors import ConfigError

BACKUP = ".before-asides"
_MOST_BYTES = 4 * 1024 * 1024


class Change(NamedTuple):
    """A value that a file has now."""

    path: ValuePath
    before: Any
    """None: it had none."""
    after: Any
    """None: it has none any more."""


class Written(NamedTuple):
    """What was done to a file."""

    path: Path
    changes: tuple[Change, ...]
    backup: Path | None = None
    """Where the file as it was is kept; None: there was none before."""
    is_removed: bool = False


class _Format(NamedTuple):
    parse: Callable[[str], Any]
    set: Callable[[str, dict[ValuePath, Any]], str]
    remove: Callable[[str, list[ValuePath]], str]


def write_file(file: ConfigFile) -> Written:
    """Add the values to a file. A file that says all of it already is not touched."""
    what = f"the file {file.path}"
    with _hold_lock(what):
        text = _read(file.path) or ""
        document = _parse(text, file)
        wanted = file.values | {path: value for path, value in file.defaults.items() if look_up(document, path) is None}
        changes = tuple(
            Change(path, look_up(document, path), value)
            for path, value in wanted.items()
            if look_up(document, path) != value
        )
        backup = _name_backup(file.path)
        kept = _read_backup(backup)
        absent = file.absent if kept is None else (*file.absent, *_find_named(file, document, backup))
        gone = [path for path in absent if path not in wanted and look_up(document, path) is not None]
        changes += tuple(Change(path, look_up(document, path), None) for path in gone)
        if changes:
            form = _FORMATS[file.format]
            after = _edit(file, lambda: form.remove(form.set(text, wanted), gone))
            if kept is None:
                # An empty one says that there was no file.
                write_private_file(backup, text.encode(), f"the backup {backup}")
                _copy_mode(file.path, backup)
                kept = text
            write_private_file(file.path, after.encode(), what)
        return Written(file.path, changes, backup if kept else None)


def restore_file(file: ConfigFile) -> Written:
    """Remove the values. A value that the file had before is restored; later changes by others stay."""
    what = f"the file {file.path}"
    with _hold_lock(what):
        text = _read(file.path)
        backup = _name_backup(file.path)
        kept = _read_backup(backup)
        if text is None:
            return Written(file.path, ())
        original = _parse(kept or "", file._replace(path=backup))
        document = _parse(text, file)
        owned = [path for path in file.owned if look_up(original, path) is None]
        written = dict.fromkeys((*file.values, *file.defaults, *file.absent, *_find_named(file, document, backup)))
        paths = [path for path in written if not _is_inside(path, owned)]
        before = {path: look_up(original, path) for path in paths}
        returned = {path: value for path, value in before.items() if value is not None}
        gone = [*owned, *(path for path, value in before.items() if value is None)]
        gone = [path for path in gone if look_up(document, path) is not None]
        changes = tuple(
            Change(path, look_up(document, path), before.get(path))
            for path in (*returned, *gone)
            if look_up(document, path) != before.get(path)
        )
        form = _FORMATS[file.format]
        after = _edit(file, lambda: form.remove(form.set(text, returned), gone))
        if not kept and not form.parse(after):
            _unlink(file.path)
            _unlink(backup)
            return Written(file.path, changes, is_removed=True)
        if kept and form.parse(after) == original:
            after = kept
        if after != text:
            write_private_file(file.path, after.encode(), what)
        _unlink(backup)
        return Written(file.path, changes)


def _find_named(file: ConfigFile, document: Any, backup: Path) -> tuple[ValuePath, ...]:
    """The entry of an earlier model, if the file as it was had none of this name."""
    name = None if file.named is None else look_up(document, file.named[1])
    if file.named is None or not isinstance(name, str):
        return ()
    path = (*file.named[0], name)
    original = _parse(_read(backup) or "", file._replace(path=backup))
    return (path,) if look_up(original, path) is None else ()


def _hold_lock(what: str) -> AbstractContextManager[None]:
    """One lock for all clients, in our own folder: nothing of ours is left in theirs."""
    folder = find_config_folder(os.environ)
    return nullcontext() if folder is None else hold_lock(folder / "clients", what)


def format_file(file: ConfigFile) -> str:
    """What a file would say that has nothing else in it."""
    return _FORMATS[file.format].set("", {**file.values, **file.defaults})


def _is_inside(path: ValuePath, tables: Iterable[ValuePath]) -> bool:
    return any(path[: len(table)] == table for table in tables)


def _name_backup(path: Path) -> Path:
    return path.with_name(f"{path.name}{BACKUP}")


def _read(path: Path) -> str | None:
    try:
        content, _ = read_regular_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise ConfigError(f"{path} cannot be read: {problem.strerror or problem}. Nothing was changed.") from None
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{path} has more than {_MOST_BYTES} bytes, and is not a settings file. Nothing was changed.")
    try:
        return content.decode()
    except UnicodeDecodeError as problem:
        raise ConfigError(
            f"{path} is not a text file: byte {problem.start} is not UTF-8. Nothing was changed."
        ) from None


def _read_backup(path: Path) -> str | None:
    """The file as it was before the first change; None if none is kept. It is read before anything is changed."""
    if path.is_symlink():
        # We never create links: this one would move the copy elsewhere, or pass off another file as it.
        raise ConfigError(f"{path} is a link, not a copy made by asides. Nothing was changed. Remove it.")
    return _read(path)


def _parse(text: str, file: ConfigFile) -> Any:
    try:
        document = _FORMATS[file.format].parse(text)
    except (ConfigError, ValueError, RecursionError) as problem:  # A ValueError: no TOML, or a number without an end.
        raise ConfigError(
            f"{file.path} cannot be read: {str(problem).rstrip('.')}. Nothing was changed. Repair it there."
        ) from None
    if not isinstance(document, dict):
        raise ConfigError(f"{file.path} does not contain a JSON object. Nothing was changed.")
    return document


def _edit(file: ConfigFile, edit: Callable[[], str]) -> str:
    try:
        return edit()
    except (ConfigError, ValueError, RecursionError) as problem:
        raise ConfigError(f"{file.path}: {str(problem).rstrip('.')}. Nothing was changed.") from None


def _copy_mode(source: Path, target: Path) -> None:
    with suppress(OSError):
        target.chmod(source.stat().st_mode & 0o777)


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as problem:
        raise ConfigError(f"{path} cannot be removed: {problem.strerror or problem}.") from None


# --- the formats ------------------------------------------------------------------------------------------------------


def _set_toml(text: str, values: dict[ValuePath, Any]) -> str:
    for path, value in values.items():
        if look_up(tomllib.loads(text), path) != value:
            text = set_value(text, path, value)
    return text


def _remove_toml(text: str, paths: list[ValuePath]) -> str:
    for path in paths:
        found = look_up(tomllib.loads(text), path)
        if isinstance(found, dict):
            text = remove_table(text, path)
        elif found is not None:
            text = unset_value(text, path)
            outer = path[:-1]
            if outer and look_up(tomllib.loads(text), outer) in ({}, None):
                text = remove_table(text, outer)
    return text


def _set_env(text: str, values: dict[ValuePath, Any]) -> str:
    return set_variables(text, {path[0]: value for path, value in values.items()})


def _remove_env(text: str, paths: list[ValuePath]) -> str:
    return remove_variables(text, [path[0] for path in paths])


_FORMATS: dict[FileFormat, _Format] = {
    "json": _Format(parse_json, set_values, remove_values),
    "toml": _Format(tomllib.loads, _set_toml, _remove_toml),
    "env": _Format(parse_env, _set_env, _remove_env),
}
