"""The translator: the events of a ReAct text in any chunking, and how early they are emitted."""

from __future__ import annotations

import pytest

from asides.agents.react.translator import Translator
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.fold import fold
from asides.values.notices import Notice
from asides.values.parts import Image, Text
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from asides.values.usage import Usage
from tests.agents.react.translating import TOOLS, codes, cut, shown, told, translated

OSLO = {"city": "Oslo"}
CALL = ("get_weather", OSLO)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        # labels, as they are written
        ("Thought: look\nAction: get_weather\nAction Input: {}", [("thought", "look"), ("get_weather", {})]),
        ("THOUGHT: look\naction: now\nACTION INPUT: {}", [("thought", "look"), ("now", {})]),
        ("Thought\uff1alook\nFinal Answer\uff1a 42", [("thought", "look"), ("text", "42")]),
        ("Thought 1: look\nAction 1: now\nAction Input 1: {}", [("thought", "look"), ("now", {})]),
        ("**Thought:** look\n**Final Answer:** 42", [("thought", "look"), ("text", "42")]),
        ("**Thought**: look\n__Final Answer__: **42**", [("thought", "look"), ("text", "**42**")]),
        ("**Final Answer: 42**", [("text", "**42**")]),
        ("### Thought: look\n## Final Answer\n42", [("thought", "look"), ("text", "42")]),
        ("**Final Answer**\n\n42", [("text", "42")]),
        ("  Thought: look\r\n  Final Answer: 42\r\n", [("thought", "look"), ("text", "42")]),
        ("final_answer: 42", [("text", "42")]),
        # labels that are none
        ("An Action: now", [("text", "An Action: now")]),
        ("    Action: now", [("text", "    Action: now")]),
        ("Thoughts: many\nActions: none", [("text", "Thoughts: many\nActions: none")]),
        ("Final Answer\n42", [("text", "Final Answer\n42")]),
        ("Action", [("text", "Action")]),
        ("**Action", [("text", "**Action")]),
        ("Thought " + "x" * 200 + ": y", [("text", "Thought " + "x" * 200 + ": y")]),
        ("Thought" + " " * 130 + ": y", [("text", "Thought" + " " * 130 + ": y")]),
        # plain answers
        ("", []),
        ("\n 42 \n", [("text", "\n 42 \n")]),
        ("Use <think> tags.", [("text", "Use <think> tags.")]),
        # thoughts
        ("Thought: a\nb\n\nThought: c\nFinal Answer: d", [("thought", "a\nb"), ("thought", "c"), ("text", "d")]),
        ("Thought:\nFinal Answer: 42", [("text", "42")]),
        ("<think>a</think>42", [("thought", "a"), ("text", "42")]),
        ("<think>a</think>\n\nThought: b\nFinal Answer: c", [("thought", "a"), ("thought", "b"), ("text", "c")]),
        ("Thought: <think>a</think> b\nFinal Answer: c", [("thought", "a"), ("thought", "b"), ("text", "c")]),
        ("<THINKING>\nThought: a\n</THINKING>\nFinal Answer: c", [("thought", "a\n"), ("text", "c")]),
        ("<think>**Action:</think>42", [("thought", "**Action:"), ("text", "42")]),
        ("<think>Thought:</think>42", [("text", "42")]),
        ("<think>Though</think>42", [("thought", "Though"), ("text", "42")]),
        (
            "<think>a</think>\nLook.\n<think>b</think>\nFinal Answer: c",
            [("thought", "a"), ("text", "Look."), ("thought", "b"), ("text", "\nc")],
        ),
        (
            "<think>a</think>Thought: b\n<think>c</think>d\nFinal Answer: e",
            [("thought", "a"), ("thought", "b"), ("thought", "c"), ("thought", "d"), ("text", "e")],
        ),
        # the answer
        ("\n\nFinal Answer: 42", [("text", "42")]),
        ("Action: now\nFinal Answer: a\nObservation: b", [("now", {}), ("text", "a")]),
        ("Final Answer: a\n\nb\n", [("text", "a\n\nb")]),
        ("Words.\n\nFinal Answer: 42", [("text", "Words.\n\n42")]),
        ("Words.\nThought: a\nFinal Answer: 42", [("text", "Words."), ("thought", "a"), ("text", "\n42")]),
        ("Final Answer: a\nThought: b", [("text", "a"), ("thought", "b")]),
        ("Final Answer: a\nObservation: b", [("text", "a\nObservation: b")]),
        ("Decided:\nAction: Bob sends the mail.\nok", [("text", "Decided:\nAction: Bob sends the mail.\nok")]),
        ("Final Answer: so\n  Action: Ann", [("text", "so\n  Action: Ann")]),
        (
            "Final Answer:\n```\nThought: x\nAction: now\n```\nok",
            [("text", "```\nThought: x\nAction: now\n```\nok")],
        ),
        ("Final Answer: ```x\nAction: now\n~~~\nAction: now", [("text", "```x\nAction: now\n~~~\nAction: now")]),
        ("Final Answer: ````\nAction: now\n```\nAction: now", [("text", "````\nAction: now\n```\nAction: now")]),
        (
            "Final Answer: a\n```" + "x" * 130 + "`\nAction: now",
            [("text", "a\n```" + "x" * 130 + "`\nAction: now")],
        ),
        ("Final Answer: ```x```\nThought: y", [("text", "```x```"), ("thought", "y")]),
        ('Action:\n```json\n{"action": "Final Answer", "action_input": "yes"}\n```', [("text", "yes")]),
        ("Action: Final Answer\nAction Input: 42", [("text", "42")]),
        ("Thought: a\nAction: None\nFinal Answer: 42", [("thought", "a"), ("text", "42")]),
        ("Action: no action needed\nFinal Answer: 42", [("text", "42")]),
        ("Thought: a\nAction:\nFinal Answer: 42", [("thought", "a"), ("text", "42")]),
    ],
)
def test_what_a_text_means(text: str, parts: list[tuple[str, object]]) -> None:
    assert shown(translated(text)) == parts


@pytest.mark.parametrize(
    "text",
    [
        'Action: get_weather\nAction Input: {"city": "Oslo"}',
        'I will look.\nAction: get_weather\nAction Input: {"city": "Oslo"}',
        'Action: `get_weather`\nAction Input: `{"city": "Oslo"}`',
        'Action: **Get_Weather**.\nAction Input:\n```json\n{"city": "Oslo"}\n```\n',
        'Action:\nget_weather\nAction Input: ```{"city": "Oslo"}```',
        'Action: get_weather {"city": "Oslo"}',
        'Action: get_weather\n{"city": "Oslo"}',
        'Action: get_weather\nInput: {"city": "Oslo"}',
        'Action: get_weather Action Input: {"city": "Oslo"}',
        'Action: {"name": "get_weather", "arguments": {"city": "Oslo"}}',
        'Action: {"action": "get_weather", "action_input": {"city": "Oslo"}}',
        'Action:\n```json\n{"tool": "get_weather", "input": "Oslo"}\n```',
        'Action: {"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
        "Action: get_weather\nAction Input: Oslo",
        'Action: get_weather\nAction Input: "Oslo"\n',
        'Action: get_weather\nAction Input: {"city": "Oslo"}\n\nObservation: sunny\nFinal Answer: sunny',
        'Action: get_weather\nAction Input: {"city": "Oslo"}\nObservation (get_weather): sunny',
        'Action: get_weather\nAction Input: {"city": "Oslo"}\nI wait for the result.',
        'Final Answer: so\nAction: get_weather\nAction Input: {"city": "Oslo"}',
    ],
)
def test_the_many_ways_to_write_one_call(text: str) -> None:
    reply = translated(text)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [CALL]
    assert reply.stop == StopReason("tool_calls", "stop")
    assert "Action" not in reply.text
    assert reply.outcome == "tool_calls"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Action: add\nAction Input: 1, 2", [("add", "1, 2")]),
        ("Action: add\nAction Input: {'a': 1}", [("add", "{'a': 1}")]),
        ('Action: add\nAction Input: {"a": 1', [("add", '{"a": 1')]),
        ("Action: now\nAction Input: None", [("now", {})]),
        ("Action: now\nAction Input: whatever", [("now", {})]),
        ("Action: now", [("now", {})]),
        ('Action: add\nAction Input: ```json\n{"a": "```"}\n```', [("add", {"a": "```"})]),
        ("Action: search\nAction Input: x", [("search", "x")]),
        ("Thought: a\nAction: look for it\nAction Input: {}", [("thought", "a"), ("look for it", {})]),
        ("Action: look for it\nAction Input: {}", [("look for it", {})]),
        ("Action Input: {}", [("?", {})]),
        ('Action: {"city": "Oslo"}', [("?", OSLO)]),
        ('Action: {"name": 5}', [("5", {})]),
        ("Action: {broken", [("?", "{broken")]),
    ],
)
def test_what_does_not_read_stays_as_it_was_written(text: str, parts: list[tuple[str, object]]) -> None:
    assert shown(translated(text)) == parts


def test_a_bare_value_is_taken_for_the_one_parameter() -> None:
    for text, given in (("5", "5"), ('"5"', "5"), ("[1]", "[1]"), ("New York\ncity", "New York\ncity")):
        reply = translated(f"Action: get_weather\nAction Input: {text}")
        assert reply.tool_calls[0].arguments == {"city": given}
    reply = translated("Action: get_weather\nAction Input: 5", tools=())
    assert reply.tool_calls[0].raw_arguments == "5"


def test_nothing_is_no_value_for_a_parameter_that_may_be_left_out() -> None:
    tool = Tool("log", "", {"type": "object", "properties": {"level": {"type": "string"}}})
    assert translated("Action: log\nAction Input: None", tools=[tool]).tool_calls[0].arguments == {}
    assert translated("Action: log\nAction Input: all", tools=[tool]).tool_calls[0].arguments == {"level": "all"}


def test_a_draft_in_a_thought_is_no_call() -> None:
    draft = "Action: now\nAction Input: {}"
    reply = translated(f"<think>{draft}</think>\nAction: get_weather\nAction Input: Oslo")
    assert [call.name for call in reply.tool_calls] == ["get_weather"]
    assert translated(f"Thought: <think>\n{draft}\n</think>").tool_calls == ()
    assert translated(f"Thought: as in\n```\n{draft}\n```\nFinal Answer: 42").tool_calls == ()


def test_a_thought_that_was_cut_is_not_complete() -> None:
    for text in ("<think>so", "Thought: so"):
        reply = translated(text, stop=StopReason("length"))
        assert reply.thinking
        assert not reply.thinking.complete
    whole = translated("Thought: so\nFinal Answer: 42", stop=StopReason("length")).thinking
    assert whole is not None
    assert whole.complete


def test_an_invented_observation_and_all_behind_it_are_left_out_and_told() -> None:
    for before in ("Thought: a", "Action: now", "Action: now\nAction Input: {}"):
        reply = translated(f"{before}\nObservation: 5\nThought: b\nFinal Answer: 5")
        assert codes(reply) == ["observation_invented"]
        assert reply.text == ""
        assert len(reply.parts) == 1


def test_words_behind_an_input_and_an_answer_beside_an_action_are_told() -> None:
    assert codes(translated("Action: now\nAction Input: {}\nI wait.")) == ["text_after_action"]
    assert codes(translated("Action: now\nAction Input: ```json\n{}\n```")) == []
    assert codes(translated("Action: now\nFinal Answer: 5")) == ["answer_and_action"]
    assert codes(translated("Final Answer: 5\nAction: now")) == ["answer_and_action"]


def test_an_action_in_the_answer_is_words_unless_it_names_a_tool() -> None:
    text = "Final Answer: Steps:\nAction: Approve\nAction: now"
    assert shown(translated(text)) == [("text", "Steps:\nAction: Approve"), ("now", {})]
    assert [call.name for call in translated(text, tools=()).tool_calls] == ["Approve", "now"]


def test_the_answer_streams_at_once_and_only_possible_labels_are_held() -> None:
    said = told(["Thought: no", "w\nFin", "al Answer:", " The", " sky", "\nA", "nd\nAction", " plan", "\n"])
    texts = [
        "".join(event.text for event in events if isinstance(event, TextDelta | ThinkingDelta)) for events in said[1:]
    ]
    assert texts == ["no", "w", "", "The", " sky", "", "\nAnd", "\nAction plan", "", ""]


def test_a_call_is_one_delta_and_its_id_depends_on_its_place() -> None:
    events = [event for events in told(cut("Action: now\nAction: now\n", [3])) for event in events]
    calls = [event for event in events if isinstance(event, ToolCallDelta)]
    assert [(call.name, call.id, call.arguments) for call in calls] == [("now", None, "")] * 2
    first, second = fold(events).tool_calls
    assert first.id != second.id


def test_what_is_no_text_passes_and_blocks_keep_their_order() -> None:
    usage, warned = UsageReported(Usage(input=1)), Warned(Notice("x"))
    image = Image(url="http://127.0.0.1/x.png")
    events: list[Event] = [
        ReplyStarted("made-up", "r1"),
        warned,
        ThinkingDelta("native", 0, "summary", "block", "f"),
        ThoughtSealed(Seal("signature", "s"), 0),
        TextDelta("Thought: a\nAct", 1),
        ThinkingDelta("later", 3),
        TextDelta("ion: now", 1),
        PartArrived(image, 2),
        TextDelta("Final Answer: b", 4),
        RefusalDelta("no", 5),
        ToolCallDelta(6, "c1", "add", "{}"),
        usage,
        ReplyEnded(StopReason("refusal", "raw")),
    ]
    translator = Translator(TOOLS)
    translated_ = [event for given in events for event in translator.feed([given])]
    assert translated_[:2] == events[:2]
    assert usage in translated_
    assert translated_[-1] == ReplyEnded(StopReason("refusal", "raw"))
    reply = fold(translated_)
    assert shown(reply) == [
        ("thought", "native"),
        ("thought", "a"),
        ("now", {}),
        ("Image", None),
        ("thought", "later"),
        ("text", "b"),
        ("Refusal", None),
        ("add", {}),
    ]
    native, written = reply.parts[0], reply.parts[1]
    assert isinstance(native, Thought)
    assert isinstance(written, Thought)
    assert (native.kind, native.source, native.via, len(native.seals)) == ("summary", "block", "f", 1)
    assert (written.kind, written.source) == ("raw", "tags")


def test_a_new_text_begins_a_line() -> None:
    translator = Translator(TOOLS)
    events = translator.feed([ReplyStarted(), TextDelta("Look. ", 0), TextDelta("Action: now", 1), ReplyEnded()])
    assert shown(fold(events)) == [("text", "Look. "), ("now", {})]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("42", [Text("42", (Seal("s", "v"),))]),
        ("", [Text("", (Seal("s", "v"),))]),
        # Its provider sealed other words.
        ("Final Answer: 42", [Text("42")]),
        ("Thought: I know.\nFinal Answer: 42", [None, Text("42")]),
        ("Action: now", [None]),
    ],
)
def test_the_seal_of_a_text_stays_with_its_unchanged_words_and_never_gets_on_a_call(
    text: str, parts: list[Text | None]
) -> None:
    translator = Translator(TOOLS)
    sealed = ThoughtSealed(Seal("s", "v"), 2)
    events = translator.feed([ReplyStarted(), TextDelta(text, 2), sealed, ReplyEnded()])
    found = fold(events).parts
    assert [part if isinstance(part, Text) else None for part in found] == parts
    assert all(part.seals == () for part in fold(events).tool_calls)


@pytest.mark.parametrize("reason", ["stop", "unknown", "pause"])
def test_a_reply_that_calls_stops_for_its_call_whatever_the_server_says(reason: StopKind) -> None:
    reply = translated('Action: get_weather\nAction Input: {"city": "Oslo"}', stop=StopReason(reason, "as it was"))
    assert (reply.outcome, reply.stop) == ("tool_calls", StopReason("tool_calls", "as it was"))


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_reply_that_was_ended_by_force_does_not_stop_for_its_call(reason: StopKind) -> None:
    assert translated("Action: now\nAction Input: {}", stop=StopReason(reason, "as it was")).stop.reason == reason


@pytest.mark.parametrize("needed", [True, False])
def test_a_word_for_nothing_is_a_value_where_one_is_needed(needed: bool) -> None:
    properties = {"type": "object", "properties": {"colour": {"type": "string"}}}
    paint = Tool("paint", "", {**properties, "required": ["colour"]} if needed else properties)
    reply = translated("Action: paint\nAction Input: none", [paint])
    assert shown(reply) == [("paint", {"colour": "none"} if needed else {})]
