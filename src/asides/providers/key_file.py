"""The key file: `keys.json` in the user's configuration folder, one key for each provider. Read-only here.

Only its owner may read or write the file; otherwise it is refused, as by ssh. Errors never show its content.
`locate_key` says where the key of a provider comes from.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from asides.providers.credentials import AWS_PAIR, KEY_FILE, name_cloud
from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.settings_files import find_config_folder, is_open_to_others, read_regular_file
from asides.values.errors import ConfigError, UnknownProvider

GATEWAY_ENTRY = "gateway"
"""The name of the key that clients of our own gateway have to send."""


class KeyFile(msgspec.Struct, frozen=True):
    """What the file holds: keys by the names of their rows."""

    keys: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"KeyFile(<{len(self.keys)} keys>)"


def find_key_file(environ: Mapping[str, str]) -> Path:
    """The path of the key file, which need not exist. Raises a ConfigError without a home."""
    folder = find_config_folder(environ)
    if folder is None:
        raise ConfigError("there is no home folder for the key file. Set HOME or XDG_CONFIG_HOME.")
    return folder / KEY_FILE


def read_key_file(path: str | os.PathLike[str]) -> KeyFile:
    """Read the key file; an empty one if there is none. Raises a ConfigError if it is broken, or not private."""
    place = Path(path)
    try:
        content, status = read_regular_file(place)
        folder = Path(os.path.realpath(place)).parent
        is_open_folder = is_open_to_others(folder.stat())
    except (FileNotFoundError, NotADirectoryError):
        return KeyFile()
    except OSError as problem:
        raise ConfigError(
            f"the key file {place} cannot be read: {problem.strerror or problem}. Check its owner and its mode."
        ) from None
    check_privacy(place, status)
    if is_open_folder:
        raise ConfigError(f"others may replace the key file {place}, so it is not read. Run chmod o-w {folder}")
    if not content.strip():
        return KeyFile()
    try:
        return msgspec.json.decode(content, type=KeyFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # The parser's message may quote the content.
        raise ConfigError(
            f'the key file {place} is not valid: it must be JSON such as {{"keys": {{"PROVIDER": "KEY"}}}}. Correct '
            "it, or delete it and store the keys again with `asides keys set`."
        ) from None


def check_privacy(path: Path, status: os.stat_result) -> None:
    """Raise a ConfigError if others may read or write the file, or if it belongs to another user. Not checked on
    Windows, where a user's folder is private.
    """
    if os.name != "posix":
        return
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"others may read or write the key file {path}, so it is not read. Run chmod 600 {path}")
    user = os.geteuid()
    # The administrator can read everything anyway, so their files are as safe as the machine.
    if user and status.st_uid not in (user, 0):
        raise ConfigError(f"the key file {path} belongs to another user, so it is not read. Run chown it.")


def find_stored_key(provider: Provider, path: str | os.PathLike[str]) -> str:
    """The key of a provider in the key file; "" if it has none there."""
    return choose_stored_key(provider, read_key_file(path).keys)[1]


def choose_stored_key(provider: Provider, keys: Mapping[str, str]) -> tuple[str, str]:
    """The entry for a provider and its key; twice "" if there is none.

    Rows of ours that read the same variable are one account, and share a key. The user's own rows have only their own.
    """
    own = keys.get(provider.name, "").strip()
    if own:
        return provider.name, own
    ours = _find_ours(provider.name)
    for name, key in keys.items():
        row = _find_ours(name) if key.strip() else None
        if row is None or name == provider.name:
            continue
        is_shared = provider.tier != "yours" and ours is not None and ours.key_env == provider.key_env
        if row is ours or (is_shared and not set(row.key_env).isdisjoint(provider.key_env)):
            return name, key.strip()
    return "", ""


def _find_ours(name: str) -> Provider | None:
    try:
        return find_provider(name)
    except UnknownProvider:
        return None


def locate_key(
    provider: Provider,
    environ: Mapping[str, str] | None = None,
    *,
    keys: Mapping[str, str] | None = None,
    clouds: bool = True,
) -> str | None:
    """Where the key of a provider comes from: the name of a variable, "key file", or such as "aws credentials".

    None if there is none, or if the provider takes none. `keys` are those of the key file, for callers that have read
    it; else it is read, and one that cannot be read raises a ConfigError. No cloud is asked: whether its credentials
    are good is known with the first request. `clouds`: whether they count.
    """
    if provider.quirks.auth == "nothing":
        return None
    environ = os.environ if environ is None else environ
    for name in provider.key_env:
        if environ.get(name, "").strip():
            return name
    if provider.signing == "aws" and all(environ.get(name, "").strip() for name in AWS_PAIR):
        return AWS_PAIR[0]
    if keys is None:
        folder = find_config_folder(environ)
        keys = {} if folder is None else read_key_file(folder / KEY_FILE).keys
    if choose_stored_key(provider, keys)[1]:
        return "key file"
    cloud = name_cloud(provider)
    if clouds and cloud != "nothing":
        from asides.providers.cloud_hints import has_cloud_hint

        if has_cloud_hint(cloud, environ):
            return f"{cloud} credentials"
    return None
