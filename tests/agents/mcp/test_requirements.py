"""Tools of MCP servers, by requirement: found, called, filtered and named over both ways, as a user would write it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import asides
from asides.values.parts import ToolCall
from asides_stage.stage import OpenStage, Say
from tests.agents.mcp.running import OFFICIAL, at_loopback


@pytest.fixture(scope="module", params=["stdio", "http"])
def files(request: pytest.FixtureRequest) -> Iterator[asides.McpServer]:
    """A server named so, of whose tools two are denied and those of one kind, and one by name, are allowed."""
    allow, deny = ("read_*", "add"), ("read_broken", "read_mixed")
    if request.param == "stdio":
        with asides.McpServer.stdio(sys.executable, OFFICIAL, name="files", allow=allow, deny=deny) as server:
            yield server
    else:
        with at_loopback() as (url, _), asides.McpServer.http(url, name="files", allow=allow, deny=deny) as server:
            yield server


def test_FT_44_tools_are_discovered_filtered_and_namespaced(files: asides.McpServer) -> None:
    assert [tool.tool.name for tool in files.tools] == ["files__add", "files__read_structured"]
    assert [tool.tool.description for tool in files.tools] == ["Add two numbers.", "Structured content, and no text."]
    assert files.tools[0].tool.parameters["required"] == ["a", "b"]


def test_FT_44_tools_are_called_by_an_agent(files: asides.McpServer, stage: OpenStage) -> None:
    theatre = stage(Say(tool_calls=(ToolCall("c", "files__add", {"a": 20, "b": 22}),)), Say(text="It is 42."))
    agent = asides.Agent("openai-compatible:any", tools=[*files.tools], base_url=theatre.url)
    result = agent.send("What is 20 + 22?")
    assert (result.output, result.steps[0].results[0].text) == ("It is 42.", "42")


async def test_FT_44_tools_are_called_by_an_awaiting_agent(files: asides.McpServer, stage: OpenStage) -> None:
    theatre = stage(Say(tool_calls=(ToolCall("c", "files__read_structured"),)), Say(text="It is warm in Cologne."))
    async with asides.AsyncClient() as client:
        agent = asides.AsyncAgent("openai-compatible:any", tools=[*files.tools], base_url=theatre.url, client=client)
        result = await agent.send("How is the weather?")
    assert result.output == "It is warm in Cologne."
    assert result.steps[0].results[0].text == '{"city":"Köln","degrees":21}'


def test_FT_44_a_tool_that_was_left_out_cannot_be_called(files: asides.McpServer, stage: OpenStage) -> None:
    theatre = stage(Say(tool_calls=(ToolCall("c", "files__die"),)), Say(text="I cannot."))
    result = asides.Agent("openai-compatible:any", tools=[*files.tools], base_url=theatre.url).send("End it.")
    assert (result.output, result.steps[0].results[0].is_error) == ("I cannot.", True)
    assert len(files.refresh()) == 2
