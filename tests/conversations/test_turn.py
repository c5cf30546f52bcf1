"""A turn, sync and async, in every dialect: what is added to the history, however it ends."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

import asides
from asides.conversations.async_ import AsyncConversation
from asides.conversations.sync import Conversation
from asides.values.errors import ConfigError, ConnectionLost, Overloaded, UnknownModel
from asides.values.messages import Message, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool
from asides.values.usage import Usage
from asides_stage.stage import Fail, OpenStage, Raw, Say
from tests.conversations.both_shells import KEY, MODELS, PLAIN, Shell, both_shells, dialogue, each_model, options

CALL = ToolCall("call_1", "look_up", {"n": 1})
OTHER = ToolCall("call_2", "look_up", {"n": 2})
TOOL = Tool("look_up", "Look it up.", {"type": "object", "properties": {"n": {"type": "integer"}}})


def accepted(stage: Any) -> bool:
    return all(request.problem is None for request in stage.requests)


@both_shells
@each_model
def test_a_question_and_its_answer_go_along_with_the_next(shell: Shell, model: str, stage: OpenStage) -> None:
    theatre = stage(Say(thinking="plan one", text="First."), Say(thinking="plan two", text="Second."))
    chat = shell.kind(model, system="Be brief.", **options(model, theatre))
    first = shell.ask(chat, "one?")
    second = shell.stream(chat, "two?")
    assert dialogue(chat.messages) == [
        ("user", "one?"),
        ("assistant", "First."),
        ("user", "two?"),
        ("assistant", "Second."),
    ]
    assert chat.messages[1] == first.to_message()
    assert second.partial is not None
    assert chat.messages[3] == second.partial.to_message()
    assert chat.usage == first.usage + second.partial.usage
    served = theatre.requests[1].served
    assert served is not None
    assert dialogue(served.prompt.messages)[-3:] == dialogue(chat.messages)[:3]
    assert "Be brief." in (served.prompt.system or served.prompt.messages[0].text)
    assert accepted(theatre)


@both_shells
@each_model
def test_it_can_be_sent_after_a_stream_was_left_at_any_event(shell: Shell, model: str, stage: OpenStage) -> None:
    numbers = count()

    def play(_: Any) -> Say:
        call = ToolCall(f"call_{next(numbers)}", "look_up", {"n": 1})
        return Say(thinking="a plan of it", text="some words", tool_calls=(call,), piece=5, pause=0.001)

    theatre = stage(play)
    chat = shell.kind(model, tools=[TOOL], **options(model, theatre))
    index = 0
    while len(shell.stream(chat, f"question {index}", stop_after=index).events) == index:
        before = chat.messages
        kept = [text for role, text in dialogue(before) if role == "user"]
        assert len(kept) == len(set(kept))
        # A question without an answer is not there, and an answer is only ever that to the question before it.
        assert [message.role for message in before if message.role != "tool"] == ["user", "assistant"] * len(kept)
        index += 1
    assert index > 5
    assert accepted(theatre)
    shell.ask(chat, "and now?")
    assert accepted(theatre)


@both_shells
def test_a_turn_that_broke_off_is_sealed(shell: Shell, stage: OpenStage) -> None:
    """Whole thoughts and words stay; the call whose arguments were cut does not."""
    halves = (
        'data: {"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"plan"}}]}\n\n'
        'data: {"id":"c","choices":[{"index":0,"delta":{"content":"half an ans"}}]}\n\n'
        'data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":'
        '{"name":"look_up","arguments":"{\\"n"}}]}}]}\n\n'
    )
    theatre = stage(Raw(text=halves), Say(text="Good."))
    chat = shell.kind(PLAIN, **options(PLAIN, theatre))
    ended = shell.stream(chat, "go")
    assert isinstance(ended.error, ConnectionLost)
    assert dialogue(chat.messages) == [("user", "go"), ("assistant", "half an ans")]
    thought, text = chat.messages[1].parts
    assert isinstance(thought, Thought)
    assert isinstance(text, Text)
    shell.ask(chat, "go on")
    assert [message["content"] for message in theatre.requests[1].json["messages"]] == ["go", "half an ans", "go on"]


@both_shells
def test_a_call_of_an_answer_that_broke_off_is_answered_at_once(shell: Shell, stage: OpenStage) -> None:
    """Nothing will run it, and the conversation can be sent whatever comes next."""
    whole_call = (
        'data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":'
        '{"name":"look_up","arguments":"{\\"n\\":1}"}}]}}]}\n\n'
    )
    theatre = stage(Raw(text=whole_call))
    chat = shell.kind(PLAIN, **options(PLAIN, theatre))
    assert isinstance(shell.stream(chat, "go").error, ConnectionLost)
    assert [message.role for message in chat] == ["user", "assistant", "tool"]
    (result,) = chat.messages[2].parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == ("call_1", True)


def test_only_the_first_end_of_a_turn_counts() -> None:
    from asides.values.reply import Reply

    chat = Conversation(PLAIN)
    turn = chat.turn("one?")
    turn.end(Reply((Text("never begun"),)))
    assert (turn.is_recorded, len(chat)) == (False, 0)
    turn.begin()
    turn.end(Reply((Text("One."),)))
    chat.append("two?")
    turn.end(Reply((Text("again"),)))
    turn.drop()
    assert dialogue(chat) == [("user", "one?"), ("assistant", "One."), ("user", "two?")]
    assert turn.is_recorded


@both_shells
@pytest.mark.parametrize(
    "scene",
    [
        Fail(status=500),
        Say(thinking="only a plan", stop="length"),
        Say(thinking="only a plan", text="\n "),
        Raw(text='data: {"choices":[{"index":0,"delta":{"reasoning_content":"half a pl"}}]}\n\n'),
        Raw(text=""),
    ],
    ids=["refused", "starved", "blank", "cut while thinking", "nothing"],
)
def test_a_question_without_an_answer_is_not_kept(shell: Shell, scene: Any, stage: OpenStage) -> None:
    theatre = stage(scene, Say(text="Good."))
    chat = shell.kind(PLAIN, **options(PLAIN, theatre))
    shell.stream(chat, "go")
    assert chat.messages == ()
    shell.stream(chat, "go")
    assert dialogue(chat.messages) == [("user", "go"), ("assistant", "Good.")]
    assert [message["content"] for message in theatre.requests[1].json["messages"]] == ["go"]


@both_shells
def test_an_ask_that_raises_leaves_everything_as_it_was(shell: Shell, stage: OpenStage) -> None:
    cut = Raw(text='data: {"choices":[{"index":0,"delta":{"content":"half an ans"}}]}\n\n')
    theatre = stage(Say(text="First."), Fail(status=500), cut, Say(text="Good."))
    chat = shell.kind(PLAIN, **options(PLAIN, theatre))
    shell.ask(chat, "one?")
    before = (chat.messages, chat.usage)
    with pytest.raises(Overloaded):
        shell.ask(chat, "two?")
    with pytest.raises(ConnectionLost) as caught:
        shell.ask(chat, "two?", stream=True)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half an ans"
    assert (chat.messages, chat.usage) == before
    shell.ask(chat, "two?")
    assert len(chat) == 4


@both_shells
@each_model
def test_results_of_tools_can_be_asked_with_and_nothing_new_too(shell: Shell, model: str, stage: OpenStage) -> None:
    theatre = stage(
        Say(thinking="plan", tool_calls=(CALL,)), Say(text="42."), Say(tool_calls=(OTHER,)), Say(text="43.")
    )
    chat = shell.kind(model, tools=[TOOL], **options(model, theatre))
    calls = shell.ask(chat, "look").tool_calls
    shell.ask(chat, [Message("tool", (ToolResult(calls[0].id, "6 x 7", "look_up"),))])
    calls = shell.ask(chat, "again").tool_calls
    chat.append(Message("tool", (ToolResult(calls[0].id, "43", "look_up"),)))
    assert shell.ask(chat).text == "43."
    roles = [message.role for message in chat]
    assert roles == ["user", "assistant", "tool", "assistant"] * 2
    assert accepted(theatre)


@both_shells
@each_model
def test_calls_that_nobody_answered_are_answered_before_the_next_question(
    shell: Shell, model: str, stage: OpenStage
) -> None:
    theatre = stage(Say(thinking="plan", tool_calls=(CALL,)), Say(text="Fine."))
    chat = shell.kind(model, tools=[TOOL], **options(model, theatre))
    shell.ask(chat, "look")
    shell.ask(chat, "never mind")
    assert [message.role for message in chat] == ["user", "assistant", "tool", "user", "assistant"]
    (result,) = chat.messages[2].parts
    assert isinstance(result, ToolResult)
    assert result.is_error
    assert accepted(theatre)


@both_shells
def test_from_one_model_to_another_and_back(shell: Shell, stage: OpenStage) -> None:
    """The seals of a model go back to it and to no other, and so does its thinking."""
    theatre = stage(lambda request: Say(thinking=f"thought of {request.model}", text=f"said by {request.model}"))
    a, b = "anthropic:claude-sonnet-4-5", "openai-responses:gpt-5"
    chat = shell.kind(a, base_url=theatre.url, api_key=KEY, retries=0)
    shell.ask(chat, "one", thinking=2000)
    shell.ask(chat, "two", model=b, thinking="low")
    shell.stream(chat, "three", model=PLAIN)
    shell.ask(chat, "four", thinking=2000)
    assert accepted(theatre)
    signature = next(seal.value for part in chat.messages[1].parts for seal in getattr(part, "seals", ()))
    bodies = [request.body.decode() for request in theatre.requests]
    assert [signature in body for body in bodies] == [False, False, False, True]
    assert [body.count("thought of") for body in bodies] == [0, 0, 0, 1]


@both_shells
def test_what_a_provider_has_stored_is_not_sent_again(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(lambda request: Say(text=f"answer {len(request.prompt.messages)}"))
    chat = shell.kind("openai-responses:gpt-5", stateful=True, **options("", theatre))
    for question in ("one", "two", "three"):
        shell.ask(chat, question)
    sent = [request.json for request in theatre.requests]
    assert [len(body["input"]) for body in sent] == [1, 1, 1]
    assert chat.messages[3].stored is not None
    assert sent[2]["previous_response_id"] == chat.messages[3].stored.id
    # After an edit, what the provider has stored is sent again in full.
    chat.edit(2, "two, in other words")
    shell.ask(chat, "four")
    last = theatre.requests[-1].json
    assert chat.messages[1].stored is not None
    assert last["previous_response_id"] == chat.messages[1].stored.id
    assert [item.get("content") for item in last["input"]][::4] == ["two, in other words", "four"]
    assert accepted(theatre)


@both_shells
def test_an_estimate_says_that_it_is_one(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="x" * 40, usage=Usage()), Say(text="y", usage=Usage(7, 5, 2, 0, 12)))
    chat = shell.kind(PLAIN, **options(PLAIN, theatre))
    shell.ask(chat, "a" * 40)
    assert chat.usage == Usage(10, 10, 0, None, 20, "estimated")
    shell.ask(chat, "b")
    assert chat.usage == Usage(17, 15, 2, 0, 32, "estimated")


@both_shells
def test_the_model_is_the_questions_the_conversations_or_the_settings(
    shell: Shell, stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    theatre = stage(Say(text="hi"))
    with pytest.raises(UnknownModel, match="ASIDES_MODEL"):
        shell.ask(shell.kind(base_url=theatre.url), "?")
    monkeypatch.setenv("ASIDES_MODEL", "openai-compatible:of-settings")
    shell.ask(shell.kind(base_url=theatre.url), "?")
    chat = shell.kind("openai-compatible:of-conversation", base_url=theatre.url)
    shell.ask(chat, "?")
    shell.stream(chat, "?", model="openai-compatible:of-question")
    assert [request.json["model"] for request in theatre.requests] == ["of-settings", "of-conversation", "of-question"]


@both_shells
def test_a_question_wins_over_the_conversation(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="hi"))
    chat = shell.kind(PLAIN, system="Be brief.", temperature=0.5, max_tokens=50, **options(PLAIN, theatre))
    shell.ask(chat, "?", temperature=0.25, system="Be long.")
    sent = theatre.requests[0].json
    assert (sent["temperature"], sent["max_tokens"]) == (0.25, 50)
    assert sent["messages"][0]["content"] == "Be long."
    assert chat.system == "Be brief."


@both_shells
def test_a_misspelled_option_is_found_at_once(shell: Shell) -> None:
    with pytest.raises(TypeError, match="did you mean temperature"):
        shell.kind(PLAIN, temprature=1)


@both_shells
def test_there_has_to_be_something_to_answer(shell: Shell) -> None:
    with pytest.raises(ConfigError, match="the conversation is empty"):
        shell.ask(shell.kind(PLAIN))


def test_a_client_of_ones_own_is_used_with_its_defaults(stage: OpenStage) -> None:
    theatre = stage(Say(text="hi"))
    with asides.Client(base_url=theatre.url, temperature=0.5) as client:
        chat = Conversation(PLAIN, client=client)
        chat.ask("?")
        with chat.stream("?") as events:
            assert events.reply.text == "hi"
    assert [request.json["temperature"] for request in theatre.requests] == [0.5, 0.5]
    assert theatre.connections == 1


async def test_an_async_client_of_ones_own_is_used_with_its_defaults(stage: OpenStage) -> None:
    theatre = stage(Say(text="hi"))
    async with asides.AsyncClient(base_url=theatre.url, temperature=0.5) as client:
        chat = AsyncConversation(PLAIN, client=client)
        await chat.ask("?")
        async with chat.stream("?") as events:
            assert (await events.drain()).text == "hi"
            assert events.reply.text == "hi"
    assert [request.json["temperature"] for request in theatre.requests] == [0.5, 0.5]


@both_shells
def test_batches_are_the_same_events(shell: Shell, stage: OpenStage) -> None:
    theatre = stage(Say(text="hi", id="one"))
    chat = Conversation(PLAIN, **options(PLAIN, theatre))
    with chat.stream("?") as events:
        batched = [event for batch in events.batches() for event in batch]
    assert batched == shell.stream(shell.kind(PLAIN, **options(PLAIN, theatre)), "?").events
    assert len(chat) == 2


def test_a_conversation_is_a_prompt(stage: OpenStage) -> None:
    theatre = stage(Say(text="hi"))
    chat = Conversation(PLAIN, system="Be brief.", messages=["one?"])
    asides.ask(PLAIN, chat, base_url=theatre.url)
    assert theatre.requests[0].json["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one?"},
    ]
    assert asides.explain(PLAIN, chat, base_url=theatre.url).body["messages"][1]["content"] == "one?"
    assert user("one?") in chat.messages


def test_every_dialect_is_among_the_models() -> None:
    from asides.dialects import DIALECTS

    spoken = {asides.explain(model, "?", base_url="http://127.0.0.1:9/v1").target.dialect for model in MODELS}
    assert spoken == set(DIALECTS)
