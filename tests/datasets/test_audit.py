"""`audit(rows)`: which texts of a row are answers, what is found in them, and that rows are not kept."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides import ConfigError
from asides.values.messages import Message
from asides.values.parts import Text
from asides.values.thinking import Thought

LEAK = "<think>a hidden plan</think>42"
LONG = "I have to look at this very carefully, twice in fact."


def places(*rows: object, **options: Any) -> list[tuple[str, str, str]]:
    return [(each.path, each.grammar, each.kind) for each in asides.audit(rows, **options)]


@pytest.mark.parametrize(
    ("row", "path"),
    [
        (LEAK, "$"),
        ({"response": LEAK}, "$.response"),
        (json.dumps({"response": LEAK}), "$.response"),
        (json.dumps({"response": LEAK}).encode(), "$.response"),
        ([{"role": "assistant", "content": LEAK}], "$[0].content"),
        ({"role": "assistant", "content": [{"type": "text", "text": LEAK}]}, "$.content[0].text"),
        ({"role": "model", "parts": [{"text": LEAK}]}, "$.parts[0].text"),
        (
            {"output": {"message": {"role": "assistant", "content": [{"text": LEAK}]}}},
            "$.output.message.content[0].text",
        ),
        ({"choices": [{"message": {"role": "assistant", "content": LEAK}}]}, "$.choices[0].message.content"),
        ({"type": "ai", "content": LEAK}, "$.content"),
        ({"lc": 1, "type": "constructor", "id": ["x", "AIMessage"], "kwargs": {"content": LEAK}}, "$.kwargs.content"),
        ({"kind": "response", "parts": [{"part_kind": "text", "content": LEAK}]}, "$.parts[0].content"),
        ({"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": [LEAK]}}, "$.content.parts[0]"),
        ({"question": "?", "answer": LEAK, "type": "math reasoning"}, "$.answer"),
        ({"prompt": "?", "chosen": LEAK, "rejected": "42"}, "$.chosen"),
        ({"prompt_response": LEAK}, "$.prompt_response"),
        ({"content_without_reasoning": LEAK}, "$.content_without_reasoning"),
        ({"input": [{"role": "assistant", "content": LEAK}]}, "$.input[0].content"),
        ({"response_json": json.dumps({"message": {"content": LEAK}})}, "$.response_json.message.content"),
        ({"a b": LEAK}, '$["a b"]'),
        (Message("assistant", (Thought("placed"), Text(LEAK))), "$.parts[1].text"),
    ],
)
def test_an_answer_is_checked_in_every_format(row: object, path: str) -> None:
    assert places(row) == [(path, "think", "closed")]


@pytest.mark.parametrize(
    "row",
    [
        "42",
        "`<think>` opens it, and `</think>` closes it.",
        "```\n<think>plan</think>\n```",
        {"role": "user", "content": LEAK},
        {"role": "system", "content": [{"type": "text", "text": LEAK}]},
        {"role": "tool", "content": LEAK},
        {"role": "assistant", "content": "42", "tool_calls": [{"function": {"name": "f", "arguments": LEAK}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "input": {"text": LEAK}}]},
        {"role": "assistant", "content": "42", "reasoning_content": LEAK},
        {"role": "assistant", "content": "42", "thinking": LEAK, "reasoning": {"text": LEAK}},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": LEAK}, {"type": "text", "text": "42"}]},
        {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": LEAK}}}, {"text": "42"}]},
        {"role": "model", "parts": [{"text": LEAK, "thought": True}, {"text": "42"}]},
        {"role": "assistant", "channel": "analysis", "content": LEAK},
        {"role": "assistant", "phase": "commentary", "content": LEAK},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": LEAK}]},
        {"kind": "response", "parts": [{"part_kind": "thinking", "content": LEAK}]},
        {"author": {"role": "assistant"}, "content": {"content_type": "thoughts", "thoughts": [{"content": LEAK}]}},
        {"type": "human", "content": LEAK},
        {"from": "human", "value": LEAK},
        {"instruction": LEAK, "output": "42"},
        {"deepseek_reasoning": LEAK, "deepseek_solution": "42"},
        {"prompt": LEAK, "question": LEAK, "chat_template": LEAK},
        # The vocabulary of a tokenizer.
        {"added_tokens": [{"id": 1, "content": "<think>"}, {"id": 2, "content": "</think>"}]},
        Message("user", (Text(LEAK),)),
        Message("assistant", (Thought(LEAK), Text("42"))),
        {"n": 1, "x": None, "y": [True, 1.5]},
    ],
)
def test_what_is_in_its_place_or_of_somebody_else_is_not_reported(row: object) -> None:
    assert places(row) == []


@pytest.mark.parametrize(
    "row",
    [
        {"role": "assistant", "reasoning_content": LONG, "content": f"{LONG} 42"},
        {"role": "assistant", "reasoning": LONG, "content": [{"type": "text", "text": f"So: {LONG} 42"}]},
        {"output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": LONG}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": LONG}]},
        ]},
        {"thinking": LONG, "response": LONG},
        {"thinking": LONG.replace(" ", "\n"), "response": f"So: {LONG} 42"},
    ],
)  # fmt: skip
def test_reasoning_that_was_copied_into_the_answer_is_found(row: dict[str, Any]) -> None:
    (found,) = asides.audit([row])
    assert (found.kind, found.grammar, found.characters) == ("copied", "", len(LONG))


@pytest.mark.parametrize("answer", ["It is 42.", "It is 42. I am sure.", "So: It is 42. Sure.", "So it is: It is 42."])
def test_a_short_thought_may_be_a_part_of_the_answer(answer: str) -> None:
    assert places({"role": "assistant", "reasoning_content": "It is 42.", "content": answer}) == []


@pytest.mark.parametrize(
    ("answer", "is_removed"),
    [("I add six.\n\n42", True), (" I  add\tsix. \n42", True), ("42\n\nI add six.", False), ("42\nI add six. ", False)],
)
def test_a_short_thought_in_lines_of_its_own_is_a_copy(answer: str, is_removed: bool) -> None:
    (found,) = asides.audit([{"role": "assistant", "reasoning_content": "I add six.\n", "content": answer}])
    assert (found.kind, found.is_removed) == ("copied", is_removed)
    assert " ".join(found.text.split()) == "I add six."
    row = {"chat": [{"role": "assistant", "reasoning_content": "I add six.\n", "content": answer}]}
    assert next(asides.separate_many([row], messages="chat"))["verdict"] == "stray_tag"


def test_the_model_of_a_row_decides_about_its_tags() -> None:
    text = "Here is my thought process: a Here is my response: b"
    assert places({"response": text}) == []
    assert places({"response": text}, model="ibm-granite/granite-3.3-8b") == [("$.response", "granite", "closed")]
    (found,) = asides.audit([{"model": "ibm-granite/granite-3.3-8b", "messages": [{"role": "ai", "content": text}]}])
    assert (found.model, found.grammar) == ("ibm-granite/granite-3.3-8b", "granite")


def test_tags_and_position_are_those_of_separate() -> None:
    assert places("{{a}}b{{/a}}c", tags=[("{{a}}", "{{/a}}")]) == [("$", "{{a}}", "closed")]
    assert places("Now <think>a</think> b", position="leading") == []
    assert places("Now <think>a</think> b", position="anywhere") == [("$", "think", "closed")]
    with pytest.raises(ConfigError, match="no tag grammar is called 'x'"):
        asides.audit([], tags=["x"])
    with pytest.raises(ConfigError, match="position"):
        asides.audit([], position="nowhere")  # type: ignore[arg-type]


def test_a_block_of_an_export_is_found() -> None:
    text = '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> plan\n</details>\n42'
    assert places({"role": "assistant", "content": text}) == [("$.content", "details", "closed")]
    assert places("<details><summary>More</summary>text</details>") == []


def test_tags_that_were_escaped_for_html_are_found_and_stay() -> None:
    (found,) = asides.audit(["&lt;think&gt;plan&lt;/think&gt;42"])
    assert (found.kind, found.text, found.is_removed) == ("closed", "plan", False)
    assert places("Write &lt;think&gt; and &lt;/think&gt; around it.") == []


def test_findings_tell_no_content_unless_it_is_asked_for() -> None:
    (found,) = asides.audit([{"response": LEAK}])
    assert "hidden" not in repr(found)
    assert "hidden" not in str(found.to_dict())
    assert found.text == found.to_dict(thinking=True)["text"] == "a hidden plan"


def test_rows_are_read_one_by_one_and_not_kept() -> None:
    taken: list[int] = []

    def make(count: int) -> Iterator[dict[str, str]]:
        for number in range(count):
            taken.append(number)
            yield {"response": f"<think>{number} {'plan ' * 2000}</think>42"}

    findings = asides.audit(make(3))
    assert taken == []
    assert next(findings).row == 1
    assert taken == [0]

    def peak(count: int) -> int:
        tracemalloc.start()
        assert sum(1 for _ in asides.audit(make(count))) == count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(600) < 3 * peak(60)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text() | st.sampled_from([LEAK, "a</think>b"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.text(max_size=5)
                | st.sampled_from(["role", "type", "content", "parts", "key", "value", "stringValue", "kvlistValue"]),
                inner | st.sampled_from(["assistant", "user", "reasoning"]),
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_document_is_read(document: Any) -> None:
    row = {"response": LEAK, "rest": document}
    assert ("$.response", "think", "closed") in places(row)
