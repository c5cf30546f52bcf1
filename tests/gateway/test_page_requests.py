"""Requests of the page: errors as JSON, with what to do."""

from __future__ import annotations

import pytest

from asides.conversations.store import StoreConflict, StoreError
from asides.gateway.page_requests import describe_error, find_status, name_error
from asides.values.errors import AsidesError, ConfigError, ConnectionLost, MissingKey, RateLimited, UnknownModel


@pytest.mark.parametrize(
    ("problem", "code", "status"),
    [
        (UnknownModel("no"), "unknown_model", 400),
        (MissingKey("Acme", ("ACME_KEY",)), "missing_key", 400),
        (ConfigError("no"), "config_error", 400),
        (StoreError("no"), "store_error", 503),
        (StoreConflict("no", name="x", expected=1, found=2), "store_conflict", 409),
        (ConnectionLost("no"), "connection_lost", 502),
    ],
)
def test_an_error_has_a_code_and_a_status(problem: AsidesError, code: str, status: int) -> None:
    assert (name_error(problem), find_status(problem)) == (code, status)
    assert describe_error(problem) == {"message": str(problem), "code": code}


def test_an_error_of_a_provider_has_its_status_too() -> None:
    problem = RateLimited("too many", status=429)
    described = describe_error(problem)
    assert (described["code"], described["status"]) == ("rate_limited", 429)
