"""Histories that are always sendable: cut off at any point, saved without words, trimmed, edited, taken elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import asides
from asides.history.document import from_document, to_document
from asides.history.finish import finish_turn
from asides.history.redact import redact
from asides.history.turns import add_missing_results
from asides.providers.provider import ReplayRule
from asides.values.fold import Fold
from asides.values.messages import Message, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides_stage.stage import OpenStage
from tests.history.strict_stages import CANARY, MODELS, Model, StageClient, StrictRules, question, script


@pytest.fixture
def client() -> Iterator[asides.Client]:
    with asides.Client(api_key="made-up-key") as client:
        yield client


# --- cut off --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("pain C3", "C10")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_pain_C3_a_reply_left_at_any_event_is_sealed_and_the_next_turn_accepted(
    client: asides.Client, stage: OpenStage, model: Model
) -> None:
    """Before the first loop, and in the middle of one: whatever had come is kept, and whoever goes on is understood."""
    talk = StageClient(client, stage(script(model)), model)
    begun = talk.answered([question()])[:3]
    for before in ((question(),), begun):
        with client.stream(model.name, list(before), **talk.options) as events:
            count = len(list(events))
        assert count > 5
        replayed = 0
        for left_at in range(count + 1):
            folding = Fold()
            with client.stream(model.name, list(before), **talk.options) as events:
                for number, event in enumerate(events):
                    if number == left_at:
                        break
                    folding.feed([event])
            turn = finish_turn(folding.reply())
            history = add_missing_results((*before, *([] if turn is None else [turn]), user("go on")))
            reply = talk.ask(history)
            assert reply.complete, left_at
            assert talk.refused() == [], left_at
            if turn is not None:
                replayed += sum(isinstance(part, Thought) and part.complete for part in turn.parts)
        assert replayed > 0, "no thought of a cut reply was ever whole"


@pytest.mark.requirement("pain C3", "C8")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_pain_C3_a_connection_lost_at_any_byte_leaves_a_history_that_is_accepted(model: Model) -> None:
    """The decoder is told of the end here, and says all that it still held."""
    house = StrictRules(model)
    before = (question(),)
    body = house.stream(before)
    for cut in range(0, len(body), 7):
        turn = finish_turn(house.reply(body[:cut]))
        history = add_missing_results((*before, *([] if turn is None else [turn]), user("go on")))
        assert house.refusal(history) is None, cut


@pytest.mark.requirement("pain C3", "S2-20")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_pain_C3_a_turn_that_ends_with_thinking_is_gone_on_with(model: Model) -> None:
    """Also a whole one: a model may stop behind a thought, and most servers refuse what it leaves."""
    house = StrictRules(model)
    history = house.conversation(1)
    for turn in (history[1], history[3]):
        thoughts = [part for part in turn.parts if isinstance(part, Thought)]
        for ends_so in (assistant(*thoughts), assistant("a", *thoughts)):
            assert house.refusal((question(), ends_so, question(1))) is None


def test_C10_what_was_cut_can_be_shown_and_is_not_sent() -> None:
    house = StrictRules(MODELS[0])
    body = house.stream((question(),))
    cut = body.index(b"number 1")
    turn = finish_turn(house.reply(body[:cut]))
    assert turn is not None
    [thought] = turn.parts
    assert isinstance(thought, Thought)
    assert (thought.text, thought.complete) == (f"{CANARY} plan ", False)
    request, planned = house.request((question(), turn, user("go on")))
    assert CANARY.encode() not in request.body
    assert ["the reply broke off inside it" in decision.why for decision in planned.decisions] == [True]


# --- saved without words --------------------------------------------------------------------------------------------


@pytest.mark.requirement("S0-09", "S0-10", "S3-28", "pain C1", "pain C8")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_S0_09_a_history_saved_without_thinking_holds_no_word_of_it_and_goes_on(model: Model) -> None:
    """After a turn, and in the middle of one that calls tools, where some models demand their thinking back."""
    house = StrictRules(model)
    history = house.conversation(2)
    assert CANARY in to_document(history, keep_thinking=True).decode()
    for end in (len(history), len(history) - 1):
        saved = to_document(history[:end])
        assert CANARY not in saved.decode()
        loaded = from_document(saved).messages
        going_on = (*loaded, question(9)) if loaded[-1].role == "assistant" else loaded
        assert CANARY.encode() not in house.request(going_on)[0].body
        further = house.answered(going_on)
        assert further[: len(loaded)] == loaded
        # And once more, now that new thoughts stand behind those that were left out.
        assert house.refusal((*from_document(to_document(further)).messages, question(10))) is None
        assert house.refusal((*further, question(10))) is None


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_S0_09_what_suffices_alone_goes_back_and_explain_says_what_does_not(model: Model) -> None:
    house = StrictRules(model)
    kept = redact((*house.conversation(1), question(1)))
    thoughts = [part for message in kept for part in message.parts if isinstance(part, Thought)]
    gone = [thought for thought in thoughts if thought.withheld]
    told = [decision.why for decision in house.request(kept)[1].decisions if decision.what == "thought"]
    assert sum("was not saved" in why for why in told) == len(gone)
    assert all(not thought.seals and not thought.text for thought in gone)
    sent = house.request(kept)[0].body
    if model.redacts:
        assert b"cipher" not in sent, "the blocks of a turn go back together or not at all"
    if house.target.dialect == "openai_responses":
        assert (gone, sent.count(b'"encrypted_content"'), sent.count(b'"summary":[]')) == ([], 4, 4)


def test_S0_09_the_signature_of_a_call_stays() -> None:
    house = StrictRules(next(model for model in MODELS if model.name.startswith("google:")))
    history = house.conversation(1)[:3]
    assert house.request(redact(history))[0].body.count(b"thoughtSignature") == 1
    assert house.refusal(redact(history)) is None


@pytest.mark.requirement("pain C1")
def test_pain_C1_a_loop_that_lost_its_thinking_is_gone_on_with_and_said() -> None:
    """A budget demands the thinking of the turn under way back: this one request goes without."""
    house = StrictRules(Model("anthropic:claude-sonnet-4-5", 2000))
    history = house.conversation(1)[:3]
    kept = redact(history)
    request, planned = house.request(kept)
    assert "thinking_paused" in [notice.code for notice in planned.notices]
    assert house.refusal(kept) is None
    assert b'"enabled"' not in request.body
    # Results beside the next question are still the last ones: the provider looks at "the lastmost set" of them.
    assert b'"enabled"' not in house.request((*kept, user("and now?")))[0].body
    assert b'"enabled"' in house.request((*kept, assistant("42"), user("and now?")))[0].body


def test_pain_C2_seals_behind_a_past_that_lost_its_words_do_not_go_where_they_hold_to_it() -> None:
    """One turn is shown and one is hidden: what is hidden was signed behind what was shown."""
    house = StrictRules(Model("anthropic:claude-opus-5-5", "low"))
    hidden: dict[str, Any] = {"thinking": asides.Thinking(effort="low", show="none")}
    history = house.answered((*house.conversation(1), question(1)), **hidden)
    assert house.refusal((*history, question(2))) is None
    kept = redact(history)
    assert house.refusal((*kept, question(2))) is None
    naive = tuple(
        msgspec.structs.replace(now, parts=before.parts) if place >= 5 else now
        for place, (now, before) in enumerate(zip(kept, history, strict=True))
    )
    assert house.refusal((*naive, question(2))) is None, "the plan sees it, whoever put the history together"


@pytest.mark.requirement("S0-09")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_S0_09_a_history_redacted_message_by_message_goes_on_with_whole_turns(model: Model) -> None:
    """As a store does it; with an open tool turn and with a closed one."""
    house = StrictRules(model)
    history = house.conversation(2)
    hidden = [part for message in history for part in message.parts if isinstance(part, Thought) and not part.text]
    for end in (len(history), len(history) - 1):
        stored = tuple(redact((message,))[0] for message in history[:end])
        going_on = (*stored, question(9)) if stored[-1].role == "assistant" else stored
        assert house.refusal(going_on) is None
        sent = house.request(going_on)[0].body
        assert CANARY.encode() not in sent
        assert not (hidden and model.redacts) or b"cipher" not in sent
        assert house.refusal((*house.answered(going_on), question(10))) is None


# --- calls and results ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("H10")
def test_H10_every_call_gets_its_result_behind_its_turn_and_once() -> None:
    calls = Message("assistant", (Text("a"), ToolCall("c1", "f"), ToolCall("c2", "g"), ToolCall("c3", "f")))
    result = Message("tool", (ToolResult("c2", "42", "g"),))
    history = (user("1"), calls, result, user("2"))
    mended = add_missing_results(history)
    assert [message.role for message in mended] == ["user", "assistant", "tool", "tool", "tool", "user"]
    results = [part for message in mended for part in message.parts if isinstance(part, ToolResult)]
    assert [(part.call_id, part.name, part.is_error) for part in results] == [
        ("c2", "g", False),
        ("c1", "f", True),
        ("c3", "f", True),
    ]
    assert add_missing_results(mended) == mended
    assert add_missing_results((user("1"), calls))[2:] == add_missing_results((user("1"), calls, user("2")))[2:-1]
    house = StrictRules(MODELS[0])
    assert house.request(history)[0].body == house.request(mended)[0].body


# --- the provider's cache -------------------------------------------------------------------------------------------


def said(house: StrictRules, messages: tuple[Message, ...]) -> list[Any]:
    """The history as it stands in the request."""
    body = json.loads(house.request(messages)[0].body)
    return next(body[name] for name in ("messages", "input", "contents") if name in body)


def breaks(house: StrictRules, history: tuple[Message, ...]) -> list[int]:
    """The places of a history at which the request begins otherwise than the one before."""
    ends = [place for place in range(1, len(history) + 1) if history[place - 1].role in ("user", "tool")]
    requests = [said(house, history[:end]) for end in ends]
    pairs = zip(ends[1:], requests, requests[1:], strict=False)
    return [end for end, before, after in pairs if after[: len(before)] != before]


@pytest.mark.requirement("pain G1")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_pain_G1_a_history_that_is_only_added_to_begins_every_request_alike(model: Model) -> None:
    house = StrictRules(model)
    history = (*house.conversation(3), question(3))
    assert breaks(house, history) == []
    # Also where some of it was cut off, or saved without words.
    body = house.stream(history)
    turn = finish_turn(house.reply(body[: body.index(b"and on")]))
    assert turn is not None
    assert breaks(house, (*add_missing_results((*history, turn)), question(4))) == []
    assert breaks(house, (*redact(history[:-1]), question(3))) == []


@pytest.mark.requirement("pain G1")
def test_pain_G1_a_rule_that_takes_back_what_is_over_breaks_it_by_design() -> None:
    """`since_last_user`: thinking goes back within the turn under way only, so each question breaks it once."""
    house = StrictRules(Model("zai:glm-4.6", "high", interleaves=False), at_home=True)
    rule = ReplayRule(when="since_last_user", since="2026-11", source="made up")
    row = msgspec.structs.replace(house.target.provider, replay=(rule,))
    house.target = msgspec.structs.replace(house.target, provider=row)
    history = (*house.conversation(3), question(3))
    questions = [place + 1 for place, message in enumerate(history) if message.role == "user"]
    assert breaks(house, history) == questions[1:]


@pytest.mark.requirement("pain G1")
def test_pain_G1_what_was_answered_here_reads_as_what_is_answered_on_the_way_out() -> None:
    calls = Message("assistant", (ToolCall("call00001", "look_up", {"n": 1}),))
    for model in MODELS:
        house = StrictRules(model)
        left, mended = (question(), calls, question(1)), add_missing_results((question(), calls, question(1)))
        assert said(house, left) == said(house, mended), model


@pytest.mark.requirement("pain G1")
@pytest.mark.parametrize(
    "name",
    ["zai:glm-4.6", "zai:glm-5", "zai-coding:glm-5", "cerebras:zai-glm-4.7", "qwen:qwen3-max", "qwen:qwen3.7-max"],
)
def test_pain_G1_the_rows_of_open_weights_keep_the_beginning_of_a_request(name: str) -> None:
    house = StrictRules(Model(name, "high", interleaves=False), at_home=True)
    assert breaks(house, (*house.conversation(3), question(3))) == []
