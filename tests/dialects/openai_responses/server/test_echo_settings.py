"""The settings of a request that a response repeats."""

from __future__ import annotations

import json

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_responses.server.write_reply import echo_settings
from asides.dialects.server_half import ReplyWriter
from asides.values.events import ReplyEnded, StopReason, TextDelta
from asides.values.messages import OutputSchema, Prompt, ProviderState, user
from asides.values.thinking import Thinking
from asides.values.tools import Tool
from asides.wire.sse import SseReader

MESSAGES = (user("hi"),)


def test_a_response_repeats_the_settings_of_its_request() -> None:
    prompt = Prompt(
        MESSAGES,
        system="Be brief.",
        thinking=Thinking(effort="low", summary="auto"),
        tools=(Tool("f", "Finds.", strict=True),),
        tool_choice="f",
        parallel_tool_calls=False,
        output=OutputSchema("a", {"type": "object"}),
        max_tokens=99,
        metadata={"k": "v"},
        state=ProviderState(previous_response_id="resp_0"),
        extra={"text": {"verbosity": "low"}},
    )
    writer = find_dialect("openai_responses").writer(model="m", stream=True)
    assert isinstance(writer, ReplyWriter)
    writer.serve(ServedRequest(prompt, "m", stream=True), {}, foreign=True)
    reader = SseReader()
    data = writer.write([TextDelta("a"), ReplyEnded(StopReason("stop"))])
    documents = [json.loads(document) for document in (*reader.feed(data), *reader.finish())]
    for document in (documents[0], documents[1], documents[-1]):
        response = document["response"]
        assert response["instructions"] == "Be brief."
        assert response["reasoning"] == {"effort": "low", "summary": "auto"}
        assert [tool["name"] for tool in response["tools"]] == ["f"]
        assert response["tool_choice"] == {"type": "function", "name": "f"}
        assert response["parallel_tool_calls"] is False
        assert response["text"]["verbosity"] == "low"
        assert response["text"]["format"]["type"] == "json_schema"
        assert (response["max_output_tokens"], response["metadata"]) == (99, {"k": "v"})
        assert response["previous_response_id"] == "resp_0"


def test_a_plain_request_has_the_defaults_of_the_dialect() -> None:
    echoed = echo_settings(Prompt(MESSAGES))
    assert (echoed["tool_choice"], echoed["parallel_tool_calls"], echoed["truncation"]) == ("auto", True, "disabled")
    assert echoed["text"] == {"format": {"type": "text"}}
    assert bytes(echoed["tools"]) == b"[]"
    assert echo_settings(Prompt(MESSAGES, output="json"))["text"] == {"format": {"type": "json_object"}}
    assert echo_settings(Prompt(MESSAGES, thinking=Thinking(mode="off")))["reasoning"]["effort"] == "none"


def test_tools_of_the_provider_are_repeated_as_they_were_sent() -> None:
    tools = [{"type": "web_search"}, {"type": "function", "name": "f"}]
    assert (
        json.loads(bytes(echo_settings(Prompt(MESSAGES, tools=(Tool("f"),), extra={"tools": tools}))["tools"])) == tools
    )
