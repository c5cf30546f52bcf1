"""Databases of a gateway, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.database import Database
from tests.gateway.access.key_records import open_place
from tests.gateway.access.limited_gateway import PlayedStage


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder for a file, or the URL of a database."""
    return str(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def database(place: str) -> Iterator[Database]:
    opened = open_place(place)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def stage() -> Iterator[PlayedStage]:
    played = PlayedStage()
    with played.stage:
        yield played
