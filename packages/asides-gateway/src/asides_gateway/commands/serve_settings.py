"""The settings of `asides serve`: arguments, environment, asides.toml and key files, read again when they change."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from asides.cli.private_files import make_private_folder
from asides.cli.render import PRINTED_WITH_SETTINGS, describe_notice
from asides.cli.trust import RECORD, is_trusted
from asides.gateway_keys import find_gateway_keys, list_key_files
from asides.settings import Settings, load_settings
from asides.settings_files import find_config_files, find_config_folder, find_state_folder
from asides.values.errors import ConfigError
from asides_gateway.gateway_settings import build_settings, check_settings
from asides_gateway.reload_settings import LoadedSettings

# The arguments whose settings have other names.
_NAMES = {"max_body": "max_body_mb", "ping": "ping_seconds", "drain": "drain_seconds"}
_ARGUMENTS = ("host", "port", "workers", "key_file", "folder", "state", "page", "thinking_field", *_NAMES, "log")


def collect_flags(arguments: Namespace) -> dict[str, Any]:
    """The settings that arguments give, by their names in [gateway]."""
    given = {name: getattr(arguments, name) for name in _ARGUMENTS}
    return {_NAMES.get(name, name): value for name, value in given.items() if value is not None}


class ServeSettings:
    """Where the settings of a gateway come from: see `SettingsSource`."""

    def __init__(
        self, flags: Mapping[str, Any], environ: Mapping[str, str], warn: Callable[[str], None] | None
    ) -> None:
        """`warn` gets each ignored setting once. None: it gets only later ones, once it is set."""
        self._flags = dict(flags)
        self._environ = environ
        self._warned: set[str] = set()
        self._settings: Settings | None = None
        self.warn = warn

    def load(self) -> LoadedSettings:
        """Read all settings, and check them."""
        environ = self._environ
        settings = load_settings(
            environ, trusts=lambda path, content: is_trusted(environ, path, content), gateway=self._flags
        )
        gateway = build_settings(
            settings.gateway, find_gateway_keys(settings, environ), find_folder(settings, environ), settings.store
        )
        check_settings(gateway)
        self._settings = settings
        for notice in settings.notices:
            if notice.code in PRINTED_WITH_SETTINGS and notice.detail not in self._warned:
                self._warned.add(notice.detail)
                if self.warn is not None:
                    self.warn(describe_notice(notice))
        return LoadedSettings(gateway, settings)

    def list_files(self) -> Sequence[Path]:
        """The settings files, the record of trusted ones, and the key files."""
        files = list(find_config_files(self._environ))
        if (folder := find_config_folder(self._environ)) is not None:
            files.append(folder / RECORD)
        return files if self._settings is None else [*files, *list_key_files(self._settings, self._environ)]


def find_folder(settings: Settings, environ: Mapping[str, str]) -> Path:
    """The folder for what is kept, which is created for its owner alone."""
    named = settings.gateway.folder
    folder = find_state_folder(environ) if named is None else Path(named).expanduser()
    # Workers, and a reload, must find the same one.
    folder = folder.absolute()
    try:
        make_private_folder(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError("it may not be written to")
    except OSError as problem:
        raise ConfigError(
            f"the folder {folder} cannot be used: {problem.strerror or problem}. Name another one with --folder."
        ) from None
    return folder
