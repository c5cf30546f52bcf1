"""Errors of Redis in our own words, and which of them are outages."""

from __future__ import annotations

import ssl

import pytest
from redis import exceptions as errors

from asides_gateway.access.redis_errors import describe_problem, is_outage

SECRET = "hush-hush-42"


@pytest.mark.parametrize(
    ("problem", "words", "is_down"),
    [
        # As Redis 6 and as Redis 7 says it.
        (errors.ResponseError("Error running script: @user_script:1: -READONLY You can't write"), "replica", True),
        (errors.ReadOnlyError("You can't write against a read only replica."), "replica", True),
        (errors.OutOfMemoryError("command not allowed"), "memory", True),
        (errors.BusyLoadingError("Redis is loading"), "loading", True),
        (errors.AuthenticationError(f"WRONGPASS {SECRET}"), "password", True),
        (errors.ResponseError("MISCONF Redis is configured to save"), "save", True),
        (errors.NoPermissionError(f"no permissions {SECRET}"), "lacks rights", False),
        # As Redis 7 says it of a command inside a script.
        (errors.ResponseError("The user executing the script can't run this command"), "lacks rights", False),
        (errors.AuthenticationError("Authentication required."), "URL has none", True),
        (errors.ResponseError("DB index is out of range"), "database with the number", True),
        (errors.ConnectionError("max number of clients reached"), "no connection left", True),
        (errors.ResponseError(f"WRONGTYPE {SECRET}"), "ResponseError", False),
        (errors.TimeoutError(SECRET), "in time", True),
        (TimeoutError(SECRET), "in time", True),
        (errors.ConnectionError(SECRET), "reached", True),
        (ConnectionResetError(SECRET), "reached", True),
        (ssl.SSLError(SECRET), "TLS", True),
    ],
)
def test_errors_are_told_in_our_words(problem: Exception, words: str, is_down: bool) -> None:
    assert words in describe_problem(problem)
    assert SECRET not in describe_problem(problem)
    assert is_outage(problem) is is_down
