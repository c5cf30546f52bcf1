"""The stage as Gemini's servers: tool loops with signatures pass, and broken rules are refused."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import msgspec
import pytest

import asides
from asides.providers.find import find_provider
from asides.providers.provider import ModelRule
from asides.values.errors import AuthError
from asides.values.messages import Message, user
from asides.values.parts import Part, ToolCall, ToolResult
from asides.values.thinking import Seal
from asides_stage import OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

Wire = dict[str, Any]

MODEL = "google:gemini-3-pro-preview"
PERSON: Wire = {"role": "user", "parts": [{"text": "go"}]}
SAID: Wire = {"role": "model", "parts": [{"text": "hm"}]}


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


def assert_refused_and_healed(
    open_stage: Stage, reply: asides.Reply, words: str = "Corrupted thought signature."
) -> None:
    """The request was turned away, and went a second time without the signature; nothing of that is silent."""
    refused, accepted = open_stage.requests[-2:]
    assert refused.problem == words
    assert accepted.problem is None
    assert reply.text == "42"
    assert "thoughts_rejected" in [notice.code for notice in reply.warnings]


def test_a_call_without_its_signature_is_refused(stage: OpenStage) -> None:
    """The stand-in is ours; a client that has none is turned away as the real servers do, and learns to send one."""
    open_stage, history = first_step(stage)
    history[1] = changed(history[1], seals=())
    # A row that does not know of the rule sends no stand-in.
    careless = msgspec.structs.replace(
        find_provider("google"), name="careless", models=(ModelRule(models="gemini-3*"),)
    )
    client = asides.Client(providers=[careless], base_url=base(open_stage), api_key="key", retries=0)
    with client:
        client.ask("careless:gemini-3-pro-preview", history)
    (refusal,) = open_stage.refusals
    assert (refusal.kind, "missing a thought_signature" in refusal.text) == ("thought_signature_missing", True)


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
    assert_refused_and_healed(open_stage, asked(open_stage, history), "Thought signature is not valid")


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


@pytest.mark.parametrize(("query", "status"), [("?key=right", 200), ("?alt=sse&key=right", 200), ("?key=wrong", 401)])
def test_the_key_may_be_in_the_query(stage: OpenStage, query: str, status: int) -> None:
    with connected(stage(Say(text="42"), key="right")) as connection:
        path = f"/v1beta/models/gemini-3-pro-preview:generateContent{query}"
        connection.request("POST", path, json.dumps({"contents": [PERSON]}).encode())
        assert Answer(connection.getresponse()).status == status


# --- signatures as other clients send them back -----------------------------------------------------------------------


def post(connection: HTTPConnection, contents: list[Wire], model: str = "gemini-3-pro-preview") -> Answer:
    path = f"/v1beta/models/{model}:generateContent"
    connection.request("POST", path, json.dumps({"contents": contents}).encode())
    return Answer(connection.getresponse())


def to_urlsafe(signature: str) -> str:
    return signature.replace("+", "-").replace("/", "_")


@pytest.mark.parametrize(
    "change",
    [
        lambda signature: signature,
        to_urlsafe,
        lambda signature: signature.rstrip("="),
        lambda signature: to_urlsafe(signature).rstrip("="),
        lambda signature: "skip_thought_signature_validator",
        lambda signature: b64encode(b"skip_thought_signature_validator").decode(),
        lambda signature: "context_engineering_is_the_way_to_go",
    ],
)
def test_a_signature_is_the_same_in_either_alphabet(stage: OpenStage, change: Callable[[str], str]) -> None:
    # Forty calls make sure that some signatures hold the characters in which the alphabets differ.
    with connected(stage(*(Say(tool_calls=(look(n),)) for n in range(40)), Say(text="42"))) as connection:
        contents = [PERSON]
        for number in range(40):
            answer = post(connection, contents)
            assert answer.status == 200, answer.body
            content = json.loads(answer.body)["candidates"][0]["content"]
            content["parts"][0]["thoughtSignature"] = change(content["parts"][0]["thoughtSignature"])
            result = {"name": "look", "response": {"output": number}, "id": f"c{number}"}
            contents += [content, {"role": "user", "parts": [{"functionResponse": result}]}]


def test_the_signature_of_a_text_may_move_to_the_text_before_it(stage: OpenStage) -> None:
    with connected(stage(Say(text="forty-two", piece=4), Say(text="Bye."))) as connection:
        content = json.loads(post(connection, [PERSON]).body)["candidates"][0]["content"]
        text, empty = content["parts"]
        assert (text, empty["text"]) == ({"text": "forty-two"}, "")
        moved = {"role": "model", "parts": [{**text, "thoughtSignature": empty["thoughtSignature"]}]}
        chunks = [{"role": "model", "parts": [{"text": piece}]} for piece in ("forty", "-two")]
        for said in ([moved], [content], [*chunks, {"role": "model", "parts": [empty]}]):
            assert post(connection, [PERSON, *said, PERSON]).status == 200
        forged = {"role": "model", "parts": [{**text, "thoughtSignature": "Zm9yZ2Vk"}]}
        assert b"Corrupted thought signature" in post(connection, [PERSON, forged, PERSON]).body


# --- order of turns ---------------------------------------------------------------------------------------------------


def call(count: int = 1) -> Wire:
    return {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": n}}} for n in range(count)]}


def response(count: int = 1) -> Wire:
    """Results, all of them equal: those beyond the calls are repetitions."""
    parts = [{"functionResponse": {"name": "look", "response": {"output": "fine"}}} for _ in range(count)]
    return {"role": "user", "parts": parts}


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([PERSON, call(2), response(2), PERSON], b""),
        ([PERSON, call(), response(), call(), response()], b""),
        ([call(), response()], b"comes immediately after a user turn"),
        ([PERSON, SAID, call(), response()], b"comes immediately after a user turn"),
        ([PERSON, call(), SAID, call(), response(2)], b"comes immediately after a user turn"),
        ([PERSON, call(), call(), response(2)], b""),
        ([SAID, call(), response()], b"comes immediately after a user turn"),
        ([PERSON, call(), response(2)], b""),
        ([PERSON, call(2), response(4)], b""),
        ([PERSON, call(), response(), response()], b""),
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
        answer = post(connection, contents, "gemini-2.5-flash")
    assert answer.status == (400 if words else 200)
    assert words in answer.body
