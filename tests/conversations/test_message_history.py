"""Conversations in a store: written before an answer is returned, shared with others, never overwritten unseen."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.conversations.async_ import AsyncConversation
from asides.conversations.store import StoreConflict
from asides.conversations.store.database_store import DatabaseStore
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.database import StoreError
from asides.settings import load_settings
from asides.values.errors import ConfigError
from asides.values.messages import assistant
from asides.values.parts import ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool
from asides.values.usage import Usage
from asides_stage.stage import OpenStage, Say
from tests.conversations.both_shells import KEY, PLAIN, Shell, both_shells, dialogue, each_model, options
from tests.stores import open_place

TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})


@pytest.fixture
def store(store_place: str) -> Iterator[DatabaseStore]:
    with open_place(store_place) as opened:
        yield opened


def kept(store: DatabaseStore, name: str) -> list[tuple[str, str]]:
    found = store.load(name)
    return [] if found is None else dialogue(found.messages)


@both_shells
def test_a_turn_is_in_the_store_before_its_answer_is_handed_out(
    shell: Shell, stage: OpenStage, store: DatabaseStore
) -> None:
    theatre = stage(Say(thinking="plan", text="First."), Say(text="Second."))
    chat = shell.kind(PLAIN, system="Be brief.", store=store, name="talk", **options(PLAIN, theatre))
    assert store.names() == ()
    shell.ask(chat, "one?")
    assert kept(store, "talk") == [("user", "one?"), ("assistant", "First.")]
    shell.stream(chat, "two?")
    assert kept(store, "talk") == dialogue(chat)
    about = store.about("talk")
    assert about is not None
    assert (about.heading.system, about.heading.model, about.usage) == ("Be brief.", PLAIN, chat.usage)
    # Each turn was one step, so that nobody ever saw a question without its answer.
    assert about.version == 2


@both_shells
@each_model
def test_readable_thinking_is_in_the_file_only_when_it_is_to_be_kept(
    shell: Shell, model: str, stage: OpenStage, tmp_path: Path
) -> None:
    theatre = stage(lambda request: Say(thinking="the canary sings", text="42"))
    for keep, name in ((False, "without.db"), (True, "with.db")):
        with SqliteStore(tmp_path / name) as store:
            chat = shell.kind(model, store=store, name="talk", keep_thinking=keep, **options(model, theatre))
            shell.ask(chat, "one?")
            shell.stream(chat, "two?")
            chat.edit(0, "ONE?")
            reopened = shell.kind(store=store, name="talk", **options(model, theatre))
            shell.ask(reopened, "three?")
        assert theatre.requests[-1].problem is None
        written = b"".join(path.read_bytes() for path in tmp_path.glob(f"{name}*"))
        assert (b"canary sings" in written) == keep


def test_the_settings_say_whether_thinking_is_kept(
    stage: OpenStage, store: DatabaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    theatre = stage(Say(thinking="canary", text="42"))
    settings = load_settings({"ASIDES_KEEP_THINKING": "yes"}, files=[])
    with asides.Client(settings=settings) as client:
        Conversation(PLAIN, client=client, store=store, name="client", base_url=theatre.url).ask("?")
    Conversation(PLAIN, store=store, name="neither", base_url=theatre.url).ask("?")
    monkeypatch.setenv("ASIDES_KEEP_THINKING", "yes")
    Conversation(PLAIN, store=store, name="environment", base_url=theatre.url).ask("?")
    Conversation(PLAIN, store=store, name="argument", keep_thinking=False, base_url=theatre.url).ask("?")
    found: dict[str, bool] = {}
    for name in store.names():
        loaded = store.load(name)
        assert loaded is not None
        found[name] = any(isinstance(part, Thought) and part.text for part in loaded.messages[1].parts)
    assert found == {"client": True, "neither": False, "environment": True, "argument": False}


@both_shells
def test_two_that_talk_in_turns_hear_each_other(shell: Shell, stage: OpenStage, store: DatabaseStore) -> None:
    theatre = stage(lambda request: Say(text=f"answer {len(request.prompt.messages)}"))
    mine, theirs = (shell.kind(PLAIN, store=store, name="talk", **options(PLAIN, theatre)) for _ in range(2))
    shell.ask(mine, "one")
    shell.ask(theirs, "two")
    shell.stream(mine, "three")
    assert dialogue(mine) == kept(store, "talk")
    assert [text for role, text in dialogue(mine) if role == "assistant"] == ["answer 1", "answer 3", "answer 5"]
    assert mine.usage == Usage(12, 6, 0, None, 18)


def test_what_others_said_meanwhile_stands_where_it_was_said(stage: OpenStage, store: DatabaseStore) -> None:
    theatre = stage(Say(text="slow words", piece=2))
    mine, theirs = (Conversation(PLAIN, store=store, name="talk", base_url=theatre.url) for _ in range(2))
    mine.ask("one")
    with mine.stream("two") as events:
        next(events)
        theirs.ask("two and a half")
    assert [text for role, text in dialogue(mine) if role == "user"] == ["one", "two and a half", "two"]
    assert dialogue(mine) == kept(store, "talk")
    theirs.refresh()
    assert dialogue(theirs) == dialogue(mine)
    # And where they changed what was said before:
    with mine.stream("three") as events:
        next(events)
        theirs.truncate(2)
    assert dialogue(mine) == kept(store, "talk")
    assert [text for role, text in dialogue(mine) if role == "user"] == ["one", "three"]


def test_changes_of_what_others_changed_are_refused(store: DatabaseStore) -> None:
    mine = Conversation(PLAIN, store=store, name="talk", messages=["one", assistant("One.")])
    theirs = Conversation(PLAIN, store=store, name="talk")
    theirs.extend(["two", assistant("Two.")])
    for change in (lambda: mine.edit(0, "ONE"), lambda: mine.truncate(1), mine.clear):
        with pytest.raises(StoreConflict):
            change()
    assert dialogue(mine) == [("user", "one"), ("assistant", "One.")]
    assert len(kept(store, "talk")) == 4
    assert mine.refresh()
    mine.edit(0, "ONE")
    assert kept(store, "talk")[0] == ("user", "ONE")
    assert theirs.refresh()
    assert dialogue(theirs) == dialogue(mine)
    assert not theirs.refresh()


def test_one_that_others_deleted_says_so(stage: OpenStage, store: DatabaseStore) -> None:
    theatre = stage(Say(text="hi"))
    chat = Conversation(PLAIN, store=store, name="talk", messages=["one", assistant("One.")], base_url=theatre.url)
    store.delete("talk")
    with pytest.raises(StoreConflict, match="was deleted"):
        chat.ask("two")
    saved = chat.fork(name="other")
    saved.ask("two")
    assert len(kept(store, "other")) == 4


def test_changes_are_kept_and_cost_stays_counted(stage: OpenStage, store: DatabaseStore) -> None:
    theatre = stage(Say(text="hi"))
    chat = Conversation(PLAIN, store=store, name="talk", base_url=theatre.url)
    chat.ask("one")
    chat.ask("two")
    spent = chat.usage
    chat.truncate(2)
    chat.system = "Be brief."
    again = Conversation(store=store, name="talk", base_url=theatre.url)
    assert (dialogue(again), again.model, again.system, again.usage) == (
        dialogue(chat),
        PLAIN,
        "Be brief.",
        spent,
    )
    other = Conversation("openai-compatible:other", system="Be long.", store=store, name="talk")
    assert (other.model, other.system) == ("openai-compatible:other", "Be long.")


def test_what_stands_above_it_is_changed_only_by_who_means_to(stage: OpenStage, store: DatabaseStore) -> None:
    theatre = stage(Say(text="hi"))
    first = Conversation(PLAIN, system="Be brief.", store=store, name="talk", base_url=theatre.url)
    first.ask("one")
    other = Conversation("openai-compatible:other", store=store, name="talk", base_url=theatre.url)
    other.system = "Be long."
    first.ask("two")
    about = store.about("talk")
    assert about is not None
    assert (about.heading.system, about.heading.model) == ("Be long.", "openai-compatible:other")
    assert [request.json["model"] for request in theatre.requests] == ["made-up"] * 2
    # Nothing is begun in the store before something is said.
    empty = Conversation(PLAIN, store=store, name="empty")
    empty.system = "Be brief."
    empty.clear()
    assert store.names() == ("talk",)


def test_a_fork_with_a_name_is_kept_under_it_and_one_without_is_not(store: DatabaseStore) -> None:
    chat = Conversation(PLAIN, store=store, name="talk", messages=["one", assistant("One.")])
    chat.fork().append("nowhere")
    branch = chat.fork(1, name="branch")
    branch.append("there")
    assert sorted(store.names()) == ["branch", "talk"]
    assert kept(store, "branch") == [("user", "one"), ("user", "there")]
    assert len(kept(store, "talk")) == 2
    with pytest.raises(StoreConflict):
        chat.fork(name="branch")


def test_without_a_name_it_gets_one_of_its_own(store: DatabaseStore) -> None:
    first, second = (Conversation(PLAIN, store=store, messages=["one"]) for _ in range(2))
    assert first.name != second.name
    assert set(store.names()) == {first.name, second.name}


def test_messages_are_for_one_that_is_not_there_yet(store: DatabaseStore) -> None:
    Conversation(PLAIN, store=store, name="talk", messages=["one"])
    with pytest.raises(ConfigError, match="in the store already"):
        Conversation(PLAIN, store=store, name="talk", messages=["one"])
    assert len(kept(store, "talk")) == 1


@both_shells
def test_an_answer_that_cannot_be_kept_is_not_lost_and_not_half_kept(
    shell: Shell, stage: OpenStage, tmp_path: Path
) -> None:
    theatre = stage(Say(text="First."), Say(text="Second."), Say(text="Third."))
    path = tmp_path / "store.db"
    with SqliteStore(path, patience=0.05) as store:
        chat = shell.kind(PLAIN, store=store, name="talk", **options(PLAIN, theatre))
        shell.ask(chat, "one")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="busy") as caught:
            shell.ask(chat, "two")
        assert caught.value.partial is not None
        assert caught.value.partial.text == "Second."
        assert len(chat) == 2
        other.execute("ROLLBACK")
        other.close()
        shell.ask(chat, "two")
        assert dialogue(chat) == kept(store, "talk")
        assert dialogue(chat)[2:] == [("user", "two"), ("assistant", "Third.")]


async def test_a_cancelled_task_has_its_turn_in_the_store(stage: OpenStage, store: DatabaseStore) -> None:
    theatre = stage(Say(text="one two three", piece=4, hang_after=600))
    chat = AsyncConversation(PLAIN, store=store, name="talk", **options(PLAIN, theatre))
    heard = asyncio.Event()

    async def listen() -> None:
        async with chat.stream("go") as events:
            async for event in events:
                if isinstance(event, asides.TextDelta):
                    heard.set()

    task = asyncio.create_task(listen())
    await heard.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # once more, while it is being written
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [role for role, _ in dialogue(chat)] == ["user", "assistant"]
    assert kept(store, "talk") == dialogue(chat)


def test_steps_of_an_agent_are_one_commit_each(store: DatabaseStore) -> None:
    chat = Conversation(PLAIN, store=store, name="talk")
    chat.extend(["one", assistant("One.")], usage=Usage(1, 2))
    chat.extend([assistant("Two."), assistant("Three.")], usage=Usage(3, 4))
    about = store.about("talk")
    assert about is not None
    assert (about.version, about.length, about.usage) == (2, 4, Usage(4, 6))


def test_a_store_of_ones_own_is_a_few_methods(stage: OpenStage) -> None:
    """The smallest thing that keeps its word: a dictionary."""
    from asides.conversations.store import ConversationHeading, ConversationInfo, ConversationSnapshot, Store

    class Memory:
        def __init__(self) -> None:
            self.kept: dict[str, ConversationSnapshot] = {}
            self.ticks = 0

        def append(self, name: str, messages: Any, *, heading: Any = None, spent: Any = None) -> ConversationInfo:
            before = self.kept.get(name)
            return self._put(name, before, (*(before.messages if before else ()), *messages), heading, spent)

        def replace(
            self, name: str, messages: Any, *, expected: int, heading: Any = None, spent: Any = None
        ) -> ConversationInfo:
            before = self.kept.get(name)
            if (before.about.version if before else 0) != expected:
                raise StoreConflict("changed meanwhile", name=name, expected=expected, found=None)
            return self._put(name, before, tuple(messages), heading, spent, rewrites=True)

        def _put(
            self,
            name: str,
            before: ConversationSnapshot | None,
            messages: Any,
            heading: Any,
            spent: Any,
            rewrites: bool = False,
        ) -> ConversationInfo:
            self.ticks += 1
            rewritten = self.ticks if rewrites or before is None else before.about.rewritten
            usage = (before.about.usage if before else Usage()) + (spent or Usage())
            head = heading or (before.about.heading if before else ConversationHeading())
            about = ConversationInfo(name, self.ticks, rewritten, len(messages), head, usage)
            self.kept[name] = ConversationSnapshot(about, tuple(messages))
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

    theatre = stage(lambda request: Say(text=f"answer {len(request.prompt.messages)}"))
    memory: Store = Memory()
    mine, theirs = (Conversation(PLAIN, store=memory, name="talk", base_url=theatre.url, api_key=KEY) for _ in range(2))
    mine.ask("one")
    theirs.ask("two")
    mine.refresh()
    mine.edit(0, "ONE")
    theirs.ask("three")
    assert dialogue(theirs)[0] == ("user", "ONE")
    assert len(theirs) == 6


def test_calls_without_ids_are_counted_through_the_whole_conversation() -> None:
    """The old kind of call has no id; its result is found by the order, however the messages are added."""
    chat = Conversation()
    for number in (1, 2):
        chat.append({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}})
        chat.append({"role": "function", "name": "f", "content": f"result {number}"})
    calls = [call.id for message in chat for call in message.tool_calls]
    answered = [part.call_id for message in chat for part in message.parts if isinstance(part, ToolResult)]
    assert calls == answered
    assert len(set(calls)) == 2
    whole = Conversation(messages=chat.to_openai())
    assert [call.id for message in whole for call in message.tool_calls] == calls
