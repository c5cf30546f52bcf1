"""One process of a gateway: it drains, it ends, and it loses no turn that it acknowledged, however it ends."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from asides.gateway.run_gateway import find_loop_factory
from asides.testing import Say, Stage
from asides.values.parts import ToolCall
from tests.gateway.served import ask_first, ask_second, make_environment, serve, write_settings

_WORDS = " ".join(f"word{number}" for number in range(60))


async def _stream(session: aiohttp.ClientSession, url: str, body: dict[str, Any], begun: asyncio.Event) -> str:
    """The whole text of a stream, if it came whole."""
    text, ended = "", False
    async with session.post(f"{url}/v1/chat/completions", json={**body, "stream": True}) as response:
        assert response.status == 200
        async for line in response.content:
            begun.set()
            if line.strip() == b"data: [DONE]":
                ended = True
            elif line.startswith(b"data: "):
                document = json.loads(line[6:])
                assert "error" not in document
                text += "".join(choice["delta"].get("content") or "" for choice in document["choices"])
    assert ended, "the stream was cut"
    return text


async def stream_many(url: str, count: int, when_begun: Any) -> list[str | BaseException]:
    begun = [asyncio.Event() for _ in range(count)]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        body = {"model": "thinker", "messages": [{"role": "user", "content": "talk"}]}
        tasks = [asyncio.create_task(_stream(session, url, body, event)) for event in begun]
        await asyncio.gather(*(event.wait() for event in begun))
        when_begun()
        return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("number", "count"), [(signal.SIGTERM, 200), (signal.SIGINT, 20)])
def test_no_reply_is_cut_when_the_gateway_ends(tmp_path: Path, number: int, count: int) -> None:
    with Stage(Say(text=_WORDS, pause=0.06)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--log", "off") as served:
            texts = asyncio.run(stream_many(served.url, count, lambda: served.process.send_signal(number)))
            told = time.monotonic()
            assert served.process.wait(10) == 0
            assert time.monotonic() - told < 3, "it waits for nobody"
    assert texts == [_WORDS] * count


def test_while_it_drains_nobody_connects_and_idle_connections_are_closed(tmp_path: Path) -> None:
    with Stage(Say(text=_WORDS, pause=0.05)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            address = urlsplit(served.url)
            idle = socket.create_connection((address.hostname or "", address.port or 0), 5)

            def end() -> None:
                served.process.send_signal(signal.SIGTERM)
                assert idle.recv(1) == b"", "an idle connection stays open"
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((address.hostname or "", address.port or 0), 5).close()

            (text,) = asyncio.run(stream_many(served.url, 1, end))
            idle.close()
            assert text == _WORDS
            assert served.process.wait(10) == 0


def test_a_reply_that_takes_longer_than_the_drain_is_cut_and_counted(tmp_path: Path) -> None:
    with Stage(Say(text=_WORDS, pause=0.5)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--drain", "0.3") as served:
            began: list[float] = []

            def end() -> None:
                began.append(time.monotonic())
                served.process.send_signal(signal.SIGTERM)

            (text,) = asyncio.run(stream_many(served.url, 1, end))
            assert isinstance(text, BaseException)
            assert served.process.wait(10) == 0
            assert time.monotonic() - began[0] < 5
            assert "1 replies did not end within 0.3 s and are cut" in served.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, number: int) -> None:
    with Stage(Say(text=_WORDS, pause=0.5)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:

            def end() -> None:
                served.process.send_signal(number)
                served.wait_for_log("ends when the replies under way have ended")
                served.process.send_signal(number)

            (text,) = asyncio.run(stream_many(served.url, 1, end))
            assert isinstance(text, BaseException)
            assert served.process.wait(5) == 128 + number


def test_a_slow_reader_gets_what_was_written_before_the_end(tmp_path: Path) -> None:
    """The last bytes of a reply may wait in the process when its handler is done."""
    long = "x" * 3_000_000
    with Stage(Say(text=long)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            address = urlsplit(served.url)
            with socket.socket() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.settimeout(20)
                connection.connect((address.hostname or "", address.port or 0))
                body = json.dumps({"model": "thinker", "messages": [{"role": "user", "content": "talk"}]}).encode()
                head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                data = connection.recv(100)
                served.process.send_signal(signal.SIGTERM)
                served.wait_for_log("ends when")
                time.sleep(0.3)
                while part := connection.recv(1 << 20):
                    data += part
            assert served.process.wait(10) == 0
    assert data.count(b"x") >= len(long)
    assert data.rstrip().endswith(b"}}}"), "the end is missing"


def test_a_request_that_is_still_arriving_is_answered(tmp_path: Path) -> None:
    with Stage(Say(text="42")) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            address = urlsplit(served.url)
            with socket.create_connection((address.hostname or "", address.port or 0), 20) as connection:
                body = json.dumps({"model": "thinker", "messages": [{"role": "user", "content": "talk"}]}).encode()
                head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body[:20])
                time.sleep(0.2)
                served.process.send_signal(signal.SIGTERM)
                served.wait_for_log("ends when")
                time.sleep(0.2)
                connection.sendall(body[20:])
                data = b""
                while part := connection.recv(1 << 20):
                    data += part
            assert served.process.wait(10) == 0
    assert data.startswith(b"HTTP/1.1 200 ")
    assert b'"42"' in data


def test_hanging_up_reloads_and_a_terminal_that_is_gone_ends_it(tmp_path: Path) -> None:
    with Stage() as stage:
        write_settings(tmp_path, stage.url)
        leader, follower = pty.openpty()
        log = (tmp_path / "log.txt").open("wb")
        child = subprocess.Popen(
            [sys.executable, "-m", "asides", "serve", "--port", "0"],
            stdin=follower,
            stdout=subprocess.PIPE,
            stderr=log,
            env=make_environment(tmp_path),
            start_new_session=True,
        )
        os.close(follower)
        with child, log:
            try:
                assert child.stdout is not None
                assert child.stdout.readline().startswith(b"http://")
                child.send_signal(signal.SIGHUP)
                deadline = time.monotonic() + 10
                while b"reloaded" not in (tmp_path / "log.txt").read_bytes():
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                assert child.poll() is None
                os.close(leader)
                child.send_signal(signal.SIGHUP)
                assert child.wait(10) == 0
            finally:
                child.kill()


def test_uvloop_is_used_where_it_is_installed() -> None:
    pytest.importorskip("uvloop")
    factory = find_loop_factory()
    assert factory is not None
    loop = factory()
    assert type(loop).__module__.startswith("uvloop")
    loop.close()


# --- kill -9 ----------------------------------------------------------------------------------------------------------


def play_turns(number: int = 0) -> Any:
    """A model that thinks and calls a tool, slowly; once it has the result, it answers."""

    def play(request: Any) -> Say:
        messages = request.prompt.messages
        if messages[-1].role != "user" or any(part.__class__.__name__ == "ToolResult" for part in messages[-1].parts):
            return Say(thinking="it is there", text="42")
        question = messages[-1].text
        call = ToolCall(f"call_{abs(hash(question)) % 10**9}", "look_up", "{}")
        return Say(thinking=f"plan of {question}", text=f"I look: {question}", tool_calls=(call,), pause=0.01, piece=5)

    return play


async def _ask_until_killed(
    url: str, bodies: Sequence[dict[str, Any]], kill: Any, seconds: float
) -> list[dict[str, Any] | None]:
    """The messages of the replies that came whole; None for the others."""

    async def ask(session: aiohttp.ClientSession, body: dict[str, Any]) -> dict[str, Any] | None:
        text, calls, ended = "", dict[int, dict[str, Any]](), False
        try:
            async with session.post(f"{url}/v1/chat/completions", json={**body, "stream": True}) as response:
                async for line in response.content:
                    if line.strip() == b"data: [DONE]":
                        ended = True
                    elif line.startswith(b"data: "):
                        for choice in json.loads(line[6:])["choices"]:
                            delta = choice["delta"]
                            text += delta.get("content") or ""
                            for part in delta.get("tool_calls") or ():
                                call = calls.setdefault(
                                    part["index"],
                                    {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
                                )
                                call["id"] += part.get("id") or ""
                                call["function"]["name"] += part["function"].get("name") or ""
                                call["function"]["arguments"] += part["function"].get("arguments") or ""
        except aiohttp.ClientError:
            pass
        return {"content": text, "tool_calls": list(calls.values())} if ended else None

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        tasks: list[asyncio.Task[dict[str, Any] | None]] = []
        timer = asyncio.get_running_loop().call_later(seconds, kill)
        for body in bodies:
            tasks.append(asyncio.create_task(ask(session, body)))
            await asyncio.sleep(0.02)
        found = await asyncio.gather(*tasks)
        timer.cancel()
        return found


def find_thinking(document: Any) -> list[str]:
    """The signed thinking in the assistant's turns of a request to Anthropic."""
    return [
        block["thinking"]
        for message in document["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "thinking" and block["signature"]
    ]


def test_no_turn_that_was_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    """Whenever it is killed: a client that got the end of a turn goes on with its thinking, after a new start."""
    acknowledged: list[tuple[dict[str, Any], dict[str, Any]]] = []
    cut = 0
    with Stage(play_turns()) as stage:
        write_settings(tmp_path, stage.url)
        for turn in range(2):
            with serve(tmp_path, "--log", "off") as served:
                bodies = [ask_first(turn * 100 + number) for number in range(25)]
                seconds = random.uniform(0.4, 0.9)
                found = asyncio.run(_ask_until_killed(served.url, bodies, served.process.kill, seconds))
                served.process.kill()
                served.process.wait(5)
            cut += found.count(None)
            acknowledged += [(body, message) for body, message in zip(bodies, found, strict=True) if message]
        assert acknowledged
        assert cut, "it was killed too late to say anything"
        with serve(tmp_path, "--log", "off") as served:
            for first, message in acknowledged:
                status, answer = served.post("/v1/chat/completions", ask_second(first, message))
                assert status == 200, answer
                assert answer["choices"][0]["message"]["content"] == "42"
                question = first["messages"][0]["content"]
                assert find_thinking(stage.requests[-1].json) == [f"plan of {question}"]
    assert [request.problem for request in stage.requests if request.problem] == []
