"""The thinking of tool loops after a conversation was saved and loaded, or its store reopened: a default save keeps no
readable thoughts, but those that the model made since then go back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.conversations.store.sqlite import SqliteStore
from asides.dialects.dialect import ServedRequest
from asides.values.messages import Message
from asides.values.parts import ToolCall, ToolResult
from asides.values.tools import Tool
from asides_stage import Say, Stage
from asides_stage.stage import OpenStage

LOOK = Tool("look", "looks", {"type": "object", "properties": {"at": {"type": "integer"}}})
CALLS = 4
BOUND = ("anthropic:claude-sonnet-5-5", "anthropic:claude-fable-5-2", "anthropic:claude-opus-5-5")


def play(request: ServedRequest) -> Say:
    """Look a few times, thinking each time, then tell."""
    messages = request.prompt.messages
    open_results = 0
    for message in reversed(messages):
        if message.role == "user" and not has_results(message):
            break
        open_results += has_results(message)
    number = len(messages)
    if open_results < CALLS:
        return Say(thinking=f"Thought {number}.", tool_calls=(ToolCall(f"call_{number}", "look", {"at": number}),))
    return Say(thinking=f"Thought {number}.", text="Fine.")


def has_results(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)


def take_turn(chat: asides.Conversation, question: str) -> None:
    reply = chat.ask(question)
    while reply.tool_calls:
        results = tuple(ToolResult(call.id, "fine", call.name) for call in reply.tool_calls)
        reply = chat.ask([Message("tool", results)])


def count_thoughts(stage: Stage) -> int:
    """The thoughts in the last request."""
    return json.dumps(stage.requests[-1].json["messages"]).count('"thinking": "')


@pytest.mark.parametrize("model", [*BOUND, "anthropic:claude-sonnet-4-5"])
@pytest.mark.parametrize("turns_before", [1, 3])
def test_thoughts_that_are_made_after_a_load_go_back(
    model: str, turns_before: int, stage: OpenStage, tmp_path: Path
) -> None:
    opened = stage(play)
    options: dict[str, Any] = {"base_url": opened.url, "api_key": "sk-1", "tools": [LOOK], "thinking": "high"}
    chat = asides.Conversation(model, **options)
    for number in range(turns_before):
        take_turn(chat, f"Before {number}?")
    chat.save(tmp_path / "chat.json")
    chat = asides.Conversation.load(tmp_path / "chat.json", **options)
    sent: list[int] = []
    for number in range(3):
        take_turn(chat, f"After {number}?")
        sent.append(count_thoughts(opened))
    assert sent == [4, 9, 14]
    assert opened.refusals == []


@pytest.mark.parametrize("model", [*BOUND, "anthropic:claude-sonnet-4-5"])
def test_thoughts_that_are_made_after_a_store_was_reopened_go_back(
    model: str, stage: OpenStage, tmp_path: Path
) -> None:
    opened = stage(play)
    options: dict[str, Any] = {"base_url": opened.url, "api_key": "sk-1", "tools": [LOOK], "thinking": "high"}
    sent: list[int] = []
    for _ in range(2):
        with SqliteStore(tmp_path / "store.db") as store:
            chat = asides.Conversation(model, store=store, name="talk", **options)
            for number in range(2):
                take_turn(chat, f"{number}?")
                sent.append(count_thoughts(opened))
    assert sent == [4, 9, 4, 9]
    assert opened.refusals == []


@pytest.mark.parametrize("model", BOUND)
def test_thoughts_that_were_made_before_an_edit_do_not_go_back(model: str, stage: OpenStage, tmp_path: Path) -> None:
    """The digest decides: a thought whose past was edited stays here, without a refusal."""
    opened = stage(play)
    options: dict[str, Any] = {"base_url": opened.url, "api_key": "sk-1", "tools": [LOOK], "thinking": "high"}
    chat = asides.Conversation(model, **options)
    take_turn(chat, "Before?")
    chat.save(tmp_path / "chat.json")
    chat = asides.Conversation.load(tmp_path / "chat.json", **options)
    take_turn(chat, "After?")
    messages = [Message("user", (asides.Text("Changed?"),)), *chat.messages[1:]]
    take_turn(asides.Conversation(model, messages=messages, **options), "And then?")
    assert (count_thoughts(opened), opened.refusals) == (CALLS, [])
