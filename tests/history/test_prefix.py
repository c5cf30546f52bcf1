"""Thoughts whose seals are bound to their past go back only after that past."""

from __future__ import annotations

from asides.history.document import from_document, to_document
from asides.history.plan import Plan, plan
from asides.history.replay import bind_prefix
from asides.providers.find import find_target
from asides.values.messages import Message, Prompt, user
from asides.values.parts import Text
from asides.values.thinking import Origin, Seal, Thought
from asides.values.tools import Tool

TARGET = find_target("anthropic:claude-opus-5-5", environ={})
LOOK = Tool("look")


def planned(*messages: Message, system: str | None = None, tools: tuple[Tool, ...] = ()) -> Plan:
    return plan(Prompt(messages, system, tools=tools), TARGET)


def answer(text: str, before: Plan) -> Message:
    """An answer as a reply of the target makes it."""
    origin = TARGET.origin
    thought = Thought(f"about {text}", "summary", "block", origin, (Seal("signature", f"s-{text}", origin),))
    return Message("assistant", (thought, Text(text)), prefix=before.prefix)


def thoughts(plan: Plan) -> list[str]:
    return [part.text for message in plan.prompt.messages for part in message.parts if isinstance(part, Thought)]


def test_other_models_need_no_digest() -> None:
    assert plan(Prompt((user("a"),)), find_target("anthropic:claude-opus-4-5", environ={})).prefix == ""


def test_the_same_past_keeps_every_thought() -> None:
    first = answer("1", planned(user("a")))
    second = answer("2", planned(user("a"), first, user("b")))
    history = (user("a"), first, user("b"), second, user("c"))
    assert thoughts(planned(*history)) == ["about 1", "about 2"]
    saved = from_document(to_document(history, keep_thinking=True)).messages
    assert thoughts(planned(*saved)) == ["about 1", "about 2"]


def test_a_changed_past_drops_the_thought_after_it_and_those_that_followed() -> None:
    first = answer("1", planned(user("a")))
    second = answer("2", planned(user("a"), first, user("b")))
    changed = planned(user("A"), first, user("b"), second, user("c"))
    assert thoughts(changed) == []
    assert [decision.action for decision in changed.decisions] == ["drop", "drop"]
    assert thoughts(planned(user("a"), first, user("B"), second, user("c"))) == ["about 1"]
    assert thoughts(planned(user("a"), first, user("b"), second, user("c"), system="be brief")) == []
    assert thoughts(planned(user("a"), first, user("b"), second, user("c"), tools=(LOOK,))) == []


def test_a_thought_that_was_made_after_the_loss_stays() -> None:
    first = answer("1", planned(user("a")))
    third = answer("3", planned(user("A"), first, user("c")))
    longer = planned(user("A"), first, user("c"), third, user("d"))
    assert thoughts(longer) == ["about 3"]
    assert planned(user("A"), first, user("c"), third, user("d")).prefix == longer.prefix


def test_marks_of_a_cache_are_no_change() -> None:
    marked = Message("user", (Text("a", cache=True),))
    first = answer("1", planned(user("a"), tools=(LOOK,)))
    assert thoughts(planned(marked, first, user("b"), tools=(Tool("look", cache=True),))) == ["about 1"]


def test_a_turn_without_a_digest_is_left_to_the_provider() -> None:
    imported = answer("1", Plan(Prompt(())))
    assert thoughts(planned(user("whatever"), imported, user("b"))) == ["about 1"]


def test_saved_digests_stay_valid() -> None:
    origin = Origin("anthropic", "https://x", "m")
    thought = Thought("plan", "summary", "block", origin, (Seal("signature", "s", origin),), "thinking", seconds=1.5)
    prompt = Prompt((user("?"), Message("assistant", (thought, Text("42", cache=True)))))
    assert bind_prefix(prompt)[1] == "217a95e3d33e2e81c0a91cd2"
