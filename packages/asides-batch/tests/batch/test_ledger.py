"""The ledger of a batch on both engines: nothing that was acknowledged is claimed again, and counts never drift."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from asides.database import Database, Queries, Query
from asides.values.errors import ConfigError
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import (
    BatchRecord,
    ExchangeResult,
    LoadedRow,
    Outcome,
    RequestEstimate,
    RunLimits,
    create_record,
)

NO_LIMITS = RunLimits()
NOBODY_ENDED = frozenset[str]().__contains__


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    place = str(tmp_path / "out.jsonl.ledger") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_ledger_database(place)
    yield opened
    opened.close()


def describe(plan: str = "p", source: str = "s") -> BatchRecord:
    return create_record("b", plan_digest=plan, source_digest=source)


def begin(database: Database, hashes: str = "abc", plan: str = "p", source: str = "s") -> Ledger:
    ledger = Ledger("b")
    record = database.run(lambda: ledger.begin(describe(plan, source), NOBODY_ENDED))
    if record.state == "loading":
        rows = [LoadedRow(place, hash_, place, None, hash_.encode()) for place, hash_ in enumerate(hashes)]
        database.run(lambda: ledger.load(rows, record.version))
        database.run(lambda: ledger.finish_loading(len(rows), record.version))
    return ledger


def claim(
    database: Database,
    ledger: Ledger,
    want: int = 10,
    *outcomes: Outcome,
    owner: str = "me",
    limits: RunLimits = NO_LIMITS,
    version: int = 0,
    pause: float = 0.0,
) -> ExchangeResult:
    return database.run(lambda: ledger.exchange(owner, outcomes, want, limits, version=version, pause=pause))


def names(exchange: ExchangeResult) -> list[str]:
    return [claimed.hash for claimed in exchange.claims]


def done(hash_: str, cost: int | None = 5) -> Outcome:
    return Outcome(hash_, True, b'{"text": "yes"}', 3, 2, 1, cost)


def failed(hash_: str) -> Outcome:
    return Outcome(hash_, False, b'{"error": {}}')


def test_what_is_claimed_or_done_is_not_claimed_again(database: Database) -> None:
    ledger = begin(database, "abab c".replace(" ", ""))
    assert names(claim(database, ledger, 2)) == ["a", "b"]
    assert names(claim(database, ledger, owner="you")) == ["c"]
    record = claim(database, ledger, 10, done("a"), failed("b")).record
    assert (record.row_count, record.requests, record.done, record.failed, record.left) == (5, 3, 1, 1, 1)
    assert (record.input_tokens, record.output_tokens, record.thinking_tokens, record.cost) == (3, 2, 1, 5)
    rows = database.run(lambda: ledger.join(0, 100), writes=False)
    assert [(row.place, row.id, row.hash, row.state) for row in rows] == [
        (0, 0, "a", "done"),
        (1, 1, "b", "failed"),
        (2, 2, "a", "done"),
        (3, 3, "b", "failed"),
        (4, 4, "c", "claimed"),
    ]
    assert rows[2].result == b'{"text": "yes"}'
    assert [row.place for row in database.run(lambda: ledger.join(3, 1), writes=False)] == [3]


def test_a_new_run_asks_what_failed_and_nothing_else(database: Database) -> None:
    ledger = begin(database)
    claim(database, ledger)
    claim(database, ledger, 0, done("a"), failed("b"), done("c"))
    again = begin(database)
    assert names(claim(database, again)) == ["b"]


def test_the_same_news_twice_counts_once(database: Database) -> None:
    ledger = begin(database)
    claim(database, ledger)
    claim(database, ledger, 0, done("a"))
    record = claim(database, ledger, 0, done("a")).record
    assert (record.done, record.cost) == (1, 5)


def test_who_lost_a_lease_pays_but_does_not_count_twice(database: Database) -> None:
    late = Ledger("b", clock=lambda: 1e12)
    ledger = begin(database, "a")
    claim(database, ledger)
    if database.is_shared:  # The clock is the server's.
        database.run(lambda: late.release_ended(lambda owner: owner == "me"))
    assert names(claim(database, late, owner="you")) == ["a"]
    assert claim(database, ledger, 0, done("a", 7)).record.done == 1
    record = claim(database, ledger, 0, done("a"), owner="you").record
    assert (record.done, record.cost, record.left) == (1, 12, 0)


def test_an_owner_that_ended_gives_its_claims_and_its_money_back(database: Database) -> None:
    limits = RunLimits(max_cost=100, estimate=lambda _: RequestEstimate(1, 1, 40))
    ledger = begin(database)
    first = claim(database, ledger, limits=limits)
    assert names(first) == ["a", "b"]
    assert (first.has_reached_max_cost, first.record.reserved) == (True, 80)
    assert names(claim(database, ledger, owner="you", limits=limits)) == []
    assert database.run(lambda: ledger.release_ended(lambda owner: owner == "me")) == 0
    again = claim(database, ledger, owner="you", limits=limits)
    assert (names(again), again.record.reserved) == (["a", "b"], 80)
    database.run(lambda: ledger.release("you", {"b"}))
    record = claim(database, ledger, 0, done("b", 3)).record
    assert (record.reserved, record.cost) == (0, 3)


def test_the_limit_of_cost_is_never_passed(database: Database) -> None:
    limits = RunLimits(max_cost=10, estimate=lambda _: RequestEstimate(1, 1, 5))
    ledger = begin(database, "abcdefgh")
    asked: list[str] = []
    exchange = claim(database, ledger, limits=limits)
    while exchange.claims:
        asked += names(exchange)
        outcomes = [done(hash_, 4) for hash_ in names(exchange)]
        exchange = claim(database, ledger, 10, *outcomes, limits=limits)
        assert exchange.record.cost + exchange.record.reserved <= 10
    assert exchange.has_reached_max_cost
    assert asked == ["a", "b"]


def test_requests_a_minute_are_shared_by_all_owners(database: Database) -> None:
    limits = RunLimits(rpm=120)
    ledger = begin(database, "abcdefgh")
    first = claim(database, ledger, 3, limits=limits)
    second = claim(database, ledger, 8, owner="you", limits=limits)
    starts = [claimed.start for claimed in (*first.claims, *second.claims)]
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert len(starts) == 5  # Two seconds ahead.
    assert second.wait == pytest.approx(0.5, abs=0.2)
    assert gaps == pytest.approx([0.5] * 4, abs=0.2)


def test_tokens_a_minute_are_corrected_by_the_reply(database: Database) -> None:
    limits = RunLimits(tpm=60, estimate=lambda _: RequestEstimate(0, 1, 0))
    ledger = begin(database, "abc")
    first = claim(database, ledger, 1, limits=limits)
    used = Outcome("a", True, b"{}", 61, 0, 0, 0, first.claims[0].tokens)
    later = claim(database, ledger, 1, used, limits=limits)
    assert names(later) == []
    assert later.wait == pytest.approx(59, abs=1)


def test_a_pause_holds_for_everybody(database: Database) -> None:
    ledger = begin(database)
    claim(database, ledger, 0, pause=30.0)
    exchange = claim(database, ledger, owner="you")
    assert names(exchange) == []
    assert 27 < exchange.wait < 30


def test_changed_rows_keep_their_answers(database: Database) -> None:
    ledger = begin(database)
    claim(database, ledger, 2)
    claim(database, ledger, 0, done("a"), done("b"))
    begin(database, "bdd", source="other")
    exchange = claim(database, ledger, version=1)
    assert names(exchange) == ["d"]
    assert (exchange.record.row_count, exchange.record.requests, exchange.record.done) == (3, 2, 1)
    assert names(claim(database, ledger, version=0)) == []
    claim(database, ledger, 0, done("d"), version=1)
    begin(database, "abd")
    assert names(claim(database, ledger, version=2)) == []


def test_nobody_changes_the_rows_of_another_process(database: Database) -> None:
    ledger = begin(database)
    claim(database, ledger)
    with pytest.raises(ConfigError, match="another process works on the batch"):
        begin(database, "xyz", source="other")
    begin(database)  # The same rows are welcome.


def test_two_rows_with_one_id_are_refused(database: Database) -> None:
    ledger = Ledger("b")
    database.run(lambda: ledger.begin(describe(), NOBODY_ENDED))
    rows = [LoadedRow(place, hash_, "x" if place else None, None, b"") for place, hash_ in enumerate("abc")]
    database.run(lambda: ledger.load(rows, 0))
    with pytest.raises(ConfigError, match="rows 2 and 3 have the same id"):
        database.run(lambda: ledger.finish_loading(3, 0))
    record = database.run(ledger.find, writes=False)
    assert record is not None
    assert record.state == "loading"


def test_who_loads_rows_of_an_older_version_adds_nothing(database: Database) -> None:
    ledger = Ledger("b")
    old = database.run(lambda: ledger.begin(describe(), NOBODY_ENDED))
    database.run(lambda: ledger.load([LoadedRow(0, "a", None, None, b"")], old.version))
    new = database.run(lambda: ledger.begin(describe(source="other"), NOBODY_ENDED))
    assert (new.version, new.row_count) == (old.version + 1, 0)
    database.run(lambda: ledger.load([LoadedRow(0, "x", None, None, b"")], new.version))
    for found in (
        database.run(lambda: ledger.load([LoadedRow(0, "b", None, None, b"")], old.version)),
        database.run(lambda: ledger.finish_loading(1, old.version)),
    ):
        assert (found.state, found.version, found.row_count) == ("loading", new.version, 1)
    assert database.run(lambda: ledger.finish_loading(1, new.version)).is_loaded
    assert [row.hash for row in database.run(lambda: ledger.join(0, 9), writes=False)] == ["x"]


def test_a_batch_that_was_cancelled_while_its_rows_were_loaded_has_none(database: Database) -> None:
    ledger = Ledger("b")
    first = database.run(lambda: ledger.begin(describe(), NOBODY_ENDED))
    database.run(lambda: ledger.load([LoadedRow(0, "a", None, None, b"")], first.version))
    database.run(ledger.cancel)
    found = database.run(lambda: ledger.load([LoadedRow(1, "b", None, None, b"")], first.version))
    assert (found.state, found.row_count, found.is_loaded) == ("cancelled", 0, False)
    found = database.run(lambda: ledger.finish_loading(2, first.version))
    assert (found.state, found.is_loaded) == ("cancelled", False)
    assert not database.run(lambda: ledger.resume(NOBODY_ENDED)).is_loaded
    again = database.run(lambda: ledger.begin(describe(), NOBODY_ENDED))
    assert (again.state, again.row_count) == ("loading", 0)


def test_a_cancelled_batch_claims_nothing_until_it_goes_on(database: Database) -> None:
    ledger = begin(database)
    first = claim(database, ledger, 1)
    database.run(ledger.cancel)
    assert names(claim(database, ledger, 10, done("a"))) == []
    record = database.run(lambda: ledger.resume(NOBODY_ENDED))
    assert (record.state, record.done, record.done_before) == ("open", 1, 1)
    assert names(first) == ["a"]
    assert names(claim(database, ledger)) == ["b", "c"]
    assert database.run(lambda: ledger.count_running(NOBODY_ENDED), writes=False) == 2


def test_a_process_that_ended_or_lost_its_lease_asks_nothing(database: Database) -> None:
    ledger = begin(database)
    claim(database, ledger, 1, owner="ended")
    claim(database, ledger, 1, owner="me")
    assert database.run(lambda: ledger.count_running("ended".__eq__), writes=False) == 1
    database.run(end_leases)
    assert database.run(lambda: ledger.count_running(NOBODY_ENDED), writes=False) == 0


def end_leases() -> Queries[None]:
    yield Query("UPDATE batch_requests SET lease = 1", is_alone=True)


def test_a_batch_that_is_not_there(database: Database) -> None:
    assert database.run(Ledger("none").find, writes=False) is None
    with pytest.raises(ConfigError, match="has no batch 'none'"):
        database.run(Ledger("none").cancel)


def test_the_record_has_the_columns_of_its_table(database: Database) -> None:
    ledger = begin(database)
    record = database.run(ledger.find, writes=False)
    assert record is not None
    assert msgspec.convert(msgspec.structs.asdict(record), BatchRecord) == record
