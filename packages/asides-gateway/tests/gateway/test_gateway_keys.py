"""The keys of a gateway: where they come from, and which are refused. No error shows one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asides.gateway_keys import check_keys, find_gateway_keys, list_key_files
from asides.settings import load_settings
from asides.values.errors import ConfigError

KEYS = tuple(f"sk-gateway-{letter * 8}-0123" for letter in "abcd")


def _write(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return str(path)


def _store(folder: Path, key: str) -> dict[str, str]:
    home = folder / "home"
    (home / ".config" / "asides").mkdir(parents=True)
    _write(home / ".config" / "asides" / "keys.json", f'{{"keys": {{"gateway": "{key}"}}}}')
    return {"HOME": str(home)}


def test_the_first_source_that_has_keys_counts(tmp_path: Path) -> None:
    environ = {**_store(tmp_path, KEYS[3]), "ASIDES_GATEWAY_KEY": KEYS[1], "MY_KEY": KEYS[2]}
    file = _write(tmp_path / "keys.txt", f"# of the team\n{KEYS[0]}\n")
    by_argument = load_settings(environ, files=[], gateway={"key_file": file, "key_env": "MY_KEY"})
    assert find_gateway_keys(by_argument, environ) == (KEYS[0],)
    by_file = load_settings({"ASIDES_GATEWAY_KEY_FILE": file}, files=[], gateway={"key_env": "MY_KEY"})
    assert find_gateway_keys(by_file, environ) == (KEYS[1],)
    del environ["ASIDES_GATEWAY_KEY"]
    assert find_gateway_keys(by_file, environ) == (KEYS[0], KEYS[2])
    assert find_gateway_keys(load_settings({}, files=[]), environ) == (KEYS[3],)
    assert find_gateway_keys(load_settings({}, files=[]), {}) == ()
    assert [path.name for path in list_key_files(by_file, environ)] == ["keys.txt", "keys.json"]


def test_keys_are_separated_by_commas_or_lines() -> None:
    settings = load_settings({}, files=[])
    text = f" {KEYS[0]},{KEYS[1]}\r\n\n{KEYS[2]}\n{KEYS[0]},"
    assert find_gateway_keys(settings, {"ASIDES_GATEWAY_KEY": text}) == KEYS[:3]


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("", 0o600, "holds no key"),
        (" ,\n#only a comment\n", 0o600, "holds no key"),
        (KEYS[0], 0o644, "others may read"),
    ],
)
def test_a_file_that_is_named_must_hold_a_key_for_its_owner_alone(
    tmp_path: Path, text: str, mode: int, words: str
) -> None:
    file = _write(tmp_path / "keys.txt", text, mode)
    with pytest.raises(ConfigError, match=words) as caught:
        find_gateway_keys(load_settings({}, files=[], gateway={"key_file": file}), {})
    assert re.search(r"\. [A-Z]", str(caught.value))
    assert KEYS[0] not in str(caught.value)


def test_a_missing_file_or_variable_is_no_gateway_without_keys(tmp_path: Path) -> None:
    for table in ({"key_file": str(tmp_path / "none")}, {"key_env": "NOT_SET"}, {"key_file": str(tmp_path)}):
        with pytest.raises(ConfigError):
            find_gateway_keys(load_settings({}, files=[], gateway=table), {})


@pytest.mark.parametrize("key", ["short", "a" * 40, "sk with blanks 0123456789", "schlüssel-0123456789", "x\n" * 20])
def test_a_weak_key_is_refused_and_not_shown(key: str) -> None:
    check_keys(KEYS)
    with pytest.raises(ConfigError, match="Make one") as caught:
        check_keys((KEYS[0], key))
    assert key not in str(caught.value)
    assert "key 2 of the gateway's 2" in str(caught.value)
