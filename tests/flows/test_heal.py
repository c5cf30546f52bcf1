"""Stored parents, summaries and context: repairs of what the provider keeps, over the stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import asides
from asides.providers.learned_rules import forget
from asides.testing.stage import Fail, OpenStage, Say
from asides.values.errors import BadRequest, ContextTooLong
from asides.values.messages import Message, StoredResponse, assistant, user
from asides.values.thinking import Origin, Seal, Thought

MODEL = "openai-responses:gpt-5"
PARENT = "Previous response with id 'resp_gone' not found."
TOO_LONG = "Your input exceeds the context window of this model."


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    forget()


def ask(stage: Any, prompt: Any = "What is 2 + 3?", **options: Any) -> asides.Reply:
    given: dict[str, Any] = {"api_key": "sk-heal-123456", **options}
    return asides.ask(MODEL, prompt, base_url=stage.url, **given)


def codes(reply: asides.Reply) -> list[str]:
    return [notice.code for notice in reply.warnings if notice.code != "foreign_address"]


def stored(words: str, reply_id: str = "resp_gone") -> Message:
    return Message("assistant", assistant(words).parts, stored=StoredResponse(reply_id))


@pytest.mark.requirement("pain A5")
def test_pain_A5_a_refused_summary_is_left_out_once_and_remembered(stage: OpenStage) -> None:
    served = stage()
    first = ask(served, thinking="high", api_key="sk-unverified-1")
    assert first.text == "2 + 3 = 5"
    assert codes(first) == ["summary_refused"]
    assert first.thinking
    assert first.thinking.kind == "hidden"
    assert ["summary" in request.json["reasoning"] for request in served.requests] == [True, False]
    second = ask(served, thinking="high", api_key="sk-unverified-1")
    assert codes(second) == ["summary_refused"]
    assert len(served.requests) == 3
    # Another key is another organisation.
    assert codes(ask(served, thinking="high")) == []
    assert served.requests[-1].json["reasoning"]["summary"] == "auto"


def test_a_refused_summary_is_remembered_for_a_function_while_its_keys_change(stage: OpenStage) -> None:
    served = stage()
    keys = iter([f"sk-unverified-{number}" for number in range(9)])

    def fetch() -> str:
        return next(keys)

    for _ in range(2):
        assert codes(ask(served, thinking="high", api_key=fetch)) == ["summary_refused"]
    assert ["summary" in request.json["reasoning"] for request in served.requests] == [True, False, False]


@pytest.mark.requirement("FT-19")
def test_H7_a_rejected_parent_is_one_stateless_retry(stage: OpenStage) -> None:
    served = stage()
    history = [user("What is 1 + 1?"), stored("2"), user("What is 2 + 3?")]
    reply = ask(served, history, stateful=True)
    assert reply.text == "2 + 3 = 5"
    assert codes(reply) == ["parent_rejected"]
    sent = [request.json for request in served.requests]
    assert [body.get("previous_response_id") for body in sent] == ["resp_gone", None]
    assert [len(body["input"]) for body in sent] == [1, 3]
    # And the next turn can go on from this one.
    after = [*history, reply, user("What is 2 + 4?")]
    again = ask(served, after, stateful=True)
    assert again.text == "2 + 4 = 6"
    assert served.requests[-1].json["previous_response_id"] == reply.id
    assert len(served.requests[-1].json["input"]) == 1


def test_a_rejected_parent_without_a_history_is_an_error(stage: OpenStage) -> None:
    served = stage()
    with pytest.raises(BadRequest, match="not found"):
        ask(served, previous_response_id="resp_gone")
    assert len(served.requests) == 1


@pytest.mark.requirement("S4-REQ-004.1", "S4-ES1")
def test_a_context_too_long_with_a_parent_is_one_stateless_retry(stage: OpenStage) -> None:
    history = [user("1"), stored("2"), user("3")]
    served = stage(Fail(status=400, message=TOO_LONG, kind="context_length_exceeded"), Say(text="42"))
    reply = asides.ask(
        "xai:grok-4.3", history, base_url=served.url, endpoint="responses", conversation_id="conv_1", api_key="k-123456"
    )
    assert (reply.text, codes(reply)) == ("42", ["parent_dropped"])
    assert ["conversation" in request.json for request in served.requests] == [True, False]
    twice = stage(Fail(status=400, message=TOO_LONG, kind="context_length_exceeded"))
    with pytest.raises(ContextTooLong):
        asides.ask(
            "xai:grok-4.3", history, base_url=twice.url, endpoint="responses", conversation_id="c", api_key="k-123456"
        )
    assert len(twice.requests) == 2


@pytest.mark.requirement("pain C7")
def test_pain_C7_state_of_another_deployment_is_stripped_once(stage: OpenStage) -> None:
    one, other = stage(), stage()
    first = ask(one, thinking="high")
    # The same name and address to us, another key behind it: what a load balancer makes of two deployments.
    origin = Origin("openai", other.url, "gpt-5")
    parts = tuple(_moved(part, origin) for part in first.parts)
    reply = ask(other, [user("What is 2 + 3?"), Message("assistant", parts), user("What is 2 + 4?")], thinking="high")
    assert (reply.text, codes(reply)) == ("2 + 4 = 6", ["thoughts_rejected"])
    assert len(other.requests) == 2
    assert "2 + 3 = 5" in str(other.requests[-1].json["input"])


def _moved(part: Any, origin: Origin) -> Any:
    seals = tuple(Seal(seal.kind, seal.value, origin, seal.entry) for seal in part.seals)
    changes: dict[str, Any] = {"seals": seals}
    if isinstance(part, Thought):
        changes["origin"] = origin
    return msgspec.structs.replace(part, **changes)


def test_an_error_without_a_repair_is_raised_at_once(stage: OpenStage) -> None:
    served = stage(Fail(status=400, message="Unknown parameter: 'x'."))
    with pytest.raises(BadRequest):
        ask(served, thinking="high")
    assert len(served.requests) == 1
