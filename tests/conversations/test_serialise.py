"""Saved and loaded conversations, and conversations in the formats of other libraries."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.conversations.async_ import AsyncConversation
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.values.errors import ConfigError
from asides.values.messages import Message, assistant
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from asides.values.usage import Usage
from asides_stage.stage import OpenStage, Say
from tests.conversations.both_shells import PLAIN, Shell, both_shells, dialogue, each_model, options

CALL = ToolCall("call_1", "look_up", {"n": 1})
TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})


@both_shells
@each_model
@pytest.mark.parametrize("keep", [False, True])
def test_what_was_saved_can_be_gone_on_with(
    shell: Shell, model: str, keep: bool, stage: OpenStage, tmp_path: Path
) -> None:
    theatre = stage(
        Say(thinking="the canary sings", text="One."),
        Say(thinking="the canary sings", tool_calls=(CALL,)),
        Say(text="Three."),
    )
    path = tmp_path / "talk.json"
    given: dict[str, Any] = {**options(model, theatre), "tools": [TOOL]}
    chat = shell.kind(model, system="Be brief.", keep_thinking=keep, **given)
    shell.ask(chat, "one?")
    calls = shell.ask(chat, "two?").tool_calls
    chat.append(Message("tool", (ToolResult(calls[0].id, "42", "look_up"),)))
    chat.save(path)
    assert ("canary" in path.read_text(encoding="utf-8")) == keep
    loaded = shell.kind.load(path, **given)
    assert (dialogue(loaded), loaded.model, loaded.system, loaded.usage) == (
        dialogue(chat),
        model,
        "Be brief.",
        chat.usage,
    )
    if keep:
        assert loaded.messages == chat.messages
    assert shell.ask(loaded).text == "Three."
    assert [request.problem for request in theatre.requests] == [None] * 3


def test_seals_come_back_from_a_file_byte_for_byte(stage: OpenStage, tmp_path: Path) -> None:
    theatre = stage(Say(thinking="plan", text="One."), Say(text="Two."))
    model = "openai-responses:gpt-5"
    chat = Conversation(model, **options(model, theatre))
    chat.ask("one?")
    chat.save(tmp_path / "talk.json")
    sealed = [seal.value for part in chat.messages[1].parts for seal in getattr(part, "seals", ()) if seal.value]
    loaded = Conversation.load(tmp_path / "talk.json", **options(model, theatre))
    loaded.ask("two?")
    assert sealed
    assert all(value in theatre.requests[1].body.decode() for value in sealed)
    assert theatre.requests[1].problem is None


def test_what_is_given_wins_over_what_was_written(tmp_path: Path) -> None:
    document = Conversation(PLAIN, system="Be brief.", messages=["one?"]).to_json()
    made = Conversation.from_json(document, model="openai-compatible:other", system="Be long.", temperature=0.5)
    assert (made.model, made.system, dialogue(made)) == (
        "openai-compatible:other",
        "Be long.",
        [("user", "one?")],
    )
    with SqliteStore(tmp_path / "store.db") as store:
        kept = Conversation.from_json(document, store=store, name="talk")
        assert kept.name == "talk"
        found = store.load("talk")
        assert found is not None
        assert (dialogue(found.messages), found.about.heading.system) == ([("user", "one?")], "Be brief.")
        with pytest.raises(ConfigError, match="in the store already"):
            Conversation.from_json(document, store=store, name="talk")
    assert isinstance(AsyncConversation.from_json(document), AsyncConversation)


def test_a_document_says_which_version_it_is_and_a_later_one_is_refused() -> None:
    document = json.loads(Conversation(PLAIN, messages=["one?"]).to_json())
    assert document["asides"] == 1
    with pytest.raises(ConfigError, match="later asides"):
        Conversation.from_json(json.dumps({**document, "asides": 99}))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"canary",
        b'{"canary": 1}',
        b'{"asides": 1, "messages": "canary"}',
        b"\xff\xfe",
        b'{"asides":1,"messages":[],"metadata":{"model":["canary"]}}',
    ],
)
def test_what_is_no_saved_conversation_is_named_and_not_repeated(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"\. [A-Z]") as caught:
        Conversation.load(path)
    assert str(path) in str(caught.value)
    assert "canary" not in str(caught.value).replace(str(path), "")


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.json"):
        Conversation.load(tmp_path / "nowhere.json")
    chat = Conversation(PLAIN)
    with pytest.raises(ConfigError, match=r"nowhere/talk.json"):
        chat.save(tmp_path / "nowhere" / "talk.json")
    with pytest.raises(ConfigError, match=r"\. [A-Z]"):
        chat.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="has no such bits")
def test_a_saved_file_is_its_owners_alone_and_a_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    Conversation(PLAIN, messages=["one?"]).save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert dialogue(Conversation.load(target)) == [("user", "one?")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "real.json"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills")
def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    program = """if True:
        import sys
        from asides.conversations.sync import Conversation
        chat = Conversation("openai-compatible:any", messages=["x" * 200_000])
        while True:
            chat.append("another one")
            chat.save(sys.argv[1])
            sys.stdout.write(".")
            sys.stdout.flush()
    """
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "PYTHONPATH": str(Path(asides.__file__).parent.parent)},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    with child.stdout:
        saved = len(child.stdout.read(20))
        child.kill()
        saved += len(child.stdout.read())
    child.wait()
    assert len(Conversation.load(path)) - 1 in (saved, saved + 1)


# --- other people's forms -----------------------------------------------------------------------------------------


THOUGHTFUL = Message(
    "assistant",
    (
        Thought("the canary sings", source="block", via="thinking", seals=(Seal("signature", "sealed"),)),
        Text("One."),
        CALL,
    ),
)


def talk() -> Conversation:
    answered = Message("tool", (ToolResult("call_1", "42", "look_up"),))
    return Conversation(PLAIN, system="Be brief.", messages=["one?", THOUGHTFUL, answered, assistant("Two.")])


def test_written_for_others_it_holds_no_thinking_unless_that_is_asked_for() -> None:
    chat = talk()
    assert chat.to_openai()[0] == {"role": "system", "content": "Be brief."}
    assert chat.to_anthropic()["system"] == "Be brief."
    for exported in (chat.to_openai(), chat.to_anthropic(), chat.to_responses()):
        assert "canary" not in json.dumps(exported)
        assert "sealed" not in json.dumps(exported)
    assert "canary" in json.dumps(chat.to_openai(thinking=True))
    assert "sealed" in json.dumps(chat.to_anthropic(thinking=True))


@pytest.mark.parametrize("shape", ["openai", "anthropic", "responses"])
def test_what_was_written_for_others_reads_as_the_same_talk(shape: str) -> None:
    chat = talk()
    again: Conversation = getattr(Conversation, f"from_{shape}")(getattr(chat, f"to_{shape}")(), model=PLAIN)
    assert again.system == "Be brief."
    said = [(message.role, message.text, message.tool_calls) for message in again if message.role == "assistant"]
    assert [(role, text) for role, text, _ in said if text] == [("assistant", "One."), ("assistant", "Two.")]
    assert [call.arguments for _, _, calls in said for call in calls] == [{"n": 1}]
    results = [part.text for message in again for part in message.parts if isinstance(part, ToolResult)]
    assert results == ["42"]


def test_whole_requests_of_others_are_read_too() -> None:
    turns = [{"role": "user", "content": [{"type": "text", "text": "one?"}]}]
    chat = Conversation.from_anthropic({"model": "any", "system": "Be brief.", "messages": turns}, model=PLAIN)
    assert (chat.system, dialogue(chat)) == ("Be brief.", [("user", "one?")])
    own = Conversation.from_openai(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one?"}], system="Be long."
    )
    assert (own.system, dialogue(own)) == ("Be long.", [("system", "Be brief."), ("user", "one?")])
    items: Any = {"input": "one?", "instructions": "Be brief."}
    assert dialogue(Conversation.from_responses(items)) == [("user", "one?")]


@both_shells
@each_model
@pytest.mark.parametrize("shape", ["openai", "anthropic", "responses"])
def test_what_came_from_others_is_accepted(shell: Shell, model: str, shape: str, stage: OpenStage) -> None:
    theatre = stage(Say(text="Three."))
    exported = getattr(talk(), f"to_{shape}")()
    chat = getattr(shell.kind, f"from_{shape}")(exported, model=model, tools=[TOOL], **options(model, theatre))
    assert shell.ask(chat, "three?").text == "Three."
    assert [request.problem for request in theatre.requests] == [None]


def test_usage_is_written_only_where_something_was_spent() -> None:
    assert "usage" not in Conversation(PLAIN, messages=["one?"]).to_json()
    chat = Conversation(PLAIN)
    chat.extend(["one?", assistant("One.")], usage=Usage(1, 2, None, None, 3, "estimated"))
    assert Conversation.from_json(chat.to_json()).usage == chat.usage
