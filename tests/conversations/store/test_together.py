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
from asides.conversations.store.sqlite import SqliteStore
from tests.conversations.store.writers import SHARED, turn

HERE = Path(__file__).parent
PROCESSES, THREADS, TURNS = 3, 2, 12


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / program), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(Path(asides.__file__).parent.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills the children that it forks")
@pytest.mark.parametrize("seed", [1, 2])
def test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged(seed: int, tmp_path: Path) -> None:
    out, err = start("killed.py", tmp_path / "store.db", 15, seed).communicate(timeout=50)
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


def test_processes_and_threads_that_write_at_once_lose_nothing_and_readers_see_whole_turns(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    writers = [start("writers.py", path, process, THREADS, TURNS) for process in range(PROCESSES)]
    looks: set[int] = set()
    with SqliteStore(path) as store:
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


def test_of_two_processes_that_rewrite_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        before = store.append(SHARED, [asides.user("mine")])
        assert start("writers.py", path, "other", 1, 1).communicate()[1] == ""
        with pytest.raises(StoreConflict) as caught:
            store.replace(SHARED, [], expected=before.version)
        after = store.load(SHARED)
    assert after is not None
    assert [message.text for message in after.messages] == ["mine", *turn("other.0", 0)]
    assert (caught.value.expected, caught.value.found) == (before.version, after.about.version)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_uses_a_connection_of_its_own(tmp_path: Path) -> None:
    program = """if True:
        import os, sys
        from asides.values.messages import user
        from asides.conversations.store.sqlite import SqliteStore
        store = SqliteStore(sys.argv[1])
        store.append("talk", [user("parent")])
        parents = store._file._pool._idle[0]
        pid = os.fork()
        store.append("talk", [user("both")])
        if pid == 0:
            assert store._file._pool._idle[0] is not parents
            store.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        store.append("talk", [user("parent again")])
        print([message.text for message in store.load("talk").messages])
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path / "store.db")],
        env={**os.environ, "PYTHONPATH": str(Path(asides.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == str(["parent", "both", "both", "parent again"])
