"""The key file: read below the environment, only when private, and without showing what it holds."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import asides
from asides.providers.credentials import Secret, find_key
from asides.providers.find import find_provider
from asides.providers.key_file import KeyFile, choose_stored_key, find_key_file, locate_key, read_key_file
from asides.providers.provider import Provider
from asides.values.errors import ConfigError, MissingKey
from asides_stage.stage import OpenStage, Say

CANARY = "sk-canary-0123456789"
ROW = Provider(name="mine", base_url="https://mine.example/v1", key_env=("MINE_KEY",))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


@pytest.fixture
def path(environ: dict[str, str]) -> Path:
    place = find_key_file(environ)
    place.parent.mkdir(mode=0o700)
    return place


def store(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def test_the_given_key_wins_over_the_environment_and_that_over_the_file(path: Path, environ: dict[str, str]) -> None:
    store(path, f'{{"keys": {{"mine": "{CANARY}"}}}}')
    assert find_key(ROW, environ=environ) == Secret(CANARY)
    assert find_key(ROW, environ={**environ, "MINE_KEY": "from-environment"}) == Secret("from-environment")
    assert find_key(ROW, "given", {**environ, "MINE_KEY": "from-environment"}) == Secret("given")
    assert locate_key(ROW, environ) == "key file"
    assert locate_key(ROW, {**environ, "MINE_KEY": "x"}) == "MINE_KEY"


def test_the_key_goes_over_the_wire(
    path: Path, environ: dict[str, str], stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(path, f'{{"keys": {{"deepseek": "{CANARY}"}}}}')
    monkeypatch.setenv("XDG_CONFIG_HOME", environ["XDG_CONFIG_HOME"])
    server = stage(Say(text="hi"))
    asides.ask("deepseek:deepseek-flash", "?", base_url=server.url)
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"


def test_the_key_of_one_provider_is_not_that_of_another(path: Path, environ: dict[str, str]) -> None:
    store(path, f'{{"keys": {{"openai": "{CANARY}", "min": "{CANARY}"}}}}')
    with pytest.raises(MissingKey, match="asides keys set mine"):
        find_key(ROW, environ=environ)
    for name in ("groq", "anthropic", "openrouter", "azure"):
        with pytest.raises(MissingKey):
            find_key(find_provider(name), environ=environ, base_url="https://host.example")
        assert locate_key(find_provider(name), environ) is None


def test_rows_of_one_account_share_a_key_and_rows_of_others_do_not() -> None:
    keys = {"google": "google-key", "bedrock": "bedrock-key", "openai": "openai-key"}
    shared = {name: choose_stored_key(find_provider(name), keys) for name in ("google-openai", "bedrock-mantle")}
    assert shared == {"google-openai": ("google", "google-key"), "bedrock-mantle": ("bedrock", "bedrock-key")}
    # A row that merely reads the same variable, in code or in a settings file, is somebody else's host.
    for row in (
        Provider(name="mine", base_url="https://mine.example", key_env=("OPENAI_API_KEY",)),
        Provider(name="openai-chat", base_url="https://mine.example", key_env=("OPENAI_API_KEY",), tier="yours"),
    ):
        assert choose_stored_key(row, keys) == ("", "")


def test_a_name_is_found_as_people_write_it() -> None:
    assert choose_stored_key(find_provider("groq"), {"Groq": CANARY}) == ("Groq", CANARY)
    assert choose_stored_key(find_provider("google"), {"gemini": CANARY}) == ("gemini", CANARY)


def test_without_a_file_or_a_home_there_is_no_key(environ: dict[str, str]) -> None:
    assert read_key_file(find_key_file(environ)) == KeyFile()
    for nowhere in ({}, {"HOME": "relative"}, environ):
        with pytest.raises(MissingKey):
            find_key(ROW, environ=nowhere)
    with pytest.raises(ConfigError, match="HOME or XDG_CONFIG_HOME"):
        find_key_file({})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666, 0o777])
def test_a_file_that_others_may_touch_is_refused_with_advice(path: Path, environ: dict[str, str], mode: int) -> None:
    store(path, f'{{"keys": {{"mine": "{CANARY}"}}}}', mode)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        find_key(ROW, environ=environ)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_folder_in_which_others_may_replace_it_is_refused(path: Path, environ: dict[str, str]) -> None:
    store(path, f'{{"keys": {{"mine": "{CANARY}"}}}}')
    path.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="chmod o-w"):
        find_key(ROW, environ=environ)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only the administrator can give files away")
def test_a_file_of_another_user_is_refused(path: Path) -> None:
    store(path, f'{{"keys": {{"mine": "{CANARY}"}}}}')
    os.chown(path, 4711, 4711)
    path.parent.parent.chmod(0o755)
    path.parent.chmod(0o755)
    status = path.stat()
    from asides.providers.key_file import check_privacy

    check_privacy(path, status)  # the administrator may
    code = (
        "import os, sys; from pathlib import Path; from asides.providers.key_file import check_privacy\n"
        f"status = os.stat({str(path)!r}); os.setuid(4712)\n"
        "try: check_privacy(Path('keys.json'), status)\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "belongs to another user" in done.stdout


@pytest.mark.parametrize(
    "content",
    [
        f'{{"keys": {{"mine": "{CANARY}"',
        f'{{"keys": ["{CANARY}"]}}',
        f'{{"keys": {{"mine": ["{CANARY}"]}}}}',
        f'"{CANARY}"',
        f"mine={CANARY}",
        '{"keys": {"mine": "' + "[" * 5000,
        "[" * 100_000,
    ],
)
def test_a_broken_file_is_named_and_its_content_is_not_shown(path: Path, environ: dict[str, str], content: str) -> None:
    store(path, content)
    with pytest.raises(ConfigError, match=r"keys\.json is not valid") as caught:
        find_key(ROW, environ=environ)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_bytes_that_are_no_text_are_refused(path: Path, environ: dict[str, str]) -> None:
    path.write_bytes(b'{"keys": {"mine": "\xff\xfe"}}')
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="is not valid"):
        find_key(ROW, environ=environ)


def test_an_empty_file_holds_no_key(path: Path, environ: dict[str, str]) -> None:
    store(path, "\n")
    with pytest.raises(MissingKey):
        find_key(ROW, environ=environ)


def test_what_is_no_file_or_endless_is_refused(path: Path, environ: dict[str, str]) -> None:
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        find_key(ROW, environ=environ)
    path.rmdir()
    os.mkfifo(path, 0o600)
    with pytest.raises(ConfigError, match="cannot be read"):
        find_key(ROW, environ=environ)
    path.unlink()
    store(path, " " * (2 * 1024 * 1024))
    with pytest.raises(ConfigError, match="longer than"):
        find_key(ROW, environ=environ)


@pytest.mark.parametrize("bad", ["two\\nlines", "with blank", "sch\\u00fcssel", "a\\r\\nX-Evil: 1"])
def test_a_key_that_no_header_takes_is_refused_and_the_file_named(
    path: Path, environ: dict[str, str], bad: str
) -> None:
    store(path, f'{{"keys": {{"mine": "{bad}"}}}}')
    with pytest.raises(ConfigError, match=r"key file .*keys\.json"):
        find_key(ROW, environ=environ)


def test_a_link_is_followed_and_what_it_names_is_judged(path: Path, environ: dict[str, str], tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    store(real, f'{{"keys": {{"mine": "{CANARY}"}}}}')
    path.symlink_to(real)
    assert find_key(ROW, environ=environ) == Secret(CANARY)
    real.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        find_key(ROW, environ=environ)
    real.unlink()
    with pytest.raises(MissingKey):
        find_key(ROW, environ=environ)


def test_the_file_is_not_opened_where_the_environment_has_the_key(path: Path, environ: dict[str, str]) -> None:
    store(path, "broken", 0o666)
    assert find_key(ROW, environ={**environ, "MINE_KEY": "x"}) == Secret("x")
    assert find_key(ROW, "given", environ) == Secret("given")


def test_a_file_shows_no_key() -> None:
    assert repr(KeyFile({"mine": CANARY})) == "KeyFile(<1 keys>)"


def test_an_import_opens_no_key_file(path: Path, environ: dict[str, str]) -> None:
    store(path, "broken", 0o666)
    code = (
        "import sys\nopened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import asides; asides.Client\n"
        "print([name for name in opened if 'keys.json' in name], 'asides.providers.key_file' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environ}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[] False\n"


def test_a_row_of_the_current_folder_does_not_get_the_key(
    path: Path, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that came with a folder names another address for a provider whose key is stored."""
    store(path, f'{{"keys": {{"groq": "{CANARY}"}}}}')
    project = tmp_path / "project"
    project.mkdir()
    (project / "asides.toml").write_text('[providers.groq]\nbase_url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.chdir(project)
    monkeypatch.setenv("XDG_CONFIG_HOME", environ["XDG_CONFIG_HOME"])
    explained = asides.explain("groq:m", "?")
    assert explained.url.startswith("https://api.groq.com/")
    assert explained.headers["Authorization"] == "Bearer ***"
