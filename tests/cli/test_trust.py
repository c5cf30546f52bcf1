"""`asides config trust`: the record of trusted files, and what the command line does without it."""

from __future__ import annotations

import hashlib
import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asides.cli.app import main
from asides.cli.trust import FoundFile, trust
from asides.flows.offline import explain
from asides.settings import load_settings
from tests.cli.children import at_terminal

ROW = '[providers.my-host]\nbase_url = "https://mine.example/v1"\nkey_env = "MINE"\nquery = { a = "$OPENAI_API_KEY" }\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a settings file, and a home without one."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "asides.toml").write_text("retries = 5\n" + ROW)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "config" / "asides" / "trusted.json"


def _find_url(capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    capsys.readouterr()
    assert main(["explain", "-m", "my-host:m", "--json", "--no-stdin", "?"]) == code
    return str(json.loads(capsys.readouterr().out)["url"]) if code == 0 else ""


def test_without_trust_the_row_is_ignored_and_the_user_is_told_how_to_trust(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "-m", "my-host:m", "--no-stdin", "?"]) == 2
    err = capsys.readouterr().err
    assert "asides.toml may not set providers.my-host" in err
    assert "asides config trust" in err
    for command in (["providers"], ["models"], ["config"]):
        assert main(command) == 0
        captured = capsys.readouterr()
        assert "asides config trust" in captured.err
        assert "mine.example" not in captured.out


def test_config_shows_what_is_ignored_and_why(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    out = capsys.readouterr().out
    assert "ignored:\n  providers.my-host  asides.toml: it was found in the current folder" in out
    assert "retries" in out
    assert main(["config", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in fields["ignored"]] == ["providers.my-host"]
    assert fields["settings"]["retries"] == {"value": 5, "origin": "file asides.toml"}


def test_trust_shows_what_it_allows_records_the_content_and_untrust_takes_it_back(
    here: Path, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "trust"]) == 0
    err = capsys.readouterr().err
    assert "providers.my-host.base_url = 'https://mine.example/v1'" in err
    assert "providers.my-host.query.a = '$OPENAI_API_KEY'" in err
    assert "retries" not in err, "it counts without trust"
    place = str(here.resolve() / "asides.toml")
    digest = hashlib.sha256((here / "asides.toml").read_bytes()).hexdigest()
    assert json.loads(record.read_text()) == {"files": {place: digest}}
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    assert _find_url(capsys).startswith("https://mine.example/v1")
    assert main(["config", "untrust"]) == 0
    assert json.loads(record.read_text()) == {"files": {}}
    _find_url(capsys, 2)
    assert main(["config", "untrust"]) == 0


def test_a_file_that_changed_is_not_trusted_any_more(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "trust"]) == 0
    before = (here / "asides.toml").read_bytes()
    (here / "asides.toml").write_bytes(before.replace(b"mine.example", b"evil.example"))
    _find_url(capsys, 2)
    (here / "asides.toml").write_bytes(before)
    assert "mine.example" in _find_url(capsys)


def test_the_same_content_in_another_folder_is_not_trusted(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "trust"]) == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "asides.toml").write_bytes((here / "asides.toml").read_bytes())
    monkeypatch.chdir(other)
    _find_url(capsys, 2)
    link = tmp_path / "link"
    link.symlink_to(here)
    monkeypatch.chdir(link)
    assert "mine.example" in _find_url(capsys), "the same folder by another name"


def test_a_link_is_trusted_for_the_content_that_was_shown(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_bytes((here / "asides.toml").read_bytes())
    second.write_bytes(first.read_bytes().replace(b"mine.example", b"evil.example"))
    (here / "asides.toml").unlink()
    (here / "asides.toml").symlink_to(first)
    assert main(["config", "trust"]) == 0
    assert "mine.example" in _find_url(capsys)
    (here / "asides.toml").unlink()
    (here / "asides.toml").symlink_to(second)
    _find_url(capsys, 2)


@pytest.mark.parametrize("damage", ["open", "folder open", "not JSON", "another form", "gone"])
def test_a_record_that_anyone_could_have_written_or_that_does_not_read_counts_for_nothing(
    here: Path, record: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    assert main(["config", "trust"]) == 0
    match damage:
        case "open":
            record.chmod(0o666)
        case "folder open":
            record.parent.chmod(0o777)
        case "not JSON":
            record.write_bytes(b"\xff{")
        case "another form":
            record.write_text('{"files": 5}')
        case _:
            record.unlink()
    _find_url(capsys, 2)


def test_code_needs_more_than_the_record_of_the_command_line(here: Path) -> None:
    assert main(["config", "trust"]) == 0
    assert load_settings().providers == ()
    assert load_settings(files=["asides.toml"]).providers
    named = explain("my-host:m", "?", settings=load_settings(files=["asides.toml"]))
    assert named.url.startswith("https://mine.example/v1")


def test_there_must_be_a_file_and_a_home(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("XDG_CONFIG_HOME", "HOME", "USERPROFILE"):
        monkeypatch.delenv(variable, raising=False)
    assert main(["config", "trust"]) == 2
    assert "Set HOME" in capsys.readouterr().err
    (here / "asides.toml").unlink()
    assert main(["config", "trust"]) == 2
    assert "there is no asides.toml in this folder" in capsys.readouterr().err


def test_a_misspelt_variable_is_told_at_once(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASIDES_RETRIS", "3")
    assert main(["config"]) == 0
    assert "ASIDES_RETRIS is not a setting and is ignored; did you mean ASIDES_RETRIES?" in capsys.readouterr().err


@pytest.mark.parametrize(("keys", "recorded"), [("n\n", False), ("\n", False), ("yes\n", True)])
def test_a_person_at_a_terminal_is_asked_first(here: Path, record: Path, keys: str, recorded: bool) -> None:
    with at_terminal("config", "trust", env={"XDG_CONFIG_HOME": str(record.parents[1])}) as keyboard:
        keyboard.wait_for("trust it? [y]es, [n]o")
        assert "providers.my-host.base_url" in keyboard.text
        assert not record.exists()
        keyboard.type(keys)
        assert keyboard.end() == 0
    assert record.exists() is recorded


def test_nothing_of_the_file_commands_the_terminal_that_shows_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "asides.toml").write_text(
        '[providers."a\\nb\\u001b[2J"]\nbase_url = "https://x\\u202e\\n"\n', encoding="utf-8"
    )
    assert main(["config", "trust", "--yes"]) == 0
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())
    assert main(["config"]) == 0
    captured = capsys.readouterr()
    assert all(line.isprintable() for line in (captured.out + captured.err).splitlines())


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    files = [FoundFile(f"/folder/{number}/asides.toml", f"{number:064}", {}) for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        (path,) = set(pool.map(lambda file: trust(environ, file), files))
    assert json.loads(path.read_bytes())["files"] == {file.place: file.digest for file in files}
