"""Owners of claims: a process that has ended is known, and no other is taken for it."""

from __future__ import annotations

import subprocess
import sys
import time

from asides_batch.leases import create_owner, has_ended


def test_a_running_process_has_not_ended() -> None:
    mine, again = create_owner(), create_owner()
    assert mine != again
    assert not has_ended(mine)


def test_a_process_that_was_killed_has_ended_also_before_anybody_waited_for_it() -> None:
    code = "from asides_batch.leases import create_owner; print(create_owner(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        owner = child.stdout.readline().decode().strip()
        assert not has_ended(owner)
        child.kill()
        child.stdout.read()
        # Its pipe ends a moment before it does.
        deadline = time.monotonic() + 20
        while not has_ended(owner) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert has_ended(owner)


def test_a_number_that_was_given_out_again_is_another_process() -> None:
    machine, pid, start, token = create_owner().split("|")
    assert has_ended("|".join((machine, pid, f"{start}0", token)))


def test_nobody_knows_about_other_machines() -> None:
    _, pid, start, token = create_owner().split("|")
    for owner in (f"elsewhere|{pid}|{start}|{token}", "", "me", "|||"):
        assert not has_ended(owner)
