"""PostgreSQL as it is set up elsewhere: TLS, passwords, sockets, several hosts, users with few rights, standbys."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from asides.database import Queries, Query, StoreError, StoreUnavailable
from asides.database.migrate import check, migrate
from asides.database.postgres import PostgresDatabase
from asides_gateway.maintenance.check_servers import check_servers
from tests.servers import NotInstalled, PostgresServer, find_free_port

PASSWORD = "p@ss/w:rd#?%é &x"
USER = f"owner:{quote(PASSWORD, safe='')}"
_RULES = """
host all asides 127.0.0.1/32 trust
hostnossl all over_tls 127.0.0.1/32 reject
host all all 127.0.0.1/32 scram-sha-256
host all all ::1/128 scram-sha-256
local all all scram-sha-256
"""


class Setup(NamedTuple):
    """A server with TLS and passwords, with a database `own` that has all tables."""

    server: PostgresServer
    folder: Path
    """With the certificate, which is its own authority, and the socket."""

    @property
    def port(self) -> int:
        """Its port."""
        return self.server.port


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("needs openssl to make a certificate")
    # PostgreSQL runs as somebody else, who may not enter pytest's folder. The path of a socket has to be short.
    folder = Path(tempfile.mkdtemp(prefix="asides-"))
    make = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key"), "-out", str(folder / "pem")]
    subprocess.run(make, check=True, capture_output=True, timeout=30)
    settings = {
        "ssl": "on",
        "ssl_cert_file": str(folder / "pem"),
        "ssl_key_file": str(folder / "key"),
        "listen_addresses": "localhost, ::1",
        "unix_socket_directories": str(folder),
    }
    try:
        server = PostgresServer(settings=settings, rules=_RULES)
    except NotInstalled as problem:
        pytest.skip(str(problem))
    (folder / "key").chmod(0o600)
    for each in (folder, *folder.iterdir()):
        shutil.chown(each, server.folder.owner())
    try:
        server.start()
        for user in ("owner", "over_tls"):
            server._command(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
        server.create_database("own")
        server._command("ALTER DATABASE own OWNER TO owner")
        migrate(f"postgresql://{USER}@127.0.0.1:{server.port}/own")
        yield Setup(server, folder)
    finally:
        server.remove()
        shutil.rmtree(folder, ignore_errors=True)


def insert() -> Queries[int]:
    query = "INSERT INTO vault_tenants (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = excluded.name"
    return (yield Query(query, (b"a",), is_alone=True)).changed


def use(url: str) -> int:
    database = PostgresDatabase(url)
    try:
        return database.run(insert)
    finally:
        database.close()


def has_ipv6() -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://{user}@127.0.0.1:{port}/own?sslmode=require",
        "postgresql://{user}@localhost:{port}/own?sslmode=verify-full&sslrootcert={folder}/pem",
        "postgresql://{user}@[::1]:{port}/own",
        "postgresql://{user}@/own?host={folder}&port={port}",
        "postgresql://{user}@{folder_in_host}:{port}/own",
        "postgresql://{user}@127.0.0.1:{free},127.0.0.1:{port}/own?target_session_attrs=read-write",
    ],
)
def test_ways_to_a_server(setup: Setup, url: str) -> None:
    if "::1" in url and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    folder, in_host = setup.folder, quote(str(setup.folder), safe="")
    made = url.format(user=USER, port=setup.port, folder=folder, folder_in_host=in_host, free=find_free_port())
    assert check(made).is_current
    assert use(made) == 1


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://{user}x@127.0.0.1:{port}/own", "says: .*authentication failed"),
        ("postgresql://owner@127.0.0.1:{port}/own", "no password supplied"),
        ("postgresql://over_{tls}@127.0.0.1:{port}/own?sslmode=disable", "says: .*pg_hba.conf"),
        (
            "postgresql://{user}@127.0.0.1:{port}/own?sslmode=verify-full&sslrootcert={folder}/pem",
            "server certificate",
        ),
        ("postgresql://{user}@localhost:{port}/own?sslmode=verify-full", "certificate verify failed|certificate file"),
    ],
)
def test_refusals_say_why_and_show_no_password(
    setup: Setup, url: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = url.format(user=USER, tls=USER.replace("owner", "tls"), port=setup.port, folder=setup.folder)
    for attempt in (check, migrate, use):
        with pytest.raises(StoreUnavailable, match=f"({told})") as caught:
            attempt(made)
        for secret in (PASSWORD, quote(PASSWORD, safe="")):
            assert secret not in f"{caught.value} {caplog.text} {check_servers(made, None)}"


def test_a_user_without_rights_hears_which_ones(setup: Setup) -> None:
    setup.server._command(f"CREATE ROLE weak LOGIN PASSWORD '{PASSWORD}'")
    url = f"postgresql://{USER.replace('owner', 'weak')}@127.0.0.1:{setup.port}/own"
    owner = PostgresDatabase(f"postgresql://{USER}@127.0.0.1:{setup.port}/own")

    def allow() -> Queries[None]:
        yield Query("GRANT USAGE ON SCHEMA asides TO weak")
        yield Query("GRANT SELECT ON ALL TABLES IN SCHEMA asides TO weak")

    owner.run(allow)
    owner.close()
    assert check(url).is_current
    with pytest.raises(StoreError, match="SELECT, INSERT, UPDATE and DELETE on all tables"):
        use(url)


def test_a_standby_is_told_by_the_doctor(setup: Setup) -> None:
    url = f"postgresql://{USER}@127.0.0.1:{setup.port}/own"
    setup.server._command("ALTER ROLE owner SET default_transaction_read_only = on")
    try:
        assert check(url).is_read_only
        (found,) = check_servers(url, None)
        assert not found.is_sound
        assert "answers, but it is read-only. " in found.text
    finally:
        setup.server._command("ALTER ROLE owner RESET default_transaction_read_only")
    assert check_servers(url, None)[0].is_sound
