"""The real readers of front ends, in a real Node process over real sockets: the chat of Vercel's AI SDK (npm `ai`) and
AG-UI's own client (npm `@ag-ui/client`), which checks the order of the events.
"""

from __future__ import annotations

import json
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pydantic
import pytest

import asides
from asides.values.events import PartArrived, RefusalDelta
from asides.values.parts import Image, ToolCall
from asides_stage import Fail, OpenStage, Say
from tests.agents.three_tools import ANSWER, KEY, MODELS, THOUGHTS, TOOLS, play
from tests.integrations.front_ends import AgUiThread
from tests.integrations.test_ui_state import EVENTS
from tests.integrations.web_server import serve_asgi, serve_wsgi

HERE = Path(__file__).parent
THINKING: dict[str, Any] = {"gemini": "low", "cohere": True, "anthropic": 2000, "bedrock": 2000, "ollama": True}
QUESTIONS = ["Which is warmer?", "And again?"]


@pytest.fixture(scope="module")
def packages() -> str:
    """The folder of the npm packages; the tests skip where npm cannot install them."""
    npm = runpy.run_path(str(HERE.parent.parent / "scripts" / "npm_packages.py"))
    try:
        return str(npm["install"]())
    except npm["NpmMissing"] as problem:
        pytest.skip(str(problem))


def run_node(program: str, *words: str) -> dict[str, Any]:
    ran = subprocess.run(
        ["node", str(HERE / "node" / program), *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    seen: dict[str, Any] = json.loads(ran.stdout)
    return seen


def outline(message: dict[str, Any]) -> list[str]:
    """The parts of a UI message, with their state."""
    return [":".join(filter(None, (part["type"], part.get("state")))) for part in message["parts"]]


RUN = [
    *("step-start", "reasoning:done", "tool-temperature:output-available", "tool-temperature:output-available"),
    *("tool-hour:output-available", "step-start", "reasoning:done", "tool-minus:output-available"),
    *("step-start", "reasoning:done", "text:done"),
]


# Node takes seconds to start: the versions before and after run with -m "clients and thorough".
OTHERS = ("ai-5", "ai-7")
VERSIONS = ["ai", *(pytest.param(name, marks=pytest.mark.thorough) for name in OTHERS)]
WITH_OTHERS = [
    pytest.param(dialect, name, marks=pytest.mark.thorough) for dialect in ("anthropic", "gemini") for name in OTHERS
]


@pytest.mark.parametrize(("dialect", "package"), [*((dialect, "ai") for dialect in MODELS), *WITH_OTHERS])
def test_a_chat_of_the_ai_sdk_with_an_agent_behind_it(
    dialect: str, package: str, packages: str, stage: OpenStage
) -> None:
    opened, carry = stage(play), asides.ui.StateKeys("0f" * 32)

    def answer(body: Any) -> asides.ui.AsyncUiStream[bytes]:
        agent = asides.AsyncAgent(
            MODELS[dialect], tools=TOOLS, thinking=THINKING.get(dialect, "low"), base_url=opened.url, api_key=KEY
        )
        return asides.ui.vercel(agent.stream(asides.ui.read_vercel(body, carry=carry)), carry=carry)

    with serve_asgi(answer, asides.ui.VERCEL_HEADERS) as url:
        seen = run_node("vercel_chat.mjs", packages, package, url, json.dumps(QUESTIONS))
    assert (seen["errors"], seen["status"], seen["valid"]) == ([], "ready", 4)
    assert [opened.refusals, len(opened.requests)] == [[], 6]
    for message in (seen["messages"][1], seen["messages"][3]):
        shown = [part for part in message["parts"] if part["type"] != "reasoning" or part["text"]]
        assert outline({"parts": shown}) == RUN
        assert [part["text"] for part in shown if part["type"] == "reasoning"] == list(THOUGHTS)
        assert [part["text"] for part in shown if part["type"] == "text"] == [ANSWER]
        assert [part["output"] for part in shown if "output" in part] == [
            "21",
            "12",
            "12 o'clock in Lisbon",
            {"difference": 9},
        ]
        assert message["metadata"]["usage"]["totalTokens"] > 0
    assert [message["role"] for message in seen["prompt"]] == [
        *("user", "assistant", "tool", "assistant", "tool", "assistant"),
        *("user", "assistant", "tool", "assistant", "tool", "assistant"),
    ]


@pytest.mark.parametrize("package", VERSIONS)
def test_a_tool_that_the_page_runs(package: str, packages: str, stage: OpenStage) -> None:
    call = ToolCall("call_abc123", "get_location", {"precise": True})
    opened = stage(Say(thinking="I ask the page.", tool_calls=(call,)), Say(thinking="Lisbon, then.", text="Lisbon."))
    carry = asides.ui.StateKeys("0f" * 32)
    tool = {"name": "get_location", "parameters": {"type": "object", "properties": {"precise": {"type": "boolean"}}}}

    def answer(body: Any) -> asides.ui.UiStream[bytes]:
        options: dict[str, Any] = {"tools": [tool], "thinking": 2000, "base_url": opened.url, "api_key": KEY}
        events = asides.stream(MODELS["anthropic"], asides.ui.read_vercel(body, carry=carry), **options)
        return asides.ui.vercel(events, carry=carry)

    with serve_wsgi(answer, asides.ui.VERCEL_HEADERS) as url:
        outputs = json.dumps({"get_location": {"city": "Lisbon"}})
        seen = run_node("vercel_chat.mjs", packages, package, url, json.dumps(["Where am I?"]), outputs)
    assert (seen["errors"], seen["status"], opened.refusals) == ([], "ready", [])
    question, reply = seen["messages"]
    assert question["role"] == "user"
    expected = ["step-start", "reasoning:done", "tool-get_location:output-available", "step-start", "reasoning:done"]
    assert outline(reply) == [*expected, "text:done"]
    sent = json.loads(opened.requests[1].body)["messages"]
    assert [block["type"] for block in sent[1]["content"]] == ["thinking", "tool_use"]
    assert sent[1]["content"][0]["signature"]
    assert sent[2]["content"][0]["content"] == '{"city":"Lisbon"}'


@pytest.mark.parametrize("package", VERSIONS)
def test_an_error_reaches_the_page_in_words_for_its_user(package: str, packages: str, stage: OpenStage) -> None:
    opened = stage(Fail(status=429, message="org-4711 is over its quota, says the provider"))

    def answer(body: Any) -> asides.ui.AsyncUiStream[bytes]:
        options: dict[str, Any] = {"base_url": opened.url, "api_key": KEY, "retries": 0}
        return asides.ui.vercel(asides.aio.stream(MODELS["anthropic"], asides.ui.read_vercel(body), **options))

    with serve_asgi(answer, asides.ui.VERCEL_HEADERS) as url:
        seen = run_node("vercel_chat.mjs", packages, package, url, json.dumps(["Hello"]))
    assert seen["errors"] == ["Too many requests right now. Please try again in a moment."]
    assert seen["status"] == "error"
    assert [header["x-vercel-ai-ui-message-stream"] for header in seen["headers"]] == ["v1"]
    assert "4711" not in json.dumps(seen)


@pytest.mark.parametrize("dialect", MODELS)
def test_a_client_of_ag_ui_with_an_agent_behind_it(dialect: str, packages: str, stage: OpenStage) -> None:
    opened, carry = stage(play), asides.ui.StateKeys("0f" * 32)

    def answer(body: Any) -> asides.ui.AsyncUiStream[bytes]:
        agent = asides.AsyncAgent(
            MODELS[dialect], tools=TOOLS, thinking=THINKING.get(dialect, "low"), base_url=opened.url, api_key=KEY
        )
        return asides.ui.ag_ui(agent.stream(asides.ui.read_ag_ui(body, carry=carry)), run=body, carry=carry)

    with serve_asgi(answer, asides.ui.AG_UI_HEADERS) as url:
        seen = run_node("ag_ui_agent.mjs", packages, url, json.dumps(QUESTIONS))
    assert (seen["errors"], opened.refusals, len(opened.requests)) == ([], [], 6)
    assert seen["events"].count("STEP_STARTED") == 6
    assert [run["outcome"] for run in seen["finished"]] == [{"type": "success"}] * 2
    assert [run["pendingToolCallIds"] for run in seen["finished"]] == [[], []]
    shown = [message for message in seen["messages"] if message["role"] != "reasoning" or message["content"]]
    turn = [
        *("user", "reasoning", "assistant", "tool", "tool", "tool", "reasoning", "assistant", "tool"),
        *("reasoning", "assistant"),
    ]
    assert [message["role"] for message in shown] == turn * 2
    assert [message["content"] for message in shown if message["role"] == "reasoning"] == [*THOUGHTS, *THOUGHTS]
    assert [message["content"] for message in shown if message["role"] == "assistant" and message.get("content")] == [
        ANSWER,
        ANSWER,
    ]


def test_a_client_of_ag_ui_sees_errors_in_words_for_its_user(packages: str, stage: OpenStage) -> None:
    opened = stage(Fail(status=529, message="org-4711 waits"), Say(thinking="Now.", text="Hello."))

    def answer(body: Any) -> asides.ui.UiStream[bytes]:
        options: dict[str, Any] = {"base_url": opened.url, "api_key": KEY, "retries": 0}
        return asides.ui.ag_ui(asides.stream(MODELS["ollama"], asides.ui.read_ag_ui(body), **options), run=body)

    with serve_wsgi(answer, asides.ui.AG_UI_HEADERS) as url:
        seen = run_node("ag_ui_agent.mjs", packages, url, json.dumps(QUESTIONS))
    words = "The model is busy right now. Please try again later."
    assert seen["errors"][0] == {"message": words, "code": "overloaded"}
    assert "4711" not in json.dumps(seen)
    assert [message["content"] for message in seen["messages"][-2:]] == ["Now.", "Hello."]


@pytest.mark.parametrize("dialect", MODELS)
def test_every_event_is_one_of_ag_ui_own_types(dialect: str, stage: OpenStage) -> None:
    core = pytest.importorskip("ag_ui.core")
    event_type: Any = pydantic.TypeAdapter(core.Event)
    opened, carry = stage(play), asides.ui.StateKeys("0f" * 32)
    run = core.RunAgentInput(
        thread_id="thread-1",
        run_id="run-1",
        messages=[core.UserMessage(id="q1", content="Which is warmer?")],
        state={},
        tools=[],
        context=[],
        forwarded_props={},
    )
    thinking = THINKING.get(dialect, "low")
    agent = asides.Agent(MODELS[dialect], tools=TOOLS, thinking=thinking, base_url=opened.url, api_key=KEY)
    events = list(asides.ui.ag_ui_events(agent.stream(asides.ui.read_ag_ui(run)), run=run, carry=carry))
    assert (events[0]["threadId"], events[0]["runId"]) == ("thread-1", "run-1")
    for event in events:
        read = event_type.validate_python(event)
        assert read.model_extra in (None, {})
        assert json.loads(read.model_dump_json(by_alias=True)) == event


def test_every_kind_of_event_is_one_of_ag_ui_own_types() -> None:
    core = pytest.importorskip("ag_ui.core")
    event_type: Any = pydantic.TypeAdapter(core.Event)
    thread = AgUiThread()
    for events in (
        EVENTS,
        EVENTS[:-3],
        [*EVENTS[:-1], RefusalDelta("No.", 9), PartArrived(Image(data=b"\x89PNG"), 10)],
    ):
        written = list(asides.ui.ag_ui_events(events, carry=asides.ui.StateKeys("0f" * 32)))
        for event in [*written, {"type": "RUN_ERROR", "message": "No.", "code": "x"}]:
            read = event_type.validate_python(event)
            assert read.model_extra in (None, {})
            assert json.loads(read.model_dump_json(by_alias=True)) == event
        thread = AgUiThread().feed(written)
    message_type: Any = pydantic.TypeAdapter(core.Message)
    for message in thread.messages:
        message_type.validate_python(message)
