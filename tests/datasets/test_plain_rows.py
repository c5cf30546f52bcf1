"""Law: rows that are separated in their JSON become what the ordinary way makes of them, byte for byte."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.datasets.block_job import BlockJob, separate_block
from asides.datasets.plain_rows import separate_plain
from asides.datasets.rows import Block
from asides.datasets.separator import RowSeparator

SEPARATOR = RowSeparator(column="r", verdict="verdict")
_TAGS = ("<think>", "</think>", "<think>", "</think>", "[THINK]", "[/THINK]", "◁think▷", "think>", "ought", "ght\n")
_CODE = ("`", "```\n", "~~~\n", "    x", "[1]", "|", "|>", "<|", "◁", "<", ">")
_TEXT = ("\n", "\n\n", " ", "a", "So it is.", "é", "\u00a0", "\u2028", "\u0085", "\ufeff", "😀", "\x7f")
_ESCAPED = ('"', "\\", "/", "\\u0041", "\\n", "\t", "\r", "\f", "\b")
PIECES = st.lists(st.sampled_from((*_TAGS, *_CODE, *_TEXT, *_ESCAPED)), max_size=9).map("".join)
TEXTS = PIECES | st.tuples(PIECES, PIECES).map(lambda each: f"<think>{each[0]}</think>{each[1]}")


def separate(line: bytes, *, ordinary: bool) -> tuple[list[bytes], dict[str, int], dict[str, int]]:
    # A report with content needs the texts, and so the ordinary way.
    result = separate_block(Block(1, 1, (line,)), BlockJob(SEPARATOR, show=int(ordinary)))
    return result.lines, result.tally.verdicts, result.tally.grammars


@given(TEXTS, st.sampled_from(["msgspec", "ascii", "unicode", "slashes", "spaces"]))
def test_law_fast_equals_ordinary(text: str, writer: str) -> None:
    row = {"id": 1, "r": text}
    line = {
        "msgspec": msgspec.json.encode(row),
        "ascii": json.dumps(row).encode(),
        "unicode": json.dumps(row, ensure_ascii=False).encode(),
        "slashes": json.dumps(row).replace("/", "\\/").replace("<", "\\u003c").encode(),
        "spaces": json.dumps(row, indent=1).replace("\n", " ").encode(),
    }[writer]
    assert separate(line, ordinary=False) == separate(line, ordinary=True)


@pytest.mark.parametrize("text", ["<think>a</think>b", '<think>\nSo "x".\n</think>\n\nIt\'s | é [1] `b`.\n'])
def test_common_rows_are_plain(text: str) -> None:
    found = separate_plain(msgspec.Raw(msgspec.json.encode(text)))
    assert found is not None
    line = msgspec.json.encode({"r": text})
    assert separate(line, ordinary=False) == separate(line, ordinary=True)
