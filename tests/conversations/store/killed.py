"""Writers that are killed at random moments, again and again, and what is found afterwards. Run as a program:

    python killed.py PLACE ROUNDS SEED

Forks its writers, which a process without threads may do; prints what it found as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from typing import NoReturn

from asides.values.messages import assistant, user
from tests.stores import open_place

SHARED = "shared"
WRITERS = 2


def turn(writer: str, number: int) -> list[str]:
    """The words of a turn: both say whose it is."""
    return [f"question {writer}/{number}", f"answer {writer}/{number}"]


def write_until_killed(path: str, writer: str, acknowledgements: int) -> NoReturn:
    """Append numbered turns and acknowledge each, behind its commit and not before."""
    store = open_place(path)
    number = 0
    while True:
        question, answer = turn(writer, number)
        store.append(SHARED, [user(question), assistant(answer)])
        os.write(acknowledgements, b".")
        time.sleep(0.0005)
        number += 1


def one_round(path: str, number: int, chance: random.Random) -> dict[str, int]:
    """Start writers, kill them, and say how many turns each had acknowledged."""
    started: list[tuple[str, int, int]] = []
    for place in range(WRITERS):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reading)
                write_until_killed(path, f"{number}.{place}", writing)
            finally:
                os._exit(1)
        os.close(writing)
        started.append((f"{number}.{place}", pid, reading))
    acknowledged: dict[str, int] = {}
    for writer, pid, reading in started:
        # From before the file is opened to some turns later; counted and not timed, since machines are busy.
        count = sum(len(os.read(reading, 1)) for _ in range(chance.choice((0, 0, 1, 3, 8))))
        time.sleep(0.002 * chance.random())
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"writer {writer} ended by itself")
        while more := os.read(reading, 4096):
            count += len(more)
        os.close(reading)
        acknowledged[writer] = count
    return acknowledged


def main(path: str, rounds: int, seed: int) -> None:
    """Run the rounds; after each, every acknowledged turn has to be there, whole and in order."""
    chance = random.Random(seed)
    acknowledged: dict[str, int] = {}
    for number in range(rounds):
        acknowledged |= one_round(path, number, chance)
        with open_place(path) as store:
            kept = store.load(SHARED)
        texts = [] if kept is None else [message.text for message in kept.messages]
        if kept is not None and kept.about.length != len(texts):
            raise SystemExit("the length is not that of the messages")
        found: dict[str, int] = {}
        for place in range(0, len(texts), 2):
            writer = texts[place].split()[1].split("/")[0]
            if texts[place : place + 2] != turn(writer, found.get(writer, 0)):
                raise SystemExit(f"not a turn: {texts[place : place + 2]}")
            found[writer] = found.get(writer, 0) + 1
        for writer, count in acknowledged.items():
            # One may be committed and not yet acknowledged.
            if not count <= found.get(writer, 0) <= count + 1:
                raise SystemExit(f"{writer} acknowledged {count} turns and {found.get(writer, 0)} are there")
    sys.stdout.write(
        json.dumps({"acknowledged": sum(acknowledged.values()), "silent": list(acknowledged.values()).count(0)})
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
