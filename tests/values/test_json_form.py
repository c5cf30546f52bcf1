"""Values as plain JSON: everything can be dumped, and thinking and seals come only when they are asked for."""

from __future__ import annotations

import datetime as dt
import enum
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, get_args

import pytest

import asides
from asides.history.document import write_message
from asides.values.events import Event
from asides.values.fold import fold
from asides.values.json_form import to_json_value, write_json
from asides.values.parts import MAX_DEPTH
from asides.values.reply import CallContext
from asides.values.result import RunEvent
from asides_stage.conformance.case import USAGE

SEAL = asides.Seal("signature", "seal-canary", entry='{"data": "seal-canary"}')
ORIGIN = asides.Origin("mine", "http://127.0.0.1", "m")
CALL = asides.ToolCall("c1", "look", {"at": "sky"}, seals=(SEAL,))
RESULT = asides.ToolResult("c1", "blue", "look")
REPLY = asides.Reply(
    (asides.Thought("thought-canary", seals=(SEAL,)), asides.Text("42", (SEAL,)), CALL),
    USAGE,
    asides.StopReason("stop", "end_turn"),
    (asides.Notice("unknown_field", "one field"),),
    "m-1",
    "r-1",
    ORIGIN,
    call=CallContext(
        payloads=(b'{"thinking": "thought-canary", "signature": "seal-canary"}',),
        revealed=("thinking_raw", "thinking_encrypted"),
    ),
)
EVENTS: list[Any] = [
    asides.ReplyStarted("m", "r", ORIGIN),
    asides.ThinkingDelta("thought-canary"),
    asides.ThoughtSealed(SEAL),
    asides.TextDelta("42"),
    asides.CommentaryDelta("I look."),
    asides.RefusalDelta("no"),
    asides.ToolCallDelta(1, "c1", "look", '{"at": '),
    asides.PartArrived(asides.Image(data=b"\x89PNG", seals=(SEAL,)), 2),
    asides.PartArrived(asides.ServerTool("search", json='{"encrypted": "seal-canary"}'), 3),
    asides.PartArrived(asides.UnknownPart('{"signature": "seal-canary"}'), 4),
    asides.UsageReported(USAGE),
    asides.Warned(asides.Notice("effort_mapped", "", "thinking", "max", "high")),
    asides.TextReclassified("thought-canary", 0),
    asides.ReplyEnded(asides.StopReason("stop")),
    asides.StepStarted(1),
    asides.ToolStarted(CALL, 1),
    asides.ToolFinished(CALL, RESULT, 1, 0.5),
    asides.StepEnded(1, "answered", USAGE),
    asides.RunEnded("answered", 1, USAGE),
]


def test_every_event_has_an_example() -> None:
    assert {type(event) for event in EVENTS} == {*get_args(Event), *get_args(RunEvent)}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_is_json_under_the_name_of_its_kind(event: Any) -> None:
    written = json.dumps(event.to_dict())
    assert json.loads(written)["type"] == type(event).__struct_config__.tag
    assert "canary" not in written


def test_thinking_and_seals_come_only_when_they_are_asked_for() -> None:
    thought, seal = EVENTS[1], EVENTS[2]
    assert (thought.to_dict()["text"], thought.to_dict(thinking=True)["text"]) == (None, "thought-canary")
    assert (seal.to_dict()["seal"]["value"], seal.to_dict(seals=True)["seal"]["value"]) == (None, "seal-canary")
    assert EVENTS[9].to_dict(seals=True)["part"]["json"] == '{"signature": "seal-canary"}'


def test_a_reply_leaves_out_thinking_seals_and_the_response() -> None:
    fields = REPLY.to_dict()
    assert json.loads(REPLY.to_json()) == fields
    assert "canary" not in json.dumps(fields)
    assert (fields["text"], fields["thinking"], fields["thinking_type"]) == ("42", None, "raw")
    assert fields["usage"] == fields["metadata"]["usage"]
    assert fields["usage"]["input"] == USAGE.input
    assert fields["tool_calls"] == [{"id": "c1", "name": "look", "arguments": {"at": "sky"}, "raw_arguments": None}]
    assert fields["warnings"][0]["code"] == "unknown_field"
    assert fields["stop"] == {"reason": "stop", "raw": "end_turn"}
    assert "output" not in fields


def test_each_switch_adds_its_own_part_of_a_reply() -> None:
    assert "seal-canary" not in json.dumps(REPLY.to_dict(thinking=True))
    assert "thought-canary" not in json.dumps(REPLY.to_dict(seals=True))
    thinks, sealed = REPLY.to_dict(thinking=True), REPLY.to_dict(seals=True)
    assert (
        thinks["thinking"] == thinks["metadata"]["thinking"] == thinks["metadata"]["thinking_raw"] == "thought-canary"
    )
    assert [seal["value"] for seal in sealed["seals"]] == ["seal-canary"] * 3
    assert REPLY.to_dict(raw=True)["metadata"]["raw"]["signature"] == "seal-canary"


def test_the_whole_metadata_is_json_too() -> None:
    assert json.loads(json.dumps(to_json_value(REPLY.metadata)))["raw"]["signature"] == "seal-canary"


def test_messages_parts_and_runs_are_json() -> None:
    message = REPLY.to_message()
    assert message is not None
    assert "canary" not in json.dumps(message.to_dict())
    assert [part["type"] for part in message.to_dict()["parts"]] == ["reasoning", "text", "tool_call"]
    assert not any("seals" in part for part in message.to_dict()["parts"])
    assert all(part["seals"][0]["value"] == "seal-canary" for part in message.to_dict(seals=True)["parts"])
    run = asides.Result(asides.user("x"), (message,), (asides.Step(1, REPLY, (RESULT,)),), "answered")
    assert "canary" not in run.to_json()
    fields = run.to_dict(thinking=True)
    assert (fields["thinking"], fields["metadata"]["thinking"]) == ("thought-canary", "thought-canary")
    assert (fields["output"]["role"], fields["steps"][0]["results"][0]["content"]) == ("user", "blue")
    assert fields["metadata"]["steps"] == 1


class Colour(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    BIG = "big"


@dataclass
class Place:
    name: str
    when: dt.date


class Mine:
    def __str__(self) -> str:
        return "mine"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        (Decimal("0.25"), "0.25"),
        (Decimal("Infinity"), '"Infinity"'),
        (10**400, str(10**400)),
        (b"\x00\xff", '"AP8="'),
        ({"b", "a"}, '["a", "b"]'),
        ((1, None, True), "[1, null, true]"),
        ({1: "a", None: "b", ("x", 2): 3}, '{"1": "a", "null": "b", "[\\"x\\", 2]": 3}'),
        (Colour.RED, '"red"'),
        (Size.BIG, '"big"'),
        (Place("Oslo", dt.date(2026, 11, 16)), '{"name": "Oslo", "when": "2026-11-16"}'),
        (Mine(), '"mine"'),
    ],
)
def test_values_that_json_does_not_have_are_written_as_something_it_has(value: Any, written: str) -> None:
    assert write_json(to_json_value({"value": value})) == f'{{"value": {written}}}'
    call = asides.ToolCall("1", "look", {"value": value})
    assert json.dumps(call.to_dict()["arguments"]) == f'{{"value": {written}}}'


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("not today")


class Undumpable:
    def model_dump(self, **_: object) -> object:
        raise RuntimeError("not today")

    def __str__(self) -> str:
        return "undumpable"


@dataclass
class Holder:
    inner: Any


def _nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [{"a": value}]
    return value


def _contain_itself() -> Any:
    value: dict[str, Any] = {"again": []}
    value["again"] += [value, value]
    return value


def _hold_itself() -> Any:
    value = Holder(None)
    value.inner = value
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda: _nest(100_000),
        _contain_itself,
        _hold_itself,
        lambda: 10**5000,
        lambda: Decimal("sNaN"),
        Unprintable,
        Undumpable,
        lambda: {Unprintable()},
        lambda: {Unprintable(): 1},
    ],
)
def test_whatever_a_value_holds_it_can_be_dumped(make: Any) -> None:
    call = asides.ToolCall("1", "look", {"value": make()})
    for written in (call.to_dict(), asides.Reply((call,)).to_dict(), asides.ToolStarted(call, 1).to_dict()):
        json.loads(json.dumps(written, allow_nan=False))
        write_json(written).encode()


def test_arguments_that_a_server_nested_as_deep_as_can_be_read_are_json() -> None:
    arguments = '{"a":' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}"
    reply = fold([asides.ToolCallDelta(0, "c1", "look", arguments)])
    run = asides.Result("", (), (asides.Step(1, reply),))
    for written in (
        reply.to_json(),
        run.to_json(raw=True),
        json.dumps(asides.ToolStarted(reply.tool_calls[0], 1).to_dict()),
    ):
        assert arguments in written.replace(" ", "")
        json.loads(written)


def test_a_thought_inside_a_value_of_the_caller_stays_out() -> None:
    held = Holder([asides.Thought("thought-canary", seals=(SEAL,)), {"more": asides.ThinkingDelta("thought-canary")}])
    assert "canary" not in json.dumps(to_json_value(held))
    assert "thought-canary" in json.dumps(to_json_value(held, thinking=True))


def test_a_model_of_pydantic_is_written_by_itself() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Sky", colour=(str, ...))
    assert to_json_value(model(colour="blue")) == {"colour": "blue"}


def test_text_is_readable_and_half_a_pair_is_escaped() -> None:
    assert write_json({"text": "blå"}) == '{"text": "blå"}'
    broken = asides.Reply((asides.Text("x\ud83d"),))
    broken.to_json().encode()
    assert json.loads(broken.to_json())["text"] == "x\ud83d"
    assert "\n  " in broken.to_json(indent=2)


def test_reprs_show_the_arguments_of_a_call_but_no_seal_and_not_in_a_reply() -> None:
    assert repr(CALL) == "ToolCall(id='c1', name='look', arguments={'at': 'sky'})"
    assert len(repr(asides.ToolCall("c1", "look", {"at": "x" * 9999}))) < 300
    assert repr(asides.ToolCall("c1", "run", raw_arguments="ls -l")) == (
        "ToolCall(id='c1', name='run', raw_arguments='ls -l')"
    )
    assert "sky" not in repr(REPLY)
    assert "tool_calls=['look']" in repr(REPLY)


def test_the_saved_form_of_a_thought_has_no_time() -> None:
    timed = asides.Thought("plan", seconds=3.5)
    assert timed.seconds == 3.5
    assert timed == asides.Thought("plan")
    assert hash(timed) == hash(asides.Thought("plan"))
    assert b"seconds" not in write_message(asides.Message("assistant", (timed,)))
    assert timed.to_dict()["seconds"] == 3.5
