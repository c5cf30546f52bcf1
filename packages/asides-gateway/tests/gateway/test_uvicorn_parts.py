"""What the gateway extends and uses of uvicorn, beyond its documented interface, is still there."""

from __future__ import annotations

import importlib.metadata
from inspect import signature
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

VERSION = importlib.metadata.version("uvicorn")


def explain(owner: str, missing: list[str]) -> str:
    return (
        f"uvicorn {VERSION}: {owner} no longer has {', '.join(missing)}, which client_connection.py, http_server.py or "
        "drain.py uses. Adapt them, or exclude this version in pyproject.toml."
    )


async def no_app(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError


@pytest.mark.parametrize(
    ("owner", "methods"),
    [
        (uvicorn.Server, ["serve", "startup", "main_loop", "shutdown", "on_tick", "capture_signals"]),
        (
            HttpToolsProtocol,
            [
                *("connection_made", "connection_lost", "data_received", "timeout_keep_alive_handler", "shutdown"),
                *("on_message_begin", "on_headers_complete", "on_message_complete", "send_400_response"),
            ],
        ),
    ],
)
def test_the_methods_that_are_extended_exist(owner: type[object], methods: list[str]) -> None:
    missing = [name for name in methods if not callable(getattr(owner, name, None))]
    assert not missing, explain(owner.__name__, missing)


async def test_the_attributes_that_are_used_exist() -> None:
    config = uvicorn.Config(no_app, log_config=None, lifespan="off")
    config.load()
    server = uvicorn.Server(config)
    connection = HttpToolsProtocol(config=config, server_state=ServerState(), app_state={})
    connection.on_message_begin()
    for owner, names in (
        (server, ["config", "server_state", "should_exit"]),
        (server.server_state, ["connections", "tasks"]),
        (
            connection,
            [
                *("access_log", "config", "connections", "cycle", "headers", "logger", "loop", "parser", "scope"),
                *("transport", "url"),
            ],
        ),
    ):
        missing = [name for name in names if not hasattr(owner, name)]
        assert not missing, explain(type(owner).__name__, missing)


def test_a_cycle_has_what_a_connection_changes_in_it() -> None:
    code = RequestResponseCycle.__init__.__code__
    names = ["transport", "chunked_encoding", "expected_content_length", "response_complete", "response_started"]
    missing = [name for name in names if name not in code.co_names]
    assert not missing, explain("RequestResponseCycle", missing)


def test_the_arguments_that_are_passed_exist() -> None:
    names = [
        *("http", "ws", "lifespan", "interface", "log_config", "proxy_headers", "server_header", "backlog"),
        "timeout_keep_alive",
    ]
    missing = [name for name in names if name not in signature(uvicorn.Config.__init__).parameters]
    assert not missing, explain("Config", missing)
    missing = [
        name
        for name in ("config", "server_state", "app_state")
        if name not in signature(HttpToolsProtocol.__init__).parameters
    ]
    assert not missing, explain("HttpToolsProtocol", missing)
