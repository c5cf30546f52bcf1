"""What a chat response becomes: the requirements on reading it, by id. Every one is decoded in every chunking."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.providers.provider import ModelRule, Quirks
from asides.values import errors
from asides.values.events import TextDelta, ThinkingDelta, ToolCallDelta, UsageReported
from asides.values.fold import fold, simulate
from asides.values.parts import Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage
from tests.decoding import chunk, decoded, events_of, sse, stream, target, whole

TAGS = Quirks(tags=("think", "thinking"))


def thinking(reply: Reply) -> str | None:
    return reply.thinking.text if reply.thinking else None


def both_ways(message: dict[str, Any], quirks: Quirks | None = None, **top: Any) -> Reply:
    """The reply of a message, whole and as a stream of one delta, which must be equal."""
    to = target(quirks=quirks)
    reply = decoded(whole(message, **top), to)
    assert decoded(stream(message, **top), to) == reply
    return reply


@pytest.mark.parametrize(
    ("deltas", "text", "commentary"),
    [
        ([{"phase": "commentary", "content": "I "}, {"content": "look."}], "", "I look."),
        ([{"phase": "final_answer", "content": "4"}, {"content": "2"}], "42", ""),
        ([{"phase": "commentary", "content": "I look."}, {"phase": "final_answer", "content": "42"}], "42", "I look."),
        ([{"phase": "commentary", "role": "assistant"}, {"content": "I look."}], "", "I look."),
    ],
)
def test_a_phase_holds_until_the_next_one(deltas: list[dict[str, Any]], text: str, commentary: str) -> None:
    reply = decoded(stream(*deltas))
    assert (reply.text, reply.commentary) == (text, commentary)


# --- fields ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "S0-33", "S0-01", "S0-02", "S0-08", "S0-26", "S0-38", "S0-39", "FT-01", "S1-04", "S0-14", "S2-06"
)
def test_B1_a_separate_field_is_the_thinking_and_content_stays_clean() -> None:
    reply = both_ways({"content": "Final answer", "reasoning_content": "Raw thinking"})
    assert reply.text == reply.content == "Final answer"
    assert reply.thinking == Thought("Raw thinking", "raw", "field", reply.origin, via="reasoning_content")
    assert reply.metadata["thinking"] == "Raw thinking"
    assert reply.metadata["thinking_type"] == "raw"
    assert reply.metadata["thinking_source"] == "field"


@pytest.mark.requirement("S1-37", "FT-07", "S0-25")
def test_B2_reasoning_alone_is_read_and_names_its_field() -> None:
    reply = both_ways({"content": "A", "reasoning": "R"})
    assert thinking(reply) == "R"
    assert reply.thinking
    assert reply.thinking.via == "reasoning"


@pytest.mark.requirement("S0-25")
def test_B3_reasoning_content_wins_over_reasoning_and_the_other_is_reported() -> None:
    reply = both_ways({"content": "A", "reasoning": "fallback", "reasoning_content": "first"})
    assert thinking(reply) == "first"
    assert [notice.code for notice in reply.warnings] == ["other_thinking_field"]


@pytest.mark.parametrize("empty", ["", None, 17, {"text": "no"}])
def test_B4_an_empty_or_unreadable_field_gives_way_to_the_next(empty: object) -> None:
    assert thinking(both_ways({"content": "A", "reasoning_content": empty, "reasoning": "fb"})) == "fb"


@pytest.mark.requirement("FT-07")
def test_B5_a_named_field_is_the_only_one_read() -> None:
    quirks = Quirks(thinking_in=("  custom ",))
    message = {"content": "A", "custom": "C", "reasoning_content": "R", "reasoning": "R2", "thoughts": "T"}
    assert thinking(both_ways(message, quirks)) == "C"
    assert thinking(both_ways({"content": "A", "reasoning_content": "R"}, quirks)) is None


@pytest.mark.parametrize("blank", [(), ("",), ("   ",)])
def test_B5_a_blank_field_name_is_no_name(blank: tuple[str, ...]) -> None:
    assert thinking(both_ways({"content": "A", "reasoning_content": "R"}, Quirks(thinking_in=blank))) == "R"


@pytest.mark.requirement("S0-23", "S0-24", "pain E1")
def test_B6_thinking_never_stands_in_for_a_missing_answer() -> None:
    reply = decoded(whole({"content": "", "reasoning_content": "x"}, finish="length"))
    assert (reply.text, thinking(reply), reply.outcome) == ("", "x", "starved")
    with pytest.raises(errors.NoAnswer, match=r"[Rr]aise max_tokens") as caught:
        reply.require_answer()
    assert caught.value.partial is reply
    assert decoded(whole({"content": None, "reasoning_content": "x"})).outcome == "unterminated"


@pytest.mark.parametrize("finish", ["length", "stop"])
def test_pain_E1_a_stream_that_only_thinks_says_why_there_is_no_answer(finish: str) -> None:
    reply = decoded(stream({"reasoning_content": "on and"}, {"reasoning_content": " on"}, finish=finish))
    assert (reply.text, thinking(reply)) == ("", "on and on")
    assert reply.outcome == {"length": "starved", "stop": "unterminated"}[finish]


def test_B7_field_and_tags_are_both_taken_out_field_first() -> None:
    reply = both_ways({"content": "<think>tagged</think>A", "reasoning_content": "fielded"}, TAGS)
    assert reply.text == "A"
    assert thinking(reply) == "fielded\n\ntagged"


def test_B7_the_same_thought_in_field_and_tags_comes_once() -> None:
    reply = both_ways({"content": "<think>\nplan A\n</think>\n\nA", "reasoning_content": "plan A"}, TAGS)
    assert (reply.text, thinking(reply)) == ("A", "plan A")


def test_B7_the_same_thought_first_in_tags_then_in_the_field_comes_once() -> None:
    body = stream(
        {"content": "<think>plan A</think>"},
        {"reasoning_content": "plan"},
        {"reasoning_content": " A"},
        {"content": "A"},
    )
    reply = decoded(body, target(quirks=TAGS))
    assert (reply.text, thinking(reply)) == ("A", "plan A")


@pytest.mark.requirement("S1-47")
def test_B8_reasoning_details_give_text_and_seals() -> None:
    details = [
        {"type": "reasoning.summary", "summary": "**Plan**", "id": "rs_1", "index": 0, "format": "openai-responses-v1"},
        {"type": "reasoning.encrypted", "data": "gAAAA==", "id": "rs_1", "index": 0, "format": "openai-responses-v1"},
        {"type": "reasoning.text", "text": "because", "signature": "sig", "index": 1},
    ]
    reply = both_ways({"content": "A", "reasoning_details": details})
    assert thinking(reply) == "**Plan**\n\nbecause"
    assert [seal.value for seal in reply.seals] == ["gAAAA==", "sig"]
    kept = [json.loads(seal.entry or "") for part in reply.parts if isinstance(part, Thought) for seal in part.seals]
    assert kept == details
    assert reply.text == "A"


def test_B8_details_beside_the_plain_field_are_shown_once() -> None:
    details = [{"type": "reasoning.text", "text": "because", "signature": "sig", "index": 0}]
    reply = both_ways({"content": "A", "reasoning": "because", "reasoning_details": details})
    assert thinking(reply) == "because"
    assert [seal.value for seal in reply.seals] == ["sig"]


@pytest.mark.requirement("pain C10")
def test_B8_fragments_of_details_merge_to_what_a_whole_response_has() -> None:
    fragments = [
        [{"type": "reasoning.text", "text": "be", "index": 0, "format": "anthropic-claude-v1"}],
        [{"type": "reasoning.text", "text": "cause", "index": 0, "format": "anthropic-claude-v1"}],
        [{"type": "reasoning.text", "signature": "sig", "index": 0, "format": "anthropic-claude-v1"}],
    ]
    # The signature comes alone, and after the answer began.
    body = stream(
        *[{"reasoning_details": part} for part in fragments[:2]], {"content": "A"}, {"reasoning_details": fragments[2]}
    )
    merged = [
        {"type": "reasoning.text", "text": "because", "index": 0, "format": "anthropic-claude-v1", "signature": "sig"}
    ]
    assert decoded(body) == decoded(whole({"content": "A", "reasoning_details": merged}))


def test_B9_content_as_a_list_of_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "pl"}, {"type": "text", "text": "an"}]},
        {"type": "text", "text": "Hello"},
        {"type": "text", "text": " World"},
    ]
    reply = both_ways({"content": parts})
    assert (reply.text, thinking(reply)) == ("Hello World", "plan")
    assert reply.thinking
    assert reply.thinking.source == "block"


def test_B9_content_may_flip_between_list_and_text_in_a_stream() -> None:
    body = stream(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "pl"}]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "an"}]}]},
        {"content": [{"type": "text", "text": "Hel"}]},
        {"content": "lo"},
    )
    reply = decoded(body)
    assert (reply.text, thinking(reply)) == ("Hello", "plan")
    assert [type(part) for part in reply.parts] == [Thought, Text]


@pytest.mark.requirement("S0-36", "S0-28", "S0-32", "FT-03", "FT-13", "S2-01", "S2-02")
def test_B10_no_thinking_leaves_none_and_the_rest_of_the_metadata() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    reply = both_ways({"content": "A"}, usage=usage)
    assert not reply.thinking
    assert "thinking" not in reply.metadata
    assert reply.metadata["thinking_source"] == "none"
    assert reply.metadata["model"] == "made-up"
    assert reply.metadata["usage"] == Usage(10, 5, None, None, 15)
    assert decoded(whole({"content": "A"})).metadata["raw"]["choices"][0]["message"]["content"] == "A"
    assert len(decoded(stream({"content": "A"})).metadata["raw"]) == 2
    with pytest.raises(TypeError):
        reply.metadata["thinking"] = "no"  # type: ignore[index]


@pytest.mark.requirement("S1-39", "S0-43", "FT-12")
def test_B11_tags_come_back_only_when_asked_for_and_only_with_thinking() -> None:
    assert both_ways({"content": "A", "reasoning_content": "R"}).with_tags() == "<thinking>R</thinking>\n\nA"
    assert both_ways({"content": "A"}).with_tags() == "A"


@pytest.mark.requirement("FT-10", "S1-28")
def test_B12_thinking_that_nobody_asked_for_is_separated_all_the_same() -> None:
    assert both_ways({"content": "A", "reasoning_content": "R"}).text == "A"
    reply = both_ways({"content": "A", "inner_thoughts": "R"})
    assert (reply.text, thinking(reply)) == ("A", "R")
    assert [notice.code for notice in reply.warnings] == ["unknown_thinking_field"]
    off = both_ways({"content": "A", "inner_thoughts": "R"}, Quirks(heuristics=False))
    assert (off.text, off.thinking.text) == ("A", "")
    assert [notice.code for notice in off.warnings] == ["unknown_field"]


# --- tags -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S0-27", "S0-17", "S0-18", "S0-19", "S1-38")
@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_S0_35_tags_in_content_become_thinking(tag: str) -> None:
    reply = both_ways({"content": f"<{tag}>plan</{tag}>\n\nFinal"}, TAGS)
    assert (reply.text, thinking(reply)) == ("Final", "plan")
    assert reply.metadata["thinking_source"] == "tags"


@pytest.mark.requirement("S0-20", "S0-31")
def test_S0_31_a_stream_with_tags_and_no_field_is_split_at_any_cut() -> None:
    text = "<think>one</think>A<think>two</think>B"
    by_letter = stream(*[{"content": letter} for letter in text])
    assert decoded(by_letter, target(quirks=TAGS)) == decoded(whole({"content": text}), target(quirks=TAGS))
    assert thinking(decoded(by_letter, target(quirks=TAGS))) == "one\n\ntwo"


@pytest.mark.requirement("S0-22", "A7")
def test_S0_22_empty_tags_are_removed_and_give_none() -> None:
    reply = both_ways({"content": "<think>\n\n</think>\n\nA"}, TAGS)
    assert (reply.text, reply.thinking.text) == ("A", "")


def test_a_tag_left_open_at_the_end_is_thinking_and_marked_incomplete() -> None:
    reply = decoded(whole({"content": "<think>and then"}, finish="length"), target(quirks=TAGS))
    assert (reply.text, thinking(reply), reply.outcome) == ("", "and then", "starved")
    assert reply.thinking
    assert not reply.thinking.complete


def test_a_template_that_opened_the_tag_is_a_fact_of_the_model() -> None:
    to = target(quirks=TAGS, rule=ModelRule(starts_inside=True))
    assert decoded(whole({"content": "plan</think>A"}), to).text == "A"


# --- doubling -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-09")
def test_pain_A2_two_fields_with_the_same_text_count_once() -> None:
    deltas = [{"reasoning_content": part, "reasoning": part} for part in ("pl", "an", " A")]
    reply = decoded(stream(*deltas, {"content": "A"}))
    assert thinking(reply) == "plan A"
    assert reply.warnings == ()


def test_pain_A2_mirrored_fields_in_different_deltas_count_once() -> None:
    deltas: list[dict[str, Any]] = []
    for part in ("pl", "an", " A"):
        deltas += [{"reasoning": part}, {"reasoning_content": part}]
    assert thinking(decoded(stream(*deltas, {"content": "A"}))) == "plan A"


def test_pain_A2_cumulative_snapshots_give_the_difference() -> None:
    grown = ["The", "The user", "The user wants", "The user wants 42"]
    body = stream(*[{"reasoning_content": text} for text in grown], {"content": "4"}, {"content": "42"})
    reply = decoded(body, target(quirks=Quirks(snapshots=True)))
    assert (reply.text, thinking(reply)) == ("42", "The user wants 42")
    assert thinking(decoded(stream(*[{"reasoning_content": text} for text in grown]))) == "The user wants 42"


@pytest.mark.parametrize(
    "deltas", [["a", "b", "a"], ["ha", "ha", "ha"], ["ha", "haha", "!"], ["1", "11", "2"], ["x", "xy"]]
)
def test_pain_A2_repetition_in_the_text_itself_is_kept(deltas: list[str]) -> None:
    assert decoded(stream(*[{"content": text} for text in deltas])).text == "".join(deltas)
    assert thinking(decoded(stream(*[{"reasoning": text} for text in deltas]))) == "".join(deltas)


@pytest.mark.parametrize("deltas", [["\n", "\nA", " cat"], ["ha", "ha", "!"], ["1", "11", "2", "12"]])
def test_pain_A2_a_host_known_for_snapshots_may_send_deltas_after_all(deltas: list[str]) -> None:
    host = target(quirks=Quirks(snapshots=True))
    assert decoded(stream(*[{"content": text} for text in deltas]), host).text == "".join(deltas)


@pytest.mark.requirement("S1-01", "S1-03", "S1-30", "FT-07")
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking", "reasoning_details"])
@pytest.mark.parametrize("with_call", [False, True])
def test_pain_A1_every_spelling_streamed_and_whole_with_and_without_calls(field: str, with_call: bool) -> None:
    thought: Any = [{"type": "reasoning.text", "text": "plan", "index": 0}] if field == "reasoning_details" else "plan"
    message: dict[str, Any] = {"content": "A", field: thought}
    if with_call:
        message["tool_calls"] = [
            {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ]
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    reply = both_ways(message, usage=usage)
    assert (reply.text, thinking(reply), reply.usage.total) == ("A", "plan", 3)
    assert len(reply.tool_calls) == with_call


# --- streams --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S0-30", "S0-34", "S1-26", "S1-36", "FT-08")
def test_C1_two_flows_never_mix_and_events_keep_their_order() -> None:
    body = stream(
        {"reasoning_content": "THINK1"}, {"content": "Hello"}, {"content": " World", "reasoning_content": "THINK2"}
    )
    reply = decoded(body)
    assert (reply.text, thinking(reply)) == ("Hello World", "THINK1THINK2")
    events, _ = events_of([body], target())
    said = [event.text for event in events if isinstance(event, (TextDelta, ThinkingDelta))]
    assert said == ["THINK1", "Hello", "THINK2", " World"]


def test_C4_whitespace_deltas_are_kept() -> None:
    reply = decoded(
        stream(
            {"reasoning": "a"},
            {"reasoning": "\n"},
            {"reasoning": "b"},
            {"content": "x"},
            {"content": " "},
            {"content": "y"},
        )
    )
    assert (reply.text, thinking(reply)) == ("x y", "a\nb")


@pytest.mark.requirement("S3-06")
def test_C5_the_sum_of_the_deltas_is_the_final_text() -> None:
    events, _ = events_of(
        [stream({"reasoning": "a"}, {"reasoning": "b"}, {"reasoning": "a"}, {"content": "1"}, {"content": "1"})],
        target(),
    )
    reply = fold(events)
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == thinking(reply) == "aba"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text == "11"


@pytest.mark.requirement("S2-08")
def test_C6_every_delta_is_an_event_of_its_own() -> None:
    deltas = ["one", " two", " three", " four"]
    events, _ = events_of([stream(*[{"reasoning_content": text} for text in deltas])], target())
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == deltas


@pytest.mark.requirement("S2-14", "FT-22", "S2-08")
def test_C7_usage_in_a_chunk_without_choices() -> None:
    usage = {
        "prompt_tokens": 7,
        "completion_tokens": 9,
        "total_tokens": 16,
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    body = sse(chunk({"content": "A"}), chunk(finish="stop"), {"id": "x", "choices": [], "usage": usage})
    assert decoded(body).usage == Usage(7, 9, 4, None, 16)


@pytest.mark.requirement("FT-46")
def test_C8_a_stream_without_its_end_is_an_error_with_what_came() -> None:
    body = sse(chunk({"reasoning": "plan"}), chunk({"content": "Hel"}), done=False)
    with pytest.raises(errors.ConnectionLost, match="ended before the reply did") as caught:
        decoded(body)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hel"
    assert thinking(caught.value.partial) == "plan"
    assert not caught.value.partial.complete


def test_C9_stream_and_whole_of_one_response_are_equal() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": [1, "<think>"]}'}}
    assert both_ways({"reasoning": "plan", "content": "A", "tool_calls": [call]}).outcome == "tool_calls"


@pytest.mark.requirement("S2-03", "S2-04")
def test_C11_an_ordinary_model_gives_text_events_and_one_end() -> None:
    body = stream({"role": "assistant", "content": ""}, {"content": "Hello"}, {"content": "!"})
    events, failure = events_of([body], target())
    assert failure is None
    assert [type(event).__name__ for event in events] == ["ReplyStarted", "TextDelta", "TextDelta", "ReplyEnded"]


@pytest.mark.requirement("S2-09", "S2-10", "S2-11", "S2-12", "S2-13", "FT-36")
def test_C12_a_source_that_cannot_stream_gives_one_event_a_block_thinking_first() -> None:
    events, _ = events_of([whole({"content": "The answer", "reasoning": "The plan"})], target())
    assert [event.text for event in events if isinstance(event, (TextDelta, ThinkingDelta))] == [
        "The plan",
        "The answer",
    ]
    reply = fold(events)
    again = simulate(reply, size=3)
    assert [event.text for event in again if isinstance(event, ThinkingDelta)] == ["The", " pl", "an"]
    assert fold(again) == reply


# --- the message for history ----------------------------------------------------------------------------------------


@pytest.mark.requirement("S2-08", "FT-04")
def test_S2_18_reasoning_and_text_become_parts_in_that_order() -> None:
    message = both_ways({"content": "A", "reasoning": "R"}).to_message()
    assert message is not None
    assert isinstance(message.content, tuple)
    assert [type(part) for part in message.content] == [Thought, Text]
    assert message.text == "A"


def test_S2_19_text_alone_is_plain_text() -> None:
    message = both_ways({"content": "A"}).to_message()
    assert message is not None
    assert message.content == "A"


def test_S2_20_reasoning_alone_is_one_part() -> None:
    message = both_ways({"content": None, "reasoning": "R"}).to_message()
    assert message is not None
    assert isinstance(message.content, tuple)
    assert [type(part) for part in message.content] == [Thought]


def test_S2_21_neither_leaves_no_content_and_keeps_the_calls() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = both_ways({"content": None, "tool_calls": [call]}).to_message()
    assert message is not None
    assert message.content is None
    assert message.tool_calls == (ToolCall("c", "f", {}),)


@pytest.mark.parametrize("choices", [[], None])
def test_S2_22_no_choices_no_message(choices: object) -> None:
    reply = decoded(json.dumps({"id": "x", "model": "m", "choices": choices}).encode())
    assert reply.to_message() is None
    assert [notice.code for notice in reply.warnings] == ["no_choices"]


def test_S2_24_an_ordinary_model_has_an_answer_and_no_reasoning() -> None:
    reply = both_ways({"content": "The answer is 42"})
    assert (reply.text, reply.thinking.text) == ("The answer is 42", "")


@pytest.mark.requirement("S0-62", "S1-18", "S0-05", "S0-06")
def test_S0_62_several_thoughts_are_joined_and_a_missing_one_is_none() -> None:
    details = [
        {"type": "reasoning.summary", "summary": text, "index": place} for place, text in enumerate(["one", "two"])
    ]
    reply = both_ways({"content": "A", "reasoning_details": details})
    assert thinking(reply) == "one\n\ntwo"
    assert reply.metadata["thinking_type"] == "summary"
    assert not both_ways({"content": "A", "reasoning_details": []}).thinking


# --- usage ----------------------------------------------------------------------------------------------------------

_INSIDE = Usage(20, 100, 60, None, 120)


@pytest.mark.requirement("S1-05", "S2-07")
@pytest.mark.parametrize(
    ("top", "quirks"),
    [
        (
            {
                "usage": {
                    "prompt_tokens": 20,
                    "completion_tokens": 100,
                    "total_tokens": 120,
                    "completion_tokens_details": {"reasoning_tokens": 60},
                }
            },
            None,
        ),
        (
            {
                "usage": {
                    "prompt_tokens": 20,
                    "completion_tokens": 40,
                    "total_tokens": 120,
                    "completion_tokens_details": {"reasoning_tokens": 60},
                }
            },
            None,
        ),
        (
            {
                "usage": {
                    "prompt_tokens": 20,
                    "completion_tokens": 40,
                    "completion_tokens_details": {"reasoning_tokens": 60},
                }
            },
            Quirks(output_excludes_thinking=True),
        ),
        ({"usage": {"prompt_tokens": 20, "completion_tokens": 100, "total_tokens": 120, "reasoning_tokens": 60}}, None),
        (
            {
                "x_groq": {
                    "usage": {
                        "prompt_tokens": 20,
                        "completion_tokens": 100,
                        "total_tokens": 120,
                        "reasoning_tokens": 60,
                    }
                }
            },
            None,
        ),
    ],
    ids=["inside", "outside by its sum", "outside by the row", "at the top", "x_groq"],
)
def test_pain_F1_output_includes_thinking_wherever_it_is_counted(top: dict[str, Any], quirks: Quirks | None) -> None:
    usage = decoded(stream({"content": "A"}, **top), target(quirks=quirks)).usage
    assert (usage.input, usage.output, usage.thinking, usage.total) == (20, 100, 60, 120)
    assert usage.answer == 40
    assert usage.origin in ("reported", "derived")


def test_pain_F1_what_was_not_reported_is_none_and_zero_is_zero() -> None:
    assert decoded(stream({"content": "A"})).usage == Usage()
    usage = {
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "total_tokens": 2,
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert decoded(stream({"content": "A"}, usage=usage)).usage.thinking == 0


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_cache_hit_tokens": 12},
        {"cached_tokens": 12},
        {"prompt_tokens_details": {"cached_tokens": 12}},
        {"cache_read_input_tokens": 12},
    ],
)
def test_pain_F1_cached_tokens_under_every_name(usage: dict[str, Any]) -> None:
    assert (
        decoded(stream({"content": "A"}, usage={"prompt_tokens": 20, "completion_tokens": 1, **usage})).usage.cached
        == 12
    )


def test_pain_F1_usage_inside_the_choice() -> None:
    last = chunk(finish="stop")
    last["choices"][0]["usage"] = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert decoded(sse(chunk({"content": "A"}), last)).usage == Usage(3, 4, None, None, 7)


def test_usage_repeated_in_every_chunk_is_reported_once_a_change() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    body = sse(*[chunk({"content": "a"}, usage=usage) for _ in range(5)], chunk(finish="stop", usage=usage))
    events, _ = events_of([body], target())
    assert sum(isinstance(event, UsageReported) for event in events) == 1


# --- calls ----------------------------------------------------------------------------------------------------------


def call_piece(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    piece: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    if index is not None:
        piece["index"] = index
    if call_id is not None:
        piece["id"] = call_id
    return piece


def test_calls_are_put_together_by_index_with_late_ids_and_names() -> None:
    body = stream(
        {"tool_calls": [call_piece(0, arguments='{"ci')]},
        {"tool_calls": [call_piece(1, "c2", "g", "")]},
        {"tool_calls": [call_piece(0, "c1", "f", 'ty":')]},
        {"tool_calls": [call_piece(1, arguments="{}"), call_piece(0, arguments='"Oslo"}')]},
        finish="tool_calls",
    )
    assert decoded(body).tool_calls == (ToolCall("c1", "f", {"city": "Oslo"}), ToolCall("c2", "g", {}))


def test_calls_that_all_say_index_zero_are_told_apart_by_their_ids() -> None:
    body = stream(
        {"tool_calls": [call_piece(0, "c1", "f", "{}")]}, {"tool_calls": [call_piece(0, "c2", "f", '{"a":1}')]}
    )
    assert [call.id for call in decoded(body).tool_calls] == ["c1", "c2"]


def test_calls_without_an_index_in_a_whole_body() -> None:
    calls = [call_piece(None, "c1", "f", "{}"), call_piece(None, "c2", "f", "{}")]
    assert [call.id for call in decoded(whole({"content": None, "tool_calls": calls})).tool_calls] == ["c1", "c2"]


def test_a_missing_id_is_made_and_is_the_same_streamed_and_whole() -> None:
    first, second = both_ways({"tool_calls": [call_piece(0, "", "f", "{}"), call_piece(1, None, "f", "{}")]}).tool_calls
    assert first.id
    assert first.id != second.id


def test_arguments_as_an_object_or_encoded_twice_or_missing() -> None:
    calls = [call_piece(0, "a", "f", {"x": 1}), call_piece(1, "b", "f", '"{\\"x\\": 1}"'), call_piece(2, "c", "f")]
    assert [call.arguments for call in both_ways({"tool_calls": calls}).tool_calls] == [{"x": 1}, {"x": 1}, {}]


@pytest.mark.parametrize("broken", ["{not json", "[1]", '{"a": 1} trailing'])
def test_arguments_that_are_no_object_stay_raw_with_a_warning(broken: str) -> None:
    reply = both_ways({"tool_calls": [call_piece(0, "a", "f", broken)]})
    assert reply.tool_calls == (ToolCall("a", "f", {}, broken),)
    assert [notice.code for notice in reply.warnings] == ["tool_arguments_invalid"]


def test_A18_tags_in_front_of_arguments_are_taken_out() -> None:
    reply = both_ways({"tool_calls": [call_piece(0, "a", "f", '<think>which city?</think>{"city": "Oslo"}')]}, TAGS)
    assert reply.tool_calls == (ToolCall("a", "f", {"city": "Oslo"}),)
    assert thinking(reply) == "which city?"


def test_a_legacy_function_call_is_a_call() -> None:
    reply = both_ways({"content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}})
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("f", {"a": 1})]


def test_pain_B3_a_call_drafted_in_thinking_is_not_a_call() -> None:
    draft = '<tool_call>{"name": "rm", "arguments": {}}</tool_call>'
    reply = both_ways({"content": "A", "reasoning_content": draft})
    assert reply.tool_calls == ()
    real = both_ways({"reasoning_content": draft, "tool_calls": [call_piece(0, "c", "ls", "{}")]})
    assert [call.name for call in real.tool_calls] == ["ls"]
    events, _ = events_of([stream({"reasoning_content": draft})], target())
    assert not any(isinstance(event, ToolCallDelta) for event in events)


def test_pain_B4_json_is_looked_for_only_in_the_answer() -> None:
    reply = both_ways({"content": '<think>{"city": "wrong"}</think>{"city": "Oslo"}'}, TAGS)
    assert json.loads(reply.text) == {"city": "Oslo"}
    empty = both_ways({"content": "", "reasoning_content": '{"city": "Oslo"}'})
    with pytest.raises(errors.NoAnswer):
        empty.require_answer()


# --- refusals, ends, errors -----------------------------------------------------------------------------------------


def test_a_refusal_is_not_the_answer() -> None:
    reply = both_ways({"content": None, "refusal": "I can't."})
    assert (reply.text, reply.refusal, reply.outcome) == ("", "I can't.", "refused")


@pytest.mark.parametrize(
    ("raw", "unified"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
    ],
)
def test_finish_reasons_are_unified_and_kept_raw(raw: str, unified: str) -> None:
    reply = decoded(stream({"content": "A"}, finish=raw))
    assert (reply.stop.reason, reply.stop.raw) == (unified, raw)


def test_an_unknown_finish_reason_is_reported_not_guessed() -> None:
    reply = decoded(stream({"content": "A"}, finish="boredom"))
    assert (reply.stop.reason, reply.stop.raw) == ("unknown", "boredom")
    assert [notice.code for notice in reply.warnings] == ["unknown_stop_reason"]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({"error": {"message": "The model is busy", "code": 503}}, errors.Overloaded, "busy"),
        ({"error": {"message": "quota", "code": "insufficient_quota"}}, errors.RateLimited, "quota"),
        ({"error": "no such model: not found"}, errors.NotFound, "no such model"),
        (
            {"base_resp": {"status_code": 1004, "status_msg": "authentication failed"}},
            errors.AuthError,
            "authentication failed",
        ),
        (
            {"error": {"message": "filtered", "code": "content_filter", "status": 400}},
            errors.ContentFiltered,
            "filtered",
        ),
    ],
)
def test_an_error_inside_a_good_response_is_the_error_it_names(
    body: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        decoded(json.dumps(body).encode())
    with pytest.raises(kind, match=words):
        decoded(sse(body))


def test_an_error_in_the_middle_of_a_stream_keeps_what_came() -> None:
    body = sse(
        chunk({"reasoning": "plan"}),
        chunk({"content": "Hel"}),
        {"error": {"message": "overloaded", "type": "server_error"}},
    )
    with pytest.raises(errors.Overloaded) as caught:
        decoded(body)
    assert caught.value.partial is not None
    assert (caught.value.partial.text, thinking(caught.value.partial)) == ("Hel", "plan")


@pytest.mark.parametrize(
    "body", [b"<html>Bad gateway</html>", b"data: {not json}\n\n", b"[1, 2", b'"just text"', b"{}{}"]
)
def test_garbage_is_a_protocol_error_with_the_bytes(body: bytes) -> None:
    with pytest.raises(errors.ProtocolError) as caught:
        decoded(body)
    assert caught.value.dialect == "openai_chat"
    assert caught.value.payload


def test_an_empty_body_says_so() -> None:
    with pytest.raises(errors.ConnectionLost, match="empty body"):
        decoded(b"")


# --- strange servers ------------------------------------------------------------------------------------------------


def test_unknown_and_malformed_fields_neither_crash_nor_vanish_silently() -> None:
    odd = chunk({"content": "A", "sparkle": {"deep": [1]}})
    odd["usage"] = {"prompt_tokens": "many", "completion_tokens": 2}
    reply = decoded(sse(odd, chunk(finish="stop")))
    assert (reply.text, reply.usage.output) == ("A", 2)
    assert {notice.code for notice in reply.warnings} == {"unknown_field", "malformed_field"}


def test_several_choices_give_the_first_and_say_so() -> None:
    choices = [
        {"index": place, "message": {"content": text}, "finish_reason": "stop"} for place, text in enumerate("AB")
    ]
    reply = decoded(json.dumps({"id": "x", "model": "m", "choices": choices}).encode())
    assert reply.text == "A"
    assert [notice.code for notice in reply.warnings] == ["other_choices"]


def test_a_first_chunk_without_choices_or_model_does_not_begin_the_reply() -> None:
    filtered = {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    reply = decoded(sse(filtered, chunk({"content": "A"}), chunk(finish="stop")))
    assert (reply.model, reply.id, reply.text) == ("made-up", "chatcmpl-1", "A")


def test_message_beside_delta_counts_once() -> None:
    pieces: list[dict[str, Any]] = []
    for part, grown in (("Hel", "Hel"), ("lo", "Hello")):
        piece = chunk({"content": part})
        piece["choices"][0]["message"] = {"role": "assistant", "content": grown}
        pieces.append(piece)
    assert decoded(sse(*pieces, chunk(finish="stop"))).text == "Hello"


def test_a_whole_answer_to_a_streaming_request_and_the_reverse() -> None:
    assert decoded(b"\n\n  " + whole({"content": "A"})).text == "A"
    assert decoded(b": keep-alive\n\n" + stream({"content": "A"})).text == "A"


def test_words_that_nothing_decided_before_the_connection_broke_are_thinking() -> None:
    """A template may have opened the tag; cut off before its end, the text must not pass for an answer (contract,
    §4.1).
    """
    to = target(quirks=TAGS, rule=ModelRule(starts_inside="auto"))
    with pytest.raises(errors.ConnectionLost) as caught:
        decoded(sse(chunk({"content": "Okay, a secret"}), chunk({"content": " plan"}), done=False), to)
    assert caught.value.partial is not None
    assert (caught.value.partial.text, thinking(caught.value.partial)) == ("", "Okay, a secret plan")
    assert decoded(stream({"content": "Just an answer"}), to).text == "Just an answer"
