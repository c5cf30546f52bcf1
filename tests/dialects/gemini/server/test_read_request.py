"""Read requests as clients of generateContent write them: names in both cases, tools, thinking, contents, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects.gemini import dialect
from asides.dialects.gemini.decode import build_file
from asides.dialects.gemini.server.read_request import read
from asides.providers.find import find_target
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, user
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thinking, Thought
from asides.values.tools import Tool

PATH = "/v1beta/models/gemini-3-pro:generateContent"
HI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def prompt_of(**fields: Any) -> Prompt:
    return read(json.dumps({**HI, **fields}).encode(), PATH).prompt


def test_the_path_says_which_model_and_how() -> None:
    served = read(json.dumps(HI).encode(), "/v1beta1/projects/p/models/gemini-3-pro%40001:streamGenerateContent")
    assert (served.model, served.stream, served.prompt.stream) == ("gemini-3-pro@001", True, True)
    assert read(json.dumps(HI).encode(), PATH).stream is False


@pytest.mark.parametrize("path", ["", "/v1beta/models", "/v1beta/models/x:countTokens"])
def test_a_path_without_a_model_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="path"):
        read(json.dumps(HI).encode(), path)


@pytest.mark.parametrize(
    "body",
    [
        b"{nonsense",
        b"[]",
        b"{}",
        b'{"contents": []}',
        b'{"contents": [7]}',
        b'{"contents": [{"role": "robot", "parts": []}]}',
        b'{"contents": [{"parts": "hi"}]}',
        b'{"contents": [{"parts": [{"inlineData": {"mimeType": "a/b", "data": "\xc3\xa9"}}]}]}',
        b'{"contents": [{"role": "model", "parts": [{"functionCall": {}}]}]}',
        b'{"contents": [{"parts": [{"functionResponse": {}}]}]}',
        b'{"contents": [{"parts": []}], "generationConfig": 7}',
        b'{"contents": [{"parts": []}], "generationConfig": {"maxOutputTokens": "many"}}',
        b'{"contents": [{"parts": []}], "generationConfig": {"temperature": "hot"}}',
        b'{"contents": [{"parts": []}], "generationConfig": {"thinkingConfig": 7}}',
        b'{"contents": [{"parts": []}], "generationConfig": {"thinkingConfig": {"thinkingBudget": -7}}}',
        (
            b'{"contents": [{"parts": []}], "generationConfig":'
            b' {"thinkingConfig": {"thinkingBudget": 7, "thinkingLevel": "LOW"}}}'
        ),
        b'{"contents": [{"parts": []}], "tools": 7}',
        b'{"contents": [{"parts": []}], "tools": [{"functionDeclarations": [{}]}]}',
    ],
)
def test_nonsense_is_refused_with_a_message_for_the_client(body: bytes) -> None:
    with pytest.raises(ConfigError) as error:
        read(body, PATH)
    assert str(error.value).endswith(".")


def test_names_may_be_in_either_case_and_those_of_the_client_stay() -> None:
    fields = {
        "system_instruction": {"parts": {"text": "Be brief."}},
        "generation_config": {
            "max_output_tokens": 9,
            "top_k": 4,
            "stop_sequences": ["END"],
            "thinking_config": {"include_thoughts": True, "thinking_budget": 1024},
        },
        "tools": [
            {
                "function_declarations": [
                    {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a_b": {"type": "STRING"}}}}
                ]
            }
        ],
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}},
        "safety_settings": [{"category": "X"}],
    }
    assert prompt_of(**fields) == Prompt(
        (user("hi"),),
        system="Be brief.",
        thinking=Thinking(budget=1024),
        tools=(Tool("f", "", {"type": "object", "properties": {"a_b": {"type": "string"}}}),),
        tool_choice="f",
        max_tokens=9,
        sampling=Sampling(top_k=4),
        stop=("END",),
        stream=False,
        extra={"safetySettings": [{"category": "X"}]},
    )


@pytest.mark.parametrize(
    ("config", "wish"),
    [
        (None, Thinking(show="none")),
        ({"includeThoughts": True}, Thinking(mode="on")),
        ({"thinkingBudget": 0}, Thinking(mode="off", show="none")),
        ({"thinkingBudget": -1, "includeThoughts": True}, Thinking(mode="auto")),
        ({"thinkingLevel": "low", "includeThoughts": True}, Thinking(effort="low")),
        ({"thinkingLevel": "HIGH", "includeThoughts": False}, Thinking(effort="high", show="none")),
    ],
)
def test_the_amount_of_thinking(config: dict[str, Any] | None, wish: Thinking) -> None:
    assert prompt_of(generationConfig={"thinkingConfig": config}).thinking == wish


def test_answers_in_json() -> None:
    schema = {"type": "object"}
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert prompt_of(generationConfig=config).output == OutputSchema("answer", schema)
    assert prompt_of(generationConfig={"responseMimeType": "application/json"}).output == "json"
    left = prompt_of(generationConfig={"responseMimeType": "text/plain"})
    assert (left.output, left.extra) == (None, {"generationConfig": {"responseMimeType": "text/plain"}})


def test_a_history_with_pictures_of_the_model() -> None:
    parts = [{"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "s1"}]
    sound = [{"inlineData": {"mimeType": "audio/wav", "data": "aGk="}}]
    picture = [{"fileData": {"fileUri": "gs://a", "mimeType": "image/png"}}]
    contents = [{"role": "model", "parts": parts}, {"parts": sound}, {"parts": picture}]
    assert prompt_of(contents=contents, systemInstruction="Be brief.").messages == (
        Message("assistant", (Image(data=b"hi", seals=(Seal("thought_signature", "s1"),)),)),
        user(File(data=b"hi", media_type="audio/wav")),
        user(Image(url="gs://a")),
    )


def test_tools_of_the_api_itself_stay_as_they_came() -> None:
    tools = [{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}]}]
    prompt = prompt_of(tools=tools)
    assert ([tool.name for tool in prompt.tools], prompt.extra) == (["f"], {"tools": tools})


def test_a_history_with_all_that_can_be_in_it() -> None:
    contents = [
        {
            "role": "user",
            "parts": [
                {"text": "look"},
                {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                {"fileData": {"fileUri": "gs://a"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "plan", "thought": True, "thoughtSignature": "s1"},
                {"text": "I will."},
                {"functionCall": {"name": "look", "args": {"at": "x"}, "id": "c1"}, "thoughtSignature": "s2"},
                {"functionCall": {"name": "look", "args": {"at": "y"}}},
                {"executableCode": {"code": "1"}},
                {"hologram": {}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "look", "response": {"output": "one"}, "id": "c1"}},
                {"functionResponse": {"name": "look", "response": {"error": "no"}}},
                {"text": "and now?"},
            ],
        },
        {"role": "function", "parts": [{"functionResponse": {"name": "late", "response": {"a": 1}}}]},
    ]
    assert prompt_of(contents=contents).messages == (
        user("look", Image(data=b"hi", media_type="image/png"), build_file("gs://a", "")),
        Message(
            "assistant",
            (
                Thought("plan", "summary", "block", seals=(Seal("thought_signature", "s1"),)),
                Text("I will."),
                ToolCall("c1", "look", {"at": "x"}, seals=(Seal("thought_signature", "s2"),)),
                ToolCall("call_2_look", "look", {"at": "y"}),
                ServerTool("executableCode", json='{"executableCode":{"code":"1"}}'),
                UnknownPart('{"hologram":{}}'),
            ),
        ),
        Message("tool", (ToolResult("c1", "one", "look"), ToolResult("call_2_look", "no", "look", is_error=True))),
        user("and now?"),
        Message("tool", (ToolResult("call_late", '{"a":1}', "late", is_json=True),)),
    )


def test_answers_find_their_calls_by_id_and_else_by_name_in_order() -> None:
    calls = [{"functionCall": {"name": "look", "id": "c1"}}, {"functionCall": {"name": "look", "id": "c2"}}]
    answers = [
        {"functionResponse": {"name": "look", "id": "c2", "response": {"output": "two"}}},
        {"functionResponse": {"name": "look", "response": {"output": "one"}}},
    ]
    contents = [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}]
    results = prompt_of(contents=contents).messages[1].parts
    assert [(part.call_id, part.text) for part in results if isinstance(part, ToolResult)] == [
        ("c2", "two"),
        ("c1", "one"),
    ]


def test_the_server_half_reads_the_requests_of_the_client_half() -> None:
    prompt = Prompt(
        (
            user("look"),
            Message("assistant", (Text("so"), ToolCall("c1", "look", {"at": "x"}))),
            Message("tool", (ToolResult("c1", "one", "look"),)),
        ),
        system="Be brief.",
        thinking=Thinking(effort="low"),
        tools=(Tool("look", "Looks."),),
        tool_choice="required",
        max_tokens=9000,
        sampling=Sampling(temperature=0.5, seed=1),
        stop=("END",),
        output=OutputSchema("answer", {"type": "object"}),
        stream=False,
    )
    request, _ = dialect.encode(prompt, find_target("google:gemini-3.5-flash"))
    read_back = dialect.read(request.body, request.url.partition("?")[0])
    messages = read_back.prompt.messages
    call = messages[1].tool_calls[0]
    # The call was made up, and the model wants a signature: the stand-in is there.
    assert [seal.value for seal in call.seals] == ["skip_thought_signature_validator"]
    assert (messages[0], messages[2]) == (prompt.messages[0], prompt.messages[2])
    for name in ("system", "thinking", "tools", "tool_choice", "max_tokens", "sampling", "stop", "output", "stream"):
        assert getattr(read_back.prompt, name) == getattr(prompt, name)
    assert read_back.prompt.extra == {}
