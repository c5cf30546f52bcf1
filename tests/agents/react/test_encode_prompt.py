"""A prompt encoded for a model without tools: instructions, history as text, and everything else unchanged."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides import dialects
from asides.agents.react.encode_prompt import encode_prompt
from asides.history.plan import plan
from asides.history.turns import CANCELLED
from asides.providers.find import find_target
from asides.providers.provider import ModelRule
from asides.values.messages import Message, OutputSchema, Prompt, StoredResponse, assistant, system, user
from asides.values.parts import Image, Text, ToolCall, ToolResult
from asides.values.thinking import Origin, Seal, Thinking, Thought, read_thinking
from tests.agents.react.translating import TOOLS, WEATHER, translated
from tests.decoding import target

PLAIN = target(rule=ModelRule(thinking="never"))
CALL = ToolCall("c1", "get_weather", {"city": "Oslo"})


def prompt(*messages: Message, **fields: Any) -> Prompt:
    return Prompt(messages or (user("How is Oslo?"),), tools=TOOLS, **fields)


def result(text: Any = "sunny", call_id: str = "c1", **fields: Any) -> Message:
    return Message("tool", (ToolResult(call_id, text, **fields),))


def spelled(*messages: Message) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in encode_prompt(prompt(*messages), PLAIN).messages]


def test_tools_become_instructions() -> None:
    out = encode_prompt(prompt(system="Be brief.\n", tool_choice="auto", parallel_tool_calls=True), PLAIN)
    assert (out.tools, out.tool_choice, out.parallel_tool_calls) == ((), None, None)
    assert out.messages == (user("How is Oslo?"),)
    assert out.system is not None
    assert out.system.startswith("Be brief.\n\nYou can use tools.")
    for label in ("Thought: ", "Action: ", "Action Input: ", "Observation: ", "Final Answer: "):
        assert label in out.system
    for tool in TOOLS:
        assert f"- {tool.name}: {tool.description}\n  {msgspec.json.encode(tool.parameters).decode()}" in out.system
    assert out.stop == ("\nObservation:",)


def test_every_setting_that_is_no_tool_stays() -> None:
    before = prompt(max_tokens=7, stop=("END",), thinking=Thinking(mode="off"), extra={"x": 1}, stream=False)
    out = encode_prompt(before, PLAIN)
    same = msgspec.structs.replace(out, system=None, tools=before.tools, stop=before.stop)
    assert same == before
    assert out.stop == ("END", "\nObservation:")


def test_a_prompt_without_tools_gets_no_instructions_and_dressing_twice_changes_nothing() -> None:
    bare = Prompt((user("hi"),), output="json")
    assert encode_prompt(bare, PLAIN) == bare
    none = encode_prompt(prompt(tool_choice="none"), PLAIN)
    assert (none.system, none.tools, none.stop) == (None, (), ())
    once = encode_prompt(prompt(user("?"), assistant(CALL), result()), PLAIN)
    assert encode_prompt(once, PLAIN) == once


def test_a_forced_tool_is_asked_for_in_words() -> None:
    assert "Use a tool before" in str(encode_prompt(prompt(tool_choice="required"), PLAIN).system)
    assert "Use the tool add before" in str(encode_prompt(prompt(tool_choice="add"), PLAIN).system)
    assert "before you give" not in str(encode_prompt(prompt(tool_choice="auto"), PLAIN).system)


def test_the_schema_of_an_answer_becomes_words_since_a_model_held_to_json_could_not_act() -> None:
    schema = {"type": "object", "properties": {"degrees": {"type": "integer"}}}
    out = encode_prompt(prompt(output=OutputSchema("weather", schema)), PLAIN)
    assert out.output is None
    assert msgspec.json.encode(schema).decode() in str(out.system)
    assert "one JSON object" in str(encode_prompt(prompt(output="json"), PLAIN).system)


@pytest.mark.parametrize(
    ("rule", "thinking", "asked"),
    [
        (ModelRule(), None, True),
        (ModelRule(thinking="never"), "high", True),
        (ModelRule(thinking="optional"), None, True),
        (ModelRule(thinking="optional", default="on"), None, False),
        (ModelRule(thinking="optional", default="on"), "off", True),
        (ModelRule(thinking="optional"), "low", False),
        (ModelRule(), 2048, False),
        (ModelRule(thinking="always"), None, False),
        (ModelRule(thinking="always"), "off", False),
    ],
)
def test_thoughts_are_asked_for_only_where_the_model_has_none_of_its_own(
    rule: ModelRule, thinking: str | int | None, asked: bool
) -> None:
    out = encode_prompt(prompt(thinking=read_thinking(thinking)[0]), target(rule=rule))
    assert ("Thought" in str(out.system)) is asked
    assert "Action Input: " in str(out.system)


@pytest.mark.parametrize(
    ("rule", "given", "sent"),
    [
        (ModelRule(thinking="always", forbids=("stop",)), (), ()),
        (ModelRule(thinking="optional", forbids=("stop",)), (), ("\nObservation:",)),
        (ModelRule(refuses=("stop",)), (), ()),
        (ModelRule(), ("a", "b", "c", "d"), ("a", "b", "c", "d")),
        (ModelRule(), ("\nObservation:",), ("\nObservation:",)),
    ],
)
def test_the_stop_sequence_goes_where_it_is_accepted(
    rule: ModelRule, given: tuple[str, ...], sent: tuple[str, ...]
) -> None:
    out = encode_prompt(prompt(stop=given), target(rule=rule))
    assert out.stop == sent
    plan(out, target(rule=rule))


def test_calls_and_results_become_text() -> None:
    assert spelled(user("?"), assistant("I look.\n", CALL), result(), assistant("Sunny.")) == [
        ("user", "?"),
        ("assistant", 'I look.\nAction: get_weather\nAction Input: {"city":"Oslo"}'),
        ("user", "Observation: sunny"),
        ("assistant", "Sunny."),
    ]


def test_blank_words_in_front_of_a_call_are_none() -> None:
    assert spelled(user("?"), assistant("\n", CALL))[1] == (
        "assistant",
        'Action: get_weather\nAction Input: {"city":"Oslo"}',
    )


def test_a_translated_turn_goes_back_without_its_thought() -> None:
    turn = translated("Thought: canary7f3a\nAction: now").to_message()
    assert turn is not None
    out = encode_prompt(prompt(user("?"), turn), PLAIN)
    assert out.messages[1].parts == (Text("Action: now\nAction Input: {}"),)


def test_several_results_are_one_message_in_order_and_named() -> None:
    other = ToolCall("c2", "add", {}, raw_arguments="1+1")
    results = (result(call_id="c2", text="no", is_error=True), result(name="weather"))
    assert spelled(user("?"), assistant(CALL, other), *results)[1:] == [
        (
            "assistant",
            'Action: get_weather\nAction Input: {"city":"Oslo"}\nAction: add\nAction Input: 1+1',
        ),
        ("user", "Observation (add, error): no\nObservation (weather): sunny"),
    ]


def test_a_result_that_failed_says_so() -> None:
    assert spelled(user("?"), assistant(CALL), result("no such city", is_error=True))[-1] == (
        "user",
        "Observation (error): no such city",
    )


def test_a_call_without_its_result_is_answered_and_words_join_it() -> None:
    assert spelled(user("?"), assistant(CALL), user("Go on."))[-1] == (
        "user",
        f"Observation (error): {CANCELLED}\n\nGo on.",
    )
    assert spelled(user("?"), assistant(CALL))[-1] == ("user", f"Observation (error): {CANCELLED}")
    assert spelled(user("?"), assistant(CALL), assistant("So."))[2:] == [
        ("user", f"Observation (error): {CANCELLED}"),
        ("assistant", "So."),
    ]


def test_results_in_a_message_of_a_person_and_system_words_keep_their_places() -> None:
    mixed = Message("user", (ToolResult("c1", "sunny"), Text("And Rome?")))
    assert spelled(system("s"), user("?"), assistant(CALL), mixed) == [
        ("system", "s"),
        ("user", "?"),
        ("assistant", 'Action: get_weather\nAction Input: {"city":"Oslo"}'),
        ("user", "Observation: sunny\n\nAnd Rome?"),
    ]


def test_pictures_of_tools_stay_pictures() -> None:
    picture = Image(url="http://127.0.0.1/x.png")
    out = encode_prompt(prompt(user("?"), assistant(CALL), result((Text("look"), picture))), PLAIN)
    assert out.messages[-1].parts == (Text("Observation: look"), picture)
    out = encode_prompt(prompt(user("?"), assistant(CALL), result((picture,))), PLAIN)
    assert out.messages[-1].parts == (Text("Observation: "), picture)


def test_native_thoughts_stay_parts_and_written_ones_go() -> None:
    native = Thought("native", seals=(Seal("signature", "s"),))
    written = Thought("written", source="tags", via="react")
    stored = StoredResponse("r1")
    turn = Message("assistant", (native, written, Text("So."), CALL), stored=stored)
    out = encode_prompt(prompt(user("?"), turn, result()), PLAIN)
    text = 'So.\nAction: get_weather\nAction Input: {"city":"Oslo"}'
    assert out.messages[1] == Message("assistant", (native, Text(text)), stored=stored)
    alone = encode_prompt(prompt(user("?"), assistant(written), user("Go on.")), PLAIN)
    assert alone.messages == (user("?"), user("Go on."))


def test_no_thought_is_ever_written_into_text() -> None:
    canary = "canary7f3a"
    origin = Origin("example", "http://127.0.0.1:9/v1", "made-up")
    for via in ("react", None, "reasoning_content"):
        for seals in ((), (Seal("signature", "s", origin),)):
            turn = assistant(Thought(canary, origin=origin, seals=seals, via=via), Text("Look."), CALL)
            out = encode_prompt(prompt(user("?"), turn, result()), PLAIN)
            assert canary not in str(out.system)
            assert all(canary not in message.text for message in out.messages)


def test_seals_of_words_stay_and_those_of_calls_go() -> None:
    sealed = Text("Look.", (Seal("thought_signature", "w"),))
    call = msgspec.structs.replace(CALL, seals=(Seal("thought_signature", "c"),))
    out = encode_prompt(prompt(user("?"), assistant(sealed, call), result()), PLAIN)
    assert out.messages[1].parts == (sealed, Text('Action: get_weather\nAction Input: {"city":"Oslo"}'))


def test_a_longer_history_begins_as_a_shorter_one_did() -> None:
    turns = [user("?"), assistant("Look.", CALL), result(), assistant("Sunny."), user("Rome?"), assistant(CALL)]
    turns += [result("rain"), assistant("Rain.")]
    for length in (1, 3, 5, 7):
        short = encode_prompt(prompt(*turns[:length]), PLAIN)
        long = encode_prompt(prompt(*turns), PLAIN)
        assert long.messages[: len(short.messages)] == short.messages
        assert long.system == short.system


@pytest.mark.parametrize(
    "model", ["openai-chat:gpt-4.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash", "ollama:gemma3"]
)
def test_what_goes_out_has_no_tool_in_it(model: str) -> None:
    found = find_target(model)
    planned = plan(encode_prompt(prompt(user("?"), assistant(CALL), result(), max_tokens=100), found), found)
    request, _ = dialects.find_dialect(found.dialect).encode(planned.prompt, found)
    body = msgspec.json.decode(request.body)
    assert not {"tools", "tool_choice", "functions", "toolConfig", "tool_config"} & set(body)
    assert b"Observation: sunny" in request.body
    assert WEATHER.description.encode() in request.body
