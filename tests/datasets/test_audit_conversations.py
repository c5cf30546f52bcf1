"""A whole conversation in one text has places for thinking: only its answers are checked, and no turn is removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.datasets.audit import make_settings
from asides.datasets.audit_files import audit_file
from asides.datasets.audit_report import FileReport
from asides.datasets.audit_text import check_text, list_tags
from asides.datasets.formats import FORMATS

THOUGHT = "They want the product, so I multiply six by seven."
CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "What is 6 * 7?"},
    {"role": "assistant", "reasoning_content": THOUGHT, "content": "42"},
    {"role": "user", "content": "And 2?"},
    {"role": "assistant", "reasoning_content": "Simple.", "content": "2"},
]
# These write the thinking into the content, where the audit looks for it.
IN_CONTENT = {"think-tags", "sharegpt"}
HARMONY = (
    "<|start|>user<|message|>q<|end|><|start|>assistant<|channel|>analysis<|message|>plan<|end|>"
    "<|start|>assistant<|channel|>final<|message|>%s<|return|>"
)
CHATML = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\nplan\n</think>\n\n%s<|im_end|>\n"


def kinds(row: object) -> list[tuple[str, bool]]:
    return [(each.kind, each.is_removed) for each in asides.audit([row])]


def clean(text: str) -> str:
    return check_text(text, list_tags(None, keeps_details=False), "auto").cleaned


@pytest.mark.parametrize("column", ["response", "messages", "text"])
@pytest.mark.parametrize("name", FORMATS)
def test_what_separate_writes_is_clean_and_a_copy_has_every_byte(name: str, column: str, tmp_path: Path) -> None:
    source, fixed = tmp_path / "rows.jsonl", tmp_path / "fixed.jsonl"
    rows = [
        *asides.separate_many([{"chat": CHAT}], messages="chat", to=name, into=column),
        *asides.separate_many([{column: f"<think>{THOUGHT}</think>42"}], column, to=name),
    ]
    source.write_text("".join(json.dumps({column: row[column]}) + "\n" for row in rows), encoding="utf-8")
    report = FileReport(str(source))
    found = list(audit_file(str(source), make_settings(None, "auto", None), report, fixed))
    if name in IN_CONTENT:
        assert [each.kind for each in found] == ["closed"] * 3
    else:
        assert found == []
        assert fixed.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("text", [HARMONY, CHATML, CHATML.removesuffix("<|im_end|>\n")])
@pytest.mark.parametrize(
    ("said", "kind", "left"),
    [
        ("42", None, "42"),
        ("<think>more</think>42", "closed", "42"),
        ("so 42</think>42", "lone_close", "42"),
        (f"{THOUGHT} 42", None, f"{THOUGHT} 42"),
    ],
)
def test_only_the_answers_are_checked(text: str, said: str, kind: str | None, left: str) -> None:
    if kind == "closed" and text != HARMONY:
        kind, left = None, said  # One more block of thinking before the answer.
    assert kinds({"text": text % said}) == ([] if kind is None else [(kind, True)])
    assert clean(text % said) == text % left


@pytest.mark.parametrize("text", [HARMONY, CHATML])
def test_a_copy_of_the_thinking_in_its_place_is_found(text: str) -> None:
    text = text.replace("plan", THOUGHT)
    assert kinds({"text": text % f"{THOUGHT}\n\n42"}) == [("copied", True)]
    assert clean(text % f"{THOUGHT}\n\n42") == text % "42"


def test_an_answer_that_ran_on_into_other_turns_is_checked() -> None:
    rest = "<|im_end|>\n<|im_start|>user\nand 2?<|im_end|>\n<|im_start|>assistant\n2"
    assert kinds({"response": f"<think>plan</think>42{rest}"}) == [("closed", True)]
    assert clean(f"<think>plan</think>42{rest}") == f"42{rest}"
    rest = "<|end|><|start|>user<|message|>and 2?<|end|>"
    reply = "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>42"
    assert kinds({"response": reply + rest}) == [("closed", True)]
    assert clean(reply + rest) == f"42{rest.removeprefix('<|end|>')}"


def test_a_message_with_its_header_is_no_conversation() -> None:
    text = "<|start|>assistant<|channel|>analysis<|message|>p<|end|><|start|>assistant<|channel|>final<|message|>42"
    assert kinds({"role": "assistant", "content": text}) == [("closed", True)]
    assert kinds({"text": text}) == []


_PIECES = st.lists(
    st.sampled_from(
        [
            "<think>", "</think>", "a ", "\n", "<|end|>", "<|im_end|>\n", "<|start|>user<|message|>q",
            "<|start|>assistant<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>final<|message|>",
            "<|start|>system<|message|>s", "<|im_start|>user\nq", "<|im_start|>assistant\n", "<|return|>", "```\n",
        ]
    ),
    max_size=9,
).map("".join)  # fmt: skip


@given(_PIECES)
def test_law_no_turn_of_another_speaker_is_removed(text: str) -> None:
    cleaned = clean(text)
    for turn in ("<|start|>user<|message|>q", "<|start|>system<|message|>s", "<|im_start|>user\nq"):
        assert cleaned.count(turn) == text.count(turn)


def test_rows_with_conversations_beside_others() -> None:
    row: dict[str, Any] = {"conversation": HARMONY % "42", "response": "<think>plan</think>42"}
    assert [each.path for each in asides.audit([row])] == ["$.response"]
