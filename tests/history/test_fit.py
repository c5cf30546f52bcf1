"""Messages are brought into the form that a host demands."""

from __future__ import annotations

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.dialects.dialect import DialectFacts
from asides.history.fit import BLANK, add_called_tools, apply_rules, tell_calls
from asides.history.plan import encode_plan, plan
from asides.providers.find import find_target
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.notices import Notice
from asides.values.parts import Image, Part, Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool

NEEDS_TOOLS = DialectFacts(tools_field="tools")
CALL = assistant(ToolCall("c1", "look", {}), ToolCall("c2", "feel", {}), ToolCall("c3", "look", {}))


def codes(notices: list[Notice]) -> list[str]:
    return [notice.code for notice in notices]


def test_the_tools_of_a_history_are_named_once_each_and_not_to_be_called() -> None:
    notices: list[Notice] = []
    fit = add_called_tools(Prompt((user("?"), CALL, user("!"))), NEEDS_TOOLS, notices)
    assert [tool.name for tool in fit.tools] == ["look", "feel"]
    assert (fit.tool_choice, codes(notices)) == ("none", ["tools_added"])
    cannot = DialectFacts(tools_field="tools", forbids_calls=False)
    assert add_called_tools(Prompt((user("?"), CALL)), cannot, []).tool_choice is None


@pytest.mark.parametrize(
    "prompt",
    [
        Prompt((user("?"), CALL), tools=(Tool("look"),)),
        Prompt((user("?"), CALL), extra={"tools": []}),
        Prompt((user("?"), assistant("ok"))),
    ],
)
def test_tools_are_not_added_where_the_caller_has_some_or_nothing_was_called(prompt: Prompt) -> None:
    planned = plan(prompt, find_target("anthropic:claude-opus-4-5"))
    assert planned.prompt.tools == prompt.tools
    assert "tools_added" not in codes(list(planned.notices))


def test_messages_of_one_role_in_a_row_are_joined_and_lose_nothing() -> None:
    notices: list[Notice] = []
    seal = Seal("thought_signature", "s")
    messages = (user("One."), user("Two."), assistant("A"), assistant(Text("B", seals=(seal,)), Thought("hm")))
    fit = apply_rules(Prompt(messages), ("alternate",), notices)
    assert [message.role for message in fit.messages] == ["user", "assistant"]
    assert fit.messages[0].text == "One.\n\nTwo."
    assert fit.messages[1].parts == (Text("A"), Text("B", seals=(seal,)), Thought("hm"))
    assert codes(notices) == ["messages_merged"]


def test_system_messages_are_joined_at_the_front() -> None:
    prompt = Prompt((user("?"), system("Be brief."), assistant("ok"), system("Be kind.")), system="Be good.")
    fit = apply_rules(prompt, ("system_first",), [])
    assert fit.system == "Be good.\n\nBe brief.\n\nBe kind."
    assert [message.role for message in fit.messages] == ["user", "assistant"]


def test_blank_messages_get_a_word_or_go() -> None:
    result = Message("tool", (ToolResult("c1", " ", "look"),))
    prompt = Prompt((user("?"), assistant(" "), CALL, result, Message("user", (Text(""),))))
    fit = apply_rules(prompt, ("filled",), [])
    assert [
        message.text or [part.text for part in message.parts if isinstance(part, ToolResult)]
        for message in fit.messages
    ] == [
        "?",
        [],
        [BLANK],
        BLANK,
    ]


THOUGHT = Thought("hm")
SHOT = Image(url="https://example.com/a.png")


@pytest.mark.parametrize(
    ("message", "filled"),
    [
        (Message("tool", (ToolResult("c1", ""),)), (ToolResult("c1", BLANK),)),
        (Message("tool", (ToolResult("c1", ()),)), (ToolResult("c1", BLANK),)),
        (Message("tool", (ToolResult("c1", (Text(" "), Text(""))),)), (ToolResult("c1", BLANK),)),
        (Message("tool", (ToolResult("c1", (Text(" "), SHOT)),)), (ToolResult("c1", (Text(" "), SHOT)),)),
        (
            Message("tool", (ToolResult("c1", ""), ToolResult("c2", "b"))),
            (ToolResult("c1", BLANK), ToolResult("c2", "b")),
        ),
        (assistant(THOUGHT), None),
        (assistant(THOUGHT, Text("\n")), None),
        (assistant(THOUGHT, "a"), (THOUGHT, Text("a"))),
        (assistant(THOUGHT, ToolCall("c1", "look", {})), (THOUGHT, ToolCall("c1", "look", {}))),
        (assistant(THOUGHT, Refusal("no")), (THOUGHT, Text("no"))),
        (assistant(Refusal(" ")), None),
        (assistant(""), None),
        (user(" "), (Text(BLANK),)),
    ],
)
def test_whatever_is_blank_gets_a_word_or_goes(message: Message, filled: tuple[Part, ...] | None) -> None:
    fit = apply_rules(Prompt((user("?"), message, user("!"))), ("filled",), [])
    assert [kept.parts for kept in fit.messages[1:-1]] == ([] if filled is None else [filled])


def test_a_thought_that_is_to_be_continued_stays() -> None:
    prompt = Prompt((user("?"), assistant(THOUGHT)))
    assert apply_rules(prompt, ("filled",), []) is prompt


def test_messages_that_fit_stay_the_same() -> None:
    prompt = Prompt((user("?"), assistant("ok"), user("!")))
    assert apply_rules(prompt, ("alternate", "system_first", "filled"), []) is prompt


def test_an_empty_turn_between_two_questions_does_not_keep_them_apart() -> None:
    fit = apply_rules(Prompt((user("a"), Message("assistant", ()), user("b"))), ("alternate",), [])
    assert fit.messages == (user("a\n\nb"),)


ONE = ToolCall("c1", "look", {"at": 1})
TWO = ToolCall("c2", "feel", {}, raw_arguments="{at")
SIGNED = Text("Let me look.", seals=(Seal("thought_signature", "x"),))


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([assistant("hm", ONE), Message("tool", (ToolResult("c1", "blue"),))], ["hm", "look {"]),
        ([assistant(ONE), Message("tool", (ToolResult("c1", "blue"),))], ["look {"]),
        ([assistant(SIGNED, ONE), Message("tool", (ToolResult("c1", "blue"),))], ["Let me look.", "look {"]),
        ([assistant(Thought("hm"), ONE), Message("tool", (ToolResult("c1", "blue"),))], ["look {"]),
        (
            [assistant(ONE, TWO), Message("tool", (ToolResult("c1", "blue"), ToolResult("c2", "hot", is_error=True)))],
            ["look {", "feel !"],
        ),
        ([assistant(ONE), Message("user", (ToolResult("c1", ""), Text("so?")))], ["look {", "so?"]),
        ([assistant(ONE), Message("tool", (ToolResult("c1", (Text("blue"), SHOT)),))], ["look {", "blue", "picture"]),
        ([Message("tool", (ToolResult("c9", "blue", "look"),))], ["look ?"]),
    ],
)
def test_calls_and_results_are_told_by_the_user(messages: list[Message], told: list[str]) -> None:
    words = {
        "look {": '[The assistant called look with {"at":1}. It returned:]',
        "feel !": "[The assistant called feel with {at. It failed:]\nhot",
        "look ?": "[The assistant called look. It returned:]\nblue",
    }
    notices: list[Notice] = []
    prompt = Prompt((user("?"), *messages, user("!")), tools=(Tool("look"),))
    planned = tell_calls(prompt, find_target("bedrock:us.deepseek.r1-v1:0", base_url="http://127.0.0.1:1"), notices)
    fit = planned.messages
    said = [
        "picture" if isinstance(part, Image) else part.text
        for message in fit[1:-1]
        for part in message.parts
        if isinstance(part, (Text, Image))
    ]
    assert [text.removesuffix("\nblue") for text in said] == [
        words.get(each, each).removesuffix("\nblue") for each in told
    ]
    assert not any(isinstance(part, (ToolCall, ToolResult)) for message in fit for part in message.parts)
    assert {message.role for message in fit} <= {"user", "assistant"}
    assert planned.tools == ()
    assert codes(notices) == ["calls_as_text", "tools_dropped"]


# --- arguments of calls -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", ['{"at":', "[1]", "null", ""])
def test_arguments_that_are_not_an_object_are_sent_as_an_empty_one(raw: str) -> None:
    history = (user("?"), assistant(Text("hm"), ToolCall("c1", "look", raw_arguments=raw)))
    notices: list[Notice] = []
    fit = apply_rules(Prompt(history), ("object_arguments",), notices)
    assert fit.messages[1].parts == (Text("hm"), ToolCall("c1", "look", {}))
    assert codes(notices) == ["arguments_not_sent"]


@pytest.mark.parametrize(
    "call", [ToolCall("c1", "look", {"at": "sky"}), ToolCall("c1", "edit", raw_arguments="patch", custom=True)]
)
def test_objects_and_the_text_of_custom_tools_stay(call: ToolCall) -> None:
    prompt = Prompt((user("?"), assistant(call)))
    notices: list[Notice] = []
    assert apply_rules(prompt, ("object_arguments",), notices) is prompt
    assert notices == []


def test_a_null_that_was_read_from_a_request_is_not_written_back() -> None:
    written = {
        "messages": [
            {"role": "user", "content": "?"},
            _call_with("null"),
            {"role": "tool", "tool_call_id": "c1", "content": "blue"},
            _call_with('{"at":null}'),
            {"role": "tool", "tool_call_id": "c1", "content": "blue"},
        ]
    }
    prompt = find_dialect("openai_chat").read(msgspec.json.encode({"model": "m", **written})).prompt
    target = find_target("minimax:MiniMax-M2.5")
    sent = msgspec.json.decode(encode_plan(plan(prompt, target), target, find_dialect("openai_chat"))[0].body)[
        "messages"
    ]
    assert [call["function"]["arguments"] for message in sent for call in message.get("tool_calls", ())] == [
        "{}",
        '{"at":null}',
    ]


def _call_with(arguments: str) -> dict[str, object]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
