"""A text that is passed on as it comes, and moved when a lone closing tag shows that it was thinking."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.values.parts import join_commentary
from asides.values.thinking import join_thoughts
from asides.wire.inline_tags import GRAMMARS, Channel, Piece, Position, Separated, Splitter, separate
from tests.wire.inline_tags.test_every_grammar import FORMS, NAMES
from tests.wire.inline_tags.test_splitter import CORPUS, FRAGMENTS


def gather(pieces: list[Piece], *, truncated: bool) -> Separated:
    """The parts of a text, after what was moved."""
    segments: dict[int, tuple[Channel, list[str]]] = {}
    for number, channel, text in pieces:
        if channel is Channel.MOVED:
            before = "".join("".join(texts) for _, texts in segments.values())
            assert before.startswith(text), "what moves is the beginning of what came"
            assert max(segments, default=number) == number
            segments = {number: (Channel.THINKING, [text])}
            continue
        segments.setdefault(number, (channel, []))[1].append(text)
        assert segments[number][0] is channel

    def join(wanted: Channel) -> list[str]:
        return ["".join(texts) for channel, texts in segments.values() if channel is wanted]

    return Separated(
        "".join(join(Channel.ANSWER)),
        join_thoughts(join(Channel.THINKING)),
        truncated,
        join_commentary(join(Channel.COMMENTARY)),
    )


def separate_late(chunks: list[str], tags: Any = None, position: Position = "auto") -> Separated:
    splitter = Splitter(tags, position, late=True)
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.finish()
    return gather(pieces, truncated=splitter.truncated)


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: repr(case.source)[:60])
def test_in_the_end_it_is_as_if_the_text_had_waited(case: Any) -> None:
    options = dict(case.settings)
    if options.pop("starts_inside", "auto") != "auto":
        pytest.skip("the case says how the text begins")
    source, whole = case.source, separate(case.source, **options)
    assert separate_late([source], **options) == whole
    assert separate_late(list(source), **options) == whole
    for at in range(len(source) + 1):
        assert separate_late([source[:at], source[at:]], **options) == whole, at


@settings(max_examples=400, deadline=None)
@given(
    source=st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join),
    tags=st.sampled_from([None, None, ["think"], ["harmony"], ["kimi-k3"], ["hunyuan-answer", "apriel"]]),
    position=st.sampled_from(["auto", "auto", "leading", "anywhere"]),
    data=st.data(),
)
def test_any_text_in_any_chunking_ends_as_if_it_had_waited(
    source: str, tags: Any, position: Position, data: st.DataObject
) -> None:
    whole = separate(source, tags, position)
    cuts = data.draw(st.lists(st.integers(0, len(source)), max_size=8).map(sorted))
    for chunks in ([source], list(source), [source[a:b] for a, b in pairwise([0, *cuts, len(source)])]):
        assert separate_late(chunks, tags, position) == whole


@pytest.mark.parametrize("name", [name for name in NAMES if GRAMMARS[name].orphan != ()])
def test_the_close_of_every_grammar_moves_what_came_before(name: str) -> None:
    form = FORMS[name]
    source = f"hidden-plan{form.closing}A b.{form.end}"
    found = separate_late(list(source), [name])
    assert found == separate(source, [name])
    assert (found.text, (found.thinking or "").strip()) == ("A b.", "hidden-plan")


def test_text_is_not_held_back() -> None:
    splitter = Splitter(["think"], late=True)
    assert splitter.feed("hid") == [(0, Channel.ANSWER, "hid")]
    assert splitter.feed("den</thi") == [(0, Channel.ANSWER, "den")]
    assert splitter.feed("nk>\n\nA") == [(0, Channel.MOVED, "hidden"), (1, Channel.ANSWER, "A")]
    assert splitter.feed("</think>") == [(1, Channel.ANSWER, "</think>")], "once the answer has begun, it is text"


@pytest.mark.parametrize(
    "source",
    [
        "Close it with `</think>`.",
        "```\n</think>\n```\nDone.",
        "Write <think>a</think> there.",
        'Use {"a": "<think>x</think>"}.',
        "if a </ b",
    ],
)
def test_a_quoted_tag_stays_where_it_is(source: str) -> None:
    assert separate_late(list(source)) == Separated(source, None)


@pytest.mark.parametrize(
    ("source", "position", "left"),
    [
        ("sure. <think>R</think>A", "auto", True),
        ("sure. <think>R</think>A", "anywhere", False),
        ("sure. `<think>` A", "auto", False),
        ("<think>R</think>A<think>2</think>", "auto", False),
        ("plan</think>A<think>2</think>", "auto", False),
        ("A", "auto", False),
    ],
)
def test_a_tag_that_is_left_in_the_answer_is_reported(source: str, position: Position, left: bool) -> None:
    ways: list[dict[str, Any]] = [{"late": True}, {"starts_inside": "auto"}]
    for options in ways:
        for chunks in ([source], list(source)):
            splitter = Splitter(None, position, **options)
            for chunk in chunks:
                splitter.feed(chunk)
            splitter.finish()
            assert splitter.left_tag is left


QUOTED = [
    '{"a":"</think>"}',
    'The tag "</think>" closes a thought.',
    "<code></think></code>",
    "<p>Use <code>a </think> b</code>.",
    "Write:\n\n    </think>\n\nDone.",
    'Write:\n\n\tx = 1\n\n\ty("</think>")\n',
    "a “</think>” b",
    "„</think>“ x",
    "use '</think>' here",
    "f('</think>')",
    'say "close with </think> now" please',
    '{\n  "a": "x </think> y",\n  "b": 1\n}',
    '["say \\"hi\\" </think> now"]',
    "<pre>\n</think>\n</pre>\nend",
    'x = "</think>"',
    '{"a": " </think> " }',
    "A «</think>» B",
    '"</think>"',
    "‘</think>’ x",
    "<code>\na\n</think>\n</code>",
    '{"a":"</think>","b":"</think>"}',
    '"[/THINK]" is it',
    'Say "</think>".',
    "(“[/THINK]”)",
]
SPLIT = [
    'hidden "half</think>answer',
    'hidden "half</think>answer "x" y',
    'hidden "half</think>"Answer" he said',
    'hid "x" den</think>answer "y"',
    "don't</think>I can't",
    "hidden\n    </think>\nanswer",
    "- a\n\n    - b</think>answer",
    "hidden <code> tags</think>answer",
    'hidden</think>"answer"',
    'hidden"</think>"answer"',
    '5\'10" tall</think>say "x"',
    'hidden </think>\n{"a": "b"}',
    'a: "b\n</think>answer "c"',
    '{"x": "hidden\n</think>{"a":"b"}',
    "hidden “half</think>answer “x” y",
    "  \n    hidden</think>answer",
    "hidden\n<pre>\n</think>answer",
    'I say "so</think>\n\n"Well"',
]


@pytest.mark.parametrize("source", QUOTED)
def test_a_quoted_close_stays_in_the_answer_in_any_chunking(source: str) -> None:
    whole = Separated(source, None)
    assert separate(source) == whole
    assert separate_late(list(source)) == whole
    for at in range(len(source)):
        assert separate_late([source[:at], source[at:]]) == whole, at


@pytest.mark.parametrize("source", SPLIT)
def test_a_close_that_only_follows_a_quotation_mark_ends_the_thinking(source: str) -> None:
    thought, _, answer = source.partition("</think>")
    whole = separate(source)
    assert (whole.thinking, whole.text) == (thought, answer.lstrip())
    assert separate_late(list(source)) == whole
    for at in range(len(source)):
        assert separate_late([source[:at], source[at:]]) == whole, at


@pytest.mark.parametrize(
    "repeated", ['"</think>', '\\"x', "</think> ", "'</think>' ", "    </think>\n", "a <code></think>", "</code "]
)
@pytest.mark.parametrize("opening", ["", '"</think>', '{"a": "', "<code>\n", "a\n\n", "“"])
def test_quotes_are_found_in_linear_time(opening: str, repeated: str) -> None:
    def count(number: int) -> int:
        splitter, steps = Splitter(None, late=True), 0

        def step(*_: object) -> None:
            nonlocal steps
            steps += 1

        sys.setprofile(step)
        try:
            for character in opening + repeated * number:
                splitter.feed(character)
            splitter.finish()
        finally:
            sys.setprofile(None)
        return steps

    count(10)  # compiles the patterns
    assert count(400) < 6 * count(100)
