"""Check the servers of the settings: `check_servers` says whether PostgreSQL and Redis answer, and can be used.

It waits a few seconds at most, whatever the servers do, and shows no password.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from asides.database.migrate import check
from asides.database.postgres_url import describe_url
from asides.values.errors import AsidesError
from asides_gateway.access.redis_link import RedisDown, check_redis, describe_redis

SECONDS = 5.0
"""How long the check of all servers may take together."""
_REDIS_SECONDS = 3.0


class ServerCheck(msgspec.Struct):
    """The result of checking one server."""

    name: str
    """The setting that names it: `store`, or `gateway.redis`."""
    place: str
    """The server, without user and password."""
    is_sound: bool = False
    text: str = ""
    """What is known of it, or what is wrong and what to do."""


def check_servers(store: str | None, redis: str | None, *, seconds: float = SECONDS) -> list[ServerCheck]:
    """Ask the servers that are set, both at once. A server that is None is left out."""
    checks: list[ServerCheck] = []
    threads: list[threading.Thread] = []
    asked: list[tuple[str, str | None, Callable[[str], str], Callable[[str], str]]] = [
        ("store", store, describe_url, _ask_postgres),
        ("gateway.redis", redis, describe_redis, _ask_redis),
    ]
    for name, url, describe, ask in asked:
        if url is None:
            continue
        place = _describe(url, describe)
        found = ServerCheck(name, place, text=f"{place} did not answer within {seconds:g} seconds. Check that server.")
        checks.append(found)
        # In a thread, since a server may accept a connection and then say nothing.
        threads.append(threading.Thread(target=_ask, args=(found, url, ask), name="asides-check", daemon=True))
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    # Copies, so that a late answer changes nothing.
    return [msgspec.structs.replace(found) for found in checks]


def _describe(url: str, describe: Callable[[str], str]) -> str:
    try:
        return describe(url)
    except ValueError:
        return "the server"  # The URL is wrong, which asking the server reports.


def _ask(found: ServerCheck, url: str, ask: Callable[[str], str]) -> None:
    began = time.monotonic()
    try:
        more = ask(url)
    except AsidesError as problem:
        found.text = str(problem)
        return
    found.text = f"{found.place} answered in {(time.monotonic() - began) * 1000:.0f} ms{more}"
    found.is_sound = True


def _ask_postgres(url: str) -> str:
    state = check(url)
    if state.missing:
        named = ", ".join(step.label for step in state.missing)
        raise AsidesError(
            f"{describe_url(url)} answers, but steps of its tables are missing: {named}. Run `asides store migrate`."
        )
    if state.is_read_only:
        raise AsidesError(
            f"{describe_url(url)} answers, but it is read-only. Name the primary in the URL, "
            "or all servers with target_session_attrs=read-write."
        )
    newer = f"; a newer asides made {', '.join(state.newer)}, with which this one can work" if state.newer else ""
    return f", and has all tables{newer}"


def _ask_redis(url: str) -> str:
    try:
        check_redis(url, _REDIS_SECONDS)
    except RedisDown as problem:
        raise AsidesError(
            f"Redis at {describe_redis(url)} cannot be used: {problem}. Check that server, and the setting "
            "gateway.redis."
        ) from None
    return ", and takes scripts that write"
