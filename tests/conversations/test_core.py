"""Changes of a conversation: each leaves one that can be sent, and forks share nothing."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from asides.conversations.sync import Conversation
from asides.values.errors import ConfigError, ReplayRejected
from asides.values.messages import Message, StoredResponse, assistant, system, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Origin, Seal, Thought
from asides.values.usage import Usage
from asides_stage.stage import OpenStage, Say
from tests.conversations.both_shells import KEY, PLAIN, Shell, both_shells, dialogue

TALK = ("one?", assistant("One."), "two?", assistant("Two."))


@both_shells
def test_whatever_people_have_for_a_message_can_be_appended(shell: Shell) -> None:
    chat = shell.kind(PLAIN)
    reply = Reply((Thought("hm"), Text("Three.")), Usage(1, 2, 1, 0, 3))
    assert chat.append("one") == user("one")
    chat.append(assistant("Two."))
    chat.append(reply)
    chat.append({"role": "user", "content": [{"type": "text", "text": "four"}]})
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"n":1}'}}
    added = chat.extend(
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "5"},
        ]
    )
    assert added == chat.messages[-2:]
    assert dialogue(chat)[:4] == [
        ("user", "one"),
        ("assistant", "Two."),
        ("assistant", "Three."),
        ("user", "four"),
    ]
    assert chat.messages[2] == reply.to_message()
    assert chat.messages[4].tool_calls == (ToolCall("c1", "look", {"n": 1}),)
    assert chat.usage == reply.usage
    assert len(chat) == 6


def test_a_generator_and_one_message_are_added_too() -> None:
    chat = Conversation(PLAIN)
    reply = Reply((Text("Three."),), Usage(1, 2, 1, 0, 3))
    chat.extend(message for message in ("one", assistant("Two.")))
    chat.extend(reply)
    chat.extend(user("four"))
    chat.extend("five")
    chat.extend({"role": "user", "content": "six"})
    assert [message.text for message in chat.messages] == ["one", "Two.", "Three.", "four", "five", "six"]
    assert chat.usage == reply.usage
    with pytest.raises(ConfigError, match="not an int"):
        chat.extend(42)  # type: ignore[arg-type]


def test_what_is_no_message_changes_nothing() -> None:
    chat = Conversation(PLAIN, messages=TALK)
    for wrong in (42, {"content": "without a role"}, [5]):
        with pytest.raises(ConfigError):
            chat.extend(["fine", wrong])  # type: ignore[list-item]
    assert len(chat) == 4


def test_a_reply_that_has_nothing_to_keep_is_not_kept() -> None:
    from asides.values.notices import Notice

    chat = Conversation(PLAIN)
    assert chat.append(Reply(warnings=(Notice("no_choices", "none came"),))) is None
    assert len(chat) == 0


def test_an_empty_conversation_is_one() -> None:
    assert Conversation(PLAIN)
    assert repr(Conversation(PLAIN, system="secret", messages=["secret"])) == f"Conversation({PLAIN!r}, messages=1)"


def test_words_in_place_of_others_keep_the_role() -> None:
    chat = Conversation(PLAIN, messages=TALK)
    chat.edit(0, "ONE?")
    chat.edit(-1, "TWO.")
    chat.edit(2, {"role": "user", "content": "TWO?"})
    assert dialogue(chat) == [("user", "ONE?"), ("assistant", "One."), ("user", "TWO?"), ("assistant", "TWO.")]
    for place in (4, -5):
        with pytest.raises(ConfigError, match="there is no message"):
            chat.edit(place, "x")


def test_words_in_place_of_a_result_stay_the_answer_to_its_call() -> None:
    called = Message("assistant", (ToolCall("call_1", "look"), ToolCall("call_2", "look")))
    one = Message("tool", (ToolResult("call_1", "grey", "look"),))
    both = Message("tool", (ToolResult("call_1", "grey"), ToolResult("call_2", "blue")))
    chat = Conversation(PLAIN, messages=["?", called, one])
    assert chat.edit(2, "green") == Message("tool", (ToolResult("call_1", "green", "look"),))
    chat = Conversation(PLAIN, messages=["?", called, both])
    with pytest.raises(ConfigError, match="several calls"):
        chat.edit(2, "green")


def test_a_changed_past_is_not_what_a_provider_has_stored() -> None:
    stored = [msgspec.structs.replace(assistant(text), stored=StoredResponse(text)) for text in "ab"]
    chat = Conversation(PLAIN, messages=["one", stored[0], "two", stored[1]])
    chat.edit(2, "TWO")
    assert [message.stored for message in chat] == [None, StoredResponse("a"), None, None]
    chat.system = "Be brief."
    assert [message.stored for message in chat] == [None] * 4


def test_truncating_takes_the_end_away_and_gives_it_back() -> None:
    chat = Conversation(PLAIN, messages=TALK)
    assert dialogue(chat.truncate(-1)) == [("assistant", "Two.")]
    assert chat.truncate(99) == ()
    assert dialogue(chat.truncate(chat.messages[2])) == [("user", "two?")]
    assert dialogue(chat) == [("user", "one?"), ("assistant", "One.")]
    with pytest.raises(ConfigError, match="not in the conversation"):
        chat.truncate(user("never said"))
    chat.clear()
    assert chat.messages == ()


def test_a_message_that_was_said_twice_is_the_one_that_is_meant() -> None:
    chat = Conversation(PLAIN, messages=[user("again"), assistant("a"), user("again"), assistant("b")])
    assert len(chat.fork(chat.messages[0])) == 0
    assert len(chat.fork(user("again"))) == 2


@both_shells
def test_forks_know_nothing_of_each_other(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(lambda request: Say(text=f"after {len(request.prompt.messages)}"))
    chat = shell.kind(PLAIN, system="Be brief.", base_url=theatre.url, api_key=KEY)
    chat.extend(TALK, usage=Usage(10, 20))
    whole, half = chat.fork(), chat.fork(2)
    assert isinstance(half, shell.kind)
    assert (half.model, half.system, half.usage, half.name) == (PLAIN, "Be brief.", Usage(), None)
    shell.ask(half, "other two?")
    shell.ask(chat, "three?")
    half.edit(0, "ONE?")
    assert [len(each) for each in (chat, whole, half)] == [6, 4, 4]
    assert dialogue(chat)[0] == dialogue(whole)[0] == ("user", "one?")
    assert dialogue(half)[2:] == [("user", "other two?"), ("assistant", "after 3")]
    half.system = "Be long."
    assert chat.system == "Be brief."


def test_a_fork_can_be_asked_while_its_origin_is(stage: OpenStage) -> None:
    theatre = stage(Say(text="some words", piece=2))
    chat = Conversation(PLAIN, messages=["one?"], base_url=theatre.url)
    with chat.stream() as events:
        next(events)
        assert chat.fork().ask("two?").text == "some words"


def test_a_copy_goes_on_alone() -> None:
    chat = Conversation(PLAIN, messages=TALK)
    other = copy.copy(chat)
    other.append("three?")
    other.system = "Be brief."
    other.model = "openai-compatible:other"
    assert (len(chat), chat.system, chat.model) == (4, None, PLAIN)
    assert (len(other), other.system, type(other)) == (5, "Be brief.", Conversation)


def test_a_fork_has_a_name_only_where_there_is_a_store() -> None:
    with pytest.raises(ConfigError, match="no store"):
        Conversation(PLAIN).fork(name="other")
    with pytest.raises(ConfigError, match=r"[Pp]ass store="):
        Conversation(PLAIN, name="talk")


# --- how much ---------------------------------------------------------------------------------------------------------


def words(messages: Any) -> int:
    return sum(len(message.text.split()) for message in messages)


@both_shells
def test_trimming_takes_the_oldest_turns_and_says_what_it_did(shell: Shell) -> None:
    chat = shell.kind(PLAIN, messages=[system("s"), *TALK, "three, and a few words more?"])
    trimmed = chat.trim_to(9, count=words)
    assert dialogue(chat) == [
        ("system", "s"),
        ("user", "two?"),
        ("assistant", "Two."),
        ("user", "three, and a few words more?"),
    ]
    assert (trimmed.messages, trimmed.tokens, trimmed.fits, trimmed.dropped) == (chat.messages, 9, True, 2)
    before = chat.messages
    assert chat.trim_to(9, count=words).dropped == 0
    assert chat.messages is before
    least = chat.trim_to(1, count=words)
    assert not least.fits
    assert dialogue(chat) == [("system", "s"), ("user", "three, and a few words more?")]
    assert shell.kind(PLAIN).trim_to(1).fits


def test_counted_is_what_goes_to_the_model_and_not_what_stays_behind() -> None:
    thoughtful = Message("assistant", (Thought("x" * 40_000, origin=Origin("somebody", "", "else")), Text("One.")))
    chat = Conversation(PLAIN, messages=["one?", thoughtful, "two?"], base_url="http://127.0.0.1:9/v1")
    assert chat.trim_to(100).dropped == 0
    assert chat.messages[1] == thoughtful
    large = Conversation(PLAIN, system="y" * 4000, messages=["one?", "two?"], base_url="http://127.0.0.1:9/v1")
    assert large.trim_to(500).tokens > 1000


def test_calls_stay_with_their_results_when_it_is_trimmed() -> None:
    call = Message("assistant", (ToolCall("c1", "look"),))
    result = Message("tool", (ToolResult("c1", "x " * 50),))
    chat = Conversation(PLAIN, messages=["look", call, result, assistant("Seen."), "thanks"])
    chat.trim_to(20, count=lambda messages: words(messages) + 50 * any(message.role == "tool" for message in messages))
    assert dialogue(chat) == [("user", "thanks")]


def test_a_trimmed_conversation_is_sent_in_full(stage: OpenStage) -> None:
    theatre = stage(lambda request: Say(text=f"answer {len(request.prompt.messages)}"))
    chat = Conversation("openai-responses:gpt-5", stateful=True, base_url=theatre.url, api_key=KEY)
    for question in ("one", "two", "three"):
        chat.ask(question)
    chat.trim_to(2, count=len)
    chat.ask("four")
    assert "previous_response_id" not in theatre.requests[-1].json
    assert [item["content"] for item in theatre.requests[-1].json["input"]][::2] == ["three", "four"]


def test_seals_that_a_changed_past_makes_worthless_are_not_sent(stage: OpenStage) -> None:
    """Where a model binds its seals to what stood before, the stage refuses them after an edit; nothing is refused."""
    theatre = stage(Say(thinking="plan", text="One."), Say(thinking="plan", text="Two."))
    chat = Conversation("anthropic:claude-opus-5-5", thinking="low", base_url=theatre.url, api_key=KEY, retries=0)
    chat.ask("one?")
    assert isinstance(chat.messages[1].parts[0], Thought)
    chat.edit(0, "ONE?")
    assert not chat.messages[1].parts[0].replayable
    try:
        chat.ask("two?")
    except ReplayRejected:
        pytest.fail("a seal went along that had lost its worth")
    assert all(request.problem is None for request in theatre.requests)


def test_nothing_of_it_is_shown_by_accident() -> None:
    said = Message("assistant", (Thought("canary", seals=(Seal("signature", "canary"),)), Text("canary")))
    chat = Conversation(PLAIN, system="canary", messages=["canary", said])
    for shown in (repr(chat), str(chat), f"{chat}", repr(chat.messages), repr(chat.fork())):
        assert "canary" not in shown
