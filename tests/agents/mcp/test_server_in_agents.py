"""Sync and async agents with tools of a server, over real sockets and a real child process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

import asides
from asides.agents.async_ import AsyncAgent
from asides.agents.mcp.mcp_server import McpServer, McpTool
from asides.agents.sync import Agent
from asides.values.parts import ToolCall
from asides.values.result import Result
from asides_stage.stage import OpenStage, Say
from tests.agents.mcp.running import describe_child, find_tool, old, wait_until

MODEL = "openai-compatible:made-up"
Ask: TypeAlias = Callable[..., Result[str]]


def ask_sync(url: str, tools: list[Any], **options: Any) -> Result[str]:
    return Agent(MODEL, tools=tools, base_url=url, api_key="k", **options).send("?")


def ask_async(url: str, tools: list[Any], **options: Any) -> Result[str]:
    async def run() -> Result[str]:
        async with asides.AsyncClient() as client:
            return await AsyncAgent(MODEL, tools=tools, base_url=url, api_key="k", client=client, **options).send("?")

    return asyncio.run(run())


both_agents = pytest.mark.parametrize("ask", [ask_sync, ask_async])


def calls(*called: tuple[McpTool, dict[str, Any]]) -> Say:
    """A reply that calls these tools."""
    return Say(
        thinking="a tool knows",
        tool_calls=tuple(
            ToolCall(f"call_{number}", tool.tool.name, given) for number, (tool, given) in enumerate(called)
        ),
    )


@both_agents
def test_an_agent_calls_the_tools_of_a_server_and_answers(ask: Ask, server: McpServer, stage: OpenStage) -> None:
    add, echo = find_tool(server, "add"), find_tool(server, "echo")
    theatre = stage(calls((add, {"a": 20, "b": 22}), (echo, {"text": "hi"})), Say(text="42, hi"))
    result = ask(theatre.url, [*server.tools])
    assert result.output == "42, hi"
    assert [each.text for each in result.steps[0].results] == ["42", "hi"]
    sent = theatre.requests[1].json["messages"]
    assert [(message["tool_call_id"], message["content"]) for message in sent if message["role"] == "tool"] == [
        ("call_0", "42"),
        ("call_1", "hi"),
    ]
    offered = {tool["function"]["name"]: tool["function"] for tool in theatre.requests[0].json["tools"]}
    assert offered[add.tool.name]["parameters"] == add.tool.parameters
    assert set(offered) == {tool.tool.name for tool in server.tools}


@both_agents
def test_a_tool_that_fails_does_not_end_the_run(ask: Ask, server: McpServer, stage: OpenStage) -> None:
    theatre = stage(calls((find_tool(server, "fail"), {"reason": "no such city"})), Say(text="There is no such city."))
    result = ask(theatre.url, [*server.tools])
    failed = result.steps[0].results[0]
    assert (failed.is_error, "no such city" in failed.text, result.outcome) == (True, True, "answered")


@both_agents
def test_a_server_that_dies_does_not_end_the_run(ask: Ask, stage: OpenStage) -> None:
    alive: list[int] = []

    def approve(_: ToolCall) -> bool:
        if alive:
            os.kill(alive.pop(), signal.SIGKILL)
        return True

    with old(name="o", approval="ask") as server:
        alive.append(describe_child(server)["pid"])
        one = find_tool(server, "one")
        theatre = stage(calls((one, {})), calls((one, {})), Say(text="Now it runs."))
        result = ask(theatre.url, [*server.tools], approve=approve)
    first, second = (step.results[0] for step in result.steps[:2])
    assert (first.is_error, second.is_error, result.output) == (True, False, "Now it runs.")
    assert first.text.startswith("the server o ended before it answered")


@both_agents
def test_a_call_that_takes_too_long_is_cancelled_at_the_server(ask: Ask, stage: OpenStage) -> None:
    with old(name="o", timeout=0.3) as server:
        theatre = stage(calls((find_tool(server, "three"), {})), Say(text="It takes too long."))
        result = ask(theatre.url, [*server.tools])
        assert (result.output, result.steps[0].results[0].is_error) == ("It takes too long.", True)
        wait_until(lambda: server.tools[-1].own_name == "cancelled", "the server gets the cancellation")


@both_agents
def test_approval_is_asked_for_if_the_server_was_made_so(ask: Ask, stage: OpenStage) -> None:
    asked: list[str] = []

    def approve(call: ToolCall) -> bool:
        asked.append(call.name)
        return False

    with old(name="o", approval="ask") as server:
        theatre = stage(calls((find_tool(server, "one"), {})), Say(text="Not allowed."))
        result = ask(theatre.url, [*server.tools], approve=approve)
    assert (asked, result.steps[0].results[0].is_error) == (["o__one"], True)


@both_agents
def test_a_server_that_is_not_open_ends_the_run(ask: Ask, stage: OpenStage) -> None:
    with old(name="o") as server:
        tools = server.tools
    theatre = stage(calls((tools[0], {})), Say(text="never said"))
    with pytest.raises(asides.ToolFailed) as caught:
        ask(theatre.url, [*tools])
    assert "the MCP server o is not open" in str(caught.value.__cause__)
    assert len(theatre.requests) == 1
