"""Documents round-trip, in this version and later ones, and nothing is lost without a notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.history.document import from_document, read_message, to_document, write_message
from asides.history.redact import redact
from asides.values.errors import ConfigError
from asides.values.messages import Message, StoredResponse, system, user
from asides.values.parts import File, Image, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from tests.history.any_messages import JSON, MESSAGES, TEXTS
from tests.history.strict_stages import MODELS, Model, StrictRules, question

GOLDEN = Path(__file__).parent / "document_version_1.json"
MAKER = Origin("anthropic", "https://api.anthropic.com", "claude-opus-4-6")

EVERYTHING = (
    system("Be brief."),
    user("What is this?", Image(data=b"\x00\xff", media_type="image/png", detail="low", cache=True), File(id="file_1")),
    Message(
        "assistant",
        (
            Thought("A plan.", "summary", "block", MAKER, (Seal("signature", "c2lnbmVk", MAKER),), "thinking"),
            Thought("", "hidden", "block", MAKER, (Seal("redacted", "Y2lwaGVy", MAKER),)),
            Thought("", "hidden", "responses_summary", None, (Seal("encrypted", "gAAA", None, '{"id":"rs_1"}'),)),
            Thought("cut", complete=False),
            Thought("", "hidden", withheld=True),
            Text("A cat.", (Seal("citations", "", MAKER, "[1]"),)),
            ToolCall("c1", "look_up", {"n": [1, {"deep": None}], "é": "日"}),
            ToolCall("c2", "run", {}, "text of its own", custom=True),
            ServerTool("web_search_call", "ws_1", "completed", '{"type":"web_search_call"}', MAKER),
            UnknownPart('{"type":"new"}', MAKER),
            Refusal("No."),
        ),
        stored=StoredResponse("resp_1", MAKER),
    ),
    Message("tool", (ToolResult("c1", (Text("42"), Image(url="https://x/y.png")), "look_up", is_error=True),)),
)


def written() -> bytes:
    return to_document(EVERYTHING, system="You are a cat.", keep_thinking=True, metadata={"title": "Cats", "tags": [1]})


def test_the_form_of_version_1_has_not_changed() -> None:
    """Red when a document comes out otherwise than before. What people have saved must read for ever."""
    # Until 0.1 a thought was tagged otherwise. Such documents are still read.
    renamed = GOLDEN.read_text(encoding="utf-8").replace('"type":"thought"', '"type":"reasoning"')
    assert json.loads(written()) == json.loads(renamed.replace('"type": "thought"', '"type": "reasoning"'))
    read = from_document(GOLDEN.read_bytes())
    assert (read.messages, read.system, read.metadata) == (EVERYTHING, "You are a cat.", {"title": "Cats", "tags": [1]})
    assert (read.keeps_thinking, read.notices) == (True, ())


def test_whether_a_thought_is_replayable_is_written_only_where_it_is_not() -> None:
    message = Message("assistant", (Thought("a"), Thought("b", replayable=False)))
    assert json.loads(write_message(message))["parts"] == [
        {"type": "reasoning", "text": "a"},
        {"type": "reasoning", "text": "b", "replayable": False},
    ]
    assert read_message(write_message(message)) == (message, ())


@pytest.mark.requirement("S2-23")
def test_S2_23_parts_are_tagged_by_type_and_a_thought_is_reasoning() -> None:
    message = Message("assistant", (Thought("a", "summary", via="x"), Text("b"), ToolCall("c", "f")))
    saved = json.loads(write_message(message))
    assert [part["type"] for part in saved["parts"]] == ["reasoning", "text", "tool_call"]
    for tag in ("reasoning", "thought"):
        saved["parts"][0]["type"] = tag
        assert read_message(json.dumps(saved)) == (message, ())
        document = json.dumps({"asides": 1, "messages": [saved]})
        assert from_document(document).messages == (message,)


def test_the_fields_of_a_part_are_looked_up_once_and_not_for_each_message(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[object] = []
    fields, convert = msgspec.structs.fields, msgspec.convert

    def count_fields(kind: Any) -> Any:
        looked_up.append(kind)
        return fields(kind)

    def count_convert(value: object, kind: Any) -> Any:
        looked_up.append(kind)
        return convert(value, kind)

    monkeypatch.setattr(msgspec.structs, "fields", count_fields)
    monkeypatch.setattr(msgspec, "convert", count_convert)
    messages = (
        user("a"),
        Message("assistant", (Thought("b", origin=MAKER, seals=(Seal("s", "t", MAKER),)), Text("c"))),
    )
    document = to_document(messages * 200, keep_thinking=True)
    assert len(looked_up) == len(set(looked_up)), "each type once, however many messages"
    looked_up.clear()
    assert len(from_document(document).messages) == 400
    # msgspec remembers the fields of a struct, and of nothing else.
    assert all(isinstance(kind, type) and issubclass(kind, msgspec.Struct) for kind in looked_up)


@pytest.mark.requirement("H9", "FT-49", "FT-04")
@given(
    messages=MESSAGES,
    words=st.none() | TEXTS,
    metadata=st.dictionaries(TEXTS, JSON, max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_H9_whatever_is_written_is_read_again(
    messages: tuple[Message, ...], words: str | None, metadata: dict[str, Any]
) -> None:
    read = from_document(to_document(messages, system=words, keep_thinking=True, metadata=metadata))
    assert (read.messages, read.system, read.metadata, read.notices) == (messages, words, metadata, ())
    assert from_document(to_document(messages)).messages == redact(messages)
    assert [read_message(write_message(message)) for message in messages] == [(message, ()) for message in messages]


@pytest.mark.requirement("H9")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_H9_a_history_of_any_dialect_is_the_same_request_after_it_was_saved(model: Model) -> None:
    house = StrictRules(model)
    history = (*house.conversation(2), question(2))
    loaded = from_document(to_document(history, keep_thinking=True)).messages
    assert house.request(loaded)[0].body == house.request(history)[0].body
    assert house.refusal(loaded) is None


# --- later versions -------------------------------------------------------------------------------------------------


def test_a_document_of_a_later_version_is_refused_with_advice() -> None:
    with pytest.raises(ConfigError, match=r"saved by a later asides \(version 2 .* up to 1\)\. Upgrade"):
        from_document('{"asides": 2, "messages": []}')


def test_parts_that_a_later_asides_knows_are_kept_reported_never_sent_and_written_as_they_came() -> None:
    part = {"type": "hologram", "data": "secret words", "n": [1]}
    saved = {"asides": 1, "messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}, part]}]}
    read = from_document(json.dumps(saved))
    assert [notice.code for notice in read.notices] == ["later_part"]
    assert "secret" not in str(read.notices)
    answer = json.dumps({"role": "assistant", "parts": [part]})
    turn, notices = read_message(answer)
    assert [notice.code for notice in notices] == ["later_part"]
    for model in MODELS[:7]:
        house = StrictRules(model)
        for history in (read.messages, (user("hi"), turn, user("?"))):
            assert b"secret" not in house.request(history)[0].body, model
    assert json.loads(to_document(read.messages)) == saved
    assert json.loads(write_message(turn)) == json.loads(answer)


def test_fields_that_a_later_asides_knows_are_reported() -> None:
    part = {"type": "text", "text": "hi", "mood": "good"}
    saved = {"asides": 1, "weather": 1, "messages": [{"role": "user", "parts": [part], "at": 5}]}
    read = from_document(json.dumps(saved))
    assert read.messages == (user("hi"),)
    assert sorted(notice.detail.split("'")[1] for notice in read.notices) == ["at", "mood", "weather"]
    assert {notice.code for notice in read.notices} == {"later_field"}


# --- what is none ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("canary", "is not JSON"),
        ('{"asides": 1, "messages": [{"role": "user", "par', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        ('["canary"]', "not a JSON object"),
        ('{"messages": []}', "has no version"),
        ('{"asides": "canary", "messages": []}', "has no version"),
        ('{"asides": true, "messages": []}', "has no version"),
        ('{"asides": 0, "messages": []}', "has no version"),
        ('{"asides": 1}', "no list of messages"),
        ('{"asides": 1, "messages": ["canary"]}', r"messages\[0\] is not an object"),
        ('{"asides": 1, "messages": [{"role": "canary"}]}', r"messages\[0\] cannot be read at \$\.role"),
        ('{"asides": 1, "messages": [{"role": "user", "parts": "canary"}]}', "no list of parts"),
        ('{"asides": 1, "messages": [{"role": "user", "parts": [1]}]}', r"parts\[0\] has no type"),
        ('{"asides": 1, "messages": [{"role": "user", "parts": [{"type": "text"}]}]}', r"parts\[0\] cannot be read"),
        (
            '{"asides": 1, "messages": [{"role": "user", "parts": [{"type":"thought","text":"","kind":"canary"}]}]}',
            r"parts\[0\] cannot be read at \$\.kind",
        ),
        ('{"asides": 1, "system": ["canary"], "messages": []}', "the head of the saved conversation cannot be read"),
    ],
)
def test_what_is_no_document_is_refused_and_none_of_it_repeated(document: str | bytes, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        from_document(document)
    assert "canary" not in str(caught.value)
    assert "" in str(caught.value)


def test_a_value_that_json_cannot_hold_is_refused() -> None:
    for metadata in ({"a": object()}, {"a": "\ud800"}):
        with pytest.raises(ConfigError, match="cannot be written as JSON"):
            to_document((), metadata=metadata)
