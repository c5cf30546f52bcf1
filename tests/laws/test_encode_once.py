"""A message that was encoded before gives the same request as one that is encoded for the first time, whatever the
history, the target and the order of requests.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from gc import DEBUG_SAVEALL, collect, disable, enable, garbage, set_debug
from sys import getrefcount
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import find_dialect, turn_encoder
from asides.dialects.message_encoder import HistoryEncoder, TurnHistoryEncoder
from asides.history import plan as plan_module
from asides.history.plan import encode_plan, plan
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.values.errors import AsidesError
from asides.values.message_facts import Context
from asides.values.messages import Message, Prompt, ProviderState, assistant, read_facts, system, user
from asides.values.notices import Notice
from asides.values.parts import Part, Refusal, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thinking, Thought
from tests.history.any_messages import MESSAGES

NAMES = (
    "deepseek:deepseek-reasoner",
    "mistral:magistral-medium-latest",
    "openrouter:google/gemini-3-pro-preview",
    "google-openai:gemini-3-pro-preview",
    "openai:gpt-5.5",
    "anthropic:claude-opus-4-5",
    "gemini:gemini-3-pro-preview",
    "cohere:command-a-reasoning-08-2025",
    "ollama:qwen3",
    "bedrock:anthropic.claude-sonnet-4-20250514-v1:0",
)
ENVIRON = {"AWS_REGION": "us-east-1"}


TARGETS = [find_target(name, environ=ENVIRON) for name in NAMES]
ORIGINS = [target.origin for target in TARGETS]

Sent = tuple[bytes, tuple[Notice, ...], Any]


def send(messages: Sequence[Message], target: Target, thinking: Thinking, state: ProviderState) -> Sent:
    """What is sent and told, or the error."""
    try:
        planned = plan(Prompt(tuple(messages), thinking=thinking, state=state), target, on_conflict="adjust")
        request, notices = encode_plan(planned, target, find_dialect(target.dialect), on_conflict="adjust")
    except AsidesError as problem:
        return f"{type(problem).__name__}: {problem}".encode(), (), None
    return request.body, notices, (planned.decisions, planned.notices)


def send_anew(messages: Sequence[Message], target: Target, thinking: Thinking, state: ProviderState) -> Sent:
    """The same, with new messages, nothing kept, and no short way."""

    def without_context(run: Callable[..., None]) -> Callable[..., None]:
        def run_without(self: HistoryEncoder, messages: Sequence[Message], _: Context | None) -> None:
            run(self, messages, None)

        return run_without

    with (
        patch.object(HistoryEncoder, "run", without_context(HistoryEncoder.run)),
        patch.object(TurnHistoryEncoder, "run", without_context(TurnHistoryEncoder.run)),
        patch.object(turn_encoder, "_has_fixed_ids", lambda _: False),
        patch.object(plan_module, "is_paired", lambda _: False),
    ):
        return send([msgspec.structs.replace(message) for message in messages], target, thinking, state)


# --- messages that could be real, with ids that meet ------------------------------------------------------------------

IDS = st.sampled_from(["call_1", "call_2", "call_3", "functions.look:0", "ab1cd2ef3", "call 1", "x" * 70])
SEALS = st.lists(
    st.builds(
        Seal,
        st.sampled_from(["signature", "encrypted", "thought_signature", "reasoning_details", "item"]),
        st.sampled_from(["", "c2VhbA=="]),
        st.none() | st.sampled_from(ORIGINS),
        st.sampled_from(
            [
                None,
                '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}',
                '{"type":"message","id":"m"}',
            ]
        ),
    ),
    max_size=2,
).map(tuple)
TEXTS = st.sampled_from(["a", "hello", " ", "", "é😀", '"quoted"\n'])
CALLS = st.builds(
    ToolCall,
    IDS,
    st.sampled_from(["look", "find"]),
    st.sampled_from([{}, {"path": "/x"}]).map(dict),
    st.sampled_from([None, None, "{no"]),
    SEALS,
    st.booleans(),
)
RESULTS = st.builds(
    ToolResult, IDS, TEXTS, st.sampled_from([None, "look"]), st.booleans(), st.sampled_from([False, True])
)
THOUGHTS = st.builds(
    Thought,
    TEXTS,
    st.sampled_from(["summary", "raw"]),
    st.sampled_from(["field", "block", "tags"]),
    st.none() | st.sampled_from(ORIGINS),
    SEALS,
    withheld=st.sampled_from([False, False, False, True]),
)
SAID = st.builds(Text, TEXTS, SEALS)
PARTS: st.SearchStrategy[Part] = (
    SAID
    | CALLS
    | THOUGHTS
    | st.builds(Refusal, TEXTS)
    | st.builds(ServerTool, st.just("web_search_call"), origin=st.sampled_from(ORIGINS))
    | st.builds(UnknownPart, st.just('{"type":"new"}'), st.none() | st.sampled_from(ORIGINS))
)
LIKELY = (
    TEXTS.map(lambda text: Message("user", (Text(text),)))
    | TEXTS.map(assistant)
    | st.builds(Message, st.just("assistant"), st.lists(PARTS, max_size=4).map(tuple))
    | st.builds(Message, st.just("tool"), st.lists(RESULTS, min_size=1, max_size=2).map(tuple))
    | st.builds(Message, st.just("user"), st.lists(RESULTS | SAID, max_size=3).map(tuple))
    | TEXTS.map(system)
)
POOLS = st.lists(LIKELY, min_size=1, max_size=12) | MESSAGES.filter(bool).map(list)
ASKED = st.sampled_from([Thinking(), Thinking(), Thinking(replay="never"), Thinking(mode="off"), Thinking(mode="on")])
STATES = st.sampled_from([ProviderState(), ProviderState(), ProviderState(store=True)])


@settings(max_examples=200, deadline=None)
@given(st.data(), POOLS, st.lists(st.sampled_from(TARGETS), min_size=1, max_size=2))
def test_what_was_encoded_before_is_sent_as_if_it_were_new(
    data: st.DataObject, pool: list[Message], targets: list[Target]
) -> None:
    for _ in range(4):
        places = data.draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=14))
        check(
            [pool[place] for place in places], data.draw(st.sampled_from(targets)), data.draw(ASKED), data.draw(STATES)
        )


def check(history: Sequence[Message], target: Target, asked: Thinking, state: ProviderState) -> None:
    new = send_anew(history, target, asked, state)
    assert send(history, target, asked, state) == new
    assert send(history, target, asked, state) == new


# --- the same results after other calls -------------------------------------------------------------------------------

CLASHING = turn_encoder.make_call_id("call 1")  # what the id "call 1" becomes where blanks are refused
CALLED = {
    "look": assistant(ToolCall("call_1", "look", {"a": 1})),
    "find": assistant(ToolCall("call_1", "find", {"a": 1})),
    "free": assistant(ToolCall("call_1", "look", {}, "free text", custom=True)),
    "free too": assistant(ToolCall("call_2", "look", {}, "free text", custom=True)),
    "two": assistant("so", ToolCall("call_1", "look", {}), ToolCall("call_2", "find", {})),
    "odd": assistant(ToolCall("call 1", "look", {}), ToolCall(CLASHING, "find", {})),
    "thinking": assistant(Thought("t", "raw", "field", ORIGINS[0]), ToolCall("call_1", "look", {"a": 1})),
    "broken": assistant(ToolCall("call_1", "look", {}, "{no")),
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.provider.name)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_results_that_follow_other_calls_are_sent_as_if_they_were_new(data: st.DataObject, target: Target) -> None:
    calls = {name: msgspec.structs.replace(message) for name, message in CALLED.items()}
    results = {
        (call_id, name): Message("tool", (ToolResult(call_id, "there", name),))
        for call_id in ("call_1", "call_2", "call 1", CLASHING)
        for name in (None, "look")
    }
    done, more = assistant("done "), user("more")
    for _ in range(4):
        history = [user("go")]
        for name in data.draw(st.lists(st.sampled_from(list(calls)), min_size=1, max_size=3)):
            history.append(calls[name])
            named = data.draw(st.sampled_from([None, "look"]))
            history += [results[call.id, named] for call in calls[name].tool_calls]
            history += data.draw(st.sampled_from([[], [], [done], [more], [done, more]]))
        check(history, target, data.draw(ASKED), data.draw(STATES))


@settings(max_examples=100, deadline=None)
@given(st.lists(LIKELY, min_size=2, max_size=16), st.sampled_from(TARGETS))
def test_a_conversation_that_grows_is_sent_as_if_it_were_new(pool: list[Message], target: Target) -> None:
    for end in range(1, len(pool) + 1):
        assert send(pool[:end], target, Thinking(), ProviderState()) == send_anew(
            pool[:end], target, Thinking(), ProviderState()
        )


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.provider.name)
def test_arguments_that_a_caller_changed_in_place_are_sent_as_they_are_now(target: Target) -> None:
    call = ToolCall("call_1", "look", {"path": "/before"})
    history = (user("go"), assistant(call), Message("tool", (ToolResult("call_1", "there", "look"),)), user("and?"))
    assert b"/before" in send(history, target, Thinking(), ProviderState())[0]
    call.arguments["path"] = "/after"
    body = send(history, target, Thinking(), ProviderState())[0]
    assert b"/after" in body
    assert b"/before" not in body


@pytest.mark.parametrize("value", [object(), "\ud800"])
@pytest.mark.parametrize("target", TARGETS[5:7] + TARGETS[8:], ids=lambda target: target.provider.name)
def test_arguments_that_became_no_json_are_refused_as_if_they_were_new(target: Target, value: object) -> None:
    call = ToolCall("call_1", "look", {"path": "/x"})
    history = (user("go"), assistant(call), Message("tool", (ToolResult("call_1", "there", "look"),)), user("and?"))
    send(history, target, Thinking(), ProviderState())
    call.arguments["path"] = value
    body = send(history, target, Thinking(), ProviderState())
    assert body == send_anew(history, target, Thinking(), ProviderState())


class _OwnMessage(Message, frozen=True):
    words: list[str] = msgspec.field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.words)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.provider.name)
def test_messages_that_can_change_are_sent_as_they_are_now(target: Target) -> None:
    own = _OwnMessage("assistant", (Text("un"),), words=["eins"])
    called, result = (
        assistant(ToolCall("call_1", "look", {})),
        Message("tool", (ToolResult("call_1", "uno", "look"),)),
    )
    history = (user("go"), assistant("so"), own, user("and"), called, result, user("?"))
    send(history, target, Thinking(), ProviderState())
    own.words.append("zwei")
    body = send(history, target, Thinking(), ProviderState())
    assert body == send_anew(history, target, Thinking(), ProviderState())


def test_lists_are_copied_so_that_a_message_never_changes() -> None:
    parts, content = [Text("one")], [Text("uno")]
    message, result = Message("user", parts), ToolResult("call_1", content, "look")
    parts.append(Text("two"))
    content.append(Text("dos"))
    assert (message.parts, result.content) == ((Text("one"),), (Text("uno"),))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.provider.name)
def test_a_message_is_encoded_once_for_a_target(target: Target) -> None:
    call = ToolCall("call_1", "look", {"path": "/x"})
    results = Message("tool", (ToolResult("call_1", "there", "look"),))
    history = (user("go"), assistant("so"), user("and"), assistant(call), results, assistant("done"))
    send((*history, user("1")), target, Thinking(), ProviderState())
    forms = [facts.encoded for facts in read_facts(history)]
    send((*history, user("1"), assistant("2"), user("3")), target, Thinking(), ProviderState())
    # The first message depends on its place in some dialects.
    assert all(form.wires for form in forms[1:])
    later = [facts.encoded for facts in read_facts(history)]
    assert all(one is other for one, other in zip(forms[1:], later[1:], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_holds_a_target_after_its_request(name: str) -> None:
    # Its address may hold a secret.
    target = find_target(name, environ=ENVIRON)
    thought = Thought("t", "raw", "field", target.origin, (Seal("signature", "x", target.origin),))
    history = (user("go"), assistant(thought, ToolCall("call_1", "look", {})), user("and?"))
    before = getrefcount(target)
    send(history, target, Thinking(), ProviderState())
    send((*history, assistant("so"), user("more")), target, Thinking(), ProviderState())
    assert getrefcount(target) == before


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.provider.name)
def test_encoding_leaves_nothing_that_only_the_garbage_collector_finds(target: Target) -> None:
    history = (user("go"), assistant(ToolCall("call_1", "look", {})), user("and?"), user("!"))
    send(history, target, Thinking(), ProviderState())
    disable()
    try:
        collect()
        set_debug(DEBUG_SAVEALL)
        send(history, target, Thinking(), ProviderState())
        collect()
        # Threads of other tests may leave something of their own.
        left = [each for each in garbage if _find_module(each).startswith(_ENCODING)]
        assert left == []
    finally:
        set_debug(0)
        garbage.clear()
        enable()


_ENCODING = ("asides.dialects", "asides.history", "asides.providers", "asides.values")


def _find_module(found: object) -> str:
    return str(getattr(found, "__module__", None) or type(found).__module__)


def test_facts_are_invisible() -> None:
    message, same = user("hello"), user("hello")
    read_facts((message,))
    assert (message, hash(message), repr(message)) == (same, hash(same), repr(same))
    assert msgspec.json.encode(message) == msgspec.json.encode(same)
    assert not hasattr(msgspec.structs.replace(message), "_facts")


@pytest.mark.parametrize(
    "provider",
    [
        "openai-compatible",
        "openai-responses",
        "anthropic-compatible",
        "gemini-compatible",
        "ollama",
        "cohere",
        "bedrock",
    ],
)
def test_what_is_kept_holds_no_target_and_no_secret_of_it(provider: str) -> None:
    history = (user("2 + 2?"), assistant(Thought("add", seals=(Seal("signature", "s"),)), "4"), user("And 3 + 3?"))
    target = find_target(f"{provider}:m", base_url="http://127.0.0.1:9/v1?token=made-up-secret")
    encode_plan(plan(Prompt(history), target), target, find_dialect(target.dialect), on_conflict="adjust")
    del target
    gc.collect()

    held = [each for each in gc.get_objects() if isinstance(each, Target)]
    assert not [each for each in held if "made-up-secret" in str(each.provider.query)]
