"""Messages and their parts: what each shows and hides, saved parts read back, and arguments of calls."""

from __future__ import annotations

import msgspec
import pytest

from asides.values.messages import Message, Prompt, ProviderState, Sampling, StoredResponse, assistant, system, user
from asides.values.parts import (
    File,
    Image,
    Part,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from asides.values.thinking import Origin, Seal, Thought
from asides.values.tools import Tool

CALL = ToolCall("c1", "look", {"city": "Bern", "at": 3})
PICTURE = Image(data=b"12345")
EVERY_PART: tuple[Part, ...] = (
    Text("secret", (Seal("thought_signature", "s"),)),
    Thought("secret", "summary", "block", Origin("p", "u", "m"), (Seal("signature", "s"),), "thinking"),
    CALL,
    ToolResult("c1", (Text("secret"), PICTURE), "look", is_error=True),
    Image(url="https://secret.example"),
    File(id="file-secret"),
    Refusal("secret"),
    ServerTool("web_search_call", "ws1", "completed", '{"query":"secret"}'),
    UnknownPart('{"new":"secret"}'),
)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (EVERY_PART[0], "Text(<6 characters>)"),
        (EVERY_PART[1], "Thought(<6 characters>, kind='summary', source='block', seals=1)"),
        (CALL, "ToolCall(id='c1', name='look', arguments={'city': 'Bern', 'at': 3})"),
        (EVERY_PART[3], "ToolResult(call_id='c1', <6 characters>, is_error=True)"),
        (EVERY_PART[4], "Image(by address, media_type='image/png')"),
        (PICTURE, "Image(<5 bytes>, media_type='image/png')"),
        (msgspec.convert({"type": "image"}, Image), "Image(empty, media_type='image/png')"),
        (EVERY_PART[5], "File(by address, media_type='application/pdf')"),
        (EVERY_PART[6], "Refusal(<6 characters>)"),
        (EVERY_PART[7], "ServerTool(name='web_search_call', id='ws1', status='completed')"),
        (EVERY_PART[8], "UnknownPart(<16 characters>)"),
        (Message("user", (Text("secret"), CALL)), "Message(role='user', parts=[Text, ToolCall])"),
        (Prompt((user("secret"),), tools=(Tool("f"),)), "Prompt(messages=1, tools=['f'], stream=True)"),
    ],
)
def test_a_repr_shows_sizes_and_names_and_no_content_but_the_arguments_of_a_call(part: object, shown: str) -> None:
    assert repr(part) == shown


def test_a_saved_message_reads_back_with_every_kind_of_part() -> None:
    message = Message("assistant", EVERY_PART, "somebody", StoredResponse("resp_1", Origin("p", "u", "m")))
    saved = msgspec.json.encode(message)
    assert msgspec.json.decode(saved, type=Message) == message
    # The tags are a file format.
    assert [part["type"] for part in msgspec.json.decode(saved)["parts"]] == [
        "text",
        "reasoning",
        "tool_call",
        "tool_result",
        "image",
        "file",
        "refusal",
        "server_tool",
        "unknown",
    ]


@pytest.mark.parametrize(
    ("message", "text", "content", "calls"),
    [
        (Message("assistant"), "", None, ()),
        (assistant(CALL), "", None, (CALL,)),
        (assistant("a", "b", CALL), "ab", "ab", (CALL,)),
        (assistant(Thought("t"), "a", CALL), "a", (Thought("t"), Text("a")), (CALL,)),
        (assistant(Thought("t")), "", (Thought("t"),), ()),
        (user("What is this?", PICTURE), "What is this?", (Text("What is this?"), PICTURE), ()),
        (assistant(Refusal("no")), "", (Refusal("no"),), ()),
        (system("Be brief."), "Be brief.", "Be brief.", ()),
    ],
)
def test_text_content_and_calls_of_a_message(
    message: Message, text: str, content: object, calls: tuple[ToolCall, ...]
) -> None:
    assert (message.text, message.content, message.tool_calls) == (text, content, calls)


def test_the_short_forms_name_the_speaker() -> None:
    assert [made.role for made in (user("a"), assistant("a"), system("a"))] == ["user", "assistant", "system"]


def test_the_text_of_a_result_is_that_of_its_parts() -> None:
    assert ToolResult("c", "42").text == "42"
    assert ToolResult("c", (Text("a"), PICTURE, Text("b"))).text == "ab"


def test_sampling_gives_what_was_set_zero_and_false_included() -> None:
    assert Sampling(temperature=0.0, logprobs=False, seed=0).to_dict() == {
        "temperature": 0.0,
        "logprobs": False,
        "seed": 0,
    }
    assert Sampling().to_dict() == {}


@pytest.mark.parametrize(
    ("state", "continues"),
    [
        (ProviderState(), False),
        (ProviderState(store=True, resume=True), False),
        (ProviderState(previous_response_id="resp_1"), True),
        (ProviderState(conversation="conv_1"), True),
    ],
)
def test_a_provider_holds_a_part_of_the_conversation_that_is_named(state: ProviderState, continues: bool) -> None:
    assert state.continues is continues
