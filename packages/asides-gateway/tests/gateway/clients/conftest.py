"""One gateway for all tests of the makers' clients: a process takes a second to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.clients.gateway_before_stage import GatewayBeforeStage, Notebook, serve_before_stage


@pytest.fixture(scope="session")
def _gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayBeforeStage]:
    with serve_before_stage(tmp_path_factory.mktemp("gateway")) as before:
        yield before


@pytest.fixture
def gateway(_gateway: GatewayBeforeStage) -> GatewayBeforeStage:
    """The gateway, with the stage's actor behind it."""
    _gateway.play()
    return _gateway


@pytest.fixture
def accepted(gateway: GatewayBeforeStage) -> Iterator[GatewayBeforeStage]:
    """The gateway; the test fails if the stage refuses one of its requests."""
    gateway.play()
    with gateway.stage.expect_no_refusals():
        yield gateway


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)
