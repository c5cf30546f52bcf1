"""`separate_many` and `RowSeparator`: rows in, rows with new columns out, also with pandas, polars and datasets."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import asides

ROWS = [
    {"id": 1, "response": "<think>6 times 7</think>42"},
    {"id": 2, "response": "Paris"},
    {"id": 3, "response": "<think>They ask"},
]
COLUMNS = [("42", "6 times 7"), ("Paris", None), ("", "They ask")]


def test_rows_come_back_with_new_columns_and_are_not_changed() -> None:
    found = list(asides.separate_many(ROWS, "response"))
    assert [(row["answer"], row["thinking"]) for row in found] == COLUMNS
    assert [row["verdict"] for row in found] == ["closed", "none", "unclosed"]
    assert [row["id"] for row in found] == [1, 2, 3]
    assert list(ROWS[0]) == ["id", "response"]


def test_texts_and_bad_rows_never_raise() -> None:
    texts = [row["response"] for row in ROWS]
    assert [(row["answer"], row["thinking"]) for row in asides.separate_many(texts)] == COLUMNS  # type: ignore[arg-type]
    rows: list[dict[str, Any]] = [{"response": None}, {}, {"response": "a", "answer": "b"}]
    assert [row["verdict"] for row in asides.separate_many(rows, "response")] == ["unreadable"] * 3


def test_memory_is_bounded() -> None:
    def make() -> Iterator[str]:
        for number in range(6_000):
            yield f"<think>{number}</think>" + "x" * 1000

    list(asides.separate_many(["<think>a</think>b"]))
    tracemalloc.start()
    assert sum(len(row["answer"]) for row in asides.separate_many(make())) == 6_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_arguments_are_checked_before_the_first_row() -> None:
    with pytest.raises(asides.ConfigError, match="takes one of column=, messages= and response="):
        asides.separate_many([], "a", messages="b")
    with pytest.raises(asides.ConfigError, match=r"unknown format 'jinja'\. Use one of think-tags"):
        asides.separate_many([], messages="b", to="jinja")
    with pytest.raises(asides.ConfigError, match="no tag grammar is called 'nonsense'"):
        asides.separate_many([], tags=("nonsense",))
    with pytest.raises(asides.ConfigError, match="same name"):
        asides.separate_many([], "a", answer="x", thinking="x")


_CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "<think>t</think>a"}]
_HARMONY = (
    "<|start|>user<|message|>q<|end|><|start|>assistant<|channel|>analysis<|message|>t<|end|>"
    "<|start|>assistant<|channel|>final<|message|>a<|return|>"
)


@pytest.mark.parametrize(
    "conversation",
    [
        _CHAT,
        {"messages": _CHAT},
        [{"role": "user", "content": "q"}, {"role": "assistant", "reasoning_content": "t", "content": "a"}],
        [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]},
        ],
        [{"role": "user", "parts": [{"text": "q"}]}, {"role": "model", "parts": [{"text": "<think>t</think>a"}]}],
        [
            {"role": "user", "parts": [{"text": "q"}]},
            {"role": "model", "parts": [{"text": "t", "thought": True}, {"text": "a"}]},
        ],
        [{"from": "human", "value": "q"}, {"from": "gpt", "value": "<think>t</think>a"}],
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "<think>t</think>a"}]},
        {"model": "m", "messages": _CHAT, "temperature": 1, "id": 5, "tools": []},
        [{"role": "user", "content": "q"}, {"role": "assistant", "thinking": "t", "content": "a"}],
        [{"role": "human", "content": "q"}, {"role": "gpt", "content": "<think>t</think>a"}],
        [{"role": "user", "content": "q"}, {"role": "model", "content": "<think>t</think>a"}],
        [
            {"role": "user", "content": "q"},
            {"role": "assistant", "reasoning_content": "<think>t</think>", "content": "a"},
        ],
        [{"role": "user", "content": "q"}, {"role": "assistant", "reasoning": "<think>t", "content": "a"}],
        [{"role": "user", "content": "q"}, {"role": "assistant", "reasoning_content": "t</think>", "content": "a"}],
        [
            {"role": "user", "content": "q", "thinking": None, "tool_calls": None},
            {"role": "assistant", "thinking": "t", "content": "a", "tool_calls": None, "name": None},
        ],
        _HARMONY,
        "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>t</think>\n\na<|im_end|>\n",
        '[{"role": "user", "content": "q"}, {"role": "assistant", "content": "<think>t</think>a"}]',
    ],
)
def test_conversations_in_every_format(conversation: Any) -> None:
    row = next(asides.separate_many([{"chat": conversation}], messages="chat", to="harmony"))
    assert (row["verdict"], row["answer"], row["thinking"]) == ("closed", ["a"], ["t"])
    assert row["chat"] == _HARMONY


_LONG = "They want the product, so I multiply six by seven."


@pytest.mark.parametrize(
    ("conversation", "verdict"),
    [
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "<think>t"}], "unclosed"),
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "reasoning_content": "t"}], "closed"),
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "reasoning": "all"}], "empty_answer"),
        ([{"role": "assistant", "content": f"{_LONG}\n42", "reasoning_content": _LONG}], "stray_tag"),
        ([{"role": "assistant", "content": _LONG, "reasoning_content": f"{_LONG}\n"}], "stray_tag"),
        ([{"role": "assistant", "content": "42", "reasoning_content": "42"}], "closed"),
        ([{"role": "assistant", "content": "", "reasoning_content": "<think>t</think>42"}], "stray_tag"),
        ([{"role": "assistant", "content": "<think>t</think>A <think> b </think>", "thinking": ""}], "stray_tag"),
        ("<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>t<|im_end|>\n", "unclosed"),
        ([{"role": "user", "content": "q"}], "unreadable"),
        ([{"role": "nobody", "content": "q"}], "unreadable"),
        ("neither JSON nor marks", "unreadable"),
        (5, "unreadable"),
        (None, "unreadable"),
    ],
)
def test_conversations_have_a_verdict(conversation: Any, verdict: str) -> None:
    assert next(asides.separate_many([{"chat": conversation}], messages="chat"))["verdict"] == verdict


@pytest.mark.parametrize(
    ("tagged", "verdict", "thinking"),
    [("t u", "closed", "t u"), ("\n t\nu \n", "closed", "t u"), ("v", "stray_tag", "t u\n\nv")],
)
def test_thinking_that_is_in_a_field_and_in_tags_is_kept_once(tagged: str, verdict: str, thinking: str) -> None:
    said = {"role": "assistant", "reasoning_content": "t u", "content": f"<think>{tagged}</think>a"}
    chat = [{"role": "user", "content": "q"}, said]
    row = next(asides.separate_many([{"chat": chat}], messages="chat", to="reasoning_content"))
    assert (row["verdict"], row["answer"], row["thinking"]) == (verdict, ["a"], [thinking])
    if verdict == "closed":
        assert row["chat"][1:] == [{"role": "assistant", "reasoning_content": "t u", "content": "a"}]
    body = {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": said}]}
    row = next(asides.separate_many([body], response=True))
    assert (row["verdict"], row["answer"], row["thinking"]) == (verdict, "a", thinking)


_HERMES_CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parametrize("result", ["<tool_response>\nr\n</tool_response>", "<tool_response>r</tool_response>\n", "r"])
@pytest.mark.parametrize("said", [f"<think>t</think>\n{_HERMES_CALL}", f"<think>\nt\n</think>{_HERMES_CALL}\n"])
def test_calls_in_tags_are_read_in_sharegpt(said: str, result: str) -> None:
    chat = [
        {"from": "human", "value": "q"},
        {"from": "gpt", "value": said},
        {"from": "tool", "value": result},
        {"from": "gpt", "value": "a"},
    ]
    row = next(asides.separate_many([{"chat": chat}], messages="chat", to="harmony"))
    assert (row["verdict"], [each.strip() for each in row["answer"]]) == ("closed", ["", "a"])
    assert row["chat"] == (
        "<|start|>user<|message|>q<|end|><|start|>assistant<|channel|>analysis<|message|>t<|end|>"
        '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
        "<|start|>functions.f to=assistant<|channel|>commentary<|message|>r<|end|>"
        "<|start|>assistant<|channel|>final<|message|>a<|return|>"
    )


def test_text_after_a_call_is_kept_and_tags_without_a_call_are_text() -> None:
    chat = [{"from": "human", "value": "q"}, {"from": "gpt", "value": f"x {_HERMES_CALL} y"}]
    assert next(asides.separate_many([{"chat": chat}], messages="chat"))["answer"] == ["x  y"]
    text = f"<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nx {_HERMES_CALL} y<|im_end|>\n"
    assert next(asides.separate_many([{"chat": text}], messages="chat"))["answer"] == ["x  y"]
    chat[1]["value"] = "Write <tool_call> and </tool_call> around it."
    assert next(asides.separate_many([{"chat": chat}], messages="chat"))["answer"] == [chat[1]["value"]]


@pytest.mark.parametrize(
    "chat",
    [
        [{"role": "developer", "content": "Be kind."}, *_CHAT],
        {"messages": [{"role": "developer", "content": "Be kind."}, *_CHAT]},
        f"<|start|>developer<|message|>Be kind.<|end|>{_HARMONY}",
    ],
)
def test_a_role_that_changes_is_noted(chat: Any) -> None:
    separator = asides.RowSeparator(messages="chat", to="harmony")
    found = separator.separate({"chat": chat}, "chat")
    assert (found.verdict, found.note) == ("closed", "the role developer became system")


def test_every_turn_of_a_model_has_an_entry() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "<think>one</think>", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "assistant", "content": "two</think>done"},
    ]
    row = next(asides.separate_many([{"chat": chat}], messages="chat"))
    assert (row["verdict"], row["answer"], row["thinking"]) == ("lone_close", ["", "done"], ["one", "two"])


@pytest.mark.parametrize(
    ("body", "verdict", "answer", "thinking"),
    [
        ({"choices": [{"message": {"content": "<think>t</think>a"}, "finish_reason": "stop"}]}, "closed", "a", "t"),
        ({"choices": [{"message": {"content": "a", "reasoning": "t"}, "finish_reason": "stop"}]}, "closed", "a", "t"),
        ({"choices": [{"message": {"content": "<think>t"}, "finish_reason": "length"}]}, "unclosed", "", "t"),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "t", "signature": "s"}],
            },
            "empty_answer",
            "",
            "t",
        ),
        ({"error": "none"}, "unreadable", None, None),
    ],
)
def test_recorded_responses(body: Any, verdict: str, answer: str | None, thinking: str | None) -> None:
    row = next(asides.separate_many([body], response=True))
    assert (row["verdict"], row["answer"], row["thinking"]) == (verdict, answer, thinking)
    assert next(asides.separate_many([{"body": body}], "body", response=True))["verdict"] == verdict


def make_body(text: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **more}}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}


_CLAUDE = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn"}


@pytest.mark.parametrize(
    ("body", "verdict", "grammar", "answer"),
    [
        (make_body("<think>t</think>a"), "closed", "think", "a"),
        (make_body("t</think>a"), "lone_close", "think", "a"),
        (make_body("<thi t</think>a"), "stray_tag", "think", "a"),
        (make_body("<think>t</think>a</think>b"), "stray_tag", "think", "a</think>b"),
        (make_body("<think>t"), "unclosed", "think", ""),
        (make_body("a", reasoning_content="t"), "closed", "field", "a"),
        (make_body("a", reasoning_content="<think>t</think>"), "closed", "field", "a"),
        (make_body(f"{_LONG} 42", reasoning_content=_LONG), "stray_tag", "field", f"{_LONG} 42"),
        ({"id": "b", "custom_id": "r", "response": {"status_code": 200, "body": make_body("<think>t</think>a")},
          "error": None}, "closed", "think", "a"),
        ({"custom_id": "r", "result": {"type": "succeeded", "message": {**_CLAUDE,
          "content": [{"type": "text", "text": "<thinking>t</thinking>a"}]}}}, "closed", "thinking", "a"),
        ({"key": "r", "response": {"candidates": [{"content": {"role": "model",
          "parts": [{"text": "t", "thought": True}, {"text": "a"}]}, "finishReason": "STOP"}]}},
         "closed", "field", "a"),
        ({"custom_id": "r", "result": {"type": "errored", "error": {}}}, "unreadable", "", None),
        ({"id": "b", "custom_id": "r", "response": None, "error": {"code": "x"}}, "unreadable", "", None),
        ({"id": "x", "object": "text_completion", "model": "m", "choices": [
            {"index": 0, "text": "<think>t</think>a", "finish_reason": "stop"}]}, "closed", "think", "a"),
        ({"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": "<think>t</think>a", "done": True},
         "closed", "think", "a"),
    ],
)  # fmt: skip
def test_tags_in_recorded_responses_and_lines_of_batches(
    body: Any, verdict: str, grammar: str, answer: str | None
) -> None:
    found = asides.RowSeparator(response=True).separate(body, None)
    assert (found.verdict, found.grammar, found.answer) == (verdict, grammar, answer)
    assert found.thinking in (None, "t", "<thi t", _LONG)


def test_a_second_choice_is_noted() -> None:
    body = make_body("<think>t</think>a")
    body["choices"].append({**body["choices"][0], "index": 1})
    found = asides.RowSeparator(response=True).separate(body, None)
    assert (found.answer, found.note) == ("a", "the response has several choices, and only the first is separated")
    assert asides.RowSeparator(response=True).separate(make_body("a"), None).note == ""


def test_a_text_becomes_a_conversation_with_its_question() -> None:
    separator = asides.RowSeparator(column="a", prompt="q", to="sharegpt", into="chat")
    assert separator({"q": "why?", "a": "<think>t</think>so"})["chat"] == [
        {"from": "human", "value": "why?"},
        {"from": "gpt", "value": "<think>\nt\n</think>\n\nso"},
    ]


_BLOCKS = [{"type": "thinking", "thinking": "t", "signature": "SIGNED"}, {"type": "text", "text": "a"}]


def test_a_signature_is_kept_or_noted() -> None:
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": _BLOCKS}]
    kept = asides.RowSeparator(messages="chat", to="messages-anthropic").separate({"chat": chat}, "chat")
    assert (kept.turns["messages"][1]["content"], kept.note) == (_BLOCKS, "")
    lost = asides.RowSeparator(messages="chat", to="think-tags").separate({"chat": chat}, "chat")
    assert lost.turns[1]["content"] == "<think>\nt\n</think>\n\na"
    assert (lost.verdict, lost.note) == ("closed", "the format think-tags has no place for signatures of thoughts")


def test_the_system_prompt_and_tools_beside_messages_are_not_lost() -> None:
    chat = {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "system": "S"}
    separator = asides.RowSeparator(messages="chat", to="reasoning_content")
    found = separator.separate({"chat": {**chat, "tools": "[]"}}, "chat")
    assert [turn["role"] for turn in found.turns] == ["system", "user", "assistant"]
    for tools in ('[{"name": "f"}]', [{"name": "f"}]):
        value = {**chat, "tools": tools}
        for found in (separator.separate({"chat": each}, "chat") for each in (value, json.dumps(value))):
            assert (found.verdict, found.turns) == ("unreadable", None)
            assert "definitions of tools" in found.reason
            assert found.answer == ["a"]


def test_what_a_format_cannot_hold_is_undecided() -> None:
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "see <|end|> here"}]
    row = next(asides.separate_many([{"chat": chat}], messages="chat", to="harmony"))
    assert (row["verdict"], row["chat"]) == ("unreadable", chat)


# --- other libraries --------------------------------------------------------------------------------------------------


def test_pandas() -> None:
    pd = import_module("pandas")
    df = pd.DataFrame(ROWS, index=[7, 8, 9])
    df = df.join(pd.DataFrame(asides.separate_many(df["response"]), index=df.index))
    assert df["answer"].tolist() == ["42", "Paris", ""]
    assert df.loc[9, "verdict"] == "unclosed"


def test_polars() -> None:
    pl = import_module("polars")
    df = pl.DataFrame(ROWS)
    columns = dict.fromkeys(("answer", "thinking", "commentary", "verdict"), pl.String)
    df = df.hstack(pl.DataFrame(list(asides.separate_many(df["response"])), schema=columns))
    assert df["thinking"].to_list() == ["6 times 7", None, "They ask"]
    # The type of a column does not depend on its first rows.
    texts = ["plain"] * 1500 + ["<think>t</think>a"]
    df = pl.DataFrame(list(asides.separate_many(texts)), schema=columns)
    assert df["thinking"].to_list() == [None] * 1500 + ["t"]


def test_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = import_module("datasets")
    separator = asides.RowSeparator(column="response", verdict="verdict")
    assert pickle.loads(pickle.dumps(separator)) == separator
    ds = datasets.Dataset.from_list(ROWS).map(separator)
    assert [(row["answer"], row["thinking"]) for row in ds] == COLUMNS
    assert ds["verdict"][:] == ["closed", "none", "unclosed"]


def test_the_key_of_a_cached_map_is_the_same_in_every_process() -> None:
    program = (
        "import pickle, asides; from datasets.fingerprint import Hasher; "
        "each = asides.RowSeparator(column='response'); other = asides.RowSeparator(column='text'); "
        "print(*map(Hasher.hash, (each, pickle.loads(pickle.dumps(each)), other)))"
    )
    found = set[str]()
    for seed in ("1", "2"):
        variables = os.environ | {"PYTHONHASHSEED": seed, "HF_HUB_OFFLINE": "1"}
        run = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True)
        each, copy, other = run.stdout.split()
        assert each == copy != other
        found.add(each)
    assert len(found) == 1
