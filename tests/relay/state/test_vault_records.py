"""Records of turns: what they are found by, what they hold, and what they never hold."""

from __future__ import annotations

import msgspec
import pytest

from asides.providers.find import find_target
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import TurnState
from asides.relay.state.vault_records import (
    Turn,
    find_turns,
    list_levels,
    make_turn_record,
    open_turn_record,
    read_payload,
    write_payload,
)
from asides.relay.steps import StoredRecord
from asides.values.messages import Message, assistant, user
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Origin, Seal, Thought

RING = RelayKeys((b"k" * 32,))
KEYS = RING.find_tenant("a")


def origin_of(model: str) -> Origin:
    return find_target(model).origin


CLAUDE = origin_of("anthropic:claude-sonnet-4-5")
GEMINI = origin_of("gemini:gemini-3-pro-preview")
OPENAI = origin_of("openai-responses:gpt-5")
DEEPSEEK = origin_of("deepseek:deepseek-reasoner")
SECRET = "a thought of the model"


def reply_of(origin: Origin, *parts: Part, complete: bool = True) -> Reply:
    return Reply(parts, model=origin.model, id="reply_1", origin=origin, complete=complete)


def signed(text: str = SECRET) -> Thought:
    return Thought(text, "summary", "block", CLAUDE, (Seal("signature", "SIGNATURE", CLAUDE),), "thinking")


def record_of(reply: Reply, *history: Message) -> StoredRecord:
    record = make_turn_record(reply, history, KEYS)
    assert record is not None
    return record


def state_of(reply: Reply) -> TurnState:
    state = open_turn_record(record_of(reply, user("hi")), KEYS)
    assert state is not None
    return state


def turns_of(*messages: Message) -> list[Turn]:
    return list(find_turns(messages))


def is_found(record: StoredRecord, turn: Turn) -> list[bool]:
    """Whether each level of the turn, the surest first, finds the record."""
    return [not level.isdisjoint(record.keys) for level in list_levels(turn, KEYS)]


def test_a_turn_is_found_by_its_calls_and_by_what_was_said() -> None:
    call = ToolCall("call_123456789", "look_up", {"n": 1, "m": 2.0})
    record = record_of(reply_of(CLAUDE, signed(), Text("I look it up."), call), user("What is it?"))
    (turn,) = turns_of(user("What is it?"), Message("assistant", (Text("I look it up."), call)))
    assert is_found(record, turn) == [True, True, True, True]
    # With ids of its own, and the arguments in another order and spelling.
    other = ToolCall("mine", "look_up", {"m": 2, "n": 1})
    (turn,) = turns_of(user("What is it?"), Message("assistant", (Text(" I look it up.\n"), other)))
    assert is_found(record, turn) == [False, True, True, True]


def test_the_history_before_a_turn_decides_which_of_two_alike_it_is() -> None:
    first = record_of(reply_of(CLAUDE, signed("one"), Text("ok")), user("First."))
    history = (user("First."), assistant("ok"), user("Second."))
    second = record_of(reply_of(CLAUDE, signed("two"), Text("ok")), *history)
    one, two = turns_of(*history, assistant("ok"))
    assert is_found(first, one) == [True, True]
    assert is_found(second, one) == [False, False]
    assert is_found(second, two) == [True, True]
    assert is_found(first, two) == [False, False]


def test_a_turn_is_found_after_the_history_before_it_was_cut() -> None:
    text = "The answer is forty-two, as far as I can see."
    history = (user("First."), assistant("ok"), user("Second."))
    record = record_of(reply_of(CLAUDE, signed(), Text(text)), *history)
    (cut,) = turns_of(user("Second."), assistant(text))
    assert is_found(record, cut) == [False, True, True]
    (bare,) = turns_of(user("Something else."), assistant(text))
    assert is_found(record, bare) == [False, False, True]
    (changed,) = turns_of(user("Second."), assistant(text.upper()))
    assert is_found(record, changed) == [False, False, False]


def test_a_turn_whose_calls_have_ids_of_their_own_is_not_another_with_the_same_words() -> None:
    def call(call_id: str) -> ToolCall:
        return ToolCall(call_id, "search", {"words": "trains"})

    record = record_of(reply_of(CLAUDE, signed(), call("call_aB3dE5gH7jK9mN1pQ3sT5vX7")), user("first"), user("go on"))
    (other,) = turns_of(user("second"), user("go on"), assistant(call("call_zY8xW6vU4tS2rQ0pO8nM6lK4")))
    assert not any(is_found(record, other))
    # A client that numbers its calls has no other way.
    (numbered,) = turns_of(user("second"), user("go on"), assistant(call("1")))
    assert any(is_found(record, numbered))


def test_a_short_text_alone_finds_nothing() -> None:
    record = record_of(reply_of(CLAUDE, signed(), Text("ok")), user("First."))
    (turn,) = turns_of(user("Another conversation."), assistant("ok"))
    assert is_found(record, turn) == [False, False]


def test_results_of_tools_do_not_count_for_the_history() -> None:
    call = ToolCall("call_123456789", "look_up")
    before = (user("Go."), Message("assistant", (call,)))
    long, short = (Message("tool", (ToolResult("call_123456789", text),)) for text in ("long " * 99, "[cleared]"))
    record = record_of(reply_of(CLAUDE, signed(), Text("done")), *before, long)
    *_, turn = turns_of(*before, short, assistant("done"))
    assert is_found(record, turn) == [True, True]


def test_a_turn_in_pieces_is_the_same_turn() -> None:
    record = record_of(reply_of(CLAUDE, signed(), Text("One. Two.")), user("Go."))
    (turn,) = turns_of(user("Go."), assistant("One. "), assistant("Two."))
    assert is_found(record, turn) == [True, True]
    assert (turn.start, turn.end) == (1, 3)


@pytest.mark.parametrize(
    "thought",
    [
        Thought(SECRET, "summary", "block", GEMINI),
        Thought(
            SECRET,
            "summary",
            "responses_summary",
            OPENAI,
            (
                Seal(
                    "encrypted",
                    "ENCRYPTED",
                    OPENAI,
                    f'{{"type":"reasoning","id":"rs_1","summary":[{{"type":"summary_text","text":"{SECRET}"}}]}}',
                ),
            ),
            "summary",
        ),
    ],
    ids=["gemini", "responses"],
)
def test_thinking_that_its_provider_does_not_want_back_is_not_stored(thought: Thought) -> None:
    assert thought.origin is not None
    call = ToolCall("call_123456789", "look_up", seals=(Seal("thought_signature", "S", GEMINI),))
    record = record_of(reply_of(thought.origin, thought, call), user("hi"))
    assert SECRET.encode() not in (read_payload(record, KEYS) or SECRET.encode())


@pytest.mark.parametrize("thought", [signed(), Thought(SECRET, origin=DEEPSEEK, via="reasoning_content")])
def test_thinking_that_its_provider_wants_back_is_stored_and_encrypted(thought: Thought) -> None:
    assert thought.origin is not None
    reply = reply_of(thought.origin, thought, ToolCall("call_123456789", "look_up"))
    assert state_of(reply).parts[0].text == SECRET
    assert SECRET.encode() not in record_of(reply).payload
    assert b"SIGNATURE" not in record_of(reply).payload
    assert "call_123456789" not in str(record_of(reply).keys)


def test_thinking_that_goes_back_only_with_calls_is_stored_only_with_calls() -> None:
    thought = Thought(SECRET, origin=DEEPSEEK, via="reasoning_content")
    (answered,) = (part for part in state_of(reply_of(DEEPSEEK, thought, Text("42"))).parts if part.what == "thought")
    assert answered.text is None


def test_a_turn_of_a_provider_that_never_takes_thinking_back_is_stored_only_for_what_else_it_has() -> None:
    groq = origin_of("groq:qwen/qwen3-32b")
    thought = Thought(SECRET, origin=groq, via="reasoning")
    assert make_turn_record(reply_of(groq, thought, Text("42")), (user("hi"),), KEYS) is None
    named = reply_of(groq, thought, ToolCall("functions.look_up:0", "look_up"))
    for reply, ids in (
        (named, {"functions.look_up:0": "call_minted12345"}),
        (reply_of(groq, thought, Text("42", seals=(Seal("signature", "S", groq),))), {}),
        (reply_of(groq, thought, Text("42")).with_call(prefix="a digest"), {}),
    ):
        assert make_turn_record(reply, (user("hi"),), KEYS, caller_ids=ids) is not None
    # A provider that nobody knows may want it.
    unknown = Origin("unheard-of", "https://example.com/v1", "model")
    assert make_turn_record(reply_of(unknown, Thought(SECRET, origin=unknown), Text("42")), (), KEYS) is not None


def test_a_record_holds_no_text_of_the_answer_and_no_arguments() -> None:
    call = ToolCall("call_123456789", "look_up", {"city": "a secret city"})
    payload = read_payload(record_of(reply_of(CLAUDE, signed(), Text("a secret answer"), call)), KEYS)
    assert payload is not None
    assert b"secret" not in payload


def test_a_reply_that_broke_off_or_has_no_state_is_not_stored() -> None:
    assert make_turn_record(reply_of(CLAUDE, signed(), Text("4"), complete=False), (), KEYS) is None
    assert make_turn_record(reply_of(CLAUDE, Text("42"), ToolCall("call_123456789", "f")), (), KEYS) is None


def test_ids_of_calls_are_kept_both_ways() -> None:
    reply = reply_of(CLAUDE, ToolCall("functions.look_up:0", "look_up"))
    record = make_turn_record(reply, (user("hi"),), KEYS, caller_ids={"functions.look_up:0": "call_minted12345"})
    assert record is not None
    state = open_turn_record(record, KEYS)
    assert state is not None
    assert (state.parts[0].id, state.parts[0].own_id) == ("call_minted12345", "functions.look_up:0")
    (turn,) = turns_of(user("hi"), Message("assistant", (ToolCall("call_minted12345", "look_up"),)))
    assert is_found(record, turn)[0]


def test_a_record_opens_for_its_tenant_and_under_its_own_id_alone() -> None:
    record = record_of(reply_of(CLAUDE, signed(), Text("42")), user("hi"))
    assert open_turn_record(record, KEYS) is not None
    assert open_turn_record(record, RING.find_tenant("b")) is None
    assert open_turn_record(record, RelayKeys((b"x" * 32,)).find_tenant("a")) is None
    assert open_turn_record(msgspec.structs.replace(record, id="turn_other"), KEYS) is None
    for place in range(len(record.payload)):
        changed = bytearray(record.payload)
        changed[place] ^= 1
        assert open_turn_record(msgspec.structs.replace(record, payload=bytes(changed)), KEYS) is None
    assert open_turn_record(msgspec.structs.replace(record, payload=b""), KEYS) is None


def test_a_payload_that_is_not_encrypted_is_not_believed() -> None:
    plain = StoredRecord("r", (), b"\0" + b"\x80")
    assert read_payload(plain, KEYS) is None
    assert read_payload(StoredRecord("r", (), write_payload(b"data", "r", KEYS)), KEYS) == b"data"


@pytest.mark.parametrize(
    ("call_id", "returns_ids", "is_pending"),
    [("", True, True), ("call_aB3dE5fG7h", True, False), ("call_aB3dE5fG7h", False, True), ("call_0", True, True)],
    ids=["no call", "an id of its own", "nobody gives ids back", "an id like others"],
)
def test_turns_that_are_found_by_their_words_alone_are_pending(
    call_id: str, returns_ids: bool, is_pending: bool
) -> None:
    calls = [ToolCall(call_id, "look_up", {"n": 1})] if call_id else []
    reply = reply_of(CLAUDE, signed(), Text("I look."), *calls)
    records = [
        make_turn_record(reply, (user(text),), KEYS, returns_ids=returns_ids, asked_ago=ago)
        for text, ago in (("hi", 2.0), ("hi", 3.0), ("ho", 2.0), ("hi", None))
    ]
    first, again, other, unasked = [record for record in records if record is not None]
    of_another = make_turn_record(
        reply, (user("hi"),), KEYS, returns_ids=returns_ids, asked_ago=2.0, digest_request=lambda: b"another"
    )
    assert of_another is not None
    assert (of_another.pending != first.pending) is is_pending
    assert unasked.pending == ""
    assert bool(first.pending) is is_pending
    assert first.pending == again.pending
    if is_pending:
        assert first.pending != other.pending
        assert (first.asked_ago, unasked.asked_ago) == (2.0, 0.0)
        assert first.keys[:-1] == unasked.keys


def test_the_keys_of_a_turn_are_made_once_for_each_tenant() -> None:
    """A turn comes again with each request of its conversation."""
    history = (user("hi"), assistant("a long enough answer of the model"), user("and?"))
    (turn,), (again,) = find_turns(history), find_turns(history)
    assert list_levels(again, KEYS) is list_levels(turn, KEYS)
    other = list_levels(turn, RING.find_tenant("b"))
    assert all(mine.isdisjoint(theirs) for mine, theirs in zip(list_levels(turn, KEYS), other, strict=True))
    assert list_levels(turn, KEYS, "a reference") != list_levels(turn, KEYS)
