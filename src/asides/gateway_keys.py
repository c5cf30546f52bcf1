"""The keys of a gateway: where they come from, and which are too weak. No error shows one.

In order: the file that an argument names, ASIDES_GATEWAY_KEY, the file and the variable that the settings name, and the
entry `gateway` of the key file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from asides.providers.key_file import GATEWAY_ENTRY, check_privacy, find_key_file, read_key_file
from asides.settings import Settings
from asides.settings_files import find_config_folder, read_regular_file
from asides.values.errors import ConfigError

VARIABLE = "ASIDES_GATEWAY_KEY"
_LEAST_CHARACTERS = 16
_MAX_CHARACTERS = 4096
_MAX_KEYS = 10_000
_SEPARATORS = re.compile(r"[,\r\n]+")
HOW_TO_MAKE = "Make one with python -c \"import secrets; print('sk-asides-' + secrets.token_urlsafe(24))\""


def find_gateway_keys(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Find the keys; () if there are none. Raises a ConfigError for a source that is named and has none."""
    table = settings.gateway
    if table.key_file is not None and settings.origin("gateway.key_file") == "argument":
        return _read_file(table.key_file)
    if environ.get(VARIABLE, "").strip():
        return _split(environ[VARIABLE], VARIABLE)
    keys: tuple[str, ...] = ()
    if table.key_file is not None:
        keys = _read_file(table.key_file)
    if table.key_env is not None:
        keys += _split(environ.get(table.key_env, ""), f"{table.key_env}, which gateway.key_env names,")
    if not keys and find_config_folder(environ) is not None:
        stored = read_key_file(find_key_file(environ)).keys.get(GATEWAY_ENTRY, "")
        keys = _split(stored, f"the entry {GATEWAY_ENTRY} of the key file") if stored else ()
    return tuple(dict.fromkeys(keys))


def list_key_files(settings: Settings, environ: Mapping[str, str]) -> list[Path]:
    """The files that may hold keys: those of the gateway, and those of providers."""
    files = [] if settings.gateway.key_file is None else [Path(settings.gateway.key_file).expanduser()]
    return files if find_config_folder(environ) is None else [*files, find_key_file(environ)]


def check_keys(keys: tuple[str, ...]) -> None:
    """Raise a ConfigError for a key that can be guessed, or that no header can carry."""
    if len(keys) > _MAX_KEYS:
        raise ConfigError(f"{len(keys)} keys are more than the {_MAX_KEYS} that a gateway takes. Remove some.")
    for number, key in enumerate(keys, 1):
        which = "the key of the gateway" if len(keys) == 1 else f"key {number} of the gateway's {len(keys)}"
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ConfigError(f"{which} has blanks, or characters that no header carries. {HOW_TO_MAKE}.")
        if len(key) < _LEAST_CHARACTERS or len(set(key)) == 1:
            raise ConfigError(
                f"{which} is easy to guess: it has fewer than {_LEAST_CHARACTERS} characters, or only one kind of "
                f"them. {HOW_TO_MAKE}."
            )
        if len(key) > _MAX_CHARACTERS:
            raise ConfigError(
                f"{which} has more than {_MAX_CHARACTERS} characters, which is too long for a key. {HOW_TO_MAKE}."
            )


def _read_file(name: str) -> tuple[str, ...]:
    path = Path(name).expanduser()
    try:
        content, status = read_regular_file(path)
    except OSError as problem:
        raise ConfigError(
            f"the key file of the gateway, {path}, cannot be read: {problem.strerror or problem}. Check the "
            "path, its owner and its mode."
        ) from None
    check_privacy(path, status)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(
            f"the key file of the gateway, {path}, is not UTF-8 text. Write one key on each line."
        ) from None
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return _split("\n".join(lines), f"the key file of the gateway, {path},")


def _split(text: str, what: str) -> tuple[str, ...]:
    """The keys of a text: one in each line, or separated by commas."""
    keys = tuple(dict.fromkeys(part.strip() for part in _SEPARATORS.split(text) if part.strip()))
    if not keys:
        # A configured but empty key source is an error: it never means that no key is needed.
        raise ConfigError(f"{what} holds no key. {HOW_TO_MAKE}, and put it there.")
    return keys
