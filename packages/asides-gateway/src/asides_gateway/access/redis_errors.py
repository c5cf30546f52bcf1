"""What an error of Redis means: `describe_problem` says why a command failed, `is_outage` whether the server is down.

`is_refusal` says whether the user of the URL lacks a right.
"""

from __future__ import annotations

import re
import ssl

_CODES = {
    "WRONGPASS": "it refuses the user or the password of the URL",
    "NOAUTH": "it needs a password, and the URL has none",
    "NOPERM": "its user lacks rights: EVALSHA and EVAL, all commands that the docs list, and the keys and "
    "channels asides:*",
    "READONLY": "it is a read-only replica",
    "OOM": "it has no memory left",
    "LOADING": "it is still loading its data",
    "MISCONF": "it cannot save its data, and refuses writes until it can",
    "MASTERDOWN": "it is a replica whose master is away",
    "MOVED": "it is one node of a cluster, and the key belongs to another one",
    "CLUSTERDOWN": "its cluster is down",
    "BUSY": "it is busy with another script",
    "NODB": "it has no database with the number of the URL",
    "MAXCLIENTS": "it has no connection left",
}
"""What the first word of an error of the server means. For an error inside a script it may be anywhere in the text."""
_KINDS = {
    "AuthenticationError": "WRONGPASS",
    "AuthorizationError": "WRONGPASS",
    "NoPermissionError": "NOPERM",
    "ReadOnlyError": "READONLY",
    "OutOfMemoryError": "OOM",
    "BusyLoadingError": "LOADING",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "AskError": "MOVED",
    "ClusterDownError": "CLUSTERDOWN",
}
"""The errors for which redis-py has classes: their texts lack the first word."""
_TEXTS = {
    "The user executing the script can't": "NOPERM",
    "DB index is out of range": "NODB",
    "max number of clients reached": "MAXCLIENTS",
    "Authentication required": "NOAUTH",
}
"""What errors without a first word of their own mean, by a part of their text."""
_CODE = re.compile(rf"\b({'|'.join(_CODES)})\b")


def is_outage(problem: BaseException) -> bool:
    """Whether any other command would fail too."""
    from redis.exceptions import ResponseError

    return not isinstance(problem, ResponseError) or _find_code(problem) not in ("", "NOPERM")


def is_refusal(problem: BaseException) -> bool:
    """Whether the user of the URL lacks a right."""
    return _find_code(problem) == "NOPERM"


def _find_code(problem: BaseException) -> str:
    """The first word of an error of the server, if it is one that we know."""
    text = str(problem)
    for part, code in _TEXTS.items():
        if part in text:
            return code
    for kind in type(problem).__mro__:
        if kind.__name__ in _KINDS:
            return _KINDS[kind.__name__]
    found = _CODE.search(text)
    return "" if found is None else found[0]


def describe_problem(problem: BaseException) -> str:
    """Why a command failed, without the server's text, which may repeat the command."""
    from redis.exceptions import RedisError, ResponseError
    from redis.exceptions import TimeoutError as RedisTimeout

    if isinstance(problem, RedisError) and (code := _find_code(problem)):
        return _CODES[code]
    if isinstance(problem, (TimeoutError, RedisTimeout)):
        return "it did not answer in time"
    if any(isinstance(each, ssl.SSLError) for each in _list_causes(problem)):
        return "its TLS or its certificate is refused"
    return type(problem).__name__ if isinstance(problem, ResponseError) else "it cannot be reached"


def _list_causes(problem: BaseException | None) -> list[BaseException]:
    """An error, and those that it comes from."""
    found: list[BaseException] = []
    while problem is not None and problem not in found:
        found.append(problem)
        problem = problem.__cause__ or problem.__context__
    return found
