"""One shared server over stdio and one over HTTP, for tests that only call it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asides.agents.mcp.mcp_server import McpServer
from tests.agents.mcp.running import at_loopback, official


@pytest.fixture(scope="session", params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Iterator[McpServer]:
    """An open server. It is shared: no test ends it or changes its tools."""
    if request.param == "stdio":
        with official(name="test") as child:
            yield child
    else:
        with at_loopback() as (url, _), McpServer.http(url, name="test") as there:
            yield there
