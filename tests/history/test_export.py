"""Histories in the formats of other libraries: exported without thinking by default."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from asides.history.export import export_messages
from asides.intake.read import read
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant, user
from asides.values.parts import File, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from tests.history.any_messages import MESSAGES
from tests.history.strict_stages import CANARY, MODELS, Model, StrictRules
from tests.intake.test_documents import GIVEN, SHAPES


@pytest.mark.requirement("pain B6", "S0-09", "H1")
@pytest.mark.parametrize("shape", SHAPES)
def test_pain_B6_what_goes_out_holds_no_thinking_unless_asked_for(shape: str) -> None:
    for given_shape in SHAPES:
        exported = json.dumps(export_messages(read(GIVEN[given_shape]), shape))
        marks = ("plan", "sig", "cipher", "gAAA", "rs_1", "fc_1", "msg_1", "thinking", "reasoning")
        assert not any(word in exported for word in marks)
        assert "It is 42." in exported
        assert exported.count('"c1"') == 2


@pytest.mark.requirement("pain B5", "pain B6", "H1")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_pain_B5_thinking_of_any_model_never_becomes_words(model: Model, shape: str) -> None:
    history = StrictRules(model).conversation(1)
    assert CANARY not in json.dumps(export_messages(history, shape))
    for message in read(export_messages(history, shape, thinking=True), format_name=shape):
        assert CANARY not in message.text
    texts = [message.text for message in history if message.role == "assistant"]
    again = read(export_messages(history, shape), format_name=shape)
    assert [message.text for message in again if message.role == "assistant"] == texts


@pytest.mark.requirement("pain B5")
def test_pain_B5_a_thought_without_a_place_in_the_shape_stays_behind() -> None:
    maker = Origin("deepseek", "", "m")
    plain = Thought("a plan", origin=maker, via="reasoning_content")
    cut = Thought("half a", complete=False)
    gone = Thought("", "hidden", withheld=True)
    history = (user("?"), assistant(plain, cut, gone, "a"))
    assert export_messages(history, "anthropic", thinking=True)["messages"][1]["content"] == [
        {"type": "text", "text": "a"}
    ]
    assert export_messages(history, "responses", thinking=True)[1] == {"role": "assistant", "content": "a"}
    assert export_messages(history, "openai", thinking=True)[1] == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "a plan",
    }


def test_the_signature_of_a_call_is_of_thinking_too_and_citations_are_not() -> None:
    carrier = '{"google":{"thought_signature":"secret"}}'
    call = ToolCall("c1", "f", seals=(Seal("thought_signature", "secret", None, carrier),))
    cited = Text("a", (Seal("citations", "", None, '[{"cited_text":"x"}]'),))
    history = (user("?"), assistant(cited, call), Message("tool", (ToolResult("c1", "42"),)))
    assert "secret" not in json.dumps(export_messages(history, "openai"))
    assert "secret" in json.dumps(export_messages(history, "openai", thinking=True))
    assert "cited_text" in json.dumps(export_messages(history, "anthropic"))


def test_a_turn_of_nothing_but_thinking_is_not_exported() -> None:
    history = (user("?"), assistant(Thought("hm")), user("!"))
    assert export_messages(history, "openai") == [{"role": "user", "content": "?"}, {"role": "user", "content": "!"}]
    drawn = UnknownPart('{"inlineData":{"data":"canary"}, "thought": true}')
    for shape in SHAPES:
        assert "canary" not in json.dumps(export_messages((user("?"), assistant(drawn, "a")), shape))


@pytest.mark.requirement("pain C10")
def test_pain_C10_details_go_out_and_come_in_verbatim() -> None:
    entries = [{"type": "reasoning.text", "text": "a plan", "signature": "s", "index": 0}, {"type": "x", "index": 1}]
    for beside in ({}, {"reasoning": "a plan"}):
        chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a", **beside}]
        chat[1]["reasoning_details"] = entries  # type: ignore[assignment]
        assert export_messages(read(chat), "openai", thinking=True) == chat


@pytest.mark.parametrize("shape", SHAPES)
@given(messages=MESSAGES)
@settings(max_examples=25, deadline=None)
def test_anything_is_exported_or_refused_with_words(shape: str, messages: tuple[Message, ...]) -> None:
    for thinking in (False, True):
        try:
            exported = export_messages(messages, shape, thinking=thinking)
        except ConfigError:
            continue
        json.dumps(exported)


def test_a_file_that_the_shape_has_no_place_for_is_refused() -> None:
    with pytest.raises(ConfigError, match="not by address"):
        export_messages((user(File(url="https://x/y.pdf")),), "openai")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not known"):
        export_messages((), "gemini")
