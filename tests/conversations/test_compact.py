"""Compaction: only over the limit, without thinking, and the last turns stay."""

from __future__ import annotations

from typing import Any

import pytest

from asides.conversations.compact import LABEL
from asides.conversations.store import StoreConflict
from asides.conversations.store.sqlite import SqliteStore
from asides.testing.stage import OpenStage, Say
from asides.values.errors import ConfigError, NoAnswer, UnknownModel
from asides.values.messages import Message, assistant, system, user
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool
from tests.conversations.both_shells import PLAIN, Shell, both_shells, dialogue, each_model, options

LOOK = ToolCall("call_1", "look_up", {"n": 1})
TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})
TALK: tuple[Any, ...] = (
    user("My name is Ada.", Image(data=b"\x89PNG"), File("plan.pdf", data=b"%PDF")),
    Message("assistant", (Thought("the canary sings"), Text("Hello, Ada."), LOOK)),
    Message("tool", (ToolResult("call_1", "it is " + "long " * 2000, "look_up"),)),
    assistant("It is long."),
    "two?",
    assistant("Two."),
    "three?",
    assistant("Three."),
)


@both_shells
@each_model
def test_what_is_too_much_is_summed_up_and_the_rest_stays(shell: Shell, model: str, stage: OpenStage) -> None:
    theatre = stage(Say(thinking="the canary sings", text="Ada looked it up; it is long."), Say(text="Four."))
    given: dict[str, Any] = {**options(model, theatre), "tools": [TOOL]}
    chat = shell.kind(model, system="Be brief.", messages=TALK, **given)
    reply = shell.compact(chat, 100, keep_turns=2)
    assert reply is not None
    assert dialogue(chat) == [
        ("user", f"{LABEL}\n\nAda looked it up; it is long."),
        ("user", "two?"),
        ("assistant", "Two."),
        ("user", "three?"),
        ("assistant", "Three."),
    ]
    asked = theatre.requests[0].served
    assert asked is not None
    shown = "\n".join(message.text for message in asked.prompt.messages)
    for words in ("My name is Ada.", "(a picture)", "plan.pdf", "Hello, Ada.", 'look_up with {"n":1}', "it is long"):
        assert words in shown
    assert len(shown) < 6000
    assert "two?" not in shown
    assert "canary" not in theatre.requests[0].body.decode()
    assert asked.prompt.tools == ()
    assert chat.usage == reply.usage
    assert shell.ask(chat, "four?").text == "Four."
    assert [request.problem for request in theatre.requests] == [None, None]


@both_shells
def test_below_the_budget_nobody_is_asked(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="never"))
    chat = shell.kind(PLAIN, messages=TALK, **options(PLAIN, theatre))
    before = chat.messages
    assert shell.compact(chat, 100_000) is None
    # Nor where there is nothing older than what stays.
    assert shell.compact(chat, 1, keep_turns=3) is None
    assert chat.messages is before
    assert theatre.requests == []


@both_shells
def test_thinking_that_stays_behind_does_not_count(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="never"))
    thoughtful = Message("assistant", (Thought("x" * 40_000), Text("One.")))
    chat = shell.kind(PLAIN, messages=["one?", thoughtful, "two?"], **options(PLAIN, theatre))
    assert shell.compact(chat, 500, keep_turns=1) is None


@both_shells
def test_a_note_is_taken_into_the_next_one(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="first note"), Say(text="second note"))
    chat = shell.kind(PLAIN, messages=[system("Stay kind."), *TALK], **options(PLAIN, theatre))
    shell.compact(chat, 10, keep_turns=2)
    shell.compact(chat, 10, keep_turns=1)
    assert dialogue(chat)[:2] == [("system", "Stay kind."), ("user", f"{LABEL}\n\nsecond note")]
    shown = theatre.requests[1].body.decode()
    assert "first note" in shown
    assert "Stay kind." not in shown
    # Alone it is as short as it gets.
    assert shell.compact(chat, 10, keep_turns=1) is None
    assert len(theatre.requests) == 2


@both_shells
def test_what_a_provider_has_stored_is_sent_again_with_the_note(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="One."), Say(text="Two."), Say(text="a note"), Say(text="Three."))
    model = "openai-responses:gpt-5"
    chat = shell.kind(model, stateful=True, **options("", theatre))
    shell.ask(chat, "one?")
    shell.ask(chat, "two?")
    shell.compact(chat, 1, keep_turns=1)
    shell.ask(chat, "three?")
    assert "previous_response_id" not in theatre.requests[2].json
    last = theatre.requests[3].json
    assert "previous_response_id" not in last
    assert [item["content"] for item in last["input"]][0::3] == [f"{LABEL}\n\na note", "three?"]


@both_shells
def test_a_summary_without_an_answer_changes_nothing(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(thinking="hm", stop="length"))
    chat = shell.kind(PLAIN, messages=TALK, **options(PLAIN, theatre))
    before = chat.messages
    with pytest.raises(NoAnswer):
        shell.compact(chat, 10)
    assert chat.messages is before
    assert chat.usage.thinking == 1
    chat.append("still usable")


@both_shells
def test_another_model_can_sum_up(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="a note"))
    chat = shell.kind(PLAIN, messages=TALK, max_tokens=5, stop=["."], **options(PLAIN, theatre))
    shell.compact(chat, 10, model="openai-compatible:cheap", temperature=0.5)
    sent = theatre.requests[0].json
    assert (sent["model"], sent["temperature"]) == ("openai-compatible:cheap".partition(":")[2], 0.5)
    assert not {"max_tokens", "stop", "max_completion_tokens"} & sent.keys()


@both_shells
def test_a_conversation_without_a_model_is_summed_up_by_the_one_that_is_named(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="It is long."))
    given: dict[str, Any] = options(PLAIN, theatre)
    chat = shell.kind(messages=TALK, **given)
    assert shell.compact(chat, 10**9, model=PLAIN) is None
    assert theatre.requests == []
    assert shell.compact(chat, 100, model=PLAIN) is not None
    assert chat.messages[0].text.startswith(LABEL)
    with pytest.raises(UnknownModel, match=r"To do: name one"):
        shell.compact(shell.kind(messages=TALK, **given), 100)


@both_shells
def test_what_others_said_meanwhile_is_not_summed_away(shell: Shell, stage: OpenStage, tmp_path: Any) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        theirs = shell.kind(PLAIN, store=store, name="talk", messages=TALK)

        def play(_: Any) -> Say:
            theirs.append("meanwhile")
            return Say(text="a note")

        theatre = stage(play)
        mine = shell.kind(store=store, name="talk", **options(PLAIN, theatre))
        with pytest.raises(StoreConflict):
            shell.compact(mine, 10)
        assert mine.refresh()
        assert dialogue(mine)[-1] == ("user", "meanwhile")
        assert len(mine) == len(TALK) + 1


def test_the_last_turn_always_stays() -> None:
    from asides.conversations.sync import Conversation

    with pytest.raises(ConfigError, match="keep_turns"):
        Conversation(PLAIN, messages=TALK).compact(1, keep_turns=0)
