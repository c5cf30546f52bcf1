"""A store used by many processes and threads at once, with readers, and with kill -9 at any moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import asides
from asides.conversations.store import StoreConflict
from asides.conversations.store.database_store import DatabaseStore
from asides.database import StoreError
from tests.conversations.store.writers import SHARED, turn
from tests.stores import list_import_folders, open_place

HERE = Path(__file__).parent
PROCESSES, THREADS, TURNS = 3, 2, 12


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / program), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": list_import_folders()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills the children that it forks")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged(seed: int, store_place: str) -> None:
    out, err = start("killed.py", store_place, 15, seed).communicate(timeout=50)
    assert err == ""
    found = json.loads(out)
    # Some were killed while they wrote, and some before.
    assert found["acknowledged"] > 15
    assert found["silent"] > 0


def whole_turns(texts: list[str]) -> Counter[str]:
    """How many turns of each writer there are; all of them are whole and in the order they were written."""
    found: Counter[str] = Counter()
    assert len(texts) % 3 == 0
    for place in range(0, len(texts), 3):
        writer = texts[place].split()[-1].split("/")[0]
        assert texts[place : place + 3] == turn(writer, found[writer])
        found[writer] += 1
    return found


def test_processes_and_threads_that_write_at_once_lose_nothing_and_readers_see_whole_turns(store_place: str) -> None:
    writers = [start("writers.py", store_place, process, THREADS, TURNS) for process in range(PROCESSES)]
    looks: set[int] = set()
    with open_place(store_place) as store:
        while any(writer.poll() is None for writer in writers):
            if (kept := store.load(SHARED)) is not None:
                assert kept.about.length == len(kept.messages)
                looks.add(sum(whole_turns([message.text for message in kept.messages]).values()))
            time.sleep(0.01)
        assert [writer.communicate()[1] for writer in writers] == [""] * PROCESSES
        names = [f"{process}.{thread}" for process in range(PROCESSES) for thread in range(THREADS)]
        assert sorted(store.names()) == sorted([SHARED, *names])
        shared = store.load(SHARED)
        assert shared is not None
        assert whole_turns([message.text for message in shared.messages]) == dict.fromkeys(names, TURNS)
        turns = PROCESSES * THREADS * TURNS
        assert (shared.about.usage.input, shared.about.usage.output) == (turns, 2 * turns)
        for name in names:
            own = store.load(name)
            assert own is not None
            assert whole_turns([message.text for message in own.messages]) == {name: TURNS}
    # It was read while it was written, else this has shown nothing.
    assert len(looks) > 2


def test_of_two_processes_that_rewrite_one_is_refused(store_place: str) -> None:
    with open_place(store_place) as store:
        before = store.append(SHARED, [asides.user("mine")])
        assert start("writers.py", store_place, "other", 1, 1).communicate()[1] == ""
        with pytest.raises(StoreConflict) as caught:
            store.replace(SHARED, [], expected=before.version)
        after = store.load(SHARED)
    assert after is not None
    assert [message.text for message in after.messages] == ["mine", *turn("other.0", 0)]
    assert (caught.value.expected, caught.value.found) == (before.version, after.about.version)


# --- two at the same moment -------------------------------------------------------------------------------------------


def at_once(place: str, *works: Callable[[DatabaseStore], object]) -> list[object]:
    """What each work gives, or its error. All begin together, each with connections of its own."""
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[DatabaseStore], object]) -> object:
        with open_place(place) as store:
            store.names()
            barrier.wait()
            try:
                return work(store)
            except StoreError as problem:
                return problem

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def replacing(text: str, expected: int) -> Callable[[DatabaseStore], object]:
    return lambda store: store.replace("talk", [asides.user(text)], expected=expected)


def test_of_many_that_replace_the_same_version_one_wins(store_place: str) -> None:
    version = 0
    with open_place(store_place) as store:
        for _ in range(3):
            done = at_once(store_place, *(replacing(str(n), version) for n in range(6)))
            (winner,) = (n for n, each in enumerate(done) if not isinstance(each, StoreConflict))
            kept = store.load("talk")
            assert kept is not None
            assert [message.text for message in kept.messages] == [str(winner)]
            assert kept.about == done[winner]
            version = kept.about.version
            assert {each.found for each in done if isinstance(each, StoreConflict)} == {version}


def renaming(name: str) -> Callable[[DatabaseStore], object]:
    return lambda store: store.rename(name, "new")


def test_of_many_that_rename_to_one_name_one_wins(store_place: str) -> None:
    with open_place(store_place) as store:
        for n in range(6):
            store.append(str(n), [asides.user(str(n))])
        done = at_once(
            store_place, *(renaming(str(n)) for n in range(6)), lambda other: other.append("new", [asides.user("more")])
        )
        winners = [n for n, each in enumerate(done[:6]) if each is True]
        assert len(winners) <= 1
        assert all(isinstance(each, StoreError) for n, each in enumerate(done[:6]) if n not in winners)
        kept = store.load("new")
        assert kept is not None
        # Who appends comes after the one that gets the name, or before all of them, and then nobody gets it.
        assert [message.text for message in kept.messages] == [*map(str, winners), "more"]
        assert len(store.names()) == 7 - len(winners)


def test_versions_grow_whoever_writes_and_whatever_is_deleted(store_place: str) -> None:
    seen: list[list[int]] = [[] for _ in range(4)]

    def write(place: int) -> Callable[[DatabaseStore], object]:
        def work(store: DatabaseStore) -> None:
            for number in range(15):
                seen[place].append(store.append("talk", [asides.user(f"{place}.{number}")]).version)
                if number % 5 == place:
                    store.delete("talk")

        return work

    assert at_once(store_place, *map(write, range(4))) == [None] * 4
    versions = [version for each in seen for version in each]
    assert len(set(versions)) == len(versions)
    assert all(each == sorted(each) for each in seen)
    with open_place(store_place) as store:
        kept = store.load("talk")
        assert kept is not None
        assert kept.about.length == len(kept.messages)
        assert kept.about.version == max(versions)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_uses_a_connection_of_its_own(store_place: str) -> None:
    program = """if True:
        import os, sys
        from asides.values.messages import user
        from tests.stores import open_place
        store = open_place(sys.argv[1])
        store.append("talk", [user("parent")])
        pid = os.fork()
        store.append("talk", [user("both")])
        if pid == 0:
            store.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        store.append("talk", [user("parent again")])
        print([message.text for message in store.load("talk").messages])
        store.close()
    """
    # Threads of the parent, which a server needs, are not in the child; Python says so.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", program, store_place],
        env={**os.environ, "PYTHONPATH": list_import_folders()},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == str(["parent", "both", "both", "parent again"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_of_a_fork_leaves_the_file_of_its_parent_alone(tmp_path: Path) -> None:
    program = """if True:
        import os, sys
        from asides.values.messages import user
        from asides.conversations.store.sqlite import SqliteStore
        store = SqliteStore(sys.argv[1])
        store.append("talk", [user("parent")])
        parents = store._file._pool._idle[0]
        if (pid := os.fork()) == 0:
            store.append("talk", [user("child")])
            assert store._file._pool._idle[0] is not parents
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path / "store.db")],
        env={**os.environ, "PYTHONPATH": list_import_folders()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
