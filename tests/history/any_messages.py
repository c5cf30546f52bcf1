"""Messages as hypothesis makes them up: every part, every field, for what is written and read again."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from asides.values.messages import Message, StoredResponse
from asides.values.parts import File, Image, Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought

TEXTS = st.text(max_size=12)
WORDS = st.text(min_size=1, max_size=12)
OBJECTS = st.sampled_from(['{"type":"reasoning","id":"rs_1","summary":[]}', '{"a":{"b":[1,null,"é"]}}', "[]", '"x"'])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ORIGINS = st.none() | st.builds(Origin, WORDS, TEXTS, TEXTS)
SEALS = st.lists(
    st.builds(
        Seal,
        st.sampled_from(["signature", "encrypted", "redacted", "thought_signature", "reasoning_details", "item"]),
        TEXTS,
        ORIGINS,
        st.none() | OBJECTS,
    ),
    max_size=3,
).map(tuple)
THOUGHTS = st.builds(
    Thought,
    TEXTS,
    st.sampled_from(["summary", "raw", "hidden"]),
    st.sampled_from(["field", "tags", "block", "responses_summary", "responses_raw"]),
    ORIGINS,
    SEALS,
    st.none() | WORDS,
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
BYTES = st.none() | st.binary(max_size=20)
SAID = st.builds(Text, TEXTS, SEALS, st.booleans())
IMAGES = st.builds(Image, st.none() | WORDS, BYTES, WORDS, st.none() | WORDS, st.booleans(), SEALS)
FILES = st.builds(File, WORDS, BYTES, st.none() | WORDS, st.none() | WORDS, WORDS, st.booleans(), SEALS)
CALLS = st.builds(
    ToolCall, WORDS, WORDS, st.dictionaries(TEXTS, JSON, max_size=3), st.none() | TEXTS, SEALS, st.booleans()
)
RESULTS = st.builds(
    ToolResult,
    WORDS,
    TEXTS | st.lists(SAID | IMAGES | FILES, max_size=3).map(tuple),
    st.none() | WORDS,
    st.booleans(),
    st.booleans(),
)
SERVER_TOOLS = st.builds(ServerTool, WORDS, st.none() | WORDS, st.none() | WORDS, OBJECTS, ORIGINS, SEALS)
UNKNOWN = st.builds(UnknownPart, OBJECTS, ORIGINS, SEALS)
PARTS: st.SearchStrategy[Part] = (
    SAID | THOUGHTS | CALLS | RESULTS | IMAGES | FILES | st.builds(Refusal, TEXTS) | SERVER_TOOLS | UNKNOWN
)
MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from(["system", "user", "assistant", "tool"]),
        st.lists(PARTS, max_size=4).map(tuple),
        st.none() | WORDS,
        st.none() | st.builds(StoredResponse, WORDS, ORIGINS),
    ),
    max_size=5,
).map(tuple)
