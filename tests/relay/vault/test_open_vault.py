"""Setting up the state of a relay: modes, paths, and where the master key comes from."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from asides.relay.state import relay_keys
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.vault.memory_vault import MemoryVault
from asides.relay.vault.open_vault import find_keys, open_vault
from asides.relay.vault.sqlite_vault import SqliteVault
from asides.values.errors import ConfigError

HEX = "0a" * 32


def id_of(keys: RelayKeys) -> str:
    return keys.find_tenant("a").current_id


def test_each_mode_has_the_store_that_it_needs(tmp_path: Path) -> None:
    assert open_vault("off", environ={}).store is None
    assert open_vault("carry-only", environ={}).store is None
    assert isinstance(open_vault(environ={}).store, MemoryVault)
    with_file = open_vault("store", tmp_path / "vault.db", environ={})
    assert isinstance(with_file.store, SqliteVault)
    with_file.close()
    open_vault("off", environ={}).close()


@pytest.mark.parametrize(
    ("mode", "path", "words"),
    [
        ("on", None, "not a mode"),
        ("store", None, "path"),
        ("memory", "vault.db", "no file"),
        ("off", "vault.db", "no file"),
    ],
)
def test_what_does_not_go_together_is_refused(mode: str, path: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        open_vault(mode, path, environ={})  # type: ignore[arg-type]
    assert re.search(r"\. [A-Z]", str(caught.value))


def test_the_key_that_is_given_counts_before_the_variable_and_that_before_the_file(tmp_path: Path) -> None:
    variable = {"ASIDES_RELAY_KEY": HEX}
    given = RelayKeys((b"g" * 32,))
    assert find_keys(given, variable) is given
    assert id_of(find_keys(b"g" * 32, variable)) == id_of(given)
    assert id_of(find_keys((b"g" * 32).hex(), variable)) == id_of(given)
    assert id_of(find_keys(None, variable, beside=tmp_path / "vault.db")) == id_of(RelayKeys.parse(HEX))
    assert list(tmp_path.iterdir()) == []
    assert id_of(find_keys(None, {})) != id_of(find_keys(None, {}))
    with pytest.raises(ConfigError, match="blank"):
        find_keys(" ", {})


def test_a_key_is_made_beside_the_file_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    made = find_keys(None, {}, beside=tmp_path / "vault.db")
    path = tmp_path / "vault.db.key"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert len(path.read_text().strip()) == 64
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert id_of(find_keys(None, {}, beside=tmp_path / "vault.db")) == id_of(made)
    # Rotation: the newest key on top.
    path.write_text(f"{HEX}\n{path.read_text()}")
    after = find_keys(None, {}, beside=tmp_path / "vault.db")
    assert id_of(after) == id_of(RelayKeys.parse(HEX))
    assert after.find_tenant("a").has_key(id_of(made))


def test_processes_that_begin_together_have_one_key(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from asides.relay.vault.open_vault import find_keys\n"
        "print(find_keys(None, {}, beside=Path(sys.argv[1])).find_tenant('a').current_id)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "vault.db")], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(4)
    ]
    ids = {process.communicate(timeout=60)[0] for process in started}
    assert len(ids) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["vault.db.key"]


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    find_keys(None, {}, beside=tmp_path / "vault.db")
    (tmp_path / "vault.db.key").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        find_keys(None, {}, beside=tmp_path / "vault.db")


@pytest.mark.parametrize(("content", "words"), [("", "contains no key"), ("not a key", "master key")])
def test_a_key_file_that_holds_none_is_refused_and_kept(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "vault.db.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=words):
        find_keys(None, {}, beside=tmp_path / "vault.db")
    assert path.read_text() == content


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        open_vault("store", tmp_path / "no" / "vault.db", environ={})
    (tmp_path / "vault.db.key").mkdir()
    with pytest.raises(ConfigError, match=r"vault\.db\.key"):
        open_vault("store", tmp_path / "vault.db", environ={})


def test_nothing_is_stored_in_a_file_without_encryption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    relay_keys.can_encrypt.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"asides\[relay\]"):
            open_vault("store", tmp_path / "vault.db", environ={})
        assert list(tmp_path.iterdir()) == []
    finally:
        relay_keys.can_encrypt.cache_clear()


def test_reprs_show_no_key(tmp_path: Path) -> None:
    opened = open_vault("store", tmp_path / "vault.db", key=HEX, environ={})
    assert HEX not in f"{opened!r} {opened.keys!r} {opened.store!r}"
    opened.close()
