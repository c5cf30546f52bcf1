"""Contents as clients write them, as messages: each part, calls without ids, and errors that name the place."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest

from asides.dialects.gemini.decode import build_file
from asides.dialects.gemini.import_contents import import_contents, import_texts
from asides.dialects.message_encoder import STAND_IN
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, user
from asides.values.parts import File, Image, Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought

SIGNED = (Seal("thought_signature", "s"),)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"text": "a"}, Text("a")),
        ({"inlineData": {"mimeType": "image/png", "data": "eA=="}}, Image(data=b"x")),
        ({"inlineData": {"mimeType": "text/plain", "data": "_-8="}}, File(data=b"\xff\xef", media_type="text/plain")),
        (
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://a"}},
            Image(url="https://a", media_type="image/jpeg"),
        ),
        ({"fileData": {"fileUri": "https://a"}}, build_file("https://a", "")),
        ({"new": 1}, UnknownPart('{"new":1}')),
    ],
)
def test_a_part_of_a_user(part: dict[str, Any], expected: Part) -> None:
    assert import_contents([{"parts": [part]}]) == (Message("user", (expected,)),)
    assert import_contents([{"role": "user", "parts": part}]) == (Message("user", (expected,)),)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"text": "a", "thoughtSignature": "s"}, Text("a", SIGNED)),
        ({"text": "so", "thought": True}, Thought("so", "summary", "block")),
        ({"text": "", "thought": True, "thoughtSignature": "s"}, Thought("", "hidden", "block", seals=SIGNED)),
        ({"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}, ToolCall("c1", "f", {"a": 1})),
        ({"functionCall": {"name": "f"}}, ToolCall("call_1_f", "f")),
        (
            {"inlineData": {"mimeType": "image/png", "data": "eA=="}, "thoughtSignature": "s"},
            Image(data=b"x", seals=SIGNED),
        ),
        ({"executableCode": {"code": "1"}}, ServerTool("executableCode", json='{"executableCode":{"code":"1"}}')),
        ({"new": 1}, UnknownPart('{"new":1}')),
    ],
)
def test_a_part_of_the_model(part: dict[str, Any], expected: Part) -> None:
    assert import_contents([{"role": "model", "parts": [part]}]) == (assistant(expected),)


@pytest.mark.parametrize(
    ("response", "text", "is_error"),
    [
        ({"output": "42"}, "42", False),
        ({"result": "42"}, "42", False),
        ({"error": "no"}, "no", True),
        ({"name": "f", "content": "42"}, "42", False),
        ({"output": "42", "unit": "m"}, '{"output":"42","unit":"m"}', False),
        ({"degrees": 3}, '{"degrees":3}', False),
        (None, "", False),
    ],
)
def test_a_result_is_its_text_or_its_json(response: Any, text: str, is_error: bool) -> None:
    answer = {"functionResponse": {"id": "c1", "name": "f", "response": response}}
    assert import_contents([{"parts": [answer]}]) == (
        # JSON that is more than a text in an object is marked: it goes back as an object.
        Message("tool", (ToolResult("c1", text, "f", is_error=is_error, is_json=text.startswith("{")),)),
    )


def test_a_result_without_an_id_belongs_to_the_first_call_without_a_result() -> None:
    def answer(name: str, **fields: Any) -> dict[str, Any]:
        return {"functionResponse": {"name": name, "response": {"output": "x"}, **fields}}

    calls = [{"functionCall": {"name": name, **more}} for name, more in (("f", {}), ("f", {"id": "b"}), ("g", {}))]
    other = answer("f", response={"output": "y"})
    contents = [
        {"role": "model", "parts": calls},
        {"role": "function", "parts": [answer("f"), answer("f"), answer("g"), other, {"text": "and?"}]},
        {"role": "model", "parts": [{"text": "a"}]},
        {"role": "tool", "parts": [answer("g")]},
    ]
    _, results, words, _, late = import_contents(contents)
    ids = [part.call_id for part in results.parts if isinstance(part, ToolResult)]
    assert ids == ["call_1_f", "b", "call_3_g", "call_f"]
    assert words == user("and?")
    assert late == Message("tool", (ToolResult("call_g", "x", "g"),)), "a turn that is over waits for nothing"


def result(call_id: str | None, output: str = "x", name: str = "f") -> dict[str, Any]:
    named = {} if call_id is None else {"id": call_id}
    return {"functionResponse": {"name": name, "response": {"output": output}, **named}}


def called(*ids: str | None) -> dict[str, Any]:
    calls = [{"functionCall": {"name": "f"} | ({} if call_id is None else {"id": call_id})} for call_id in ids]
    return {"role": "model", "parts": calls}


@pytest.mark.parametrize(
    ("calls", "answers", "expected"),
    [
        (["a"], [[result("a"), result("a")]], ["a"]),
        (["a"], [[result("a")], [result("a")]], ["a"]),
        (["a", "b"], [[result("a"), result("b"), result("a"), result("b")]], ["a", "b"]),
        (["a"], [[result("a"), result("a", "changed")]], ["a"]),
        ([None], [[result(None), result(None)]], ["call_1_f"]),
        ([None, None], [[result(None), result(None)], [result(None), result(None)]], ["call_1_f", "call_2_f"]),
        # What is not a repetition stays, and the rules judge it.
        ([None], [[result(None), result(None, "y")]], ["call_1_f", "call_f"]),
        # An id on one side only.
        ([None], [[result("z")]], ["call_1_f"]),
        (["a", None], [[result("z"), result("a")]], ["call_2_f", "a"]),
    ],
)
def test_a_result_that_comes_twice_counts_once(
    calls: list[str | None], answers: list[Any], expected: list[str]
) -> None:
    contents = [called(*calls), *({"role": "user", "parts": parts} for parts in answers)]
    _, *messages = import_contents(contents)
    assert [message.role for message in messages] == ["tool"]
    assert [part.call_id for part in messages[0].parts if isinstance(part, ToolResult)] == expected


def test_a_streamed_turn_comes_back_with_a_content_for_each_chunk() -> None:
    contents = [called("a"), {"role": "model", "parts": [{"text": "so"}]}, called("b"), {"parts": [result("a")]}]
    results = import_contents([*contents, {"parts": [result("b")]}])[-2:]
    assert [message.parts for message in results] == [(ToolResult("a", "x", "f"),), (ToolResult("b", "x", "f"),)]


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ("-_-_", "+/+/"),
        ("+/+/", "+/+/"),
        ("-vwv2g==", "+vwv2g=="),
        ("-vwv2g", "+vwv2g=="),
        ("made by a script", "made by a script"),
        ("s1", "s1"),
        (STAND_IN, STAND_IN),
        (b64encode(STAND_IN.encode()).decode(), STAND_IN),
        (urlsafe_b64encode(STAND_IN.encode()).decode().rstrip("="), STAND_IN),
    ],
)
def test_a_signature_is_the_same_in_both_alphabets(sent: str, value: str) -> None:
    part = {"functionCall": {"name": "f", "id": "a"}, "thoughtSignature": sent}
    (message,) = import_contents([{"role": "model", "parts": [part]}])
    assert [seal.value for seal in message.tool_calls[0].seals] == [value]


@pytest.mark.parametrize("data", ["+/8=", "-_8=", "-_8", "+/8"])
def test_data_is_the_same_in_both_alphabets_and_without_padding(data: str) -> None:
    contents = [{"parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}]
    assert import_contents(contents) == (Message("user", (Image(data=b"\xfb\xff", media_type="image/png"),)),)


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        *zip((1, "true", dict[str, str](), list[str](), 0.5), [Thought] * 5, strict=True),
        *zip((None, False, 0, "", "false"), [Text] * 5, strict=True),
    ],
)
def test_a_part_is_a_thought_unless_its_mark_is_plainly_false(odd: object, kind: type) -> None:
    (message,) = import_contents([{"role": "model", "parts": [{"text": "hm", "thought": odd}]}])
    assert [type(part) for part in message.parts] == [kind]


@pytest.mark.parametrize(
    ("content", "texts"),
    [("a", ["a"]), ("", []), ({"parts": [{"text": "a"}, {"text": ""}, {"inlineData": {}}]}, ["a"]), ({}, [])],
)
def test_the_texts_of_a_system_instruction(content: Any, texts: list[str]) -> None:
    assert import_texts(content) == texts


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (3, "a content is an object with a role and parts"),
        ({"parts": 3}, "parts is a list of objects"),
        ({"parts": [3]}, "parts is a list of objects"),
        ({"role": "robot", "parts": []}, "the role 'robot' is not known"),
        ({"parts": [{"functionResponse": {}}]}, "a functionResponse has no name"),
        ({"role": "model", "parts": [{"functionCall": {}}]}, "a functionCall has no name"),
        ({"parts": [{"inlineData": {"mimeType": "image/png", "data": "%"}}]}, "is not base64"),
    ],
)
def test_a_wrong_content_is_named_with_its_place(content: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=rf"^contents\[1\]: .*{says}"):
        import_contents([{"parts": []}, content])
