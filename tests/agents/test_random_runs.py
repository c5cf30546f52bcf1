"""The law: whatever agents do with a conversation, it holds each message once and in order, and it is accepted.

A run, a stream and a question may end anywhere: cancelled, at a limit, with calls that nobody answers.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asides
from asides.conversations.store.sqlite import SqliteStore
from asides.values.messages import Message
from asides.values.parts import ToolCall, ToolResult
from asides.values.tools import Tool
from asides_stage.stage import Say, Stage
from tests.agents.three_tools import KEY, MODELS
from tests.conversations.both_shells import AsyncShell, SyncShell

TOOL = Tool("look", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})
SHELLS: list[Any] = [SyncShell(), AsyncShell()]


@asides.tool
def look(n: int = 0) -> str:
    """Look it up."""
    return f"found {n}"


class World:
    """One conversation, the stage that answers it, and numbers that only grow."""

    def __init__(self, stage: Stage, shell: Any, dialect: str, mode: str, folder: Path, choose: Any) -> None:
        self._numbers = count(100)
        self._choose = choose
        self._shell = shell
        self._mode = mode
        self._file = folder / "talk.json"
        self.store = SqliteStore(folder / "store.db")
        self._given: dict[str, Any] = {"base_url": stage.url, "api_key": KEY, "retries": 0}
        self._model = MODELS[dialect]
        self._is_stored = self._choose(1) == 1
        kept: dict[str, Any] = {"store": self.store, "name": "talk"} if self._is_stored else {}
        self.chat: Any = shell.kind(self._model, keep_thinking=True, tools=[TOOL], **kept, **self._given)
        agent: Any = asides.Agent if shell.kind is asides.Conversation else asides.AsyncAgent
        self._agent: Any = agent(self._model, tools=[look], mode=mode, **self._given)

    def play(self, request: Any) -> Say:
        """The model: it calls the tool, or answers with the next number."""
        number = next(self._numbers)
        in_text = not request.prompt.tools and self._mode == "react"
        calls = self._choose(2)
        if in_text:
            action = f"#{number}#\nAction: look\nAction Input: {{}}" if calls else f"Final Answer: #{number}#"
            return Say(text=f"Thought: so\n{action}", piece=4)
        made = tuple(ToolCall(f"call_{place}", "look", {"n": place}) for place in range(calls))
        return Say(text=f"#{number}#", tool_calls=made if request.prompt.tools else (), piece=4)

    def _ask_for(self) -> str:
        return f"?{next(self._numbers)}?"

    # --- what may happen ----------------------------------------------------------------------------------------------

    def ask(self) -> None:
        self._shell.ask(self.chat, self._ask_for())

    def leave_stream(self) -> None:
        self._shell.stream(self.chat, self._ask_for(), stop_after=self._choose(9))

    def answer_calls(self) -> None:
        last = self.chat.messages[-1] if len(self.chat) else None
        calls = () if last is None or last.role != "assistant" else last.tool_calls
        if calls:
            some = calls[: 1 + self._choose(len(calls) - 1)]
            self.chat.extend([Message("tool", (ToolResult(call.id, "42", call.name),)) for call in some])

    def send(self) -> None:
        self._run({}, None)

    def reach_a_limit(self) -> None:
        self._run({"limits": {"turns": 1} if self._choose(1) else {"tool_calls": 0}}, None)

    def leave_run(self) -> None:
        self._run({}, self._choose(25))

    def save_and_load(self) -> None:
        if not self._is_stored:
            self.chat.save(self._file)
            self.chat = type(self.chat).load(
                self._file, model=self._model, tools=[TOOL], keep_thinking=True, **self._given
            )
        else:
            self.chat = type(self.chat)(
                self._model, store=self.store, name="talk", tools=[TOOL], keep_thinking=True, **self._given
            )

    def _run(self, options: dict[str, Any], stop_after: int | None) -> None:
        question = self._ask_for()

        def read() -> None:
            with self._agent.stream(question, conversation=self.chat, **options) as events:
                for number, _ in enumerate(events):
                    if number == stop_after:
                        return

        async def read_async() -> None:
            async with self._agent.stream(question, conversation=self.chat, **options) as events:
                number = 0
                async for _ in events:
                    if number == stop_after:
                        return
                    number += 1

        try:
            if isinstance(self._agent, asides.Agent):
                read()
            else:
                asyncio.run(read_async())
        except asides.LimitReached:
            pass


RUNS = ("send", "reach_a_limit", "leave_run")
DOINGS = (*RUNS, "ask", "leave_stream", "answer_calls", "save_and_load")


@pytest.mark.parametrize("mode", ["native", "react"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    shell=st.sampled_from(SHELLS),
    dialect=st.sampled_from(sorted(MODELS)),
    doings=st.lists(st.sampled_from(DOINGS), max_size=8),
    seed=st.integers(0, 2**32),
)
def test_law_each_message_is_in_the_conversation_once_and_in_order(
    mode: str, shell: Any, dialect: str, doings: list[str], seed: int
) -> None:
    chance = random.Random(seed)  # not of hypothesis: the stage draws in another thread
    worlds: list[World] = []
    with TemporaryDirectory() as folder, Stage(lambda request: worlds[0].play(request)) as stage:  # noqa: PLW0108
        world = World(stage, shell, dialect, mode, Path(folder), lambda most: chance.randint(0, most))
        worlds.append(world)
        try:
            for doing in (*doings, "send", "ask"):
                before = world.chat.messages
                getattr(world, doing)()
                after = world.chat.messages
                assert after[: len(before)] == before, f"{doing} changed an earlier message"
                _check(after)
                if doing in RUNS:
                    earlier, made = _list_ids(before), _list_ids(after[len(before) :])
                    assert len({*earlier, *made}) == len(set(earlier)) + len(made), "an id was given twice"
        finally:
            world.store.close()
        assert [request.problem for request in stage.requests if request.problem is not None] == []


def _list_ids(messages: tuple[Message, ...]) -> list[str]:
    return [call.id for message in messages for call in message.tool_calls]


def _check(messages: tuple[Message, ...]) -> None:
    numbers = [
        int("".join(mark for mark in text.strip()[1:4]))
        for message in messages
        if message.role in ("user", "assistant")
        and (text := message.text.strip())[:1] in "?#"
        and len(text) > 3
        and text[1:4].isdigit()
    ]
    assert numbers == sorted(set(numbers)), f"a message is there twice, or out of order: {numbers}"
    calls = Counter(call.id for message in messages for call in message.tool_calls)
    answered: Counter[str] = Counter()
    for message in messages:
        answered.update(part.call_id for part in message.parts if isinstance(part, ToolResult))
    assert all(times <= calls[id_] for id_, times in answered.items()), "a result is there twice"
