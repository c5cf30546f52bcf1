"""Messages as the page shows them."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from asides.values.events import StopReason
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import File, Image, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.reply import CallContext, Reply
from asides.values.thinking import Seal, Thought
from asides.values.usage import Timing, Usage
from asides.values.visibility import Visibility
from asides_gateway.page_messages import Note, NotedThought, make_note, read_note, show_message

_ALL = Visibility(gateway=("raw", "summary"))
_SEAL = Seal("signature", "secret-seal")


def test_every_part_has_a_block_and_no_seal_is_shown() -> None:
    message = Message(
        "assistant",
        (
            Thought("mine", "raw", seals=(_SEAL,)),
            Text("said", (_SEAL,)),
            Text("", (_SEAL,)),
            ToolCall("c1", "look", {"a": 1}, None, (_SEAL,)),
            ToolCall("c2", "run", {}, "free text"),
            ToolResult("c1", (Text("seen"), Image(data=b"\x89PNG")), "look"),
            Refusal("no"),
            ServerTool("web_search", "s1", "completed", '{"secret-seal": 1}'),
            Image(data=b"\x89PNG1234"),
            File(name="a.pdf", data=b"%PDF"),
            UnknownPart('{"secret-seal": 1}'),
        ),
    )
    shown = show_message(message, 4, Note(), _ALL)
    assert b"secret-seal" not in msgspec.json.encode(shown)
    assert shown == {
        "id": 4,
        "role": "assistant",
        "blocks": [
            {"type": "thought", "text": "mine", "kind": "raw"},
            {"type": "text", "text": "said"},
            {"type": "call", "id": "c1", "name": "look", "arguments": {"a": 1}},
            {"type": "call", "id": "c2", "name": "run", "arguments": "free text"},
            {"type": "result", "id": "c1", "name": "look", "text": "seen", "is_error": False},
            {"type": "text", "text": "no", "refusal": True},
            {
                "type": "call",
                "id": "s1",
                "name": "web_search",
                "arguments": {},
                "by_provider": True,
                "status": "completed",
            },
            {"type": "file", "name": "", "media_type": "image/png", "bytes": 8, "data": b"\x89PNG1234"},
            {"type": "file", "name": "a.pdf", "media_type": "application/pdf", "bytes": 4},
            {"type": "unknown"},
        ],
    }


def test_thinking_is_shown_as_far_as_the_policy_allows() -> None:
    message = Message("assistant", (Thought("raw words", "raw"), Thought("summed up", "summary"), Text("said")))
    for kinds, shown in (
        (("raw", "summary"), [("raw", "raw words"), ("summary", "summed up")]),
        (("summary",), [("hidden", ""), ("summary", "summed up")]),
        ((), [("hidden", ""), ("hidden", "")]),
    ):
        blocks = show_message(message, 0, Note(), Visibility(gateway=kinds))["blocks"]  # type: ignore[arg-type]
        assert [(block["kind"], block["text"]) for block in blocks[:2]] == shown


def test_a_thought_without_its_text_keeps_its_kind_and_its_time() -> None:
    note = Note(thoughts=(NotedThought("raw", 2.5, 40), NotedThought("summary", 1.0)))
    message = Message("assistant", (Thought("", "hidden", withheld=True), Text("said")))
    assert show_message(message, 0, note, _ALL)["blocks"] == [
        {"type": "thought", "text": "", "kind": "summary", "seconds": 1.0},
        {"type": "thought", "text": "", "kind": "raw", "seconds": 2.5, "tokens": 40},
        {"type": "text", "text": "said"},
    ]


def test_a_note_holds_figures_and_no_content() -> None:
    reply = Reply(
        (Thought("private thought", seconds=1.23456), Text("private answer")),
        Usage(10, 20, 5, cost=Decimal("0.5")),
        StopReason("length"),
        (Notice("effort_mapped", "high is called max here"),),
        call=CallContext(timing=Timing(0.1, 0.2, 0.3, 1.2, 2.0)),
    )
    note = make_note(reply, "acme:m", "length")
    written = msgspec.json.encode(note)
    assert b"private" not in written
    assert read_note(written) == note
    shown = show_message(Message("assistant", (Text("x"),)), 1, note, _ALL)
    assert shown["blocks"][0] == {"type": "thought", "text": "", "kind": "raw", "seconds": 1.235, "tokens": 5}
    del shown["blocks"]
    assert shown == {
        "id": 1,
        "role": "assistant",
        "model": "acme:m",
        "usage": {"input": 10, "output": 20, "thinking": 5, "origin": "reported"},
        "cost": 0.5,
        "timing": {"first_event": 0.1, "first_thought": 0.2, "first_word": 0.3, "thinking": 1.2, "total": 2.0},
        "outcome": "answered",
        "stopped": "length",
        "notices": ({"code": "effort_mapped", "detail": "high is called max here"},),
    }


def test_a_note_that_cannot_be_read_is_none() -> None:
    assert [read_note(note) for note in (None, b"", b"[1]", b'{"thoughts": 3}', b"\xff")] == [Note()] * 5
    assert read_note(b'{"model": "m", "of a later version": 1}') == Note(model="m")
