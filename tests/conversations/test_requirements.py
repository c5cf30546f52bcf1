"""Conversations and stores: the requirements on histories, by id, in both shells and over the stage."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides.conversations.store import (
    ConversationHeading,
    ConversationInfo,
    ConversationSnapshot,
    Store,
    StoreConflict,
)
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.history.summary import LABEL
from asides.providers.provider import Provider, Quirks, ReplayRule
from asides.values.errors import ContextTooLong
from asides.values.messages import Message, assistant, system, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thinking, Thought
from asides.values.tools import Tool
from asides.values.usage import Usage
from asides_stage.stage import Fail, OpenStage, Say
from tests.conversations.both_shells import KEY, PLAIN, Shell, both_shells, dialogue, each_model, options

CANARY = "a canary in the mine"
TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})
RESPONSES = "openai-responses:gpt-5"


# --- what is kept, and what is shown ------------------------------------------------------------------------------


@pytest.mark.requirement("S3-03", "S3-07", "S3-11", "FT-29", "pain B6")
@both_shells
@each_model
def test_S0_09_a_history_that_is_kept_has_the_answers_and_no_thinking(
    shell: Shell, model: str, stage: OpenStage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    theatre = stage(Say(thinking=CANARY, text="42"))
    with SqliteStore(tmp_path / "store.db") as store:
        chat = shell.kind(model, store=store, name="talk", **options(model, theatre))
        shell.ask(chat, "one?")
        shell.stream(chat, "two?")
        chat.save(tmp_path / "talk.json")
        shapes = [chat.to_openai(), chat.to_anthropic(), chat.to_responses()]
    everywhere = b"".join(path.read_bytes() for path in tmp_path.iterdir()) + json.dumps(shapes).encode()
    assert b"42" in everywhere
    assert CANARY.encode() not in everywhere
    assert CANARY not in caplog.text + repr(chat) + "".join(text for _, text in dialogue(chat))


@pytest.mark.requirement("S3-04", "S3-06", "S3-10")
@both_shells
@each_model
def test_S0_10_thinking_can_be_shown_though_nothing_of_it_is_kept(
    shell: Shell, model: str, stage: OpenStage, tmp_path: Path
) -> None:
    theatre = stage(Say(thinking=CANARY, text="42"))
    with SqliteStore(tmp_path / "store.db") as store:
        chat = shell.kind(model, store=store, name="talk", **options(model, theatre))
        assert shell.ask(chat, "one?").metadata["thinking"] == CANARY
        streamed = shell.stream(chat, "two?")
    assert "".join(event.text for event in streamed.events if isinstance(event, asides.ThinkingDelta)) == CANARY
    assert streamed.partial is not None
    assert streamed.partial.metadata["thinking"] == CANARY
    assert CANARY.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.requirement("S3-12")
@both_shells
@each_model
def test_S3_09_one_way_of_reading_a_conversation_for_every_provider(shell: Shell, model: str, stage: OpenStage) -> None:
    theatre = stage(Say(thinking="First this, then that.", text="forty-two", piece=6))
    chat = shell.kind(model, **options(model, theatre))
    events = shell.stream(chat, "why?").events
    thinking = [event.text for event in events if isinstance(event, asides.ThinkingDelta)]
    text = [event.text for event in events if isinstance(event, asides.TextDelta)]
    assert len(thinking) > 1
    assert ("".join(thinking), "".join(text)) == ("First this, then that.", "forty-two")
    assert dialogue(chat) == [("user", "why?"), ("assistant", "forty-two")]


@both_shells
def test_S3_08_blocks_go_back_by_themselves_where_tools_are_called(shell: Shell, stage: OpenStage) -> None:
    model = "anthropic:claude-sonnet-4-5"
    theatre = stage(Say(thinking=CANARY, tool_calls=(ToolCall("call_1", "look_up", {"n": 1}),)), Say(text="42"))
    chat = shell.kind(model, tools=[TOOL], **options(model, theatre))
    calls = shell.ask(chat, "look").tool_calls
    shell.ask(chat, [Message("tool", (ToolResult(calls[0].id, "42", "look_up"),))])
    blocks = theatre.requests[1].json["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "tool_use"]
    assert (blocks[0]["thinking"], theatre.requests[1].problem) == (CANARY, None)
    assert all(CANARY not in text for _, text in dialogue(chat))


# --- what goes back -----------------------------------------------------------------------------------------------


def row(when: Any) -> Provider:
    return Provider(
        name="example",
        base_url="http://127.0.0.1:9/v1",
        key="optional",
        quirks=Quirks(thinking_in=("reasoning_content",), replay_field="reasoning_content"),
        replay=(ReplayRule(when=when, source="made up"),),
    )


def three_turns() -> list[Any]:
    """Two turns that are over, and one that waits for its tool."""
    thoughts = [Thought(f"T{number}", via="reasoning_content") for number in (1, 2, 3)]
    call = ToolCall("call_1", "look_up", {"n": 1})
    return [
        "one?",
        Message("assistant", (thoughts[0], Text("One."))),
        "two?",
        Message("assistant", (thoughts[1], Text("Two."))),
        "three?",
        Message("assistant", (thoughts[2], call)),
        Message("tool", (ToolResult("call_1", "42", "look_up"),)),
    ]


@pytest.mark.parametrize(("when", "sent"), [("all", ["T1", "T2", "T3"]), ("since_last_user", ["T3"]), ("never", [])])
def test_H2_a_rule_says_whose_thoughts_go_back_and_the_conversation_stays_as_it_is(
    when: str, sent: list[str], stage: OpenStage
) -> None:
    theatre = stage(Say(text="Three."))
    with asides.Client(providers=[row(when)], base_url=theatre.url) as client:
        chat = Conversation("example:made-up", client=client, tools=[TOOL], messages=three_turns())
        before = msgspec.json.encode(chat.messages)
        chat.ask()
    assert [thought for thought in ("T1", "T2", "T3") if f'"{thought}"' in theatre.requests[0].body.decode()] == sent
    assert msgspec.json.encode(chat.messages[:-1]) == before


def test_H3_saying_that_nothing_goes_back_wins_over_the_rule(stage: OpenStage) -> None:
    theatre = stage(Say(text="Three."))
    with asides.Client(providers=[row("all")], base_url=theatre.url) as client:
        chat = Conversation("example:made-up", client=client, tools=[TOOL], messages=three_turns())
        chat.ask(thinking=Thinking(replay="never"))
    assert not any(f'"T{number}"' in theatre.requests[0].body.decode() for number in (1, 2, 3))


@pytest.mark.requirement("FT-19", "S4-REQ-004.1", "S4-REQ-004.2")
@both_shells
def test_S4_REQ_004_H7_only_what_is_new_goes_to_a_provider_that_has_the_rest(shell: Shell, stage: OpenStage) -> None:
    call = ToolCall("call_1", "look_up", {"n": 1})
    theatre = stage(Say(text="One."), Say(text="by another"), Say(tool_calls=(call,)), Say(text="Three."))
    chat = shell.kind(RESPONSES, stateful=True, tools=[TOOL], **options("", theatre))
    shell.ask(chat, "one?")
    shell.ask(chat, "two?", model=PLAIN)
    shell.ask(chat, "three?")
    shell.ask(chat, [Message("tool", (ToolResult("call_1", "42", "look_up"),))])
    first, _, third, fourth = (request.json for request in theatre.requests)
    assert "previous_response_id" not in first
    # What was said with somebody else meanwhile is new to this one.
    assert [item["content"] for item in third["input"]] == ["two?", "by another", "three?"]
    assert [item["type"] for item in fourth["input"]] == ["function_call_output"]
    stored = [None if message.stored is None else message.stored.id for message in chat]
    assert (third["previous_response_id"], fourth["previous_response_id"]) == (stored[1], stored[5])
    assert all(request.problem is None for request in theatre.requests)


@pytest.mark.requirement("FT-19")
def test_H7_a_conversation_goes_on_when_the_provider_has_forgotten_it(stage: OpenStage) -> None:
    first, second = stage(Say(text="One.")), stage(Say(text="Two."))
    chat = Conversation(RESPONSES, stateful=True, api_key=KEY, base_url=first.url)
    chat.ask("one?")
    # The same endpoint by name, but it knows nothing of what was stored.
    moved = msgspec.json.encode(chat.messages).replace(first.url.encode(), second.url.encode())
    again = Conversation(
        RESPONSES,
        stateful=True,
        api_key=KEY,
        base_url=second.url,
        messages=msgspec.json.decode(moved, type=tuple[Message, ...]),
    )
    assert again.ask("two?").text == "Two."
    assert [bool(request.problem) for request in second.requests] == [True, False]
    assert dialogue(again) == [("user", "one?"), ("assistant", "One."), ("user", "two?"), ("assistant", "Two.")]


# --- what it costs ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-23", "S4-REQ-002.1", "S4-REQ-002.2", "S4-A5", "FT-22")
@both_shells
def test_S4_REQ_002_the_figures_of_the_server_add_up_and_a_guess_says_so(
    shell: Shell, stage: OpenStage, tmp_path: Path
) -> None:
    theatre = stage(
        Say(thinking="plan", text="One.", usage=Usage(10, 5, 2, 1, 15)),
        Say(thinking="plan", text="Two.", usage=Usage(20, 7, 3, 4, 27)),
        Say(text="x" * 40, usage=Usage()),
    )
    with SqliteStore(tmp_path / "store.db") as store:
        chat = shell.kind(PLAIN, store=store, name="talk", **options(PLAIN, theatre))
        shell.ask(chat, "one?")
        shell.stream(chat, "two?")
        assert chat.usage == Usage(30, 12, 5, 5, 42)
        assert shell.kind(store=store, name="talk").usage == chat.usage
        shell.ask(chat, "three?")
        assert chat.usage.origin == "estimated"
        assert (chat.usage.output, chat.usage.thinking) == (22, 5)


@both_shells
def test_S4_REQ_002_1_what_a_finished_response_reports_is_added_to_the_conversation(
    shell: Shell, stage: OpenStage
) -> None:
    theatre = stage(
        Say(text="One.", usage=Usage(10, 5, 2, 1, 15)),
        Say(tool_calls=(ToolCall("call_1", "look_up", {"n": 1}),), usage=Usage(20, 7, 3, 4, 27)),
    )
    chat = shell.kind(RESPONSES, tools=[TOOL], **options(RESPONSES, theatre))
    shell.stream(chat, "one?")
    assert chat.usage == Usage(10, 5, 2, 1, 15)
    shell.stream(chat, "two?")
    assert chat.usage == Usage(30, 12, 5, 5, 42)


# --- how long it may get ------------------------------------------------------------------------------------------


def count(messages: Any) -> int:
    return sum(len(message.text.split()) for message in messages)


@pytest.mark.requirement("FT-48")
@both_shells
def test_P2_trimming_keeps_system_and_the_last_message_and_ends_though_it_does_not_fit(shell: Shell) -> None:
    talk: list[Any] = [
        system("You are kind."),
        "one?",
        assistant("One."),
        "two?",
        assistant("Two."),
        "a last long question?",
    ]
    chat = shell.kind(PLAIN, messages=talk)
    trimmed = chat.trim_to(1, count=count)
    assert dialogue(chat) == [("system", "You are kind."), ("user", "a last long question?")]
    assert (trimmed.fits, trimmed.tokens, trimmed.dropped) == (False, 7, 4)
    assert "history_over_budget" in {notice.code for notice in trimmed.notices}


@pytest.mark.requirement("FT-48", "H11")
def test_FT_48_what_is_counted_is_what_is_sent(stage: OpenStage) -> None:
    """A refusal for length, a trim to what the model takes, and it is accepted."""
    limit = 400

    def play(request: Any) -> Any:
        if sum(len(message.text) for message in request.prompt.messages) > 4 * limit:
            return Fail(status=400, message="This model's maximum context length is exceeded")
        return Say(thinking="x" * 4000, text="y" * 300)

    theatre = stage(play)
    chat = Conversation(PLAIN, **options(PLAIN, theatre))
    for number in range(12):
        try:
            chat.ask(f"question {number}")
        except ContextTooLong:
            chat.append(f"question {number}")
            assert chat.trim_to(limit).fits
            chat.ask()
    assert dialogue(chat)[-2][1] == "question 11"
    assert 4 < len(chat) < 16


@pytest.mark.requirement("FT-48")
@both_shells
def test_P4_a_summary_is_written_past_the_budget_and_reasoning_is_not_shown_to_who_writes_it(
    shell: Shell, stage: OpenStage
) -> None:
    theatre = stage(Say(thinking=CANARY, text="y" * 300), Say(text="y" * 300), Say(text="in short"), Say(text="on"))
    chat = shell.kind(PLAIN, **options(PLAIN, theatre))
    shell.ask(chat, "one?")
    shell.stream(chat, "two?")
    assert shell.compact(chat, 1000, keep_turns=1) is None
    assert len(theatre.requests) == 2
    assert shell.compact(chat, 100, keep_turns=1) is not None
    assert dialogue(chat)[0] == ("user", f"{LABEL}\n\nin short")
    shell.ask(chat, "three?")
    assert all(CANARY not in request.body.decode() for request in theatre.requests)
    assert "one?" not in theatre.requests[3].body.decode()


# --- kept for good ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-49")
@both_shells
@each_model
def test_H9_FT_49_a_conversation_survives_json_and_the_store_with_all_that_its_provider_wants_back(
    shell: Shell, model: str, stage: OpenStage, tmp_path: Path
) -> None:
    call = ToolCall("call_1", "look_up", {"n": 1})
    theatre = stage(Say(thinking="plan", text="Let me see.", tool_calls=(call,)), Say(text="42."))
    given: dict[str, Any] = {**options(model, theatre), "tools": [TOOL]}
    with SqliteStore(tmp_path / "store.db") as store:
        chat = shell.kind(model, store=store, name="talk", keep_thinking=True, **given)
        calls = shell.ask(chat, "look").tool_calls
        chat.append(Message("tool", (ToolResult(calls[0].id, "42", "look_up"),)))
        stored = shell.kind(store=store, name="talk", **given)
        saved = shell.kind.from_json(chat.to_json(), **given)
        bodies: list[bytes] = []
        for same in (chat.fork(), stored, saved):
            assert same.messages == chat.messages
            shell.ask(same)
            bodies.append(theatre.requests[-1].body)
    assert len(set(bodies)) == 1
    assert all(request.problem is None for request in theatre.requests)


@pytest.mark.requirement("FT-49")
def test_FT_49_conversations_are_many_and_have_names(stage: OpenStage, tmp_path: Path) -> None:
    theatre = stage(Say(text="hi"))
    with SqliteStore(tmp_path / "store.db") as store:
        for name in ("first", "second"):
            Conversation(PLAIN, store=store, name=name, base_url=theatre.url).ask(f"{name}?")
        assert store.names() == ("second", "first")
        assert dialogue(Conversation(store=store, name="first")) == [("user", "first?"), ("assistant", "hi")]
        store.delete("first")
        assert store.names() == ("second",)
    assert user("first?") not in Conversation(store=SqliteStore(tmp_path / "store.db"), name="first").messages


class InMemory:
    """A store of somebody's own: what the protocol asks for, and no more."""

    def __init__(self) -> None:
        self.kept: dict[str, ConversationSnapshot] = {}

    def append(
        self, name: str, messages: Any, *, heading: ConversationHeading | None = None, spent: Usage | None = None
    ) -> ConversationInfo:
        before = self.kept.get(name)
        return self._put(name, (*(before.messages if before else ()), *messages), heading, spent)

    def replace(
        self,
        name: str,
        messages: Any,
        *,
        expected: int,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        before = self.kept.get(name)
        found = before.about.version if before else 0
        if found != expected:
            raise StoreConflict("somebody else was first", name=name, expected=expected, found=found)
        return self._put(name, tuple(messages), heading, spent, rewritten=found + 1)

    def _put(
        self,
        name: str,
        messages: tuple[Message, ...],
        heading: ConversationHeading | None,
        spent: Usage | None,
        rewritten: int | None = None,
    ) -> ConversationInfo:
        old = self.kept[name].about if name in self.kept else ConversationInfo(name, 0, 0, 0)
        usage = old.usage if spent is None else old.usage + spent
        about = ConversationInfo(
            name, old.version + 1, rewritten or old.rewritten, len(messages), heading or old.heading, usage
        )
        self.kept[name] = ConversationSnapshot(about, messages)
        return about

    def load(self, name: str, start: int = 0) -> ConversationSnapshot | None:
        found = self.kept.get(name)
        return None if found is None else ConversationSnapshot(found.about, found.messages[start:])

    def about(self, name: str) -> ConversationInfo | None:
        return self.kept[name].about if name in self.kept else None

    def names(self) -> tuple[str, ...]:
        return tuple(self.kept)

    def delete(self, name: str) -> bool:
        return self.kept.pop(name, None) is not None


@both_shells
def test_FT_49_a_store_of_ones_own_keeps_a_conversation(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(thinking=CANARY, text="One."), Say(text="Two."))
    store: Store = InMemory()
    shell.ask(shell.kind(PLAIN, store=store, name="talk", **options(PLAIN, theatre)), "one?")
    again = shell.kind(PLAIN, store=store, name="talk", **options(PLAIN, theatre))
    shell.ask(again, "two?")
    assert dialogue(again) == [("user", "one?"), ("assistant", "One."), ("user", "two?"), ("assistant", "Two.")]
    assert [message["content"] for message in theatre.requests[1].json["messages"]] == ["one?", "One.", "two?"]
    assert CANARY not in repr(msgspec.to_builtins(store.load("talk")))


def test_H2_thoughts_can_be_forgotten_all_or_all_but_the_last(stage: OpenStage) -> None:
    theatre = stage(*(Say(thinking=f"{CANARY} {number}", text="42", tool_calls=()) for number in range(4)))
    chat = asides.Conversation("anthropic:claude-sonnet-4-5", base_url=theatre.url, api_key=KEY, thinking=2000)
    for number in range(3):
        chat.ask(f"{number}?")
    before = chat.messages

    def thoughts() -> list[str]:
        return [part.text[-1] for message in chat.messages for part in message.parts if isinstance(part, Thought)]

    assert thoughts() == ["0", "1", "2"]
    chat.forget_thinking("none")
    assert chat.messages == before
    chat.forget_thinking("all_but_last")
    assert thoughts() == ["2"]
    chat.forget_thinking()
    assert thoughts() == []
    assert [message.text for message in chat.messages] == [message.text for message in before]
    chat.ask("And now?")
    assert theatre.requests[-1].problem is None
    assert CANARY not in theatre.requests[-1].body.decode()
    with pytest.raises(asides.ConfigError, match="all_but_last"):
        chat.forget_thinking("some")  # type: ignore[arg-type]
