"""Conversations that version 0.1 saved still load as the same messages, can be continued, and can be sent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import asides
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.values.messages import Message, StoredResponse, assistant, user
from asides.values.parts import File, Image, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought

SAVED = Path(__file__).parent / "saved_by_0_1"
MODEL = "anthropic:claude-opus-4-6"
ANTHROPIC = Origin("anthropic", "https://api.anthropic.com", "claude-opus-4-6")
OPENAI = Origin("openai", "https://api.openai.com/v1", "gpt-5")
GOOGLE = Origin("google", "https://generativelanguage.googleapis.com/v1beta", "gemini-3-flash")
DEEPSEEK = Origin("deepseek", "https://api.deepseek.com", "deepseek-v4")
REASONING = '{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA","summary":[]}'
SEARCH = '{"type":"web_search_call","id":"ws_1","status":"completed"}'

REDACTED = Thought("", "hidden", "block", ANTHROPIC, (Seal("redacted", "Y2lwaGVy", ANTHROPIC),))
LOOK_UPS = (
    Text("Let me look."),
    ToolCall("toolu_1", "look_up", {"n": [1, {"deep": None}], "é": "日"}),
    ToolCall("toolu_2", "look_up", {"n": 2}),
)
HERE = (
    Text("Here.", (Seal("thought_signature", "c2ln", GOOGLE),)),
    ToolCall("call_g", "look_up", {"n": 3}, seals=(Seal("thought_signature", "Z3Np", GOOGLE),)),
)

WITH_THINKING = (
    user(
        "What is this?",
        Image(data=b"\x89PNG\r\n\x1a\n\x00", detail="low", cache=True),
        File(id="file_1", name="a.pdf"),
        File(data=b"%PDF-1.4"),
    ),
    assistant(
        Thought("A plan.", "summary", "block", ANTHROPIC, (Seal("signature", "c2lnbmVk", ANTHROPIC),), via="thinking"),
        REDACTED,
        *LOOK_UPS,
    ),
    Message(
        "tool",
        (
            ToolResult("toolu_1", "a cat", name="look_up"),
            ToolResult("toolu_2", (Text("a picture"), Image(url="https://example.com/a.png")), is_error=True),
        ),
    ),
    assistant(Text("A cat.", (Seal("citations", "", ANTHROPIC, "[1]"),))),
    user("And now?"),
    Message(
        "assistant",
        (
            Thought("", "hidden", "responses_summary", OPENAI, (Seal("encrypted", "gAAA", OPENAI, REASONING),)),
            ServerTool("web_search_call", "ws_1", "completed", SEARCH, OPENAI),
            Text("Found."),
            UnknownPart('{"type":"new_item","id":"x1"}', OPENAI),
        ),
        stored=StoredResponse("resp_1", OPENAI),
    ),
    user("Go on."),
    assistant(Thought("Gemini thinks.", "summary", "block", GOOGLE), *HERE),
    Message("tool", (ToolResult("call_g", "three", name="look_up"),)),
    assistant(Thought("I add and carry.", "raw", "field", DEEPSEEK, via="reasoning_content"), "Three."),
    user("Break off."),
    assistant(Thought("cut off he", "raw", "field", DEEPSEEK, via="reasoning_content", complete=False)),
    user("Refuse."),
    assistant(Refusal("I cannot.")),
    user("Own tool."),
    assistant(ToolCall("call_c", "run", raw_arguments="text of its own", custom=True)),
    Message("tool", (ToolResult("call_c", "done"),)),
    assistant("Done."),
)
WITHOUT_THINKING = (
    WITH_THINKING[0],
    assistant(Thought("", "hidden", "block", ANTHROPIC, via="thinking", withheld=True), REDACTED, *LOOK_UPS),
    *WITH_THINKING[2:7],
    assistant(Thought("", "hidden", "block", GOOGLE, withheld=True), *HERE),
    WITH_THINKING[8],
    assistant(Thought("", "hidden", "field", DEEPSEEK, via="reasoning_content", withheld=True), "Three."),
    WITH_THINKING[10],
    assistant(
        Thought("", "hidden", "field", DEEPSEEK, via="reasoning_content", complete=False, withheld=True),
    ),
    *WITH_THINKING[12:],
)
EACH_FILE = pytest.mark.parametrize(
    ("file", "messages"), [("with_thinking.json", WITH_THINKING), ("without_thinking.json", WITHOUT_THINKING)]
)
EACH_NAME = pytest.mark.parametrize(
    ("name", "messages"), [("with thinking", WITH_THINKING), ("without thinking", WITHOUT_THINKING)]
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A copy of the saved store."""
    shutil.copy(SAVED / "store.sqlite", tmp_path)
    with SqliteStore(tmp_path / "store.sqlite") as opened:
        yield opened


@EACH_FILE
def test_a_saved_file_loads_as_the_messages_that_were_saved(file: str, messages: tuple[Message, ...]) -> None:
    chat = Conversation.load(SAVED / file)
    assert (chat.model, chat.system, chat.messages) == (MODEL, "You are a cat.", messages)


def test_a_loaded_file_is_written_again_as_it_was_but_for_the_tag_of_thoughts() -> None:
    chat = Conversation.load(SAVED / "with_thinking.json", keep_thinking=True)
    saved = (SAVED / "with_thinking.json").read_text(encoding="utf-8")
    assert chat.to_json() == saved.replace('"type":"thought"', '"type":"reasoning"')
    assert len(chat) == len(WITH_THINKING)


def test_half_a_turn_of_thoughts_is_not_written_again() -> None:
    chat = Conversation.load(SAVED / "without_thinking.json")
    again = Conversation.from_json(chat.to_json())
    gone = Thought("", "hidden", "block", ANTHROPIC, withheld=True)
    assert again.messages[1].parts[1] == gone
    assert again.messages[:1] + again.messages[2:] == WITHOUT_THINKING[:1] + WITHOUT_THINKING[2:]
    assert Conversation.from_json(again.to_json()).messages == again.messages


@EACH_NAME
def test_a_saved_store_can_be_read_and_appended_to(
    name: str, messages: tuple[Message, ...], store: SqliteStore
) -> None:
    assert set(store.names()) == {"with thinking", "without thinking"}
    expected = (*messages[:-2], user("One more."))
    chat = Conversation(store=store, name=name)
    assert (chat.model, chat.system, chat.messages) == (MODEL, "You are a cat.", expected)
    chat.append(assistant("And another."))
    again = Conversation(store=store, name=name)
    assert again.messages == (*expected, assistant("And another."))


@pytest.mark.parametrize("origin", [ANTHROPIC, OPENAI, GOOGLE, DEEPSEEK], ids=lambda origin: origin.provider)
@EACH_FILE
def test_a_loaded_conversation_can_be_sent_to_any_model(
    file: str, messages: tuple[Message, ...], origin: Origin
) -> None:
    chat = Conversation.load(SAVED / file)
    chat.append("And now?")
    model = f"{origin.provider}:{origin.model}"
    for base_url in (None, origin.endpoint):
        explained = asides.explain(model, chat, base_url=base_url)
        decisions = {(each.message, each.part): each for each in explained.decisions if each.what == "thought"}
        assert decisions.keys() == {(1, 0), (1, 1), (5, 0), (7, 0), (9, 0), (11, 0)}
        # The reply broke off inside it.
        assert decisions[11, 0].action == "drop"
        assert "cut off he" not in str(explained.body)
    kept = [place for place, each in decisions.items() if each.action == "keep"]
    # The thoughts of a turn go back together or not at all.
    of_claude = [(1, 0), (1, 1)] if messages is WITH_THINKING else []
    assert kept == {ANTHROPIC: of_claude, OPENAI: [(5, 0)]}.get(origin, [])
