"""Law: a conversation that is written in a format is read back as it was, in every format."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.datasets.formats import FORMATS, FormatError, list_turns
from asides.datasets.formats.turns import FEATURES, Feature
from asides.values.messages import Message
from asides.values.parts import Commentary, Part, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought

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
def conversations(
    draw: st.DrawFn, texts: st.SearchStrategy[str], *, commentary: bool, keeps: Collection[str] = ()
) -> tuple[Message, ...]:
    kinds = "tttx" + "c" * commentary + "s" + "r" * ("redacted" in keeps)
    messages: list[Message] = [Message("system", (Text(draw(texts)),))] if draw(st.booleans()) else []
    count = 0
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.none() | st.sampled_from(["ann", "bob"])) if "names" in keeps else None
        messages.append(Message("user", (Text(draw(texts)),), name=name))
        for _ in range(draw(st.integers(1, 3))):
            parts: list[Part] = []
            for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=5)):
                text = draw(texts)
                made: dict[str, Part] = {
                    "t": Thought(text),
                    "x": Text(text),
                    "c": Commentary(text),
                    "s": Thought(text, seals=(Seal("signature", "s1"),)),
                    "r": Thought("", kind="hidden", seals=(Seal("redacted", "r1"),)),
                }
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
                failed = st.booleans() if "errors" in keeps else st.just(False)
                results = (ToolResult(call.id, draw(texts), is_error=draw(failed)) for call in reversed(calls))
                messages.append(Message("tool", tuple(results)))
    return tuple(messages)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_law_there_and_back_is_equal(name: str, data: st.DataObject) -> None:
    chosen = FORMATS[name]
    messages = data.draw(conversations(_PLAIN, commentary=name not in _NO_COMMENTARY, keeps=chosen.keeps))
    written = chosen.write(messages)
    assert list_turns(chosen.read(written)) == chosen.keep(list_turns(messages))


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_law_a_text_with_marks_comes_back_or_is_refused(name: str, data: st.DataObject) -> None:
    messages = data.draw(conversations(_MARKED, commentary=True, keeps=FEATURES))
    try:
        written = FORMATS[name].write(messages)
    except FormatError:
        return
    assert list_turns(FORMATS[name].read(written)) == FORMATS[name].keep(list_turns(messages))


_CALL = ToolCall("a", "f", {})
_WITH: dict[str, tuple[Message, ...]] = {
    "signatures": (Message("assistant", (Thought("t", seals=(Seal("signature", "s"),)), Text("a"))),),
    "redacted": (Message("assistant", (Thought("", kind="hidden", seals=(Seal("redacted", "r"),)), Text("a"))),),
    "errors": (Message("assistant", (_CALL,)), Message("tool", (ToolResult("a", "no", is_error=True),))),
    "names": (Message("user", (Text("q"),), name="bob"), Message("assistant", (Text("a"),))),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("feature", FEATURES)
def test_what_a_format_does_not_have_is_never_lost_silently(name: str, feature: Feature) -> None:
    messages, chosen = _WITH[feature], FORMATS[name]
    if feature in chosen.keeps:
        assert list_turns(chosen.read(chosen.write(messages))) == list_turns(messages)
    elif feature == "signatures":
        assert chosen.keep(list_turns(messages)) != list_turns(messages)
    else:
        with pytest.raises(FormatError, match=FEATURES[feature]):
            chosen.write(messages)
