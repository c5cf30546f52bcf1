"""A process of several threads that append turns to one conversation and to their own. Run as a program:

python writers.py PLACE PROCESS THREADS TURNS
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from asides.values.messages import assistant, user
from asides.values.usage import Usage
from tests.stores import open_place

SHARED = "shared"


def turn(writer: str, number: int) -> list[str]:
    """The words of a turn of three messages: all say whose it is."""
    return [f"{what} {writer}/{number}" for what in ("question", "thought of it", "answer")]


def main(path: str, process: str, threads: int, turns: int) -> None:
    """Write, and end."""
    store = open_place(path)

    def write(thread: int) -> None:
        writer = f"{process}.{thread}"
        for number in range(turns):
            question, more, answer = turn(writer, number)
            for name in (SHARED, writer):
                store.append(name, [user(question), assistant(more), assistant(answer)], spent=Usage(input=1, output=2))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(threads)))
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
