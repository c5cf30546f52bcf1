"""The requirements on inline tags (A1 to A18, C2, C3), and the pains B1, B2 and the 14 measured cases behind them."""

from __future__ import annotations

import json

import pytest

from asides.values.events import TextDelta, ThinkingDelta
from asides.wire.inline_tags import Position, Separated, Separator, Splitter, separate, strip_tags


def test_A1_no_tags_leave_the_text_identical() -> None:
    text = " \n Two < three.\n\n"
    assert separate(text) == Separated(text, None)


def test_A2_think_is_taken_out_and_the_source_is_tags() -> None:
    assert separate("<think>abc</think>Final") == Separated("Final", "abc")
    separator = Separator()
    events = separator.feed("<think>abc</think>Final") + separator.finish()
    assert events == [ThinkingDelta("abc", 0, kind="raw", source="tags"), TextDelta("Final", 1)]


def test_A3_thinking_is_taken_out() -> None:
    assert separate("<thinking>abc</thinking>Final") == Separated("Final", "abc")


@pytest.mark.requirement("FT-05")
def test_A4_analysis_is_taken_out_when_in_the_tag_set() -> None:
    text = "<analysis>abc</analysis>Final"
    assert separate(text, tags=["think", "analysis"]) == Separated("Final", "abc")
    assert separate(text, tags=["think"]) == Separated(text, None)


@pytest.mark.requirement("FT-05")
def test_A5_two_blocks_are_joined_in_document_order_and_both_texts_kept() -> None:
    assert separate("<think>1</think>One. <think>2</think>Two.") == Separated("One. Two.", "1\n\n2")
    assert separate("Zero. <think>1</think>One.", position="anywhere") == Separated("Zero. One.", "1")


def test_A6_mixed_tags_keep_document_order_and_the_text_as_written() -> None:
    assert separate("<think>1</think>A\n<thinking>2</thinking>B") == Separated("A\nB", "1\n\n2")


@pytest.mark.requirement("FT-05")
@pytest.mark.parametrize("inner", ["", " ", "\n\n"])
def test_A7_an_empty_tag_is_none_and_is_removed(inner: str) -> None:
    assert separate(f"<think>{inner}</think>Final") == Separated("Final", None)


@pytest.mark.parametrize("name", ["THINK", "Think", "tHiNk"])
def test_A8_case_does_not_matter(name: str) -> None:
    assert separate(f"<{name}>abc</{name.swapcase()}>Final") == Separated("Final", "abc")


def test_A9_several_lines_are_kept_verbatim() -> None:
    assert separate("<think>\na\n\n  b\n</think>Final") == Separated("Final", "\na\n\n  b\n")


@pytest.mark.requirement("FT-05")
def test_A10_an_unclosed_tag_is_thinking_and_truncated() -> None:
    assert separate("x<think>abc", position="anywhere") == Separated("x", "abc", truncated=True)
    assert separate("<think>abc") == Separated("", "abc", truncated=True)


def test_A11_an_orphan_close_ends_thinking_that_the_template_opened() -> None:
    assert separate("abc</think>Final") == Separated("Final", "abc")
    assert separate("abc</think>Final", starts_inside=True) == Separated("Final", "abc")
    assert separate("abc</think>Final", starts_inside=False) == Separated("abc</think>Final", None)


@pytest.mark.requirement("FT-05")
def test_A12_nested_blocks_leak_neither_tag_nor_thought() -> None:
    separated = separate("<think>a<think>b</think>c</think>d")
    assert separated.text == "d"
    assert "think" not in str(separated.thinking)
    assert separate("<think>I should use <think> tags</think>Answer").text == "Answer"


@pytest.mark.requirement("FT-05")
@pytest.mark.parametrize(
    "text",
    ["Say `<think>x</think>`.", "```xml\n<think>x</think>\n```\n", "~~~\n</think>\n~~~\n", "Use `</think>` to close."],
)
@pytest.mark.parametrize("position", ["auto", "leading", "anywhere"])
def test_A13_tags_in_code_are_left_alone(text: str, position: Position) -> None:
    assert separate(text, position=position) == Separated(text, None)
    assert separate("<think>R</think>" + text, position=position) == Separated(text, "R")


def test_A14_many_short_fragments_read_as_running_text() -> None:
    words = ["The", "user", "wants", "a", "short", "answer"]
    blocks = [f"<think>{word}</think>" for word in words]
    assert separate("".join(blocks) + "Ok") == Separated("Ok", "The user wants a short answer")
    assert separate("".join(blocks[:2]) + "Ok") == Separated("Ok", "The\n\nuser")
    spaced = "<reasoning>Use</reasoning><reasoning> the function.</reasoning>Ok"
    assert separate(spaced) == Separated("Ok", "Use the function.")


@pytest.mark.parametrize("text", [None, ""])
def test_A15_nothing_is_safe(text: str | None) -> None:
    assert separate(text) == Separated("", None)


def test_A16_blanks_behind_a_leading_block_go_with_it_and_no_others() -> None:
    assert separate("<think>abc</think>\n\n Final\n") == Separated("Final\n", "abc")
    assert separate("<think>1</think>A\n\n<think>2</think>\n\nB") == Separated("A\n\n\n\nB", "1\n\n2")


@pytest.mark.requirement("FT-05")
def test_A17_an_own_pair_is_honoured_and_the_default_tags_are_then_ignored() -> None:
    text = "<reason>abc</reason><think>x</think>Final"
    assert separate(text, tags=[(" <Reason> ", "</reason>")]) == Separated("<think>x</think>Final", "abc")


def test_A18_thinking_in_front_of_tool_arguments_is_stripped_before_they_are_parsed() -> None:
    arguments = '<think>which city?</think>\n{"city": "Oslo", "note": "<think>kept</think>"}'
    assert json.loads(strip_tags(arguments)) == {"city": "Oslo", "note": "<think>kept</think>"}


@pytest.mark.requirement("FT-06")
def test_C2_a_tag_cut_at_any_boundary_lets_no_thinking_into_the_text() -> None:
    source = "\n<think t='1'>secret §</think>\n\nA <b>c</b> <THINKING>secret §</THINKING> d"
    whole = separate(source)
    assert whole == Separated("A <b>c</b>  d", "secret §\n\nsecret §")
    for at in range(len(source) + 1):
        splitter = Splitter()
        pieces = splitter.feed(source[:at]) + splitter.feed(source[at:]) + splitter.finish()
        assert "".join(text for _, is_thinking, text in pieces if not is_thinking) == whole.text


@pytest.mark.requirement("FT-06")
@pytest.mark.parametrize("text", ["a < b", "<thin line>", "a <", "</", "if x<think_of:", "<thinking-cap>"])
def test_C3_an_angle_that_is_no_tag_is_released_unchanged(text: str) -> None:
    splitter = Splitter()
    pieces = [piece for character in text for piece in splitter.feed(character)] + splitter.finish()
    assert "".join(piece for _, is_thinking, piece in pieces if not is_thinking) == text


def test_B1_pain_no_variant_of_the_tag_leaks() -> None:
    for source in (
        "<think>CANARY</think>ok",
        "<thinking>CANARY</thinking>ok",
        "<THINK>CANARY</THINK>ok",
        "<think a='1'>CANARY</think>ok",
        "CANARY</think>ok",
        "<think>1</think>ok<think>CANARY</think>",
        "<think>a<think>CANARY</think>CANARY</think>ok",
        "[THINK]CANARY[/THINK]ok",
        "<|channel|>analysis<|message|>CANARY<|end|><|start|>assistant<|channel|>final<|message|>ok",
        "<|channel>thought\nCANARY<channel|>ok",
        "<mm:think>CANARY</mm:think>ok",
        "<think>CANARY",
    ):
        separated = separate(source)
        assert separated.text == ("" if separated.truncated else "ok"), source
        assert "CANARY" in str(separated.thinking)


@pytest.mark.parametrize(
    "text",
    [
        "Use <think>x</think> here",
        '{"title": "On <mm:think>", "n": 1}',
        "```\n<think>\n```",
        "Use `</think>` to close.",
    ],
)
def test_B2_pain_tags_that_belong_to_the_answer_survive(text: str) -> None:
    assert separate(text) == Separated(text, None)


MEASURED = {
    "plain": ("<think>R</think>A", Separated("A", "R")),
    "leading newline": ("\n<think>R</think>A", Separated("A", "R")),
    "unclosed": ("<think>R", Separated("", "R", truncated=True)),
    "missing open tag": ("R</think>A", Separated("A", "R")),
    "upper case": ("<THINK>R</THINK>A", Separated("A", "R")),
    "thinking": ("<thinking>R</thinking>A", Separated("A", "R")),
    "attribute": ('<think t="3">R</think>A', Separated("A", "R")),
    "two blocks": ("<think>R</think>A<think>S</think>B", Separated("AB", "R\n\nS")),
    "nested": ("<think>a<think>b</think>c</think>d", Separated("d", "a\n\nb\n\nc")),
    "literal tag in answer": ("Use <think>x</think> here", Separated("Use <think>x</think> here", None)),
    "json with a tag": ('{"a":"<think>x</think>"}', Separated('{"a":"<think>x</think>"}', None)),
    "square brackets": ("[THINK]R[/THINK]A", Separated("A", "R")),
    "harmony": (
        "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>final<|message|>A<|return|>",
        Separated("A", "R"),
    ),
    "gemma": ("<|channel>thought\nR<channel|>A", Separated("A", "\nR")),
}


@pytest.mark.parametrize("name", MEASURED)
def test_B1_pain_the_fourteen_measured_cases_whole_and_by_character(name: str) -> None:
    source, expected = MEASURED[name]
    assert separate(source) == expected
    separator = Separator()
    events = [event for character in source for event in separator.feed(character)] + separator.finish()
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == expected.text
