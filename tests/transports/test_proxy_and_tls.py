"""Which proxy the environment names for an address."""

from __future__ import annotations

import pytest

from asides.transports.proxy_and_tls import find_proxy, split_proxy_login
from asides.values.errors import ConfigError

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
    assert find_proxy(url, environ) == proxy


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
        ("api.example", "api.example:443", True),
        ("api.example", "api.example:80", False),
        ("api.example.", "api.example", True),
        ("[::1]:8080", "[::1]:8080", True),
        ("[::1]:8081", "[::1]:8080", False),
        ("[::1]", "[::1]", True),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("[::1]", "::1", True),
        ("api.example", "10.0.0.0/8", False),
        ("api.example", "*", True),
        ("api.example", "", False),
        ("api.example", ",", False),
    ],
)
def test_no_proxy_names_the_hosts_that_are_reached_directly(host: str, exceptions: str, direct: bool) -> None:
    found = find_proxy(f"https://{host}/v1", {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions})
    assert (found is None) is direct


def test_a_proxy_that_speaks_something_else_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError, match=r"proxy\.example:1080 is neither http nor https") as refused:
        find_proxy("https://api.example", {"ALL_PROXY": "socks5h://somebody:secret@proxy.example:1080"})
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
    assert split_proxy_login(proxy) == (address, login)


@pytest.mark.parametrize("proxy", ["http://[::1", "http://:8080", "http://me:secret/word@proxy.example", "h:99999"])
def test_a_proxy_without_a_valid_address_is_a_mistake_of_the_settings(proxy: str) -> None:
    with pytest.raises(ConfigError, match="the proxy is not a valid address") as raised:
        find_proxy("https://api.example", {"HTTPS_PROXY": proxy})
    assert "secret" not in str(raised.value)
