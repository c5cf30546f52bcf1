"""The rows of `ask --each`, in and out of order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.batch_rows import read_row
from asides.cli.question_rows import count_questions, open_questions


def read(row: Any) -> Any:
    return read_row(row, 0, "here")


@pytest.mark.parametrize(
    "row",
    [
        "What?",
        {"prompt": "What?"},
        {"question": "What?"},
        {"prompt": "What?", "id": 7, "system": None},
    ],
)
def test_a_question_has_several_forms(row: Any) -> None:
    assert (read(row).prompt, read(row).options) == ("What?", {})


def test_a_row_has_options_and_fields_of_its_own() -> None:
    messages = [{"role": "user", "content": "What?"}]
    row = {"messages": messages, "id": "a", "system": "S", "model": "groq:m", "thinking": 0, "seed": 1, "expected": [4]}
    question = read(row)
    assert (question.prompt, question.id, question.model) == (messages, "a", "groq:m")
    assert question.options == {"system": "S", "thinking": 0, "seed": 1}
    assert question.rest == {"expected": [4]}


def test_a_fingerprint_is_of_the_content_and_not_of_the_id_or_the_order_of_fields() -> None:
    one = read({"prompt": "a", "system": "s", "id": 1}).fingerprint
    assert one == read({"system": "s", "prompt": "a"}).fingerprint
    others = [{"prompt": "b", "system": "s"}, {"prompt": "a"}, "a", {"prompt": "a", "system": "s", "model": "x:y"}]
    assert one not in [read(other).fingerprint for other in others]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (7, "text or an object, not int"),
        (None, "text or an object, not NoneType"),
        (["a"], "text or an object, not list"),
        ({}, "has no question"),
        ({"prompt": "a", "question": "b"}, "has prompt and question"),
        ({"promt": "a"}, "did you mean prompt?"),
        ({"prompt": "a", "sytem": "b"}, "did you mean system?"),
        ({"prompt": " "}, "not empty"),
        ("", "not empty"),
        ({"messages": []}, "not empty"),
        ({"prompt": {"text": "a"}}, "text, or a list of messages"),
        ({"prompt": "a", "id": [1]}, "id is text or a number"),
        ({"prompt": "a", "id": True}, "id is text or a number"),
        ({"prompt": "a", "model": ["a:b"]}, "model is text"),
        ({"prompt": "a", "base_url": "http://evil"}, "base_url does not come from a row"),
        ({"prompt": "a", "api_key": "k"}, "api_key does not come from a row"),
    ],
)
def test_a_wrong_row_is_named(row: Any, told: str) -> None:
    with pytest.raises(asides.ConfigError) as caught:
        read(row)
    assert str(caught.value).startswith("here")
    assert told in str(caught.value)


def test_a_text_file_has_a_question_a_line(tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_bytes(b"\xef\xbb\xbfWhat?\r\n\r\n  \nWhy \xc3\xbc?")
    assert count_questions(str(path)) == (2, frozenset())
    with open_questions(str(path)) as questions:
        assert [(question.index, question.prompt) for question in questions] == [(0, "What?"), (1, "Why ü?")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "has no questions"),
        (b"\n\n", "has no questions"),
        (b'"a"\nWhat?\n', "line 2 is not JSON"),
        (b"[" * 100_000, "line 1 is not JSON"),
        (b'"\xff"', "line 1 is not text in UTF-8"),
        (b'{"prompt": "a", "id": 1}\n{"prompt": "b", "id": 1}', "questions 1 and 2 have the same id"),
    ],
)
def test_a_wrong_file_is_named_before_anything_is_asked(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(content)
    with pytest.raises(asides.ConfigError) as caught:
        count_questions(str(path))
    assert told in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(asides.ConfigError, match="cannot be read"):
        count_questions(str(tmp_path / "nothing.jsonl"))


def test_the_same_question_may_be_asked_twice(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(
        "\n".join(json.dumps(row) for row in ("a", "a", {"prompt": "a", "id": 1}, {"prompt": "a", "id": 2}))
    )
    with open_questions(str(path)) as questions:
        (fingerprint,) = {question.fingerprint for question in questions}
    assert count_questions(str(path)) == (4, frozenset({fingerprint}))
