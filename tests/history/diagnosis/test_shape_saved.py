"""Our own saved conversations."""

from __future__ import annotations

import json

import asides
from asides.history.diagnosis.diagnose import diagnose
from asides.providers.find import find_target
from asides.testing.stage import Say, Stage
from asides.values.messages import Message, user
from asides.values.parts import ToolCall
from asides.values.thinking import Thought


def test_a_conversation_itself_is_taken_and_what_is_repaired_loads() -> None:
    chat = asides.Conversation(messages=[user("q"), Message("assistant", (ToolCall("c", "f"),))])
    found = diagnose(chat, "deepseek:deepseek-flash")
    assert found.format == "asides"
    assert [finding.path for finding in found.refused] == ["messages[1].parts[0]"]
    loaded = asides.Conversation.from_json(json.dumps(found.repaired))
    assert len(loaded.messages) == 3


def test_thoughts_that_we_do_not_send_are_no_fault() -> None:
    origin = find_target("anthropic:claude-opus-4-6").origin
    broken = Thought("half", "summary", "block", origin, complete=False)
    found = diagnose([user("q"), Message("assistant", (broken, "x")), user("q")], "anthropic:claude-opus-4-6")
    assert found.sound
    assert [finding.effect for finding in found.findings] == ["ignored"]


def test_an_unsigned_thought_is_repaired_and_the_next_question_is_answered() -> None:
    unsigned = Thought("plan", "summary", "block", via="thinking")
    messages = [user("q"), Message("assistant", (unsigned, "x"))]
    found = diagnose(messages, "anthropic:claude-opus-4-6")
    assert [finding.kind for finding in found.refused] == ["thinking_signature_missing"]
    with Stage([Say(text="42")]) as stage:
        chat = asides.Conversation.from_json(json.dumps(found.repaired))
        reply = chat.ask("And?", model="anthropic:claude-opus-4-6", base_url=stage.url, retries=0)
    assert reply.text == "42"
    assert {notice.code for notice in reply.warnings} == {"foreign_address"}
