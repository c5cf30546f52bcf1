"""`asides serve`: what it prints, what it refuses, and where it keeps things."""

from __future__ import annotations

import re
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from asides_stage import Say, Stage
from tests.cli.children import asides, at_terminal, here
from tests.gateway.served import KEY, make_environment, serve, write_settings


@pytest.fixture
def enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a folder and an environment in which nothing is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def _run(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run it until it ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "asides", "serve", "--port", "0", *arguments],
        capture_output=True,
        text=True,
        env=make_environment(folder, env),
        cwd=folder,
        timeout=50,
        check=False,
    )


def test_without_any_setting_it_answers_on_loopback_and_keeps_its_state_private(tmp_path: Path) -> None:
    with Stage(Say(text="42")) as stage:
        address = {"DEEPSEEK_BASE_URL": stage.url, "DEEPSEEK_API_KEY": "sk-stage"}
        settings = f'[providers.deepseek]\nbase_url = "{stage.url}"\n'
        (tmp_path / "asides.toml").write_text(settings)
        with serve(tmp_path, env=address) as served:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+", served.url)
            body = {"model": "deepseek:deepseek-chat", "messages": [{"role": "user", "content": "6 * 7?"}]}
            status, answer = served.post("/v1/chat/completions", body, authorization="Bearer anything")
            assert (status, answer["choices"][0]["message"]["content"]) == (200, "42")
            with urlopen(f"{served.url}/ui/") as page:
                assert page.status == 200
            served.wait_for_log("POST /v1/chat/completions 200")
            assert "model=deepseek:deepseek-chat target=deepseek:deepseek-chat" in served.log
            assert "6 * 7" not in served.log
            assert "sk-stage" not in served.log
            assert served.end() == 0
            # A pipe that nobody greets.
            assert "asides connect" not in served.log
    state = tmp_path / "state"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {0o600}
    assert (state / "vault.db.key").exists()


def test_someone_at_a_terminal_is_greeted_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    env = make_environment(tmp_path, {"OPENAI_API_KEY": "sk-proj-canary-1234567890", "COLUMNS": "200"})
    with at_terminal("serve", "--port", "0", env=env) as keyboard:
        keyboard.wait_for("Ctrl-C ends the gateway.")
        keyboard.interrupt()
        assert keyboard.end() == 0
        text = " ".join(keyboard.text.split())
    assert re.search(r"The gateway answers at http://127\.0\.0\.1:\d+", text)
    assert "/ui/" in text
    assert "openai" in text
    assert "canary" not in text
    assert "encrypted; conversations, in" in text
    assert re.search(r'connect eval "\$\(asides connect claude --url http://127\.0\.0\.1:\d+\)"', text)


@pytest.mark.thorough
def test_ctrl_c_reaches_workers_once(tmp_path: Path) -> None:
    """A terminal sends it to every process in front: a worker that got it twice would cut its replies."""
    with at_terminal("serve", "--port", "0", "--workers", "2", env=make_environment(tmp_path)) as keyboard:
        keyboard.wait_for("Ctrl-C ends the gateway.")
        keyboard.interrupt()
        assert keyboard.end() == 0
        assert keyboard.text.count("stops after open replies finish") == 2
        assert "stops immediately" not in keyboard.text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--host", "0.0.0.0"), "needs a key"),
        (("--host", "localhost:80"), "not an address to listen on"),
        (("--key-file", "none.txt"), "cannot be read"),
        (("--workers", "0"), "gateway.workers"),
        (("--workers", "0", "--log", "json"), "gateway.workers"),
        (("--max-body", "-1"), "gateway.max_body_mb"),
        (("--drain", "-1"), "gateway.drain_seconds"),
        (("--folder", "asides.toml/x"), "cannot be used"),
    ],
)
def test_bad_usage_is_refused_before_anything_opens(
    tmp_path: Path, enter: None, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "asides.toml").write_text("")
    ended = here(capsys, "serve", "--port", "0", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    if "gateway." not in words:
        assert ". " in ended.err


@pytest.mark.parametrize(
    ("key", "words"), [("short", "easy to guess"), ("a" * 30, "easy to guess"), (",", "holds no key")]
)
def test_a_key_that_is_worth_nothing_is_refused(
    enter: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, key: str, words: str
) -> None:
    monkeypatch.setenv("ASIDES_GATEWAY_KEY", key)
    ended = here(capsys, "serve", "--port", "0", "--host", "0.0.0.0")
    assert ended.code == 2
    assert words in ended.err
    assert "secrets.token_urlsafe" in ended.err


def test_another_address_asks_for_the_key(tmp_path: Path) -> None:
    with serve(tmp_path, "--host", "0.0.0.0", env={"ASIDES_GATEWAY_KEY": KEY}) as served:
        assert served.url.startswith("http://127.0.0.1:")
        assert served.get("/v1/models")[0] == 401
        assert served.get("/v1/models", **{"x-api-key": KEY})[0] == 200


def test_a_port_in_use_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = _run(tmp_path, "--port", str(port))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"asides: port {port} of 127.0.0.1 is in use")
    assert ". " in ended.stderr


@pytest.mark.parametrize("module", ["httptools", "uvicorn", "cryptography", "prometheus_client"])
def test_a_missing_package_is_told_in_one_sentence(tmp_path: Path, module: str) -> None:
    hidden = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        f"u.find_spec = lambda name, *a: None if name == {module!r} else find(name, *a)\n"
        "from asides.cli.app import main; sys.exit(main(['serve', '--port', '0']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", hidden],
        capture_output=True,
        text=True,
        env=make_environment(tmp_path),
        timeout=50,
        check=False,
    )
    assert ended.returncode == 2
    name = module.replace("_", "-")
    assert ended.stderr == (
        f"asides: `asides serve` needs {name}, which is not installed. Run pip install 'asides[gateway]'.\n"
    )


def test_the_help_loads_no_gateway() -> None:
    ended = asides("serve", "--help", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert ended.code == 0
    assert "--key-file" in ended.out
    assert "uvicorn" not in ended.err
    assert "prometheus" not in ended.err


def test_a_key_of_the_gateway_can_be_stored(tmp_path: Path) -> None:
    environ = make_environment(tmp_path)

    def run_keys(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "asides", "keys", *arguments]
        return subprocess.run(
            command, input=stdin, env=environ, capture_output=True, text=True, timeout=50, check=False
        )

    weak = run_keys("set", "gateway", stdin="weak")
    assert (weak.returncode, "easy to guess" in weak.stderr) == (2, True)
    stored = run_keys("set", "gateway", stdin=KEY)
    assert stored.returncode == 0
    listed = run_keys("list")
    assert re.search(r"^gateway +key file +set, \d+ characters$", listed.stdout, re.MULTILINE)
    assert KEY not in listed.stdout + stored.stderr
    with serve(tmp_path) as served:
        assert served.get("/v1/models")[0] == 401
        assert served.get("/v1/models", authorization=f"Bearer {KEY}")[0] == 200
        assert run_keys("remove", "gateway").returncode == 0
        served.wait_for_log("the settings were reloaded")
        assert served.get("/v1/models")[0] == 200


def test_a_file_of_the_current_folder_counts_once_it_is_trusted(tmp_path: Path) -> None:
    """Whoever unpacks a folder from elsewhere and serves from there serves nothing of it."""
    with Stage(Say(text="42")) as stage:
        environ = make_environment(tmp_path)
        write_settings(tmp_path, stage.url, "[gateway]\nopen_metrics = true\n")
        with serve(tmp_path, env={"ASIDES_CONFIG": ""}) as served:
            assert "may not set" in served.log
            status, answer = served.post("/v1/chat/completions", {"model": "thinker", "messages": []})
            assert status in (400, 404, 502), answer
            assert list(stage.requests) == []
            trusted = [sys.executable, "-m", "asides", "config", "trust", "--yes"]
            subprocess.run(trusted, env=environ, cwd=tmp_path, check=True, capture_output=True, timeout=50)
            served.wait_for_log("the settings were reloaded")
            body = {"model": "thinker", "messages": [{"role": "user", "content": "?"}]}
            assert served.post("/v1/chat/completions", body)[0] == 200
    assert len(stage.requests) == 1
