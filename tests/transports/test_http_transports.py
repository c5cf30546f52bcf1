"""Proxies, certificates, missing servers and servers that do not speak HTTP: both transports, over real sockets."""

from __future__ import annotations

import gzip
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import asides
from asides.transports.connection import Connection, ConnectionPool
from tests.decoding import stream, whole
from tests.loopback import ReceivedRequest, read_request, saying, serving, whole_response
from tests.shells import KEY, Shell, both_shells

ANSWER = whole_response(whole({"content": "42"}))


# --- nobody there -------------------------------------------------------------------------------------------------


@both_shells
def test_nobody_listens(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    outcome = shell(f"http://127.0.0.1:{port}/v1", retries=0)
    assert isinstance(outcome.raised, asides.ConnectionLost)
    assert str(outcome.raised).startswith(f"no server listens at 127.0.0.1:{port}")
    assert outcome.partial is None


@both_shells
def test_a_refused_connection_is_tried_again_and_may_find_somebody(shell: Shell) -> None:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]

    def open_late() -> None:
        time.sleep(0.2)
        listening.listen()
        connection, _ = listening.accept()
        with connection:
            read_request(connection)
            connection.sendall(ANSWER)
            with suppress(OSError):
                connection.recv(1)

    late = threading.Thread(target=open_late, daemon=True)
    late.start()
    outcome = shell(f"http://127.0.0.1:{port}/v1")
    late.join(5)
    listening.close()
    assert outcome.reply is not None


@pytest.fixture
def full_backlog() -> Iterator[int]:
    """The port of somebody who takes no calls: connecting neither succeeds nor fails."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        callers: list[socket.socket] = []
        try:
            for _ in range(8):
                caller = socket.socket()
                caller.settimeout(0.1)
                callers.append(caller)
                try:
                    caller.connect(listening.getsockname())
                except TimeoutError:
                    break
            else:
                pytest.skip("this system queues connections beyond the backlog")
            yield listening.getsockname()[1]
        finally:
            for caller in callers:
                caller.close()


@both_shells
def test_a_connection_that_nobody_accepts_times_out(shell: Shell, full_backlog: int) -> None:
    began = time.monotonic()
    outcome = shell(f"http://127.0.0.1:{full_backlog}/v1", timeout=asides.Timeout(connect=0.2), retries=0)
    assert isinstance(outcome.raised, asides.ConnectTimeout)
    assert f"no connection to 127.0.0.1:{full_backlog} within 0.2 s" in str(outcome.raised)
    assert time.monotonic() - began < 3


# --- somebody else there ------------------------------------------------------------------------------------------


@both_shells
def test_what_is_not_http_is_not_tried_again(shell: Shell) -> None:
    with serving(saying(b"SSH-2.0-OpenSSH_9.6\r\n", then=False)) as server:
        outcome = shell(server.url)
        assert "not HTTP" in str(outcome.raised)
        assert server.connections == 1


@both_shells
@pytest.mark.parametrize(
    "framing",
    [
        b"Transfer-Encoding: chunked\r\n\r\nnot a size\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"Content-Length: 500\r\n\r\nshort",
    ],
    ids=["no chunks", "half a chunk", "too short"],
)
def test_a_body_that_breaks_its_framing_is_broken_off(shell: Shell, framing: bytes) -> None:
    head, end, body = framing.partition(b"\r\n\r\n")

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + end)
        time.sleep(0.05)
        connection.sendall(body)
        return False

    with serving(answer) as server:
        outcome = shell(server.url, retries=0)
    assert isinstance(outcome.raised, asides.ConnectionLost)


@both_shells
def test_a_compressed_body_is_read_although_nobody_asked_for_it(shell: Shell) -> None:
    body = gzip.compress(stream({"reasoning_content": "plan"}, {"content": "42"}))
    with serving(saying(whole_response(body, "text/event-stream", Content_Encoding="gzip"))) as server:
        outcome = shell(server.url)
        assert server.heard[0].headers["accept-encoding"] == "identity"
    assert outcome.reply is not None
    assert outcome.reply.text == "42"


@both_shells
def test_a_body_that_does_not_decompress_is_said_to_be_so(shell: Shell) -> None:
    with serving(saying(whole_response(b"no gzip at all", Content_Encoding="gzip"))) as server:
        outcome = shell(server.url, retries=0)
    assert isinstance(outcome.raised, asides.TransportError)
    assert "cannot be decompressed" in str(outcome.raised)


@both_shells
def test_a_redirect_is_not_followed(shell: Shell) -> None:
    def answer(heard: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(whole_response(b"", status="307 Temporary Redirect", Location="/elsewhere"))
        return True

    with serving(answer) as server:
        outcome = shell(server.url)
        assert len(server.heard) == 1
    assert isinstance(outcome.raised, asides.ProviderError)
    assert "points to /elsewhere" in str(outcome.raised)


@both_shells
def test_cookies_are_not_kept(shell: Shell) -> None:
    with serving(saying(whole_response(b"{}", status="503 Busy", Set_Cookie="a=b", Retry_After="0"), ANSWER)) as server:
        assert shell(server.url.replace("127.0.0.1", "localhost")).reply is not None
        assert "cookie" not in server.heard[1].headers


# --- proxies ------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@both_shells
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_carries_the_request(
    shell: Shell, variable: str, no_proxies: pytest.MonkeyPatch
) -> None:
    with serving(saying(ANSWER)) as proxy:
        no_proxies.setenv(variable, f"http://somebody:pass%20word@127.0.0.1:{proxy.port}")
        outcome = shell("http://models.example/v1")
    assert outcome.reply is not None
    heard = proxy.heard[0]
    assert heard.line == "POST http://models.example/v1/chat/completions HTTP/1.1"
    assert heard.headers["proxy-authorization"] == "Basic c29tZWJvZHk6cGFzcyB3b3Jk"


@both_shells
@pytest.mark.parametrize("exempt", ["127.0.0.1", "*", "localhost,127.0.0.0/8"])
def test_no_proxy_is_heeded(shell: Shell, exempt: str, no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    no_proxies.setenv("NO_PROXY", exempt)
    with serving(saying(ANSWER)) as server:
        assert shell(server.url).reply is not None


@both_shells
def test_a_proxy_that_is_not_there_is_named_without_its_password(shell: Shell, no_proxies: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    no_proxies.setenv("HTTP_PROXY", f"http://somebody:secret@127.0.0.1:{port}")
    outcome = shell("http://models.example/v1", retries=0)
    assert isinstance(outcome.raised, asides.ConnectionLost)
    assert f"the proxy 127.0.0.1:{port} does not connect to models.example" in str(outcome.raised)
    assert "secret" not in str(outcome.raised)


@both_shells
def test_a_proxy_that_refuses_is_told_apart_from_the_host(shell: Shell, no_proxies: pytest.MonkeyPatch) -> None:
    with serving(saying(whole_response(b"", status="403 Forbidden"), then=False)) as proxy:
        no_proxies.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        outcome = shell("https://models.example/v1", retries=0)
    assert isinstance(outcome.raised, asides.ConnectionLost)
    assert "the proxy 127.0.0.1" in str(outcome.raised)
    assert proxy.heard[0].line.startswith("CONNECT models.example:443 ")
    assert KEY not in str(proxy.heard)


@both_shells
def test_a_proxy_of_another_kind_is_a_mistake_of_the_settings(shell: Shell, no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    assert isinstance(shell("http://models.example/v1").raised, asides.ConfigError)


# --- trust --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A certificate for the loopback that signed itself, and a server's context with it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


@both_shells
def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(
    shell: Shell, certificate: tuple[Path, ssl.SSLContext]
) -> None:
    with serving(saying(ANSWER), certificate[1]) as server:
        outcome = shell(server.url)
        assert server.heard == []
        assert server.connections == 1
    assert type(outcome.raised) is asides.TransportError
    assert "certificate" in str(outcome.raised)
    assert "SSL_CERT_FILE" in str(outcome.raised)


@both_shells
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_the_environment_says_whom_to_trust(
    shell: Shell, variable: str, certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(certificate[0]))
    with serving(saying(ANSWER), certificate[1]) as server:
        outcome = shell(server.url)
        assert server.heard[0].headers["authorization"] == f"Bearer {KEY}"
    assert outcome.reply is not None


@both_shells
def test_a_stream_over_tls_through_a_proxy_can_be_closed_in_the_middle(
    shell: Shell, certificate: tuple[Path, ssl.SSLContext], no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("SSL_CERT_FILE", str(certificate[0]))

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        connection.sendall(stream({"content": "half"}).partition(b"\n\n")[0] + b"\n\n")
        with suppress(OSError):
            connection.recv(1)
        return False

    with serving(answer, certificate[1]) as server, serving(tunnel) as proxy:
        no_proxies.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        outcome = shell(server.url, timeout=0.5)
        assert proxy.heard[0].line.startswith(f"CONNECT 127.0.0.1:{server.port} ")
    assert isinstance(outcome.raised, asides.IdleTimeout)
    assert outcome.partial is not None
    assert outcome.partial.text == "half"


def tunnel(heard: ReceivedRequest, connection: socket.socket) -> bool:
    """A proxy's CONNECT: bytes both ways until one side is done."""
    host, _, port = heard.line.split(" ")[1].rpartition(":")
    with socket.create_connection((host, int(port))) as beyond:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")

        def carry(source: socket.socket, sink: socket.socket) -> None:
            with suppress(OSError):
                while data := source.recv(65536):
                    sink.sendall(data)
            for end in (source, sink):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

        back = threading.Thread(target=carry, args=(beyond, connection), daemon=True)
        back.start()
        carry(connection, beyond)
        back.join(5)
    return False


@both_shells
def test_plain_http_where_tls_was_expected_is_said_to_be_so(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_anything() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        server = threading.Thread(target=answer_anything, daemon=True)
        server.start()
        outcome = shell(f"https://127.0.0.1:{listening.getsockname()[1]}/v1", retries=0)
        server.join(5)
    assert type(outcome.raised) is asides.TransportError
    assert "no secure connection" in str(outcome.raised)


@both_shells
def test_a_bundle_that_is_none_is_a_mistake_of_the_settings(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "missing.pem"))
    outcome = shell("https://127.0.0.1:9/v1")
    assert isinstance(outcome.raised, asides.ConfigError)
    assert "REQUESTS_CA_BUNDLE" in str(outcome.raised)


@both_shells
def test_a_connection_that_tls_has_ended_is_not_used_again(
    shell: Shell, certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says farewell inside of TLS with its answer, and leaves the socket open."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    given: list[bool] = []
    give = ConnectionPool.give

    def note(pool: ConnectionPool, connection: Connection) -> None:
        given.append(connection.ended)
        give(pool, connection)

    monkeypatch.setattr(ConnectionPool, "give", note)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            session = certificate[1].wrap_bio(incoming, outgoing, server_side=True)

            def run(work: Callable[[], object]) -> None:
                while True:
                    try:
                        work()
                        return connection.sendall(outgoing.read())
                    except ssl.SSLWantReadError:
                        connection.sendall(outgoing.read())
                        incoming.write(connection.recv(65536))

            with connection:
                run(session.do_handshake)
                run(lambda: session.read(65536))
                session.write(ANSWER)
                with suppress(ssl.SSLWantReadError):
                    session.unwrap()
                connection.sendall(outgoing.read())
                with suppress(OSError):
                    connection.recv(1)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        outcome = shell(f"https://127.0.0.1:{listening.getsockname()[1]}/v1")
        server.join(5)
    assert outcome.reply is not None
    assert given == []


@both_shells
def test_tls_through_a_proxy_that_speaks_tls_itself(
    shell: Shell, certificate: tuple[Path, ssl.SSLContext], no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("SSL_CERT_FILE", str(certificate[0]))
    with serving(saying(ANSWER), certificate[1]) as server, serving(tunnel, certificate[1]) as proxy:
        no_proxies.setenv("HTTPS_PROXY", f"https://me:p%40ss@127.0.0.1:{proxy.port}")
        assert shell(server.url).reply is not None
        assert proxy.heard[0].headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
        assert server.heard[0].headers["authorization"] == f"Bearer {KEY}"


@both_shells
def test_a_certificate_of_another_host_is_refused(
    shell: Shell, certificate: tuple[Path, ssl.SSLContext], no_proxies: pytest.MonkeyPatch
) -> None:
    no_proxies.setenv("SSL_CERT_FILE", str(certificate[0]))
    with serving(saying(ANSWER), certificate[1]) as server:

        def lead_astray(heard: ReceivedRequest, connection: socket.socket) -> bool:
            return tunnel(heard._replace(line=f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"), connection)

        with serving(lead_astray) as proxy:
            no_proxies.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
            outcome = shell("https://models.example/v1")
        assert server.heard == []
    assert type(outcome.raised) is asides.TransportError
    assert "no secure connection to models.example (Hostname mismatch" in str(outcome.raised)


@both_shells
def test_an_address_of_ipv6_is_reached(shell: Shell) -> None:
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this system has no IPv6")
    port, heard = listening.getsockname()[1], []

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            heard.append(read_request(connection))
            connection.sendall(ANSWER)
            with suppress(OSError):
                connection.recv(1)

    server = threading.Thread(target=answer, daemon=True)
    server.start()
    with listening:
        outcome = shell(f"http://[::1]:{port}/v1")
        server.join(5)
    assert outcome.reply is not None
    assert heard[0] is not None
    assert heard[0].headers["host"] == f"[::1]:{port}"
