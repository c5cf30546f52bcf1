"""The servers that tests use can be started here: tests that need them are skipped only where no wheel is made."""

from __future__ import annotations

import sys

import pytest

from tests.servers import find_postgres, find_redis


@pytest.mark.skipif(sys.platform == "win32" or sys.version_info >= (3, 13), reason="there are no wheels of the servers")
def test_the_servers_are_installed() -> None:
    assert (find_postgres() / "initdb").is_file()
    assert find_redis()
