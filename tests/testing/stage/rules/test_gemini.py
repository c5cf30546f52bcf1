"""The stage as Gemini's servers: tool loops with signatures pass, and broken rules are refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

import asides
from asides.providers.find import find_provider
from asides.providers.provider import ModelRule
from asides.testing import OpenStage, Say, Stage
from asides.values.errors import AuthError, ReplayRejected
from asides.values.messages import Message, Part, ToolCall, ToolResult, user
from asides.values.thinking import Seal
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

MODEL = "google:gemini-3-pro-preview"


def base(open_stage: Stage) -> str:
    return open_stage.url.removesuffix("/v1") + "/v1beta"


def asked(open_stage: Stage, history: list[Message], model: str = MODEL, **options: Any) -> asides.Reply:
    return asides.ask(model, history, base_url=base(open_stage), api_key="key", retries=0, **options)


def look(number: int) -> ToolCall:
    return ToolCall(f"c{number}", "look", {"at": number})


def answers(reply: asides.Reply) -> list[Message]:
    message = reply.to_message()
    assert message is not None
    return [message, *(Message("tool", (ToolResult(call.id, "fine"),)) for call in reply.tool_calls)]


def changed(message: Message, **fields: Any) -> Message:
    """The message with its calls changed."""
    parts: list[Part] = [
        msgspec.structs.replace(part, **fields) if isinstance(part, ToolCall) else part for part in message.parts
    ]
    return msgspec.structs.replace(message, parts=tuple(parts))


@pytest.mark.parametrize("streams", [True, False])
def test_a_loop_of_three_steps_with_thinking_between_them(stage: OpenStage, streams: bool) -> None:
    open_stage = stage(
        Say(thinking="first", tool_calls=(look(1), look(2))),
        Say(thinking="second", text="One more.", tool_calls=(look(3),)),
        Say(thinking="third", tool_calls=(look(4),)),
        Say(thinking="done", text="Fine."),
        Say(text="Bye."),
    )
    history = [user("look around")]
    reply = asides.Reply()
    for _ in range(4):
        if streams:
            with asides.stream(MODEL, history, base_url=base(open_stage), api_key="key", thinking="low") as events:
                reply = events.reply
        else:
            reply = asked(open_stage, history, thinking="low")
        assert len(reply.seals) == 1
        history += answers(reply)
    assert reply.text == "Fine."
    assert asked(open_stage, [*history, user("bye")]).text == "Bye."
    assert [received.problem for received in open_stage.requests] == [None] * 5


def first_step(stage: OpenStage, model: str = MODEL) -> tuple[Stage, list[Message]]:
    open_stage = stage(Say(thinking="plan", tool_calls=(look(1),)), Say(text="42"))
    return open_stage, [user("look"), *answers(asked(open_stage, [user("look")], model))]


def assert_refused_and_healed(open_stage: Stage, reply: asides.Reply) -> None:
    """The request was turned away, and went a second time without the signature; nothing of that is silent."""
    refused, accepted = open_stage.requests[-2:]
    assert refused.problem is not None
    assert refused.problem.startswith("Corrupted thought signature")
    assert accepted.problem is None
    assert reply.text == "42"
    assert "thoughts_rejected" in [notice.code for notice in reply.warnings]


def test_a_call_without_its_signature_is_refused(stage: OpenStage) -> None:
    """The stand-in is ours; a client that has none is turned away as the real servers do."""
    open_stage, history = first_step(stage)
    history[1] = changed(history[1], seals=())
    # A row that does not know of the rule sends no stand-in.
    careless = msgspec.structs.replace(
        find_provider("google"), name="careless", models=(ModelRule(models="gemini-3*"),)
    )
    client = asides.Client(providers=[careless], base_url=base(open_stage), api_key="key", retries=0)
    with client, pytest.raises(ReplayRejected, match="missing a thought_signature"):
        client.ask("careless:gemini-3-pro-preview", history)


def test_a_call_from_elsewhere_passes_with_the_stand_in(stage: OpenStage) -> None:
    open_stage, history = first_step(stage)
    history[1] = changed(history[1], seals=())
    reply = asked(open_stage, history)
    assert reply.text == "42"
    assert "signature_stand_in" in [notice.code for notice in reply.warnings]


@pytest.mark.parametrize("model", [MODEL, "google:gemini-2.5-flash"])
def test_one_byte_of_a_signature_changed_is_refused(stage: OpenStage, model: str) -> None:
    open_stage, history = first_step(stage, model)
    seal = history[1].tool_calls[0].seals[0]
    wrong = Seal(seal.kind, ("A" if seal.value[0] != "A" else "B") + seal.value[1:], seal.origin)
    history[1] = changed(history[1], seals=(wrong,))
    assert_refused_and_healed(open_stage, asked(open_stage, history, model))


def test_a_signature_under_another_call_is_refused(stage: OpenStage) -> None:
    open_stage, history = first_step(stage)
    history[1] = changed(history[1], arguments={"at": 99})
    assert_refused_and_healed(open_stage, asked(open_stage, history))


def test_a_signature_from_the_script_is_accepted(stage: OpenStage) -> None:
    signed = msgspec.structs.replace(look(1), seals=(Seal("thought_signature", "bXkgb3du"),))
    open_stage = stage(Say(tool_calls=(signed,)), Say(text="42"))
    reply = asked(open_stage, [user("look")])
    assert [seal.value for seal in reply.seals] == ["bXkgb3du"]
    assert asked(open_stage, [user("look"), *answers(reply)]).text == "42"


def test_the_key_is_in_the_header_of_the_dialect(stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"), key="right")
    assert asides.ask(MODEL, "?", base_url=base(open_stage), api_key="right").text == "42"
    with pytest.raises(AuthError):
        asides.ask(MODEL, "?", base_url=base(open_stage), api_key="wrong", retries=0)


# --- order of turns ---------------------------------------------------------------------------------------------------

PERSON: Wire = {"role": "user", "parts": [{"text": "go"}]}
SAID: Wire = {"role": "model", "parts": [{"text": "hm"}]}


def call(count: int = 1) -> Wire:
    return {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": n}}} for n in range(count)]}


def response(count: int = 1) -> Wire:
    parts = [{"functionResponse": {"name": "look", "response": {"output": "fine"}}} for _ in range(count)]
    return {"role": "user", "parts": parts}


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([PERSON, call(2), response(2), PERSON], b""),
        ([PERSON, call(), response(), call(), response()], b""),
        ([call(), response()], b"comes immediately after a user turn"),
        ([PERSON, SAID, call(), response()], b"comes immediately after a user turn"),
        ([PERSON, response()], b"immediately after a function call turn"),
        ([PERSON, call(2), response(1)], b"number of function response parts"),
        ([PERSON, call(2), response(1), response(1)], b"number of function response parts"),
        ([PERSON, call(), PERSON], b"number of function response parts"),
    ],
)
def test_calls_follow_a_user_turn_and_get_their_results_at_once(
    stage: OpenStage, contents: list[Wire], words: bytes
) -> None:
    with connected(stage(Say(text="42"))) as connection:
        path = "/v1beta/models/gemini-2.5-flash:generateContent"
        connection.request("POST", path, json.dumps({"contents": contents}).encode())
        answer = Answer(connection.getresponse())
    assert answer.status == (400 if words else 200)
    assert words in answer.body
