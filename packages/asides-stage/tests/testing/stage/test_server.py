"""The server opens, closes and raises what a script raised; `run` serves in a process until a signal."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import asides
from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest
from asides.values.errors import ConfigError
from asides.values.messages import Prompt, user
from asides_stage import Hang, Raw, Say, Stage, run
from asides_stage.stage.response_plan import plan_response
from asides_stage.stage.server import _improvise_slowly
from tests.testing.stage.http_client import as_http, body_of, ended, post, raw_socket


def stage_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "asides-stage"]


def test_closing_ends_the_thread_and_hanging_connections() -> None:
    before = stage_threads()
    opened = Stage(Hang()).start()
    with raw_socket(opened, as_http(body_of())) as client, raw_socket(opened) as idle:
        assert opened.wait_until(lambda: len(opened.requests) == 1 and opened.connections == 2)
        opened.close()
        assert stage_threads() == before
        assert [ended(each) for each in (client, idle)] == [True, True]
    assert (opened.closed_early, opened.open_connections) == (0, 0)
    opened.close()


def test_closing_does_not_wait_for_a_client_that_does_not_read() -> None:
    opened = Stage(Raw(b"x" * 30_000_000)).start()
    with raw_socket(opened, as_http(body_of())) as client:
        client.recv(1000)
        opened.close()
    assert opened.open_connections == 0


def test_the_port_is_free_again_after_closing() -> None:
    with Stage(Say("a")) as first:
        port = urlsplit(first.url).port or 0
    with Stage(Say("b"), port=port) as second:
        assert post(second).json["choices"][0]["message"]["content"] == "b"


def test_a_taken_port_is_an_error() -> None:
    with Stage() as first, pytest.raises(ConfigError, match=r"cannot open 127[.]0[.]0[.]1 port"):
        Stage(port=urlsplit(first.url).port or 0).start()


def test_a_stage_is_started_once_and_has_an_address_only_then() -> None:
    opened = Stage()
    with pytest.raises(RuntimeError, match="not open yet"):
        _ = opened.url
    with opened:
        assert opened.url.startswith("http://127.0.0.1:")
        with pytest.raises(RuntimeError, match="started before"):
            opened.start()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_a_host_that_other_machines_can_reach_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="other machines"):
        Stage(host=host)


def test_anywhere_allows_other_machines() -> None:
    with Stage(Say("hi"), host="0.0.0.0", anywhere=True) as opened:
        assert post(opened).status == 200


def test_localhost_is_an_address_of_this_machine() -> None:
    with Stage(Say("hi"), host="localhost") as opened:
        assert opened.url.startswith("http://127.0.0.1:")
        assert post(opened).status == 200


def test_clients_that_connect_during_closing_are_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    def connect_often(address: tuple[str, int], clients: list[socket.socket]) -> None:
        with contextlib.suppress(OSError):
            while True:
                clients.append(socket.create_connection(address, timeout=5))

    for _ in range(6):
        opened, clients = Stage(Hang()).start(), list[socket.socket]()
        address = urlsplit(opened.url)
        thread = threading.Thread(target=connect_often, args=((address.hostname, address.port), clients))
        thread.start()
        while opened.connections < 4:
            time.sleep(0.001)
        opened.close()
        thread.join(10)
        for client in clients:
            client.close()
        assert opened.open_connections == 0
    gc.collect()  # a lost socket would warn now
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


# --- scripts that raise -----------------------------------------------------------------------------------------------


def test_an_exception_of_the_script_is_answered_500_and_raised_on_closing() -> None:
    def broken(request: ServedRequest) -> Say:
        raise LookupError(request.model)

    opened = Stage(broken).start()
    answer = post(opened)
    assert answer.status == 500
    assert "LookupError" in answer.json["error"]["message"]
    with pytest.raises(LookupError, match="any"):
        opened.close()


def test_an_exception_of_the_block_hides_that_of_the_script() -> None:
    def broken(_: ServedRequest) -> Say:
        raise LookupError

    def use() -> None:
        with Stage(broken) as opened:
            post(opened)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()


# --- run --------------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from pathlib import Path
from asides_stage import run

run("127.0.0.1", 0, Path(sys.argv[1]) if sys.argv[1:] else None, lambda url: print(url, flush=True))
print("ended", flush=True)
"""


@contextmanager
def running(*arguments: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    source = str(Path(asides.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def chat(url: str, question: str) -> Any:
    body = json.dumps({"model": "stage", "messages": [{"role": "user", "content": question}]}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body), timeout=10) as response:
        return json.load(response)["choices"][0]["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_serves_until_a_signal_and_ends_cleanly(number: signal.Signals) -> None:
    with running() as (process, url):
        assert chat(url, "What is 23 * 47?")["content"] == "23 × 47 = 1081"
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert (out, err, process.returncode) == ("ended\n", "", 0)


def test_run_plays_a_script_from_a_file(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"type": "say", "text": "from a file", "thinking": "read it"}]')
    with running(str(script)) as (_, url):
        assert chat(url, "?") == {
            "role": "assistant",
            "content": "from a file",
            "reasoning_content": "read it",
        }


def test_run_raises_before_a_port_is_open(tmp_path: Path) -> None:
    urls: list[str] = []
    with pytest.raises(ConfigError, match="cannot be read"):
        run("127.0.0.1", 0, tmp_path / "none.json", urls.append)
    with pytest.raises(ConfigError, match="other machines"):
        run("0.0.0.0", 0, None, urls.append)
    assert urls == []


@pytest.mark.parametrize("text", ["word " * 20_000, "reverse " + "x" * 100_000, "x" * 100_000, "What is 2 + 3?"])
@pytest.mark.parametrize("stream", [True, False])
def test_what_people_watch_has_few_pieces_however_long_the_prompt_is(text: str, stream: bool) -> None:
    """Each piece costs a pause: their number is the time that a reply takes."""
    request = ServedRequest(Prompt((user(text),)), "any", stream)
    plan = plan_response(_improvise_slowly(request), request, find_dialect("openai_chat"))
    assert len(plan.pieces) < 60
