"""Deadlines: a connection is cut at its own, and at nobody else's."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

from asides.database import postgres_deadlines
from asides.database.postgres_deadlines import Deadlines, cut


def test_a_statement_ends_at_its_deadline_and_others_go_on(postgres_url: str) -> None:
    deadlines = Deadlines()
    with psycopg.connect(postgres_url) as one, psycopg.connect(postgres_url) as other:
        began = time.monotonic()
        with deadlines.watch(other, began + 30):
            # Added after one that ends much later.
            with pytest.raises(psycopg.OperationalError), deadlines.watch(one, began + 0.3):
                one.execute("SELECT pg_sleep(20)")
            assert 0.25 < time.monotonic() - began < 15
            assert other.execute("SELECT 1").fetchone() == (1,)
        with deadlines.watch(other, time.monotonic() + 0.05):
            pass
        time.sleep(0.3)
        assert other.execute("SELECT 1").fetchone() == (1,)
        assert deadlines._watched == {}
        cut(other)
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")
        other.close()
        cut(other)


def test_the_thread_ends_when_nobody_needs_it(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_deadlines, "_IDLE_SECONDS", 0.05)
    deadlines = Deadlines()
    with psycopg.connect(postgres_url) as connection:
        for _ in range(2):
            with deadlines.watch(connection, time.monotonic() + 5):
                assert any(thread.name == "asides-store-deadlines" for thread in threading.enumerate())
            until = time.monotonic() + 20
            while deadlines._has_thread and time.monotonic() < until:
                time.sleep(0.02)
            assert not deadlines._has_thread
