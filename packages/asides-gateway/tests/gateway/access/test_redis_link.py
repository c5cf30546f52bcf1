"""A Redis server that goes away and comes back: what is told, and how long anyone waits."""

from __future__ import annotations

import asyncio
import logging
import shutil
import ssl
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from asides.values.errors import ConfigError
from asides_gateway.access import redis_link
from asides_gateway.access.redis_link import (
    RedisDown,
    RedisLink,
    Script,
    check_redis_url,
    describe_redis,
    open_redis,
)
from tests.servers import RedisServer

_ADD = Script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
SECRET = "hush-hush-42"


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that the test may stop."""
    server = RedisServer("--requirepass", SECRET)
    server.start()
    yield server
    server.go_on()
    server.stop()


def make_url(server: RedisServer, password: str = SECRET) -> str:
    """The URL of a server with a password."""
    return f"redis://:{password}@127.0.0.1:{server.port}/0"


def _count_commands(url: str) -> dict[str, int]:
    with open_redis(url, 2.0) as client:
        stats: Any = client.info("commandstats")
    return {name: stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("eval", "evalsha")}


def test_a_script_is_sent_once_and_again_if_the_server_forgot_it(redis_url: str) -> None:
    async def run() -> None:
        link = RedisLink(redis_url)
        try:
            assert await link.run(_ADD, "asides:{n}", 2) == 2
            with open_redis(redis_url, 2.0) as client:
                client.script_flush()
            assert await link.run(_ADD, "asides:{n}", 3) == 5
            before = _count_commands(redis_url)
            found = await asyncio.gather(*(link.run(_ADD, "asides:{n}", 1) for _ in range(50)))
            assert found == list(range(6, 56))
            after = _count_commands(redis_url)
            assert after["eval"] == before["eval"], "the text was sent again"
            assert after["evalsha"] == before["evalsha"] + 50
        finally:
            await link.close()

    asyncio.run(run())


@pytest.mark.parametrize("how", ["stop", "hang"])
def test_an_outage_is_told_once_costs_nobody_long_and_ends_by_itself(
    own_server: RedisServer, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        link = RedisLink(make_url(own_server))
        try:
            await asyncio.gather(*(link.run(_ADD, "asides:{n}", 1) for _ in range(20)))
            own_server.stop() if how == "stop" else own_server.hang()
            started = time.monotonic()
            results = await asyncio.gather(
                *(link.run(_ADD, "asides:{n}", 1) for _ in range(50)), return_exceptions=True
            )
            assert all(isinstance(result, RedisDown) for result in results)
            assert time.monotonic() - started < 5
            assert not link.is_up
            started = time.monotonic()
            for _ in range(100):
                with pytest.raises(RedisDown):
                    await link.run(_ADD, "asides:{n}", 1)
            assert time.monotonic() - started < 5, "an outage that is known costs no time"
            await asyncio.sleep(1.2)  # two probes fail, and tell nothing
            own_server.start() if how == "stop" else own_server.go_on()
            returned = time.monotonic()
            while not link.is_up:
                await asyncio.sleep(0.02)
                assert time.monotonic() - returned < 20
            # Replies that came too late are nobody's: each gets its own.
            found = await asyncio.gather(*(link.run(_ADD, f"asides:{{n{n}}}", n) for n in range(1, 50)))
            assert found == list(range(1, 50))
        finally:
            await link.close()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    ours = [record.getMessage() for record in caplog.records if record.name == "asides.gateway"]
    assert len(ours) == 2, ours
    assert "fails" in ours[0]
    assert "is back" in ours[1]
    assert SECRET not in caplog.text


def test_a_wrong_password_is_told_without_it(own_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        link = RedisLink(make_url(own_server, "wrong-hush"))
        try:
            with pytest.raises(RedisDown) as caught:
                await link.run(_ADD, "asides:{n}", 1)
            assert "password" in str(caught.value)
            for text in (str(caught.value), repr(caught.value), repr(link), repr(caught.value.__cause__)):
                assert "wrong-hush" not in text
        finally:
            await link.close()

    asyncio.run(run())
    assert "refuses the user or the password" in caplog.text
    assert "wrong-hush" not in caplog.text


@pytest.mark.thorough
def test_a_replica_that_only_reads_is_an_outage_told_once(
    own_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with open_redis(make_url(own_server), 2.0) as client:
        client.replicaof("127.0.0.1", "1")

    async def run() -> None:
        link = RedisLink(make_url(own_server))
        try:
            with pytest.raises(RedisDown):
                await link.run(_ADD, "asides:{n}", 1)
            await asyncio.sleep(1.3)
            assert not link.is_up, "that it answers is not enough"
            with open_redis(make_url(own_server), 2.0) as client:
                client.replicaof("NO", "ONE")
            async with asyncio.timeout(20):
                while not link.is_up:
                    await asyncio.sleep(0.05)
        finally:
            await link.close()

    asyncio.run(run())
    assert [record.levelname for record in caplog.records if "replica" in record.getMessage()] == ["WARNING"]


def test_a_server_that_closes_idle_connections_is_no_outage(own_server: RedisServer) -> None:
    async def run() -> None:
        link = RedisLink(make_url(own_server))
        try:
            for _ in range(5):
                await asyncio.gather(*(link.run(_ADD, "asides:{n}", 1) for _ in range(8)))
                with open_redis(make_url(own_server), 2.0) as client:
                    client.client_kill_filter(_type="normal", skipme=True)
            assert link.is_up
        finally:
            await link.close()

    asyncio.run(run())


def _make_certificate(folder: Path) -> tuple[Path, Path]:
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("needs openssl to make a certificate")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return certificate, key


@asynccontextmanager
async def _end_tls(port: int, certificate: Path, key: Path) -> AsyncGenerator[int]:
    """Take TLS connections, and pass what they say to a port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_tls_is_spoken_and_certificates_are_checked(own_server: RedisServer, tmp_path: Path) -> None:
    certificate, key = _make_certificate(tmp_path)

    async def run() -> None:
        async with _end_tls(own_server.port, certificate, key) as port:
            for options, works in ((f"?ssl_ca_certs={certificate}", True), ("", False)):
                link = RedisLink(f"rediss://:{SECRET}@localhost:{port}/0{options}")
                try:
                    if works:
                        assert await link.run(_ADD, "asides:{tls}", 1) == 1
                    else:
                        with pytest.raises(RedisDown):
                            await link.run(_ADD, "asides:{tls}", 1)
                finally:
                    await link.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "url",
    [
        "http://host",
        "host:6379",
        "redis://",
        "redis://host:0",
        "redis://host:port",
        "redis://host:99999",
        "redis://host/db",
        f"redis://:{SECRET}/x@host",
        f"redis://:{SECRET}@host?socket_timeout=soon",
        "unix://",
    ],
)
def test_what_is_no_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigError, match=r"\. [A-Z]") as caught:
        check_redis_url(url)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("url", ["redis://h", "rediss://u:p@h:1/3", "redis://[::1]:7", "unix:///run/redis.sock?db=1"])
def test_urls_of_servers(url: str) -> None:
    check_redis_url(url)


def test_a_server_is_named_without_user_and_password() -> None:
    assert describe_redis(f"rediss://me:{SECRET}@cache.example:6380/2?x={SECRET}") == "cache.example:6380/2"
    assert describe_redis("redis://[::1]") == "[::1]:6379"
    assert describe_redis(f"unix://me:{SECRET}@/run/redis.sock") == "/run/redis.sock"
    assert SECRET not in repr(RedisLink(f"redis://:{SECRET}@host"))


def test_without_the_package_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_link, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"asides\[redis\]"):
        RedisLink("redis://host")


def test_an_error_about_one_key_is_no_outage(redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        link = RedisLink(redis_url)
        try:
            with open_redis(redis_url, 2.0) as client:
                client.hset("asides:{mine}", "a", "b")
            for _ in range(3):
                with pytest.raises(RedisDown):
                    await link.run(_ADD, "asides:{mine}", 1)
            assert link.is_up
            assert await link.run(_ADD, "asides:{other}", 1) == 1
        finally:
            await link.close()

    asyncio.run(run())
    assert len([record for record in caplog.records if record.name == "asides.gateway"]) == 1


def test_a_server_without_memory_is_an_outage(own_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with open_redis(make_url(own_server), 2.0) as client:
        client.config_set("maxmemory", "1")

    async def run() -> None:
        link = RedisLink(make_url(own_server))
        try:
            with pytest.raises(RedisDown):
                await link.run(_ADD, "asides:{n}", 1)
            assert not link.is_up
        finally:
            await link.close()

    asyncio.run(run())
    assert "no memory left" in caplog.text


def test_a_burst_and_an_event_loop_that_is_held_up_are_no_outage(redis_url: str) -> None:
    async def run() -> None:
        link = RedisLink(redis_url)
        try:
            found = await asyncio.gather(*(link.run(_ADD, "asides:{n}", 1) for _ in range(2000)))
            assert found == list(range(1, 2001))
            answer = asyncio.ensure_future(link.run(_ADD, "asides:{n}", 1))
            for _ in range(3):
                await asyncio.sleep(0)
            time.sleep(0.4)
            assert await answer == 2001
            assert link.is_up
        finally:
            await link.close()

    asyncio.run(run())


def test_whoever_leaves_takes_no_answer_of_others(redis_url: str) -> None:
    async def run() -> None:
        link = RedisLink(redis_url)
        try:
            tasks = [asyncio.create_task(link.run(_ADD, f"asides:{{{n}}}", n)) for n in range(1, 100)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert found[1::2] == list(range(2, 100, 2))
            assert await link.run(_ADD, "asides:{new}", 7) == 7
        finally:
            await link.close()

    asyncio.run(run())


def test_closing_leaves_nobody_waiting(own_server: RedisServer) -> None:
    async def run() -> None:
        link = RedisLink(make_url(own_server))
        await link.run(_ADD, "asides:{n}", 1)
        own_server.hang()
        task = asyncio.create_task(link.run(_ADD, "asides:{n}", 1))
        await asyncio.sleep(0.02)
        await link.close()
        with pytest.raises(RedisDown):
            await task

    asyncio.run(run())
