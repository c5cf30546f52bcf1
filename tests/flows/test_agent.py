"""The agent loop at its edges: tools that misbehave, results that cannot be sent, limits, runs that are closed."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

import asides
from asides.values.parts import ToolCall
from asides.values.result import RunEvent
from asides_stage.stage import OpenStage, Say
from tests.agents.three_tools import (
    KEY,
    MODELS,
    Ran,
    every_stream,
    every_way,
    send_awaiting,
    send_blocking,
    stream_awaiting,
)

MODEL = MODELS["openai_chat"]

ONCE_AND_TWICE = pytest.mark.parametrize("times", [1, 2])
"""A lone call may run in the caller's own thread; several never do."""


def calls_of(name: str, times: int = 1) -> Say:
    return Say(tool_calls=tuple(ToolCall(f"call_{place}", name, {}) for place in range(times)))


def told(ran: Ran) -> list[str]:
    assert ran.result is not None
    return [result.text for result in ran.result.steps[0].results]


# --- what tools raise -------------------------------------------------------------------------------------------------


@every_way
@ONCE_AND_TWICE
def test_a_cancellation_inside_of_a_tool_is_the_tools_affair(
    send: Callable[..., Ran], times: int, stage: OpenStage
) -> None:
    @asides.tool
    async def wait_for_another() -> str:
        """Waits for a task that somebody cancels."""
        other = asyncio.create_task(asyncio.sleep(60))
        asyncio.get_running_loop().call_soon(other.cancel)
        await other
        return "never"

    open_stage = stage(calls_of("wait_for_another", times), Say(text="Well."))
    ran = send(MODEL, open_stage.url, tools=[wait_for_another])
    assert told(ran) == ["CancelledError, without a reason."] * times
    assert ran.result is not None
    assert ran.result.output == "Well."


@pytest.mark.parametrize("send", [send_awaiting, stream_awaiting])
def test_a_tool_that_cancels_its_own_task_does_not_cancel_the_caller(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    @asides.tool
    async def give_up() -> None:
        """Gives up."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)

    ran = send(MODEL, stage(calls_of("give_up"), Say(text="Well.")).url, tools=[give_up])
    assert "CancelledError" in told(ran)[0]


def test_a_caller_who_cancels_is_still_obeyed(stage: OpenStage) -> None:
    started = asyncio.Event()

    @asides.tool
    async def stay() -> None:
        """Stays."""
        started.set()
        await asyncio.sleep(60)

    async def main() -> None:
        agent = asides.AsyncAgent(MODEL, base_url=url, api_key=KEY, tools=[stay])
        task = asyncio.create_task(agent.send("?"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    url = stage(calls_of("stay", 2), Say(text="Well.")).url
    asyncio.run(main())


@every_way
@ONCE_AND_TWICE
@pytest.mark.parametrize("problem", [SystemExit(3), StopIteration("no more"), asyncio.CancelledError("mine")])
def test_what_a_tool_calls_fatal_is_fatal_whatever_it_is(
    send: Callable[..., Ran], times: int, problem: BaseException, stage: OpenStage
) -> None:
    @asides.tool(fatal=type(problem))
    def leave() -> None:
        """Leaves."""
        raise problem

    ran = send(MODEL, stage(calls_of("leave", times), Say(text="Well.")).url, tools=[leave])
    assert isinstance(ran.error, asides.ToolFailed)
    assert ran.error.__cause__ is problem


@every_way
@ONCE_AND_TWICE
def test_an_async_tool_may_call_an_exit_fatal(send: Callable[..., Ran], times: int, stage: OpenStage) -> None:
    @asides.tool(fatal=SystemExit)
    async def leave() -> None:
        """Leaves."""
        raise SystemExit(3)

    ran = send(MODEL, stage(calls_of("leave", times), Say(text="Well.")).url, tools=[leave])
    assert isinstance(ran.error, asides.ToolFailed)
    assert isinstance(ran.error.__cause__, SystemExit)


def test_an_exit_of_a_signal_handler_ends_the_program(stage: OpenStage) -> None:
    # A handler of SIGTERM that exits does so inside of whatever is running.
    @asides.tool
    def terminated() -> None:
        """Is terminated."""
        signal.raise_signal(signal.SIGTERM)

    def leave(*_: object) -> None:
        raise SystemExit(3)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit):
            send_blocking(MODEL, stage(calls_of("terminated"), Say(text="Well.")).url, tools=[terminated])
    finally:
        signal.signal(signal.SIGTERM, before)


@ONCE_AND_TWICE
def test_an_exit_in_a_thread_is_told_with_its_own_words(times: int, stage: OpenStage) -> None:
    @asides.tool
    def leave() -> None:
        """Leaves."""
        raise SystemExit(3)

    ran = send_awaiting(MODEL, stage(calls_of("leave", times), Say(text="Well.")).url, tools=[leave])
    assert told(ran) == ["SystemExit: 3"] * times


# --- what tools give --------------------------------------------------------------------------------------------------


class Markup(str):
    """Text of a class of its own, as templates and parsers give it."""

    __slots__ = ()


class Unwritten:
    """Looks like something that can be written, and cannot."""

    def model_dump(self, mode: str = "json") -> Any:
        raise LookupError(mode)


def half() -> str:
    # As `os.listdir` gives the name of a file that is not UTF-8.
    return "caf\udce9.txt"


def raises_half() -> str:
    raise FileNotFoundError(half())


@every_way
@pytest.mark.parametrize(
    ("give", "expected"),
    [
        (lambda: Markup("<b>bold</b>"), "<b>bold</b>"),
        (lambda: {"text": Markup("bold")}, '{"text":"bold"}'),
        (half, "caf?.txt"),
        (raises_half, "FileNotFoundError: caf?.txt"),
        (lambda: [asides.Text(half()), Markup("bold")], "caf?.txtbold"),
        (lambda: asides.ToolResult("", half(), is_error=True), "caf?.txt"),
        (lambda: asides.ToolResult("", {"a": 1}), '{"a":1}'),
        (lambda: asides.ToolResult("", ()), ""),
        (Unwritten, "tool ran, but its value (Unwritten) cannot be sent"),
    ],
)
def test_whatever_a_tool_gives_the_run_goes_on_and_the_conversation_can_be_sent(
    send: Callable[..., Ran], give: Callable[[], Any], expected: str, stage: OpenStage
) -> None:
    open_stage = stage(calls_of("tool"), Say(text="Well."))
    ran = send(MODEL, open_stage.url, tools=[asides.tool(give, name="tool")])
    assert ran.result is not None
    assert ran.result.output == "Well."
    assert told(ran)[0].startswith(expected)
    assert send(MODEL, open_stage.url, ran.result.messages).error is None


def test_a_reason_for_a_denial_is_made_sendable_too(stage: OpenStage) -> None:
    options: dict[str, Any] = {"approval": "ask", "approve": lambda _: half()}
    ran = send_blocking(MODEL, stage(calls_of("nothing"), Say(text="Well.")).url, tools=[nothing], **options)
    assert "caf?.txt" in told(ran)[0]


# --- the answer -------------------------------------------------------------------------------------------------------


@dataclass
class Checked:
    degrees: int

    def __post_init__(self) -> None:
        assert self.degrees > -274, "that is colder than anything"


@every_way
def test_an_assertion_about_an_answer_is_told_to_the_model(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(Say(text='{"degrees": -300}'), Say(text='{"degrees": -3}'))
    ran = send(MODEL, open_stage.url, output=Checked)
    assert ran.result is not None
    assert ran.result.output == Checked(-3)
    assert "colder than anything" in ran.result.messages[-2].text


@dataclass
class Faulty:
    degrees: int

    def __post_init__(self) -> None:
        raise KeyError("a mistake of its author")


def test_an_error_of_the_callers_own_code_ends_the_run_with_its_event_too(stage: OpenStage) -> None:
    events: list[RunEvent] = []
    chat = asides.Conversation()
    agent = asides.Agent(MODEL, base_url=stage(Say(text='{"degrees": 3}')).url, api_key=KEY, output=Faulty)
    with agent.stream("?", conversation=chat) as run, pytest.raises(KeyError):
        events.extend(run)
    # `extend` keeps what came before the error.
    assert [type(event) for event in events].count(asides.RunEnded) == 1
    assert isinstance(events[-1], asides.RunEnded)
    assert events[-1].outcome == "failed"
    assert [message.role for message in chat.messages] == ["user", "assistant"]


@every_stream
def test_the_last_event_counts_the_step_that_broke_off_as_the_result_does(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    open_stage = stage(calls_of("nothing"), Say(text="many words " * 50, cut_after=600))
    ran = send(MODEL, open_stage.url, tools=[nothing], retries=0)
    assert isinstance(ran.error, asides.ConnectionLost)
    assert ran.error.result is not None
    assert isinstance(ran.events[-1], asides.RunEnded)
    assert ran.events[-1].steps == len(ran.error.result.steps) == 2
    assert ran.events[-1].usage == ran.error.result.usage


# --- limits -----------------------------------------------------------------------------------------------------------


@every_way
def test_the_time_that_an_approval_takes_counts(send: Callable[..., Ran], stage: OpenStage) -> None:
    ran_tools: list[str] = []

    @asides.tool
    def act() -> None:
        """Acts."""
        ran_tools.append("act")

    def approve(_: ToolCall) -> bool:
        time.sleep(0.6)
        return True

    options: dict[str, Any] = {"approval": "ask", "approve": approve, "limits": {"seconds": 0.5}}
    ran = send(MODEL, stage(calls_of("act"), Say(text="Well.")).url, tools=[act], **options)
    assert isinstance(ran.error, asides.LimitReached)
    assert ran.error.limit == "seconds"
    assert ran_tools == []


def nothing() -> None:
    """Does nothing."""


# --- what is left behind ----------------------------------------------------------------------------------------------


async def later() -> str:
    return "later"


@every_way
def test_what_a_tool_has_begun_too_late_is_not_left_unawaited(send: Callable[..., Ran], stage: OpenStage) -> None:
    begun: list[Coroutine[Any, Any, str]] = []
    go_on = threading.Event()

    @asides.tool(timeout=0.05)
    def begin() -> Any:
        """Begins something, when its time is over."""
        go_on.wait(20)
        begun.append(later())
        return begun[0]

    ran = send(MODEL, stage(calls_of("begin"), Say(text="Well.")).url, tools=[begin])
    assert "given up" in told(ran)[0]
    go_on.set()
    deadline = time.monotonic() + 20
    while not begun or inspect.getcoroutinestate(begun[0]) != inspect.CORO_CLOSED:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_a_tool_has_begun_in_a_run_that_is_closed_is_not_left_unawaited(stage: OpenStage) -> None:
    begun: list[Coroutine[Any, Any, str]] = []

    @asides.tool
    def begin() -> Any:
        """Begins something that nobody wants any more."""
        run.close()
        begun.append(later())
        return begun[0]

    url = stage(calls_of("begin"), Say(text="Well.")).url
    with asides.Agent(MODEL, base_url=url, api_key=KEY, tools=[begin]).stream("?") as run:
        assert not any(isinstance(event, asides.ToolFinished) for event in run)
    assert inspect.getcoroutinestate(begun[0]) == inspect.CORO_CLOSED


def test_a_run_that_is_read_to_its_end_closes_its_connections_by_itself(stage: OpenStage) -> None:
    open_stage = stage(calls_of("nothing"), Say(text="Well."))

    async def main() -> None:
        run = asides.AsyncAgent(MODEL, base_url=open_stage.url, api_key=KEY, tools=[nothing]).stream("?")
        async for _ in run:
            pass
        assert run.result.output == "Well."
        assert open_stage.wait_until(lambda: open_stage.open_connections == 0)

    asyncio.run(main())


def test_a_run_has_a_limit_of_tool_calls_by_default(stage: OpenStage) -> None:
    ran: list[int] = []

    def look(n: int) -> str:
        """Look it up."""
        ran.append(n)
        return "nothing"

    most = asides.Limits().tool_calls
    assert most is not None
    calls = tuple(ToolCall(f"call_{n}", "look", {"n": n}) for n in range(most + 1))
    agent = asides.Agent(
        "openai-compatible:made-up",
        tools=[look],
        base_url=stage(Say(tool_calls=calls)).url,
        api_key="k",
        reply_limits=asides.ReplyLimits(tool_calls=None),
    )
    with pytest.raises(asides.LimitReached) as raised:
        agent.send("?")
    assert (raised.value.limit, ran) == ("tool_calls", [])


@pytest.mark.parametrize("calls", [1, 2])
def test_a_tool_that_exits_is_a_failed_tool_for_one_call_and_for_two(stage: OpenStage, calls: int) -> None:
    def parse(n: int) -> str:
        """Parse it."""
        raise SystemExit(f"usage: parse {n}")

    made = tuple(ToolCall(f"call_{n}", "parse", {"n": n}) for n in range(calls))
    server = stage(Say(tool_calls=made), Say(text="It does not parse."))
    given: dict[str, Any] = {"tools": [parse], "base_url": server.url, "api_key": "k"}
    result = asides.Agent("openai-compatible:made-up", **given).send("?")
    assert result.output == "It does not parse."
    assert [(each.is_error, "usage: parse" in each.text) for each in result.steps[0].results] == [(True, True)] * calls
    given["tools"] = [asides.tool(fatal=SystemExit)(parse)]
    final = asides.Agent("openai-compatible:made-up", **given)
    server = stage(Say(tool_calls=made))
    with pytest.raises(asides.ToolFailed):
        final.send("?", base_url=server.url)
