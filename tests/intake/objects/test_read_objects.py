"""What people hold becomes messages: whole lists and mixed ones, and anything else is our error with its place."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.intake.objects.read_objects import open_history, recognise
from asides.intake.read import read
from asides.values.errors import AsidesError, ConfigError
from asides.values.messages import Message, user
from asides.values.parts import Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thought
from tests.intake.objects.test_langchain_objects import SHAPES, ai
from tests.intake.objects.test_pydantic_ai_objects import SHAPES as RESPONSES
from tests.intake.objects.test_pydantic_ai_objects import response, text


class Model:
    """An object of another library, which tells its own fields and can be iterated, as pydantic's can."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__ |= fields

    def __iter__(self) -> Any:
        return iter(self.__dict__.items())

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self.__dict__


@dataclass
class Part:
    part_kind: str
    content: Any


@dataclass
class ModelRequest:
    parts: list[Part]
    instructions: str | None = None
    kind: str = "request"
    more: dict[str, Any] = field(default_factory=dict)


CHAT = {"role": "assistant", "content": "so", "reasoning_content": "why"}
COMPLETION: dict[str, Any] = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": CHAT, "finish_reason": "stop"}],
}
BLOCKS = [{"type": "thinking", "thinking": "why", "signature": "s"}, {"type": "text", "text": "so"}]
CLAUDE = {"type": "message", "role": "assistant", "content": BLOCKS, "stop_reason": "end_turn", "usage": {}}
ITEMS = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "why"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so", "annotations": []}]},
]
CONTENT = {"role": "model", "parts": [{"text": "why", "thought": True}, {"text": "so", "thought_signature": b"s"}]}
GEMINI: dict[str, Any] = {"candidates": [{"content": CONTENT}], "usage_metadata": {"prompt_token_count": 3}}
CONVERSE = [{"reasoningContent": {"reasoningText": {"text": "why", "signature": "s"}}}, {"text": "so"}]
COHERE = {"role": "assistant", "content": [{"type": "thinking", "thinking": "why"}, {"type": "text", "text": "so"}]}
HELD: dict[str, Any] = {
    "chat message": Model(**CHAT),
    "chat choice": Model(index=0, message=Model(**CHAT), finish_reason="stop"),
    "chat completion": Model(object="chat.completion", choices=[Model(**COMPLETION["choices"][0])]),
    "chat completion as a dict": COMPLETION,
    "claude message": Model(**CLAUDE),
    "claude blocks in a dict": {"role": "assistant", "content": [Model(**block) for block in BLOCKS]},
    "response": Model(object="response", id="resp_1", status="completed", output=[Model(**item) for item in ITEMS]),
    "gemini response": Model(**GEMINI),
    "gemini candidate": Model(content=CONTENT, finish_reason="STOP"),
    "gemini content": SimpleNamespace(**CONTENT),
    "converse": {"output": {"message": {"role": "assistant", "content": CONVERSE}}, "stopReason": "end_turn"},
    "converse message": {"role": "assistant", "content": CONVERSE},
    "ollama": Model(model="m", message={"role": "assistant", "content": "so", "thinking": "why"}, done=True),
    "ollama message": Model(role="assistant", content="so", thinking="why"),
    "cohere": Model(id="1", finish_reason="COMPLETE", message=COHERE),
    "generation": Model(text="so", message=ai("so", more={"reasoning_content": "why"}) | {"tool_calls": []}),
    **{f"langchain {name}": fields for name, (_, fields) in SHAPES.items()},
    **{f"pydantic-ai {name}": fields for name, (_, fields) in RESPONSES.items()},
}


@pytest.mark.parametrize("name", HELD)
def test_a_turn_of_a_model_is_a_message_with_its_thinking(name: str) -> None:
    question, *answer, after = read(["?", HELD[name], {"role": "user", "content": "and?"}])
    parts = [part for message in answer for part in message.parts]
    assert (question, after, {message.role for message in answer}) == (user("?"), user("and?"), {"assistant"})
    assert "".join(part.text for part in parts if isinstance(part, Text)) == "so"
    assert "".join(part.text for part in parts if isinstance(part, Thought)) == "why"
    assert read(HELD[name]) == tuple(answer)
    assert asides.Conversation(messages=["?", HELD[name]]).messages[0] == user("?")


def test_a_message_without_content_is_one() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert read([Model(role="assistant", tool_calls=[Model(**call)])]) == (
        Message("assistant", (ToolCall("c1", "f"),)),
    )
    assert read([Model(role="assistant")]) == (Message("assistant", ()),)


def test_a_list_may_mix_libraries_where_each_is_clear() -> None:
    chat_call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    use = {"type": "tool_use", "id": "c2", "name": "f", "input": {"a": None}}
    mixed: list[Any] = [
        ("system", "be"),
        SimpleNamespace(type="human", content="1", additional_kwargs={}),
        {"role": "assistant", "content": None, "tool_calls": [Model(**chat_call)]},
        {"role": "tool", "tool_call_id": "c1", "content": "a"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "b"}]},
        {"type": "function_call", "call_id": "c3", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c3", "output": "c"},
        Model(role="model", parts=[{"function_call": {"name": "g", "args": {"my_key": 1}}}]),
        Model(role="user", parts=[{"function_response": {"name": "g", "response": {"result": "d"}}}]),
        {"role": "user", "content": [{"text": "2"}]},
        user("3"),
    ]
    messages = read(mixed)
    roles = [message.role for message in messages]
    assert roles == ["system", "user", *["assistant", "tool"] * 4, "user", "user"]
    calls = [call for message in messages for call in message.tool_calls]
    results = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    assert [call.arguments for call in calls] == [{}, {"a": None}, {}, {"my_key": 1}]
    assert [(call.id, result.text) for call, result in zip(calls, results, strict=True)] == [
        (result.call_id, text) for result, text in zip(results, "abcd", strict=True)
    ]


def test_results_without_ids_find_the_calls_of_the_reply_before_them() -> None:
    reply = asides.Reply((ToolCall("x1", "g"), ToolCall("x2", "g"), ToolCall("x3", "h")))
    contents = [
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": name, "response": {"result": name}}} for name in ("h", "g", "g")],
        }
    ]
    (results,) = read([reply, *contents])[1:]
    assert [part.call_id for part in results.parts if isinstance(part, ToolResult)] == ["x3", "x1", "x2"]
    chat = asides.Conversation(messages=[reply])
    chat.extend(
        [{"role": "tool", "content": "1", "tool_name": "g"}, {"role": "tool", "content": "2", "tool_name": "h"}]
    )
    ids = [part.call_id for message in chat.messages for part in message.parts if isinstance(part, ToolResult)]
    assert ids == ["x1", "x3"]  # fmt: skip


def test_instructions_are_the_system_prompt_before_the_first_request() -> None:
    requests = [ModelRequest([Part("user-prompt", each)], instructions) for each, instructions in ("ab", "cd")]
    first, second = requests
    assert read([first, response(text()), second]) == (
        Message("system", "d"),
        user("a"),
        Message("assistant", "so"),
        user("c"),
    )


def test_a_run_of_an_agent_is_its_messages() -> None:
    class Run:
        def all_messages(self) -> list[Any]:
            return [ModelRequest([Part("user-prompt", "a")]), response(text())]

    assert read(Run()) == (user("a"), Message("assistant", "so"))
    assert open_history(Run()) == [user("a"), Message("assistant", "so")]


def test_parts_in_a_librarys_own_format_are_kept_and_never_sent() -> None:
    block = {"type": "server_tool_call", "name": "web_search", "id": "s1", "args": {}}
    fields = ai([block, {"type": "text", "text": "so"}], stop_reason="end_turn") | {"tool_calls": []}
    (message,) = read([fields])
    assert any(isinstance(part, UnknownPart) and part.origin is not None for part in message.parts)
    sent = asides.explain("anthropic:claude-opus-4-5", ["?", fields, "!"], max_tokens=100)
    assert "web_search" not in str(sent.body)
    assert [decision.action for decision in sent.decisions if decision.what == "part"] == ["drop"]


# --- errors -----------------------------------------------------------------------------------------------------------


def generate_pieces() -> Any:
    yield {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "x"}}]}
    raise AssertionError("the stream was read to its end")


class Broken:
    @property
    def messages(self) -> Any:
        raise ValueError("a secret")


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (["?", {"object": "chat.completion.chunk", "choices": []}], r"messages\[1\]: this is a piece of a stream"),
        ([Model(type="content_block_delta", delta={})], "Collect the stream and pass asides.read"),
        (generate_pieces(), "a piece of a stream"),
        ([generate_pieces()], r"messages\[0\]: a generator is a stream that was not read"),
        (Model(object="chat.completion", choices=[{"message": CHAT}] * 2), "2 answers. .*choices"),
        (Model(candidates=[]), "no answers"),
        (Broken(), "its messages raised ValueError. Pass a list"),
        (SimpleNamespace(a=1), "neither a message nor a response"),
        ([user("a"), SimpleNamespace(a=1)], r"messages\[1\]: a SimpleNamespace cannot be read"),
        ([Model(a=1)], "role is missing"),
    ],
)
def test_what_is_no_message_says_where_it_is_and_what_to_do(prompt: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(prompt)


def test_a_list_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides.intake.prompts._MAX_MESSAGES", 10)

    def repeat() -> Any:
        while True:
            yield user("again")

    with pytest.raises(ConfigError, match=r"more than 10 messages. Pass a list that ends"):
        read(repeat())


# --- diagnose ---------------------------------------------------------------------------------------------------------


def test_diagnose_takes_objects() -> None:
    history = [Model(role="user", content="?"), Model(**CLAUDE), {"role": "user", "content": "!"}]
    found = asides.diagnose(history, "anthropic:claude-opus-4-5")
    assert (found.format, found.repaired[1]["content"][0]["signature"]) == ("anthropic", "s")
    of_library = [SimpleNamespace(type="human", content="?", additional_kwargs={}), SHAPES["anthropic"][1]]
    found = asides.diagnose(of_library, "anthropic:claude-opus-4-5")
    assert (found.format, [each.kind for each in found.findings]) == ("asides", ["tool_result_missing"])
    plain = [{"role": "user", "content": "?"}]
    assert open_history(plain) is plain
    assert open_history([{"role": "user", "content": [{"text": "x"}]}]) == [user("x")]


# --- anything ---------------------------------------------------------------------------------------------------------

NAMES = (
    "role content type parts text message messages choices delta candidates output kind part_kind part_kind "
    "object index finish_reason tool_calls tool_call_id function name arguments id thinking signature "
    "reasoning extras summary value additional_kwargs response_metadata usage usage_metadata data kwargs lc "
    "stop_reason done stopReason thinking_blocks provider_specific_fields provider_details instructions args "
    "thoughtSignature function_call metadata tool_plan images "
).split()
WORDS = (
    "user assistant model tool system ai human AIMessageChunk request response text thinking reasoning tool- "
    "call tool_use function_call chat.completion chat.completion.chunk message content_block_delta user-prompt "
    "non_standard x "
).split()
VALUES = st.recursive(
    st.sampled_from([*WORDS, "", None, 0, True, 2.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8))
def test_any_fields_are_a_value_or_our_error(fields: dict[str, Any]) -> None:
    for take in (recognise, asides.read, lambda value: read([value]), open_history):
        for value in (fields, Model(**fields)):
            with suppress(AsidesError):
                take(value)
