"""The forms of a row that batches and `ask --each` share. Those of `--each` are in tests/cli/test_question_rows.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides
from asides.batch_rows import encode_canonical, read_good_lines, read_lines, read_row
from asides.values.errors import ConfigError
from asides.values.messages import Prompt

ASKS: dict[str, Any] = {"messages": [{"role": "user", "content": "?"}]}


def read(row: Any) -> Any:
    return read_row(row, 0, "here")


@pytest.mark.parametrize(
    "row",
    [
        "What?",
        {"question": "What?", "id": 1, "other": [2]},
        {"messages": [{"role": "user", "content": "What?"}], "system": "S", "model": "groq:m", "thinking": "low"},
        {
            "custom_id": "x",
            "url": "/v1/chat/completions",
            "body": {"model": "m", **ASKS},
        },
    ],
)
def test_what_is_asked_can_be_read_back(row: Any) -> None:
    question = read(row)
    again = read(json.loads(encode_canonical(question.content)))
    assert (again.prompt, again.model, again.options) == (question.prompt, question.model, question.options)
    assert again.content == question.content
    assert "id" not in question.content
    assert "other" not in question.content


def test_a_text_and_a_prompt_ask_the_same() -> None:
    assert read("What?").content == read({"prompt": "What?"}).content == read({"question": "What?", "id": 2}).content


@pytest.mark.parametrize(
    ("row", "model"),
    [
        (
            {"url": "/v1/chat/completions", "body": {"model": "gpt-5", **ASKS}},
            "openai:gpt-5",
        ),
        ({"url": "/v1/responses", "body": {"model": "gpt-5", "input": "?"}}, "openai:gpt-5"),
        ({"body": {"model": "groq:llama", **ASKS}}, "groq:llama"),
        ({"body": {"model": "ft:gpt-5:me", **ASKS}}, "openai:ft:gpt-5:me"),
        (
            {"params": {"model": "claude", "max_tokens": 5, **ASKS}},
            "anthropic:claude",
        ),
    ],
)
def test_rows_of_vendors_files(row: dict[str, Any], model: str) -> None:
    question = read({"custom_id": "mine", "method": "POST", **row})
    assert (question.id, question.model, question.is_vendor_form) == ("mine", model, True)
    assert isinstance(question.prompt, Prompt)
    assert question.prompt.messages[-1].text == "?"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"body": []}, "the object body"),
        ({"body": {}, "method": "GET"}, "method POST"),
        ({"body": {"model": "m"}}, "messages is missing"),
        ({"body": {"messages": []}}, "model"),
        (
            {
                "custom_id": [],
                "params": {"model": "m", "max_tokens": 1, **ASKS},
            },
            "custom_id is text",
        ),
        ({"url": "/v1/files", "body": {}}, "not an endpoint that replies"),
    ],
)
def test_a_wrong_row_of_a_vendors_file(row: Any, problem: str) -> None:
    with pytest.raises(asides.ConfigError, match=f"^here.*{problem}"):
        read(row)


def test_a_body_beside_a_prompt_is_a_field_of_the_caller() -> None:
    assert read({"prompt": "What?", "body": "mine"}).rest == {"body": "mine"}


def test_reading_goes_on_after_a_wrong_line_if_it_shall() -> None:
    lines = [b'\xef\xbb\xbf"a"\n', b"\n", b"{\n", b'"b"\n', b"\xff\n", b'"c"']
    problems: list[str] = []
    questions = list(read_good_lines(lines, "file", lambda problem: problems.append(str(problem))))
    assert [(question.index, question.prompt) for question in questions] == [(0, "a"), (1, "b"), (2, "c")]
    assert [problem[:14] for problem in problems] == ["file, line 3 i", "file, line 5 i"]
    with pytest.raises(asides.ConfigError, match="file, line 3"):
        list(read_lines(lines, "file"))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_what_is_no_number_of_json_is_refused(number: str) -> None:
    """It is copied to the answer, and a line with it can be read by few programs."""
    with pytest.raises(ConfigError, match=r"line 1 has .* not a JSON number"):
        list(read_lines([f'{{"prompt": "?", "score": {number}}}'.encode()], "rows.jsonl"))
