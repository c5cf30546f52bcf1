"""Provider rows of the caller: their rules about seals and details apply to histories like those of built-in rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import asides
from asides.conversations.core import ConversationCore
from asides.providers.provider import ModelRule, Provider
from asides.values.messages import Message, user
from asides.values.parts import Text
from asides.values.thinking import Origin, Seal, Thought
from asides_stage.stage import OpenStage, Say

KEY = "sk-made-up-1618"
SLOW = Say(thinking="hm", text="one two three four five six", piece=3)
BOUND = Provider(name="mine", base_url="http://127.0.0.1:9/v1", models=(ModelRule(models="*", prefix_bound=True),))


@pytest.fixture
def client(stage: OpenStage) -> Iterator[asides.Client]:
    row = asides.Provider(
        name="mine", base_url=stage(SLOW).url, key="optional", quirks=asides.Quirks(replay_as="details")
    )
    with asides.Client(providers=[row], api_key=KEY) as client:
        yield client


def thoughts(chat: ConversationCore[asides.Client]) -> list[tuple[str, bool]]:
    return [
        (part.text, part.replayable) for message in chat.messages for part in message.parts if isinstance(part, Thought)
    ]


def test_details_of_an_answer_that_was_left_do_not_go_back(client: asides.Client) -> None:
    chat = asides.Conversation("mine:m", client=client)
    with chat.stream("?") as events:
        for event in events:
            if isinstance(event, asides.TextDelta):
                break
    assert thoughts(chat) == [("hm", False)]


def test_details_of_a_run_that_was_left_do_not_go_back(client: asides.Client) -> None:
    chat = asides.Conversation(client=client)
    with asides.Agent("mine:m", client=client).stream("?", conversation=chat) as events:
        for event in events:
            if isinstance(event, asides.TextDelta):
                break
    assert thoughts(chat) == [("hm", False)]


def test_seals_behind_words_that_are_not_saved_are_worthless_where_the_row_says_so() -> None:
    origin = Origin("mine", "http://127.0.0.1:9/v1", "m")
    history = [
        user("?"),
        Message("assistant", (Thought("words", origin=origin), Text("1"))),
        user("?"),
        Message(
            "assistant", (Thought("", "hidden", origin=origin, seals=(Seal("encrypted", "x", origin),)), Text("2"))
        ),
    ]
    with asides.Client(providers=[BOUND]) as client:
        saved = asides.Conversation(client=client, messages=history).to_json()
    again = asides.Conversation.from_json(saved)
    assert thoughts(again) == [("", True), ("", False)]
    with asides.Client() as nobody:
        assert thoughts(
            asides.Conversation.from_json(asides.Conversation(client=nobody, messages=history).to_json())
        ) == [
            ("", True),
            ("", True),
        ]
