"""Rows in eight grammars, a tenth damaged on purpose: each is separated as it was made, or listed as undecided."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.datasets.damaged_rows import find_wrong_rows, separate_file, write_conversations, write_rows


@pytest.mark.parametrize("seed", [1, 2])
def test_every_row_is_right_or_undecided(seed: int, tmp_path: Path) -> None:
    source, output = tmp_path / "rows.jsonl", tmp_path / "separated.jsonl"
    write_rows(source, 4000, seed)
    tally = separate_file(source, output, 1)
    assert [row["truth"]["damage"] for row in find_wrong_rows(output)] == []
    # Not everything may be undecided: nine rows of ten are as models write them.
    assert tally.rows == 4000
    assert 0 < tally.undecided < 400
    assert tally.verdicts["closed"] > 3000


def test_thinking_in_the_wrong_field_is_separated_or_listed(tmp_path: Path) -> None:
    source, output = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    write_conversations(source, 2000, 3)
    tally = separate_file(source, output, 1, messages=True)
    assert list(find_wrong_rows(output)) == []
    assert tally.verdicts["stray_tag"] > 40
    assert tally.verdicts["empty_answer"] > 20
    assert tally.undecided < 200
