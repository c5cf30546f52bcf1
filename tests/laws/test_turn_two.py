"""The law of the second turn: whatever people do to a conversation, each question is answered.

Nobody takes care here: messages are taken out and rewritten by hand, tools and system prompts change, other accounts
ask, efforts change. Where planning can know, the first request is taken. Where it cannot, a refused one is repaired,
and the next question needs no repair. `ASIDES_TURNS=100000` runs more; `-s` shows what was repaired.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from asides.history.document import from_document, to_document
from asides.history.finish import finish_turn
from asides.providers.learned_rules import forget
from asides.values.fold import fold
from asides.values.messages import Message, user
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from tests.laws.conversations import ID_STYLES, REDACTED
from tests.laws.theatre import (
    ALL_HOUSES,
    HOME_HOUSES,
    KEY,
    SYSTEM,
    TOOLS,
    Act,
    Manner,
    Settings,
    Target,
    Theatre,
    opened,
    scene_of,
)

TURNS = int(os.environ.get("ASIDES_TURNS", "2500"))
BATCHES = 5
_CHANGES = ("nothing",) * 6 + ("prune", "trim", "fork", "rewrite", "unthink", "save", "swap")
_SYSTEMS = (SYSTEM, SYSTEM, SYSTEM, None, "You feel around.")
_TOOLS = (tuple(TOOLS), tuple(TOOLS), tuple(TOOLS), (), (TOOLS[0],), tuple(reversed(TOOLS)))
_AMOUNTS = (None, None, None, "low", "high", "auto", "off", 3000)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    forget()
    yield
    forget()


class Choices(NamedTuple):
    """What a conversation is made of."""

    targets: list[Target]
    keys: list[str]
    varies: bool
    """Whether settings change between turns."""


class Conversation:
    """One random conversation. `say` takes its next turn; raises what a person would see."""

    def __init__(self, theatre: Theatre, seed: int, heals: Counter[str]) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.theatre = theatre
        self.heals = heals
        self.history: tuple[Message, ...] = ()
        self.marks: dict[str, tuple[str, int]] = {}
        listed = HOME_HOUSES if theatre.at_home else ALL_HOUSES
        houses = self.random.sample(sorted(listed), self.random.choice([1, 1, 2, 3]))
        targets = [Target(house, self.random.randrange(1 if theatre.at_home else 3)) for house in houses]
        keys = [KEY, f"{KEY}-other"][: self.random.choice([1, 1, 2])]
        self.choices = Choices(targets, keys, self.random.random() < 0.6)
        self.number = 0

    def say(self) -> None:
        """Take one turn, and a second one right after it if the first took a repair."""
        chance = self.random
        self.history = self._continue(self._change(self.history))
        target, settings = chance.choice(self.choices.targets), self._choose_settings()
        act = self._ask(target, settings)
        if act.refusals:
            self.heals.update(_shorten(refusal) for refusal in act.refusals)
            self.history = self._continue(self.history, answered=True)
            again = self._ask(target, settings, cut=False)
            assert again.refusals == (), f"{target.house} was repaired once and refused again: {again.refusals}"

    def _ask(self, target: Target, settings: Settings, *, cut: bool = True) -> Act:
        self.number += 1
        parts, marks = self._make_reply(HOME_HOUSES[target.house].redacts)
        manner = self._choose_manner() if cut else Manner()
        act = self.theatre.ask(target, self.history, scene_of(parts, self.random.randrange(1, 30)), manner, settings)
        foreign = [mark for mark, origin in self.marks.items() if origin != target.origin]
        assert [mark for mark in foreign for body in act.bodies if mark.encode() in body] == []
        self.marks |= dict.fromkeys(marks, target.origin)
        reply = act.reply
        if reply is not None and len(act.events) == manner.stop_after:
            reply = fold(act.events).with_call(prefix=reply.prefix, learned=reply.learned)
        if (message := finish_turn(reply)) is not None:
            self.history += (message,)
        return act

    def _choose_settings(self) -> Settings:
        chance, varies = self.random, self.choices.varies
        key = chance.choice(self.choices.keys)
        more: tuple[tuple[str, Any], ...] = (("on_conflict", "adjust"),)
        if not varies:
            # Some rows take no tools, which a first question would raise.
            return Settings(key, more=more if self.theatre.at_home else ())
        if chance.random() < 0.2:
            more += (("temperature", chance.choice([0.2, 1.0])),)
        if chance.random() < 0.1:
            more += (("max_tokens", 4000),)
        return Settings(key, chance.choice(_SYSTEMS), chance.choice(_TOOLS), chance.choice(_AMOUNTS), more)

    def _choose_manner(self) -> Manner:
        chance = self.random
        stop = chance.randrange(1, 25) if chance.random() < 0.25 else None
        cut = chance.randrange(1, 1500) if chance.random() < 0.1 else None
        return Manner(chance.random() < 0.7, chance.random() < 0.3, stop, cut)

    def _make_reply(self, redacts: bool) -> tuple[tuple[Part, ...], list[str]]:
        chance, number = self.random, self.number
        parts: list[Part] = []
        marks: list[str] = []
        for place in range(chance.randrange(4)):
            kind = chance.choice(["thought", "text", "thought", "redacted" if redacts else "text"])
            if kind == "redacted":
                seal = Seal(REDACTED, f"cmVkYWN0ZWQ{number:04d}{place:02d}")
                parts.append(Thought("", "hidden", "block", seals=(seal,)))
            elif kind == "thought":
                marks.append(f"mull-{self.seed}-{number}-{place}-mull")
                parts.append(Thought(chance.choice([marks[-1], f" {marks[-1]} é\n", f"{marks[-1]}\n\n so <b> 日 "])))
            else:
                parts.append(Text(chance.choice([f"words {number}.{place}", f" said {number} \n", "\n\n"])))
        # Some hosts know a turn by the ids of its calls, and one stage serves many conversations.
        style = f"{chance.choice(ID_STYLES)}-{self.seed}"
        for place in range(chance.choice([0, 0, 1, 1, 2, 3])):
            name = chance.choice(["look", "feel"])
            parts.append(ToolCall(style.format(number=number, place=place), name, {"at": number * 10 + place}))
        return tuple(parts), marks

    def _continue(self, history: tuple[Message, ...], *, answered: bool = False) -> tuple[Message, ...]:
        """Add results, all or some or none, and a question."""
        chance = self.random
        calls = history[-1].tool_calls if history and history[-1].role == "assistant" else ()
        results = [
            ToolResult(call.id, chance.choice(["fine", "", "{}"]), call.name, chance.random() < 0.2)
            for call in calls
            if answered or chance.random() < 0.8
        ]
        added: list[Message] = []
        if results and chance.random() < 0.5:
            added = [Message("tool", tuple(results))]
        else:
            added = [Message("tool", (result,)) for result in results]
        if not results or chance.random() < 0.5:
            added.append(user(f"question {self.number}"))
        return (*history, *added)

    def _change(self, history: tuple[Message, ...]) -> tuple[Message, ...]:
        """What a person does to a history by hand."""
        change = self.random.choice(_CHANGES)
        if not history or change == "nothing":
            return history
        place = self.random.randrange(len(history))
        message = history[place]
        match change:
            case "prune":
                return history[:place] + history[place + 1 :]
            case "trim":
                return history[place:]
            case "fork":
                return history[:place]
            case "save":
                kept = self.random.random() < 0.5
                return from_document(to_document(history, keep_thinking=kept)).messages
            case "swap":
                return (*history[:place], *history[place + 1 :], message)
            case "rewrite":
                parts = tuple(Text("rewritten") if isinstance(part, Text) else part for part in message.parts)
            case _:
                parts = tuple(part for part in message.parts if not isinstance(part, Thought))
        return (*history[:place], msgspec.structs.replace(message, parts=parts), *history[place + 1 :])


def _shorten(refusal: str) -> str:
    return refusal[:100]


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


@pytest.mark.timeout(60 + TURNS // 10)
@pytest.mark.parametrize("at_home", [False, True], ids=["named addresses", "own rows"])
@pytest.mark.parametrize("batch", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, BATCHES))])
def test_law_each_question_is_answered(batch: int, at_home: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random conversations, each question answered with at most one repair of each kind."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    heals: Counter[str] = Counter()
    turns = seed = 0
    while turns < TURNS // BATCHES:
        with opened() as theatre:
            theatre.heals, theatre.at_home = True, at_home
            if at_home:
                monkeypatch.setenv("ASIDES_STAGE", theatre.first_url)
            for _ in range(200):
                seed += 1
                chat = Conversation(theatre, 1_000_000 * batch + seed, heals)
                for _ in range(chat.random.randrange(2, 9)):
                    try:
                        chat.say()
                    except BaseException as problem:
                        problem.add_note(f"seed {1_000_000 * batch + seed}, turn {chat.number}")
                        raise
                    turns += 1
                if turns >= TURNS // BATCHES:
                    break
    _report(f"{turns} turns, {sum(heals.values())} repairs: {heals.most_common(20)}")
