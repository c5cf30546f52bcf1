"""One request as the inspector keeps it: states, stretches of time, bounds, and what is never kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest

from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.history.plan import Decision
from asides.options import Options
from asides.relay.relay_request import RelayOutcome, RelayRequest
from asides.relay.state.turn_state import RestoredTurn
from asides.settings import Settings
from asides.values.errors import BadRequest
from asides.values.events import PartArrived, ReplyStarted, TextDelta, ThinkingDelta, ThoughtSealed, UsageReported
from asides.values.messages import Prompt, user
from asides.values.notices import Notice
from asides.values.parts import UnknownPart
from asides.values.thinking import Seal, Thinking
from asides.values.usage import Usage
from asides_gateway.captured_body import MOST_BODY, BodyCapture
from asides_gateway.request_record import RequestRecord
from asides_gateway.seen_request import SeenRequest
from asides_gateway.watcher import RequestWatch, RequestWatcher
from tests.gateway.request_records import end_request, make_record

KEY = "sk-provider-CANARY-key"


class _States(RequestWatcher):
    """Notes the states that a request goes through."""

    def __init__(self) -> None:
        self.states: list[str] = []

    def change(self, record: RequestRecord) -> None:
        self.states.append(record.state)

    end = change


class _Seen(NamedTuple):
    """A request in the inspector, and the watch that fills its record."""

    entry: SeenRequest
    watch: RequestWatch
    states: list[str]

    def end(self, **end: Any) -> None:
        """End it after two seconds."""
        end_request(self.entry.record, seconds=2.0, **end)


def _begin(capture: BodyCapture | None = None, **more: Any) -> _Seen:
    more = {"path": "/v1/messages", "query": "key=CANARY&beta=true", "headers": {"x-api-key": "CANARY"}} | more
    request = RelayRequest("", "POST", **more)
    watcher = _States()
    record = make_record(path=request.path, at=1.5)
    entry = SeenRequest(record, request, capture)
    return _Seen(entry, RequestWatch((watcher,), record), watcher.states)


def _call() -> Call:
    builder = CallBuilder(Options(api_key=KEY), settings=Settings())
    return builder.build_for("anthropic:claude-opus-4-5", "?", Options(), stream=True, needs_key=True)


def test_states_follow_what_comes_and_may_go_back() -> None:
    seen = _begin()
    states = seen.states
    seen.watch.see_events([ReplyStarted("x"), ThoughtSealed(Seal("signature", "s"))])
    assert states == []
    for event in (
        ThinkingDelta("a"),
        TextDelta("b"),
        TextDelta("c"),
        ThinkingDelta("d"),
        PartArrived(UnknownPart("{}"), 3),
    ):
        seen.watch.see_events([event])
    seen.end()
    assert states == ["thinking", "answering", "thinking", "answering"]
    assert seen.entry.record.state == "done"
    summary = seen.entry.to_summary()
    assert [state for state, _ in summary["spans"]] == ["waiting", "thinking", "answering", "thinking", "answering"]
    assert seen.entry.to_detail()["events"] == {"reply_started": 1, "sealed": 1, "thinking": 2, "text": 2, "part": 1}
    assert summary["timing"]["total"] == summary["elapsed"] == 2.0


def test_a_reply_that_changes_its_mind_for_ever_stays_small() -> None:
    seen = _begin()
    for _ in range(10_000):
        seen.watch.see_events([ThinkingDelta("a"), TextDelta("b")])
    assert len(seen.entry.to_summary()["spans"]) <= 24
    assert len(msgspec.json.encode(seen.entry.to_detail())) < 5000


def test_long_histories_many_attempts_and_long_words_are_bounded() -> None:
    seen = _begin(path="/" + "x" * 9000)
    seen.watch.see_asked(ServedRequest(Prompt((user("?"),), thinking=Thinking(budget=9)), "m" * 9000, stream=False))
    seen.watch.see_restored([RestoredTurn(number, "vault") for number in range(5000)])
    for _ in range(100):
        seen.watch.see_plan([Decision(number, 0, "keep", "thought", "why") for number in range(5000)])
        seen.watch.see_request(HttpRequest("POST", "https://api.example/v1", {}, b"{}"))
    error = BadRequest("y" * 90_000)
    seen.end(ended="failed", status=400, outcome=RelayOutcome(400, "translate", error=error))
    detail = seen.entry.to_detail()
    assert len(detail["decisions"]) == 1000
    assert detail["attempts"] == 100
    assert len(detail["sent"]) == 20
    assert detail["asked"]["thinking"] == "9 tokens"
    assert len(msgspec.json.encode(detail)) < 250_000
    assert seen.entry.size < 250_000


def test_a_retry_is_no_repair_and_another_target_is_none_either() -> None:
    seen = _begin()
    first, second, third = (HttpRequest("POST", "https://api.example/v1", {}, body) for body in (b"1", b"2", b"3"))
    seen.watch.see_target(_call(), "translate", "another dialect")
    for request in (first, first, second):
        seen.watch.see_request(request)
    seen.watch.see_target(_call(), "translate", "another dialect")
    seen.watch.see_request(third)
    assert [each["repaired"] for each in seen.entry.to_detail()["sent"]] == [False, False, True, False]
    assert seen.entry.to_summary()["repairs"] == 1


def test_no_secret_of_a_head_is_kept() -> None:
    seen = _begin(BodyCapture(("raw", "summary"), ("gateway-CANARY",)), body=b'{"a": "gateway-CANARY"}')
    seen.watch.see_target(_call(), "translate", "another dialect")
    headers = {"anthropic-version": "2023-06-01", "x-company-token": "CANARY", "X-Anything": "CANARY"}
    body = msgspec.json.encode({"messages": f"a key: {KEY}"})
    seen.watch.see_request(HttpRequest("POST", "https://me:CANARY@api.example/v1?key=CANARY&alt=sse", headers, body))
    detail = seen.entry.to_detail()
    assert detail["sent"][0]["url"] == "https://api.example/v1?key=***&alt=sse"
    assert detail["sent"][0]["headers"] == {
        "anthropic-version": "2023-06-01",
        "x-company-token": "***",
        "X-Anything": "***",
    }
    assert b"CANARY" not in msgspec.json.encode(detail)


@pytest.mark.parametrize("size", [MOST_BODY - 20, MOST_BODY + 20])
def test_bodies_are_kept_up_to_a_size(size: int) -> None:
    body = msgspec.json.encode({"a": "x" * (size - 8)})
    assert len(body) == size
    seen = _begin(BodyCapture(()), body=body)
    assert isinstance(seen.entry.request_body, msgspec.Raw) is (size <= MOST_BODY)
    assert (seen.entry.size > size) is (size <= MOST_BODY)
    seen.entry.black_out()
    assert isinstance(seen.entry.request_body, msgspec.Raw) is (size <= MOST_BODY), "looking twice changes nothing"
    seen.entry.forget_bodies()
    assert seen.entry.size < 10_000
    assert "request_body" not in seen.entry.to_detail()


def test_what_it_cost_is_looked_up_once_it_has_ended() -> None:
    seen = _begin()
    seen.watch.see_target(_call(), "forward", "the maker")
    seen.watch.see_events([UsageReported(Usage(input=1)), UsageReported(Usage(output=2, cost=Decimal("0.5")))])
    assert not seen.entry.needs_price
    seen.entry.price()
    assert seen.entry.to_summary()["cost"] is None
    seen.end(ended="left", status=0)
    assert seen.entry.needs_price
    seen.entry.price()
    assert (seen.entry.to_summary()["cost"], seen.entry.to_summary()["cost_origin"]) == (0.5, "reported")
    assert seen.entry.to_summary()["usage"] == {"input": 1, "output": 2, "thinking": None, "cached": None}


def test_notices_are_told_once_and_controls_are_escaped() -> None:
    seen = _begin()
    notices = (Notice("a", "one", "temperature"), Notice("a", "one", "temperature"), Notice("a", "two"))
    outcome = RelayOutcome(200, "translate", notices=notices, model="provider:\x1b[31mred")
    seen.end(outcome=outcome)
    detail = seen.entry.to_detail()
    assert [notice["detail"] for notice in detail["notices"]] == ["one", "two"]
    assert seen.entry.to_summary()["notices"] == ["a"]
    assert "\x1b" not in detail["model"]
