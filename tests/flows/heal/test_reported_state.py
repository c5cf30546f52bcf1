"""Servers that answer without the thinking that was sent, and say so: a notice, and a lesson for the next request."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

import asides
from asides.providers.find import find_target
from asides.providers.learned_rules import forget
from asides.values.messages import Message, user
from tests.decoding import decoded, sse, target
from tests.dialects.anthropic.messages import begin, delta, end, read, start, stop, whole
from tests.flows.heal.healing import encrypted, signed
from tests.loopback import ReceivedRequest, serving, whole_response
from tests.strict_servers import message_of

DROPPED = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
ALLOWED = {**DROPPED, "type": "thinking_mismatch_allowed", "path": "messages.3.content.0"}
EDITS = {
    "applied_edits": [{"type": "clear_thinking_20251015", "cleared_thinking_turns": 2, "cleared_input_tokens": 900}]
}
CODES = ["thought_not_read", "thought_mismatch", "history_edited"]


def anthropic_body(streams: bool) -> bytes:
    text: dict[str, Any] = {"type": "text", "text": "42"}
    if not streams:
        return whole(text, input_transformations=[DROPPED, ALLOWED], context_management=EDITS)
    ending = {**end()[0], "context_management": EDITS, "input_transformations": [DROPPED, ALLOWED]}
    return sse(
        start(input_transformations=[DROPPED]),
        begin(0, type="text", text=""),
        delta(0, type="text_delta", text="42"),
        stop(0),
        ending,
        end()[1],
        done=False,
    )


@pytest.mark.parametrize("streams", [True, False])
def test_reports_of_anthropic_are_notices(streams: bool) -> None:
    reply = read(anthropic_body(streams))
    assert [notice.code for notice in reply.warnings] == CODES
    assert "messages.1.content.0" in reply.warnings[0].detail
    assert "prefix_binding_mismatch" in reply.warnings[0].detail
    assert "2 turns with thinking, 900 input tokens" in reply.warnings[2].detail


def test_an_empty_report_is_no_notice() -> None:
    reply = read(whole({"type": "text", "text": "42"}, input_transformations=[], context_management=None))
    assert reply.warnings == ()


REMOVED = {"type": "reasoning", "action": "removed", "id": "rs_a", "reason": "model_mismatch"}


def responses_body(streams: bool) -> bytes:
    item = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "42"}]}
    response: dict[str, Any] = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [item],
        "model": "gpt-5",
    }
    response["input_transformations"] = [REMOVED]
    return sse({"type": "response.completed", "response": response}) if streams else json.dumps(response).encode()


@pytest.mark.parametrize("streams", [True, False])
def test_the_report_of_openai_is_a_notice(streams: bool) -> None:
    reply = decoded(responses_body(streams), dialect="openai_responses")
    assert [notice.code for notice in reply.warnings] == ["thought_not_read"]
    assert "rs_a" in reply.warnings[0].detail


MORE = {"input_transformations": [DROPPED, ALLOWED], "context_management": EDITS, "stop_sequence": "x"}


def test_additional_fields_of_converse_are_notices() -> None:
    fields = {"stopReason": "end_turn", "additionalModelResponseFields": MORE}
    whole_body = {"output": {"message": {"role": "assistant", "content": [{"text": "42"}]}}, **fields}
    streamed = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "42"}}},
        {"messageStop": fields},
        {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}},
    ]
    for body in (json.dumps(whole_body).encode(), sse(*streamed, done=False)):
        reply = decoded(body, target(), "bedrock")
        assert [notice.code for notice in reply.warnings] == [*CODES, "unknown_field"]


# --- the lesson -------------------------------------------------------------------------------------------------------


def ask_twice(body: bytes, model: str, history: list[Message], **options: Any) -> tuple[list[Any], list[asides.Reply]]:
    sent: list[Any] = []

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        sent.append((dict(request.headers), json.loads(request.body)))
        connection.sendall(whole_response(body))
        return True

    forget()
    with serving(answer) as server:
        first = asides.ask(model, history, base_url=server.url, api_key="k", stream=False, **options)
        after = [*history, message_of(first), user("And then?")]
        forget()  # The saved conversation knows it too.
        second = asides.ask(model, after, base_url=server.url, api_key="k", stream=False, **options)
    forget()
    return sent, [first, second]


def test_a_thought_that_was_not_read_does_not_go_back_again() -> None:
    history = [*signed(1, 2), user("Go on.")]
    sent, replies = ask_twice(
        whole({"type": "text", "text": "42"}, input_transformations=[DROPPED]), ANTHROPIC, history
    )
    assert "s1" in json.dumps(sent[0][1])
    assert "s1" not in json.dumps(sent[1][1])
    assert "s2" in json.dumps(sent[1][1])
    (learned,) = replies[0].learned
    assert (learned.kind, dict(learned.changes)) == ("thinking_prefix_mismatch", {"prefix_bound": True})


ANTHROPIC = "anthropic:claude-opus-4-6"


def test_reasoning_that_openai_removed_does_not_go_back_again() -> None:
    history = [*encrypted("a", "b"), user("Go on.")]
    sent, replies = ask_twice(responses_body(False), "openai-responses:gpt-5", history)
    assert "gAAAawXBV" in json.dumps(sent[0][1])
    assert "gAAAawXBV" not in json.dumps(sent[1][1])
    assert "gAAAbwXBV" in json.dumps(sent[1][1])
    assert replies[0].learned


def test_the_report_is_asked_for_where_thinking_goes_back() -> None:
    from asides.dialects.anthropic.encode import encode
    from asides.values.messages import Prompt

    own = find_target(ANTHROPIC, environ={})
    beta = "thinking-binding-controls-2026-08-01"
    request, _ = encode(Prompt((*signed(1), user("Go on."))), own)
    assert beta in request.headers["anthropic-beta"]
    plain, _ = encode(Prompt((user("Hello."),)), own)
    assert "anthropic-beta" not in plain.headers
    cloud = find_target("bedrock-anthropic:anthropic.claude-opus-4-6-v1", environ={"AWS_REGION": "eu-west-1"})
    invoked, _ = encode(Prompt((*signed(1), user("Go on."))), cloud)
    assert beta not in invoked.body.decode()
