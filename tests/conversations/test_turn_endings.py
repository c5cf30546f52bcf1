"""One task at a time, and every end of a turn: left early, garbage-collected, closed, Ctrl-C, cancelled."""

from __future__ import annotations

import asyncio
import threading

import pytest

import asides
from asides.conversations.async_ import AsyncConversation
from asides.conversations.sync import Conversation
from asides.conversations.turn import Turn
from asides.values.errors import ConfigError
from asides_stage.stage import Hang, OpenStage, Say
from tests.conversations.both_shells import PLAIN, dialogue, options


def test_a_second_question_meanwhile_is_refused_and_changes_nothing(stage: OpenStage) -> None:
    theatre = stage(Say(text="First.", delay=0.3))
    chat = Conversation(PLAIN, **options(PLAIN, theatre))
    other = threading.Thread(target=chat.ask, args=("one",))
    other.start()
    assert theatre.wait_until(lambda: len(theatre.requests) == 1)
    for change in (lambda: chat.ask("two"), lambda: chat.append("two"), lambda: chat.truncate(0), chat.refresh):
        with pytest.raises(ConfigError, match="in use"):
            change()
    other.join()
    assert dialogue(chat.messages) == [("user", "one"), ("assistant", "First.")]
    chat.append("two")


async def test_a_second_question_of_another_task_is_refused(stage: OpenStage) -> None:
    theatre = stage(Say(text="First.", delay=0.2))
    chat = AsyncConversation(PLAIN, **options(PLAIN, theatre))
    done = await asyncio.gather(chat.ask("one"), chat.ask("two"), return_exceptions=True)
    assert isinstance(done[1], ConfigError)
    assert dialogue(chat.messages) == [("user", "one"), ("assistant", "First.")]


def test_an_open_stream_holds_the_conversation_and_one_that_was_never_read_does_not(stage: OpenStage) -> None:
    theatre = stage(Say(text="some words", piece=2))
    chat = Conversation(PLAIN, **options(PLAIN, theatre))
    unread = chat.stream("never")
    opened = chat.stream("one")
    next(opened)
    with pytest.raises(ConfigError, match="in use"):
        chat.ask("two")
    opened.close()
    opened.close()
    chat.ask("two")
    with pytest.raises(ConfigError, match="changed after"):
        next(unread)
    chat.ask("three")
    del unread
    assert [text for role, text in dialogue(chat.messages) if role == "user"][-2:] == ["two", "three"]


def test_a_stream_that_is_let_go_of_ends_its_turn(stage: OpenStage) -> None:
    theatre = stage(Say(text="some words", piece=2), Say(text="Good."))
    chat = Conversation(PLAIN, **options(PLAIN, theatre))
    events = chat.stream("one")
    for event in events:
        if isinstance(event, asides.TextDelta):
            break
    del events
    chat.ask("two")
    assert [role for role, _ in dialogue(chat.messages)] == ["user", "assistant", "user", "assistant"]


def test_ctrl_c_in_the_middle_keeps_what_came(stage: OpenStage) -> None:
    theatre = stage(Say(text="one two three", piece=4, pause=0.002, hang_after=600), Say(text="Good."))
    chat = Conversation(PLAIN, **options(PLAIN, theatre))

    def listen() -> None:
        with chat.stream("go") as events:
            for event in events:
                if isinstance(event, asides.TextDelta):
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        listen()
    assert dialogue(chat.messages)[0] == ("user", "go")
    assert "one two three".startswith(dialogue(chat.messages)[1][1])
    assert theatre.wait_until(lambda: theatre.closed_early == 1)
    chat.ask("on")


@pytest.mark.parametrize("place", ["begin", "end"])
def test_ctrl_c_before_or_after_the_reply_leaves_the_conversation_free(
    place: str, stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = Conversation(PLAIN, **options(PLAIN, stage(Say(text="First."), Say(text="Good."))))

    begin = Turn.begin

    def interrupt(turn: Turn, *_: object) -> None:
        if place == "begin":
            begin(turn)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Turn, place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            chat.ask("one")
    assert chat.messages == ()
    assert chat.ask("two").text


def test_closing_from_another_thread_ends_the_turn(stage: OpenStage) -> None:
    theatre = stage(Say(text="one two three", piece=4, hang_after=600), Say(text="Good."))
    chat = Conversation(PLAIN, **options(PLAIN, theatre))
    events = chat.stream("go")
    threading.Timer(0.2, events.close).start()
    for _ in events:
        pass
    assert dialogue(chat.messages)[0] == ("user", "go")
    chat.ask("on")


async def test_a_cancelled_task_keeps_what_came_of_a_stream_and_nothing_of_an_ask(stage: OpenStage) -> None:
    theatre = stage(Say(text="one two three", piece=4, hang_after=600), Hang(), Say(text="Good."))
    chat = AsyncConversation(PLAIN, **options(PLAIN, theatre))
    heard = asyncio.Event()

    async def listen() -> None:
        async with chat.stream("go") as events:
            async for event in events:
                if isinstance(event, asides.TextDelta):
                    heard.set()

    for work, is_ready in ((listen(), heard.wait), (chat.ask("hang"), lambda: asyncio.sleep(0.1))):
        task = asyncio.ensure_future(work)
        await is_ready()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [role for role, _ in dialogue(chat.messages)] == ["user", "assistant"]
    assert "one two three".startswith(dialogue(chat.messages)[1][1])
    await chat.ask("on")
    assert len(chat) == 4


async def test_who_leaves_a_stream_has_the_turn_at_once(stage: OpenStage) -> None:
    theatre = stage(Say(text="one two three", piece=4, hang_after=600), Say(text="Good."))
    chat = AsyncConversation(PLAIN, **options(PLAIN, theatre))
    async with chat.stream("go") as events:
        async for event in events:
            if isinstance(event, asides.TextDelta):
                break
    assert [role for role, _ in dialogue(chat)] == ["user", "assistant"]
    # Also without events: what is left, and what came in lists.
    async with chat.stream("go") as events:
        async for _ in events.batches():
            break
    assert len(chat) == 4
    assert (await chat.ask("on")).text == "Good."


async def test_closing_from_another_task_ends_the_turn(stage: OpenStage) -> None:
    theatre = stage(Say(text="one two three", piece=4, hang_after=600), Say(text="Good."))
    chat = AsyncConversation(PLAIN, **options(PLAIN, theatre))
    events = chat.stream("go")
    closing: list[asyncio.Future[None]] = []
    async for event in events:
        if isinstance(event, asides.TextDelta) and not closing:
            closing.append(asyncio.ensure_future(events.close()))
    await asyncio.gather(*closing)
    assert dialogue(chat)[0] == ("user", "go")
    await chat.ask("on")
