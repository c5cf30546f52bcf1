"""ASIDES_STAGE=1 sends whole programs to the stage: sync, async, agents, lists, threads, forks and the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import asides
from asides_stage import Say, Stage

_KEYS = ("_API_KEY", "_TOKEN", "AWS_")
_TOLD = "ASIDES_STAGE is set: the stage answers"


def _run(tmp_path: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program of a user who has no key, with these variables."""
    environment = {name: value for name, value in os.environ.items() if not any(part in name for part in _KEYS)}
    environment |= {"PYTHONPATH": str(Path(asides.__file__).parent.parent), "XDG_CONFIG_HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, *command],
        env={**environment, **variables},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        stdin=subprocess.DEVNULL,
    )


_PROGRAM = """
import asyncio, threading
import asides

@asides.tool
def get_weather(city: str) -> str:
    "The weather in a city."
    return f"sunny in {city}"

print(asides.ask("openai:gpt-5.2", "What is 6 * 7?", base_url="https://far.example/v1").text)
with asides.stream("anthropic:claude-haiku-4-5", "What is 6 * 8?") as events:
    print("".join(event.text for event in events if isinstance(event, asides.TextDelta)))
print(asyncio.run(asides.aio.ask("azure:mine", "What is 6 * 9?")).text)
print(asides.Agent("google:gemini-3.8-flash", tools=[get_weather]).send('How is the weather in "Oslo"?').output)
print(len(asides.Client().models("mistral")) > 0)
answers = []
threads = [threading.Thread(target=lambda: answers.append(asides.ask("groq:m", "What is 2 + 2?").text)) for _ in "1234"]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print(set(answers))
print([notice.code for notice in asides.ask("vertex-anthropic:claude-haiku-4-5", "What is 1 + 1?").warnings])
"""


def test_a_program_without_a_key_is_answered_and_told_once(tmp_path: Path) -> None:
    done = _run(tmp_path, "-c", _PROGRAM, ASIDES_STAGE="1")
    assert done.stdout.splitlines() == [
        "6 × 7 = 42",
        "6 × 8 = 48",
        "6 × 9 = 54",
        "get_weather says: sunny in Oslo",
        "True",
        "{'2 + 2 = 4'}",
        "['answered_by_stage']",
    ], done.stderr
    assert done.stderr.count(_TOLD) == 1
    assert done.returncode == 0


def test_without_it_the_same_program_asks_for_a_key(tmp_path: Path) -> None:
    done = _run(tmp_path, "-c", _PROGRAM, ASIDES_STAGE="0")
    assert "MissingKey" in done.stderr


def test_the_command_line_too_with_the_answer_alone_on_standard_output(tmp_path: Path) -> None:
    done = _run(tmp_path, "-m", "asides", "ask", "-m", "deepseek:deepseek-flash", "What is 6 * 7?", ASIDES_STAGE="1")
    assert (done.returncode, done.stdout) == (0, "6 × 7 = 42\n")
    assert done.stderr.count("ASIDES_STAGE") == 1
    listed = _run(tmp_path, "-m", "asides", "models", "openai", "--refresh", ASIDES_STAGE="1")
    assert (listed.returncode, listed.stdout.splitlines()[1].split()[0]) == (0, "stage"), listed.stderr


def test_a_settings_file_cannot_turn_it_on(tmp_path: Path) -> None:
    for line in ('stage = "1"', 'ASIDES_STAGE = "1"'):
        (tmp_path / "asides.toml").write_text(line, encoding="utf-8")
        done = _run(tmp_path, "-c", 'import asides; asides.ask("openai:gpt-5.2", "Hello")')
        assert _TOLD not in done.stderr
        assert "Error" in done.stderr or "MissingKey" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_starts_its_own(tmp_path: Path) -> None:
    program = """
import os, sys, warnings, asides
warnings.simplefilter("ignore")
asides.ask("openai:gpt-5.2", "What is 1 + 1?")
child = os.fork()
if child == 0:
    print(asides.Client().ask("openai:gpt-5.2", "What is 2 + 2?", timeout=10).text, flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = _run(tmp_path, "-c", program, ASIDES_STAGE="1")
    assert (done.returncode, done.stdout, done.stderr.count(_TOLD)) == (0, "2 + 2 = 4\n", 2), done.stderr


def test_a_stage_that_runs_gets_the_requests_and_no_key(tmp_path: Path) -> None:
    program = 'import asides; print(asides.ask("openai:gpt-5.2", "Hello", api_key="sk-mine").warnings)'
    with Stage([Say(text="Hi.")]) as stage:
        done = _run(tmp_path, "-c", program, ASIDES_STAGE=stage.url, OPENAI_API_KEY="sk-of-the-environment")
        assert (done.returncode, done.stdout, done.stderr) == (0, "()\n", "")
        (received,) = stage.requests
    assert received.path == "/v1/responses"
    assert "sk-" not in str(received.headers)


@pytest.mark.parametrize(
    "model",
    ["anthropic:claude-sonnet-5-5", "openai:gpt-5", "google:gemini-3.6-pro"],
)
def test_a_conversation_of_one_process_is_accepted_in_the_next(tmp_path: Path, model: str) -> None:
    variables = {"ASIDES_STAGE": "1", "ASIDES_STATE": str(tmp_path / "state")}
    first = _run(tmp_path, "-m", "asides", "-m", model, "--thinking", "high", "What is 6 * 7?", **variables)
    assert (first.returncode, first.stdout) == (0, "6 × 7 = 42\n"), first.stderr
    second = _run(tmp_path, "-m", "asides", "-c", "What is 7 * 7?", **variables)
    assert (second.returncode, second.stdout) == (0, "7 × 7 = 49\n"), second.stderr
    assert "thoughts_rejected" not in second.stderr


def test_the_seals_of_a_user_are_valid_in_the_next_process_and_not_with_another_user(tmp_path: Path) -> None:
    def ask(user: str, *words: str) -> str:
        done = _run(
            tmp_path,
            *("-m", "asides", *words, "-m", "openai:gpt-5.2", "--thinking", "high"),
            ASIDES_STAGE="1",
            ASIDES_STATE=str(tmp_path / user),
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    ask("ada", "What is 6 * 7?")
    secret = tmp_path / "ada" / "stage.secret"
    assert len(secret.read_bytes()) == 32
    if os.name == "posix":
        assert secret.stat().st_mode & 0o777 == 0o600
    assert "warning" not in ask("ada", "-c", "And 6 * 8?")
    ask("bob", "What is 6 * 7?")
    assert (tmp_path / "bob" / "stage.secret").read_bytes() != secret.read_bytes()
    secret.unlink()
    assert "warning" in ask("ada", "-c", "And 6 * 9?")


def test_a_state_folder_that_cannot_be_written_costs_no_answer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    program = "import asides; print(asides.ask('openai:gpt-5.2', 'What is 6 * 7?').text)"
    done = _run(tmp_path, "-c", program, ASIDES_STAGE="1", ASIDES_STATE=str(tmp_path / "file" / "state"))
    assert done.stdout == "6 × 7 = 42\n", done.stderr
