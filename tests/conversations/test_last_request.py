"""What a conversation sent last: `explain` compares with it, and a question that gives up its cache says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import asides
from asides.values.notices import Notice
from asides_stage import OpenStage, Say

MODEL = "anthropic:claude-opus-4-6"


ANSWERS = [Say(text="4"), Say(text="6"), Say(text="8")]


def talk(stage: OpenStage, **options: Any) -> asides.Conversation:
    url = stage(ANSWERS, rules="lenient").url
    return asides.Conversation(MODEL, base_url=url, api_key="k", system="Be brief.", **options)


def find_broken(reply: asides.Reply) -> list[Notice]:
    return [notice for notice in reply.warnings if notice.code == "cache_broken"]


def test_before_the_first_question_there_is_nothing_to_compare_with(stage: OpenStage) -> None:
    assert talk(stage).explain("2 + 2?", thinking="high").cache_break_at is None


def test_explain_compares_with_what_was_sent(stage: OpenStage) -> None:
    chat = talk(stage)
    chat.ask("2 + 2?")
    explained = chat.explain("and?")
    assert [message["role"] for message in explained.body["messages"]] == ["user", "assistant", "user"]
    assert explained.cache_break_at is None
    changed = chat.explain("and?", thinking="high").cache_break_at
    assert changed is not None
    assert (changed.reason, changed.path) == ("thinking", "thinking")
    chat.system = "Be long."
    found = chat.explain("and?")
    assert found.cache_break_at is not None
    assert (found.cache_break_at.reason, found.cache_break_at.message) == ("system", None)
    assert "The prompt cache ends at system: " in found.to_text()
    assert len(chat) == 2


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"tools": [asides.Tool("look")]}, "tools"),
        ({"thinking": "low"}, "thinking"),
        ({"model": f"{MODEL}-x"}, "model"),
    ],
)
def test_a_question_that_gives_up_the_cache_says_so(stage: OpenStage, change: dict[str, Any], path: str) -> None:
    chat = talk(stage, cache=True)
    assert find_broken(chat.ask("2 + 2?")) == []
    assert find_broken(chat.ask("3 + 3?", max_tokens=9_000)) == []
    (notice,) = find_broken(chat.ask("4 + 4?", **change))
    assert f"ends at {path}: " in notice.detail


def test_an_edited_past_is_reported(stage: OpenStage) -> None:
    chat = talk(stage, cache=True)
    chat.ask("2 + 2?")
    chat.edit(0, "2 + 3?")
    (notice,) = find_broken(chat.ask("and?"))
    assert "messages[0]" in notice.detail


def test_nobody_who_asks_for_no_cache_is_told(stage: OpenStage) -> None:
    chat = talk(stage)
    chat.ask("2 + 2?")
    assert find_broken(chat.ask("3 + 3?", thinking="low")) == []


def test_the_awaiting_twin_does_the_same(stage: OpenStage) -> None:
    async def ask() -> None:
        url = stage(ANSWERS, rules="lenient").url
        async with asides.AsyncClient() as client:
            chat = asides.AsyncConversation(MODEL, client=client, base_url=url, api_key="k", cache=True)
            await chat.ask("2 + 2?")
            assert len(find_broken(await chat.ask("3 + 3?", tools=[asides.Tool("look")]))) == 1
            assert chat.explain("and?").cache_break_at is not None

    asyncio.run(ask())
