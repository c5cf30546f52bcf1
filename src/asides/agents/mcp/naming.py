"""What the tools of a server are called here, and which of them are taken. Pure. Not here: the server."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

LONGEST = 64
"""What every provider takes for the name of a tool: this many of the characters a-z A-Z 0-9 _ and -."""

_STRANGE = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST = 8


def spelled(name: str) -> str:
    """`name` with a `_` for each character that providers do not take."""
    return _STRANGE.sub("_", name)


def wanted(name: str, allow: Sequence[str], deny: Sequence[str]) -> bool:
    """Whether a tool is taken: its own name fits a pattern of `allow` and none of `deny`."""
    return any(fnmatchcase(name, pattern) for pattern in allow) and not any(
        fnmatchcase(name, pattern) for pattern in deny
    )


def public_names(server: str, names: Iterable[str]) -> dict[str, str]:
    """The server's own name of each tool, and the one that the model sees: `server__tool`, or `tool` without a server.

    Names are cut and respelled where providers would refuse them. Where that makes two of them alike, and where one
    was cut, a digest of its own name goes behind it, so a name depends neither on the order of the list nor on the run.
    """
    own = list(dict.fromkeys(names))
    plain = {name: f"{server}__{name}" if server else name for name in own}
    alike: dict[str, int] = {}
    for name in own:
        alike[spelled(plain[name])] = alike.get(spelled(plain[name]), 0) + 1
    return {name: _fitted(plain[name], alone=alike[spelled(plain[name])] == 1) for name in own}


def _fitted(plain: str, *, alone: bool) -> str:
    name = spelled(plain)
    if len(name) <= LONGEST and (alone or name == plain):
        return name
    digest = hashlib.sha256(plain.encode()).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST - _DIGEST - 1]}_{digest}"
