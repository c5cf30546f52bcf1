"""The history as contents: each part, who follows whom, signatures, and the texts of the system instruction."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects.gemini.encode_contents import encode_contents
from asides.dialects.message_encoder import OPENING, STAND_IN
from asides.providers.provider import ModelRule
from asides.values.errors import Unsupported
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from tests.decoding import target

SIGNED = (Seal("thought_signature", "s"),)


def encode(*messages: Message, signed_calls: bool = False, **fields: Any) -> tuple[list[Any], list[str], list[str]]:
    """The contents, the texts of the system instruction, and the codes of the notices."""
    notices: list[Notice] = []
    to = target(rule=ModelRule(signed_calls=signed_calls))
    contents, texts = encode_contents(Prompt(messages, **fields), to, notices)
    return contents, texts, [notice.code for notice in notices]


@pytest.mark.parametrize(
    ("part", "wire", "codes"),
    [
        (Text("a"), {"text": "a"}, []),
        (Image(data=b"x"), {"inlineData": {"mimeType": "image/png", "data": "eA=="}}, []),
        (
            Image(url="data:image/jpeg;base64,eA=="),
            {"inlineData": {"mimeType": "image/jpeg", "data": "eA=="}},
            [],
        ),
        (
            Image(url="https://a.example", detail="low"),
            {"fileData": {"mimeType": "image/png", "fileUri": "https://a.example"}},
            ["detail_not_sent"],
        ),
        (File(id="files/1"), {"fileData": {"mimeType": "application/pdf", "fileUri": "files/1"}}, []),
        (Refusal("no"), {"text": ""}, ["part_not_sent"]),
    ],
)
def test_a_part_of_a_user(part: Part, wire: dict[str, Any], codes: list[str]) -> None:
    assert encode(Message("user", (part,))) == ([{"role": "user", "parts": [wire]}], [], codes)


@pytest.mark.parametrize(
    ("part", "parts", "codes"),
    [
        (Text("a"), [{"text": "a"}], []),
        (Text("", SIGNED), [{"text": "", "thoughtSignature": "s"}], []),
        (Thought("so", seals=SIGNED), [{"text": "so", "thought": True, "thoughtSignature": "s"}], []),
        (
            ToolCall("c1", "f", {"a": 1}, seals=SIGNED),
            [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "s"}],
            [],
        ),
        (
            ToolCall("c1", "f", {}, "{a"),
            [{"functionCall": {"id": "c1", "name": "f", "args": {}}}],
            ["tool_arguments_dropped"],
        ),
        (Refusal("no"), [{"text": "no"}], []),
        (ServerTool("executableCode", json='{"executableCode":{}}'), [{"executableCode": {}}], []),
        (UnknownPart('{"new":1,"thoughtSignature":"old"}', seals=SIGNED), [{"new": 1, "thoughtSignature": "s"}], []),
    ],
)
def test_a_part_of_the_model(part: Part, parts: list[Any], codes: list[str]) -> None:
    contents, _, found = encode(user("?"), assistant(part))
    assert (msgspec.json.decode(msgspec.json.encode(contents[1:])), found) == (
        [{"role": "model", "parts": parts}],
        codes,
    )


@pytest.mark.parametrize("part", [Text(""), ServerTool("groundingMetadata", json="{}"), Refusal("")])
def test_a_turn_of_nothing_is_left_out(part: Part) -> None:
    contents, _, codes = encode(user("?"), assistant(part))
    assert (len(contents), codes) == (1, ["message_not_sent"])


def test_results_of_one_turn_stand_together_and_words_follow_in_their_own_content() -> None:
    calls = assistant(ToolCall("c1", "f"), ToolCall("c2", "g"))
    results = [Message("tool", (ToolResult("c1", "one"),)), user(ToolResult("c2", "two", is_error=True), "and?")]
    contents, _, codes = encode(user("?"), calls, *results)
    assert contents[2:] == [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "one"}}},
                {"functionResponse": {"id": "c2", "name": "g", "response": {"error": "two"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "and?"}]},
    ]
    assert codes == []


def test_a_picture_of_a_tool_stands_beside_its_result() -> None:
    shown = Message("tool", (ToolResult("c1", (Text("a"), Image(data=b"x")), "f"),))
    (content,), _, _ = encode(shown)
    assert content["parts"] == [
        {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "a"}}},
        {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
    ]


def test_a_conversation_begins_with_the_user_and_turns_of_the_model_are_joined() -> None:
    contents, _, codes = encode(assistant("a"), assistant("b"))
    assert contents == [
        {"role": "user", "parts": [{"text": OPENING}]},
        {"role": "model", "parts": [{"text": "a"}, {"text": "b"}]},
    ]
    assert codes == ["turn_added"]


def test_the_first_call_of_every_turn_gets_the_stand_in_where_calls_are_signed() -> None:
    turn = assistant(ToolCall("c1", "f"), ToolCall("c2", "f"))
    result = Message("tool", (ToolResult("c1", "1"), ToolResult("c2", "2")))
    contents, _, codes = encode(user("?"), turn, result, user("!"), turn, result, signed_calls=True)
    signatures = [[part.get("thoughtSignature") for part in contents[place]["parts"]] for place in (1, 4)]
    # Only the open turn is checked, but what was sent stays as it was sent when the turn has ended.
    assert signatures == [[STAND_IN, None], [STAND_IN, None]]
    assert codes == ["signature_stand_in"]
    assert encode(user("!"), turn, result)[2] == []
    signed = assistant(ToolCall("c1", "f", seals=SIGNED), ToolCall("c2", "f"))
    assert encode(user("!"), signed, result, signed_calls=True)[2] == []


def test_system_words_are_one_instruction() -> None:
    contents, texts, codes = encode(system("one"), user("?"), system("two"), system(" "), system="zero")
    assert (len(contents), texts, codes) == (1, ["zero", "one", "two"], ["system_moved"])


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (user(msgspec.convert({"type": "image"}, Image)), "neither data nor an address"),
        (Message("tool", (ToolResult("c9", "1"),)), "names no tool, and no call has its id 'c9'"),
    ],
)
def test_what_cannot_be_written_is_refused(message: Message, says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        encode(message)
