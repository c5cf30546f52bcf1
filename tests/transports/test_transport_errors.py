"""Errors of the connection: their class, their text, and how much of an address they show."""

from __future__ import annotations

import errno
import re
import socket
import ssl

import pytest

from asides.transports import transport_errors
from asides.values.errors import ConnectionLost, TransportError


@pytest.mark.parametrize(
    ("cause", "kind", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), ConnectionLost, "no server listens at host:1"),
        (socket.gaierror(-2, "x"), ConnectionLost, "cannot resolve host:1 (DNS)"),
        (OSError(errno.ENETUNREACH, "x"), ConnectionLost, "host:1 cannot be reached (Network is unreachable)"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] x"), TransportError, "no secure connection to host:1"),
        (None, ConnectionLost, "host:1 cannot be reached"),
    ],
)
def test_why_there_is_no_connection(cause: Exception | None, kind: type[TransportError], words: str) -> None:
    error = transport_errors.no_connection("host:1", cause)
    assert type(error) is kind
    assert str(error).startswith(words)
    assert re.search(r"\. [A-Z]", str(error))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://user:secret@api.example:8443/v1?key=secret", "api.example:8443"),
        ("https://api.example/v1", "api.example"),
        ("http://[::1]:8080/v1", "::1:8080"),
        ("http://user:secret@", "an address without a host"),
        ("http://user:secret@host:port", "an invalid address"),
        ("http://[secret", "an invalid address"),
    ],
)
def test_a_message_shows_only_host_and_port_of_an_address(url: str, host: str) -> None:
    assert transport_errors.get_host(url) == host
