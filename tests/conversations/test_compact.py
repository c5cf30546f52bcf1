"""Compaction: only over the limit, without thinking, and the last turns stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.conversations.store import StoreConflict
from asides.conversations.store.sqlite import SqliteStore
from asides.history.summary import LABEL
from asides.providers.provider import Provider, Quirks, ReplayRule
from asides.settings import Settings
from asides.values.errors import ConfigError, NoAnswer, ProtocolError, UnknownModel, Unsupported
from asides.values.messages import Message, assistant, system, user
from asides.values.parts import File, Image, Text, ToolCall, ToolResult
from asides.values.thinking import Origin, Seal, Thought
from asides.values.tools import Tool
from asides_stage.stage import OpenStage, Say
from tests.conversations.both_shells import PLAIN, Shell, both_shells, dialogue, each_model, options
from tests.loopback import ReceivedRequest, saying, serving, whole_response

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
def test_seals_of_finished_turns_go_before_a_summary_is_asked_for(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="never"))
    model = "anthropic:claude-sonnet-4-5"
    made = Origin("anthropic", theatre.url, "claude-sonnet-4-5")
    sealed = Thought("why", "summary", "block", made, (Seal("signature", "x" * 8000, made),))
    turn: tuple[Any, ...] = ("one?", Message("assistant", (sealed, Text("One."))))
    last: tuple[Any, ...] = ("two?", Message("assistant", (sealed, LOOK)), TALK[2])
    given: dict[str, Any] = {"base_url": theatre.url, "api_key": "k", "tools": [TOOL], "thinking": 2048}
    chat = shell.kind(model, messages=[*turn, *last], **given)
    before = chat.messages
    reply = shell.compact(chat, 5000, keep_turns=1)
    assert reply is None
    assert theatre.requests == []
    thought = Thought("why", "summary", "block", made, replayable=False)
    assert chat.messages[1] == Message("assistant", (thought, Text("One.")))
    assert chat.messages[2:] == before[2:]


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
    with pytest.raises(UnknownModel, match=r"Name one"):
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


# --- by the provider --------------------------------------------------------------------------------------------------

ITEM = {"id": "cmp_1", "type": "compaction", "encrypted_content": "b3BhcXVl"}
COMPACTED = {
    "id": "resp_9",
    "object": "response.compaction",
    "created_at": 1,
    "output": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one?"}]}, ITEM],
    "usage": {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100},
}


ANSWERED = {
    "id": "resp_10",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Three.", "annotations": []}],
        }
    ],
}


def _responses_row(url: str) -> Provider:
    quirks = Quirks(compacts=True, encrypted_reasoning=True, path="/responses")
    replay = (ReplayRule(when="all"),)
    return Provider(name="mine", dialect="openai_responses", base_url=url, key="optional", quirks=quirks, replay=replay)


def _write(document: object) -> bytes:
    return whole_response(json.dumps(document).encode(), Connection="close")


@both_shells
def test_the_provider_compacts_the_whole_conversation(shell: Shell, tmp_path: Any) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def answer(request: ReceivedRequest, connection: Any) -> bool:
        asked.append((request.line, json.loads(request.body)))
        connection.sendall(_write(COMPACTED if "/responses/compact " in request.line else ANSWERED))
        return False

    with serving(answer) as server, SqliteStore(tmp_path / "store.db") as store:
        client: Any = shell.client(providers=[_responses_row(server.url)], settings=Settings())
        given: dict[str, Any] = {"client": client, "store": store, "name": "talk", "system": "Be brief."}
        chat = shell.kind("mine:m", **given)
        chat.extend(["one?", assistant("One."), "two?", assistant("Two.")])
        reply = shell.compact(chat, by="provider")
        assert reply is not None
        assert (reply.usage.total, chat.usage.total) == (100, 100)
        assert asked[0][1].keys() == {"model", "input", "instructions"}
        assert [message.role for message in chat.messages] == ["user", "assistant"]
        assert shell.ask(chat, "three?").text == "Three."
        assert ITEM in asked[1][1]["input"]
        saved = store.load("talk")
        assert saved is not None
        assert saved.messages == chat.messages


@both_shells
def test_below_the_budget_the_provider_is_not_asked(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="never"))
    client: Any = shell.client(providers=[_responses_row(theatre.url)], settings=Settings())
    chat = shell.kind("mine:m", messages=["one?", assistant("One.")], client=client)
    assert shell.compact(chat, 10_000, by="provider") is None
    assert theatre.requests == []


@both_shells
def test_a_provider_that_cannot_says_so_and_nothing_changes(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="never"))
    chat = shell.kind(PLAIN, messages=["one?", assistant("One.")], **options(PLAIN, theatre))
    before = chat.messages
    with pytest.raises(Unsupported, match="by='model'"):
        shell.compact(chat, by="provider")
    with pytest.raises(ConfigError, match="by is one of"):
        shell.compact(chat, by="magic")
    assert chat.messages is before
    assert theatre.requests == []


@both_shells
def test_a_compaction_that_fails_changes_nothing(shell: Shell) -> None:
    failed = whole_response(b"{}", status="503 Busy", Connection="close", Retry_After="0")
    with serving(saying(failed, _write({"output": []}), then=False)) as server:
        client: Any = shell.client(providers=[_responses_row(server.url)], settings=Settings())
        chat = shell.kind("mine:m", messages=["one?", assistant("One.")], client=client)
        before = chat.messages
        with pytest.raises(ProtocolError, match="not a compaction"):
            shell.compact(chat, by="provider")
        assert chat.messages is before
        assert server.connections == 2
