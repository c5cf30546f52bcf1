"""The type of a contestant: a name, an environment, and a function that reads one answer into a sink."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from bench.payloads import DIALECTS

Mode = Literal["sync", "async"]
Made = TypeVar("Made")


class Sink:
    """Collects the pieces that a contestant reads. Each attribute is called once per delta and only appends."""

    __slots__ = ("_pieces", "text", "thinking", "tool_arguments")

    def __init__(self) -> None:
        self._pieces: tuple[list[str], list[str], list[str]] = ([], [], [])
        self.thinking: Callable[[str], None] = self._pieces[0].append
        self.text: Callable[[str], None] = self._pieces[1].append
        self.tool_arguments: Callable[[str], None] = self._pieces[2].append

    def characters(self) -> tuple[int, int, int]:
        thinking, text, tool_arguments = (len("".join(pieces)) for pieces in self._pieces)
        return thinking, text, tool_arguments


# Reads one answer of a profile into the sink; a coroutine function when the mode is "async".
Read = Callable[[str, Sink], Awaitable[None] | None]


@dataclass(frozen=True)
class Contestant:
    name: str
    mode: Mode
    environment: str
    # (base url of the server, dialect) → Read. Imports the library: called only in the contestant's own process.
    build: Callable[[str, str], Read]
    kind: Literal["floor", "ours", "peer"] = "peer"
    dialects: tuple[str, ...] = DIALECTS
    # Whether it reads whole bodies too.
    reads_bodies: bool = True

    @property
    def key(self) -> str:
        return f"{self.name}, {self.mode}"


def cache_by_profile(make: Callable[[str], Made]) -> Callable[[str], Made]:
    """Build one client for each profile, which is part of its base url, so that connections are reused."""
    made: dict[str, Made] = {}

    def get(profile: str) -> Made:
        if profile not in made:
            made[profile] = make(profile)
        return made[profile]

    return get


Options = dict[str, Any]
