"""Which proxy the environment names for an address, and the words for what goes wrong on the way."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from asides.transports import transport_errors as faults
from asides.transports.proxy_and_tls import proxy_for, proxy_login
from asides.values.errors import ConfigError, ConnectionLost, TransportError

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://api.example/v1", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example/v1", {"https_proxy": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        ("https://api.example/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://api.example/v1", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://api.example/v1", {"ALL_PROXY": PROXY}, PROXY),
        ("https://api.example/v1", {"all_proxy": "http://other", "https_proxy": PROXY}, PROXY),
        ("https://api.example/v1", {"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        ("https://api.example/v1", {"HTTPS_PROXY": "  "}, None),
        ("https://api.example/v1", {"https_proxy": "", "HTTPS_PROXY": PROXY}, None),
        ("https://api.example/v1", {}, None),
        # A CGI script's environment holds the headers of strangers.
        ("http://api.example/v1", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, None),
        ("http://api.example/v1", {"http_proxy": PROXY, "REQUEST_METHOD": "GET"}, PROXY),
    ],
)
def test_the_proxy_for_an_address(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(url, environ) == proxy


@pytest.mark.parametrize(
    ("host", "exceptions", "direct"),
    [
        ("api.example", "api.example", True),
        ("API.example", "api.EXAMPLE", True),
        ("eu.api.example", "api.example", True),
        ("eu.api.example", ".api.example", True),
        ("eu.api.example", "*.api.example", True),
        ("myapi.example", "api.example", False),
        ("api.example", "other.example, api.example", True),
        ("api.example:8080", "api.example:8080", True),
        ("api.example:8081", "api.example:8080", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("[::1]", "::1", True),
        ("api.example", "10.0.0.0/8", False),
        ("api.example", "*", True),
        ("api.example", "", False),
        ("api.example", ",", False),
    ],
)
def test_who_is_reached_without_it(host: str, exceptions: str, direct: bool) -> None:
    found = proxy_for(f"https://{host}/v1", {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions})
    assert (found is None) is direct


def test_a_proxy_that_speaks_something_else_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError, match=r"proxy\.example:1080 is neither http nor https") as refused:
        proxy_for("https://api.example", {"ALL_PROXY": "socks5h://somebody:secret@proxy.example:1080"})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("proxy", "address", "login"),
    [
        ("http://proxy.example:3128", "http://proxy.example:3128", None),
        ("http://me:p%40ss@proxy.example:3128", "http://proxy.example:3128", "me:p@ss"),
        ("https://me@proxy.example", "https://proxy.example", "me:"),
    ],
)
def test_a_login_is_not_part_of_an_address(proxy: str, address: str, login: str | None) -> None:
    assert proxy_login(proxy) == (address, login)


@pytest.mark.parametrize(
    ("cause", "kind", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), ConnectionLost, "nobody listens at host:1"),
        (socket.gaierror(-2, "x"), ConnectionLost, "the name of host:1 cannot be looked up"),
        (OSError(errno.ENETUNREACH, "x"), ConnectionLost, "host:1 cannot be reached (Network is unreachable)"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] x"), TransportError, "no secure connection to host:1"),
        (None, ConnectionLost, "host:1 cannot be reached"),
    ],
)
def test_why_there_is_no_connection(cause: Exception | None, kind: type[TransportError], words: str) -> None:
    error = faults.not_connected("host:1", cause)
    assert type(error) is kind
    assert str(error).startswith(words)
    assert "To do:" in str(error)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://user:secret@api.example:8443/v1?key=secret", "api.example:8443"),
        ("https://api.example/v1", "api.example"),
        ("http://[::1]:8080/v1", "::1:8080"),
    ],
)
def test_of_an_address_only_host_and_port_are_told(url: str, place: str) -> None:
    assert faults.place_of(url) == place
