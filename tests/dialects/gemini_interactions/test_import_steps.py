"""Steps that clients wrote, as messages; and back, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from asides.dialects.gemini_interactions.import_steps import import_input, import_steps
from asides.values.errors import ConfigError
from asides.values.messages import Prompt
from asides.values.parts import File, Image, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thought
from tests.dialects.gemini_interactions.interactions import ANSWER, CALL, GO, RESULT, THOUGHT, encode


def test_the_steps_of_a_turn_become_one_message() -> None:
    messages = import_steps([GO, THOUGHT, CALL, RESULT, ANSWER])
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    thought, call = messages[1].parts
    assert isinstance(thought, Thought)
    assert (thought.text, [(seal.kind, seal.value) for seal in thought.seals]) == ("hm", [("step_signature", "c2ln")])
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments) == ("c1", "look", {"at": "sea"})
    assert messages[2].parts == (ToolResult("c1", "blue"),)


@pytest.mark.parametrize(
    "given",
    [
        "go",
        {"type": "text", "text": "go"},
        [{"type": "text", "text": "go"}],
        [GO],
        [{"type": "user_input", "content": "go"}],
    ],
    ids=str,
)
def test_an_input_has_five_forms(given: Any) -> None:
    (message,) = import_input(given)
    assert (message.role, message.text) == ("user", "go")


@pytest.mark.parametrize(
    "result", ["blue", {"sum": 18.0}, ["a", {"b": 1}], [{"type": "text", "text": "blue"}]], ids=str
)
@pytest.mark.parametrize("wrapped", [True, False], ids=["content of the user", "step"])
def test_a_result_of_any_form_goes_back_as_it_was(result: Any, wrapped: bool) -> None:
    answer = {"type": "function_result", "call_id": "c1", "name": "look", "result": result}
    step = {"type": "user_input", "content": [answer]} if wrapped else answer
    messages = import_steps([GO, THOUGHT, CALL, step])
    assert [message.role for message in messages] == ["user", "assistant", "tool"]
    assert encode(Prompt(messages))[0]["input"] == [GO, THOUGHT, CALL, step]


def test_a_result_beside_words_of_the_user_is_a_message_of_its_own() -> None:
    messages = import_steps([GO, CALL, {"type": "user_input", "content": [RESULT, {"type": "text", "text": "so?"}]}])
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user"]


def test_media_and_what_is_not_known_are_kept() -> None:
    content = [
        {"type": "image", "data": "cGlj", "mime_type": "image/png", "resolution": "low"},
        {"type": "document", "uri": "https://a.example/a.pdf", "mime_type": "application/pdf"},
        {"type": "video", "uri": "files/abc", "mime_type": "video/mp4"},
        {"type": "hologram", "beam": 1},
    ]
    steps: list[Any] = [{"type": "user_input", "content": content}, {"type": "dream", "of": "sheep"}]
    messages = import_steps(steps)
    picture, document, video, unknown = messages[0].parts
    assert isinstance(picture, Image)
    assert (picture.data, picture.detail) == (b"pic", "low")
    assert isinstance(document, File)
    assert isinstance(video, File)
    assert (document.url, video.id) == ("https://a.example/a.pdf", "files/abc")
    assert isinstance(unknown, UnknownPart)
    assert isinstance(messages[1].parts[0], UnknownPart)
    assert encode(Prompt(messages))[0]["input"] == steps


def test_a_tool_of_the_provider_is_kept() -> None:
    step = {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["a"]}, "signature": "c2ln"}
    messages = import_steps([GO, step, ANSWER])
    tool, answer = messages[1].parts
    assert isinstance(tool, ServerTool)
    assert (tool.name, tool.id) == ("google_search_call", "s1")
    assert answer == Text("42")
    assert encode(Prompt(messages))[0]["input"] == [GO, step, ANSWER]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("go", "is an object"),
        ({"role": "user", "content": "go"}, "has no type"),
        ({"type": "function_call", "name": "look"}, "a name and an id"),
        ({"type": "function_result", "result": "blue"}, "no call_id"),
        ({"type": "user_input", "content": [1]}, "a list of objects"),
        ({"type": "user_input", "content": [{"type": "image", "data": "§"}]}, "not base64"),
        ({"type": "thought", "signature": 5}, "not text"),
    ],
    ids=str,
)
def test_a_step_that_is_wrong_is_named(step: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"input\[1\]: .*{words}"):
        import_steps([GO, step])
