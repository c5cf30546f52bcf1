"""Turn two, pain by pain (C1–C10): a naive client is refused by the strict stage, and asides goes through.

The naive client is plain HTTP: it takes the request and the reply of the first turn and builds the next request as
people do. Where planning can know, the first request of asides is taken. Where it cannot, since a history came from
elsewhere, one extra request heals the whole conversation.
"""

from __future__ import annotations

import copy
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import asides
from asides.dialects.dialect import ServedRequest
from asides.providers.learned_rules import forget
from asides.values.fold import simulate
from asides.values.messages import Message, user
from asides.values.parts import ToolCall, ToolResult
from asides.values.tools import Tool
from asides_stage import Say, Stage
from asides_stage.stage import OpenStage

KEY, OTHER_KEY = "sk-one-314159", "sk-two-271828"
LOOK = Tool("look", "looks", {"type": "object", "properties": {"at": {"type": "integer"}}})
CALL = ToolCall("call_1", "look", {"at": 1})
ASK = Say(thinking="I should look first.", text="Let me look.", tool_calls=(CALL,))
TELL = Say(thinking="That was a fine view.", text="It is fine.")
Wire = dict[str, Any]


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    forget()
    yield
    forget()


class Host(NamedTuple):
    """A model and how it is asked."""

    model: str
    thinking: Any
    base: str = "/v1"

    def options(self, stage: Stage, key: str = KEY) -> dict[str, Any]:
        """The options of a question."""
        address = stage.url.removesuffix("/v1") + self.base
        return {"base_url": address, "api_key": key, "thinking": self.thinking, "retries": 0}


BUDGET = Host("anthropic:claude-sonnet-4-5", 2000)
BOUND = Host("anthropic:claude-opus-5-5", "high")
RESPONSES = Host("openai-responses:gpt-5", "low")
DEEPSEEK = Host("deepseek:deepseek-v4-pro", "high")
GEMINI = Host("google:gemini-3-pro-preview", "low", "/v1beta")
OPENROUTER = Host("openrouter:anthropic/claude-sonnet-4.5", "high")


class FirstTurn(NamedTuple):
    """What the naive client has after turn one."""

    request: Wire
    reply: Wire
    resend: Callable[..., tuple[int, str]]


def take_first_turn(stage: Stage, host: Host, key: str = KEY) -> FirstTurn:
    """Ask for the first time, and hand over the request and the reply as they were on the wire."""
    reply = asides.ask(host.model, "Is it fine?", tools=[LOOK], max_tokens=9000, **host.options(stage, key))
    received = stage.requests[-1]
    url = stage.url.removesuffix("/v1") + received.path
    headers = {name: value for name, value in received.headers.items() if name not in ("content-length", "host")}

    def resend(body: Wire, key: str = key) -> tuple[int, str]:
        sent = {name: value.replace(KEY, key) for name, value in headers.items()}
        request = urllib.request.Request(url, json.dumps(body).encode(), sent)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    return FirstTurn(json.loads(received.body), reply.raw, resend)


def go_on(stage: Stage, host: Host, history: list[Message], turns: int = 3, key: str = KEY) -> int:
    """Ask a few more questions as a conversation. Returns how many requests it took."""
    before = len(stage.requests)
    chat = asides.Conversation(host.model, messages=history, tools=[LOOK], **host.options(stage, key))
    for number in range(turns):
        reply = chat.ask(f"And now, {number}?")
        for call in reply.tool_calls:
            chat.append(Message("tool", (ToolResult(call.id, "fine", call.name),)))
    return len(stage.requests) - before


def talk(stage: Stage, host: Host, key: str = KEY) -> list[Message]:
    """A tool turn and its answer, asked with asides."""
    chat = asides.Conversation(host.model, tools=[LOOK], **host.options(stage, key))
    reply = chat.ask("Is it fine?")
    chat.ask([Message("tool", tuple(ToolResult(call.id, "fine", call.name) for call in reply.tool_calls))])
    return list(chat.messages)


def answer_calls(first: FirstTurn, *content: Wire) -> Wire:
    """The next request of Anthropic's Messages: these blocks for the turn, and the result of the call."""
    body = copy.deepcopy(first.request)
    (call,) = [block for block in first.reply["content"] if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "fine"}
    body["messages"] += [{"role": "assistant", "content": list(content)}, {"role": "user", "content": [result]}]
    return body


def play(request: ServedRequest) -> Say:
    """Look first, then tell."""
    return TELL if any(message.role == "assistant" for message in request.prompt.messages) else ASK


@pytest.mark.requirement("pain C1")
def test_pain_C1_a_turn_rebuilt_without_its_thinking(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, BUDGET)
    blocks = [block for block in first.reply["content"] if block["type"] != "thinking"]
    status, refusal = first.resend(answer_calls(first, *blocks))
    assert (status, "Expected `thinking` or `redacted_thinking`, but found" in refusal) == (400, True)

    shape = [
        {"role": "user", "content": "Is it fine?"},
        {"role": "assistant", "content": None, "tool_calls": [_chat_call()]},
        {"role": "tool", "tool_call_id": "call_1", "content": "fine"},
    ]
    imported = asides.Conversation.from_openai(shape)
    assert go_on(open_stage, BUDGET, list(imported.messages)) == 3


def _chat_call() -> Wire:
    return {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}


@pytest.mark.requirement("pain C2")
def test_pain_C2_a_signature_goes_to_another_model(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, BUDGET)
    switched = answer_calls(first, *first.reply["content"]) | {"model": "claude-opus-4-5"}
    status, refusal = first.resend(switched)
    assert (status, "Invalid `signature` in `thinking` block" in refusal) == (400, True)

    history = talk(open_stage, BUDGET)
    other = Host("anthropic:claude-opus-4-5", 2000)
    assert go_on(open_stage, other, history) == 3
    assert go_on(open_stage, BUDGET, history) == 3


@pytest.mark.requirement("pain C2")
def test_pain_C2_a_history_of_unknown_origin_is_healed_once(stage: OpenStage) -> None:
    """Nothing in the file says who signed: one request is refused, and no other one ever after."""
    elsewhere, here = stage(play), stage(play)
    first = take_first_turn(elsewhere, BUDGET)
    shape = answer_calls(first, *first.reply["content"])["messages"]
    imported = asides.Conversation.from_anthropic(shape)
    assert go_on(here, BUDGET, list(imported.messages)) == 4


@pytest.mark.requirement("pain C3")
def test_pain_C3_an_interrupted_thought_is_kept(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, BUDGET)
    broken = {"type": "thinking", "thinking": "I should lo", "signature": ""}
    others = [block for block in first.reply["content"] if block["type"] != "thinking"]
    status, _ = first.resend(answer_calls(first, broken, *others))
    assert status == 400

    with asides.stream(BUDGET.model, "Is it fine?", tools=[LOOK], **BUDGET.options(open_stage)) as events:
        for count, _ in enumerate(events):
            if count == 3:
                break
        left = events.partial
    assert left is not None
    history = [user("Is it fine?"), *([message] if (message := left.to_message()) is not None else [])]
    assert go_on(open_stage, BUDGET, history) == 3


@pytest.mark.requirement("pain C4")
def test_pain_C4_two_thoughts_are_merged(stage: OpenStage) -> None:
    thoughts = asides.Reply(
        (asides.Thought("One."), asides.Text("Hm. "), asides.Thought("Two."), CALL), asides.Usage(input=1, output=1)
    )
    twice = Say(events=tuple(simulate(thoughts, 4)))
    open_stage = stage(lambda request: twice if play(request) is ASK else TELL)
    first = take_first_turn(open_stage, BUDGET)
    one, *between, two, call = first.reply["content"]
    merged = {"type": "thinking", "thinking": one["thinking"] + two["thinking"], "signature": two["signature"]}
    status, refusal = first.resend(answer_calls(first, merged, *between, call))
    assert (status, "signature" in refusal or "cannot be modified" in refusal) == (400, True)
    assert go_on(open_stage, BUDGET, talk(open_stage, BUDGET)) == 3


@pytest.mark.requirement("pain C5")
def test_pain_C5_a_reasoning_item_loses_what_follows_it(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, RESPONSES)
    (reasoning,) = [item for item in first.reply["output"] if item["type"] == "reasoning"]
    body = copy.deepcopy(first.request)
    body["input"] += [reasoning, {"type": "message", "role": "user", "content": "And now?"}]
    status, refusal = first.resend(body)
    assert (status, "without its required following item" in refusal) == (400, True)

    for dropped in range(1, 4):
        whole = talk(open_stage, RESPONSES)
        assert go_on(open_stage, RESPONSES, whole[:dropped] + whole[dropped + 1 :], 1) == 1


@pytest.mark.requirement("pain C6")
def test_pain_C6_an_id_that_nobody_stored(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, RESPONSES)
    bare = [
        {name: value for name, value in item.items() if name != "encrypted_content"} for item in first.reply["output"]
    ]
    (call,) = [item for item in bare if item["type"] == "function_call"]
    body = copy.deepcopy(first.request)
    body["input"] += [*bare, {"type": "function_call_output", "call_id": call["call_id"], "output": "fine"}]
    status, refusal = first.resend(body)
    assert (status in (400, 404), "not persisted when `store` is set to false" in refusal) == (True, True)
    assert go_on(open_stage, RESPONSES, talk(open_stage, RESPONSES)) == 3


@pytest.mark.requirement("pain C7")
def test_pain_C7_encrypted_reasoning_of_another_account(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, RESPONSES)
    (call,) = [item for item in first.reply["output"] if item["type"] == "function_call"]
    body = copy.deepcopy(first.request)
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "fine"}
    body["input"] += [*first.reply["output"], output]
    assert first.resend(body)[0] == 200
    status, refusal = first.resend(body, OTHER_KEY)
    assert (status, "encrypted" in refusal) == (400, True)

    history = talk(open_stage, RESPONSES)
    assert go_on(open_stage, RESPONSES, history, key=OTHER_KEY) == 3
    # What the plan cannot know, as an imported history does not say who asked, is healed once.
    imported = asides.Conversation.from_responses([*body["input"], {"role": "user", "content": "And?"}])
    assert go_on(open_stage, RESPONSES, list(imported.messages), key=OTHER_KEY) == 4


@pytest.mark.requirement("pain C8")
def test_pain_C8_reasoning_content_is_not_passed_back(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, DEEPSEEK)
    message = first.reply["choices"][0]["message"]
    stripped = {name: value for name, value in message.items() if name != "reasoning_content"}
    body = copy.deepcopy(first.request)
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "fine"}
    body["messages"] += [stripped, result]
    status, refusal = first.resend(body)
    assert (status, "must be passed back" in refusal) == (400, True)

    assert go_on(open_stage, DEEPSEEK, talk(open_stage, DEEPSEEK)) == 3
    imported = asides.Conversation.from_openai(body["messages"])
    assert go_on(open_stage, DEEPSEEK, list(imported.messages)) <= 4


@pytest.mark.requirement("pain C9")
def test_pain_C9_the_signature_of_a_call_is_lost(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, GEMINI)
    content = copy.deepcopy(first.reply["candidates"][0]["content"])
    calls = [part for part in content["parts"] if "functionCall" in part]
    assert calls[0].pop("thoughtSignature")
    result = {"functionResponse": {"name": "look", "response": {"result": "fine"}, "id": CALL.id}}
    body = copy.deepcopy(first.request)
    body["contents"] += [content, {"role": "user", "parts": [result]}]
    status, refusal = first.resend(body)
    assert (status, "missing a `thought_signature`" in refusal or "thought_signature" in refusal) == (400, True)

    assert go_on(open_stage, GEMINI, talk(open_stage, GEMINI)) == 3
    foreign = asides.Conversation.from_openai(
        [
            {"role": "user", "content": "Is it fine?"},
            {"role": "assistant", "content": None, "tool_calls": [_chat_call()]},
            {"role": "tool", "tool_call_id": "call_1", "content": "fine"},
        ]
    )
    assert go_on(open_stage, GEMINI, list(foreign.messages)) == 3


@pytest.mark.requirement("pain C10")
def test_pain_C10_reasoning_details_are_changed(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, OPENROUTER)
    message = copy.deepcopy(first.reply["choices"][0]["message"])
    message["reasoning_details"][0]["text"] = "I should have looked."
    body = copy.deepcopy(first.request)
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "fine"}
    body["messages"] += [message, result]
    assert first.resend(body)[0] == 400
    assert go_on(open_stage, OPENROUTER, talk(open_stage, OPENROUTER)) == 3


@pytest.mark.requirement("pain C2")
def test_seals_that_are_bound_to_their_past(stage: OpenStage) -> None:
    open_stage = stage(play)
    first = take_first_turn(open_stage, BOUND)
    changed = answer_calls(first, *first.reply["content"])
    changed["messages"][0]["content"] = "Is it good?"
    status, refusal = first.resend(changed)
    assert (status, "Invalid `signature`" in refusal) == (400, True)

    history = talk(open_stage, BOUND)
    assert go_on(open_stage, BOUND, [user("Is it good?"), *history[1:]]) == 3
