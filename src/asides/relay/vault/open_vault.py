"""Set up the state of a relay: `open_vault(mode)` gives its store and its keys.

The master key is the one that is given, else that of the variable ASIDES_RELAY_KEY, else that of a file beside the
SQLite file, which is made once, else a random one, which ends with the process. A vault in PostgreSQL needs one that is
given or in the variable, since many machines read it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from asides.database import StoreError
from asides.database.postgres_url import is_postgres_url
from asides.providers.key_file import check_privacy
from asides.relay.state.relay_keys import KEY_VARIABLE, MASTER_BYTES, RelayKeys, can_encrypt
from asides.relay.state.turn_state import StateMode
from asides.relay.vault import VaultLimits
from asides.settings_files import read_regular_file
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from asides.database import Database
    from asides.relay.vault.memory_vault import MemoryVault
    from asides.relay.vault.postgres_vault import PostgresVault
    from asides.relay.vault.sqlite_vault import SqliteVault


class OpenedVault:
    """The state of a relay: its mode, its keys, and its store if it has one."""

    def __init__(
        self, mode: StateMode, keys: RelayKeys, store: MemoryVault | SqliteVault | PostgresVault | None
    ) -> None:
        self.mode: StateMode = mode
        self.keys = keys
        self.store = store

    def close(self) -> None:
        """Release the store."""
        if self.store is not None:
            self.store.close()

    async def close_async(self) -> None:
        """Async version of `close`."""
        if self.store is not None:
            await self.store.close_async()

    def __repr__(self) -> str:
        return f"OpenedVault({self.mode!r}, {self.store!r})"


def open_vault(
    mode: StateMode = "memory",
    path: str | os.PathLike[str] | None = None,
    *,
    key: str | bytes | RelayKeys | None = None,
    limits: VaultLimits | None = None,
    environ: Mapping[str, str] | None = None,
) -> OpenedVault:
    """Open the vault of a relay. `path` is the SQLite file of the mode "store", or the URL of a PostgreSQL database,
    as postgresql://user@host/name, whose tables are created when they are first needed. Raises ConfigError."""
    if mode not in get_args(StateMode):
        raise ConfigError(f"{mode!r} is not a mode for reasoning state. Use {', '.join(get_args(StateMode))}.")
    if mode != "store":
        if path is not None:
            raise ConfigError(f"the mode {mode!r} has no file. Use the mode 'store', or leave the path out.")
        from asides.relay.vault.memory_vault import MemoryVault

        store = MemoryVault(limits) if mode == "memory" else None
        return OpenedVault(mode, find_keys(key, environ), store)
    if path is None:
        raise ConfigError("the mode 'store' needs the path of a file. Name one.")
    if is_postgres_url(path):
        from asides.database.migrate import MigratedPostgres

        return open_shared_vault(MigratedPostgres(str(path)), key=key, limits=limits, environ=environ)
    _check_encryption()
    from asides.relay.vault.sqlite_vault import SqliteVault

    return OpenedVault(mode, find_keys(key, environ, beside=Path(path)), SqliteVault(path, limits))


def open_shared_vault(
    database: Database,
    *,
    key: str | bytes | RelayKeys | None = None,
    limits: VaultLimits | None = None,
    environ: Mapping[str, str] | None = None,
    owns: bool = True,
) -> OpenedVault:
    """Open the vault in a database that other machines share. `owns`: whether closing the vault closes it too."""
    _check_encryption()
    if key is None and not (os.environ if environ is None else environ).get(KEY_VARIABLE, "").strip():
        raise ConfigError(
            "the vault in PostgreSQL is read by every process that uses it, so all of them need one master key. "
            f'Make one with `python -c "import secrets; print(secrets.token_hex({MASTER_BYTES}))"`, and set it as '
            f"{KEY_VARIABLE} for each of them."
        )
    from asides.relay.vault.postgres_vault import PostgresVault

    return OpenedVault("store", find_keys(key, environ), PostgresVault(database, limits, owns=owns))


def _check_encryption() -> None:
    if not can_encrypt():
        raise ConfigError(
            "the mode 'store' encrypts what it stores, with the package cryptography. Run pip install 'asides[relay]'."
        )


# --- the master key ---------------------------------------------------------------------------------------------------


def find_keys(
    key: str | bytes | RelayKeys | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    beside: Path | None = None,
) -> RelayKeys:
    """Find the master keys. `beside` is the SQLite file whose neighbour holds them."""
    if isinstance(key, RelayKeys):
        return key
    if isinstance(key, bytes):
        return RelayKeys((key,))
    given = key if key is not None else (os.environ if environ is None else environ).get(KEY_VARIABLE, "")
    if given.strip():
        return RelayKeys.parse(given)
    if key is not None:
        raise ConfigError("the master key of the relay is blank. Unset it to create one.")
    return RelayKeys.generate() if beside is None else _read_or_make(name_key_file(beside))


def name_key_file(beside: Path) -> Path:
    """The file of the master key of a vault in this SQLite file."""
    place = Path(os.path.realpath(beside.expanduser()))
    return place.with_name(f"{place.name}.key")


def _read_or_make(path: Path) -> RelayKeys:
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    except OSError as problem:
        raise _build_error(path, "read", problem) from None
    try:
        _make(path)
        return _read(path)
    except OSError as problem:
        raise _build_error(path, "written", problem) from None


def _read(path: Path) -> RelayKeys:
    content, status = read_regular_file(path)
    check_privacy(path, status)
    text = content.decode("ascii", "replace")
    if not text.strip():
        raise StoreError(f"the file {path} contains no key. Put the key back, or delete the file and the vault.")
    return RelayKeys.parse(text)


def _make(path: Path) -> None:
    """Make the file, whole or not at all. Of two processes that try, the first one's stays."""
    if not path.parent.is_dir():
        raise StoreError(f"the folder of {path} does not exist. Create it, or name another place.")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(MASTER_BYTES).hex().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not path.exists():
                temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def _build_error(path: Path, what: str, problem: OSError) -> StoreError:
    return StoreError(
        f"the key of the vault, {path}, cannot be {what}: {problem.strerror or problem}. Check its owner and "
        f"its mode, or set {KEY_VARIABLE}."
    )
