"""The law of three channels: thinking, commentary and the answer never share a word, wherever a reply goes.

Each canary is looked for in the other two channels: decoded, written by every server half, sent back, saved, exported,
shown, and read by agents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides.dialects import DIALECTS, find_dialect
from asides.history.document import from_document, to_document
from asides.history.export import export_messages
from asides.history.finish import finish_turn
from asides.history.redact import redact
from asides.history.trim import strip_thinking
from asides.intake.documents import import_messages
from asides.providers.provider import ModelRule, Quirks, Target
from asides.providers.table import plain_row
from asides.values.events import (
    CommentaryDelta,
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
)
from asides.values.fold import fold, simulate
from asides.values.messages import Message, Prompt, user
from asides.values.parts import Commentary, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides.values.visibility import Visibility
from asides_gateway.page_events import EventWriter
from asides_gateway.page_messages import Note, show_message
from asides_stage.stage import OpenStage, Say
from tests.decoding import reply_of, stream, target, whole
from tests.responses import message, reasoning
from tests.responses import stream as responses_stream
from tests.responses import target as responses_target
from tests.responses import whole as responses_whole
from tests.telemetry.recorded import get, recording

KEY = "sk-made-up"
THOUGHT, SAID, ANSWER = "canary-thought", "canary-commentary", '{"number": 42}'

_HARMONY = (
    f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>commentary<|message|>{SAID}<|end|>"
    f"<|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>"
)
_ITEMS = (reasoning(THOUGHT), message(SAID, phase="commentary"), message(ANSWER, id="msg_2", phase="final_answer"))
_PLAIN, _TAGGED = target(), target(quirks=Quirks(tags=("harmony",)))
_RESPONSES = responses_target(rule=ModelRule(thinking="optional", kind="raw"))

WAYS: dict[str, tuple[str, Target, bytes]] = {
    "responses, whole": ("openai_responses", responses_target(), responses_whole(*_ITEMS)),
    "responses, streamed": ("openai_responses", responses_target(), responses_stream(*_ITEMS)),
    "chat, the field, whole": (
        "openai_chat",
        _PLAIN,
        whole({"reasoning_content": THOUGHT, "commentary": SAID, "content": ANSWER}),
    ),
    "chat, the field, streamed": (
        "openai_chat",
        _PLAIN,
        stream({"reasoning_content": THOUGHT}, {"commentary": SAID}, {"content": ANSWER}),
    ),
    "chat, the channel": (
        "openai_chat",
        _PLAIN,
        stream(
            {"reasoning": THOUGHT, "channel": "analysis"},
            {"content": SAID, "channel": "commentary"},
            {"content": ANSWER, "channel": "final"},
        ),
    ),
    "chat, the phase": (
        "openai_chat",
        _PLAIN,
        stream(
            {"reasoning": THOUGHT},
            {"content": SAID[:5], "phase": "commentary"},
            {"content": SAID[5:]},
            {"content": ANSWER, "phase": "final_answer"},
        ),
    ),
    "chat, harmony, whole": ("openai_chat", _TAGGED, whole({"content": _HARMONY})),
    "chat, harmony, streamed": ("openai_chat", _TAGGED, stream(*({"content": letter} for letter in _HARMONY))),
}


def channels(events: Iterable[Event]) -> dict[type, str]:
    """What each kind of event says, joined."""
    said: dict[type, str] = {ThinkingDelta: "", CommentaryDelta: "", TextDelta: ""}
    for event in events:
        if isinstance(event, (ThinkingDelta, CommentaryDelta, TextDelta)):
            said[type(event)] += event.text
    return said


def check(reply: Reply) -> None:
    assert (reply.thinking.text, reply.commentary, reply.text) == (THOUGHT, SAID, ANSWER)
    assert (reply.metadata["thinking"], reply.metadata["commentary"]) == (THOUGHT, SAID)
    assert (reply.outcome, reply.content, str(reply)) == ("answered", ANSWER, ANSWER)
    assert SAID not in reply.with_tags()


@pytest.mark.parametrize("way", WAYS)
def test_law_each_channel_has_its_own_words(way: str) -> None:
    dialect, to, body = WAYS[way]
    for size in (1, 7, len(body)):
        reply, failure = reply_of([body[at : at + size] for at in range(0, len(body), size)], to, dialect)
        assert failure is None
        check(reply)
        for pieces in (1, 5, 100):
            events = simulate(reply, pieces)
            assert channels(events) == {ThinkingDelta: THOUGHT, CommentaryDelta: SAID, TextDelta: ANSWER}
            assert fold(events) == reply


EVENTS: list[Event] = [
    ReplyStarted("made-up", "reply_1"),
    ThinkingDelta(THOUGHT, 0),
    CommentaryDelta(SAID[:9], 1),
    CommentaryDelta(SAID[9:], 1),
    TextDelta(ANSWER, 2),
    ReplyEnded(StopReason("stop")),
]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_law_a_server_half_never_glues_commentary_to_the_answer(name: str, streamed: bool) -> None:
    dialect, to = find_dialect(name), Target(plain_row(name), "made-up", "http://127.0.0.1:9/v1")
    writer = dialect.writer(model="made-up", stream=streamed)
    reply, failure = reply_of([writer.write(EVENTS)], to, name)
    assert failure is None
    assert (reply.text, reply.thinking.text) == (ANSWER, THOUGHT)
    if name in ("openai_chat", "openai_responses"):
        assert reply.commentary == SAID
    else:
        assert reply.commentary == ""
        assert [notice.code for notice in writer.notices] == ["part_not_written"]  # type: ignore[attr-defined]


TURN = Message("assistant", (Thought(THOUGHT), Commentary(SAID), Text(ANSWER)))


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_law_commentary_goes_back_as_words_of_the_assistant_and_apart(name: str) -> None:
    to = Target(plain_row(name), "made-up", "http://127.0.0.1:9/v1")
    calling = Message("assistant", (Commentary(SAID), ToolCall("call_1", "look")))
    history = (user("?"), TURN, user("And?"), calling, Message("tool", (ToolResult("call_1", "x", "look"),)), user("!"))
    request, notices = find_dialect(name).encode(Prompt(history), to)
    body = json.loads(request.body)
    texts = [text for text in _texts(body) if SAID in text]
    assert len(texts) == 2, "said once in each turn"
    assert not any(THOUGHT in text for text in texts)
    for text in texts:
        assert text in (SAID, f"{SAID}\n\n", f"{SAID}\n\n{ANSWER}"), "with its words, and apart from the answer"
    assert not [notice for notice in notices if "Commentary" in notice.detail]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _texts(each)]


def test_law_phases_go_back_exactly_as_they_came() -> None:
    body = responses_stream(*_ITEMS[1:])
    reply, _ = reply_of([body], responses_target(), "openai_responses")
    turn = finish_turn(reply)
    assert turn is not None
    saved = from_document(to_document([turn])).messages[0]
    for kept in (turn, saved):
        request, _ = find_dialect("openai_responses").encode(Prompt((user("?"), kept, user("!"))), responses_target())
        items = json.loads(request.body)["input"][1:-1]
        assert [(item["phase"], item["content"][0]["text"]) for item in items] == [
            ("commentary", SAID),
            ("final_answer", ANSWER),
        ]


@pytest.mark.parametrize(
    "content", [SAID, [{"type": "output_text", "text": SAID, "annotations": []}]], ids=["text", "parts"]
)
def test_law_items_of_a_client_keep_their_phases(content: object) -> None:
    items: list[Any] = [
        {"role": "user", "content": "?"},
        {"type": "message", "role": "assistant", "phase": "commentary", "content": content},
        {"type": "message", "role": "assistant", "phase": "final_answer", "content": ANSWER},
        {"role": "user", "content": "!"},
    ]
    read = import_messages(items, "responses")
    assert [type(part) for part in read[1].parts] == [Commentary, Text]
    assert read[1].text == ANSWER
    request, _ = find_dialect("openai_responses").encode(Prompt(read), responses_target())
    assert json.loads(request.body)["input"] == items


def test_law_a_message_keeps_its_channels_when_it_is_saved_redacted_and_stripped() -> None:
    for kept in (
        from_document(to_document([TURN])).messages[0],
        from_document(to_document([TURN], keep_thinking=True)).messages[0],
        redact((TURN,))[0],
        strip_thinking((TURN,), "all")[0],
    ):
        assert [part.text for part in kept.parts if isinstance(part, Commentary)] == [SAID]
        assert kept.text == ANSWER
    for shape in ("openai_chat", "anthropic", "openai_responses"):
        exported = json.dumps(export_messages((TURN,), shape))
        assert SAID in exported
        assert THOUGHT not in exported


def test_law_a_file_of_an_earlier_version_still_loads() -> None:
    entry = '{"type":"message","id":"msg_1","phase":"commentary","content":[{"type":"output_text","annotations":[]}]}'
    old = Message("assistant", (Text(SAID, (Seal("item", "", None, entry),)), Text(ANSWER)))
    read = from_document(to_document([old])).messages[0]
    assert read == old


# --- live: agents, conversations, front ends --------------------------------------------------------------------------

CHAT, RESPONSES = "openai-chat:gpt-5", "openai-responses:gpt-5"
both = pytest.mark.parametrize("model", [CHAT, RESPONSES])


class Found(msgspec.Struct):
    number: int


@both
def test_law_a_typed_answer_is_read_behind_commentary(stage: OpenStage, model: str) -> None:
    opened = stage(Say(thinking=THOUGHT, commentary=f'{SAID} {{"number": 13}}', text=ANSWER))
    options: dict[str, Any] = {"base_url": opened.url, "api_key": KEY}
    reply = asides.ask(model, "?", output=Found, **options)
    assert reply.output == Found(42)
    result = asides.Agent(model, output=Found, **options).send("?")
    assert (result.output, result.commentary) == (Found(42), f'{SAID} {{"number": 13}}')
    assert (result.metadata["commentary"], result.to_dict()["commentary"]) == (result.commentary, result.commentary)


@both
def test_law_commentary_alone_is_no_answer(stage: OpenStage, model: str) -> None:
    opened = stage(Say(commentary=SAID))
    reply = asides.ask(model, "?", base_url=opened.url, api_key=KEY)
    assert (reply.text, reply.outcome, reply.commentary) == ("", "unanswered", SAID)
    with pytest.raises(asides.NoAnswer, match=SAID) as raised:
        reply.require_answer()
    assert raised.value.partial == reply
    cut = asides.ask(model, "?", base_url=stage(Say(commentary=SAID, stop="length")).url, api_key=KEY)
    assert (cut.text, cut.outcome) == ("", "starved")


@both
def test_law_a_conversation_sends_it_back(stage: OpenStage, model: str, tmp_path: Path) -> None:
    opened = stage(Say(thinking=THOUGHT, commentary=SAID, text=ANSWER))
    chat = asides.Conversation(model, base_url=opened.url, api_key=KEY)
    assert chat.ask("one").commentary == SAID
    chat.save(tmp_path / "saved.json")
    for each in (chat, asides.Conversation.load(tmp_path / "saved.json", base_url=opened.url, api_key=KEY)):
        each.ask("two")
        body = json.loads(opened.requests[-1].body)
        sent = json.dumps(body)
        assert sent.count(SAID) == 1
        assert (sent.count('"phase"') > 0) == (model == RESPONSES)
        assert each.messages[1].text == ANSWER


@pytest.mark.parametrize("write", [asides.ui.vercel_chunks, asides.ui.ag_ui_events], ids=["vercel", "ag_ui"])
def test_law_a_front_end_gets_a_text_of_its_own_that_says_what_it_is(write: Any) -> None:
    chunks: list[dict[str, Any]] = list(write(EVENTS))
    key = "id" if write is asides.ui.vercel_chunks else "messageId"
    texts: dict[str, str] = {}
    for chunk in chunks:
        if "delta" in chunk:
            texts[chunk[key]] = texts.get(chunk[key], "") + chunk["delta"]
    assert sorted(texts.values()) == sorted([THOUGHT, SAID, ANSWER])
    marked = [chunk[key] for chunk in chunks if "'commentary': True" in str(chunk)]
    assert [texts[each] for each in marked] == [SAID]


def test_law_a_posted_front_end_message_keeps_it_apart() -> None:
    parts = [
        {"type": "text", "text": SAID, "providerMetadata": {"asides": {"commentary": True}}},
        {"type": "text", "text": ANSWER},
    ]
    (read,) = asides.ui.read_vercel([{"id": "1", "role": "assistant", "parts": parts}])
    assert read.parts == (Commentary(SAID), Text(ANSWER))
    said = {"id": "a", "role": "assistant", "content": SAID, "metadata": {"asides": {"commentary": True}}}
    (read,) = asides.ui.read_ag_ui([said, {"id": "b", "role": "assistant", "content": ANSWER}])
    assert read.parts == (Commentary(SAID), Text(ANSWER))


def test_law_the_page_gets_it_marked_and_saves_it_marked() -> None:
    written = EventWriter(Visibility(gateway=("raw", "summary")), lambda: 0.0)
    told = [json.loads(line[6:]) for line in written.write(EVENTS).decode().splitlines() if line.startswith("data: ")]
    assert [each for each in told if SAID in str(each)] == [{"block": 1, "commentary": True, "text": SAID}]
    assert [each for each in told if ANSWER in str(each.get("text"))] == [{"block": 2, "text": ANSWER}]
    blocks = show_message(TURN, 1, Note(), Visibility())["blocks"]
    assert blocks[1:] == [{"type": "text", "text": SAID, "commentary": True}, {"type": "text", "text": ANSWER}]


def test_law_a_span_with_content_has_a_part_of_its_own(stage: OpenStage) -> None:
    opened = stage(Say(thinking=THOUGHT, commentary=SAID, text=ANSWER))
    with recording(content=True) as recorded, asides.Client() as client:
        client.ask(CHAT, "?", base_url=opened.url, api_key=KEY)
    (written,) = msgspec.json.decode(get(recorded.find("chat gpt-5"))["gen_ai.output.messages"])
    parts = {part["type"]: part["content"] for part in written["parts"]}
    assert (parts["commentary"], parts["text"]) == (SAID, ANSWER)
    with recording() as recorded, asides.Client() as client:
        client.ask(CHAT, "?", base_url=opened.url, api_key=KEY)
    assert "canary" not in recorded.dump()


@pytest.mark.parametrize("streaming", [False, True])
def test_law_langchain_has_the_answer_as_content_and_brings_the_rest_back(stage: OpenStage, streaming: bool) -> None:
    pytest.importorskip("langchain_core")
    from asides.langchain import ChatAsides

    opened = stage(Say(thinking=THOUGHT, commentary=SAID, text=ANSWER))
    chat = ChatAsides(model=RESPONSES, base_url=opened.url, api_key=KEY)
    if streaming:
        pieces = list(chat.stream("?"))
        answer: Any = pieces[0]
        for piece in pieces[1:]:
            answer = answer + piece
    else:
        answer = chat.invoke("?")
    assert answer.content == ANSWER
    assert answer.text == ANSWER
    chat.invoke([("human", "?"), answer, ("human", "!")])
    items = json.loads(opened.requests[-1].body)["input"]
    assert [item["content"][0]["text"] for item in items if item.get("phase") == "commentary"] == [SAID]
    assert json.dumps(items).count(SAID) == 1
