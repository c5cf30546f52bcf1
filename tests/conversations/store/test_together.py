"""A store used by many processes and threads at once, with readers, and with kill -9 at any moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import asides
from asides.conversations.store import StoreConflict
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
@pytest.mark.parametrize("seed", [1, 2])
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


def test_a_child_of_a_fork_leaves_the_file_of_its_parent_alone(tmp_path: Path) -> None:
    program = """if True:
        import os, sys
        from asides.values.messages import user
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
