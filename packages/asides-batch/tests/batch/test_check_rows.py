"""A dry run: all problems with their lines, an estimate, and nothing sent."""

from __future__ import annotations

from pathlib import Path

import pytest

import asides_batch


def test_a_check_names_every_problem_and_sends_nothing(tmp_path: Path) -> None:
    rows = tmp_path / "in.jsonl"
    rows.write_text(
        '"same"\n"same"\nnonsense\n{"prompt": "x", "model": "nobody:m"}\n{"prompt": "y", "max_tokens": 0}\n'
        '{"prompt": "z", "thinking": "lots"}\n',
        encoding="utf-8",
    )
    batch = asides_batch.Batch(rows, output=tmp_path / "out.jsonl", model="groq:m")  # There is no key either.
    check = batch.check()
    assert (check.rows, check.requests, check.failed, len(check.problems)) == (2, 1, 4, 4)
    first, *others = check.problems
    assert "line 3 is not JSON" in first
    assert ["line 4" in others[0], "nobody" in others[0], "max_tokens" in others[1], "lots" in others[2]] == [True] * 4
    assert check.input_tokens > 0
    assert check.most_output_tokens is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_a_check_adds_up_what_is_asked_once(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    rows = [{"prompt": "a" * 4000}] * 5 + [{"prompt": "b"}]
    check = asides_batch.Batch(rows, output=tmp_path / "o", model="openai:gpt-4o", max_tokens=100).check()
    assert (check.rows, check.requests, check.most_output_tokens) == (6, 2, 200)
    assert check.input_cost is not None
    assert check.most_cost is not None
    assert check.input_cost < check.most_cost
    assert check.problems == ()


def test_ids_that_are_not_unique_are_a_problem(tmp_path: Path) -> None:
    rows = [{"id": 1, "prompt": "a"}, {"id": 1, "prompt": "b"}]
    check = asides_batch.Batch(rows, output=tmp_path / "o", model="groq:m").check()
    assert check.problems == ("rows 1 and 2 have the same id. Give each its own, or none.",)
