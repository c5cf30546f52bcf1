"""`asides keys`: a file of keys that only its owner reads, and no command that shows one."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.children import asides, at_terminal, environment, here, piped, run_process

KEY = "gsk_0123456789abcdefXYZ"


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config" / "asides" / "keys.json"


Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def test_a_piped_key_is_stored_for_its_owner_alone(path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    done = piped(capsys, monkeypatch, f"{KEY}\n", "keys", "set", "groq")
    assert (done.code, done.out) == (0, "")
    assert f"stored the key for groq ({len(KEY)} characters) in {path}" in done.err
    assert json.loads(path.read_text()) == {"keys": {"groq": KEY}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert KEY not in done.err
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(".keys.json.")] == [
        ".keys.json.lock"
    ]


def test_a_typed_key_is_not_shown(path: Path) -> None:
    with at_terminal("keys", "set", "groq", env={"XDG_CONFIG_HOME": str(path.parents[1])}) as keyboard:
        keyboard.wait_for("Key for Groq (not shown): ")
        keyboard.type(f"{KEY}\n")
        code, screen = keyboard.end(), keyboard.text
    assert code == 0
    assert KEY not in screen
    assert json.loads(path.read_text())["keys"] == {"groq": KEY}


def test_ctrl_c_at_the_prompt_stores_nothing(path: Path) -> None:
    with at_terminal("keys", "set", "groq", env={"XDG_CONFIG_HOME": str(path.parents[1])}) as keyboard:
        keyboard.wait_for("(not shown): ")
        keyboard.type("\x03")
        code = keyboard.end()
    assert code == 130
    assert not path.exists()


@pytest.mark.parametrize("end", ["\n", "\x04"])
def test_enter_or_ctrl_d_at_the_prompt_stores_nothing(path: Path, end: str) -> None:
    with at_terminal("keys", "set", "groq", env={"XDG_CONFIG_HOME": str(path.parents[1])}) as keyboard:
        keyboard.wait_for("(not shown): ")
        keyboard.type(end)
        code, screen = keyboard.end(), keyboard.text
    assert code == 2
    assert "no key was given" in screen
    assert not path.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("groq", KEY),
        ("groq", "--", KEY),
        ("groq", "--key", KEY),
        (f"groq={KEY}",),
        ("sk-ant-api03-0123456789abcdef",),
        ("a" * 65,),
        ("--any-name", f"groq {KEY}"),
    ],
)
def test_a_key_as_an_argument_is_refused_and_not_repeated(path: Path, capsys: Captured, words: tuple[str, ...]) -> None:
    done = here(capsys, "keys", "set", *words)
    assert done.code == 2
    assert "0123456789abcdef" not in done.err + done.out
    assert not path.exists()


def test_the_advice_for_a_key_as_an_argument_says_how(capsys: Captured) -> None:
    err = here(capsys, "keys", "set", "groq", KEY).err
    assert "does not belong on the command line" in err
    assert "asides keys set PROVIDER" in err


def test_names_are_checked_against_the_rows(path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    done = piped(capsys, monkeypatch, KEY, "keys", "set", "gorq")
    assert done.code == 2
    assert "Did you mean groq?" in done.err
    assert not path.exists()
    assert piped(capsys, monkeypatch, KEY, "keys", "set", "Gemini").code == 0  # an alias, in any case
    assert list(json.loads(path.read_text())["keys"]) == ["google"]
    path.parent.joinpath("asides.toml").write_text('[providers.my-host]\nbase_url = "https://mine.example/v1"\n')
    assert piped(capsys, monkeypatch, KEY, "keys", "set", "my-host").code == 0
    assert piped(capsys, monkeypatch, KEY, "keys", "set", "only-in-code", "--any-name").code == 0
    assert list(json.loads(path.read_text())["keys"]) == ["google", "my-host", "only-in-code"]


def test_a_row_of_the_current_folder_counts_only_when_trusted(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    (tmp_path / "asides.toml").write_text('[providers.evil]\nbase_url = "https://evil.example/v1"\n')
    assert piped(capsys, monkeypatch, KEY, "keys", "set", "evil").code == 2


@pytest.mark.parametrize(
    "text", ["", " \n", "two\nlines-of-key", "schlüssel-012345", "blank in-key", "x" * 40_000, "key\x00"]
)
def test_what_is_no_key_is_not_stored(path: Path, capsys: Captured, monkeypatch: Patch, text: str) -> None:
    done = piped(capsys, monkeypatch, text, "keys", "set", "groq")
    assert done.code == 2
    assert not path.exists()
    assert not text.strip() or text not in done.err


def test_bytes_that_are_no_text_are_not_stored(path: Path) -> None:
    done = asides("keys", "set", "groq", stdin=b"\xff\xfe\x00key")
    assert done.code == 2
    assert not path.exists()


def test_a_provider_without_keys_takes_none(capsys: Captured, monkeypatch: Patch) -> None:
    done = piped(capsys, monkeypatch, KEY, "keys", "set", "local")
    assert done.code == 2
    assert "takes no key" in done.err


def test_half_of_a_pair_is_refused_with_advice(capsys: Captured, monkeypatch: Patch) -> None:
    done = piped(capsys, monkeypatch, "AKIAIOSFODNN7EXAMPLE", "keys", "set", "bedrock")
    assert done.code == 2
    assert "aws configure" in done.err
    assert piped(capsys, monkeypatch, "bedrock-api-key-0123", "keys", "set", "bedrock").code == 0


def test_the_list_says_where_keys_come_from_and_shows_none(capsys: Captured, monkeypatch: Patch) -> None:
    assert "no key is set" in here(capsys, "keys", "list").err
    for name in ("groq", "google", "deepseek"):
        piped(capsys, monkeypatch, KEY, "keys", "set", name)
    monkeypatch.setenv("GROQ_API_KEY", "from-environment")
    monkeypatch.setenv("MISTRAL_API_KEY", "from-environment")
    done = here(capsys, "keys")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in done.out.splitlines()[1:]}
    assert rows == {
        "groq": "GROQ_API_KEY (wins over the key file) set, 16 characters",
        "mistral": "MISTRAL_API_KEY set, 16 characters",
        "deepseek": f"key file set, {len(KEY)} characters",
        "deepseek-anthropic": f"key file, as deepseek set, {len(KEY)} characters",
        "google": f"key file set, {len(KEY)} characters",
        "google-openai": f"key file, as google set, {len(KEY)} characters",
        "google-interactions": f"key file, as google set, {len(KEY)} characters",
    }
    fields = json.loads(here(capsys, "keys", "list", "--json").out)
    assert {entry["provider"] for entry in fields["keys"]} == set(rows)
    for out in (done.out, json.dumps(fields), here(capsys, "config").out, here(capsys, "providers").out):
        assert KEY not in out
        assert KEY[-4:] not in out
        assert "from-environment" not in out


def test_other_commands_see_stored_keys(capsys: Captured, monkeypatch: Patch) -> None:
    piped(capsys, monkeypatch, KEY, "keys", "set", "groq")
    assert json.loads(here(capsys, "config", "--json").out)["keys"] == {"groq": "key file"}
    row = next(line for line in here(capsys, "providers").out.splitlines() if line.startswith("groq "))
    assert "key file" in row
    assert "***" in here(capsys, "explain", "-m", "groq:m", "--no-stdin", "?").out


def test_a_file_that_is_not_private_is_a_warning_where_nothing_is_sent(
    path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    piped(capsys, monkeypatch, KEY, "keys", "set", "groq")
    path.chmod(0o644)
    for command in ("config", "providers"):
        done = here(capsys, command)
        assert done.code == 0
        assert done.err.count(f"chmod 600 {path}") == 1
        assert "key file" not in done.out
    assert here(capsys, "ask", "-m", "groq:m", "--no-stdin", "?").code == 2


def test_a_missing_key_says_both_ways(capsys: Captured) -> None:
    done = here(capsys, "ask", "-m", "groq:qwen/qwen3-32b", "--no-stdin", "?")
    assert done.code == 3
    assert "set GROQ_API_KEY" in done.err
    assert "`asides keys set groq`" in done.err


def test_a_key_is_removed_and_the_others_stay(path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    for name in ("groq", "google"):
        piped(capsys, monkeypatch, KEY, "keys", "set", name)
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    done = here(capsys, "keys", "remove", "gemini")
    assert done.code == 0
    assert "GEMINI_API_KEY" in done.err
    assert json.loads(path.read_text()) == {"keys": {"groq": KEY}}
    again = here(capsys, "keys", "remove", "google")
    assert again.code == 2
    assert "no key is stored for google. Stored are: groq." in again.err
    assert here(capsys, "keys", "remove").code == 2
    assert here(capsys, "keys", "remove", "grog").code == 2


def test_a_key_of_a_row_that_is_gone_is_listed_and_can_be_removed(
    path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    piped(capsys, monkeypatch, KEY, "keys", "set", "gone", "--any-name")
    assert "gone      key file (no row has this name here)" in here(capsys, "keys", "list").out
    assert here(capsys, "keys", "remove", "gone").code == 0
    assert json.loads(path.read_text()) == {"keys": {}}


def test_the_path_is_printed_whether_or_not_it_exists(path: Path, capsys: Captured) -> None:
    assert here(capsys, "keys", "path").out == f"{path}\n"
    assert not path.parent.exists()


def test_without_a_home_the_error_says_what_to_set(capsys: Captured, monkeypatch: Patch) -> None:
    for name in ("XDG_CONFIG_HOME", "HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    for action in (["set", "groq"], ["list"], ["path"]):
        done = here(capsys, "keys", *action)
        assert done.code == 2
        assert "HOME" in done.err


@pytest.mark.parametrize("content", ["broken {", '{"keys": 1}'])
def test_a_broken_file_is_never_replaced(path: Path, capsys: Captured, monkeypatch: Patch, content: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(content)
    path.chmod(0o600)
    for action in (["set", "groq"], ["remove", "groq"], ["list"]):
        done = piped(capsys, monkeypatch, KEY, "keys", *action)
        assert done.code == 2
        assert str(path) in done.err
    assert path.read_text() == content


def test_a_file_that_others_can_read_is_not_written_on(path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    piped(capsys, monkeypatch, KEY, "keys", "set", "groq")
    path.chmod(0o644)
    done = piped(capsys, monkeypatch, KEY, "keys", "set", "google")
    assert done.code == 2
    assert f"chmod 600 {path}" in done.err


def test_a_link_stays_a_link(path: Path, tmp_path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    path.parent.mkdir(parents=True)
    real = tmp_path / "private" / "keys.json"
    path.symlink_to(real)
    assert piped(capsys, monkeypatch, KEY, "keys", "set", "groq").code == 0
    assert path.is_symlink()
    assert json.loads(real.read_text()) == {"keys": {"groq": KEY}}
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_a_folder_in_the_place_of_the_file_is_an_error(path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    path.mkdir(parents=True)
    assert piped(capsys, monkeypatch, KEY, "keys", "set", "groq").code == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_that_cannot_be_written_is_an_error(path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o500)
    done = piped(capsys, monkeypatch, KEY, "keys", "set", "groq")
    assert done.code == 2
    assert "cannot be written" in done.err


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    (tmp_path / "config").write_text("")
    done = piped(capsys, monkeypatch, KEY, "keys", "set", "groq")
    assert done.code == 2
    assert "cannot be written" in done.err


def test_names_and_keys_cannot_break_out_of_the_file(path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    nasty = 'x","openai":"stolen"}}\\'
    assert piped(capsys, monkeypatch, nasty, "keys", "set", "groq").code == 0
    assert json.loads(path.read_text()) == {"keys": {"groq": nasty}}


def test_many_at_once_lose_no_key(path: Path) -> None:
    names = ["groq", "google", "openai", "anthropic", "deepseek", "mistral"]
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "asides", "keys", "set", name],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        for name in names
    ]
    for name, child in zip(names, children, strict=True):
        _, err = child.communicate(f"key-of-{name}".encode(), timeout=60)
        assert child.returncode == 0, err
    assert json.loads(path.read_text()) == {"keys": {name: f"key-of-{name}" for name in sorted(names)}}


def test_it_runs_as_a_process_with_a_closed_standard_input(path: Path) -> None:
    done = run_process("keys", "set", "groq")
    assert done.code == 2
    assert "no key was given" in done.err
