"""The way back: what a caller gave back, with or without envelopes, becomes the turn that its provider made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import DIALECTS, find_dialect
from asides.history.plan import plan
from asides.providers.find import find_target
from asides.relay.state import relay_keys
from asides.relay.state.carry_state import StateCarrier
from asides.relay.state.envelope import MOST_CHARACTERS, is_envelope
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.restore_state import RestoredPrompt, restore
from asides.relay.state.turn_state import StateMode, TurnState
from asides.relay.steps import StoredRecord
from asides.relay.vault.memory_vault import MemoryVault
from asides.values.fold import simulate
from asides.values.learned import Learned
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.parts import Part, Text, ToolCall, ToolResult, UnknownPart
from asides.values.reply import CallContext, Reply
from asides.values.thinking import Origin, Seal, Thought
from tests.history.strict_stages import MODELS, Model, question, script
from tests.relay.relayed_turns import KEYS as RING
from tests.relay.relayed_turns import Caller, Relayed, read_request, run_with_store, strip, write_reply

KEYS = RING.find_tenant("a")
CARRYING = ("anthropic", "bedrock", "gemini", "openai_responses")


def origin_of(model: str) -> Origin:
    return find_target(model).origin


CLAUDE = origin_of("anthropic:claude-sonnet-4-5")
GEMINI = origin_of("gemini:gemini-3-pro-preview")
DEEPSEEK = origin_of("deepseek:deepseek-reasoner")


def signed(text: str, seal: str = "SIGNATURE", origin: Origin = CLAUDE) -> Thought:
    return Thought(text, "summary", "block", origin, (Seal("signature", seal, origin),), "thinking")


def reply_of(*parts: Part, origin: Origin = CLAUDE, **more: object) -> Reply:
    reply = Reply(parts, model=origin.model, id="reply_1", origin=origin)
    context = {name: value for name, value in more.items() if name in CallContext.__struct_fields__}
    fields = {name: value for name, value in more.items() if name not in context}
    return msgspec.structs.replace(reply, **fields).with_call(**context)


def turns_of(restored: RestoredPrompt) -> list[tuple[Part, ...]]:
    return [message.parts for message in restored.prompt.messages if message.role == "assistant"]


def codes_of(restored: RestoredPrompt) -> list[str]:
    return [notice.code for notice in restored.notices]


def thoughts_of(restored: RestoredPrompt) -> list[str]:
    return [
        part.text for parts in turns_of(restored) for part in parts if isinstance(part, Thought) and part.can_replay
    ]


# --- every model, every dialect ---------------------------------------------------------------------------------------


def run_loop(relayed: Relayed, steps: int) -> None:
    """Two questions, the first with so many steps of tools."""
    relayed.rules._play = script(relayed.rules.model, steps)
    for number in range(2):
        relayed.say(question(number))
        while relayed.step().tool_calls:
            pass
    relayed.say(question(2))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_client_that_strips_all_it_does_not_know_asks_as_one_without_a_relay(model: Model, dialect: str) -> None:
    relayed = Relayed(model, Caller(dialect, strips=True))
    run_loop(relayed, 4)
    through, without = relayed.requests()
    # A summary of a reasoning item is readable thinking that goes back as well without; ids go with it.
    assert through == without or model.name.startswith("openai-responses:")
    restored = relayed.caller.restore()
    assert restored.from_vault == 10
    assert relayed.caller.reads == 1


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("model", MODELS[::3], ids=str)
def test_a_client_that_gives_everything_back_asks_as_one_without_a_relay(model: Model, dialect: str) -> None:
    relayed = Relayed(model, Caller(dialect))
    run_loop(relayed, 2)
    through, without = relayed.requests()
    assert through == without or model.name.startswith("openai-responses:")


# Its seals come after the answer. Clients that cannot end with a thought do not give them back.
_SEALED_LAST = "openrouter:anthropic/"


@pytest.mark.parametrize("dialect", CARRYING)
@pytest.mark.parametrize("model", [model for model in MODELS if _SEALED_LAST not in model.name], ids=str)
def test_without_a_vault_no_model_refuses_what_was_carried(model: Model, dialect: str) -> None:
    relayed = Relayed(model, Caller(dialect, mode="carry-only"))
    run_loop(relayed, 2)
    assert relayed.caller.store is None
    assert relayed.caller.reads == 0
    assert relayed.caller.restore().from_envelopes > 0


# --- envelopes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", CARRYING)
def test_a_turn_comes_back_as_it_was(dialect: str) -> None:
    caller = Caller(dialect, mode="carry-only")
    caller.say("hi")
    hidden = Thought("", "hidden", "block", CLAUDE, (Seal("redacted", "DATA", CLAUDE),))
    said = (signed("plan"), hidden, Text("I look."), ToolCall("call_123456789", "look_up", {"n": 1}))
    learned = (Learned("kind", "https://api.example", changes=(("a", ("b",)),)),)
    caller.hear(reply_of(*said, prefix="0a", learned=learned, effort="low"))
    turn = caller.last_turn()
    assert [
        msgspec.structs.replace(part, seals=()) if isinstance(part, (Text, ToolCall)) else part for part in turn.parts
    ] == [*said]
    assert caller.restore().from_envelopes == 1


def test_the_text_of_a_thought_must_be_the_one_that_was_sealed() -> None:
    caller = Caller("anthropic", mode="carry-only")
    caller.say("hi")
    caller.hear(reply_of(signed("plan"), Text("42")))
    turn = caller.history[1]
    thought = turn.parts[0]
    assert isinstance(thought, Thought)
    changed = msgspec.structs.replace(thought, text="another plan")
    caller.history = (caller.history[0], msgspec.structs.replace(turn, parts=(changed, *turn.parts[1:])), user("go on"))
    restored = caller.restore()
    assert thoughts_of(restored) == []
    assert codes_of(restored) == ["relay_state_changed"]


def test_an_agent_of_responses_that_drops_the_raw_text_gets_it_back() -> None:
    caller = Caller("openai_responses", mode="carry-only")
    caller.say("hi")
    said = Thought("a raw thought", "raw", "field", DEEPSEEK, via="reasoning_content")
    caller.hear(reply_of(said, ToolCall("call_123456789", "look_up"), origin=DEEPSEEK))
    sent = read_request("openai_responses", caller.history).messages
    thought = sent[1].parts[0]
    assert isinstance(thought, Thought)
    bare = msgspec.structs.replace(thought, text="")
    prompt = Prompt((sent[0], Message("assistant", (bare, *sent[1].parts[1:])), *sent[2:]))
    restored, _ = run_with_store(restore(prompt, KEYS, "carry-only"), None)
    assert turns_of(restored)[0][0] == said


def test_a_client_of_gemini_that_drops_thoughts_gets_them_back_with_its_call() -> None:
    caller = Caller("gemini", mode="carry-only")
    caller.say("hi")
    said = (signed("plan"), Text("I look."), ToolCall("call_123456789", "look_up", {"n": 1}))
    caller.hear(reply_of(*said))
    turn = caller.history[1]
    kept = tuple(part for part in turn.parts if not isinstance(part, Thought))
    caller.history = (caller.history[0], msgspec.structs.replace(turn, parts=kept), caller.history[2])
    restored = turns_of(caller.restore())[0]
    assert [part for part in restored if isinstance(part, Thought)] == [said[0]]
    assert [part for part in restored if isinstance(part, ToolCall)] == [said[2]]


def test_a_stream_that_comes_back_in_its_pieces_is_one_thought() -> None:
    caller = Caller("gemini", mode="carry-only")
    caller.say("hi")
    said = (signed("a plan of several pieces"), Text("and an answer of several"))
    caller.hear(reply_of(*said), size=4)
    sent = read_request("gemini", caller.history).messages
    *thoughts, text, end = sent[1].parts
    assert len(thoughts) == 2
    assert isinstance(text, Text)
    assert isinstance(end, Text)
    # The signed end of a text is a part of its own.
    pieces = [Message("assistant", (part,)) for part in (*thoughts, Text(text.text[:5]), Text(text.text[5:]), end)]
    restored, _ = run_with_store(restore(Prompt((sent[0], *pieces)), KEYS, "carry-only"), None)
    parts = turns_of(restored)[0]
    assert parts[0] == said[0]
    assert "".join(part.text for part in parts[1:] if isinstance(part, Text)) == said[1].text


def test_a_client_of_chat_that_keeps_details_needs_no_vault() -> None:
    call = ToolCall("call_123456789", "look_up", seals=(Seal("thought_signature", "GS", CLAUDE),))
    said = (signed("plan", "A"), Text("I look. "), signed("another", "B"), Text("And again."), call)
    carrier = StateCarrier("openai_chat", KEYS, "carry-only", details=True)
    # The client gives the message back as it came.
    response = msgspec.json.decode(write_reply("openai_chat", [carrier.carry(simulate(reply_of(*said)))], stream=False))
    message = response["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": call.id, "content": "42"}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, message, result]}
    prompt = find_dialect("openai_chat").read(msgspec.json.encode(body), "").prompt
    restored, _ = run_with_store(restore(prompt, KEYS, "carry-only"), None)
    turn = turns_of(restored)[0]
    assert [part for part in turn if isinstance(part, Thought)] == [said[0], said[2]]
    assert [part for part in turn if isinstance(part, ToolCall)] == [call]


def damage(messages: Sequence[Message], change: Callable[[str], str]) -> tuple[Message, ...]:
    """The messages with every envelope changed."""

    def change_seal(seal: Seal) -> Seal:
        if not is_envelope(seal.value):
            return seal
        changed = change(seal.value)
        return Seal(seal.kind, changed, None, seal.entry and seal.entry.replace(seal.value, changed))

    def change_part(part: Part) -> Part:
        seals = getattr(part, "seals", ())
        return msgspec.structs.replace(part, seals=tuple(map(change_seal, seals))) if seals else part

    return tuple(msgspec.structs.replace(each, parts=tuple(map(change_part, each.parts))) for each in messages)


@pytest.mark.parametrize("dialect", CARRYING)
@pytest.mark.parametrize("what", ["tampered", "cut", "other tenant", "other key", "off"])
def test_an_envelope_that_does_not_open_is_absent_and_reported(dialect: str, what: str) -> None:
    caller = Caller(dialect, mode="carry-only")
    caller.say("hi")
    caller.hear(reply_of(signed("plan"), Text("42")))
    caller.say("go on")
    match what:
        case "tampered":
            caller.history = damage(caller.history, lambda value: value[:-9] + "AAAA" + value[-5:])
        case "cut":
            caller.history = damage(caller.history, lambda value: value[:8])
        case "other tenant":
            caller.keys = RING.find_tenant("b")
        case "other key":
            caller.keys = RelayKeys((b"x" * 32,)).find_tenant("a")
        case _:
            caller.mode = "off"
    restored = caller.restore()
    assert codes_of(restored) == ["relay_state_unreadable"]
    assert restored.had_envelopes
    assert restored.is_changed
    assert restored.missing == 1
    assert thoughts_of(restored) == []
    assert "42" in "".join(part.text for part in turns_of(restored)[0] if isinstance(part, Text))
    assert b"asd1" not in msgspec.json.encode(restored.prompt.messages)
    assert b"YXNkMS" not in msgspec.json.encode(restored.prompt.messages)


def test_words_of_the_user_that_look_like_an_envelope_stay() -> None:
    words = "asd1.0a0b0c0d.AAAA"
    call = ToolCall("call_123456789", "look_up", {"signature": words})
    messages = (
        user(words),
        Message("assistant", (Text(words), call)),
        Message("tool", (ToolResult("call_123456789", words),)),
    )
    prompt = Prompt(messages, system=words)
    restored, _ = run_with_store(restore(prompt, KEYS, "memory"), MemoryVault())
    assert restored.prompt is prompt
    assert not restored.is_changed


def test_an_envelope_in_a_place_where_we_put_none_does_not_stay() -> None:
    envelope = "asd1.0a0b0c0d.AAAA"
    block = UnknownPart(f'{{"type":"new_block","encrypted_content":"{envelope}","more":1}}')
    thought = UnknownPart(f'{{"type":"redacted_thinking","data":"{envelope}"}}')
    detail = Seal("reasoning_details", "real", None, f'{{"signature":"real","encrypted_content":"{envelope}"}}')
    said = Message("assistant", (block, thought, Thought("plan", seals=(detail,)), Text(envelope)))
    prompt = Prompt((user("hi"), said, Message("user", (thought, Text("go on")))), extra={"a": {"signature": envelope}})
    restored, _ = run_with_store(restore(prompt, KEYS, "carry-only"), None)
    assert restored.is_changed
    assert restored.prompt.extra == {"a": {}}
    parts = restored.prompt.messages[1].parts
    assert parts[0] == UnknownPart('{"type":"new_block","more":1}')
    assert parts[1:] == (Thought("plan", replayable=False), Text(envelope))
    assert restored.prompt.messages[2].parts == (Text("go on"),)


def test_a_seal_that_is_the_callers_own_stays() -> None:
    own = Thought("plan", "summary", "block", None, (Seal("signature", "of a real provider"),), "thinking")
    prompt = Prompt((user("hi"), Message("assistant", (own, Text("42"))), user("go on")))
    restored, reads = run_with_store(restore(prompt, KEYS, "memory"), MemoryVault())
    assert restored.prompt is prompt
    assert reads == 0


# --- the vault --------------------------------------------------------------------------------------------------------


def told(caller: Caller, ask: str, *parts: Part, origin: Origin = CLAUDE) -> None:
    """Ask, and hear this."""
    caller.say(ask)
    caller.hear(reply_of(*parts, origin=origin))


def chat(**more: object) -> Caller:
    return Caller("openai_chat", strips=True, **more)  # type: ignore[arg-type]


def test_two_equal_answers_each_get_their_own_thinking() -> None:
    caller = chat()
    told(caller, "one?", signed("first"), Text("ok"))
    told(caller, "two?", signed("second"), Text("ok"))
    told(caller, "three?", signed("third"), Text("ok"))
    assert thoughts_of(caller.restore()) == ["first", "second", "third"]


def test_parallel_agents_with_equal_texts_do_not_mix() -> None:
    store = MemoryVault()
    one, two = chat(store=store), chat(store=store)
    told(one, "Count the files.", signed("of one"), Text("I will do that for you now."))
    told(two, "Count the words.", signed("of two"), Text("I will do that for you now."))
    assert thoughts_of(one.restore()) == ["of one"]
    assert thoughts_of(two.restore()) == ["of two"]


def test_thousands_of_equal_turns_are_compared_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[None] = []
    store = MemoryVault()
    for number in range(200):
        told(chat(store=store), "Well?", signed(f"thought {number}"), Text("Everything is fine, as ever."))
    caller = chat(store=store)
    told(caller, "Well?", signed("last"), Text("Everything is fine, as ever."))
    equals = TurnState.__eq__

    def compare(one: TurnState, other: object) -> bool:
        compared.append(None)
        return equals(one, other)

    monkeypatch.setattr(TurnState, "__eq__", compare)
    assert codes_of(caller.restore()) == ["relay_state_ambiguous"]
    assert len(compared) < 1000


def test_of_two_candidates_neither_is_used() -> None:
    store = MemoryVault()
    one, two = chat(store=store), chat(store=store)
    told(one, "Count.", signed("of one"), Text("I will do that for you now."))
    told(two, "Count.", signed("of two"), Text("I will do that for you now."))
    for caller in (one, two):
        restored = caller.restore()
        assert thoughts_of(restored) == []
        assert codes_of(restored) == ["relay_state_ambiguous"]
        assert restored.prompt == Prompt(
            tuple(read_request("openai_chat", caller.history).messages), tools=restored.prompt.tools
        )


def test_of_two_candidates_that_of_the_provider_that_is_asked_is_used() -> None:
    store = MemoryVault()
    one, two = chat(store=store), chat(store=store)
    thought = Thought("of two", origin=DEEPSEEK, via="reasoning_content")
    call = ToolCall("call_aaaaaaaaa", "look_up", {"n": 1})
    told(one, "Count.", signed("of one"), call)
    told(two, "Count.", thought, call, origin=DEEPSEEK)
    for name, kept in (("anthropic:claude-sonnet-4-5", "of one"), ("deepseek:deepseek-reasoner", "of two")):
        restored = one.restore(find_target(name))
        assert thoughts_of(restored) == [kept]
        assert codes_of(restored) == []
    # Neither may go to a third one, so that there is nothing to tell of.
    restored = one.restore(find_target("gemini:gemini-3-pro-preview"))
    assert (thoughts_of(restored), codes_of(restored)) == ([], [])


def test_the_ids_of_calls_tell_two_agents_apart_that_are_alike_in_everything_else() -> None:
    store = MemoryVault()
    one, two = chat(store=store), chat(store=store)
    told(one, "Count.", signed("of one"), ToolCall("call_aaaaaaaaa", "look_up", {"n": 1}))
    told(two, "Count.", signed("of two"), ToolCall("call_bbbbbbbbb", "look_up", {"n": 1}))
    assert thoughts_of(one.restore()) == ["of one"]
    assert thoughts_of(two.restore()) == ["of two"]


def test_a_tenant_never_gets_the_state_of_another() -> None:
    store = MemoryVault()
    one, two = chat(store=store), chat(store=store, keys=RING.find_tenant("b"))
    told(one, "Count.", signed("of one"), ToolCall("call_aaaaaaaaa", "look_up", {"n": 1}))
    two.history = one.history
    assert thoughts_of(two.restore()) == []
    # Not even if the store confuses them: records are bound to their tenant.
    store._tenants["b"] = store._tenants["a"]
    assert thoughts_of(two.restore()) == []
    assert thoughts_of(one.restore()) == ["of one"]


def test_another_instance_with_the_same_keys_and_store_changes_nothing() -> None:
    store = MemoryVault()
    caller = chat(store=store)
    told(caller, "Count.", signed("a plan"), ToolCall("call_aaaaaaaaa", "look_up", {"n": 1}))
    before = caller.restore().prompt
    caller.keys = RelayKeys((b"k" * 32,)).find_tenant("a")
    assert caller.restore().prompt == before


def test_after_a_change_of_keys_old_records_are_found_as_long_as_the_old_key_is_there() -> None:
    caller = chat()
    told(caller, "Count.", signed("a plan"), ToolCall("call_aaaaaaaaa", "look_up", {"n": 1}))
    caller.keys = RelayKeys((b"n" * 32, b"k" * 32)).find_tenant("a")
    told(caller, "And?", signed("later"), Text("I will do that for you now."))
    assert thoughts_of(caller.restore()) == ["a plan", "later"]
    caller.keys = RelayKeys((b"n" * 32,)).find_tenant("a")
    assert thoughts_of(caller.restore()) == ["later"]


def test_fork_and_rewind_restore_what_still_fits() -> None:
    caller = chat()
    told(caller, "one?", signed("first"), Text("The first of the answers."))
    trunk = caller.history
    told(caller, "two?", signed("second"), Text("The second of the answers."))
    whole = caller.history
    caller.history = trunk  # back, and on another way
    told(caller, "another?", signed("other"), Text("Another of the answers."))
    assert thoughts_of(caller.restore()) == ["first", "other"]
    caller.history = whole
    assert thoughts_of(caller.restore()) == ["first", "second"]
    caller.history = trunk
    assert thoughts_of(caller.restore()) == ["first"]


def test_an_answer_that_was_edited_has_no_thinking_and_the_next_one_keeps_its_own() -> None:
    caller = chat()
    told(caller, "one?", signed("first"), Text("The first of the answers."))
    told(caller, "two?", signed("second"), Text("The second of the answers."))
    history = list(caller.history)
    history[1] = assistant("The first of the answers, edited.")
    caller.history = tuple(history)
    assert thoughts_of(caller.restore()) == ["second"]


def test_a_call_that_was_edited_has_no_state_and_that_is_reported() -> None:
    caller = chat()
    told(caller, "Count.", signed("a plan"), ToolCall("call_aaaaaaaaa", "look_up", {"n": 1}))
    history = list(caller.history)
    history[1] = Message("assistant", (ToolCall("call_aaaaaaaaa", "look_up", {"n": 2}),))
    caller.history = tuple(history)
    restored = caller.restore()
    assert thoughts_of(restored) == []
    assert codes_of(restored) == ["relay_state_changed"]


def test_thinking_that_was_hidden_from_the_caller_comes_back_from_the_vault() -> None:
    caller = Caller("anthropic")
    told(caller, "Count.", signed("a plan"), Text("42"))
    turn = caller.history[1]
    hidden = tuple(msgspec.structs.replace(p, text="") if isinstance(p, Thought) else p for p in turn.parts)
    caller.history = (caller.history[0], msgspec.structs.replace(turn, parts=hidden), user("go on"))
    restored = caller.restore()
    assert thoughts_of(restored) == ["a plan"]
    assert codes_of(restored) == []


def test_a_client_that_gives_back_all_there_is_may_be_forwarded() -> None:
    caller = Caller("openai_chat")
    thought = Thought("of one", origin=DEEPSEEK, via="reasoning_content")
    told(caller, "one?", thought, ToolCall("call_aaaaaaaaa", "look_up"), origin=DEEPSEEK)
    restored = caller.restore()
    assert (restored.from_vault, restored.has_more, restored.is_changed) == (1, False, False)
    stripped = chat(store=caller.store)
    stripped.history = caller.history[:1] + tuple(strip(message) for message in caller.history[1:])
    restored = stripped.restore()
    assert (restored.from_vault, restored.has_more, restored.is_changed) == (1, True, True)


def test_a_client_that_drops_the_words_beside_its_calls_gets_the_thinking_back() -> None:
    caller = chat()
    call = ToolCall("call_aaaaaaaaa", "look_up", {"n": 1})
    told(caller, "Count.", signed("a plan"), Text("I look."), call)
    history = list(caller.history)
    history[1] = Message("assistant", (call,))
    caller.history = tuple(history)
    assert turns_of(caller.restore()) == [(signed("a plan"), call)]


def test_of_several_calls_those_that_are_left_keep_their_seals() -> None:
    caller = chat()
    seal = (Seal("thought_signature", "S", GEMINI),)
    first, second = (
        ToolCall(f"call_{name * 9}", "look_up", {"n": 1}, seals=seal if name == "a" else ()) for name in "ab"
    )
    told(caller, "Count.", first, second, origin=GEMINI)
    history = list(caller.history)
    history[1] = Message("assistant", (msgspec.structs.replace(first, seals=()),))
    history[2] = Message("tool", (ToolResult(first.id, "42"),))
    caller.history = tuple(history)
    assert turns_of(caller.restore()) == [(first,)]


def test_blocks_that_were_joined_come_apart_again() -> None:
    caller = chat()
    said = (
        signed("one", "A"),
        Text("First words. "),
        ToolCall("call_aaaaaaaaa", "look_up", {"n": 1}),
        signed("two", "B"),
        Text("Second words."),
        ToolCall("call_bbbbbbbbb", "look_up", {"n": 2}),
    )
    told(caller, "Count.", *said)
    assert turns_of(caller.restore()) == [said]


def test_a_and_b_and_a_again_each_get_their_own_state_back() -> None:
    caller = chat()
    told(caller, "one?", signed("of A"), ToolCall("call_aaaaaaaaa", "look_up", {"n": 1}))
    seal = (Seal("thought_signature", "GS", GEMINI),)
    told(caller, "two?", ToolCall("call_bbbbbbbbb", "look_up", {"n": 2}, seals=seal), origin=GEMINI)
    told(
        caller,
        "three?",
        Thought("of C", origin=DEEPSEEK, via="reasoning_content"),
        ToolCall("call_ccccccccc", "look_up"),
        origin=DEEPSEEK,
    )
    restored = caller.restore().prompt
    for name, kept in (
        ("anthropic:claude-sonnet-4-5", [b"SIGNATURE"]),
        ("gemini:gemini-3-pro-preview", [b"GS"]),
        ("deepseek:deepseek-reasoner", [b"of C"]),
    ):
        planned = plan(restored, find_target(name), on_conflict="adjust").prompt.messages
        sent = msgspec.json.encode(planned)
        assert [
            word for word in (b"SIGNATURE", b"GS", b"of A", b"of C") if b'"' + word + b'"' in sent and word != b"of A"
        ] == kept


def test_ids_of_the_provider_come_back_on_calls_and_results() -> None:
    store = MemoryVault()
    caller = chat(store=store)
    caller.say("Count.")
    own = reply_of(signed("a plan"), ToolCall("functions.look_up:0", "look_up", {"n": 1}))
    minted = reply_of(signed("a plan"), ToolCall("call_minted1234", "look_up", {"n": 1}))
    from asides.relay.state.vault_records import make_turn_record

    record = make_turn_record(own, caller.history, KEYS, caller_ids={"functions.look_up:0": "call_minted1234"})
    assert record is not None
    store.write("a", record)
    message = minted.to_message()
    assert message is not None
    call = message.tool_calls[0]
    caller.history = (*caller.history, Message("assistant", (call,)), Message("tool", (ToolResult(call.id, "42"),)))
    restored = caller.restore().prompt.messages
    assert restored[1].tool_calls[0].id == "functions.look_up:0"
    assert isinstance(result := restored[2].parts[0], ToolResult)
    assert result.call_id == "functions.look_up:0"
    # Another provider gets the ids that the caller has.
    prompt = read_request("openai_chat", caller.history)
    other = find_target("gemini:gemini-3-pro-preview")
    kept, _ = run_with_store(restore(prompt, KEYS, "memory", targets=[other]), store)
    assert kept.prompt.messages[1].tool_calls[0].id == "call_minted1234"


def test_a_large_state_comes_back_by_its_reference() -> None:
    caller = Caller("anthropic")
    caller.say("hi")
    said = (signed("plan", "S" * MOST_CHARACTERS), Text("42"))
    caller.hear(reply_of(*said))
    assert turns_of(caller.restore()) == [said]
    assert caller.store is not None
    caller.store.delete("a", [key for record in _all_records(caller.store) for key in record.keys])
    restored = caller.restore()
    assert thoughts_of(restored) == []
    assert codes_of(restored) == ["relay_state_unreadable"]


def _all_records(store: object) -> list[StoredRecord]:
    assert isinstance(store, MemoryVault)
    return [record for tenant in store._tenants.values() for record in tenant.records.values()]


def test_without_cryptography_turns_come_back_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    relay_keys.can_encrypt.cache_clear()
    try:
        for dialect in ("anthropic", "openai_chat"):
            caller = Caller(dialect)
            caller.say("hi")
            caller.hear(reply_of(signed("plan"), Text("42")))
            assert turns_of(caller.restore()) == [(signed("plan"), Text("42"))]
    finally:
        relay_keys.can_encrypt.cache_clear()


class BrokenStore(MemoryVault):
    """A store that is down."""

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        raise OSError("down")

    def write(self, tenant: str, record: StoredRecord) -> None:
        raise OSError("down")

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        raise OSError("down")

    def close(self) -> None:
        raise OSError("down")


def test_a_store_that_is_down_is_reported_and_envelopes_still_count() -> None:
    caller = Caller("anthropic")
    told(caller, "one?", signed("first"), Text("ok"))
    told(caller, "two?", Thought("second", origin=DEEPSEEK, via="reasoning_content"), Text("ok"), origin=DEEPSEEK)
    caller.store = BrokenStore()
    restored = caller.restore()
    assert codes_of(restored) == ["relay_store_failed"]
    assert thoughts_of(restored) == ["first", "second"]
    stripped = chat(store=BrokenStore())
    stripped.history = (user("one?"), assistant("An answer from before, of some length."))
    restored = stripped.restore()
    assert codes_of(restored) == ["relay_store_failed"]
    assert not restored.is_changed


def test_the_vault_is_asked_once_for_the_whole_history_and_not_at_all_for_nothing() -> None:
    caller = chat()
    for number in range(20):
        told(caller, f"{number}?", signed(f"plan {number}"), Text(f"The answer number {number}."))
    assert len(thoughts_of(caller.restore())) == 20
    assert caller.reads == 1
    prompt = read_request("openai_chat", caller.history)
    never = next(model for model in ("groq:qwen/qwen3-32b", "mistral:mistral-large-latest") if _never(model))
    restored, reads = run_with_store(restore(prompt, KEYS, "memory", targets=[find_target(never)]), caller.store)
    assert (restored.prompt, reads) == (prompt, 0)
    _, reads = run_with_store(restore(Prompt((user("hi"),)), KEYS, "memory"), caller.store)
    assert reads == 0
    _, reads = run_with_store(restore(prompt, KEYS, "carry-only"), caller.store)
    assert reads == 0


def _never(model: str) -> bool:
    target = find_target(model)
    return target.provider.replay_rule(target.family or target.model).when == "never"


def test_what_a_caller_shows_of_another_models_thinking_does_not_go_to_a_third() -> None:
    # Clients of chat completions give `reasoning_content` back, whoever made it.
    caller = Caller("openai_chat")
    told(
        caller,
        "one?",
        Thought("of one", origin=DEEPSEEK, via="reasoning_content"),
        ToolCall("call_aaaaaaaaa", "look_up"),
        origin=DEEPSEEK,
    )
    restored = caller.restore().prompt
    (turn,) = (message for message in restored.messages if message.role == "assistant")
    assert isinstance(turn.parts[0], Thought)
    assert turn.parts[0].origin == DEEPSEEK


class OddStore(BrokenStore):
    """A store that finds something for every key."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        return [StoredRecord(f"{tenant}{key}", (key,), self._payload) for key in keys]


_parts = st.lists(
    st.one_of(
        st.builds(Text, st.text(min_size=1)),
        st.builds(Thought, st.text(), st.just("raw")),
        st.builds(
            lambda text, value: Thought(text, "raw", "block", None, (Seal("signature", value),)),
            st.text(),
            st.sampled_from(["asd1.", "asd1.0.0", "asd1.ref.AAAA", "YXNkMS4u", "real"]) | st.text(),
        ),
        st.builds(lambda number: ToolCall(f"call_{number}", "f", {"n": number}), st.integers(0, 3)),
    ),
    max_size=5,
).map(tuple)
_messages = st.lists(
    st.one_of(
        st.builds(lambda text: user(text or "?"), st.text()),
        st.builds(lambda parts: Message("assistant", parts), _parts),
        st.builds(lambda number: Message("tool", (ToolResult(f"call_{number}", "r"),)), st.integers(0, 3)),
    ),
    max_size=6,
).map(tuple)


@settings(deadline=None, max_examples=150)
@given(_messages, st.binary(max_size=40), st.booleans())
def test_no_history_and_no_store_is_an_error(messages: tuple[Message, ...], payload: bytes, fails: bool) -> None:
    restored, _ = run_with_store(
        restore(Prompt(messages), KEYS, "memory"), BrokenStore() if fails else OddStore(payload)
    )
    said = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
    kept = [part.text for message in restored.prompt.messages for part in message.parts if isinstance(part, Text)]
    assert kept == said
    seals = [seal.value for m in restored.prompt.messages for p in m.parts for seal in getattr(p, "seals", ())]
    assert not any(map(is_envelope, seals))


def test_a_thought_of_nobody_goes_to_no_provider_that_seals_its_own() -> None:
    """The caller's words: nothing says who thought them. A host that takes plain text gets them back."""
    item = Seal("item", "", None, '{"type":"reasoning","id":"rs_1"}')
    said = assistant([Thought("plan", "raw", "block", seals=(item,)), Text("a")])
    prompt = Prompt((user("?"), said, user("and?")))

    def is_sent(model: str) -> bool:
        flow = restore(prompt, KEYS, "carry-only", targets=[find_target(model)])
        with pytest.raises(StopIteration) as ended:
            next(flow)
        restored: RestoredPrompt = ended.value.value
        assert not restored.is_changed
        (thought, _) = restored.prompt.messages[1].parts
        assert isinstance(thought, Thought)
        return thought.can_replay

    assert not is_sent("anthropic:claude-sonnet-4-5")
    assert not is_sent("openai-responses:gpt-5")
    assert is_sent("deepseek:deepseek-reasoner")


@pytest.mark.parametrize(
    "others",
    [
        ("anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-5"),
        ("anthropic:claude-opus-4-5", "gemini:gemini-3-pro"),
    ],
    ids=["two models", "two hosts"],
)
def test_of_two_candidates_that_of_the_model_that_is_asked_is_used(others: tuple[str, str]) -> None:
    store = MemoryVault()
    for model in others:
        told(chat(store=store), "Count.", signed(f"of {model}"), Text("I will do it now."), origin=origin_of(model))
    caller = chat(store=store)
    told(caller, "Count.", Text("I will do it now."), origin=origin_of("deepseek:deepseek-chat"))
    prompt = read_request("openai_chat", caller.history)
    for model in others:
        restored, _ = run_with_store(restore(prompt, KEYS, "memory", targets=[find_target(model)]), store)
        assert thoughts_of(restored) == [f"of {model}"]


@pytest.mark.parametrize("has_store", [True, False])
def test_a_history_without_state_stays_the_same_prompt(has_store: bool) -> None:
    """The turns that were looked for are told all the same."""
    prompt = Prompt((user("hi"), assistant("Hello!"), user("and?"), assistant("So."), assistant("It is."), user("?")))
    targets = [find_target("anthropic:claude-sonnet-4-5")]
    mode: StateMode = "memory" if has_store else "off"
    restored, reads = run_with_store(restore(prompt, KEYS, mode, targets=targets), MemoryVault())
    assert reads == has_store
    assert restored.prompt is prompt
    assert not restored.is_changed
    assert [(turn.message, turn.source) for turn in restored.turns] == ([(1, ""), (3, "")] if has_store else [])


def test_fields_are_cleaned_of_envelopes_though_no_part_can_hold_one() -> None:
    prompt = Prompt((user("hi"), assistant("Hello!")), extra={"reasoning": {"encrypted_content": "asd1.x"}})
    restored, _ = run_with_store(restore(prompt, KEYS, "off"), None)
    assert restored.is_changed
    assert "asd1." not in str(restored.prompt.extra)
