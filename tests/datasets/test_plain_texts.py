"""Law: texts that are separated without a splitter become what a splitter makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.datasets.separation import TagSettings, separate_ordinary, separate_plain, separate_text
from asides.wire.inline_tags.scanner import CodeSpans, ends_in_code

_TAGS = ("<think>", "</think>", "<think>", "</think>", "[THINK]", "[/THINK]", "◁think▷", "think>", "ought", "ght\n")
_HALVES = (
    "< think >",
    "<\nTHINK",
    "</ th",
    "</thi ",
    "/think>",
    "<THI",
    "[t",
    "&lt;think",
    "<details type=",
    "analysis",
)
_CODE = ("`", "``", "```\n", "~~~\n", "    x", "[1]", "|", "|>", "<|", "◁", "<", "< b", "<b>", "</b>", ">", "/", "&lt;")
_TEXT = (
    "\n",
    "\n\n",
    " ",
    "a",
    "So it is.",
    "é",
    "\u00a0",
    "\u2028",
    "\u0085",
    "\ufeff",
    "\u200b",
    "😀",
    "\x7f",
    "K",
    "ſ",
)
PIECES = st.lists(st.sampled_from((*_TAGS, *_HALVES, *_CODE, *_TEXT)), max_size=9).map("".join)
TEXTS = PIECES | st.tuples(PIECES, PIECES).map(lambda each: f"<think>{each[0]}</think>{each[1]}")


@given(TEXTS)
def test_law_plain_equals_ordinary(text: str) -> None:
    plain = separate_plain(text)
    assert plain in (None, separate_ordinary(text, TagSettings()))


@pytest.mark.parametrize(
    "text",
    [
        "<think>a</think>b",
        '<think>\nSo "x".\n</think>\n\nIt\'s | é [1] `b`.\n',
        "<think>if a < b and <b> or </i>, then `x` / 2\n```\ncode\n```\n</think>\n`<br>` | [see](https://x.y/z) a < b",
        "Nothing but an answer: `x < y` [1].",
    ],
)
def test_common_texts_are_plain(text: str) -> None:
    plain = separate_plain(text)
    assert plain is not None
    assert plain == separate_ordinary(text, TagSettings()) == separate_text(text, TagSettings())


@pytest.mark.parametrize(
    "text", ["", " ", "<think>a", "<think> </think>a", "<think>`</think>a", "b <thi", "a</think>b"]
)
def test_other_texts_are_not(text: str) -> None:
    assert separate_plain(text) is None


@given(PIECES)
def test_law_text_without_a_fence_ends_in_code_as_its_last_line(text: str) -> None:
    code = CodeSpans()
    code.unread.append(text)
    code.read()
    assert ends_in_code(text) is bool(code.fence or code.inline)
