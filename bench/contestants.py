"""All contestants, found by key (`"openai, sync"`)."""

from __future__ import annotations

from bench.contestant import Contestant
from bench.environments import find_python
from bench.floors import FLOORS
from bench.ours import OURS
from bench.peers import PEERS

CONTESTANTS = (*FLOORS, *OURS, *PEERS)


def find(key: str) -> Contestant:
    return next(contestant for contestant in CONTESTANTS if contestant.key == key)


def choose(dialect: str, *, peers: bool = True, mode: str | None = None) -> list[Contestant]:
    """The contestants that speak the dialect and are installed."""
    return [
        contestant
        for contestant in CONTESTANTS
        if dialect in contestant.dialects
        and (mode is None or contestant.mode == mode)
        and (peers or contestant.kind != "peer")
        and find_python(contestant.environment) is not None
    ]
