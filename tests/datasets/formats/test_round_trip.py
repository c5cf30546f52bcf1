"""Law: a conversation that is written in a format is read back as it was, in every format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.datasets.formats import FORMATS, FormatError, list_turns
from asides.values.messages import Message
from asides.values.parts import Commentary, Part, Text, ToolCall, ToolResult
from asides.values.thinking import Thought

_NO_COMMENTARY = {"messages-anthropic", "chatml-qwen", "sharegpt"}
_NAMES = st.sampled_from(["search", "run_code", "get-weather"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_PLAIN = st.text(st.characters(exclude_characters="<>|", exclude_categories=["Cs"]), min_size=1, max_size=30)
_MARKED = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<|end|>", "<|im_end|>", "<tool_call>", "\n", "\n\n", " ", "a", "`", "<|start|>"]
    ),
    min_size=1,
    max_size=6,
).map("".join)


@st.composite
def conversations(draw: st.DrawFn, texts: st.SearchStrategy[str], *, commentary: bool) -> tuple[Message, ...]:
    messages: list[Message] = [Message("system", (Text(draw(texts)),))] if draw(st.booleans()) else []
    count = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append(Message("user", (Text(draw(texts)),)))
        for _ in range(draw(st.integers(1, 3))):
            parts: list[Part] = []
            for kind in draw(st.lists(st.sampled_from("tttxc" if commentary else "tttx"), min_size=1, max_size=5)):
                text = draw(texts)
                made: dict[str, Part] = {"t": Thought(text), "x": Text(text), "c": Commentary(text)}
                parts.append(made[kind])
            calls = [
                ToolCall(
                    f"id{count + number}", draw(_NAMES), draw(st.dictionaries(st.text(max_size=5), _JSON, max_size=3))
                )
                for number in range(draw(st.integers(0, 2)))
            ]
            count += len(calls)
            messages.append(Message("assistant", (*parts, *calls)))
            if calls:
                messages.append(Message("tool", tuple(ToolResult(call.id, draw(texts)) for call in reversed(calls))))
    return tuple(messages)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_law_there_and_back_is_equal(name: str, data: st.DataObject) -> None:
    messages = data.draw(conversations(_PLAIN, commentary=name not in _NO_COMMENTARY))
    written = FORMATS[name].write(messages)
    assert list_turns(FORMATS[name].read(written)) == list_turns(messages)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_law_a_text_with_marks_comes_back_or_is_refused(name: str, data: st.DataObject) -> None:
    messages = data.draw(conversations(_MARKED, commentary=True))
    try:
        written = FORMATS[name].write(messages)
    except FormatError:
        return
    assert list_turns(FORMATS[name].read(written)) == list_turns(messages)
