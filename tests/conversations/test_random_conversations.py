"""The law: whatever is done to a conversation, and whoever is asked next, the stage refuses nothing of it.

The stage is as strict as the providers: order, pairs of calls and results, signatures and whose they are.
"""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta, ToolCallDelta
from asides.values.messages import Message
from asides.values.parts import ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool
from asides_stage.stage import Say, Stage
from tests.conversations.both_shells import KEY, MODELS, AsyncShell, SyncShell
from tests.stores import is_server, open_place

CANARY = "the canary sings"
TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})

# One of each dialect, and those who are strict in ways of their own.
WHOM: list[tuple[str, dict[str, Any]]] = [
    *MODELS.items(),
    ("openai-responses:gpt-5", {"stateful": True}),
    ("anthropic:claude-opus-5-5", {"thinking": "low"}),
    ("moonshot:kimi-k2-thinking", {}),
    ("mistral:magistral-medium-latest", {}),
    ("openrouter:anthropic/claude-sonnet-4.5", {"thinking": 2000}),
    ("openrouter:google/gemini-3-pro-preview", {"thinking": "low"}),
    ("minimax:MiniMax-M2", {}),
]


class Actor:
    """Answers anything: with thoughts, words, calls, and sometimes with several of each in turns."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._numbers = count()

    def __call__(self, request: Any) -> Say:
        number = next(self._numbers)
        calls = tuple(
            ToolCall(f"call_{number}_{place}", "look_up", {"n": place})
            for place in range(self._chance.choice((0, 0, 1, 2)) if request.prompt.tools else 0)
        )
        thinking = self._chance.choice((None, CANARY, f"{CANARY}, and more"))
        if self._interleaves(request) and thinking and self._chance.random() < 0.5:
            return Say(events=self._interleaved(number, calls), pause=0.0005)
        text = f"answer {number}" if not calls or self._chance.random() < 0.5 else ""
        return Say(thinking=thinking, text=text, tool_calls=calls, piece=6, pause=0.0005)

    def _interleaves(self, request: Any) -> bool:
        return "claude" in request.model

    def _interleaved(self, number: int, calls: tuple[ToolCall, ...]) -> tuple[Event, ...]:
        events: list[Event] = [ReplyStarted(None, f"r_{number}"), ThinkingDelta(CANARY, 0), TextDelta("first ", 1)]
        events += [ThinkingDelta(CANARY, 2), TextDelta(f"answer {number}", 3)]
        for place, call in enumerate(calls, 4):
            events += [ToolCallDelta(place, call.id, call.name), ToolCallDelta(place, arguments='{"n": 1}')]
        return (*events, ReplyEnded(StopReason("tool_calls" if calls else "stop")))


class RandomConversation:
    """A conversation that is changed at random."""

    def __init__(self, chance: random.Random, stage: Stage, folder: Path, place: str) -> None:
        self._chance = chance
        self._whom = chance.choice(WHOM)
        self.done: list[str] = []
        """What was done, for whoever has to find out why it failed."""
        self._stage = stage
        self._file = folder / "talk.json"
        self._store = open_place(place)
        self._numbers = count()
        self.shell: Any = SyncShell() if chance.random() < 0.5 else AsyncShell()
        self.given: dict[str, Any] = {"base_url": stage.url, "api_key": KEY, "retries": 0, "tools": [TOOL]}
        kept = self._chance.random() < 0.5
        self.chat: Any = self.shell.kind(
            keep_thinking=self._chance.random() < 0.5,
            store=self._store if kept else None,
            name="talk" if kept else None,
            **self.given,
        )

    def close(self) -> None:
        self._store.close()

    def step(self) -> None:
        """Do one thing to it."""
        doings = [self.ask, self.ask, self.leave, self.leave]
        if len(self.chat):
            doings += [self.edit, self.truncate, self.fork, self.save, self.trim, self.reopen]
        doing = self._chance.choice(doings)
        self.done.append(doing.__name__)
        doing()

    def whom(self) -> dict[str, Any]:
        """The model to ask, and its options."""
        # Often the same model again: providers have rules for their own turns.
        if self._chance.random() < 0.4:
            self._whom = self._chance.choice(WHOM)
        model, options = self._whom
        self.done.append(model)
        return {"model": model, **options}

    def _question(self) -> Any:
        last = self.chat.messages[-1] if len(self.chat) else None
        calls = () if last is None or last.role != "assistant" else last.tool_calls
        if calls and self._chance.random() < 0.5:
            # All of the results, or some of them.
            some = calls[: self._chance.randint(1, len(calls))]
            return [Message("tool", tuple(ToolResult(call.id, "42", call.name) for call in some))]
        return f"question {next(self._numbers)}"

    def ask(self) -> None:
        self.shell.ask(self.chat, self._question(), **self.whom())

    def leave(self) -> None:
        self.shell.stream(self.chat, self._question(), stop_after=self._chance.randint(0, 9), **self.whom())

    def edit(self) -> None:
        spoken = [place for place, message in enumerate(self.chat) if message.role == "user"]
        if spoken:
            self.chat.edit(self._chance.choice(spoken), f"question {next(self._numbers)}, in other words")

    def truncate(self) -> None:
        self.chat.truncate(self._chance.randint(0, len(self.chat)))

    def fork(self) -> None:
        self.chat = self.chat.fork(self._chance.randint(0, len(self.chat)))

    def save(self) -> None:
        self.chat.save(self._file)
        self.chat = self.shell.kind.load(self._file, **self.given)

    def reopen(self) -> None:
        if self.chat.name is not None:
            self.chat = self.shell.kind(store=self._store, name="talk", **self.given)

    def trim(self) -> None:
        kept = self._chance.randint(1, len(self.chat))
        self.chat.trim_to(kept, count=len)


@pytest.mark.parametrize("seed", range(20))
def test_law_whatever_is_done_to_a_conversation_it_is_accepted(seed: int, store_place: str) -> None:
    """Seeds and not hypothesis: where a stream is when it is left is a matter of time, too."""
    chance = random.Random(f"{seed} {is_server(store_place)}")
    with Stage(Actor(seed)) as stage, TemporaryDirectory() as folder:
        talk = RandomConversation(chance, stage, Path(folder), store_place)
        try:
            for _ in range(chance.randint(4, 14)):
                talk.step()
            # It ends with an answer, whoever gives it.
            talk.shell.ask(talk.chat, "and now?", **talk.whom())
        finally:
            talk.close()
        refused = [request.problem for request in stage.requests if request.problem is not None]
        assert refused == [], talk.done
        for message in talk.chat:
            assert CANARY not in message.text
            thoughts = [part for part in message.parts if isinstance(part, Thought)]
            assert all(CANARY not in repr(thought) for thought in thoughts)
        assert CANARY not in str(talk.chat.to_openai()) + str(talk.chat.to_anthropic()) + str(talk.chat.to_responses())
