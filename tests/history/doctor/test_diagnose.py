"""Stuck histories of every kind: the strict stage refuses each as it is, and accepts it repaired."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import pytest

from asides.history.doctor.diagnose import diagnose
from asides.values.parts import ToolCall
from asides_stage.stage import Say, Stage
from tests.history.doctor.naive_client import post

_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
_LISTS = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input", "gemini": "contents"}


class Speaker(NamedTuple):
    """A format, and a model that speaks it."""

    format: str
    provider: str
    model: str
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    def body(self, items: list[Any]) -> dict[str, Any]:
        """A request with this history."""
        body: dict[str, Any] = deepcopy(self.settings)
        if self.format != "gemini":
            body["model"] = self.model
        return {**body, _LISTS[self.format]: items}


_CHAT_TOOLS = {"tools": [{"type": "function", "function": {"name": "look_up", "parameters": _SCHEMA}}]}
_CLAUDE = {
    "max_tokens": 8000,
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "tools": [{"name": "look_up", "input_schema": _SCHEMA}],
}
CLAUDE = Speaker("anthropic", "anthropic", "claude-sonnet-4-5", _CLAUDE)
OTHER_CLAUDE = CLAUDE._replace(model="claude-opus-4-5")
GPT = Speaker(
    "openai_responses",
    "openai",
    "gpt-5",
    {
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
        "tools": [{"type": "function", "name": "look_up", "parameters": _SCHEMA, "strict": False}],
    },
)
OTHER_GPT = GPT._replace(model="gpt-5-mini")
GEMINI = Speaker(
    "gemini",
    "google",
    "gemini-3-pro-preview",
    {"tools": [{"functionDeclarations": [{"name": "look_up", "parameters": _SCHEMA}]}]},
)
OTHER_GEMINI = GEMINI._replace(model="gemini-3-flash-preview")
DEEPSEEK = Speaker("openai_chat", "deepseek", "deepseek-reasoner", _CHAT_TOOLS)
KIMI = Speaker("openai_chat", "moonshot", "kimi-k2-thinking", _CHAT_TOOLS)
MISTRAL = Speaker("openai_chat", "mistral", "magistral-medium-latest", _CHAT_TOOLS)
GEMINI_CHAT = Speaker("openai_chat", "google-openai", "gemini-3-pro-preview", _CHAT_TOOLS)
ROUTER = Speaker("openai_chat", "openrouter", "anthropic/claude-sonnet-4.5", _CHAT_TOOLS)
OTHER_ROUTER = ROUTER._replace(model="anthropic/claude-opus-4.5")
ROUTER_GPT = ROUTER._replace(model="openai/gpt-5")


# --- a healthy conversation, by a client that only keeps what it gets -------------------------------------------------


def question(speaker: Speaker, text: str = "What is it?") -> Any:
    if speaker.format == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    return {"role": "user", "content": text}


def read_reply(speaker: Speaker, body: Any) -> list[Any]:
    """The items of the model's turn, as a client keeps them."""
    match speaker.format:
        case "anthropic":
            return [{"role": "assistant", "content": body["content"]}]
        case "openai_responses":
            return list(body["output"])
        case "gemini":
            return [body["candidates"][0]["content"]]
        case _:
            message = {name: value for name, value in body["choices"][0]["message"].items() if value is not None}
            return [message]


def result(speaker: Speaker, number: int) -> Any:
    name = f"call{number:05}"
    match speaker.format:
        case "anthropic":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "42"}]}
        case "openai_responses":
            return {"type": "function_call_output", "call_id": name, "output": "42"}
        case "gemini":
            answer = {"id": name, "name": "look_up", "response": {"output": "42"}}
            return {"role": "user", "parts": [{"functionResponse": answer}]}
        case _:
            return {"role": "tool", "tool_call_id": name, "content": "42"}


def say_call(number: int) -> Say:
    call = ToolCall(f"call{number:05}", "look_up", {"n": number})
    return Say(thinking=f"I look up number {number}.", tool_calls=(call,))


class Conversation:
    """A conversation with a strict stage. Every request of it is accepted, or the test fails."""

    def __init__(self, stage: Stage, speaker: Speaker) -> None:
        self.stage = stage
        self.speaker = speaker
        self.items: list[Any] = []

    def ask(self, item: Any) -> list[Any]:
        """Send one more item; returns the items of the reply."""
        self.items.append(item)
        answer = post(self.stage, self.speaker.format, self.speaker.body(self.items), model=self.speaker.model)
        assert answer.status == 200, answer.body
        reply = read_reply(self.speaker, answer.body)
        self.items += reply
        return reply


def open_stage() -> Stage:
    """A stage whose model calls a tool, then answers, again and again."""
    return Stage([say_call(1), Say(thinking="It is clear.", text="It is 42."), say_call(3), say_call(4), say_call(5)])


def hold(stage: Stage, speaker: Speaker) -> list[Any]:
    """A whole turn with a call, and an open one: the history ends with a result."""
    if speaker.provider == "mistral":
        return write_by_hand(speaker)
    talk = Conversation(stage, speaker)
    talk.ask(question(speaker))
    talk.ask(result(speaker, 1))
    talk.ask(question(speaker, "And then?"))
    return [*talk.items, result(speaker, 3)]


def write_by_hand(speaker: Speaker) -> list[Any]:
    """The same conversation, for a host that takes no field with thinking back."""
    calls = [
        {"id": f"call{number:05}", "type": "function", "function": {"name": "look_up", "arguments": '{"n": 1}'}}
        for number in (1, 3)
    ]
    return [
        question(speaker),
        {"role": "assistant", "tool_calls": calls[:1]},
        result(speaker, 1),
        {"role": "assistant", "content": "It is 42."},
        question(speaker, "And then?"),
        {"role": "assistant", "tool_calls": calls[1:]},
        result(speaker, 3),
    ]


# --- how histories get stuck ------------------------------------------------------------------------------------------


def content(items: list[Any], turn: int) -> list[Any]:
    """The blocks or parts of the turn with this number among the model's."""
    turns = [item for item in items if item.get("role") in ("assistant", "model")]
    found: list[Any] = turns[turn].get("content") or turns[turn].get("parts")
    return found


def lose_thinking(items: list[Any]) -> None:
    content(items, -1).pop(0)


def lose_signature(items: list[Any]) -> None:
    content(items, 0)[0]["signature"] = ""


def lose_signature_field(items: list[Any]) -> None:
    del content(items, 0)[0]["signature"]


def lose_text(items: list[Any]) -> None:
    del content(items, 0)[0]["thinking"]
    content(items, 0)[0]["signature"] = ""


def stop_while_thinking(items: list[Any]) -> None:
    items[-1:] = []
    content(items, -1)[1:] = [{"type": "thinking", "thinking": "I wonder", "signature": ""}]
    items.append({"role": "user", "content": "Go on."})


def stop_before_results(items: list[Any]) -> None:
    items.pop()
    items.append({"role": "user", "content": "Stop."})


def end_with_thinking(items: list[Any]) -> None:
    blocks = content(items, 1)
    blocks.append(blocks.pop(0))


def repeat_block(items: list[Any]) -> None:
    content(items, -1).insert(0, deepcopy(content(items, 0)[0]))


def begin_with_text(items: list[Any]) -> None:
    blocks = content(items, 1)
    blocks.insert(0, blocks.pop())


def lose_follower(items: list[Any]) -> None:
    call = next(item for item in reversed(items) if item.get("type") == "function_call")
    items.remove(call)
    items.pop()
    items.append({"role": "user", "content": "Go on."})


def lose_reasoning(items: list[Any]) -> None:
    items[:] = [item for item in items if item.get("type") != "reasoning"]


def lose_summary(items: list[Any]) -> None:
    for item in items:
        item.pop("summary", None)


def lose_ciphertext(items: list[Any]) -> None:
    for item in items:
        item.pop("encrypted_content", None)


def repeat_reasoning(items: list[Any]) -> None:
    place = next(place for place, item in enumerate(items) if item.get("type") == "reasoning")
    items.insert(place, deepcopy(items[place]))


def lose_output(items: list[Any]) -> None:
    items.pop()


def lose_fields(items: list[Any]) -> None:
    for item in items:
        for name in ("reasoning_content", "reasoning", "extra_content"):
            item.pop(name, None)
        for call in item.get("tool_calls", ()):
            call.pop("extra_content", None)


def rename_field(items: list[Any]) -> None:
    for item in items:
        if "reasoning_content" in item:
            item["reasoning"] = item.pop("reasoning_content")


def add_field(items: list[Any]) -> None:
    for item in items:
        if item.get("role") == "assistant":
            item["content"] = item.get("content") if isinstance(item.get("content"), str) else ""
            item["reasoning_content"] = "I look it up."


def lose_part_signature(items: list[Any]) -> None:
    for item in items:
        for part in item.get("parts", ()):
            part.pop("thoughtSignature", None)


def drop_parts_of_results(items: list[Any]) -> None:
    items[-1]["parts"] = [{"text": "Never mind."}]


def reorder_details(items: list[Any]) -> None:
    for item in items:
        item.get("reasoning_details", []).reverse()


def repeat_details(items: list[Any]) -> None:
    for item in items:
        details = item.get("reasoning_details", [])
        details += deepcopy(details)


def split_details(items: list[Any]) -> None:
    """Fragments of a stream that were never joined."""
    for item in items:
        if entry := next(iter(item.get("reasoning_details", ())), None):
            text, seal = entry["text"], entry.pop("signature")
            first = {**entry, "text": text[:4]}
            second = {**entry, "text": text[4:]}
            item["reasoning_details"] = [first, second, {**entry, "text": "", "signature": seal}]


def lose_half_of_details(items: list[Any]) -> None:
    for item in items:
        item.get("reasoning_details", [])[:1] = []


def cut_arguments(items: list[Any]) -> None:
    for item in items:
        for call in item.get("tool_calls", ()):
            call["function"]["arguments"] = '{"n": 1'


def repeat_result(items: list[Any]) -> None:
    items.append(deepcopy(items[-1]))


def lose_call(items: list[Any]) -> None:
    place = max(place for place, item in enumerate(items) if item.get("tool_calls"))
    del items[place]


def move_result(items: list[Any]) -> None:
    items.insert(len(items) - 1, {"role": "user", "content": "Wait."})


class Stuck(NamedTuple):
    pain: str
    speaker: Speaker
    harm: Callable[[list[Any]], None]
    kind: str | None
    made_by: Speaker | None = None

    def __str__(self) -> str:
        return f"{self.pain}-{self.speaker.format}-{self.speaker.model}-{self.harm.__name__}".replace("/", ".")


def nothing(items: list[Any]) -> None:
    """The history is whole, and another model made it."""


STUCK = [
    Stuck("C1", CLAUDE, lose_thinking, "thinking_must_lead"),
    Stuck("C2", CLAUDE, nothing, "thinking_signature_invalid", OTHER_CLAUDE),
    Stuck("C2", GEMINI, nothing, "thought_signature_invalid", OTHER_GEMINI),
    Stuck("C2", ROUTER, nothing, "thinking_signature_invalid", OTHER_ROUTER),
    Stuck("C3", CLAUDE, lose_signature, "thinking_signature_missing"),
    Stuck("C3", CLAUDE, lose_signature_field, "thinking_signature_missing"),
    Stuck("C3", CLAUDE, lose_text, "thinking_text_missing"),
    Stuck("C3", CLAUDE, stop_while_thinking, "thinking_signature_missing"),
    Stuck("C3", CLAUDE, stop_before_results, "tool_result_missing"),
    Stuck("C3", CLAUDE, end_with_thinking, "thinking_final_block"),
    Stuck("C3", DEEPSEEK, stop_before_results, "tool_result_missing"),
    Stuck("C3", GPT, lose_output, "tool_result_missing"),
    Stuck("C3", GEMINI, drop_parts_of_results, "tool_result_missing"),
    Stuck("C4", ROUTER, repeat_details, "thinking_block_modified"),
    Stuck("C4", ROUTER, split_details, "thinking_block_modified"),
    Stuck("C5", GPT, lose_follower, "reasoning_item_orphaned"),
    Stuck("C5", GPT, lose_reasoning, "reasoning_item_missing"),
    Stuck("C5", GPT, lose_summary, None),
    Stuck("C6", GPT, lose_ciphertext, "item_not_persisted"),
    Stuck("C7", GPT, nothing, "encrypted_reasoning_invalid", OTHER_GPT),
    Stuck("C8", DEEPSEEK, lose_fields, "reasoning_content_required"),
    Stuck("C8", DEEPSEEK, rename_field, "reasoning_content_required"),
    Stuck("C8", KIMI, lose_fields, "reasoning_content_required"),
    Stuck("C8", MISTRAL, add_field, "reasoning_field_rejected"),
    Stuck("C9", GEMINI, lose_part_signature, "thought_signature_missing"),
    Stuck("C9", GEMINI_CHAT, lose_fields, "thought_signature_missing"),
    Stuck("C10", ROUTER_GPT, reorder_details, "thinking_block_modified"),
    Stuck("C10", ROUTER_GPT, lose_half_of_details, "thinking_block_modified"),
    Stuck("tools", DEEPSEEK, repeat_result, None),
    Stuck("tools", DEEPSEEK, lose_call, "tool_result_orphaned"),
    Stuck("tools", DEEPSEEK, move_result, "tool_result_missing"),
]


def _find_texts(value: Any) -> list[str]:
    """The words of the conversation that must survive: questions, answers and results."""
    written = json.dumps(value)
    return [word for word in ("What is it?", "And then?", "It is 42.", "Stop.", "Go on.", "Wait.") if word in written]


@pytest.mark.parametrize("as_request", [True, False], ids=["request", "list"])
@pytest.mark.parametrize("case", STUCK, ids=str)
def test_a_stuck_history_is_refused_and_its_repair_is_accepted(case: Stuck, as_request: bool) -> None:
    speaker = case.speaker
    with open_stage() as stage:
        items = hold(stage, case.made_by or speaker)
        case.harm(items)
        broken = speaker.body(items)
        refused = post(stage, speaker.format, broken, model=speaker.model)
        assert refused.status in (400, 404, 422), "the stage is not strict about this"

        origin = None if case.made_by is None else case.made_by.name
        given = broken if as_request else items
        found = diagnose(given, speaker.name, origin=origin)
        assert found.format == speaker.format
        assert not found.sound
        assert case.kind in [finding.kind for finding in found.refused], found.findings

        repaired = found.repaired if as_request else speaker.body(found.repaired)
        answer = post(stage, speaker.format, repaired, model=speaker.model)
        assert answer.status == 200, (answer.body, found.findings)

    assert _find_texts(repaired) == _find_texts(broken)
    again = diagnose(found.repaired, speaker.name, origin=origin)
    assert again.sound, again.refused
    assert again.repaired == found.repaired
    assert given == (broken if as_request else items), "the given history was changed"


SPEAKERS = [CLAUDE, GPT, GEMINI, DEEPSEEK, KIMI, MISTRAL, GEMINI_CHAT, ROUTER, ROUTER_GPT]


@pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)
def test_a_healthy_history_is_sound_and_stays_as_it_is(speaker: Speaker) -> None:
    with open_stage() as stage:
        items = hold(stage, speaker)
    end = max(place for place, item in enumerate(items) if item == question(speaker, "And then?"))
    for given in (items, speaker.body(items), items[:end], items[: end + 1]):
        found = diagnose(given, speaker.name)
        assert found.sound, found.refused
        assert found.repaired == given


def test_the_smallest_repair_keeps_all_other_thinking() -> None:
    with open_stage() as stage:
        items = hold(stage, CLAUDE)
    lose_signature(items)
    found = diagnose(items, CLAUDE.name)
    (finding,) = found.refused
    assert (finding.path, finding.message, finding.part) == ("messages[1].content[0]", 1, 0)
    assert (finding.kind, finding.repair) == ("thinking_signature_missing", "it is left out")
    assert finding.source
    del items[1]["content"][0]
    assert found.repaired == items


def test_ciphertext_of_another_account_is_left_out() -> None:
    with open_stage() as stage, open_stage() as other:
        items = hold(other, GPT)
        body = GPT.body(items)
        assert post(stage, GPT.format, body).status == 400
        assert diagnose(body, GPT.name).sound, "nothing in the file says so"
        found = diagnose(body, GPT.name, other_account=True)
        assert "encrypted_reasoning_wrong_account" in [finding.kind for finding in found.refused]
        assert post(stage, GPT.format, found.repaired).status == 200


def test_a_message_that_names_its_model_needs_no_origin() -> None:
    with open_stage() as stage:
        items = hold(stage, OTHER_CLAUDE)
        for item in items:
            if item["role"] == "assistant":
                item["model"] = "claude-opus-4-5-20251101"
        found = diagnose(items, CLAUDE.name)
        assert {finding.kind for finding in found.refused} == {"thinking_signature_invalid"}
        assert diagnose(items, "anthropic:claude-opus-4-5").sound


def test_findings_are_in_the_order_of_the_file() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "b", "content": "1"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "q"},
    ]
    request = {"model": "deepseek-v4-pro", "messages": messages}
    found = diagnose(request, "deepseek:deepseek-v4-pro").refused
    places = [finding.message or 0 for finding in found]
    assert places == sorted(places)
    assert set(places) == {1, 2}


def test_a_turn_that_lost_its_thinking_is_closed() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "1"}
    ask, question = {"role": "user", "content": "q"}, {"role": "user", "content": "and now?"}
    results = {"role": "user", "content": [result]}
    go_on = {"role": "user", "content": "Continue."}
    assert diagnose([ask, use, results, question], "anthropic:claude-haiku-4-5").sound, "a question has closed it"
    alone = diagnose([ask, use, results], "anthropic:claude-haiku-4-5")
    assert [finding.kind for finding in alone.refused] == ["thinking_must_lead"]
    assert alone.repaired[:3] == [ask, use, results]
    assert (len(alone.repaired), alone.repaired[3]["role"], alone.repaired[4]) == (5, "assistant", go_on)
