"""Messages that could be real, with ids that meet, and a target of every dialect: for laws over histories."""

from __future__ import annotations

from hypothesis import strategies as st

from asides.providers.find import find_target
from asides.values.messages import Message, assistant, system
from asides.values.parts import Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thinking, Thought

NAMES = (
    "deepseek:deepseek-reasoner",
    "mistral:magistral-medium-latest",
    "openrouter:google/gemini-3-pro-preview",
    "google-openai:gemini-3-pro-preview",
    "openai:gpt-5.5",
    "anthropic:claude-opus-4-5",
    "gemini:gemini-3-pro-preview",
    "cohere:command-a-reasoning-08-2025",
    "ollama:qwen3",
    "bedrock:anthropic.claude-sonnet-4-20250514-v1:0",
)
ENVIRON = {"AWS_REGION": "us-east-1"}


TARGETS = [find_target(name, environ=ENVIRON) for name in NAMES]
ORIGINS = [target.origin for target in TARGETS]

IDS = st.sampled_from(["call_1", "call_2", "call_3", "functions.look:0", "ab1cd2ef3", "call 1", "x" * 70])
SEALS = st.lists(
    st.builds(
        Seal,
        st.sampled_from(["signature", "encrypted", "thought_signature", "reasoning_details", "item"]),
        st.sampled_from(["", "c2VhbA=="]),
        st.none() | st.sampled_from(ORIGINS),
        st.sampled_from(
            [
                None,
                '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}',
                '{"type":"message","id":"m"}',
            ]
        ),
    ),
    max_size=2,
).map(tuple)
TEXTS = st.sampled_from(["a", "hello", " ", "", "é😀", '"quoted"\n'])
CALLS = st.builds(
    ToolCall,
    IDS,
    st.sampled_from(["look", "find"]),
    st.sampled_from([{}, {"path": "/x"}]).map(dict),
    st.sampled_from([None, None, "{no"]),
    SEALS,
    st.booleans(),
)
RESULTS = st.builds(
    ToolResult, IDS, TEXTS, st.sampled_from([None, "look"]), st.booleans(), st.sampled_from([False, True])
)
THOUGHTS = st.builds(
    Thought,
    TEXTS,
    st.sampled_from(["summary", "raw"]),
    st.sampled_from(["field", "block", "tags"]),
    st.none() | st.sampled_from(ORIGINS),
    SEALS,
    withheld=st.sampled_from([False, False, False, True]),
)
SAID = st.builds(Text, TEXTS, SEALS)
PARTS: st.SearchStrategy[Part] = (
    SAID
    | CALLS
    | THOUGHTS
    | st.builds(Refusal, TEXTS)
    | st.builds(ServerTool, st.just("web_search_call"), origin=st.sampled_from(ORIGINS))
    | st.builds(UnknownPart, st.just('{"type":"new"}'), st.none() | st.sampled_from(ORIGINS))
)
LIKELY = (
    TEXTS.map(lambda text: Message("user", (Text(text),)))
    | TEXTS.map(assistant)
    | st.builds(Message, st.just("assistant"), st.lists(PARTS, max_size=4).map(tuple))
    | st.builds(Message, st.just("tool"), st.lists(RESULTS, min_size=1, max_size=2).map(tuple))
    | st.builds(Message, st.just("user"), st.lists(RESULTS | SAID, max_size=3).map(tuple))
    | TEXTS.map(system)
)
ASKED = st.sampled_from([Thinking(), Thinking(), Thinking(replay="never"), Thinking(mode="off"), Thinking(mode="on")])
