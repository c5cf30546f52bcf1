"""`asides connect`: prints what a client needs, or writes it into the client's own file, and says what it found."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from asides.cli.connect_clients import CLIENTS
from tests.cli.children import Ended, here
from tests.gateway.served import serve

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
Run = Callable[..., Ended]
MODEL = "deepseek:deepseek-v4-pro"
SECRET = "sk-asides-0123456789abcdef"
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: Patch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    for name in ("ASIDES_GATEWAY_KEY", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "OPENCODE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def connect(capsys: Captured) -> Run:
    def run(name: str, *options: str, url: str = NOBODY, model: str = MODEL) -> Ended:
        return here(capsys, "connect", name, "--url", url, "--model", model, *options)

    return run


# --- what it prints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "pwsh"])
def test_a_shell_reads_the_lines(connect: Run, monkeypatch: Patch, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    awkward = 'it\'s a "key" with $HOME, `x` and \\back'
    name = "powershell" if shell == "pwsh" else shell
    lines = connect("openai", "--shell", name, "--key", awkward).out
    command = "$env:OPENAI_API_KEY" if shell == "pwsh" else "printenv OPENAI_API_KEY"
    ran = subprocess.run([shell, "-c", f"{lines}\n{command}"], capture_output=True, text=True, check=True)
    assert ran.stdout.rstrip("\n") == awkward


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", 'export OPENAI_API_KEY="$MY_KEY"'),
        ("zsh", 'export OPENAI_API_KEY="$MY_KEY"'),
        ("fish", 'set -gx OPENAI_API_KEY "$MY_KEY"'),
        ("powershell", "$env:OPENAI_API_KEY = $env:MY_KEY"),
    ],
)
def test_a_key_stays_in_its_variable(connect: Run, monkeypatch: Patch, shell: str, line: str) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    ended = connect("openai", "--key-env", "MY_KEY", "--shell", shell)
    assert line in ended.out.splitlines()
    assert SECRET not in ended.out + ended.err


def test_the_variable_of_the_gateway_is_used_where_it_is_set(connect: Run, monkeypatch: Patch) -> None:
    monkeypatch.setenv("ASIDES_GATEWAY_KEY", SECRET)
    ended = connect("claude")
    assert 'export ANTHROPIC_AUTH_TOKEN="$ASIDES_GATEWAY_KEY"' in ended.out
    assert SECRET not in ended.out + ended.err


def test_only_what_the_shell_reads_goes_to_stdout(connect: Run) -> None:
    ended = connect("claude", "--quiet")
    assert ended.err == ""
    assert {line.partition(" ")[0] for line in ended.out.splitlines()} == {"export"}


def test_what_a_file_gets_can_be_redirected_into_it(connect: Run) -> None:
    assert json.loads(connect("opencode").out)["model"] == f"asides/{MODEL}"


@pytest.mark.parametrize("name", CLIENTS)
def test_all_of_it_as_json(connect: Run, name: str) -> None:
    document = json.loads(connect(name, "--json").out)
    assert (document["client"], document["gateway"]) == (name, {"answers": False, "needs_key": False})
    assert NOBODY in json.dumps([document["variables"], document["files"]])


# --- the gateway ------------------------------------------------------------------------------------------------------


def test_it_says_that_no_gateway_answers(connect: Run) -> None:
    assert f"no gateway answers at {NOBODY} yet. Run `asides serve`." in connect("claude").err


def test_it_says_whether_a_running_gateway_takes_the_key(connect: Run, tmp_path: Path) -> None:
    with serve(tmp_path, env={"ASIDES_GATEWAY_KEY": SECRET}) as gateway:
        said = [connect("claude", *key, url=gateway.url).err for key in KEYS]
    assert [words in text for words, text in zip(KEYS.values(), said, strict=True)] == [True] * len(KEYS)


KEYS = {
    (): "needs a key. Add --key-env NAME",
    ("--key", "sk-asides-a-wrong-one-0123"): "does not take the key. Check it.",
    ("--key", SECRET): "the gateway answers at",
}


# --- names and addresses ----------------------------------------------------------------------------------------------


def test_a_name_that_is_not_known_gets_the_list_and_the_one_that_was_meant(connect: Run) -> None:
    ended = connect("claud")
    assert ended.code == 2
    assert f"Did you mean claude? Known clients: {', '.join(CLIENTS)}." in ended.err


def test_no_name_gets_the_list(capsys: Captured) -> None:
    ended = here(capsys, "connect")
    assert (ended.code, "no client was named" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("localhost:4242", "http://localhost:4242"),
        ("http://127.0.0.1:9/v1/", "http://127.0.0.1:9"),
        ("http://[::1]:9", "http://[::1]:9"),
        ("https://127.0.0.1:9/asides", "https://127.0.0.1:9/asides"),
    ],
)
def test_an_address_may_be_written_in_many_ways(capsys: Captured, given: str, used: str) -> None:
    ended = here(capsys, "connect", "anthropic", "--url", given, "-m", MODEL, "--shell", "bash")
    assert ended.out.splitlines()[0] in (f"export ANTHROPIC_BASE_URL={used}", f"export ANTHROPIC_BASE_URL='{used}'")


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:99999", "http://u:p@x", "http://x?a=b", "http://[x"])
def test_what_is_no_address_is_refused(connect: Run, url: str) -> None:
    ended = connect("claude", url=url)
    assert (ended.code, "is not the address of a gateway" in ended.err) == (2, True)


def test_the_address_of_the_settings_is_used(capsys: Captured, home: Path) -> None:
    folder = home / ".config" / "asides"
    folder.mkdir(parents=True)
    (folder / "asides.toml").write_text('model = "groq:m"\n[gateway]\nhost = "0.0.0.0"\nport = 5151\n')
    ended = here(capsys, "connect", "claude", "--shell", "bash")
    assert "export ANTHROPIC_BASE_URL=http://127.0.0.1:5151" in ended.out
    assert "export ANTHROPIC_MODEL=groq:m" in ended.out


# --- the model --------------------------------------------------------------------------------------------------------


def test_a_model_that_leads_nowhere_is_refused(capsys: Captured) -> None:
    ended = here(capsys, "connect", "claude", "--model", "deepsek:x")
    assert (ended.code, "Did you mean deepseek?" in ended.err) == (2, True)


def test_a_gateway_elsewhere_may_know_more_names(connect: Run) -> None:
    ended = connect("claude", model="deepsek:x")
    assert (ended.code, "warning: not known here" in ended.err) == (0, True)


@pytest.mark.parametrize("model", ["claude-opus-5-5", "best", "fast"])
def test_models_of_the_maker_routes_and_aliases_are_names_too(capsys: Captured, home: Path, model: str) -> None:
    folder = home / ".config" / "asides"
    folder.mkdir(parents=True)
    (folder / "asides.toml").write_text(f'[aliases]\nfast = "{MODEL}"\n[routes.best]\ntargets = ["{MODEL}"]\n')
    ended = here(capsys, "connect", "claude", "--model", model, "--shell", "bash")
    assert f"export ANTHROPIC_MODEL={model}\n" in ended.out


def test_with_a_key_for_its_maker_a_client_keeps_its_own_models(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-made-up-0123456789")
    ended = here(capsys, "connect", "claude", "--shell", "bash")
    assert "ANTHROPIC_MODEL" not in ended.out


def test_a_dialect_is_for_a_client_that_has_several(connect: Run) -> None:
    assert "only opencode speaks several dialects" in connect("claude", "--dialect", "chat").err


@pytest.mark.parametrize("options", [("--key-env", SECRET), ("--key", " "), ("--key", "é")])
def test_what_is_no_key_is_refused(connect: Run, options: tuple[str, ...]) -> None:
    ended = connect("claude", *options)
    assert (ended.code, SECRET in ended.err) == (2, False)


# --- files ------------------------------------------------------------------------------------------------------------


def test_it_writes_the_file_says_so_and_takes_it_back(connect: Run, home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('# mine\nmodel = "gpt-5"\n')
    written = connect("codex", "--write")
    assert (written.code, written.out) == (0, "")
    assert f"wrote {path}:" in written.err
    assert "  model, which had another value" in written.err
    assert "is already up to date" in connect("codex", "--write").err
    assert "is gone" in connect("codex", "--undo").err
    assert path.read_text() == '# mine\nmodel = "gpt-5"\n'


def test_a_key_that_no_file_may_hold_is_left_for_the_shell(connect: Run, monkeypatch: Patch, home: Path) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    ended = connect("gemini", "--write", "--key-env", "MY_KEY", "--shell", "bash")
    assert ended.out == 'export GEMINI_API_KEY="$MY_KEY"\n'
    files = [path for path in home.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET in path.read_text()] == []
    assert (home / ".gemini" / ".env").read_text() == f"GOOGLE_GEMINI_BASE_URL={NOBODY}\n"


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "qwen", "opencode"])
def test_a_key_in_a_file_goes_when_a_variable_takes_its_place(connect: Run, home: Path, name: str) -> None:
    connect(name, "--write", "--key", SECRET)
    assert SECRET in _read_all(home)
    connect(name, "--write", "--key-env", "MY_KEY")
    assert SECRET not in _read_all(home)


def _read_all(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def test_a_client_without_a_file_has_nothing_to_write(connect: Run) -> None:
    assert "variables are its way" in connect("openai", "--write").err


def test_a_broken_file_is_refused_with_its_place(connect: Run, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"env": }')
    ended = connect("claude", "--write")
    assert ended.code == 2
    assert f"{path} cannot be read: line 1, column 9: a value is missing. Nothing was changed." in ended.err


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "qwen", "opencode"])
def test_undo_needs_no_model_and_no_key(capsys: Captured, home: Path, name: str) -> None:
    before = {path for path in home.rglob("*") if path.is_file()}
    here(capsys, "connect", name, "--write", "--model", "groq:first", "--key-env", "MY_KEY")
    here(capsys, "connect", name, "--write", "--model", MODEL)
    ended = here(capsys, "connect", name, "--undo")
    assert (ended.code, "removed" in ended.err) == (0, True)
    left = {path for path in home.rglob("*") if path.is_file()} - before
    assert {path.name for path in left} == {".clients.lock"}


def test_a_name_without_a_provider_is_told_where_it_leads(capsys: Captured) -> None:
    ended = here(capsys, "connect", "claude", "--model", "gemini")
    assert ended.code == 0
    assert "the gateway takes it for a model of Anthropic, and no key for that is known here" in ended.err
