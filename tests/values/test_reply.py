"""A reply: the answer, the thinking and the outcome; what counts for equality; what is shown and what is not."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import msgspec
import pytest

from asides.values.errors import NoAnswer
from asides.values.events import StopKind, StopReason
from asides.values.messages import Message, StoredResponse
from asides.values.notices import Notice
from asides.values.parts import File, Image, Part, Refusal, Text, ToolCall, ToolResult
from asides.values.reply import CallContext, Outcome, Reply, Revealed
from asides.values.thinking import NO_THOUGHT, Origin, Seal, Thought
from asides.values.usage import Timing, Usage
from asides.values.visibility import Visibility

ORIGIN = Origin("example", "https://example", "m")
SIGNED = Thought("plan", "summary", "block", ORIGIN, (Seal("signature", "s1"),), "thinking")
SEALED = Thought("", "hidden", "block", None, (Seal("encrypted", "e1"), Seal("empty", "")))
CALL = ToolCall("c1", "f", seals=(Seal("thought_signature", "s2"),))


@pytest.mark.parametrize(
    ("parts", "thinking"),
    [
        ((), NO_THOUGHT),
        ((Text("a"),), NO_THOUGHT),
        ((Thought(""),), NO_THOUGHT),
        ((Thought(" \n"),), NO_THOUGHT),
        ((Thought("raw"),), Thought("raw", origin=ORIGIN)),
        ((SIGNED, Text("a")), SIGNED),
        ((SEALED,), Thought("", "hidden", "block", ORIGIN, (Seal("encrypted", "e1"),))),
        (
            (SEALED, SIGNED),
            Thought("plan", "summary", "block", ORIGIN, (Seal("encrypted", "e1"), Seal("signature", "s1")), "thinking"),
        ),
        ((Thought("a", "summary"), Thought("b")), Thought("a\n\nb", "raw", origin=ORIGIN)),
        ((Thought("a"), Thought("b", complete=False)), Thought("a\n\nb", origin=ORIGIN, complete=False)),
    ],
)
def test_the_thinking_is_that_of_all_blocks(parts: tuple[Part, ...], thinking: Thought) -> None:
    found = Reply(parts, origin=ORIGIN).thinking
    assert found == thinking
    assert bool(found) is (found != NO_THOUGHT)


@pytest.mark.parametrize(
    ("parts", "stop", "outcome"),
    [
        ((Text("42"),), "stop", "answered"),
        ((Text("42"),), "length", "answered"),
        ((Text("I look."), CALL), "tool_calls", "tool_calls"),
        ((Thought("t"),), "length", "starved"),
        ((Thought("t"), Text(" \n")), "stop", "unterminated"),
        ((), "unknown", "unterminated"),
        ((Image(data=b"\x89PNG"),), "stop", "answered"),
        ((Thought("t"), File(data=b"%PDF-")), "length", "answered"),
        ((Refusal("no"),), "stop", "refused"),
        ((Text("I am sorry"),), "refusal", "refused"),
        ((Text("half"), CALL), "content_filter", "filtered"),
    ],
)
def test_the_outcome_in_one_word(parts: tuple[Part, ...], stop: StopKind, outcome: Outcome) -> None:
    assert Reply(parts, stop=StopReason(stop)).outcome == outcome


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (
            Reply((Thought("secret"),), stop=StopReason("length"), model="m"),
            r"^m gave no answer \(starved\).*max_t",
        ),
        (Reply((CALL,)), r"^the model gave no answer \(tool_calls\).*run them"),
        (Reply((Refusal("secret"),)), r"\(refused\).*reply\.refusal"),
        (Reply((Text("secret"),), stop=StopReason("content_filter")), r"\(filtered\)"),
        (Reply((Text(" "),)), r"\(unterminated\)"),
    ],
)
def test_a_required_answer_that_is_missing_raises_with_advice_and_no_content(reply: Reply, says: str) -> None:
    with pytest.raises(NoAnswer, match=says) as caught:
        reply.require_answer()
    assert caught.value.partial is reply
    assert "secret" not in str(caught.value)


def test_an_answer_beside_calls_is_an_answer() -> None:
    reply = Reply((Text("I look."), CALL))
    assert reply.require_answer() is reply


def test_text_never_holds_thinking_or_a_refusal() -> None:
    reply = Reply((SIGNED, Text("4"), Refusal("no"), Text("2"), CALL, SEALED))
    assert (reply.text, reply.content, str(reply)) == ("42", "42", "42")
    assert (reply.refusal, reply.tool_calls) == ("no", (CALL,))
    assert reply.seals == (Seal("signature", "s1"), Seal("thought_signature", "s2"), Seal("encrypted", "e1"))
    assert reply.with_tags() == "<thinking>plan</thinking>\n\n42"
    assert Reply((SEALED, Text("42"))).with_tags() == "42"
    assert Reply((Text("42"), ToolResult("c", "x"))).refusal is None


@pytest.mark.parametrize(
    ("parts", "revealed", "more"),
    [
        ((Text("a"),), (), {"thinking_source": "none"}),
        ((SIGNED,), (), {"thinking_source": "block", "thinking": "plan", "thinking_type": "summary"}),
        ((SIGNED,), ("thinking_raw",), {"thinking_source": "block", "thinking": "plan", "thinking_type": "summary"}),
        (
            (Thought("raw"),),
            ("thinking_raw",),
            {"thinking_source": "field", "thinking": "raw", "thinking_type": "raw", "thinking_raw": "raw"},
        ),
        ((SEALED,), (), {"thinking_source": "block"}),
        ((SEALED,), ("thinking_encrypted",), {"thinking_source": "block", "thinking_encrypted": ("e1",)}),
    ],
)
def test_metadata_reveals_what_was_asked_for(
    parts: tuple[Part, ...], revealed: tuple[Revealed, ...], more: dict[str, Any]
) -> None:
    view = Reply(parts, Usage(1, 2), model="m", call=CallContext(payloads=(b'{"a":1}',), revealed=revealed)).metadata
    assert dict(view) == {"model": "m", "usage": Usage(1, 2), "raw": {"a": 1}, **more}
    with pytest.raises(TypeError):
        view["model"] = "other"  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize(
    ("payloads", "streamed", "raw"),
    [
        ((), False, None),
        ((), True, []),
        ((b'{"a":1}',), False, {"a": 1}),
        ((b'{"a":1}', b"[DONE]"), True, [{"a": 1}, "[DONE]"]),
        ((b"\xff{",), False, "�{"),
    ],
)
def test_the_raw_reply_is_decoded_where_it_decodes(payloads: tuple[bytes, ...], streamed: bool, raw: object) -> None:
    assert Reply(call=CallContext(payloads=payloads, streamed=streamed)).raw == raw


def test_a_streamed_reply_equals_the_same_reply_received_whole() -> None:
    reply = Reply((SIGNED, Text("42")), Usage(1), StopReason("stop"), model="m", id="r1")
    streamed = reply.with_call(payloads=(b"{}",), streamed=True, revealed=("thinking_raw",))
    assert reply == streamed
    assert not reply != streamed  # noqa: SIM202
    for name, value in {"parts": (), "usage": Usage(2), "id": "r2", "complete": False, "stored": True}.items():
        other = msgspec.structs.replace(reply, **{name: value})
        assert other != reply, name
        assert not other == reply, name  # noqa: SIM201
    assert reply != "42"
    with pytest.raises(TypeError, match="unhashable"):
        hash(reply)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply((Text("a"),)), Message("assistant", (Text("a"),))),
        (Reply(), Message("assistant")),
        (Reply(warnings=(Notice("no_choices"),)), None),
        (Reply((Text("a"),), warnings=(Notice("no_choices"),)), Message("assistant", (Text("a"),))),
        (
            Reply((Text("a"),), id="resp_1", origin=ORIGIN, stored=True),
            Message("assistant", (Text("a"),), stored=StoredResponse("resp_1", ORIGIN)),
        ),
        (Reply((Text("a"),), stored=True), Message("assistant", (Text("a"),))),
    ],
)
def test_the_message_for_the_history(reply: Reply, message: Message | None) -> None:
    assert reply.to_message() == message


def test_the_repr_shows_neither_the_answer_nor_the_thinking() -> None:
    shown = repr(Reply((Thought("secret"), Text("secret"), ToolCall("c1", "f", {"a": "secret"}))))
    assert shown.startswith("Reply(<6 characters>, outcome='tool_calls', thinking=Thought(<6 characters>")
    assert "secret" not in shown


def test_a_notebook_shows_the_answer_with_the_thinking_folded_above_it() -> None:
    reply = Reply(
        (Thought("1 < 2\n\n</details><b>so"), Text("**Yes.**")), call=CallContext(timing=Timing(thinking=2.4))
    )
    assert reply._repr_markdown_() == (
        "<details><summary>Thinking (2 s)</summary>1 &lt; 2<br><br>&lt;/details&gt;&lt;b&gt;so</details>\n\n**Yes.**"
    )
    assert Reply((Text("Yes."),))._repr_markdown_() == "Yes."
    hidden = CallContext(visibility=Visibility(user=()))
    assert Reply((Thought("plan"), Text("Yes.")), call=hidden)._repr_markdown_() == "Yes."


def test_a_document_that_is_nested_too_deeply_stays_text() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    assert Reply(call=CallContext(payloads=(deep,))).metadata["raw"] == deep.decode()


class _Expected:
    """Counts how often an output is read."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self, reply: Reply) -> list[str]:
        self.reads += 1
        return [reply.text]


def test_the_output_is_read_once_for_each_reply_and_its_context_shows_nothing() -> None:
    expected = _Expected()
    context = CallContext(expected=expected, payloads=(b"secret",))
    first = Reply((Text("a"),), call=context)
    assert expected.reads == 0
    assert first.output is first.output
    assert expected.reads == 1
    second = msgspec.structs.replace(first, parts=(Text("b"),))
    assert (second.output, first.output) == (["b"], ["a"])
    other = _Expected()
    assert first.with_call(expected=other).output == ["a"]
    assert other.reads == 1
    assert repr(context) == "CallContext(<1 payloads>, streamed=False)"


def test_the_context_survives_copies_and_pickles() -> None:
    reply = Reply((Text("a"),), call=CallContext(payloads=(b"{}",), streamed=True, prefix="abc", effort="high"))
    for again in (copy.deepcopy(reply), pickle.loads(pickle.dumps(reply))):
        assert again == reply
        assert (again.payloads, again.streamed, again.prefix, again.effort) == ((b"{}",), True, "abc", "high")
    decoded = msgspec.json.decode(msgspec.json.encode(reply), type=Reply)
    assert (decoded, decoded.prefix, decoded.effort) == (reply, "abc", "high")
