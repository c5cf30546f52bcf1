"""The tests' own walls: nothing leaves the machine, and nobody's keys are here."""

from __future__ import annotations

import os
import socket

import pytest


@pytest.mark.parametrize("host", ["192.0.2.1", "example.com", "2001:db8::1"])
def test_reaching_for_the_network_fails_the_test(host: str) -> None:
    with pytest.raises(BaseException, match="is not on this machine") as told:
        socket.create_connection((host, 9), timeout=1)
    assert not isinstance(told.value, Exception), "error handling under test could take it for its own"


def test_this_machine_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_no_key_and_no_proxy_of_whoever_runs_the_tests() -> None:
    telling = ("_API_KEY", "_PROXY", "_BASE_URL")
    assert [name for name in os.environ if name.upper().endswith(telling)] == []
