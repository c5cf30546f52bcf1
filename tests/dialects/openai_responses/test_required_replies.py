"""What a Responses reply becomes: the requirements on reading it, by id. Each whole, streamed and in every chunking."""

from __future__ import annotations

import json
import timeit
from typing import Any

import pytest

import asides
from asides import dialects
from asides.providers.provider import ModelRule, Quirks
from asides.values import errors
from asides.values.events import PartArrived, TextDelta, TextReclassified, ThinkingDelta, ToolCallDelta, UsageReported
from asides.values.parts import Commentary, ServerTool, Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage
from tests.decoding import events_of, sse
from tests.responses import DIALECT, both_ways, call, events, message, read, reasoning, response, stream, target, whole

RAW_HOST = target(Quirks(raw_reasoning="shown"), ModelRule())
UNKNOWN_HOST = target(Quirks(), ModelRule())


def kinds(reply: Reply) -> list[type]:
    return [type(part) for part in reply.parts]


# --- whole ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text", "output_text"])
@pytest.mark.requirement(
    "S4-S1", "S4-S3", "S4-REQ-001.1", "S4-REQ-001.2", "S4-REQ-001.3", "S4-REQ-001.4", "FT-14", "S1-45", "S4-A2"
)
def test_D1_D2_the_example_of_the_specification(kind: str) -> None:
    body = {
        "id": "resp_1",
        "object": "response",
        "model": "o3",
        "usage": {"input_tokens": 62, "output_tokens": 23, "total_tokens": 85},
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": kind, "text": "Hello"}]},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_abc",
                "name": "get_weather",
                "arguments": '{"location":"SF"}',
            },
        ],
    }
    reply = asides.decode(DIALECT, json.dumps(body).encode())
    assert reply.text == "Hello"
    assert [(one.id, one.name, one.arguments) for one in reply.tool_calls] == [
        ("call_abc", "get_weather", {"location": "SF"})
    ]
    assert (reply.usage.input, reply.usage.output, reply.usage.total) == (62, 23, 85)
    assert reply.outcome == "tool_calls"


@pytest.mark.requirement("S1-17", "S0-61")
def test_D3_several_text_parts_stay_in_order() -> None:
    assert both_ways(message("one ", "two ", "three")).text == "one two three"


@pytest.mark.requirement("S0-46", "S0-47", "S0-48", "S0-62", "S0-72", "S0-75", "S1-15", "S1-16", "S1-34", "S0-44")
def test_D4_E5_two_summary_parts_have_a_blank_line_between_them() -> None:
    reply = both_ways(reasoning("**Plan**\n\nfirst", "then"), message("42"))
    assert reply.thinking == Thought(
        "**Plan**\n\nfirst\n\nthen", "summary", "responses_summary", reply.origin, via="summary"
    )
    assert reply.text == "42"
    assert reply.metadata["thinking"] == "**Plan**\n\nfirst\n\nthen"
    assert reply.metadata["thinking_type"] == "summary"
    assert reply.metadata["thinking_source"] == "responses_summary"


def test_D5_E13_two_reasoning_items_around_a_call_keep_their_places() -> None:
    reply = both_ways(
        reasoning("look it up", encrypted="one"),
        call(),
        reasoning("tell it", encrypted="two", id="rs_2"),
        message("42"),
    )
    assert kinds(reply) == [Thought, ToolCall, Thought, Text]
    assert [seal.value for seal in reply.seals] == ["one", "two"]
    assert reply.metadata["thinking"] == "look it up\n\ntell it"


@pytest.mark.requirement("S4-REQ-001.2")
@pytest.mark.requirement("S4-EC3")
def test_D6_messages_and_calls_stay_in_order() -> None:
    second = {**call("other"), "id": "fc_2", "call_id": "call_2"}
    reply = both_ways(message("a"), call(), message("b", id="msg_2"), second)
    assert kinds(reply) == [Text, ToolCall, Text, ToolCall]
    assert reply.text == "ab"


@pytest.mark.requirement("S4-REQ-001.3")
@pytest.mark.requirement("S4-EC2")
def test_D7_a_call_without_an_id_of_its_own_has_the_item_s() -> None:
    assert both_ways(call(call_id=None)).tool_calls[0].id == "fc_1"


@pytest.mark.requirement("S4-EC1")
def test_D8_no_output_and_usage_is_a_blank_answer_with_usage() -> None:
    reply = both_ways()
    assert (reply.text, reply.parts, reply.usage.total) == ("", (), 85)


def test_D9_unknown_items_are_kept_and_told() -> None:
    strange = {"type": "crystal_ball_call", "id": "cb_1", "vision": "fog"}
    reply = both_ways(strange, message("42"))
    assert reply.text == "42"
    assert isinstance(reply.parts[0], UnknownPart)
    assert json.loads(reply.parts[0].json) == strange
    assert [notice.code for notice in reply.warnings] == ["unknown_item"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "assistant"},
        {"type": "message", "role": "assistant", "content": []},
        {"type": "message", "role": "assistant", "content": None},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": 5}]},
        {"type": "message", "role": "assistant", "content": [None, 7]},
        {"type": "reasoning", "summary": "no list", "content": 3},
        {"type": "function_call"},
        {"type": 5},
        {},
        [],
        "text",
        None,
    ],
)
def test_D10_E16_no_shape_of_an_item_raises(item: Any) -> None:
    reply = read(whole(item, message("42")))
    assert reply.text == "42"


def test_D10_content_as_a_bare_string_is_text() -> None:
    assert read(whole({"type": "message", "role": "assistant", "content": "42"})).text == "42"


@pytest.mark.parametrize("kind", ["chat.completion", "list", "error"])
def test_D11_another_kind_of_object_breaks_the_dialect(kind: str) -> None:
    with pytest.raises(errors.ProtocolError, match="not a response") as caught:
        read(json.dumps({"object": kind, "id": "1", "choices": []}).encode())
    assert caught.value.dialect == DIALECT


@pytest.mark.requirement("S0-67", "S1-19", "S1-20", "S1-35", "FT-17", "FT-03")
def test_D12_raw_reasoning_of_a_model_that_summarises_is_nowhere() -> None:
    reply = both_ways(reasoning(raw=("secret plan",), encrypted="e"), message("42"))
    assert reply.text == "42"
    assert reply.thinking
    assert reply.thinking.kind == "hidden"
    assert "thinking" not in reply.metadata
    assert "thinking_raw" not in reply.metadata
    assert "secret" not in repr(reply.parts) + str([seal.entry for seal in reply.seals])


@pytest.mark.requirement("FT-18")
def test_D13_pain_A3_a_thought_without_words_keeps_its_state() -> None:
    reply = both_ways(reasoning(encrypted="gAAA"), message("42"))
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.text) == ("hidden", "")
    assert [(seal.kind, seal.value) for seal in reply.seals] == [("encrypted", "gAAA")]


@pytest.mark.parametrize(
    ("reason", "stop", "outcome"),
    [("max_output_tokens", "length", "starved"), ("content_filter", "content_filter", "filtered")],
)
def test_D14_E9_an_incomplete_response_says_why(reason: str, stop: str, outcome: str) -> None:
    reply = both_ways(reasoning("long"), status="incomplete", incomplete_details={"reason": reason})
    assert (reply.stop.reason, reply.stop.raw, reply.outcome) == (stop, reason, outcome)
    assert reply.thinking
    assert not reply.thinking.complete


@pytest.mark.parametrize("body", [whole, stream])
def test_D14_E15_a_failed_response_is_an_error(body: Any) -> None:
    told = {"code": "rate_limit_exceeded", "message": "slow down"}
    with pytest.raises(errors.RateLimited, match="slow down") as caught:
        read(body(message("half"), status="failed", error=told))
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


def test_D15_a_refusal_is_no_text() -> None:
    refusing = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "I would rather not."}],
    }
    reply = both_ways(refusing)
    assert (reply.text, reply.refusal, reply.outcome) == ("", "I would rather not.", "refused")


@pytest.mark.requirement("S1-46", "FT-22", "S4-REQ-001.4", "S0-63")
def test_D16_E14_usage_has_reasoning_and_cached_tokens() -> None:
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 40,
    }
    for status in ("completed", "incomplete"):
        assert both_ways(message("42"), status=status, usage=usage).usage == Usage(10, 30, 20, 4, 40)


@pytest.mark.requirement("S4-P2", "FT-33")
def test_D17_a_whole_body_takes_far_less_than_two_milliseconds() -> None:
    body = whole(reasoning("plan " * 200, encrypted="x" * 2000), message("answer " * 300), call())
    assert min(timeit.repeat(lambda: asides.decode(DIALECT, body), number=10, repeat=5)) / 10 < 0.002


# --- streamed -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-15", "S0-65", "S1-24", "S3-45", "S3-14", "S3-17")
def test_E1_E6_E11_deltas_are_told_once_and_the_item_s_state_is_attached() -> None:
    body = stream(reasoning("thinking", encrypted="done"), message("42"), size=5)
    told, failure = events_of([body], target(), DIALECT)
    assert failure is None
    assert [event.text for event in told if isinstance(event, ThinkingDelta)] == ["think", "ing"]
    reply = read(body)
    assert reply.metadata["thinking"] == "thinking"
    # The value of output_item.added is incomplete; that of output_item.done counts.
    assert [seal.value for seal in reply.seals] == ["done"]
    assert reply.parts[0].seals[0].entry is not None


@pytest.mark.requirement("S0-64", "S0-66", "S0-71", "S1-23", "S1-26", "S1-44", "S0-60")
def test_E2_E8_reasoning_text_and_calls_are_three_streams() -> None:
    body = stream(reasoning("plan"), message("Hello"), call(), size=3)
    told, _ = events_of([body], target(), DIALECT)
    order = [type(event) for event in told if isinstance(event, (ThinkingDelta, TextDelta, ToolCallDelta))]
    assert order == sorted(order, key=[ThinkingDelta, TextDelta, ToolCallDelta].index)
    assert [event.text for event in told if isinstance(event, TextDelta)] == ["Hel", "lo"]
    reply = read(body)
    assert (reply.text, reply.metadata["thinking"]) == ("Hello", "plan")
    assert [one.arguments for one in reply.tool_calls] == [{"location": "SF"}]


def test_E3_reasoning_of_blanks_is_no_thought() -> None:
    assert not both_ways(reasoning(" \n "), message("42")).thinking


def test_E4_a_delta_that_repeats_is_said_again() -> None:
    documents = events(message("aba"), size=1)
    assert [event["delta"] for event in documents if event["type"].endswith("output_text.delta")] == ["a", "b", "a"]
    assert read(sse(*documents, done=False)).text == "aba"


def test_E7_a_message_at_the_first_place_is_text() -> None:
    reply = both_ways(message("42"))
    assert (reply.text, reply.thinking.text) == ("42", "")


@pytest.mark.requirement("FT-24", "S1-35", "S0-48")
def test_E10_summary_and_raw_are_never_both_shown() -> None:
    both = (reasoning("short", raw=("long",), encrypted="e"), message("42"))
    for to in (target(), UNKNOWN_HOST):
        shown = both_ways(*both, to=to).thinking
        assert shown is not None
        assert (shown.text, shown.kind, shown.source) == ("short", "summary", "responses_summary")
    asked = both_ways(*both, to=target(shows_raw=True)).thinking
    assert asked is not None
    assert (asked.text, asked.kind, asked.source) == ("long", "raw", "responses_raw")


@pytest.mark.parametrize("to", [RAW_HOST, UNKNOWN_HOST], ids=["a host of raw reasoning", "an unknown host"])
def test_D12_raw_reasoning_that_is_all_there_is_is_the_thinking(to: Any) -> None:
    shown = both_ways(reasoning(raw=("plan",)), message("42"), to=to).thinking
    assert shown is not None
    assert (shown.text, shown.kind, shown.source) == ("plan", "raw", "responses_raw")


@pytest.mark.requirement("S1-25")
def test_a_host_of_raw_reasoning_is_live_and_an_unknown_one_waits_for_its_item() -> None:
    body = stream(reasoning(raw=("plan",)), message("42"), size=1)
    half = body[: body.index(b"output_item.done")]
    live, _ = events_of([half], RAW_HOST, DIALECT)
    assert [event.text for event in live if isinstance(event, ThinkingDelta)] == list("plan")
    decoder = dialects.find_dialect(DIALECT).decoder(UNKNOWN_HOST)
    assert not [event for event in decoder.feed(half) if isinstance(event, ThinkingDelta)]


@pytest.mark.parametrize("missing", ["output_item.done", "text.done", "part.done", "part.added", "output_item.added"])
def test_E12_any_of_the_ceremony_may_be_missing(missing: str) -> None:
    items = (reasoning("plan", encrypted="e"), message("42"), call())
    documents = [event for event in events(*items) if missing not in event["type"]]
    assert read(sse(*documents, done=False)) == read(whole(*items))


def test_E12_a_stream_without_deltas_is_told_from_its_items() -> None:
    items = (reasoning("plan", encrypted="e"), message("42"), call())
    documents = [event for event in events(*items) if not event["type"].endswith(".delta")]
    assert read(sse(*documents, done=False)) == read(whole(*items))


def test_E12_a_stream_of_nothing_but_its_end_is_told_from_that() -> None:
    items = (reasoning("plan", encrypted="e"), message("42"), call())
    assert read(sse(events(*items)[-1], done=False)) == read(whole(*items))


@pytest.mark.requirement("pain C5")
def test_ids_that_rotate_and_indexes_that_are_missing_are_survived() -> None:
    items = (reasoning("plan", encrypted="e"), message("Hello"), call())
    rotated = [
        {**event, "item_id": f"id_{number}"} if "item_id" in event else event
        for number, event in enumerate(events(*items))
    ]
    unnumbered = [{name: value for name, value in event.items() if name != "output_index"} for event in events(*items)]
    for documents in (rotated, unnumbered):
        reply = read(sse(*documents, done=False))
        assert (reply.text, reply.metadata["thinking"], len(reply.tool_calls)) == ("Hello", "plan", 1)


def test_an_index_that_is_used_twice_is_two_items() -> None:
    documents = [
        {**event, "output_index": 0} if "output_index" in event else event for event in events(call(), message("42"))
    ]
    reply = read(sse(*documents, done=False))
    assert (kinds(reply), reply.text) == ([ToolCall, Text], "42")
    twice = [
        {**event, "output_index": 0} if "output_index" in event else event
        for event in events(message("a"), message("b", id="msg_2"))
    ]
    assert [part.text for part in read(sse(*twice, done=False)).parts if isinstance(part, Text)] == ["a", "b"]


FLAT = {"type": "error", "code": "server_error", "message": "it broke", "param": None}
NESTED = {
    "type": "error",
    "error": {"type": "server_error", "code": "server_error", "message": "it broke", "param": None},
}


@pytest.mark.parametrize("told", [FLAT, NESTED], ids=["flat", "nested"])
def test_E15_both_shapes_of_an_error_event(told: dict[str, Any]) -> None:
    documents = events(message("half"))[:-1]
    failed = {
        "type": "response.failed",
        "response": response(status="failed", error={"code": "server_error", "message": "x"}),
    }
    with pytest.raises(errors.Overloaded, match="it broke") as caught:
        read(sse(*documents, told, failed, done=False))
    assert caught.value.code == "server_error"
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


def test_E16_a_line_that_is_not_json_is_left_out_and_told() -> None:
    body = stream(message("Hello"), size=2).replace(b'"delta": "l', b'"delta" "l', 1)
    reply = read(body)
    assert [notice.code for notice in reply.warnings] == ["malformed_event"]
    assert reply.text.startswith("He")


def test_E16_arguments_that_do_not_parse_stay_raw() -> None:
    broken = both_ways(call(arguments='{"location":')).tool_calls[0]
    assert (broken.arguments, broken.raw_arguments) == ({}, '{"location":')


def test_E17_a_failure_behind_the_end_still_raises() -> None:
    failed = {
        "type": "response.failed",
        "response": response(status="failed", error={"code": "server_error", "message": "x"}),
    }
    with pytest.raises(errors.ProviderError):
        read(sse(*events(message("42")), failed, done=False))


def test_E18_a_late_event_behind_the_end_is_fine() -> None:
    late = {
        "type": "response.output_text.done",
        "output_index": 0,
        "item_id": "msg_1",
        "content_index": 0,
        "text": "42",
    }
    assert read(sse(*events(message("42")), late, done=True)).text == "42"


def test_E19_parallel_calls_and_empty_arguments() -> None:
    second = {**call("other", ""), "id": "fc_2", "call_id": "call_2"}
    first_told, second_told = events(call(), size=2), events(second, size=2)
    mixed = [first_told[0]]
    for one, two in zip(first_told[1:-1], [*second_told[1:-1], *[None] * 20], strict=False):
        mixed += [one] if two is None else [one, {**two, "output_index": 1}]
    done = {"type": "response.completed", "response": response(call(), second)}
    reply = read(sse(*mixed, done, done=False))
    assert [(one.id, one.arguments) for one in reply.tool_calls] == [("call_abc", {"location": "SF"}), ("call_2", {})]
    assert reply == read(whole(call(), second))


@pytest.mark.requirement("FT-54")
def test_E20_tools_of_the_provider_tell_their_progress() -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "sky"},
    }
    added = {"type": "response.output_item.added", "output_index": 0, "item": {**search, "status": "in_progress"}}
    searching = {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": search}
    end = {"type": "response.completed", "response": response(search)}
    body = sse(events()[0], added, searching, done, end, done=False)
    told, _ = events_of([body], target(), DIALECT)
    states = [
        event.part.status for event in told if isinstance(event, PartArrived) and isinstance(event.part, ServerTool)
    ]
    assert states == ["in_progress", "searching", "completed"]
    reply = read(body)
    assert reply == read(whole(search))
    assert reply.tool_calls == ()
    assert reply.warnings == ()


def test_E20_pictures_in_the_making_are_progress_and_not_parts() -> None:
    added = {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": {"type": "image_generation_call", "id": "ig_1"},
    }
    partial = {
        "type": "response.image_generation_call.partial_image",
        "output_index": 0,
        "item_id": "ig_1",
        "partial_image_b64": "x",
    }
    end = {
        "type": "response.completed",
        "response": response({"type": "image_generation_call", "id": "ig_1", "result": "pic"}),
    }
    reply = read(sse(added, partial, end, done=False))
    assert [type(part) for part in reply.parts] == [ServerTool]
    assert '"pic"' in reply.parts[0].json  # type: ignore[union-attr]


@pytest.mark.requirement("S4-REQ-002.2", "S4-EC7")
def test_C8_a_stream_without_its_end_is_lost_and_reports_no_usage() -> None:
    body = sse(*events(message("half"))[:-1], done=False)
    with pytest.raises(errors.ConnectionLost) as caught:
        read(body)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"
    assert caught.value.partial.usage == Usage()


@pytest.mark.requirement("S4-REQ-002.3")
def test_usage_is_an_event_whatever_came_before() -> None:
    told, _ = events_of([stream(call())], target(), DIALECT)
    assert [event.usage.total for event in told if isinstance(event, UsageReported)] == [85]


@pytest.mark.requirement("S4-REQ-003.2", "S4-EC6")
def test_json_in_text_is_text() -> None:
    words = '{"reasoning": "I think", "answer"'
    reply = both_ways(message(words))
    assert (reply.text, reply.thinking.text) == (words, "")


@pytest.mark.requirement("S1-18")
def test_no_reasoning_item_is_no_thinking() -> None:
    reply = both_ways(message("42"))
    assert not reply.thinking
    assert reply.metadata["thinking_source"] == "none"


def test_commentary_is_a_channel_of_its_own() -> None:
    reply = both_ways(
        reasoning("plan"),
        message("I look it up.", phase="commentary"),
        message("Then I add.", id="msg_2", phase="commentary"),
        message('{"n":42}', id="msg_3", phase="final_answer"),
    )
    assert (reply.text, reply.commentary) == ('{"n":42}', "I look it up.\n\nThen I add.")
    assert (reply.thinking.text, reply.outcome) == ("plan", "answered")
    assert reply.metadata["commentary"] == reply.to_dict()["commentary"] == reply.commentary
    unmarked = both_ways(message("I look it up."), message("42", id="msg_2"))
    assert (unmarked.text, unmarked.commentary) == ("I look it up.42", "")
    assert "commentary" not in unmarked.metadata


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("phase", ["commentary", "musing", "final_answer", None])
def test_a_phase_that_comes_at_the_end_of_a_message_makes_the_same_reply(phase: str | None, size: int) -> None:
    items = (message("I look it up.", phase=phase), message("42", id="msg_2", phase="final_answer"))
    late = events(*items, size=size)
    for event in late:
        if event["type"] == "response.output_item.added":
            event["item"] = {name: value for name, value in event["item"].items() if name != "phase"}
    streamed = read(sse(*late, done=False))
    assert streamed == read(whole(*items))
    assert streamed.text == ("42" if phase in ("commentary", "musing") else "I look it up.42")
    moved = [
        event
        for event in events_of([sse(*late, done=False)], target(), DIALECT)[0]
        if isinstance(event, TextReclassified)
    ]
    expected = [("I look it up.", "commentary")] if phase in ("commentary", "musing") else []
    assert [(event.text, event.channel) for event in moved] == expected


def test_commentary_alone_is_no_answer() -> None:
    reply = both_ways(message("I look it up.", phase="commentary"))
    assert (reply.text, reply.commentary, reply.outcome) == ("", "I look it up.", "unanswered")
    with pytest.raises(asides.NoAnswer, match="I look it up"):
        reply.require_answer()
    calling = both_ways(message("I look it up.", phase="commentary"), call())
    assert (calling.text, calling.outcome) == ("", "tool_calls")


def test_a_phase_that_nobody_knows_is_not_taken_for_the_answer() -> None:
    reply = both_ways(message("Hm.", phase="musing"), message("42", id="msg_2", phase="final_answer"))
    assert (reply.text, reply.commentary) == ("42", "Hm.")


def test_the_phase_of_a_message_and_its_id_go_along() -> None:
    reply = both_ways(message("I look.", phase="commentary"), call(), message("42", id="msg_2", phase="final_answer"))
    entries = [json.loads(part.seals[0].entry or "") for part in reply.parts if isinstance(part, (Commentary, Text))]
    assert [(entry["id"], entry["phase"]) for entry in entries] == [("msg_1", "commentary"), ("msg_2", "final_answer")]
    assert reply.seals == ()


def test_a_custom_tool_s_input_is_not_taken_for_json() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "grep", "input": '{"a": 1}'}
    found = both_ways(item).tool_calls[0]
    assert (found.custom, found.arguments, found.raw_arguments) == (True, {}, '{"a": 1}')


def test_compaction_is_kept_without_a_word() -> None:
    reply = both_ways({"type": "compaction", "id": "cmp_1", "encrypted_content": "state"}, message("42"))
    assert isinstance(reply.parts[0], UnknownPart)
    assert reply.warnings == ()


def test_thinking_beside_the_items_is_read_too() -> None:
    reply = read(whole(message("42"), reasoning="plan"))
    assert (reply.text, reply.metadata["thinking"]) == ("42", "plan")


def test_a_truncated_reply_that_claims_to_be_complete_is_known_where_the_host_is() -> None:
    told = whole(reasoning(raw=("plan",)))
    assert read(told, RAW_HOST).outcome == "unterminated"
    assert read(told, target(Quirks(raw_reasoning="shown", hides_truncation=True), ModelRule())).outcome == "starved"


def test_inline_tags_are_taken_out_where_a_host_inlines() -> None:
    to = target(Quirks(tags=("think",)), ModelRule())
    reply = both_ways(message("<think>plan</think>42"), to=to)
    assert (reply.text, reply.metadata["thinking"], reply.metadata["thinking_source"]) == ("42", "plan", "tags")


def test_an_error_in_place_of_a_response() -> None:
    with pytest.raises(errors.ProviderError, match="no such model"):
        read(json.dumps({"error": {"message": "no such model", "code": "model_not_found"}}).encode())
    with pytest.raises(errors.ProtocolError):
        read(b"<html>Bad Gateway</html>")
    with pytest.raises(errors.ConnectionLost):
        read(b"")


def test_events_that_nobody_knows_are_told_once() -> None:
    strange = {"type": "response.crystal_ball.gazing"}
    reply = read(sse(strange, *events(message("42")), strange, done=False))
    assert [notice.code for notice in reply.warnings] == ["unknown_event"]


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (
            400,
            {"error": {"message": "Unknown parameter: 'x'.", "code": "unknown_parameter"}},
            errors.BadRequest,
            "Unknown parameter",
        ),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, errors.ContextTooLong, "too long"),
        (401, {"error": {"message": "Incorrect API key"}}, errors.AuthError, "Incorrect API key"),
        (404, {"detail": "no such page"}, errors.NotFound, "no such page"),
        (429, {"error": "slow down"}, errors.RateLimited, "slow down"),
        (
            500,
            response(status="failed", error={"code": "server_error", "message": "broke"}),
            errors.Overloaded,
            "broke",
        ),
        (502, "<html>", errors.Overloaded, "502"),
    ],
)
@pytest.mark.requirement("S4-ES2")
def test_a_bad_status_is_a_typed_error_with_the_server_s_words(
    status: int, body: Any, kind: type[Exception], words: str
) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    with pytest.raises(kind, match=words):
        asides.decode(DIALECT, data, status=status)
