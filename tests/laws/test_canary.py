"""The law that nothing leaks: a canary thought is found in `.thinking` and in what goes back, and nowhere else.

Every way to send it (planted.py), through both shells: answers, texts, reprs, exports, logs, errors, saved files,
stores, agents and their events.
"""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides.conversations.store.sqlite import SqliteStore
from asides.history.export import export_messages
from asides.history.finish import finish_turn
from asides.testing.stage import OpenStage, Raw, Say, Stage
from asides.values.errors import AsidesError
from asides.values.events import Event
from asides.values.messages import Message, user
from asides.values.reply import Reply
from asides.values.result import RunEvent
from tests.decoding import chunk, sse
from tests.laws.planted import ANSWER, CANARY, PLANTED, Planted
from tests.laws.theatre import HOUSES

KEY = "sk-canary-key-161803"
every_way = pytest.mark.parametrize("way", PLANTED)
every_house = pytest.mark.parametrize("way", list(HOUSES))


@asides.tool
def look(at: int) -> str:
    """Look there."""
    return f"nothing at {at}"


def options_of(way: Planted, stage: Stage) -> dict[str, Any]:
    options: dict[str, Any] = {"base_url": stage.url.removesuffix("/v1") + way.base, "api_key": KEY, "retries": 0}
    return options if way.thinking is None else {**options, "thinking": way.thinking}


def leaks(seen: Mapping[str, object]) -> list[str]:
    """The names of the places where a bird sings."""
    return [name for name, text in seen.items() if "canary-" in (text if isinstance(text, str) else repr(text))]


@pytest.fixture(autouse=True)
def _silent_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test does, no log of any level has the thought in it, or the key."""
    with caplog.at_level(logging.DEBUG):
        yield
    told = [f"{record.name} {record.getMessage()} {record.args!r}" for record in caplog.get_records("call")]
    assert told, "nothing was logged at all"
    assert [line for line in told if "canary-" in line] == []


def places_of(reply: Reply) -> dict[str, object]:
    """All that a person may look at, or a program pass on, without having asked for thinking."""
    message = finish_turn(reply)
    places: dict[str, object] = {
        "text": reply.text,
        "content": reply.content,
        "str": str(reply),
        "format": f"{reply}",
        "repr": repr(reply),
        "refusal": reply.refusal,
        "parts": reply.parts,
        "arguments": [(call.arguments, call.raw_arguments) for call in reply.tool_calls],
        "seals": reply.seals,
        "warnings": [msgspec.json.encode(notice).decode() for notice in reply.warnings],
        "stop": msgspec.json.encode(reply.stop).decode(),
        "thought": repr(reply.thinking),
        "origin": reply.origin,
        "json": reply.to_json(),
    }
    return places if message is None else {**places, **places_of_message(message)}


def places_of_message(message: Message) -> dict[str, object]:
    exported = {shape: export_messages((message,), shape) for shape in ("openai_chat", "anthropic", "openai_responses")}
    return {
        "message": repr(message),
        "message as json": json.dumps(message.to_dict()),
        "text of the message": message.text,
        "content of the message": message.content,
        "calls of the message": [msgspec.json.encode(call.arguments) for call in message.tool_calls],
        **{f"exported as {shape}": value for shape, value in exported.items()},
    }


def to_json_lines(events: Sequence[RunEvent]) -> str:
    """The events as a program would log them, or send them on."""
    return "\n".join(json.dumps(event.to_dict()) for event in events)


def both_ways(way: Planted, stage: Stage) -> list[tuple[Reply, list[Event]]]:
    """Whole and streamed, blocking and awaiting."""
    options = options_of(way, stage)
    told: list[tuple[Reply, list[Event]]] = []
    with asides.Client() as client:
        told.append((client.ask(way.model, "?", **options), []))
        with client.stream(way.model, "?", **options) as events:
            heard = list(events)
            told.append((events.reply, heard))

    async def awaited() -> None:
        async with asides.AsyncClient() as client:
            told.append((await client.ask(way.model, "?", **options), []))
            async with client.stream(way.model, "?", **options) as events:
                heard = [event async for event in events]
                told.append((events.reply, heard))

    asyncio.run(awaited())
    return told


@pytest.mark.requirement("FT-01")
@every_way
def test_law_a_thought_is_in_thinking_and_nowhere_else(stage: OpenStage, way: str) -> None:
    source = PLANTED[way]
    for reply, events in both_ways(source, stage(source.play)):
        assert leaks({**places_of(reply), "events": events, "events as json": to_json_lines(events)}) == []
        assert (CANARY in reply.to_json(thinking=True)) == source.shown
        assert CANARY not in reply.to_json(seals=True)
        seals = {value for seal in reply.seals for value in (seal.value, seal.entry) if value}
        told = f"{reply.to_json(thinking=True)}\n{to_json_lines(events)}"
        assert [seal for seal in seals if json.dumps(seal)[1:-1] in told] == []
        thought = reply.thinking.text
        assert (CANARY in thought) == source.shown
        assert (CANARY in str(reply.metadata.get("thinking"))) == source.shown
        assert reply.text.strip() in (ANSWER, "")


@every_way
def test_law_a_broken_reply_tells_nothing(stage: OpenStage, way: str) -> None:
    """Cut anywhere: neither the error, nor its report, nor what is left of the reply has the thought in it."""
    source = PLANTED[way]
    for cut in (150, 300, 450, 700, 1100, 1600):

        def play(request: Any, cut: int = cut) -> Any:
            return msgspec.structs.replace(source.play(request), cut_after=cut)

        opened = stage(play)
        with asides.Client() as client, client.stream(source.model, "?", **options_of(source, opened)) as events:
            try:
                heard = list(events)
            except AsidesError as error:
                told = {
                    "str": str(error),
                    "repr": repr(error),
                    "args": error.args,
                    "report": "".join(traceback.format_exception(error)),
                    "notes": getattr(error, "__notes__", ()),
                    "partial": repr(error.partial),
                }
                assert leaks(told) == []
                left = error.partial
            else:
                assert leaks({"events": heard, "events as json": to_json_lines(heard)}) == []
                left = events.partial
        if left is not None:
            assert leaks(places_of(left)) == []


BROKEN = {
    "an error behind it": sse(chunk({"reasoning_content": CANARY}), {"error": {"message": "busy", "code": 503}}),
    "half a document": sse(chunk({"content": "so"}), done=False) + f'data: {{"reasoning_content":"{CANARY}"'.encode(),
    "no document": sse(chunk({"reasoning_content": CANARY}), done=False) + f"data: {CANARY} nonsense\n\n".encode(),
    "another type": sse({"choices": [{"delta": {"reasoning_content": [CANARY], "content": ""}}]}),
    "no end": sse(chunk({"reasoning_content": CANARY}), done=False),
}


@pytest.mark.parametrize("name", BROKEN)
def test_law_bytes_that_break_the_language_are_not_quoted(stage: OpenStage, name: str) -> None:
    opened = stage(Raw(body=BROKEN[name]))
    with pytest.raises(AsidesError) as raised:  # noqa: PT012 - whether it raises at once or later
        reply = asides.ask("openai-compatible:made-up", "?", base_url=opened.url, api_key=KEY, retries=0, stream=True)
        assert leaks(places_of(reply)) == []
        reply.require_answer()
    error = raised.value
    report = "".join(traceback.format_exception(error))
    assert leaks({"str": str(error), "repr": repr(error), "args": error.args, "report": report}) == []


@every_way
def test_law_a_plan_tells_what_it_does_and_not_what_was_thought(stage: OpenStage, way: str) -> None:
    """The request itself may hold it, for whom it came from; what is said about the request may not."""
    source = PLANTED[way]
    opened = stage(source.play)
    options = options_of(source, opened)
    with asides.Client() as client:
        message = finish_turn(client.ask(source.model, "?", **options))
    history = [user("?"), *(() if message is None else (message,)), user("again")]
    for model in (source.model, "anthropic:claude-sonnet-4-5", "openai-responses:gpt-5", "deepseek:deepseek-v4-pro"):
        given: dict[str, Any] = options if model == source.model else {"api_key": KEY}
        told = asides.explain(model, history, **given)
        assert leaks({"notices": msgspec.json.encode(told.notices).decode(), "decisions": told.decisions}) == []
        if model.partition(":")[0] != source.model.partition(":")[0]:
            assert leaks({"body for another": msgspec.json.encode(told.body).decode()}) == []


# --- conversations, files and stores ----------------------------------------------------------------------------------


@every_way
def test_law_a_conversation_keeps_it_to_itself(stage: OpenStage, way: str, tmp_path: Path) -> None:
    """Saved, stored, exported and shown: nothing that can be read has the thought, unless it was asked to be kept."""
    source = PLANTED[way]
    opened = stage(source.play)
    with SqliteStore(tmp_path / "kept.sqlite") as store:
        chat = asides.Conversation(source.model, store=store, name="talk", **options_of(source, opened))
        chat.ask("one")
        with chat.stream("two") as events:
            heard = list(events)
        chat.save(tmp_path / "saved.json")
        places: dict[str, object] = {
            "repr": repr(chat),
            "events": heard,
            "messages": chat.messages,
            "texts": [message.text for message in chat.messages],
            "json": chat.to_json(),
            "openai": chat.to_openai(),
            "anthropic": chat.to_anthropic(),
            "responses": chat.to_responses(),
            "again": asides.Conversation.load(tmp_path / "saved.json").to_json(keep_thinking=True),
        }
        files = {path.name: path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()}
        assert {"kept.sqlite", "saved.json"} <= set(files)
        assert leaks({**places, **files}) == []
        # A turn that is nothing but a thought is not kept at all.
        assert (CANARY in chat.to_json(keep_thinking=True)) == (source.shown and len(chat) > 0)
    closed = {path.name: path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()}
    assert leaks(closed) == []


# --- agents -----------------------------------------------------------------------------------------------------------


@every_house
def test_law_an_agent_hands_out_answers(stage: OpenStage, way: str) -> None:
    source = PLANTED[way]
    opened = stage(source.play)
    agent = asides.Agent(source.model, tools=[look], **options_of(source, opened))
    with agent.stream("?") as events:
        heard = list(events)
        streamed = events.result
    for result in (agent.send("?"), streamed):
        places: dict[str, object] = {
            "output": result.output,
            "str": str(result),
            "repr": repr(result),
            "text": result.text,
            "messages": result.messages,
            "texts": [message.text for message in result.messages],
            "results": [msgspec.json.encode(step.results).decode() for step in result.steps],
            "steps": result.steps,
            "events": heard,
            "warnings": result.warnings,
            "json": result.to_json(),
            "events as json": to_json_lines(heard),
        }
        assert CANARY in result.to_json(thinking=True)
        for message in result.messages:
            places |= places_of_message(message)
        assert leaks(places) == []
        assert len(result.steps) == 2
        assert result.thinking
        assert all(CANARY in (step.thinking.text if step.thinking else "") for step in result.steps)


class Found(msgspec.Struct):
    number: int


def test_law_a_typed_answer_is_read_from_the_answer_alone(stage: OpenStage) -> None:
    opened = stage(Say(thinking=f'{CANARY} {{"number": 13}}', text='{"number": 42}'))
    result = asides.Agent("openai-chat:gpt-5", output=Found, base_url=opened.url, api_key=KEY).send("?")
    assert result.output == Found(42)
    assert leaks({"repr": repr(result), "str": str(result), "output": result.output}) == []
