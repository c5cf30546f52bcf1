"""The sockets of a gateway: one port for all addresses of a host, and errors that say what to do."""

from __future__ import annotations

import os
import socket

import pytest

from asides.values.errors import ConfigError
from asides_gateway.listen import check_free, close_sockets, name_address, open_sockets


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_all_addresses_of_a_host_get_one_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [("127.0.0.1", 0), ("127.0.0.2", 0)]
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
    opened = open_sockets("two.example", 0)
    try:
        assert [each.getsockname()[0] for each in opened] == ["127.0.0.1", "127.0.0.2"]
        assert len({each.getsockname()[1] for each in opened}) == 1
    finally:
        close_sockets(opened)


def test_an_address_is_named_as_clients_write_it() -> None:
    for host, name in (("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:")):
        (opened,) = open_sockets(host, 0)
        with opened:
            assert name_address(opened) == f"{name}{opened.getsockname()[1]}"


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_address_of_ipv6_stands_in_brackets(host: str) -> None:
    (opened,) = open_sockets(host, 0)
    with opened:
        assert name_address(opened) == f"http://[::1]:{opened.getsockname()[1]}"


@pytest.mark.parametrize("shares", [False, True])
def test_a_port_in_use_is_an_error(shares: bool) -> None:
    (taken,) = open_sockets("127.0.0.1", 0, shares=shares)
    with taken:
        taken.listen()
        port: int = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is in use"):
            check_free("127.0.0.1", port)
        if shares:
            close_sockets(open_sockets("127.0.0.1", port, shares=True))
    check_free("127.0.0.1", port)


def test_an_address_of_others_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 0))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
    with pytest.raises(ConfigError, match=r"192\.0\.2\.7 is not an address of this machine"):
        open_sockets("192.0.2.7", 0)


def test_a_name_that_nobody_knows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", fail)
    with pytest.raises(ConfigError, match=r"cannot resolve the address no\.such\.host"):
        open_sockets("no.such.host", 0)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the administrator may use every port")
def test_a_port_of_the_system_is_an_error() -> None:
    with pytest.raises(ConfigError, match="above 1023"):
        open_sockets("127.0.0.1", 80)
