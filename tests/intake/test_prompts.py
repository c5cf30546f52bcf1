"""Prompts as people have them: dicts of four formats, content, files, values of other libraries. Nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.intake.read import read
from asides.values.errors import ConfigError
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides_stage.stage import OpenStage, Say
from tests.agents.three_tools import KEY, MODELS

PNG = b"\x89PNG\r\n\x1a\n\x00"
PICTURE = Image(data=PNG)
SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoA"}
INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoA"}}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}


class Dumped:
    """A value of another library that can turn itself into a dict."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def model_dump(self, **_: object) -> dict[str, Any]:
        """Return the fields."""
        return self._fields


@pytest.mark.parametrize(
    ("prompt", "messages"),
    [
        ({"role": "user", "content": "hi"}, (user("hi"),)),
        (["a", PICTURE], (user("a", PICTURE),)),
        (["a", "b"], (user("a", "b"),)),
        (PICTURE, (user(PICTURE),)),
        (PNG, (user(PICTURE),)),
        (Text("a"), (user("a"),)),
        ([["a", PICTURE]], (user("a", PICTURE),)),
        ([user("a"), assistant("b"), "c", PICTURE], (user("a"), assistant("b"), user("c", PICTURE))),
        (iter([user("a")]), (user("a"),)),
        ([Reply((Text("r"),)), "and?"], (assistant("r"), user("and?"))),
        (["?", {"role": "assistant", "content": "a"}, "!"], (user("?"), assistant("a"), user("!"))),
        # content parts
        ([{"type": "text", "text": "a"}, {"type": "image", "source": SOURCE}, INLINE], (user("a", PICTURE, PICTURE),)),
        ({"type": "image_url", "image_url": {"url": "https://h/a.png"}}, (user(Image(url="https://h/a.png")),)),
        # Anthropic
        ([{"role": "user", "content": [{"type": "image", "source": SOURCE}]}], (user(PICTURE),)),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]}],
            (Message("tool", (ToolResult("t1", "42"),)),),
        ),
        # Gemini
        (
            [{"role": "user", "parts": [{"text": "a"}, INLINE]}, {"role": "model", "parts": [{"text": "b"}]}],
            (user("a", PICTURE), assistant("b")),
        ),
        ([{"role": "user", "content": "a"}, {"role": "model", "parts": [{"text": "b"}]}], (user("a"), assistant("b"))),
        # requests and responses that hold messages
        ({"messages": [{"role": "user", "content": "x"}], "system": "be"}, (Message("system", "be"), user("x"))),
        ({"input": "x", "instructions": "be"}, (Message("system", "be"), user("x"))),
        (
            {"contents": [{"parts": [{"text": "x"}]}], "systemInstruction": {"parts": [{"text": "be"}]}},
            (Message("system", "be"), user("x")),
        ),
        # values of other libraries
        (Dumped(role="user", content="x"), (user("x"),)),
        ([Dumped(role="user", content="x")], (user("x"),)),
    ],
)
def test_a_prompt_is_read_as_it_says(prompt: Any, messages: tuple[Message, ...]) -> None:
    assert read(prompt) == messages


def test_items_of_responses_are_messages_and_keep_their_reasoning() -> None:
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "why"}]},
        {**CALL, "id": "fc_1"},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
    ]
    asked, called, result = read(items)
    assert asked == user("q")
    thought, call = called.parts
    assert isinstance(thought, Thought)
    assert isinstance(call, ToolCall)
    assert (thought.text, call.id, call.arguments) == ("why", "c1", {"a": 1})
    assert result == Message("tool", (ToolResult("c1", "42"),))
    assert read({"output": items[1:3]}) == (called,)
    assert read(CALL)[0].tool_calls == (ToolCall("c1", "f", {"a": 1}),)


def test_marks_of_two_formats_are_those_of_a_host_of_chat_completions() -> None:
    cached = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
    mixed: list[Any] = [
        {"role": "user", "content": [cached]},
        {"role": "assistant", "content": "a", "reasoning_content": "why"},
    ]
    first, second = read(mixed)
    assert first == Message("user", (Text("long", cache=True),))
    assert [type(part) for part in second.parts] == [Thought, Text]


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (None, "not None"),
        (42, r"an int. Write str\(…\)"),
        (True, "a bool"),
        ("", "message is empty"),
        ([], "no message"),
        ([1], r"messages\[0\] is an int"),
        ([None], r"messages\[0\]"),
        (["a", {"role": "user", "content": "b"}, 5], r"messages\[2\]"),
        ({"a", "b"}, "a set"),
        (object(), "an object"),
        (b"text", "bytes that are not a known picture"),
        ({"a": 1}, "role is missing. Write"),
        ({}, "role is missing"),
        ({"messages": [{"role": "user", "content": "x"}], "model": "m", "top_k": 1}, "more fields: model, top_k"),
        ({"messages": 5}, "messages is a list"),
        ({"choices": [{"message": {}}, {"message": {}}]}, r"2 answers. .*response\.choices\[0\]\.message"),
        ({"choices": []}, "role is missing"),
        ({"choices": [{"message": {}}]}, "role is missing"),
        ([{"role": "user", "content": "x", "parts": [{"text": "y"}]}], "both content and parts"),
        ([{"type": "remove", "content": "", "additional_kwargs": {}}], r"messages\[0\]: a message that removes"),
        ({"role": "user", "text": "x"}, "content is missing. Write"),
        ({"role": "assistant", "text": "x"}, "content is missing"),
        ({"role": "tool", "tool_call_id": "c1", "output": "x"}, "content is missing"),
        ([{"role": "user", "content": [{"type": "image", "source": SOURCE}]}, {"role": "user"}], "content is missing"),
        ({"role": "user", "parts": "x"}, "parts is a list"),
        ({"role": "assistant", "parts": "x", "tool_calls": []}, "parts is a list"),
        # What is no text where a name belongs.
        ([{"type": ["text"]}], "role is missing"),
        ({"role": ["user"], "content": "x"}, "role is text"),
        ({"role": "user", "content": [{"type": {}, "text": "x"}]}, "has no type"),
        # What no request can hold.
        ([{"type": "document", "source": {"type": "text", "data": "x\ud800"}}], "half a character"),
        ([{"role": "user", "content": [{"type": "x", "source": {"x": object()}}]}], "JSON"),
        ([{"role": "user", "parts": [{"executableCode": object()}]}], "neither JSON nor a message"),
        ({"messages": [{"role": "user", "content": "x"}], "system": {"parts": ["be brief"]}}, "object with a type"),
        ([user("a"), {"role": "king", "content": "x"}], r"messages\[1\]: the role 'king'"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "red.png"}}]}], "not 'red.png'"),
    ],
)
def test_anything_else_is_an_error_with_the_right_spelling(prompt: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(prompt)


def test_a_conversation_takes_each_text_of_a_list_as_a_message_and_a_question_as_one() -> None:
    chat = asides.Conversation(messages=["one", PICTURE, assistant("two")])
    assert chat.messages == (user("one"), user(PICTURE), assistant("two"))
    chat.append(user(["kept"]))
    chat.append(["a", PICTURE])
    chat.append({"type": "function_call_output", "call_id": "c1", "output": "42"})
    messages: list[Message] = list(chat.messages)
    assert tuple(messages[3:]) == (user("kept"), user("a", PICTURE), Message("tool", (ToolResult("c1", "42"),)))
    assert chat.turn(["b", PICTURE]).messages[-1] == user("b", PICTURE)
    wrong_ones: list[Any] = [None, 42, [], ""]
    for wrong in wrong_ones:
        with pytest.raises(ConfigError):
            chat.append(wrong)
    assert len(chat) == 6


# --- files= -------------------------------------------------------------------------------------------------------


def test_files_go_into_the_last_message_of_the_user_before_its_text(tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(PNG)
    (tmp_path / "a.txt").write_text("words")
    history = [user("first"), assistant("so"), user("second"), assistant("prefix")]
    body = asides.explain(
        MODELS["openai_chat"],
        history,
        files=[str(tmp_path / "red.png"), tmp_path / "a.txt"],
        base_url="http://127.0.0.1:9/v1",
    ).body
    kinds = [part["type"] for part in body["messages"][2]["content"]]
    assert kinds == ["image_url", "text"]
    assert body["messages"][2]["content"][1]["text"] == '<file name="a.txt">\nwords\n</file>\n\nsecond'
    assert body["messages"][0]["content"] == "first"


def test_files_need_a_message_of_the_user_but_no_words() -> None:
    def explain(prompt: Any) -> Any:
        return asides.explain(MODELS["openai_chat"], prompt, files=[PICTURE], base_url="http://127.0.0.1:9/v1").body

    assert [part["type"] for part in explain("")["messages"][0]["content"]] == ["image_url"]
    assert explain(Prompt((user("x"),))) == explain("x")
    with pytest.raises(ConfigError, match="no message is a user's"):
        explain([assistant("x")])
    with pytest.raises(ConfigError, match="every question again"):
        asides.Conversation(files=[PICTURE])


def test_a_conversation_and_an_agent_keep_the_files_with_the_question(stage: OpenStage) -> None:
    opened = stage(*[Say(text="seen")] * 4)
    client = asides.Client(base_url=opened.url, api_key=KEY)
    chat = asides.Conversation(MODELS["openai_chat"], client=client)
    chat.ask("What?", files=[PICTURE])
    with chat.stream("And?", files=[File(b"%PDF-1")]) as events:
        assert events.reply.text == "seen"
    agent = asides.Agent(MODELS["openai_chat"], client=client)
    agent.send("Then?", conversation=chat, files=[PICTURE])
    agent.send("Alone?", files=[PICTURE])
    asked = [message.parts[0] for message in chat.messages if message.role == "user"]
    assert asked == [PICTURE, File(b"%PDF-1"), PICTURE]
    sent = [received.body.decode().count("iVBORw0KGgoA") for received in opened.requests]
    assert sent == [1, 1, 2, 1]


async def test_the_awaiting_shells_take_files_too(stage: OpenStage) -> None:
    opened = stage(*[Say(text="seen")] * 2)
    async with asides.AsyncClient(base_url=opened.url, api_key=KEY) as client:
        await client.ask(MODELS["openai_chat"], "What?", files=[PICTURE])
        chat = asides.AsyncConversation(MODELS["openai_chat"], client=client)
        await chat.ask("What?", files=[PICTURE])
    assert chat.messages[0] == user(PICTURE, "What?")
    assert ["iVBORw0KGgoA" in received.body.decode() for received in opened.requests] == [True, True]


# --- nothing is lost ----------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=3, max_size=12)
LEAVES = (
    WORDS
    | WORDS.map(Text)
    | WORDS.map(lambda text: {"type": "text", "text": text})
    | WORDS.map(lambda text: {"role": "user", "content": text})
    | WORDS.map(lambda text: {"role": "user", "content": [{"type": "text", "text": text}]})
    | WORDS.map(lambda text: {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
    | WORDS.map(lambda text: {"role": "user", "parts": [{"text": text}]})
    | WORDS.map(lambda text: Message("assistant", text))
    | st.just(PICTURE)
    | st.sampled_from([None, 42, b"x", {}, {"a": 1}, [], "", (), Image(url="https://h/x.png"), object()])
)
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=3).map(tuple))


def collect_texts(value: Any) -> list[str]:
    """Every text that a caller wrote."""
    match value:
        case str():
            return [value]
        case Text():
            return [value.text]
        case Message():
            return [value.text]
        case {"text": str() as text}:
            return [text]
        case {"content": content}:
            return collect_texts(content)
        case {"parts": parts}:
            return collect_texts(parts)
        case list() | tuple():
            return [text for each in value for text in collect_texts(each)]
        case _:
            return []


def test_a_system_prompt_may_be_one_part() -> None:
    held = {"messages": [{"role": "user", "content": "x"}], "system": {"type": "text", "text": "be brief"}}
    assert [message.text for message in read(held)] == ["be brief", "x"]


@pytest.mark.parametrize("model", sorted(MODELS.values()))
@pytest.mark.parametrize("value", [object(), "\ud800", {(1, 2): 3}])
def test_arguments_that_no_request_can_hold_are_refused_in_every_dialect(model: str, value: Any) -> None:
    past = [user("?"), assistant(ToolCall("c1", "f", {"a": value})), Message("tool", ToolResult("c1", "x"))]
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        asides.explain(model, past, base_url="http://127.0.0.1:9", api_key=KEY)


@pytest.mark.parametrize("model", sorted(MODELS.values()))
def test_a_notice_tells_of_a_picture_that_a_system_message_cannot_hold(model: str) -> None:
    explained = asides.explain(
        model, [Message("system", PICTURE), user("?")], base_url="http://127.0.0.1:9", api_key=KEY
    )
    assert "part_not_sent" in {notice.code for notice in explained.notices}


@pytest.mark.parametrize("model", sorted(MODELS.values()))
@settings(max_examples=60, deadline=None)
@given(prompt=ANYTHING)
def test_every_text_is_sent_or_an_error_is_raised(model: str, prompt: Any) -> None:
    for build in (lambda: prompt, lambda: user(prompt), lambda: Message("user", prompt), lambda: ["go", prompt]):
        try:
            explained = asides.explain(model, build(), base_url="http://127.0.0.1:9", api_key=KEY, on_conflict="adjust")
        except ConfigError:
            continue
        sent = msgspec.json.encode(explained.body).decode()
        assert [text for text in collect_texts(prompt) if text not in sent] == []
        assert sent.count("iVBORw0KGgoA") >= str(prompt).count("bytes>") or "a picture was here" in sent
