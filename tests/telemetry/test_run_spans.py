"""The spans of an agent's run: its steps, and its tools in whatever thread or task they run."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
import warnings
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import asides
from asides_stage.stage import Fail, Say, Stage
from tests.telemetry.recorded import Recorded, get, identify, is_inside, recording

MODEL = "openai-compatible:m"
WHERE: list[tuple[str, int]] = []
"""The thread that each tool ran in, and the span that was current."""


@pytest.fixture
def recorded() -> Generator[Recorded]:
    WHERE.clear()
    with recording() as recorded:
        yield recorded


def _note() -> None:
    WHERE.append((threading.current_thread().name, trace.get_current_span().get_span_context().span_id))


@asides.tool
def plain(word: str) -> str:
    """Say a word."""
    _note()
    return word


@asides.tool
async def waiting(word: str) -> str:
    """Say a word later."""
    await asyncio.sleep(0.01)
    _note()
    return word


@asides.tool
def failing(word: str) -> str:
    """Fail."""
    raise ValueError(f"canary {word}")


@asides.tool(timeout=0.05)
def slow(word: str) -> str:
    """Take long."""
    time.sleep(0.3)
    return word


def _call(*names: str) -> Say:
    return Say(tool_calls=tuple(asides.ToolCall(f"c{place}", name, {"word": "w"}) for place, name in enumerate(names)))


def _run(stage: Stage, *tools: Any, **options: Any) -> Any:
    with asides.Client(base_url=stage.url, api_key="k") as client:
        return asides.Agent(MODEL, tools=list(tools), client=client, **options).run("?")


async def _run_async(stage: Stage, *tools: Any) -> Any:
    async with asides.AsyncClient(base_url=stage.url, api_key="k") as client:
        return await asides.AsyncAgent(MODEL, tools=list(tools), client=client).run("?")


def test_a_run_holds_its_steps_and_they_hold_their_calls_and_tools(recorded: Recorded) -> None:
    with Stage([_call("plain"), Say(text="done")]) as stage:
        _run(stage, plain)
    assert recorded.names == ["chat m", "execute_tool plain", "agent_step", "chat m", "agent_step", "invoke_agent"]
    run = recorded.find("invoke_agent")
    first, second = recorded.find("agent_step"), recorded.find("agent_step", 1)
    assert is_inside(first, run)
    assert is_inside(second, run)
    assert is_inside(recorded.find("execute_tool plain"), first)
    assert is_inside(recorded.find("chat m"), first)
    assert is_inside(recorded.find("chat m", 1), second)
    known = get(run)
    assert known["gen_ai.operation.name"] == "invoke_agent"
    assert (known["asides.run.outcome"], known["asides.run.steps"]) == ("answered", 2)
    chats = [get(recorded.find("chat m", number))["gen_ai.usage.output_tokens"] for number in (0, 1)]
    assert known["gen_ai.usage.output_tokens"] == sum(chats)
    tool = get(recorded.find("execute_tool plain"))
    assert tool["gen_ai.operation.name"] == "execute_tool"
    assert tool["gen_ai.tool.name"] == "plain"
    assert tool["gen_ai.tool.call.id"] == "c0"
    assert "gen_ai.tool.call.arguments" not in tool


def test_the_span_of_a_tool_is_current_where_the_tool_runs(recorded: Recorded) -> None:
    names = ("plain", "waiting")
    with Stage([_call(*names), Say(text="x"), _call(*names), Say(text="x"), _call("waiting"), Say(text="x")]) as stage:
        _run(stage, plain, waiting)
        asyncio.run(_run_async(stage, plain, waiting))
        _run(stage, waiting)
    spans = {identify(span).span_id for span in recorded.spans if span.name.startswith("execute_tool")}
    assert {span for _, span in WHERE} == spans
    assert len(WHERE) == 5
    assert sum(thread == "asides-tool" for thread, _ in WHERE) >= 3
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_call_inside_a_tool_is_inside_its_span(recorded: Recorded) -> None:
    @asides.tool
    def research(word: str) -> str:
        """Ask another model."""
        return asides.ask("openai-compatible:inner", word, base_url=stage.url, api_key="k").text

    with Stage([_call("research"), Say(text="inner"), Say(text="done")]) as stage:
        _run(stage, research)
    assert is_inside(recorded.find("chat inner"), recorded.find("execute_tool research"))


def test_a_tool_that_fails_is_told_by_its_type_alone(recorded: Recorded) -> None:
    with Stage([_call("failing"), Say(text="sorry")]) as stage:
        _run(stage, failing)
    span = recorded.find("execute_tool failing")
    assert span.status.status_code is StatusCode.ERROR
    assert get(span)["error.type"] == "ValueError"
    assert "canary" not in recorded.dump()
    assert recorded.find("invoke_agent").status.status_code is StatusCode.UNSET


def test_a_tool_that_takes_too_long_ends_its_span_once(recorded: Recorded) -> None:
    with Stage([_call("slow"), Say(text="late")]) as stage:
        _run(stage, slow)
    time.sleep(0.4)
    assert get(recorded.find("execute_tool slow"))["error.type"] == "timeout"


def test_approvals_have_no_span(recorded: Recorded) -> None:
    with Stage([_call("plain"), Say(text="no")]) as stage:
        _run(stage, plain, approval="ask", approve=lambda _: False)
    assert recorded.names == ["chat m", "agent_step", "chat m", "agent_step", "invoke_agent"]


def test_a_run_that_fails_ends_every_span_with_the_error(recorded: Recorded) -> None:
    with Stage([_call("plain"), Fail(400)]) as stage, pytest.raises(asides.BadRequest):
        _run(stage, plain)
    for name, number in (("chat m", 1), ("agent_step", 1), ("invoke_agent", 0)):
        assert get(recorded.find(name, number))["error.type"] == "BadRequest"
    assert "error.type" not in get(recorded.find("agent_step"))


def test_a_run_that_is_left_while_a_tool_runs_ends_every_span(recorded: Recorded) -> None:
    entered, release = threading.Event(), threading.Event()

    @asides.tool(timeout=30)
    def hanging(word: str) -> str:
        """Hang."""
        entered.set()
        release.wait(10)
        return word

    with Stage([_call("hanging"), Say(text="x")]) as stage, asides.Client(base_url=stage.url, api_key="k") as client:
        run = asides.Agent(MODEL, tools=[hanging], client=client).stream("?")

        def leave() -> None:
            entered.wait(10)
            run.close()

        threading.Thread(target=leave).start()
        list(run)
    assert recorded.names == ["chat m", "execute_tool hanging", "agent_step", "invoke_agent"]
    release.set()
    assert get(recorded.find("execute_tool hanging"))["asides.closed"] is True
    assert get(recorded.find("invoke_agent"))["asides.closed"] is True


def test_a_cancelled_async_run_ends_every_span(recorded: Recorded) -> None:
    @asides.tool
    async def endless(word: str) -> str:
        """Never end."""
        started.set()
        await asyncio.sleep(60)
        return word

    started = asyncio.Event()

    async def cancel() -> None:
        task = asyncio.create_task(_run_async(stage, endless))
        await started.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    with Stage([_call("endless")]) as stage:
        asyncio.run(cancel())
    assert set(recorded.names) == {"chat m", "execute_tool endless", "agent_step", "invoke_agent"}


def test_a_run_closed_before_it_is_read_has_no_span(recorded: Recorded) -> None:
    async def close() -> None:
        async with asides.AsyncClient(base_url=stage.url, api_key="k") as client:
            run = asides.AsyncAgent(MODEL, tools=[plain], client=client).stream("?")
            await run.close()
            with suppress(asides.AsidesError):
                await run.drain()

    with Stage() as stage:
        asyncio.run(close())
        with asides.Client(base_url=stage.url, api_key="k") as client:
            run = asides.Agent(MODEL, tools=[plain], client=client).stream("?")
            run._driver.close()
            assert list(run) == []
    assert recorded.names == []


def test_what_a_tool_wanted_to_await_is_not_left_behind(recorded: Recorded) -> None:
    """A job that is discarded before it is awaited warns of nothing, and its span ends."""

    @asides.tool
    def starting(word: str) -> Any:
        """Return something to await."""
        return waiting_for(word)

    async def waiting_for(word: str) -> str:
        return word

    with warnings.catch_warnings(), Stage([_call("starting"), Say(text="x")]) as stage:
        warnings.simplefilter("error")
        _run(stage, starting)
        gc.collect()
    assert "error.type" not in get(recorded.find("execute_tool starting"))


def test_what_a_tool_begins_when_its_time_is_over_is_closed(recorded: Recorded) -> None:
    begun: list[Any] = []
    go_on = threading.Event()

    @asides.tool(timeout=0.05)
    def starting(word: str) -> Any:
        """Begin something too late."""
        go_on.wait(10)
        begun.append(waiting_for(word))
        return begun[0]

    async def waiting_for(word: str) -> str:
        return word

    with Stage([_call("starting"), Say(text="x")]) as stage:
        _run(stage, starting)
    go_on.set()
    deadline = time.monotonic() + 10
    while not begun or inspect.getcoroutinestate(begun[0]) != inspect.CORO_CLOSED:
        assert time.monotonic() < deadline, "nothing awaits it, and Python would warn"
        time.sleep(0.01)
    assert get(recorded.find("execute_tool starting"))["error.type"] == "timeout"
