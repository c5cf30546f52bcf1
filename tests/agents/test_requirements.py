"""Agents: the loop, its limits, its events, and what is left when it is stopped (K1–K10 and what goes with them)."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import asides
from asides.dialects.dialect import ServedRequest
from asides.values.messages import Message, user
from asides.values.parts import ToolCall, ToolResult
from asides.values.usage import Usage
from asides_stage.stage import Fail, OpenStage, Say, Scene
from tests.agents.three_tools import (
    KEY,
    MODELS,
    THOUGHTS,
    TOOLS,
    Ran,
    every_stream,
    every_way,
    find_results,
    hour,
    kinds,
    play,
    send_blocking,
    stream_blocking,
    temperature,
)

MODEL = MODELS["openai_chat"]


def calls(*names: str, **arguments: Any) -> Say:
    return Say(
        thinking="Tools, then.",
        tool_calls=tuple(ToolCall(f"call_{place}", name, arguments) for place, name in enumerate(names)),
    )


def body_of(received: Any) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(received.body)
    return document


# --- K: the loop ------------------------------------------------------------------------------------------------------


@every_way
def test_K1_FT_40_call_result_answer(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(calls("hour", place="Oslo"), Say(text="Noon."))
    ran = send(MODEL, open_stage.url, "What time is it in Oslo?", tools=[hour])
    assert ran.result is not None
    assert ran.result.output == "Noon."
    assert [message.role for message in ran.result.messages] == ["user", "assistant", "tool", "assistant"]
    assert body_of(open_stage.requests[1])["messages"][2]["content"] == "12 o'clock in Oslo"


@every_way
def test_K2_an_unknown_tool_and_a_raising_tool_are_told_to_the_model(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    @asides.tool
    def divide(left: int, right: int) -> float:
        """A quotient."""
        return left / right

    open_stage = stage(
        Say(
            tool_calls=(
                ToolCall("a", "devide", {"left": 1, "right": 0}),
                ToolCall("b", "divide", {"left": 1, "right": 0}),
                ToolCall("c", "divide", {"left": "one", "right": 0}),
            )
        ),
        Say(text="I cannot."),
    )
    ran = send(MODEL, open_stage.url, "?", tools=[divide])
    assert ran.result is not None
    assert ran.result.output == "I cannot."
    unknown, raised, misfit = ran.result.steps[0].results
    assert all(result.is_error for result in (unknown, raised, misfit))
    assert "devide" in unknown.text
    assert "divide" in unknown.text
    assert "ZeroDivisionError" in raised.text
    assert "Traceback" not in raised.text
    assert "left" in misfit.text


@every_stream
def test_K2_a_call_that_is_not_run_begins_and_ends_too(send: Callable[..., Ran], stage: OpenStage) -> None:
    ran = send(MODEL, stage(calls("nothing_like_it"), Say(text="Well.")).url, "?", tools=[hour])
    assert kinds(ran.events)[:4] == ["StepStarted", "ToolStarted", "ToolFinished", "StepEnded"]


@every_way
def test_a_function_that_gives_something_to_await_is_run_once_and_awaited(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    runs: list[str] = []

    async def later() -> str:
        await asyncio.sleep(0)
        return "in the end"

    @asides.tool
    def begin() -> Any:
        """Begins."""
        runs.append("once")
        return later()

    ran = send(MODEL, stage(calls("begin"), Say(text="Well.")).url, "?", tools=[begin])
    assert ran.result is not None
    assert ran.result.steps[0].results[0].text == "in the end"
    assert runs == ["once"]


@pytest.mark.parametrize("dialect", ["gemini", "ollama", "openai_chat"])
@every_way
def test_K3_ids_are_there_and_unique_and_results_find_their_calls(
    dialect: str, send: Callable[..., Ran], stage: OpenStage
) -> None:
    same = (ToolCall("", "hour", {"place": "Oslo"}), ToolCall("", "hour", {"place": "Oslo"}))
    open_stage = stage(Say(tool_calls=same), Say(tool_calls=same), Say(text="Noon."))
    ran = send(MODELS[dialect], open_stage.url, "?", tools=[hour])
    assert ran.result is not None
    assert ran.result.output == "Noon."
    ids = [call.id for message in ran.result.messages for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == 4
    told = [part.call_id for message in ran.result.messages for part in message.parts if isinstance(part, ToolResult)]
    assert told == ids


def test_K3_ids_that_a_server_uses_twice_are_told_apart(stage: OpenStage) -> None:
    open_stage = stage(calls("hour", place="Oslo"), calls("hour", place="Oslo"), Say(text="Noon."))
    ran = send_blocking(MODEL, open_stage.url, "?", tools=[hour])
    assert ran.result is not None
    sent = body_of(open_stage.requests[2])["messages"]
    asked = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert asked == answered == ["call_0", "call_0_2"]


@every_way
def test_K4_a_blank_reply_behind_tools_is_asked_for_once_more_and_then_it_is_enough(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    open_stage = stage(calls("hour", place="Oslo"), Say(text="", thinking="…"), Say(text=""), Say(text="too late"))
    ran = send(MODEL, open_stage.url, "?", tools=[hour])
    assert ran.result is not None
    assert len(open_stage.requests) == 3
    assert body_of(open_stage.requests[1]) == body_of(open_stage.requests[2]), "silence is not sent back"
    assert [message.role for message in ran.result.messages] == ["user", "assistant", "tool"]
    assert ran.result.output == ""
    assert ran.result.outcome == "unterminated"

    again = calls("hour", place="Oslo")
    open_stage = stage(again, Say(text=""), again, Say(text=""), Say(text="Noon."))
    ran = send(MODEL, open_stage.url, "?", tools=[hour])
    assert ran.result is not None
    assert ran.result.output == "Noon."


def test_K4_silence_without_tools_is_not_asked_again(stage: OpenStage) -> None:
    open_stage = stage(Say(text="", thinking="…"), Say(text="too late"))
    ran = send_blocking(MODEL, open_stage.url, "?", tools=[hour])
    assert ran.result is not None
    assert ran.result.outcome == "unterminated"
    assert len(open_stage.requests) == 1


@every_way
def test_FT_19_S4_REQ_004_a_run_goes_on_from_what_the_provider_has_stored(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    open_stage = stage(Say(text="Hello!"), calls("hour", place="Oslo"), Say(text="Noon."))
    model = MODELS["openai_responses"]
    first = asides.ask(model, "Hello.", base_url=open_stage.url, api_key=KEY, store=True)
    ran = send(model, open_stage.url, "?", tools=[hour], previous_response_id=first.id, store=True)
    assert ran.result is not None
    assert ran.result.output == "Noon."
    second, third = (body_of(received) for received in open_stage.requests[1:])
    assert second["previous_response_id"] == first.id
    assert third["previous_response_id"] == ran.result.steps[0].reply.id
    assert [item["type"] for item in third["input"]] == ["function_call_output"], "only what is new is sent"


@every_way
def test_K5_too_many_turns_is_a_typed_stop(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(calls("hour", place="Oslo"))
    ran = send(MODEL, open_stage.url, "?", tools=[hour], limits=asides.Limits(turns=3))
    assert isinstance(ran.error, asides.TooManyTurns)
    assert ran.error.limit == "turns"
    assert len(open_stage.requests) == 3
    assert ran.partial is not None
    assert ran.partial.outcome == "limit"
    assert len(ran.partial.steps) == 3
    assert ran.partial.messages[-1].role == "tool"
    assert re.search(r"\. [A-Z]", str(ran.error))


@every_stream
def test_K6_S3_01_S3_50_thinking_and_calls_of_one_run_are_both_seen(send: Callable[..., Ran], stage: OpenStage) -> None:
    ran = send(MODEL, stage(play).url, "?", tools=TOOLS)
    assert ran.result is not None
    assert [step.thinking.text for step in ran.result.steps if step.thinking] == list(THOUGHTS)
    assert [len(step.tool_calls) for step in ran.result.steps] == [3, 1, 0]
    by_step: list[list[str]] = []
    for event in ran.events:
        if isinstance(event, asides.StepStarted):
            by_step.append([])
        elif isinstance(event, asides.ThinkingDelta):
            by_step[-1].append(event.text)
    assert ["".join(texts) for texts in by_step] == list(THOUGHTS)


@every_stream
def test_K7_FT_41_parallel_calls_keep_their_order_and_run_side_by_side(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    meeting = threading.Barrier(3, timeout=10)

    @asides.tool
    def meet(who: int) -> int:
        """Waits for the others."""
        meeting.wait()
        time.sleep(0.03 * (3 - who))
        return who

    asked = tuple(ToolCall(f"call_{who}", "meet", {"who": who}) for who in range(3))
    open_stage = stage(Say(tool_calls=asked), Say(text="met"))
    ran = send(MODEL, open_stage.url, "?", tools=[meet])
    assert ran.result is not None
    assert [result.text for result in ran.result.steps[0].results] == ["0", "1", "2"]
    finished = [event.result.text for event in ran.events if isinstance(event, asides.ToolFinished)]
    assert sorted(finished) == ["0", "1", "2"]
    sent = body_of(open_stage.requests[1])["messages"]
    assert [message["content"] for message in sent if message["role"] == "tool"] == ["0", "1", "2"]


@every_way
def test_K7_no_more_run_at_a_time_than_allowed(send: Callable[..., Ran], stage: OpenStage) -> None:
    at_work, most, lock = 0, 0, threading.Lock()

    @asides.tool
    def work() -> None:
        """Takes a moment."""
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.02)
        with lock:
            at_work -= 1

    asked = tuple(ToolCall(f"call_{place}", "work") for place in range(6))
    ran = send(MODEL, stage(Say(tool_calls=asked), Say(text="done")).url, "?", tools=[work], parallel=2)
    assert ran.result is not None
    assert most == 2


@every_way
def test_K8_denied_calls_are_told_and_a_raising_handler_denies(send: Callable[..., Ran], stage: OpenStage) -> None:
    ran_for_real: list[str] = []

    @asides.tool(approval="ask")
    def remove(path: str) -> str:
        """Removes a file."""
        ran_for_real.append(path)
        return "removed"

    def approve(call: ToolCall) -> bool | str:
        if call.arguments["path"] == "c":
            raise RuntimeError("the window was closed")
        return True if call.arguments["path"] == "a" else "not that one"

    asked = tuple(ToolCall(f"call_{path}", "remove", {"path": path}) for path in "abc")
    ran = send(MODEL, stage(Say(tool_calls=asked), Say(text="done")).url, "?", tools=[remove], approve=approve)
    assert ran.result is not None
    assert ran_for_real == ["a"]
    allowed, denied, failed = ran.result.steps[0].results
    assert (allowed.text, allowed.is_error) == ("removed", False)
    assert denied.is_error
    assert "not that one" in denied.text
    assert failed.is_error
    assert "window" not in failed.text


@every_way
def test_K8_an_awaiting_handler_is_awaited_in_both_shells(send: Callable[..., Ran], stage: OpenStage) -> None:
    async def approve(call: ToolCall) -> str | None:
        await asyncio.sleep(0)
        return {"Oslo": "allow", "Lisbon": "deny"}.get(call.arguments["place"])

    asked = tuple(ToolCall(f"call_{place}", "hour", {"place": place}) for place in ("Oslo", "Lisbon", "Rome"))
    options: dict[str, Any] = {"approval": {"hour": "ask"}, "approve": approve}
    ran = send(MODEL, stage(Say(tool_calls=asked), Say(text="done")).url, "?", tools=[hour], **options)
    assert ran.result is not None
    allowed, denied, unsaid = ran.result.steps[0].results
    assert [allowed.is_error, denied.is_error, unsaid.is_error] == [False, True, True]
    assert denied.text == unsaid.text, "the word itself is no reason"


def test_K8_nobody_to_ask_is_said_before_anything_is_sent(stage: OpenStage) -> None:
    @asides.tool(approval="ask")
    def remove(path: str) -> str:
        """Removes a file."""
        return path

    open_stage = stage(Say(text="?"))
    with pytest.raises(asides.ConfigError, match="approve="):
        asides.Agent(MODEL, tools=[remove], base_url=open_stage.url).send("?")
    with pytest.raises(asides.ConfigError, match="approve="):
        asides.Agent(MODEL, tools=[hour], base_url=open_stage.url).send("?", approval={"ho*": "ask"})
    assert open_stage.requests == []


@every_way
def test_K8_what_is_denied_from_the_start_is_never_run(send: Callable[..., Ran], stage: OpenStage) -> None:
    ran = send(
        MODEL,
        stage(calls("hour", place="Oslo"), Say(text="done")).url,
        "?",
        tools=[hour],
        approval={"h*": "deny"},
    )
    assert ran.result is not None
    assert ran.result.steps[0].results[0].is_error
    assert "o'clock" not in ran.result.steps[0].results[0].text


@every_stream
@pytest.mark.parametrize("way", ["answered", "limit", "failed", "tool fatal"])
def test_K10_exactly_one_terminal_event_however_it_ends(way: str, send: Callable[..., Ran], stage: OpenStage) -> None:
    @asides.tool(fatal=(LookupError,))
    def look(place: str) -> str:
        """Looks."""
        raise KeyError(place)

    scenes: dict[str, tuple[Scene, ...]] = {
        "answered": (calls("hour", place="Oslo"), Say(text="Noon.")),
        "limit": (calls("hour", place="Oslo"),),
        "failed": (calls("hour", place="Oslo"), Fail(status=400, message="no")),
        "tool fatal": (calls("look", place="Oslo"),),
    }
    ran = send(MODEL, stage(*scenes[way]).url, "?", tools=[hour, look], limits={"turns": 2}, retries=0)
    ends = [event for event in ran.events if isinstance(event, asides.RunEnded)]
    assert len(ends) == 1
    assert ran.events[-1] is ends[0]
    expected = {"answered": "answered", "limit": "limit", "failed": "failed", "tool fatal": "failed"}
    assert ends[0].outcome == expected[way]
    assert (ran.error is None) == (way == "answered")


@every_way
def test_a_fatal_exception_of_a_tool_ends_the_run(send: Callable[..., Ran], stage: OpenStage) -> None:
    @asides.tool(fatal=(ConnectionError,))
    def look(place: str) -> str:
        """Looks."""
        raise ConnectionResetError(place)

    open_stage = stage(calls("look", "hour", place="Oslo"))
    ran = send(MODEL, open_stage.url, "?", tools=[look, hour])
    assert isinstance(ran.error, asides.ToolFailed)
    assert ran.error.call.name == "look"
    assert isinstance(ran.error.__cause__, ConnectionResetError)
    assert "Oslo" not in str(ran.error)
    assert ran.partial is not None
    assert [message.role for message in ran.partial.messages] == ["user", "assistant", "tool", "tool"]
    assert [result.is_error for result in ran.partial.steps[0].results] == [True, False]


# --- limits -----------------------------------------------------------------------------------------------------------


@every_way
def test_FT_40_calls_of_tools_are_limited(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(calls("hour", "hour", place="Oslo"))
    ran = send(MODEL, open_stage.url, "?", tools=[hour], limits={"tool_calls": 3})
    assert isinstance(ran.error, asides.LimitReached)
    assert ran.error.limit == "tool_calls"
    assert ran.partial is not None
    assert sum(len(step.results) for step in ran.partial.steps) == 2
    # The two that were not run are answered all the same, so that the messages can be sent on.
    assert [message.role for message in ran.partial.messages].count("tool") == 4


@every_way
def test_FT_40_tokens_are_limited(send: Callable[..., Ran], stage: OpenStage) -> None:
    scene = msgspec.structs.replace(calls("hour", place="Oslo"), usage=Usage(60, 40, 30, 0, 100))
    open_stage = stage(scene)
    ran = send(MODEL, open_stage.url, "?", tools=[hour], limits={"tokens": 250})
    assert isinstance(ran.error, asides.LimitReached)
    assert ran.error.limit == "tokens"
    assert len(open_stage.requests) == 3
    assert ran.partial is not None
    assert ran.partial.usage == Usage(180, 120, 90, 0, 300)


@every_way
@pytest.mark.parametrize("where", ["model", "tool"])
def test_FT_40_seconds_are_limited(where: str, send: Callable[..., Ran], stage: OpenStage) -> None:
    @asides.tool
    def sleep() -> None:
        """Sleeps."""
        time.sleep(2)

    open_stage = stage(calls("sleep") if where == "tool" else Say(text="late", delay=2))
    began = time.monotonic()
    ran = send(MODEL, open_stage.url, "?", tools=[sleep], limits={"seconds": 0.3})
    assert isinstance(ran.error, asides.LimitReached)
    assert ran.error.limit == "seconds"
    assert time.monotonic() - began < 1.9


@every_way
def test_a_tool_that_takes_too_long_is_told_to_the_model(send: Callable[..., Ran], stage: OpenStage) -> None:
    @asides.tool(timeout=0.1)
    async def doze() -> None:
        """Sleeps, awaiting."""
        await asyncio.sleep(5)

    @asides.tool
    def sleep() -> None:
        """Sleeps."""
        time.sleep(2)

    for name, tool_timeout in (("doze", 30.0), ("sleep", 0.15)):
        began = time.monotonic()
        scenes = (calls(name), Say(text="well"))
        ran = send(MODEL, stage(*scenes).url, "?", tools=[doze, sleep], tool_timeout=tool_timeout)
        assert ran.result is not None
        assert ran.result.output == "well"
        assert ran.result.steps[0].results[0].is_error
        assert time.monotonic() - began < 1.9


@every_way
def test_each_call_has_its_own_time_beside_that_of_the_run(send: Callable[..., Ran], stage: OpenStage) -> None:
    slow = Say(text="late", delay=2)
    timeout = asides.Timeout(total=0.3)
    ran = send(MODEL, stage(slow).url, "?", limits={"seconds": 30}, timeout=timeout, retries=0)
    assert isinstance(ran.error, asides.IdleTimeout)
    paced = [msgspec.structs.replace(calls("hour", place="Oslo"), delay=0.15)] * 4
    ran = send(MODEL, stage(*paced, Say(text="Noon.")).url, "?", tools=[hour], timeout=asides.Timeout(total=0.5))
    assert ran.result is not None, "four turns take longer than one of them may"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"parallel": 0}, "parallel"),
        ({"attempts": -1}, "attempts"),
        ({"approval": "maybe"}, "approval"),
        ({"approval": {"hour": "sometimes"}}, "approval"),
        ({"approve": True}, "approve"),
        ({"tool_timeout": "long"}, "tool_timeout"),
    ],
)
def test_options_that_make_no_sense_are_said_to(options: dict[str, Any], told: str) -> None:
    with pytest.raises(asides.ConfigError, match=told):
        asides.Agent(MODEL, tools=[hour], **options)


def test_a_conversation_brings_its_history_and_its_system_prompt(stage: OpenStage) -> None:
    open_stage = stage(Say(text="Well."))
    agent = asides.Agent(MODEL, base_url=open_stage.url)
    chat = asides.Conversation(MODEL, system="Be brief.", messages=["One.", asides.assistant("Two.")])
    agent.send("Three?", conversation=chat)
    assert [message["content"] for message in body_of(open_stage.requests[0])["messages"]] == [
        *("Be brief.", "One.", "Two.", "Three?"),
    ]
    with pytest.raises(asides.ConfigError, match="Pass only the new messages"):
        agent.send(chat, conversation=chat)
    assert len(open_stage.requests) == 1


@every_way
@pytest.mark.parametrize("kind", [TimeoutError, StopIteration, SystemExit])
def test_what_a_tool_raises_is_told_by_its_name(
    kind: type[BaseException], send: Callable[..., Ran], stage: OpenStage
) -> None:
    @asides.tool(timeout=30)
    def fail() -> None:
        """Fails."""
        raise kind

    ran = send(MODEL, stage(calls("fail"), Say(text="Well.")).url, "?", tools=[fail])
    assert ran.result is not None
    assert ran.result.output == "Well."
    assert kind.__name__ in ran.result.steps[0].results[0].text


def test_limits_that_are_none_are_said_to_be() -> None:
    with pytest.raises(asides.ConfigError, match="turns"):
        asides.Agent(MODEL, limits={"turns": 0})
    with pytest.raises(asides.ConfigError, match="limits"):
        asides.Agent(MODEL, limits={"rounds": 3})


# --- what is sent -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-11")
@every_way
def test_I10_S3_34_thinking_reaches_the_wire_through_the_agent(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(calls("hour", place="Oslo"), Say(text="Noon."))
    send(MODELS["openai_responses"], open_stage.url, "?", tools=[hour], thinking="high")
    assert [body_of(received)["reasoning"]["effort"] for received in open_stage.requests] == ["high", "high"]
    open_stage = stage(calls("hour", place="Oslo"), Say(text="Noon."))
    send(MODELS["anthropic"], open_stage.url, "?", tools=[hour], thinking=2048)
    assert [body_of(received)["thinking"]["budget_tokens"] for received in open_stage.requests] == [2048, 2048]


@pytest.mark.requirement("FT-11", "S3-34")
def test_I7_a_call_wins_over_the_agent_the_agent_over_the_client(stage: OpenStage) -> None:
    open_stage = stage(Say(text="."))
    model = MODELS["openai_responses"]
    client = asides.Client(base_url=open_stage.url, api_key=KEY, thinking="low", max_tokens=100)
    agent = asides.Agent(model, client=client, thinking="medium", max_tokens=200)
    agent.send("?")
    agent.send("?", reasoning_effort="high", max_tokens=300)
    asides.Agent(model, client=client).send("?")
    asides.Agent(MODELS["anthropic"], base_url=open_stage.url, api_key=KEY).send("?")
    *asked, by_rule = (body_of(received) for received in open_stage.requests)
    assert [body["reasoning"]["effort"] for body in asked] == ["medium", "high", "low"]
    assert [body["max_output_tokens"] for body in asked] == [200, 300, 100]
    assert by_rule["max_tokens"] > 300, "nobody said anything, so the model's rule does"
    client.close()


@every_way
def test_a_forced_tool_is_forced_once(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(calls("hour", place="Oslo"), Say(text="Noon."))
    ran = send(MODEL, open_stage.url, "?", tools=[hour], tool_choice="required")
    assert ran.result is not None
    assert [body_of(received)["tool_choice"] for received in open_stage.requests] == ["required", "auto"]


@every_way
def test_a_tool_without_a_function_is_handed_to_the_caller(send: Callable[..., Ran], stage: OpenStage) -> None:
    def script(request: ServedRequest) -> Scene:
        return Say(text="Thanks.") if len(find_results(request)) == 2 else calls("hour", "mine", place="Oslo")

    open_stage = stage(script)
    tools = [hour, asides.Tool("mine", "The caller's own.")]
    ran = send(MODEL, open_stage.url, "?", tools=tools)
    assert ran.result is not None
    assert ran.result.outcome == "tool_calls"
    assert [result.call_id for result in ran.result.steps[0].results] == ["call_0"]
    assert [message.role for message in ran.result.messages] == ["user", "assistant", "tool"]
    own = Message("tool", (ToolResult("call_1", "mine it is"),))
    ran = send(MODEL, open_stage.url, [*ran.result.messages, own], tools=tools)
    assert ran.result is not None
    assert ran.result.output == "Thanks."


@pytest.mark.requirement("FT-22")
@every_way
def test_S3_37_S3_38_usage_is_told_per_step_and_in_sum_with_thinking_apart(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    first = msgspec.structs.replace(calls("hour", place="Oslo"), usage=Usage(10, 20, 15, 0, 30))
    ran = send(MODEL, stage(first, Say(text="Noon.", usage=Usage(40, 5, 0, 10, 45))).url, "?", tools=[hour])
    assert ran.result is not None
    assert [step.usage.thinking for step in ran.result.steps] == [15, 0]
    assert ran.result.usage == Usage(50, 25, 15, 10, 75)
    assert ran.result.metadata["usage"] == ran.result.usage
    assert (ran.result.metadata["steps"], ran.result.metadata["outcome"]) == (2, "answered")
    for event in ran.events:
        if isinstance(event, asides.RunEnded):
            assert event.usage == ran.result.usage


@every_stream
@pytest.mark.parametrize("ends_well", [True, False])
def test_P3_what_begins_ends_and_fails_is_told_with_what_it_cost(
    ends_well: bool, send: Callable[..., Ran], stage: OpenStage
) -> None:
    first = msgspec.structs.replace(calls("hour", place="Oslo"), usage=Usage(10, 20, 15, 0, 30))
    second = Say(text="Noon.", usage=Usage(40, 5, 2, 0, 45)) if ends_well else Fail(status=400)
    ran = send(MODEL, stage(first, second).url, "?", tools=[hour])
    told = [event for event in ran.events if isinstance(event, asides.StepEnded | asides.RunEnded)]
    if ends_well:
        assert [event.usage.thinking for event in told] == [15, 2, 17]
        assert [event.outcome for event in told] == ["tool_calls", "answered", "answered"]
    else:
        assert [event.usage.thinking for event in told] == [15, 15]
        assert [event.outcome for event in told] == ["tool_calls", "failed"]
    assert kinds(ran.events).count("StepStarted") == 2


@every_way
def test_a_paused_turn_is_gone_on_with(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(Say(text="Searching", stop="pause"), Say(text="Found."))
    ran = send(MODELS["anthropic"], open_stage.url, "?")
    assert ran.result is not None
    assert ran.result.output == "Found."
    assert len(open_stage.requests) == 2


@every_way
def test_a_turn_that_pauses_without_a_word_goes_back_whole(send: Callable[..., Ran], stage: OpenStage) -> None:
    searched = asides.ServerTool(
        "server_tool_use", "srvtoolu_1", None, '{"type":"server_tool_use","id":"srvtoolu_1","name":"x","input":{}}'
    )
    paused = Say(
        events=(
            asides.ReplyStarted("made-up", "msg_1"),
            asides.PartArrived(searched, 0),
            asides.ReplyEnded(asides.StopReason("pause", "pause_turn")),
        )
    )
    open_stage = stage(paused, Say(text="Found."))
    ran = send(MODELS["anthropic"], open_stage.url, "?")
    assert ran.result is not None
    assert ran.result.output == "Found."
    assert "srvtoolu_1" in open_stage.requests[1].body.decode()


@every_way
def test_what_is_worth_knowing_is_told_once(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(calls("hour", place="Oslo"), calls("hour", place="Oslo"), Say(text="Noon."))
    asked = {"effort": "low", "summary": "brief"}
    ran = send(MODEL, open_stage.url, "?", tools=[hour], thinking=asked)
    assert ran.result is not None
    of_steps = [[notice.code for notice in step.reply.warnings] for step in ran.result.steps]
    assert [codes.count("summary_mapped") for codes in of_steps] == [1, 0, 0]
    assert [codes.count("unknown_model") for codes in of_steps] == [1, 1, 1]
    assert [notice.code for notice in ran.result.warnings].count("unknown_model") == 1


def test_the_names_of_options_are_checked() -> None:
    with pytest.raises(TypeError, match="tool_timeuot"):
        asides.Agent(MODEL, tool_timeuot=3)  # type: ignore[call-overload]


def test_two_tools_of_one_name_are_one_too_many() -> None:
    with pytest.raises(asides.ConfigError, match="hour"):
        asides.Agent(MODEL, tools=[hour, hour])


# --- a conversation around it -----------------------------------------------------------------------------------------


@every_stream
def test_K9_a_switch_of_providers_keeps_what_was_found_out(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(play)
    messages: list[Message] = []
    for place, dialect in enumerate(("anthropic", "gemini", "openai_responses", "anthropic")):
        ran = send(MODELS[dialect], open_stage.url, [*messages, user(f"Question {place}")], tools=TOOLS)
        assert ran.result is not None
        messages = list(ran.result.messages)
    assert [received.problem for received in open_stage.requests] == [None] * 12
    last = open_stage.requests[-1]
    assert last.served is not None
    assert [part.text for m in last.served.prompt.messages for part in m.parts if isinstance(part, ToolResult)].count(
        "21"
    ) == 4
    sent = last.body.decode()
    assert sent.count(THOUGHTS[2]) <= 1, "only its own thinking goes back to a provider"


class Kept:
    """A conversation at its simplest."""

    def __init__(self, *messages: Message) -> None:
        self.messages: list[Message] = list(messages)

    def extend(self, messages: Any, *, usage: Usage | None = None) -> None:
        self.messages += messages


@every_way
def test_a_conversation_gets_each_step_when_it_is_over(send: Callable[..., Ran], stage: OpenStage) -> None:
    kept = Kept(user("Hello."), Message("assistant", (asides.Text("Hello!"),)))
    seen: list[int] = []

    @asides.tool
    def count() -> int:
        """How many messages there are."""
        seen.append(len(kept.messages))
        return len(kept.messages)

    ran = send(
        MODEL, stage(calls("count"), calls("count"), Say(text="Done.")).url, "?", tools=[count], conversation=kept
    )
    assert ran.result is not None
    assert seen == [2, 5]
    assert [message.role for message in kept.messages] == [
        *("user", "assistant", "user"),
        *("assistant", "tool", "assistant", "tool", "assistant"),
    ]
    assert tuple(kept.messages) == ran.result.messages


@every_way
def test_a_conversation_counts_what_a_run_cost(send: Callable[..., Ran], stage: OpenStage) -> None:
    chat = asides.Conversation(MODEL)
    first = msgspec.structs.replace(calls("hour", place="Oslo"), usage=Usage(10, 20, 15, 0, 30))
    last = Say(text="Noon.", usage=Usage(40, 5, 0, 10, 45))
    ran = send(MODEL, stage(first, last).url, "?", tools=[hour], conversation=chat)
    assert ran.result is not None
    assert chat.messages == ran.result.messages
    assert chat.usage == ran.result.usage == Usage(50, 25, 15, 10, 75)


@every_way
def test_a_question_that_nothing_came_of_is_not_kept(send: Callable[..., Ran], stage: OpenStage) -> None:
    kept = Kept()
    ran = send(MODEL, stage(Fail(status=401)).url, "?", conversation=kept)
    assert isinstance(ran.error, asides.AuthError)
    assert kept.messages == []
    assert ran.partial is not None
    assert ran.partial.steps == ()


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("dialect", MODELS)
def test_FT_40_cancelled_anywhere_it_leaves_a_conversation_that_is_accepted(
    dialect: str, step: int, stage: OpenStage
) -> None:
    thinking: Any = {"cohere": True, "ollama": True, "anthropic": 2000, "bedrock": 2000}.get(dialect, "low")
    whole = stream_blocking(MODELS[dialect], stage(play).url, "?", tools=TOOLS, thinking=thinking)
    client = asides.Client(api_key=KEY)
    for index in range(len(dialect) % step, len(whole.events), step):
        open_stage = stage(play)
        kept = Kept()
        agent = asides.Agent(MODELS[dialect], client=client, tools=TOOLS, thinking=thinking, base_url=open_stage.url)
        with agent.stream("Which is warmer?", conversation=kept) as run:
            for _ in range(index + 1):
                next(run)
        assert run.partial.messages[0].role == "user"
        # Whatever was kept: the next question is answered, and nothing was refused.
        result = agent.send("And now?", conversation=kept)
        assert result.outcome in ("answered", "tool_calls")
        assert all(received.problem is None for received in open_stage.requests), index
        assert not any(thought in message.text for message in kept.messages for thought in THOUGHTS)
    client.close()


@pytest.mark.parametrize("shell", ["blocking", "awaiting"])
def test_what_a_tool_gave_before_the_run_was_broken_off_is_kept(shell: str, stage: OpenStage) -> None:
    release = threading.Event()

    @asides.tool
    def slow() -> str:
        """Waits."""
        release.wait(10)
        return "too late"

    open_stage = stage(calls("hour", "slow", place="Oslo"), Say(text="well"))
    kept = Kept()
    if shell == "blocking":
        agent = asides.Agent(MODEL, tools=[hour, slow], base_url=open_stage.url, api_key=KEY)
        with agent.stream("?", conversation=kept) as run:
            for event in run:
                if isinstance(event, asides.ToolFinished) and event.call.name == "hour":
                    break
    else:

        async def main() -> None:
            awaiting = asides.AsyncAgent(MODEL, tools=[hour, slow], base_url=open_stage.url, api_key=KEY)
            async with awaiting.stream("?", conversation=kept) as run:
                async for event in run:
                    if isinstance(event, asides.ToolFinished) and event.call.name == "hour":
                        break

        asyncio.run(main())
    release.set()
    told = [part for message in kept.messages for part in message.parts if isinstance(part, ToolResult)]
    assert [(part.call_id, part.is_error) for part in told] == [("call_0", False), ("call_1", True)]
    assert told[0].text == "12 o'clock in Oslo"


async def test_a_cancelled_task_leaves_its_conversation_whole(stage: OpenStage) -> None:
    started = asyncio.Event()
    ended: list[str] = []

    @asides.tool
    async def wait() -> None:
        """Waits."""
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    open_stage = stage(calls("wait"), Say(text="well"))
    kept = Kept()
    agent = asides.AsyncAgent(MODEL, tools=[wait], base_url=open_stage.url, api_key=KEY)
    task = asyncio.create_task(agent.send("?", conversation=kept))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]
    assert [message.role for message in kept.messages] == ["user", "assistant", "tool"]
    result = await agent.send("Go on.", conversation=kept)
    assert result.output == "well"


@every_way
def test_an_awaiting_tool_that_is_given_up_is_cancelled(send: Callable[..., Ran], stage: OpenStage) -> None:
    given_up = threading.Event()

    @asides.tool(timeout=0.1)
    async def wait() -> None:
        """Waits."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            given_up.set()
            raise

    ran = send(MODEL, stage(calls("wait"), Say(text="well")).url, "?", tools=[wait])
    assert ran.result is not None
    assert ran.result.steps[0].results[0].is_error
    assert given_up.wait(5)


def test_closed_from_another_thread_while_a_tool_is_at_work(stage: OpenStage) -> None:
    at_work, release = threading.Event(), threading.Event()

    @asides.tool(timeout=30)
    def wait() -> None:
        """Waits."""
        at_work.set()
        release.wait(10)

    with asides.Client(base_url=stage(calls("wait"), Say(text="well")).url, api_key=KEY) as client:
        run = asides.Agent(MODEL, client=client, tools=[wait]).stream("?")

        def close() -> None:
            at_work.wait(10)
            run.close()

        closer = threading.Thread(target=close)
        closer.start()
        names = kinds(list(run))
        closer.join()
        release.set()
    assert "RunEnded" not in names
    assert run.partial.outcome == "cancelled"
    assert [message.role for message in run.partial.messages] == ["user", "assistant", "tool"]
    with pytest.raises(asides.AgentError, match="closed") as told:
        _ = run.result
    assert told.value.result is not None
    assert len(told.value.result.messages) == 3


def test_tools_see_the_context_of_the_caller(stage: OpenStage) -> None:
    from contextvars import ContextVar

    who: ContextVar[str] = ContextVar("who", default="nobody")

    @asides.tool
    def name() -> str:
        """Who asks."""
        return who.get()

    @asides.tool
    async def name_later() -> str:
        """Who asks."""
        return who.get()

    who.set("me")
    for send in (send_blocking, stream_blocking):
        ran = send(MODEL, stage(calls("name", "name_later"), Say(text=".")).url, "?", tools=[name, name_later])
        assert ran.result is not None
        assert [result.text for result in ran.result.steps[0].results] == ["me", "me"]


def test_S3_04_metadata_has_the_thinking_of_the_run_and_none_where_there_is_none(stage: OpenStage) -> None:
    plain = send_blocking(MODEL, stage(Say(text="Well.")).url, "?")
    assert plain.result is not None
    assert not plain.result.thinking
    assert plain.result.metadata["thinking_source"] == "none"
    assert "thinking" not in plain.result.metadata
    first = Say(thinking="First.", tool_calls=(ToolCall("call_1", "hour", {"place": "Oslo"}),))
    ran = send_blocking(MODEL, stage(first, Say(thinking="Then.", text="Noon.")).url, "?", tools=[hour])
    assert ran.result is not None
    assert ran.result.metadata["thinking"] == "First.\n\nThen."
    assert ran.result.metadata["thinking_type"] == "raw"


def test_no_content_in_what_a_run_shows_of_itself(stage: OpenStage) -> None:
    ran = stream_blocking(MODEL, stage(play).url, "a secret question", tools=TOOLS)
    assert ran.result is not None
    shown = "".join(map(repr, [ran.result, *ran.result.steps, *ran.events, *ran.result.messages]))
    for secret in (*THOUGHTS, "secret", "warmer in Lisbon", KEY):
        assert secret not in shown
    assert temperature("Oslo") == 12, "a tool is still the function that it was"


def test_each_agent_has_its_own_kind_of_client() -> None:
    with pytest.raises(asides.ConfigError, match=r"client= is an AsyncClient. Pass a Client"):
        asides.Agent(MODEL, client=asides.AsyncClient())  # type: ignore[call-overload]
    with pytest.raises(asides.ConfigError, match=r"client= is a Client. Pass an AsyncClient"):
        asides.AsyncAgent(MODEL, client=asides.Client())  # type: ignore[call-overload]
