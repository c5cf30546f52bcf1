"""Tags in texts of which nothing is known."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.flows.probe.find_tags import FoundTags, find_tags, suggests_thinking
from asides.wire.inline_tags import separate

PLAN = "a plan of mine"


@pytest.mark.parametrize(
    ("text", "tag", "inside"),
    [
        (f"<think>{PLAN}</think>42", "think", False),
        (f"{PLAN}</think>\n\n42", "think", True),
        (f"<Thinking mode='x'>{PLAN}</Thinking> 42", "thinking", False),
        (f"[THINK]{PLAN}[/THINK]42", "[think]", False),
        (f"<seed:think>{PLAN}</seed:think>42", "seed", False),
        (
            f"<|channel|>analysis<|message|>{PLAN}<|end|><|start|>assistant<|channel|>final<|message|>42",
            "harmony",
            False,
        ),
        (f"<|START_THINKING|>{PLAN}<|END_THINKING|>42", "command", False),
        (f"Here is my thought process: {PLAN} Here is my response: 42", "granite", False),
        (f"<scratchpad>{PLAN}</scratchpad>\n42", ("<scratchpad>", "</scratchpad>"), False),
        (f"<reflection>{PLAN}</reflection><answer>42</answer>", ("<reflection>", "</reflection>"), False),
        (f"[REASONING]{PLAN}[/REASONING]42", ("[REASONING]", "[/REASONING]"), False),
        (f"<|cot_start|>{PLAN}<|cot_end|>42", ("<|cot_start|>", "<|cot_end|>"), False),
        (f"{{{{plan}}}}{PLAN}{{{{/plan}}}}42", ("{{plan}}", "{{/plan}}"), False),
        (f"【思考】{PLAN}【/思考】42", ("【思考】", "【/思考】"), False),
        (f"【答案】{PLAN}【/答案】42", None, False),
        (f"[[ponder]]{PLAN}[[/ponder]]42", ("[[ponder]]", "[[/ponder]]"), False),
        (f"<<think>>{PLAN}<</think>>42", ("<<think>>", "<</think>>"), False),
        (f"{{cot}}{PLAN}{{/cot}}42", ("{cot}", "{/cot}"), False),
        (f"(thinking){PLAN}(/thinking)42", ("(thinking)", "(/thinking)"), False),
        (f"«musing»{PLAN}«/musing»42", ("«musing»", "«/musing»"), False),
        (f"[BEGIN_REASONING]{PLAN}[END_REASONING]42", ("[BEGIN_REASONING]", "[END_REASONING]"), False),
        (f"<thought_start>{PLAN}<thought_end>42", ("<thought_start>", "<thought_end>"), False),
        ("(Note) the sum is 132, see (b).", None, False),
        ("{a} and {b} are sets; {/a} is none.", None, False),
        (f"{PLAN}\n</ponder>\n42", ("<ponder>", "</ponder>"), True),
        (f"### Thinking\n{PLAN}\n### Answer\n42", ("### Thinking", "### Answer"), False),
        (f"**Reasoning:**\n{PLAN}\n\n**Final answer:** 42", ("**Reasoning:**", "**Final answer:**"), False),
        (f"Thinking: {PLAN}\n\nAnswer: 42", ("Thinking:", "Answer:"), False),
        ("The sum is 132.", None, False),
        ("Analysis of the sum:\n47 + 85.\nAnswer: 132", None, False),
        ("<p>The sum is 132.</p> Done.", None, False),
        ("<b>132</b> is the sum.", None, False),
        ("<answer>132</answer>", None, False),
        ("[1] is a reference, and so is [2].", None, False),
        ("Use `</think>` to close it.", None, False),
        ("", None, False),
        ("  \n", None, False),
    ],
)
def test_tags_are_found_or_left(text: str, tag: object, inside: bool) -> None:
    found = find_tags(text)
    if tag is None:
        assert found is None
        return
    assert found is not None
    assert (found.tag, found.starts_inside) == (tag, inside)
    assert PLAN in found.thinking
    assert PLAN not in found.answer
    # What is found is what a row can say: the splitter reads it alike.
    read = separate(text, (found.tag,), found.position, inside)
    assert PLAN in (read.thinking or "")
    assert PLAN not in read.text
    assert "42" in read.text


def test_a_tag_that_was_cut_off_counts_where_it_is_named_like_thinking() -> None:
    assert find_tags("<inner_monologue>a plan", cut=True) == FoundTags(
        ("<inner_monologue>", "</inner_monologue>"), "a plan", ""
    )
    assert find_tags("<inner_monologue>a plan") is None
    assert find_tags("<poem>a plan", cut=True) is None


def test_tags_behind_the_beginning_of_the_answer_need_another_position() -> None:
    found = find_tags("Well. <think>a plan</think>42")
    assert found is not None
    assert found.position == "anywhere"


def test_a_tag_that_opens_again_and_again_is_in_fragments() -> None:
    found = find_tags("<think>a</think><think> b</think><think> c</think>42")
    assert found is not None
    assert found.fragmented


@pytest.mark.parametrize(
    ("name", "is_thinking"),
    [("reasoning_content", True), ("inner_voice", True), ("cot", True), ("finish_reason", False), ("citations", False)],
)
def test_names(name: str, is_thinking: bool) -> None:
    assert suggests_thinking(name) is is_thinking


@settings(deadline=None)
@given(st.text(alphabet="<>/|[]{}think a\n`#*:◁▷", max_size=80), st.booleans())
def test_any_text_is_read(text: str, cut: bool) -> None:
    found = find_tags(text, cut=cut)
    assert found is None or found.thinking.strip()


@pytest.mark.parametrize(
    "text",
    [
        "thinking:\n" + "\n" * 1_000_000,
        "thinking:\n" + "\n x" * 300_000,
        "<" * 1_000_000,
        "thinking:" + " " * 1_000_000,
    ],
)
def test_a_text_without_end_takes_little_time(text: str) -> None:
    begun = time.process_time()
    find_tags(text)
    assert time.process_time() - begun < 10
