"""Settings files: where they are looked for, and which of them are trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asides.settings import load_settings
from asides.settings_files import find_config_files
from asides.values.errors import ConfigError

NOTHING: dict[str, str] = {}
ROW = '[providers.mine]\nbase_url = "https://mine.example/v1"\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The configuration folder of the user, with a row."""
    folder = tmp_path / "home" / ".config" / "asides"
    folder.mkdir(parents=True)
    (folder / "asides.toml").write_text(ROW)
    return tmp_path / "home"


def test_files_are_looked_for_here_and_in_the_users_folder() -> None:
    user = {"HOME": "/home/me", "USERPROFILE": "/windows/me"}
    assert find_config_files(NOTHING) == (Path("asides.toml"),)
    assert find_config_files(user) == (Path("asides.toml"), Path("/home/me/.config/asides/asides.toml"))
    assert find_config_files({"USERPROFILE": "/windows/me"})[1] == Path("/windows/me/.config/asides/asides.toml")
    assert find_config_files({**user, "XDG_CONFIG_HOME": "/x"})[1] == Path("/x/asides/asides.toml")
    assert find_config_files({**user, "ASIDES_CONFIG": "/other.toml"}) == (Path("/other.toml"),)


def test_a_relative_configuration_folder_is_none() -> None:
    assert find_config_files({"XDG_CONFIG_HOME": ".config"}) == (Path("asides.toml"),)
    assert find_config_files({"XDG_CONFIG_HOME": "x", "HOME": "/me"})[1] == Path("/me/.config/asides/asides.toml")
    assert find_config_files({"HOME": "."}) == (Path("asides.toml"),)


def test_a_file_in_a_folder_above_is_not_looked_for(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "asides.toml").write_text("retries = 7")
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert load_settings(NOTHING).files == ()


def test_the_users_own_file_is_trusted_unless_all_may_write_to_it(here: Path, home: Path) -> None:
    own = home / ".config" / "asides" / "asides.toml"
    assert [row.name for row in load_settings({"HOME": str(home)}).providers] == ["mine"]
    own.chmod(0o666)
    settings = load_settings({"HOME": str(home)})
    assert settings.providers == ()
    assert "others may write to it" in settings.notices[0].detail
    own.chmod(0o644)
    own.parent.chmod(0o777)
    assert load_settings({"HOME": str(home)}).providers == ()
    own.parent.chmod(0o1777)
    assert load_settings({"HOME": str(home)}).providers, "nobody else can replace it there"


@pytest.mark.parametrize("way", ["inside the folder", "by a link"])
def test_the_users_own_file_is_trusted_also_where_it_is_the_file_here(
    here: Path, home: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    folder = home / ".config" / "asides"
    if way == "by a link":
        (here / "asides.toml").symlink_to(folder / "asides.toml")
    else:
        monkeypatch.chdir(folder)
    settings = load_settings({"HOME": str(home)})
    assert [row.name for row in settings.providers] == ["mine"]
    assert (settings.notices, settings.files) == ((), (str(folder / "asides.toml"),))


def test_a_link_here_to_any_other_file_is_not_trusted(here: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text(ROW)
    (here / "asides.toml").symlink_to(tmp_path / "elsewhere.toml")
    assert load_settings({"HOME": str(tmp_path)}).providers == ()


def test_what_is_judged_is_what_counts(here: Path) -> None:
    """The file is read once: a change between the judgement and the reading changes nothing."""
    (here / "asides.toml").write_text(ROW)

    def judge(path: Path, content: bytes) -> bool:
        path.write_text(ROW.replace("mine.example", "evil.example"))
        return b"mine.example" in content

    (row,) = load_settings(NOTHING, trusts=judge).providers
    assert row.base_url == "https://mine.example/v1"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("kind", ["pipe", "device", "long"])
def test_a_file_here_that_never_ends_is_an_error(here: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(here / "asides.toml")
    elif kind == "device":
        (here / "asides.toml").symlink_to("/dev/zero")
    else:
        (here / "asides.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match=r"asides\.toml cannot be read"):
        load_settings(NOTHING)


@pytest.mark.parametrize(
    "content",
    [
        "max_tokens = " + "9" * 5000,
        "thinking = 0x" + "f" * 20_000,
        "[" + ".".join("a" * 8000) + "]\n" + ".".join("a" * 8000) + " = 1",
        "providers." + ".".join(['"a"'] * 5000) + " = 1",
    ],
    ids=["digits", "hexadecimal digits", "a long header and key", "a long key with quotes"],
)
def test_no_number_and_no_key_of_a_file_here_is_more_than_an_error(here: Path, content: str) -> None:
    (here / "asides.toml").write_text(content)
    with pytest.raises(ConfigError):
        load_settings(NOTHING)


def test_a_file_here_starts_no_server_through_a_row_of_the_user(here: Path, home: Path) -> None:
    (home / ".config" / "asides" / "asides.toml").write_text('[providers.mine]\nlike = "local"\n')
    (here / "asides.toml").write_text('model = "mine:theirs.gguf"')
    settings = load_settings({"HOME": str(home)})
    assert settings.model is None
    assert [entry.name for entry in settings.ignored] == ["model"]
