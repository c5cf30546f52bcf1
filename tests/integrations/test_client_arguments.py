"""The arguments of official clients, completed: the transport, and a key that goes nowhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from asides import ConfigError
from asides.integrations.client_arguments import ClientKeys, fill_arguments
from asides.integrations.client_requests import NO_KEY
from asides.integrations.httpx_transport import AsidesTransport

KEYS = ClientKeys(("api_key", "profile"), ("SOME_API_KEY",))


def fill(**arguments: Any) -> dict[str, Any]:
    return fill_arguments(arguments, lambda options: ("built", options), KEYS)


def test_a_client_without_a_key_gets_one_that_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fill(timeout=5) == {"timeout": 5, "api_key": NO_KEY, "http_client": ("built", None)}
    assert fill(api_key="sk", asides={"thinking": "high"}) == {
        "api_key": "sk", "http_client": ("built", {"thinking": "high"}),
    }  # fmt: skip
    assert "api_key" not in fill(profile="mine")
    monkeypatch.setenv("SOME_API_KEY", "sk-of-the-environment")
    assert "api_key" not in fill()


def test_an_http_client_needs_our_transport() -> None:
    ours: Any = SimpleNamespace(_transport=AsidesTransport())
    assert fill(http_client=ours)["http_client"] is ours
    with pytest.raises(ConfigError, match=r"[Ll]eave it out"):
        fill(http_client=SimpleNamespace(_transport=object()))
    with pytest.raises(ConfigError, match=r"[Pp]ass asides= to the transport"):
        fill(http_client=ours, asides={"thinking": "high"})
