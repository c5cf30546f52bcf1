"""One server for each model and all threads; a new one when it has died; a clear error when none can start."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import asides
from asides.local import is_installed, launch, server_pool, stop
from asides.local.child_process import find_model_file, plan_server
from asides.transports.launch import RunningServer
from asides.values.errors import ConfigError, UnknownModel
from tests.local.processes import needs_engine, needs_proc, runs

_QUESTION = "What is 2 + 3?"


@pytest.fixture
def no_servers() -> Iterator[None]:
    stop()
    yield
    stop()


def pids() -> list[int]:
    return [child.pid for child in server_pool.list_running()]


def waited_for(model: str) -> RunningServer:
    served = launch(model)
    assert served is not None
    return served


@needs_engine
@pytest.mark.engine
def test_threads_and_tasks_that_ask_at_once_share_one_server(no_servers: None) -> None:
    with ThreadPoolExecutor(8) as pool:
        places = set(pool.map(waited_for, ["tiny"] * 8))

    async def ask_twice() -> list[str]:
        async with asides.AsyncClient() as client:
            replies = await asyncio.gather(*(client.ask("local:tiny", _QUESTION) for _ in range(2)))
            return [reply.text for reply in replies]

    assert "5" in asides.ask("local:tiny", _QUESTION).text
    assert all("5" in text for text in asyncio.run(ask_twice()))
    assert len(places) == len(pids()) == 1


@needs_engine
@pytest.mark.engine
def test_a_file_is_a_model_with_a_server_of_its_own(no_servers: None, tmp_path: Path) -> None:
    copy = tmp_path / "my model.gguf"
    shutil.copyfile(find_model_file("tiny"), copy)
    waited_for("tiny")
    reply = asides.ask(f"local:{copy}", _QUESTION, max_tokens=200, temperature=0)
    assert "5" in reply.text
    assert reply.thinking
    assert reply.model == "my model"
    assert len(pids()) == 2
    # Another path to the same file means the same server.
    assert waited_for(str(tmp_path / "." / "my model.gguf")) == waited_for(str(copy))
    assert len(pids()) == 2


@needs_engine
@pytest.mark.engine
def test_a_server_that_died_is_started_again(no_servers: None) -> None:
    before = waited_for("tiny")
    (child,) = server_pool.list_running()
    os.kill(child.pid, signal.SIGKILL)
    while child.alive:
        time.sleep(0.01)
    assert launch("tiny", wait=False) is None
    assert "5" in asides.ask("local:tiny", _QUESTION).text
    assert waited_for("tiny") != before
    assert len(pids()) == 1


@needs_engine
@pytest.mark.engine
def test_stopping_ends_the_server_and_asking_starts_another(no_servers: None) -> None:
    waited_for("tiny")
    (pid,) = pids()
    stop()
    assert not runs(pid)
    stop()
    waited_for("tiny")
    assert pids() != [pid]


@needs_engine
@pytest.mark.engine
def test_the_server_requires_its_key_and_listens_on_this_machine_alone(no_servers: None) -> None:
    served = waited_for("tiny")
    place = urlsplit(served.url)
    assert place.hostname == "127.0.0.1"

    def status(headers: dict[str, str]) -> int:
        connection = HTTPConnection(place.netloc, timeout=10)
        connection.request("GET", "/v1/chat/completions/input_tokens", headers=headers)
        answer = connection.getresponse().status
        connection.close()
        return answer

    assert status({}) == 401
    assert status({"Authorization": "Bearer guessed"}) == 401
    assert status({"Authorization": f"Bearer {served.key.reveal()}"}) != 401
    stop()
    assert waited_for("tiny").key != served.key


@needs_engine
@needs_proc
@pytest.mark.engine
def test_the_key_is_on_no_command_line_and_in_no_environment(no_servers: None) -> None:
    key = waited_for("tiny").key.reveal().encode()
    (pid,) = pids()
    for place in ("cmdline", "environ"):
        assert key not in Path(f"/proc/{pid}/{place}").read_bytes()


@needs_engine
@needs_proc
@pytest.mark.engine
def test_once_it_serves_the_server_has_nowhere_to_write_to(no_servers: None) -> None:
    waited_for("tiny")
    (pid,) = pids()
    for descriptor in (1, 2):
        assert Path(f"/proc/{pid}/fd/{descriptor}").readlink() == Path(os.devnull)


@needs_engine
@pytest.mark.engine
def test_a_proxy_is_not_asked_for_a_server_of_our_own(no_servers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert "5" in asides.ask("local:tiny", _QUESTION, retries=0).text

    async def ask() -> str:
        return (await asides.aio.ask("local:tiny", _QUESTION, retries=0)).text

    assert "5" in asyncio.run(ask())


# --- when there can be none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        ("xllamacpp", "models on this machine need xllamacpp, which is not installed."),
        ("asides_tiny_model", "the model 'tiny' is in the package asides-tiny-model, which is not installed."),
    ],
)
def test_without_a_part_of_the_extra_the_error_says_what_to_install(
    package: str, reason: str, monkeypatch: pytest.MonkeyPatch, no_servers: None
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert not is_installed()
    with pytest.raises(ConfigError) as blocking:
        asides.ask("local:tiny", _QUESTION)

    async def ask() -> None:
        await asides.aio.ask("local:tiny", _QUESTION)

    with pytest.raises(ConfigError) as awaiting:
        asyncio.run(ask())
    assert str(blocking.value) == str(awaiting.value) == f"{reason} Run pip install 'asides[local]'."


@needs_engine
@pytest.mark.engine
def test_a_model_of_ones_own_needs_the_engine_alone(
    monkeypatch: pytest.MonkeyPatch, no_servers: None, tmp_path: Path
) -> None:
    own = tmp_path / "own.gguf"
    shutil.copyfile(find_model_file("tiny"), own)
    monkeypatch.setitem(sys.modules, "asides_tiny_model", None)
    assert "5" in asides.ask(f"local:{own}", _QUESTION, temperature=0).text


@needs_engine
@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("small", "neither tiny nor a GGUF file that can be read (no such file or directory)"),
        ("/no/such/folder/model.gguf", "no such file or directory"),
        ("/", "is a directory"),
        ("\0", "nor a path"),
        (__file__, "is not a GGUF file"),
    ],
)
def test_a_file_that_is_no_model_is_refused_before_a_start(model: str, reason: str, no_servers: None) -> None:
    with pytest.raises(UnknownModel) as caught:
        launch(model)
    assert reason in str(caught.value)
    assert pids() == []


@needs_engine
@pytest.mark.engine
def test_a_model_that_cannot_be_loaded_is_an_error_with_the_output(no_servers: None, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(find_model_file("tiny").read_bytes()[:4096])
    with pytest.raises(ConfigError) as caught:
        asides.ask(f"local:{broken}", "A question that no error repeats")
    message = str(caught.value)
    assert "the server for broken ended before it was ready. Its output: " in message
    assert "gguf" in message
    assert "question" not in message
    assert pids() == []


@needs_engine
@pytest.mark.engine
def test_threads_that_wait_for_a_start_that_fails_do_not_each_try_again(no_servers: None, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and nothing after it")
    together = threading.Barrier(8)

    def attempt(_: int) -> str:
        together.wait()
        with pytest.raises(ConfigError) as caught:
            launch(str(broken))
        return str(caught.value)

    with ThreadPoolExecutor(8) as pool:
        messages = list(pool.map(attempt, range(8)))
    attempts = server_pool._pool.find_slot(str(broken)).attempts
    assert len(set(messages)) <= attempts <= 2


@needs_engine
def test_the_embedded_model_is_set_up_for_a_small_machine() -> None:
    settings = plan_server("Tiny")
    assert (settings.alias, settings.threads, settings.temperature) == ("tiny-reasoner", 1, 0.0)
    assert settings.start_seconds > 30
