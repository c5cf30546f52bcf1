"""Decode messages as the provider and its clones really send them."""

from __future__ import annotations

from typing import Any

import pytest

from asides.values import errors
from asides.values.events import TextDelta, ThinkingDelta
from asides.values.parts import ServerTool, Text, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from tests.decoding import decoded, events_of, sse, target
from tests.dialects.anthropic.messages import (
    begin,
    call,
    claude,
    delta,
    end,
    read,
    start,
    stop,
    stream,
    text,
    thinking,
    whole,
)


def seals(reply: Reply) -> list[tuple[str, str]]:
    return [(seal.kind, seal.value) for seal in reply.seals]


def test_blocks_that_overlap_are_two_blocks() -> None:
    """llama.cpp begins the answer before it ends the thought, and signs with nothing."""
    body = sse(
        start(),
        begin(0, type="thinking", thinking=""),
        delta(0, type="thinking_delta", thinking="a plan"),
        begin(1, type="text", text=""),
        delta(1, type="text_delta", text="42"),
        delta(0, type="signature_delta", signature=""),
        stop(0),
        stop(1),
        *end(),
        done=False,
    )
    reply = read(body)
    assert [type(part) for part in reply.parts] == [Thought, Text]
    assert (reply.text, reply.thinking.text if reply.thinking else None, reply.seals) == ("42", "a plan", ())


def test_a_signature_that_sits_in_the_beginning_counts() -> None:
    body = stream([begin(0, type="thinking", thinking="plan", signature="early"), stop(0)], text(1, "42"))
    assert seals(read(body)) == [("signature", "early")]


def test_an_empty_signature_does_not_take_back_an_earlier_one() -> None:
    block = [
        begin(0, type="thinking", thinking="plan", signature="early"),
        delta(0, type="signature_delta", signature=""),
    ]
    assert seals(read(stream([*block, stop(0)], text(1, "42")))) == [("signature", "early")]


def test_a_second_signature_replaces_the_first() -> None:
    block = thinking(0, "plan", signature="first", ends=False)
    body = stream([*block, delta(0, type="signature_delta", signature="second"), stop(0)])
    assert seals(read(body)) == [("signature", "second")]


def test_the_same_message_begun_twice_is_one_message() -> None:
    body = sse(start(), start(), *text(0, "42"), *end(), done=False)
    reply = read(body)
    assert (reply.text, reply.id, [notice.code for notice in reply.warnings]) == ("42", "msg_1", ["repeated_start"])


def test_another_message_spliced_in_is_a_broken_stream() -> None:
    """A go-between lost its upstream and began anew: two halves are no reply, and would brick the next turn."""
    body = sse(start(), *thinking(0, "plan", ends=False), start(id="msg_2"), *thinking(0, "other"), *end(), done=False)
    with pytest.raises(errors.ConnectionLost) as caught:
        read(body)
    partial = caught.value.partial
    assert partial is not None
    assert (partial.id, partial.complete, len(partial.parts)) == ("msg_1", False, 1)
    assert partial.thinking
    assert partial.thinking.text == "plan"


def test_events_after_the_end_are_not_the_reply() -> None:
    body = stream(text(0, "42")) + sse(start(id="msg_2"), done=False)
    reply = read(body)
    assert (reply.text, [notice.code for notice in reply.warnings]) == ("42", ["second_message"])


def test_calls_that_are_there_from_the_start_come_before_the_rest() -> None:
    filled = {"type": "tool_use", "id": "toolu_1", "name": "roll", "input": {"player": 1}}
    body = sse(start(content=[filled]), *text(0, "and then"), *end("tool_use"), done=False)
    reply = read(body)
    assert [(part.name, part.arguments) for part in reply.tool_calls] == [("roll", {"player": 1})]
    assert reply.text == "and then"
    assert type(reply.parts[-1]) is Text


def test_a_delta_without_its_beginning_opens_the_block_that_it_belongs_to() -> None:
    body = sse(
        start(),
        delta(0, type="thinking_delta", thinking="plan"),
        delta(1, type="text_delta", text="42"),
        *end(),
        done=False,
    )
    reply = read(body)
    assert (reply.text, reply.thinking.text if reply.thinking else None) == ("42", "plan")


def test_thinking_in_a_block_that_began_as_text_is_thinking() -> None:
    block = [begin(0, type="text", text=""), delta(0, type="thinking_delta", thinking="plan"), stop(0)]
    reply = read(stream(block, text(1, "42")))
    assert (reply.text, reply.thinking.text if reply.thinking else None) == ("42", "plan")


def test_citations_stay_with_their_text() -> None:
    cited = {"type": "web_search_result_location", "url": "https://x", "encrypted_index": "Eo8="}
    block = text(0, "It rains.")
    streamed = read(stream([*block[:-1], delta(0, type="citations_delta", citation=cited), block[-1]]))
    at_once = read(whole({"type": "text", "text": "It rains.", "citations": [cited]}))
    assert streamed == at_once
    part = streamed.parts[0]
    assert isinstance(part, Text)
    assert [(seal.kind, seal.value) for seal in part.seals] == [("citations", "")]
    assert part.seals[0].entry == ('[{"type":"web_search_result_location","url":"https://x","encrypted_index":"Eo8="}]')
    assert streamed.seals == ()


def test_tools_that_the_provider_ran_are_stored_unchanged() -> None:
    used = begin(0, type="server_tool_use", id="srv_1", name="web_search", input={})
    pieces = [delta(0, type="input_json_delta", partial_json=piece) for piece in ("", '{"query"', ':"é"}')]
    found = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    result = begin(1, type="web_search_tool_result", tool_use_id="srv_1", content=found)
    reply = read(stream([used, *pieces, stop(0)], [result, stop(1)], reason="pause_turn"))
    assert reply.tool_calls == ()
    assert [(part.name, part.id, part.status) for part in reply.parts if isinstance(part, ServerTool)] == [
        ("server_tool_use", "srv_1", None),
        ("web_search_tool_result", "srv_1", "failed"),
    ]
    first = reply.parts[0]
    assert isinstance(first, ServerTool)
    assert first.json == '{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"é"}}'
    assert reply.stop.reason == "pause"


def test_a_compaction_grows_by_its_deltas() -> None:
    block = [begin(0, type="compaction", content=None), delta(0, type="compaction_delta", content="so far"), stop(0)]
    part = read(stream(block, reason="compaction")).parts[0]
    assert isinstance(part, ServerTool)
    assert part.json == '{"type":"compaction","content":"so far"}'


def test_an_unknown_block_is_stored_unchanged_with_a_warning() -> None:
    reply = read(stream([begin(0, type="hologram", of={"x": 1}), stop(0)], text(1, "42")))
    part = reply.parts[0]
    assert isinstance(part, UnknownPart)
    assert part.json == '{"type":"hologram","of":{"x":1}}'
    assert [notice.code for notice in reply.warnings] == ["unknown_part"]


def test_unknown_events_and_deltas_give_one_warning_each() -> None:
    strange = [{"type": "weather_report"}, {"type": "weather_report"}, {"type": "ping"}]
    body = sse(start(), *strange, *text(0, "42")[:-1], delta(0, type="smell_delta", smell="tar"), *end(), done=False)
    reply = read(body)
    assert (reply.text, [notice.code for notice in reply.warnings]) == ("42", ["unknown_event", "unknown_delta"])


def test_a_field_of_a_wrong_type_is_left_out_with_a_warning() -> None:
    reply = read(whole({"type": "text", "text": "42"}, stop_reason=["end_turn"], model=7))
    assert reply.text == "42"
    assert reply.model == "claude-sonnet-4-5"
    assert sorted(notice.detail.split()[0] for notice in reply.warnings) == ["model", "stop_reason"]


@pytest.mark.parametrize("content", ["plain words", None, 7])
def test_content_of_another_shape_is_read_as_far_as_it_goes(content: Any) -> None:
    reply = read(whole(content=content))
    assert reply.text == (content if isinstance(content, str) else "")


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, errors.Overloaded, 529),
        ({"type": "rate_limit_error", "message": "slow down"}, errors.RateLimited, 429),
        ({"type": "api_error", "message": "Internal server error"}, errors.Overloaded, 500),
        ({"type": "invalid_request_error", "message": "no"}, errors.BadRequest, 400),
    ],
)
def test_an_error_in_the_stream_has_the_partial_reply(error: Any, kind: type[Exception], status: int) -> None:
    body = sse(start(), *text(0, "4"), {"type": "error", "error": error}, *text(1, "2"), *end(), done=False)
    with pytest.raises(kind) as caught:
        read(body)
    assert isinstance(caught.value, errors.ProviderError)
    assert caught.value.status == status
    assert caught.value.partial is not None
    assert caught.value.partial.text == "4"


def test_an_exception_in_an_aws_frame_is_an_error_too() -> None:
    body = sse(start(), {"error": {"message": "Too many", "code": "throttlingException"}}, done=False)
    with pytest.raises(errors.RateLimited):
        read(body)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b'{"type":"error","error":{"type":"authentication_error","message":"bad key"}}', errors.AuthError),
        (403, b'{"message":"You have no access."}', errors.AuthError),
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', errors.Overloaded),
        (413, b"<html>", errors.BadRequest),
        (
            400,
            (
                b'{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid '
                b'`signature` in `thinking` block"},"request_id":"req_1"}'
            ),
            errors.ReplayRejected,
        ),
        (
            400,
            (
                b'{"type":"error","error":{"type":"invalid_request_error","message":"`thinking` or `redacted_thinking` '
                b'blocks in the latest assistant message cannot be modified."}}'
            ),
            errors.ReplayRejected,
        ),
        (
            400,
            b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 5 > 4"}}',
            errors.ContextTooLong,
        ),
    ],
)
def test_an_error_body_is_the_error_that_it_says(status: int, body: bytes, kind: type[Exception]) -> None:
    from asides.dialects import find_dialect

    error = find_dialect("anthropic").error(status, {"request-id": "req_1"}, body, claude())
    assert type(error) is kind
    assert error.request_id == "req_1"


@pytest.mark.parametrize("cut", [0, 1, 2, 3, 4, 5, 6])
def test_a_stream_without_its_end_is_lost(cut: int) -> None:
    documents = [start(), *thinking(0, "plan"), *text(1, "42")]
    with pytest.raises(errors.ConnectionLost):
        read(sse(*documents[:cut], done=False) if cut else b"")


def test_a_stop_reason_without_the_last_event_is_an_end() -> None:
    body = sse(start(), *text(0, "42"), end()[0], done=False)
    assert read(body).stop.raw == "end_turn"


@pytest.mark.parametrize(
    ("raw", "reason", "outcome"),
    [
        ("end_turn", "stop", "answered"),
        ("stop_sequence", "stop", "answered"),
        ("max_tokens", "length", "answered"),
        ("model_context_window_exceeded", "length", "answered"),
        ("pause_turn", "pause", "answered"),
        ("refusal", "refusal", "refused"),
        ("brand_new", "unknown", "answered"),
    ],
)
def test_stop_reasons(raw: str, reason: str, outcome: str) -> None:
    reply = read(stream(text(0, "42"), reason=raw))
    assert (reply.stop.reason, reply.stop.raw, reply.outcome) == (reason, raw, outcome)


def test_a_refusal_has_the_text_of_its_details() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
    body = sse(start(), *text(0, "I "), *end("refusal", stop_details=details), done=False)
    reply = read(body)
    assert (reply.outcome, reply.refusal, reply.text) == ("refused", "Not this.", "I ")
    assert read(whole({"type": "text", "text": "I "}, reason="refusal", stop_details=details)).refusal == "Not this."


def test_a_thought_cut_by_the_limit_is_not_complete() -> None:
    reply = read(stream(thinking(0, "half a pl", signature=None), reason="max_tokens"))
    assert (reply.outcome, [part.complete for part in reply.parts if isinstance(part, Thought)]) == ("starved", [False])


def test_thinking_in_tags_of_an_older_model_is_separated() -> None:
    aloud = "<thinking>\nWhich tool?\n</thinking>\n\nI will look."
    block = [begin(0, type="text", text=""), delta(0, type="text_delta", text=aloud), stop(0)]
    for body in (stream(block, call(1, "toolu_1", "look")), whole({"type": "text", "text": aloud})):
        reply = read(body, "claude-3-opus-20240229")
        assert reply.text == "I will look."
        assert reply.thinking
        assert (reply.thinking.text.strip(), reply.thinking.source) == ("Which tool?", "tags")
    assert read(whole({"type": "text", "text": aloud})).text == aloud, "newer ones mean what they write"


def test_usage_counts_the_cache_and_the_thinking_once() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
    last = {"output_tokens": 50, "output_tokens_details": {"thinking_tokens": 30}}
    reply = read(sse(start(usage=usage), *text(0, "42"), *end(usage=last), done=False))
    counts = reply.usage
    assert (counts.input, counts.cached, counts.output, counts.thinking, counts.answer, counts.total) == (
        125,
        100,
        50,
        30,
        20,
        175,
    )
    assert read(whole({"type": "text", "text": "42"}, usage={**usage, **last})).usage == counts


def test_input_that_is_corrected_at_the_end_counts_as_corrected() -> None:
    body = sse(start(), *text(0, "42"), *end(usage={"input_tokens": 99, "output_tokens": 3}), done=False)
    assert (read(body).usage.input, read(body).usage.output) == (99, 3)


def test_empty_deltas_are_no_events() -> None:
    body = stream(thinking(0, "", "plan", ""), text(1, "", "42"))
    events, _ = events_of([body], claude(), "anthropic")
    assert [event.text for event in events if isinstance(event, ThinkingDelta | TextDelta)] == ["plan", "42"]


def test_a_clone_of_another_maker_shows_raw_thinking() -> None:
    from asides.providers.find import find_provider

    row = find_provider("ollama-anthropic")
    reply = decoded(
        whole({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "4"}), target(row), "anthropic"
    )
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.seals, reply.text) == ("raw", (), "4")


def test_a_call_from_code_of_the_provider_has_its_caller() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srv_1"}
    tool = {"type": "tool_use", "id": "toolu_1", "name": "roll", "input": {"n": 1}}
    assert read(whole({**tool, "caller": caller})).tool_calls[0].seals == (
        Seal("caller", "", claude().origin, '{"type":"code_execution_20250825","tool_id":"srv_1"}'),
    )
    assert read(whole({**tool, "caller": {"type": "direct"}})).tool_calls[0].seals == ()
