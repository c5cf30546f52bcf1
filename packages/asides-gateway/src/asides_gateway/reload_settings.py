"""Reload the settings of a running gateway: `Reloader.run()` looks at their files, and uses what has changed.

An unreadable file changes nothing, and is logged once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from asides.settings import Settings
from asides.values.errors import ConfigError, redact_keys
from asides.values.notices import escape_controls
from asides_gateway.gateway_settings import GatewaySettings, merge_changes
from asides_gateway.service import Service

_log = logging.getLogger("asides.gateway")
# Poll interval.
_SECONDS = 0.5
# A file that is still being written changes again within this time.
_SETTLE_SECONDS = 0.1
_MOST_LOOKS = 50


class LoadedSettings(NamedTuple):
    """All settings of a gateway."""

    gateway: GatewaySettings
    calls: Settings
    """Routes, aliases, rows and defaults."""


class SettingsSource(Protocol):
    """Where settings come from."""

    def load(self) -> LoadedSettings:
        """Read them. Raises a ConfigError."""
        ...

    def list_files(self) -> Sequence[Path]:
        """The files that they come from, whether they exist or not."""
        ...


class Reloader:
    """Keeps the settings of a service current."""

    def __init__(
        self, service: Service, source: SettingsSource, *, count: Callable[[bool], None] = lambda _: None
    ) -> None:
        """`count` is called for each attempt, with its success."""
        self._service = service
        self._source = source
        self._count = count
        self._asked = asyncio.Event()
        self._seen = self._look()

    def ask(self) -> None:
        """Reload now, whether a file has changed or not."""
        self._asked.set()

    async def run(self) -> None:
        """Look at the files until the task is cancelled."""
        while True:
            try:
                async with asyncio.timeout(_SECONDS):
                    await self._asked.wait()
            except TimeoutError:
                if self._look() == self._seen:
                    continue
            self._asked.clear()
            await self._settle()
            self.reload()

    def reload(self) -> bool:
        """Read the settings and use them. Returns whether they could be used; if not, the old ones stay."""
        try:
            loaded = self._source.load()
            gateway, fixed = merge_changes(self._service.settings, loaded.gateway)
        except Exception as problem:  # noqa: BLE001 - whatever is in a file, the gateway keeps running
            # Errors other than ours may quote the content.
            words = str(problem) if isinstance(problem, ConfigError) else f"unexpected {type(problem).__name__}"
            _log.error("the settings were not reloaded, the old ones stay: %s", escape_controls(redact_keys(words)))
            self._count(False)
            return False
        self._service.use(loaded.calls, gateway)
        _log.info("the settings were reloaded: new requests use them")
        if fixed:
            _log.warning("these settings need a restart: %s", ", ".join(f"gateway.{name}" for name in fixed))
        self._count(True)
        return True

    async def _settle(self) -> None:
        """Wait until the files stop changing. An editor may truncate a file first, or replace it."""
        for _ in range(_MOST_LOOKS):
            self._seen = self._look()
            await asyncio.sleep(_SETTLE_SECONDS)
            if self._look() == self._seen:
                return

    def _look(self) -> list[tuple[int, int, int, int] | None]:
        return [_describe(path) for path in self._source.list_files()]


def _describe(path: Path) -> tuple[int, int, int, int] | None:
    """What changes with the content of a file; None if there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    # The change time too: a content of the same length may get its old times back.
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
