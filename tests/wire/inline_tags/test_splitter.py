"""The splitter: every chunking gives the same result, time is linear, text is returned as soon as it is certain."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.values.events import TextDelta, ThinkingDelta
from asides.values.thinking import join_thoughts
from asides.wire.inline_tags import (
    DEFAULT_TAGS,
    GRAMMARS,
    Channel,
    Position,
    Separated,
    Separator,
    Splitter,
    StartsInside,
    separate,
    strip_tags,
)
from tests.linear_time import check_linear

REASON = [("<reason>", "</reason>")]


class Case(NamedTuple):
    """A text, its expected parts, and the settings (by default those of `separate`)."""

    source: str
    text: str
    thinking: str | None = None
    truncated: bool = False
    settings: Mapping[str, Any] = MappingProxyType({})
    commentary: str = ""


ANYWHERE = {"position": "anywhere"}
LEADING = {"position": "leading"}
INSIDE = {"starts_inside": True}
OUTSIDE = {"starts_inside": False}

CORPUS = [
    # plain text is identical
    Case("", ""),
    Case("  \n ", "  \n "),
    Case("\n The answer.\n", "\n The answer.\n"),
    Case("a < b, <thin line>, [T] and <thinker>", "a < b, <thin line>, [T] and <thinker>"),
    Case("a <thi", "a <thi"),
    Case("\n<think", "\n<think"),
    Case("<think " + "a" * 300 + ">x</think>", "<think " + "a" * 300 + ">x</think>", None, False, OUTSIDE),
    # one leading block
    Case("<think>R</think>A", "A", "R"),
    Case("\n\n <think>R</think>\n\n A\n", "A\n", "R"),
    Case("\ufeff<think>R</think>A", "A", "R"),
    Case("<think>\nR\n</think>\n\nA", "A", "\nR\n"),
    Case("<THINK>R</Think>A", "A", "R"),
    Case('< Think t="3" >R< / think >A', "A", "R"),
    Case("<think\nt=3>R</think>A", "A", "R"),
    Case("<think></think>A", "A"),
    Case("<think>\n\n</think>\n\nA", "A"),
    Case("<think/>\nA", "A"),
    Case("<think />A<think>R</think>", "A", "R"),
    Case("<think>R", "", "R", True),
    Case("<think>R</thi", "", "R</thi", True),
    Case("<think>", "", None, True),
    Case("<think>a < b </ b></think>A", "A", "a < b </ b>"),
    Case("<think>`</think>`A", "`A", "`"),
    Case("<think>İ ß K</think>İ<", "İ<", "İ ß K"),
    # the other grammars
    Case("<thinking>R</thinking>A", "A", "R"),
    Case("<thought>R</thought>A", "A", "R"),
    Case("<reasoning>R</reasoning>A", "A", "R"),
    Case("<analysis>R</analysis>A", "A", "R"),
    Case("[THINK]R[/THINK]A", "A", "R"),
    Case("[Think](https://a.example) is a link", "[Think](https://a.example) is a link"),
    Case("<|channel>thought\nR<channel|>A", "A", "\nR"),
    Case("<seed:think>R</seed:think>A", "A", "R"),
    Case("<mm:think>R</mm:think>A", "A", "R"),
    Case("◁think▷R◁/think▷A", "A", "R"),
    Case("<think>R</thinking>x</think>A", "A", "R</thinking>x"),
    Case(
        "<|open|>think<|sep|>R<|open|>response<|sep|>A<|close|>response<|sep|>", "A", "R", False, {"tags": ["kimi-k3"]}
    ),
    Case("<|START_THINKING|>R<|END_THINKING|><|START_TEXT|>A<|END_TEXT|>", "A", "R", False, {"tags": ["command"]}),
    Case("Here's my thought process: R Here is my response: A", "A", " R ", False, {"tags": ["granite"]}),
    # several blocks
    Case("<think>1</think>A<think>2</think>B", "AB", "1\n\n2"),
    Case("<think>1</think>A\n<thinking>2</thinking>\nB", "A\n\nB", "1\n\n2"),
    Case("<think>1</think>\n<think>2</think>\nA", "A", "1\n\n2"),
    Case("<think>1</think>A<think>2", "A", "1\n\n2", True),
    Case("<think>1</think>A<think> </think>B", "AB", "1"),
    Case("<think>Use</think><think> it</think><think> </think><think>now</think>A", "A", "Use it now"),
    Case("<think>a</think><think>\n</think><think>b</think>A", "A", "a\n\nb"),
    Case("<think>Use</think><think> us</think><think>er</think>A", "A", "Use user"),
    Case("<think>a</think><think>b<think> c</think>d</think>A", "A", "a\n\nb\n\n c\n\nd"),
    # nested, or mentioned
    Case(
        "<think>a<think>b</think>x</think>A<think>c<think>d</think>```\n</think>\n```\n</think>B",
        "AB",
        "a\n\nb\n\nx\n\nc\n\nd\n\n```\n</think>\n```\n",
    ),
    Case("<think>a<think>b</think>c</think>d", "d", "a\n\nb\n\nc"),
    Case("<think>a<think>b</think>c<think>d</think>e</think>f", "f", "a\n\nb\n\nc\n\nd\n\ne"),
    Case("<think>I should use <think> tags</think>Answer", "Answer", "I should use <think> tags"),
    Case("<think>use <think> and </think> tags</think>Answer", "Answer", "use \n\n and \n\n tags"),
    Case("<think>see <think></think>A<think>2</think>B", "AB", "see <think>\n\n2"),
    Case("<think>see <think></think>Close with `</think>`.", "Close with `</think>`.", "see <think>"),
    Case("<think>a<think>b", "", "a<think>b", True),
    Case(
        "A\n<think>x<think>y</think>z</think>\n```\n<think>\n```",
        "A\n\n```\n<think>\n```",
        "x\n\ny\n\nz",
        False,
        ANYWHERE,
    ),
    # the answer's own words
    Case("Use <think>x</think> here", "Use <think>x</think> here"),
    Case('{"a": "<think>x</think>"}', '{"a": "<think>x</think>"}'),
    Case("Use `</think>` to close.", "Use `</think>` to close."),
    Case("```\n</think>\n```\nA", "```\n</think>\n```\nA"),
    Case("```\n</think>\n```\n~~~\n<think>\n", "```\n</think>\n```\n~~~\n<think>\n"),
    Case("```\n</think>\n```\n```\nx", "```\n</think>\n```\n```\nx"),
    Case("<think>R</think>a ` <think>2</think> `` b\n", "a `  `` b\n", "R\n\n2"),
    Case("<think>R</think>a ````<think>2</think>````", "a ````````", "R\n\n2"),
    Case("<think>R</think>Say `<think>` or ``a ` <think>``", "Say `<think>` or ``a ` <think>``", "R"),
    Case("<think>R</think>~~~\n<think>\n```\n~~~\nB", "~~~\n<think>\n```\n~~~\nB", "R"),
    Case("<think>R</think>```x```<think>2</think>B", "```x```B", "R\n\n2"),
    Case("<think>R</think>```\nx\n```<think>2</think>B", "```\nx\n```B", "R\n\n2"),
    Case("<think>R</think>a ` b <think>2</think>c", "a ` b c", "R\n\n2"),
    Case("<think>R</think>a ` b <think>2</think>\n`c", "a ` b \n`c", "R\n\n2"),
    Case("<think>R</think>A <think>x</think>", "A <think>x</think>", "R", False, LEADING),
    Case("a<think>1</think>\n\nb", "a\n\nb", "1", False, ANYWHERE),
    Case("x<think>abc", "x", "abc", True, ANYWHERE),
    # the template opened the tag
    Case("R</think>\n\nA", "A", "R"),
    Case("</think>A", "A"),
    Case("R: ```\nx</think>A", "A", "R: ```\nx"),
    Case("```\nR</think>A", "A", "```\nR"),
    Case("R</think>A<think>2</think>B", "AB", "R\n\n2"),
    Case("R</think>A", "R</think>A", None, False, OUTSIDE),
    Case("R</think>A", "A", "R", False, INSIDE),
    Case(" <think>R</think>A", "A", "R", False, INSIDE),
    Case("\nR", "", "\nR", True, INSIDE),
    Case("", "", None, False, INSIDE),
    Case(" ", "", None, False, INSIDE),
    Case("see <think> there</think>A", "A", "see <think> there", False, INSIDE),
    # harmony
    Case("<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>final<|message|>A<|return|>", "A", "R"),
    Case(
        "<|start|>assistant<|channel|>analysis<|message|>R<|channel|>final<|message|>A<|end|>", "A", "R", False, LEADING
    ),
    Case("<|channel|>analysis<|message|>R<|end|><|start|>assistant<|chan", "", "R"),
    Case("<|channel|>analysis<|message|>R", "", "R", True),
    Case("<|channel|>final<|message|>A <think>x</think><|return|>", "A <think>x</think>"),
    Case("<|start|>assistant<|message|>A<|end|>", "A"),
    Case(
        "<|channel|>commentary<|message|>P\n<|end|><|start|>assistant<|channel|>final<|message|>A",
        "A",
        commentary="P\n",
    ),
    Case("<|channel|>commentary<|message|>P<|end|>", "", commentary="P"),
    Case(
        "<|start|>assistant<|channel|>commentary<|message|>P <think>x</think><|end|>",
        "",
        commentary="P <think>x</think>",
    ),
    Case(
        "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>commentary<|message|>P<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>Q<|end|><|start|>assistant<|channel|>analysis<|message|>S"
        "<|end|><|start|>assistant<|channel|>final<|message|>A<|return|>",
        "A",
        "R\n\nS",
        commentary="P\n\nQ",
    ),
    Case(
        "<|channel|>commentary<|message|>P<|end|><|start|>assistant<|channel|>commentary to=f<|message|>{}<|call|>",
        "<|start|>assistant<|channel|>commentary to=f<|message|>{}<|call|>",
        commentary="P",
    ),
    Case("<|channel|>hunch<|message|>R<|end|>", "", "R"),
    Case("R<|end|><|start|>assistant<|channel|>final<|message|>A<|return|>", "A", "R"),
    Case("Say <|end|> to stop", "Say <|end|> to stop"),
    Case(
        "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>commentary to=functions.f "
        '<|constrain|>json<|message|>{"a":1}<|call|>',
        '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":1}<|call|>',
        "R",
    ),
    Case(
        "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>final<|message|>```\nx\n```<|return|>",
        "```\nx\n```",
        "R",
    ),
    # own pairs
    Case("<reason>R</REASON><think>x</think>A", "<think>x</think>A", "R", False, {"tags": REASON}),
    Case("%%R%%A", "A", "R", False, {"tags": [("%%", "%%")]}),
    Case("<think>R</think>A", "A", "R", False, {"tags": [("<t", "</t"), ("<think>", "</think>")]}),
    Case("<tR</tA", "A", "R", False, {"tags": [("<t", "</t"), ("<think>", "</think>")]}),
    Case("<think>R</think>A", "<think>R</think>A", None, False, {"tags": []}),
]


class Outcome(NamedTuple):
    segments: list[tuple[int, Channel, str]]
    truncated: bool
    began_with_thinking: bool


def split(
    chunks: list[str], tags: Any = None, position: Position = "auto", starts_inside: StartsInside = "auto"
) -> Outcome:
    """Run a splitter over chunks; join the pieces of each segment, and hold the rules of the segments' numbers."""
    splitter = Splitter(tags, position, starts_inside)
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.finish()
    segments: list[tuple[int, Channel, str]] = []
    for number, channel, text in pieces:
        assert text
        if segments and segments[-1][0] == number:
            assert segments[-1][1] is channel
            segments[-1] = (number, channel, segments[-1][2] + text)
        else:
            assert number == len(segments)
            segments.append((number, channel, text))
    return Outcome(segments, splitter.truncated, splitter.began_with_thinking)


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: repr(case.source)[:60])
def test_a_text_comes_apart_as_the_contract_says(case: Case) -> None:
    assert separate(case.source, **case.settings) == Separated(
        case.text, case.thinking, case.truncated, case.commentary
    )


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: repr(case.source)[:60])
def test_every_chunking_gives_the_same(case: Case) -> None:
    source = case.source
    whole = split([source], **case.settings)
    assert split(list(source), **case.settings) == whole
    for at in range(len(source) + 1):
        assert split([source[:at], source[at:]], **case.settings) == whole, at


FRAGMENTS = [
    "<think>",
    "</think>",
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "[THINK]",
    "[/THINK]",
    "<think/>",
    "< think a=1>",
    "<",
    "</",
    "<th",
    "ink>",
    "`",
    "``",
    "```",
    "\n```\n",
    "```py\n",
    "~~~\n",
    "\n",
    "\n\n",
    " ",
    "a",
    "word ",
    "İ",
    "\ufeff",
    "<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>",
    "<|channel|>commentary<|message|>",
    "<|channel|>commentary to=functions.f<|message|>",
    "<|start|>assistant",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|channel>thought",
    "<channel|>",
    "<reason>",
    "</reason>",
    " to=self<|message|>",
    "<|start|>assistant to=user<|message|>",
    "<|eom|>",
    "<|content_thinking|>",
    "<|message_model|>f<|content_text|>",
    "<|end_message|>",
    "<|think|>",
    "<|begin|>assistant<|content|>",
    "<think:x>",
    "</think:x>",
    "to=",
    "<answer>",
    "\n</answer>",
]


@settings(max_examples=400, deadline=None)
@given(
    source=st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join),
    tags=st.sampled_from(
        [
            None,
            None,
            ["hunyuan-answer", "apriel"],
            ["think"],
            ["harmony"],
            REASON,
            [("`", "`")],
            [("<th", "</"), ("<think>", ">")],
        ]
    ),
    position=st.sampled_from(["auto", "auto", "leading", "anywhere"]),
    starts_inside=st.sampled_from([True, False, "auto"]),
    data=st.data(),
)
def test_any_text_in_any_chunking_gives_the_same(
    source: str, tags: Any, position: Position, starts_inside: StartsInside, data: st.DataObject
) -> None:
    whole = split([source], tags, position, starts_inside)
    assert split(list(source), tags, position, starts_inside) == whole
    cuts = data.draw(st.lists(st.integers(0, len(source)), max_size=8).map(sorted))
    chunks = [source[a:b] for a, b in pairwise([0, *cuts, len(source)])]
    assert split(chunks, tags, position, starts_inside) == whole


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab <>`\n[]|/İ", max_size=60), st.sampled_from(["auto", "leading", "anywhere"]))
def test_text_without_tags_is_identical(source: str, position: Position) -> None:
    assert separate(source, position=position) == Separated(source, None)


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: repr(case.source)[:60])
def test_the_separator_agrees_with_separate(case: Case) -> None:
    separator = Separator(**case.settings)
    events = [event for character in case.source for event in separator.feed(character)] + separator.finish()
    thoughts: dict[int, str] = {}
    for event in events:
        if isinstance(event, ThinkingDelta):
            assert (event.kind, event.source) == ("raw", "tags")
            thoughts[event.block] = thoughts.get(event.block, "") + event.text
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert (text, join_thoughts(list(thoughts.values())), separator.truncated) == (
        case.text,
        case.thinking,
        case.truncated,
    )


def test_deltas_come_as_early_as_they_are_certain() -> None:
    splitter = Splitter()
    pieces = [
        splitter.feed(chunk) for chunk in ["<thi", "nk>", "a", " b<", "c</th", "e </think", ">", "\n", "A", " <th", "e"]
    ]
    assert pieces == [
        [],
        [],
        [(0, Channel.THINKING, "a")],
        [(0, Channel.THINKING, " b")],
        [(0, Channel.THINKING, "<c")],
        [(0, Channel.THINKING, "</the ")],
        [],
        [],
        [(1, Channel.ANSWER, "A")],
        [(1, Channel.ANSWER, " ")],
        [(1, Channel.ANSWER, "<the")],
    ]


def test_only_text_that_may_become_a_live_tag_is_held() -> None:
    answering = Splitter()
    assert answering.feed("A</think") == [(0, Channel.ANSWER, "A</think")], (
        "the answer began without a block: nothing is live"
    )
    thinking = Splitter()
    assert thinking.feed("<think>a </thinki") == [(0, Channel.THINKING, "a </thinki")], (
        "another grammar's tag does not end this one"
    )
    answer = Splitter()
    answer.feed("<think>a</think>")
    assert answer.feed("`code` </think> ` x") == [(1, Channel.ANSWER, "`code` </think> ` x")], "no tag, no waiting"


def test_a_tag_after_an_open_backtick_waits_only_for_its_line() -> None:
    splitter = Splitter()
    splitter.feed("<think>a</think>")
    assert splitter.feed("x ` <think>b") == [(1, Channel.ANSWER, "x ` ")]
    assert splitter.feed("c\n") == [(2, Channel.THINKING, "bc\n")]


def test_auto_emits_nothing_before_it_knows_how_the_text_began() -> None:
    splitter = Splitter(starts_inside="auto")
    assert splitter.feed("R, at length") == []
    assert splitter.feed("</think>A") == [(0, Channel.THINKING, "R, at length"), (1, Channel.ANSWER, "A")]


def test_a_reply_that_began_with_thinking_says_so() -> None:
    assert split(["\n<think></think>A"], starts_inside=False).began_with_thinking
    assert split(["R</think>A"]).began_with_thinking
    assert split(["R"], starts_inside=True).began_with_thinking
    assert not split(["A<think>R</think>"], position="anywhere").began_with_thinking


def test_a_block_of_blanks_does_not_count() -> None:
    assert split(["a<think>\n \n</think>b"], position="anywhere", starts_inside=False).segments == [
        (0, Channel.ANSWER, "ab")
    ]


def test_harmony_messages_are_separate_segments() -> None:
    source = "<|channel|>commentary<|message|>P<|end|><|start|>assistant<|channel|>final<|message|>A<|return|>"
    assert split([source]).segments == [(0, Channel.COMMENTARY, "P"), (1, Channel.ANSWER, "A")]


def test_mentions_are_read_again_only_so_often() -> None:
    source = "<think>a<think></think>b" * 8
    assert separate(source).text == "b" * 8


@pytest.mark.parametrize(
    "tags", [["thnk"], ["<reason>", "</reason>"], [("", "</a>")], [("<a>", " ")], [("<a>",)], [("<a>", "</a>", "x")]]
)
def test_tags_that_cannot_be_read_are_refused(tags: Any) -> None:
    with pytest.raises(ValueError) as caught:
        Splitter(tags)
    assert "tag" in str(caught.value)


def test_one_pair_of_tags_needs_no_list_around_it() -> None:
    assert separate("<mine>a</mine>B<think>c</think>", tags=("<mine>", "</mine>")) == Separated(
        "B<think>c</think>", "a"
    )


def test_settings_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="position='middle'"):
        separate("a", position="middle")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="starts_inside='maybe'"):
        separate("a", starts_inside="maybe")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_grammar_name_ignores_case_and_blanks_and_needs_no_list() -> None:
    assert separate("<think>R</think>A", tags=[" Think "]) == separate("<think>R</think>A", tags="think")


def test_every_named_grammar_is_of_the_default_set_or_works_on_request() -> None:
    assert set(DEFAULT_TAGS) < set(GRAMMARS)
    for name in GRAMMARS:
        assert separate("A", tags=[name]) == Separated("A", None)


def test_the_value_shows_the_answer_and_never_the_thinking() -> None:
    assert repr(separate("<think>secret</think>A")) == "Separated(text='A', thinking=<6 characters>, truncated=False)"
    assert repr(separate("A")) == "Separated(text='A', thinking=None, truncated=False)"


def test_strip_tags_removes_only_thinking_at_the_beginning() -> None:
    assert strip_tags('<think>R</think>\n{"a": "<think>x</think>"}') == '{"a": "<think>x</think>"}'
    assert strip_tags('{"a": "</think>"}') == '{"a": "</think>"}'


HARD = {
    "angles": ("", "<"),
    "cut tags": ("", "<think"),
    "attributes": ("", "<think aaaaaaaaaaaaaaaa"),
    "backticks": ("<think>R</think>A", "`"),
    "an open backtick": ("<think>R</think>A `<think>", "ab ``"),
    "blocks after a backtick": ("<think>R</think>A ` ", "<think>x</think>"),
    "code": ("<think>R</think>A", "`<think>` "),
    "nested": ("", "<think>"),
    "mentions": ("", "<think><think></think>"),
    "fragments": ("", "<think>The</think>"),
    "headers": ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>a<|channel|>analysis<|message|>"),
    "endless header": ("<|channel|>analysis<|message|>", "<|channel|>aaaaaaaa"),
    "blanks": ("<think>", " "),
    "words": ("<think>", "word "),
    "closes in a fence": ("```\n", "</think>"),
    "code before a close": ("", "`</think>` "),
}


@pytest.mark.parametrize("mode", [False, "auto", "late"])
@pytest.mark.parametrize("name", HARD)
def test_time_is_linear_in_the_text(name: str, mode: StartsInside | Literal["late"]) -> None:
    prefix, unit = HARD[name]
    starts_inside: StartsInside = False if mode == "late" else mode

    def seconds(step: int, size: int) -> float:
        source = prefix + unit * (size // len(unit))
        began = time.process_time()
        splitter = Splitter(None, "anywhere", starts_inside, late=mode == "late")
        for at in range(0, len(source), step):
            splitter.feed(source[at : at + step])
        splitter.finish()
        return time.process_time() - began

    for step in (1, 10**9):
        check_linear(partial(seconds, step), 2_000)


@pytest.mark.parametrize("text", ["Okay, a secret plan", "  \n", "a <thi", "`code` and so on"])
def test_undecided_text_is_thinking_when_a_text_breaks_off(text: str) -> None:
    for pieces in ([text], list(text)):
        splitter = Splitter(["think"], starts_inside="auto")
        came = [piece for part in pieces for piece in splitter.feed(part)] + splitter.finish(cut=True)
        assert "".join(words for _, is_thinking, words in came if is_thinking).strip() == text.strip()
        assert not any(not is_thinking for _, is_thinking, _ in came)
    decided = Splitter(["think"], starts_inside="auto")
    assert decided.feed("plan</think>42") + decided.finish(cut=True) == [
        (0, Channel.THINKING, "plan"),
        (1, Channel.ANSWER, "42"),
    ]


@pytest.mark.parametrize(
    ("text", "grammar", "began_inside"),
    [
        ("no tags", "", False),
        ("<think>a</think>b", "think", False),
        ("a</seed:think>b", "seed", True),
        ("</think>b", "think", True),
        ("```\na</think>b", "think", True),
        ("`</think>` b", "", False),
        ("Write <think>x</think>", "", False),
        ("<think/>b", "think", False),
    ],
)
def test_a_splitter_tells_the_grammar_and_a_lone_close(text: str, grammar: str, began_inside: bool) -> None:
    for pieces in ([text], list(text)):
        for splitter in (Splitter(starts_inside="auto"), Splitter(late=True)):
            for piece in pieces:
                splitter.feed(piece)
            splitter.finish()
            assert (splitter.grammar, splitter.began_inside) == (grammar, began_inside)
