"""One observer fills the record of a request, by one clock, and every watcher writes the same from it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from pathlib import Path
from threading import enumerate as enumerate_threads
from threading import get_ident
from typing import Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from asides.dialects.dialect import HttpRequest
from asides.relay.observer import RelayObserver
from asides.relay.relay_request import RelayOutcome, RelayRequest
from asides.settings import load_settings
from asides.values.errors import RateLimited
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    ReplyStarted,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from asides.values.parts import UnknownPart
from asides_gateway.access_log import describe_request
from asides_gateway.captured_body import BodyCapture
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.loop_observer import LoopObserver
from asides_gateway.metrics import Metrics
from asides_gateway.recent_requests import RecentRequests
from asides_gateway.request_record import RequestRecord
from asides_gateway.request_spans import describe_end
from asides_gateway.service import Service
from asides_gateway.summary_rows import COLUMNS, build_row
from asides_gateway.watcher import LARGE_BODY, RequestWatch, RequestWatcher, is_large
from asides_stage import Fail, Say, Stage
from asides_stage.stage import Scene
from tests.gateway.access.key_records import add_key, open_place
from tests.gateway.http_client import MODEL, Client, ask, chat, gateway_before, wait_for
from tests.gateway.request_records import end_request, make_record


class _Clock:
    """A clock that is one second later each time."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def _watch(*watchers: RequestWatcher, **changed: Any) -> RequestWatch:
    return RequestWatch(watchers or (RequestWatcher(),), make_record(started=100.0, **changed), _Clock())


def test_without_watchers_nothing_is_observed() -> None:
    assert RequestWatch((), make_record()).begin() is None


@pytest.mark.parametrize(
    "event",
    [
        TextDelta("a"),
        CommentaryDelta("a"),
        RefusalDelta("a"),
        ToolCallDelta(0, arguments="{}"),
        PartArrived(UnknownPart("{}"), 3),
    ],
    ids=lambda event: type(event).__name__,
)
def test_each_kind_of_answer_is_a_first_answer(event: Event) -> None:
    watch = _watch()
    watch.see_events([])
    assert watch.record.first_event is None
    watch.see_events([ReplyStarted()])
    watch.see_events([ThinkingDelta("a"), event])
    watch.see_events([ThinkingDelta("b"), event])
    record = watch.record
    assert (record.first_event, record.first_thought, record.first_answer) == (1.0, 2.0, 3.0)


def test_a_watcher_that_fails_keeps_nothing_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(RequestWatcher):
        def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:
            raise RuntimeError("SECRET")

        def end(self, record: RequestRecord) -> None:
            raise RuntimeError("SECRET")

    class Counting(RequestWatcher):
        def __init__(self) -> None:
            self.calls: list[str] = []

        def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:
            self.calls.append("begin")

        def end(self, record: RequestRecord) -> None:
            self.calls.append("end")

    counting = Counting()
    watch = _watch(Broken(), counting)
    assert watch.begin() is watch
    watch.end("done", status=200)
    assert counting.calls == ["begin", "end"]
    assert "RuntimeError in test_watcher.py" in caplog.text
    assert "SECRET" not in caplog.text


def test_nothing_of_the_content_is_kept_or_shown() -> None:
    watch = _watch()
    watch.begin(RelayRequest("", "POST", "/", body=b"SECRET"))
    try:
        raise RateLimited("slow down")
    except RateLimited as problem:
        end_request(watch.record, outcome=RelayOutcome(429, "forward", error=problem))
    record = watch.record
    assert (record.received, record.reply, "SECRET" in repr(record)) == (6, None, False)
    assert record.error is not None
    assert not hasattr(record.error, "__traceback__"), "it would keep what the request held"


async def test_a_large_request_is_observed_in_its_event_loop() -> None:
    """It is planned in a thread, and what watches it may belong to the loop."""
    threads: list[int] = []

    class Threads(RequestWatcher):
        def change(self, record: RequestRecord) -> None:
            threads.append(get_ident())

    observer = _watch(Threads()).begin(RelayRequest("", "POST", "/v1/messages", body=b"x" * LARGE_BODY))
    assert isinstance(observer, LoopObserver)
    own = {name for name in vars(RelayObserver) if not name.startswith("_")}
    assert own == {name for name in vars(LoopObserver) if not name.startswith("_")}, "a method is not passed on"
    sent = HttpRequest("POST", "http://a.test", {}, b"", None)
    observer.see_request(sent)
    await asyncio.to_thread(observer.see_request, sent)
    assert threads == [get_ident()] * 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", False),
        (b"x" * (LARGE_BODY - 1), False),
        (b"x" * LARGE_BODY, True),
        (b'{"role": "user"},' * 100, False),
        (b'{"role": "user"},' * 101, True),
        (b'{"type":"function_call_output","call_id":"c"},' * 101, True),
        (b'{"role":"user"},{"call_id":"c"},' * 51, True),
    ],
)
def test_a_body_is_large_by_its_bytes_or_its_messages(body: bytes, expected: bool) -> None:
    assert is_large(body) is expected


async def test_an_error_of_an_observer_reaches_the_thread() -> None:
    class Broken(RelayObserver):
        def see_events(self, events: Sequence[Event]) -> None:
            raise LookupError("broken")

    with pytest.raises(LookupError):
        await asyncio.to_thread(LoopObserver(Broken()).see_events, [])


def test_a_gateway_plans_a_large_request_in_a_thread_and_a_small_one_in_its_loop() -> None:
    planning: list[bool] = []

    class Naming(RequestWatcher):
        def change(self, record: RequestRecord) -> None:
            if record.attempts and record.first_event is None:
                planning.append(any(thread.name.startswith("asides-plan") for thread in enumerate_threads()))

    with Stage([Say(text="42")] * 4) as stage, gateway_before(stage, Naming()) as gateway:
        for count, text in ((1, "?"), (100, "?"), (101, "?"), (1, "x" * LARGE_BODY)):
            body = {**chat(), "messages": [{"role": "user", "content": text}] * count}
            assert ask(gateway, "POST", "/v1/chat/completions", body).status == 200
    assert planning == [False, False, True, True]


# --- all say the same -------------------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """What the five say of one request: the same names for the same facts."""

    log: dict[str, Any]
    row: dict[str, Any]
    span: dict[str, Any]
    metrics: dict[str, Any]
    inspector: dict[str, Any]


class _All(RequestWatcher):
    """Writes a request in all five forms when it has ended."""

    def __init__(self) -> None:
        self.told: list[_Told] = []
        self.inspector = RecentRequests(lambda: BodyCapture(()))
        self.service = Service(GatewaySettings(), load_settings({}, files=[]))
        self.metrics = Metrics(self.service)

    def forget(self) -> None:
        """Begin to count anew."""
        self.inspector = RecentRequests(lambda: BodyCapture(()))
        self.metrics = Metrics(self.service)

    def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:
        self.inspector.begin(record, request)
        self.metrics.begin(record, request)

    def begin_reply(self, record: RequestRecord) -> None:
        self.metrics.begin_reply(record)

    def end(self, record: RequestRecord) -> None:
        self.inspector.end(record)
        self.metrics.end(record)
        [seen] = self.inspector.list_requests(record.tenant, 9)
        log, span, entry = describe_request(record), describe_end(record), seen.to_summary()
        row = dict(zip(COLUMNS, build_row(record, "here"), strict=True))
        timing = entry["timing"]
        self.told.append(
            _Told(
                {
                    "status": log["status"],
                    "ended": log["ended"],
                    "mode": log.get("mode", "none"),
                    "model": log.get("target", ""),
                    "attempts": log.get("attempts", 0),
                    "thought": "thought_ms" in log,
                    "answer": "answer_ms" in log,
                    "output": log.get("output_tokens"),
                    "total": log["ms"],
                },
                {
                    "status": row["status"],
                    "ended": row["ended"],
                    "mode": row["mode"] or "none",
                    "model": row["model"],
                    "attempts": row["attempts"],
                    "thought": row["first_thought"] is not None,
                    "answer": row["first_answer"] is not None,
                    "output": row["output"],
                    "total": row["total"],
                },
                {
                    "status": span.get("http.response.status_code", 0),
                    "ended": span["asides.end"],
                    "mode": span.get("asides.mode", "none"),
                    "attempts": span.get("asides.attempts", 0),
                    "thought": "asides.response.time_to_first_thought" in span,
                    "answer": "asides.response.time_to_first_answer" in span,
                    "output": span.get("gen_ai.usage.output_tokens"),
                },
                _read(self.metrics),
                {
                    "status": entry["status"],
                    "ended": "refused" if not record.has_begun else entry["state"],
                    "mode": entry["mode"] if record.mode else "none",
                    "model": entry["model"],
                    "attempts": entry["attempts"],
                    "thought": timing["first_thought"] is not None,
                    "answer": timing["first_answer"] is not None,
                    "output": entry["usage"]["output"],
                    "total": pytest.approx(timing["total"] * 1000, abs=0.2),
                },
            )
        )


def _read(metrics: Metrics) -> dict[str, Any]:
    found: dict[str, Any] = {"attempts": 0, "thought": False, "answer": False, "output": None}
    for family in text_string_to_metric_families(metrics.write().decode()):
        for sample in family.samples:
            match sample.name:
                case "asides_requests_total":
                    found["mode"] = sample.labels["mode"]
                    found["class"] = sample.labels["status"]
                case "asides_attempts_total":
                    found["attempts"] = sample.value
                case "asides_first_thought_seconds_count":
                    found["thought"] = True
                case "asides_first_answer_seconds_count":
                    found["answer"] = True
                case "asides_tokens_total" if sample.labels["kind"] == "output":
                    found["output"] = sample.value
                case _:
                    pass
    return found


@pytest.fixture
def everyone() -> Generator[_All]:
    watcher = _All()
    yield watcher
    asyncio.run(watcher.service.close())


_OUTCOMES: dict[str, tuple[list[Scene], bool, dict[str, Any]]] = {
    "an answer": ([Say(thinking="hm", text="42")], False, {"status": 200, "ended": "done", "thought": True}),
    "a stream": ([Say(thinking="hm", text="42")], True, {"status": 200, "ended": "done", "thought": True}),
    "a refusal": ([Say(refusal="I cannot help.")], True, {"status": 200, "ended": "done", "answer": True}),
    "an upstream error": ([Fail(400)], False, {"status": 400, "ended": "failed", "answer": False, "attempts": 1}),
    "broken off": (
        [Say(thinking="hm", text="one two " * 200, cut_after=3000)],
        True,
        {"ended": "failed", "answer": True},
    ),
}


def _check(told: _Told, **expected: Any) -> None:
    for other in told[1:]:
        shared = told.log.keys() & other.keys()
        assert {name: other[name] for name in shared} == {name: told.log[name] for name in shared}
    assert {name: told.log[name] for name in expected} == expected
    status, ended = told.log["status"], told.log["ended"]
    assert told.metrics["class"] == ("left" if ended == "left" else f"{status // 100}xx")


@pytest.mark.parametrize("case", _OUTCOMES)
def test_all_five_say_the_same(everyone: _All, case: str) -> None:
    scenes, stream, expected = _OUTCOMES[case]
    with Stage(scenes, rules="lenient") as stage, gateway_before(stage, everyone) as gateway:
        ask(gateway, "POST", "/v1/chat/completions", chat(stream))
        assert wait_for(lambda: bool(everyone.told))
    _check(everyone.told[0], mode="translate", model=MODEL, **expected)


def test_all_five_say_the_same_of_a_client_that_leaves(everyone: _All) -> None:
    scene = Say(thinking="hm", text="x" * 2000, piece=2, pause=0.02)
    with Stage([scene]) as stage, gateway_before(stage, everyone) as gateway:
        with Client(gateway) as client:
            client.send("POST", "/v1/chat/completions", chat(True))
            client.read_head()
            for data in client.read_chunks():
                if b'"xx"' in data:
                    break
        assert wait_for(lambda: bool(everyone.told))
    _check(everyone.told[0], ended="left", mode="translate", model=MODEL, thought=True, answer=True)


def test_all_five_say_the_same_of_a_request_above_a_limit(everyone: _All, tmp_path: Path) -> None:
    database = open_place(str(tmp_path))
    key = add_key(database, rpm=1).key
    database.close()
    with Stage([Say(text="42")]) as stage, gateway_before(stage, everyone, folder=tmp_path) as gateway:
        headers = [("authorization", f"Bearer {key}")]
        assert ask(gateway, "POST", "/v1/chat/completions", chat(), headers).status == 200
        assert wait_for(lambda: len(everyone.told) == 1)
        everyone.forget()
        assert ask(gateway, "POST", "/v1/chat/completions", chat(), headers).status == 429
        assert wait_for(lambda: len(everyone.told) == 2)
    _check(everyone.told[1], status=429, ended="failed", attempts=0, answer=False)


def test_all_five_say_the_same_of_a_request_that_is_refused(everyone: _All) -> None:
    with Stage() as stage, gateway_before(stage, everyone, keys=("sk-right-0123456789",)) as gateway:
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 401
        assert wait_for(lambda: bool(everyone.told))
    _check(everyone.told[0], status=401, ended="refused", mode="none", attempts=0, answer=False)
