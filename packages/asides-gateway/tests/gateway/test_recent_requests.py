"""The ring of requests: bounds in number and bytes, tenants, captured bodies, and feeds of slow readers."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from asides.relay.relay_request import RelayRequest
from asides.values.events import TextDelta, ThinkingDelta
from asides_gateway.captured_body import BodyCapture
from asides_gateway.recent_requests import MOST_FEEDS, ChangeFeed, RecentRequests, TooManyFeeds
from asides_gateway.request_record import RequestRecord
from asides_gateway.seen_request import SeenRequest
from asides_gateway.watcher import RequestWatch
from tests.gateway.request_records import end_request, make_record


def _record(name: str, tenant: str = "") -> RequestRecord:
    return make_record(name, path="/v1/chat/completions", dialect="openai_chat", tenant=tenant)


def _begin(recent: RecentRequests, name: str, tenant: str = "", body: bytes = b'{"model": "x"}') -> RequestWatch:
    watch = RequestWatch((recent,), _record(name, tenant))
    watch.begin(RelayRequest("", "POST", "/v1/chat/completions", body=body, tenant=tenant))
    return watch


def _make(**bounds: Any) -> RecentRequests:
    return RecentRequests(lambda: BodyCapture(("raw", "summary")), **bounds)


def _run(recent: RecentRequests, name: str, tenant: str = "", body: bytes = b'{"model": "x"}') -> None:
    _begin(recent, name, tenant, body).end("done", status=200, sent_bytes=10)


def _names(recent: RecentRequests, tenant: str = "") -> list[str]:
    return sorted(seen.id for seen in recent.list_requests(tenant, 1000))


def test_the_oldest_that_ended_go_first_and_open_ones_stay() -> None:
    recent = _make(most_requests=5)
    _begin(recent, "open")
    for number in range(20):
        _run(recent, f"{number:02}")
    assert _names(recent) == ["16", "17", "18", "19", "open"]


def test_of_too_many_open_ones_the_oldest_are_forgotten_and_their_ends_do_no_harm() -> None:
    recent = _make(most_requests=3)
    for watch in [_begin(recent, f"{number}") for number in range(6)]:
        watch.see_events([TextDelta("x")])
        watch.end("done", status=200)
    assert _names(recent) == ["3", "4", "5"]


def test_captured_bodies_count_by_their_bytes() -> None:
    recent = _make(most_bytes=300_000)
    recent.set_capture("", True)
    for number in range(30):
        _run(recent, f"{number:02}", body=msgspec.json.encode({"content": "x" * 50_000}))
    assert _names(recent) == ["25", "26", "27", "28", "29"]
    recent.set_capture("", False)
    for number in range(30, 60):
        _run(recent, f"{number:02}", body=msgspec.json.encode({"content": "x" * 50_000}))
    assert len(_names(recent)) == 35, "what is not captured takes little"


def test_memory_stays_flat_over_many_requests() -> None:
    recent = _make()
    for number in range(5000):
        watch = _begin(recent, str(number))
        watch.see_events([ThinkingDelta("x"), TextDelta("y")])
        watch.end("done", status=200)
    assert len(recent._sizes) == len(recent._ended) == 1000
    assert recent._bytes == sum(recent._sizes.values())
    assert recent._open == {}


def test_a_request_that_was_refused_is_there_without_a_beginning() -> None:
    recent = _make()
    end_request(_record("refused"), recent, ended="refused", status=403)
    [seen] = recent.list_requests("", 9)
    assert (seen.to_summary()["state"], seen.to_summary()["status"]) == ("failed", 403)


def test_requests_that_nobody_can_read_are_not_kept() -> None:
    recent = _make(most_requests=3, has_reader=bool)
    _run(recent, "one", "anna")
    for number in range(9):
        end_request(_record(f"refused {number}"), recent, ended="refused", status=401)
        _run(recent, f"open {number}")
    assert (_names(recent, "anna"), _names(recent)) == (["one"], [])
    assert len(recent._sizes) == 1


def test_a_tenant_with_many_requests_drives_out_its_own() -> None:
    recent = _make(most_requests=10, most_bytes=200_000)
    for number in range(3):
        _run(recent, f"b{number}", "bert")
    for number in range(50):
        _run(recent, f"a{number:02}", "anna")
    assert (_names(recent, "bert"), _names(recent, "anna")) == (["b0", "b1", "b2"], [f"a{n}" for n in range(43, 50)])
    recent.set_capture("anna", True)
    for number in range(5):
        _run(recent, f"large{number}", "anna", b"x" * 60_000)
    assert _names(recent, "bert") == ["b0", "b1", "b2"]
    assert "large4" in _names(recent, "anna")
    for number in range(20):
        _run(recent, f"c{number:02}", f"tenant {number}")
    assert len(recent._sizes) == 10
    assert recent._bytes == sum(recent._sizes.values()) == sum(recent._held.values())
    assert len(recent._held) <= 10


def test_tenants_do_not_meet() -> None:
    recent = _make()
    _run(recent, "one", "anna")
    _run(recent, "two", "bert")
    assert (_names(recent, "anna"), _names(recent, "bert"), _names(recent)) == (["one"], ["two"], [])
    assert recent.find("anna", "two") is None
    recent.set_capture("anna", True)
    assert (recent.captures("anna"), recent.captures("bert")) == (True, False)


# --- feeds ------------------------------------------------------------------------------------------------------------


def _take(feed: ChangeFeed) -> list[SeenRequest]:
    return feed.take()[0]


def test_a_slow_reader_gets_each_request_once_as_it_is_by_then() -> None:
    recent = _make(most_requests=50)
    feed = recent.follow("")
    for number in range(5000):
        _run(recent, f"{number:04}")
    assert len(feed._changed) <= 2001, "a feed holds no more than some ids"
    changed = _take(feed)
    assert [seen.id for seen in changed] == [f"{number:04}" for number in range(4950, 5000)]
    assert {seen.record.state for seen in changed} == {"done"}
    assert _take(feed) == []


def test_a_reader_resumes_after_what_it_has() -> None:
    recent = _make()
    _run(recent, "one")
    position = recent.position
    _run(recent, "two")
    assert [seen.id for seen in _take(recent.follow("", position))] == ["two"]
    assert _take(recent.follow("", recent.position)) == []
    other = _make()
    assert other.follow("", position).is_reset
    assert not other.follow("").is_reset
    for odd in ("x", "-", f"{position}x", f"{position.partition('-')[0]}-{'9' * 5000}"):
        _take(recent.follow("", odd))


def test_readers_are_bounded_and_leave() -> None:
    recent = _make()
    feeds = [recent.follow("") for _ in range(MOST_FEEDS)]
    with pytest.raises(TooManyFeeds):
        recent.follow("")
    other = recent.follow("anna")  # One tenant does not keep another one out.
    recent.leave(feeds[0])
    recent.follow("")
    for feed in (*feeds, other):
        recent.leave(feed)
        recent.leave(feed)


def test_a_feed_wakes_for_changes_settings_and_its_end() -> None:
    async def run() -> None:
        recent = _make()
        feed = recent.follow("")
        assert not await feed.wait(0.01)
        asyncio.get_running_loop().call_later(0.01, _run, recent, "one")
        assert await feed.wait(5)
        assert [seen.id for seen in _take(feed)] == ["one"]
        recent.set_capture("", True)
        assert await feed.wait(5)
        assert feed.take() == ([], True)
        recent.close()
        assert await feed.wait(5)
        assert feed.is_over

    asyncio.run(run())
