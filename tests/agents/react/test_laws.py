"""The laws of the translator: any chunking gives the same, plain text stays as it is, time is linear, nothing leaks."""

from __future__ import annotations

import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from asides.agents.react.translator import Translator
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta
from asides.values.fold import fold
from tests.agents.react.translating import codes, cut, in_pieces, told

_WORDS = st.sampled_from(
    [
        "plan",
        "Oslo",
        "get_weather",
        "now",
        "Bob sends the mail",
        "A",
        "act",
        "Final",
        "é",
        "…",
        "none",
        "[1]",
        "(x)",
        "{",
        "}",
        '"',
        "`",
        "**",
        "_",
        "<",
        ">",
        "#",
        ":",
        "1",
    ]
)
_LABELS = st.sampled_from(
    [
        "Thought:",
        "thought :",
        "Thought 1:",
        "**Thought:**",
        "**Thought**:",
        "Action:",
        "ACTION:",
        "Action\uff1a",
        "**Action: ",
        "### Action:",
        "Action Input:",
        "action_input:",
        "**Action Input:**",
        "Action Input 2:",
        "Observation:",
        "Observation (get_weather): ",
        "Final Answer:",
        "**Final Answer**\n",
        "## Final Answer\n",
        "final_answer:",
        "  Final Answer:",
        "    Final Answer:",
    ]
)
_MARKS = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "<Think >",
        "```",
        "```json",
        "~~~",
        "````",
        "```py x```",
        '{"city": "Oslo"}',
        '{"a": 1, "b": 2}',
        '{"name": "now", "arguments": {}}',
        '{"action": "Final Answer", "action_input": "yes"}',
        "{'a': 1}",
        '{"a": "```"}',
    ]
)
_BLANKS = st.sampled_from([" ", "\n", "\n\n", "\r\n", "\t", "   "])
_TEXTS = st.lists(st.one_of(_LABELS, _LABELS, _BLANKS, _BLANKS, _WORDS, _MARKS), max_size=24).map("".join)
_SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(text=_TEXTS, sizes=_SIZES)
@settings(max_examples=400, deadline=None)
@example(text="<think>a<think>b</think>Thought: <think>c", sizes=[1])
def test_law_any_chunking_gives_the_same_reply(text: str, sizes: list[int]) -> None:
    assert in_pieces(cut(text, sizes)) == in_pieces([text])


@given(text=_TEXTS, sizes=_SIZES)
@settings(max_examples=200, deadline=None)
def test_law_nothing_is_said_that_was_not_written_and_deltas_add_up(text: str, sizes: list[int]) -> None:
    pieces = cut(text, sizes)
    events = [event for told_ in told(pieces) for event in told_]
    reply = fold(events)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said == reply.text
    assert len(said) <= len(text)
    assert isinstance(events[0], ReplyStarted)
    assert isinstance(events[-1], ReplyEnded)


_PROSE = st.text(alphabet=st.characters(exclude_characters=":\uff1a<", exclude_categories=["Cs"]), max_size=200)


@given(texts=st.lists(_PROSE.filter(lambda text: text.strip() and "inal" not in text), max_size=3), sizes=_SIZES)
@settings(max_examples=200, deadline=None)
def test_law_O3_text_without_labels_is_the_answer_as_it_stands(texts: list[str], sizes: list[int]) -> None:
    events: list[Event] = [ReplyStarted("made-up", "r1"), ThinkingDelta("hm", 0)]
    for block, text in enumerate(texts, 1):
        events += [TextDelta(piece, block) for piece in cut(text, sizes)]
    events.append(ReplyEnded(StopReason("stop")))
    translator = Translator()
    assert fold(event for given_ in events for event in translator.feed([given_])) == fold(events)


@given(thought=st.text(alphabet="abc \n:<`{", max_size=40), sizes=_SIZES)
@settings(max_examples=200, deadline=None)
def test_law_a_thought_and_an_action_never_reach_the_answer(thought: str, sizes: list[int]) -> None:
    canary = "canary7f3a"
    for text in (
        f"Thought: {canary} {thought} {canary}\nFinal Answer: 42",
        f"<think>{canary} {thought.replace('<', '')}</think>Final Answer: 42",
        f"Thought: x\nAction: now\nAction Input: {canary} {thought} {canary}\nObservation: {canary}\nFinal Answer: 41",
    ):
        deltas = [event for events in told(cut(text, sizes)) for event in events if isinstance(event, TextDelta)]
        assert canary not in "".join(event.text for event in deltas)


def _seconds(text: str, size: int) -> float:
    pieces = cut(text, [size])
    began = time.process_time()
    in_pieces(pieces)
    return time.process_time() - began


def test_law_time_is_linear_in_the_text() -> None:
    for text in (
        "Final Answer: " + "words and more words\n" * 80,
        "Thought: " + "a" * 1_500,
        "Action: now\nAction Input: " + '{"a": ' * 250,
        "Final Answer: x" + " " * 1_500,
        "Thought: a\nAction: now\n" * 70,
        "Action:" + "\n" * 1_500,
        "```" * 500,
        "<think>Thought:" + " " * 1_500,
    ):
        for size in (1, len(text) * 8):
            # Eight times the text may cost eight times as much; a square would be sixty-four.
            small, large = (min(_seconds(each, size) for _ in range(3)) for each in (text, text * 8))
            assert large < max(small, 0.002) * 30, f"{text[:20]!r} in pieces of {size}"


def test_a_notice_is_told_once() -> None:
    reply = in_pieces(["Action: now\nFinal Answer: a\nAction: now\nFinal Answer: b\n"])
    assert codes(reply).count("answer_and_action") == 1
