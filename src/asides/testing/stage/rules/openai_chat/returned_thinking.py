"""Rules for the thinking of earlier turns: where it must come back, and where its field is refused.

Written from the documented rules and from reported errors. Not here: state that the stage made itself (issued_details).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any, Literal

import msgspec

from asides.testing.stage.rules import Wire, find_turn_start, list_call_ids
from asides.testing.stage.rules.openai_chat.chat_request import ChatRequest
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, HostRule

# --- thinking that must come back -------------------------------------------------------------------------------------


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What a host demands of the thinking of earlier turns."""

    when: Literal["never", "tool_turns", "loop"]
    """never: the field is refused · tool_turns: every turn with calls has it, even if empty · loop: those after the
    last user message."""
    rule: HostRule
    thinks: Literal["always", "unless_switched_off", "when_asked"] = "unless_switched_off"

    def thinks_on(self, asked: ChatRequest) -> bool:
        """Return whether the model thinks on this request."""
        return self.thinks == "always" or asked.thinks(by_default=self.thinks == "unless_switched_off")


_REASONER = HostRule(
    kind="reasoning_field_rejected",
    text="The reasoning_content field must not be included in the input messages.",
    code="invalid_request_error",
    since="2025-01-20",
    source="api-docs.deepseek.com/zh-cn/guides/reasoning_model: status 400; unsure: the words",
)
_AT_INDEX = HostRule(
    kind="reasoning_content_required",
    text="Missing `reasoning_content` field in the assistant message at message index {place}. For more information, "
    "please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    code="invalid_request_error",
    since="2025-12-01",
    source="CherryHQ/cherry-studio#11751",
)
_PASSED_BACK = HostRule(
    kind="reasoning_content_required",
    text="The `reasoning_content` in the thinking mode must be passed back to the API.",
    code="invalid_request_error",
    since="2026-04-24",
    source="api-docs.deepseek.com/guides/thinking_mode; mnfst/modelparams.dev#29",
)
_PASSED_BACK_PLAIN = HostRule(
    kind="reasoning_content_required",
    text="The reasoning_content in the thinking mode must be passed back to the API.",
    since="2026-05-12",
    source="platform.xiaomimimo.com usage-guide/passing-back-reasoning_content; tailcallhq/forgecode#3347",
)
_IN_TOOL_CALL = HostRule(
    kind="reasoning_content_required",
    text="thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}",
    since="2025-11-06",
    source="MoonshotAI/kimi-agent-sdk#169; MoonshotAI/kimi-cli packages/kosong, 2026-07: even if empty",
)
# The days on which the names without a number came to mean the next generation.
_SECOND_DAY, _THIRD_DAY = date(2025, 12, 1), date(2026, 4, 24)


def find_deepseek_demand(asked: ChatRequest) -> Demand | None:
    """Return what DeepSeek demands of this model on this day."""
    name, today = asked.name, asked.today
    named = re.match(r"deepseek-(?:(r1)|v(3\.[2-9])|(v[4-9]|flash))", name)
    if named is not None:
        generation = 1 if named[1] else 2 if named[2] else 3
    elif name in ("deepseek-reasoner", "deepseek-chat"):
        generation = 1 if today < _SECOND_DAY else 2 if today < _THIRD_DAY else 3
    else:
        return None
    if generation == 1:
        return None if name == "deepseek-chat" else Demand(when="never", rule=_REASONER)
    asked_for = name == "deepseek-chat" or (named is not None and generation == 2)
    thinks: Literal["unless_switched_off", "when_asked"] = "when_asked" if asked_for else "unless_switched_off"
    # In the loop (guide to thinking with tools, 2025-12); later in all requests after it (guide of 2026-04).
    if generation == 2:
        return Demand(when="loop", rule=_AT_INDEX, thinks=thinks)
    return Demand(when="tool_turns", rule=_PASSED_BACK, thinks=thinks)


def find_kimi_demand(asked: ChatRequest) -> Demand | None:
    """Return what Moonshot demands of this model."""
    if re.match(r"kimi-(?:k2\.[5-9]|k2-thinking|k[3-9]|thinking)", asked.name) is None:
        return None
    return Demand(when="tool_turns", rule=_IN_TOOL_CALL)


def find_mimo_demand(asked: ChatRequest) -> Demand | None:
    """Return what Xiaomi demands on this day."""
    return Demand(when="tool_turns", rule=_PASSED_BACK_PLAIN) if asked.today >= date(2026, 5, 12) else None


def check_returned(asked: ChatRequest, demand: Demand | None) -> Iterator[Fault]:
    """Check that earlier thinking comes back where the host demands it, and not where it refuses it."""
    if demand is None:
        return
    turn_start = find_turn_start(asked.messages)
    thinks = demand.thinks_on(asked)
    for place, message in asked.assistants():
        thought = message.get("reasoning_content")
        if demand.when == "never":
            if thought is not None:
                yield demand.rule.fault(place=place)
            continue
        is_required = thinks and message.get("tool_calls") and (demand.when == "tool_turns" or place > turn_start)
        if is_required and not isinstance(thought, str):
            yield demand.rule.fault(place=place)


def check_deepseek_thinking(asked: ChatRequest) -> Iterator[Fault]:
    """Check the thinking that DeepSeek demands back."""
    yield from check_returned(asked, find_deepseek_demand(asked))


def check_kimi_thinking(asked: ChatRequest) -> Iterator[Fault]:
    """Check the thinking that Moonshot demands back."""
    yield from check_returned(asked, find_kimi_demand(asked))


def check_mimo_thinking(asked: ChatRequest) -> Iterator[Fault]:
    """Check the thinking that Xiaomi demands back."""
    yield from check_returned(asked, find_mimo_demand(asked))


# --- fields that are refused ------------------------------------------------------------------------------------------

_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
_UNSUPPORTED_FIELD = HostRule(
    kind="reasoning_field_rejected",
    text="'messages.{place}' : for 'role:assistant' the following must be satisfied[('messages.{place}' : property "
    "'{name}' is unsupported)]",
    since="2026-04-16",
    source="NousResearch/hermes-agent#11089",
)
_UNSUPPORTED_WITH_MODEL = HostRule(
    kind="reasoning_field_rejected",
    text="messages[{place}].reasoning: reasoning is not supported with this model",
    since="2025-08-14",
    source="vercel/ai#8057",
)
_UNSUPPORTED_PROPERTY = HostRule(
    kind="reasoning_field_rejected",
    text="messages.{place}.assistant.{name}: property 'messages.{place}.assistant.{name}' is unsupported",
    since="2026-05-19",
    source="Kilo-Org/kilocode#10375; QwenLM/qwen-code#11045, 2026-09-04: every model; `reasoning` is accepted",
)
_EXTRA = HostRule(
    kind="reasoning_field_rejected",
    text="Extra inputs are not permitted",
    status=422,
    param="messages.{place}.assistant.{name}",
    code="extra_forbidden",
    since="2026-04-22",
    source="NousResearch/hermes-agent#11390",
)
_CALL_ID = HostRule(
    kind="",
    text="Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9.",
    code="3280",
    since="2024-11",
    source="errors of the live service in public reports, such as langchain#27780; unsure: the code",
)
_CHUNKS = HostRule(
    kind="",
    text="Input should be a valid list",
    status=422,
    param="messages.{place}.assistant.content.thinking",
    code="list_type",
    since="2025-07",
    source="mistralai/client-python models/thinkchunk.py, 2026-06-30",
)
_MISTRAL_FIELDS = frozenset({"role", "content", "tool_calls", "prefix", "name"})
_NINE_ALPHANUMERICS = re.compile(r"[A-Za-z0-9]{9}")


def check_groq_fields(asked: ChatRequest) -> Iterator[Fault]:
    """Check that thinking comes back only in the field of this host, and only to a model that thinks."""
    thinks = re.search(r"gpt-oss|qwen-?3|deepseek-r1", asked.name) is not None
    for place, message in asked.assistants():
        for name in _FIELDS:
            if name in message and name != "reasoning":
                yield _UNSUPPORTED_FIELD.fault(place=place, name=name)
        if message.get("reasoning") and not thinks:
            yield _UNSUPPORTED_WITH_MODEL.fault(place=place)


def check_cerebras_fields(asked: ChatRequest) -> Iterator[Fault]:
    """Check that thinking comes back only in the field of this host."""
    for place, message in asked.assistants():
        for name in _FIELDS:
            if name in message and name != "reasoning":
                yield _UNSUPPORTED_PROPERTY.fault(place=place, name=name)


def check_mistral_fields(asked: ChatRequest) -> Iterator[Fault]:
    """Check the form of the turns of the model: known fields only, ids of nine letters or digits, thinking in lists."""
    for place, message in asked.assistants():
        for name in message:
            if name not in _MISTRAL_FIELDS:
                yield _EXTRA.fault(place=place, name=name, quoted=message[name])
        for name in list_call_ids(message):
            if not _NINE_ALPHANUMERICS.fullmatch(name):
                yield _CALL_ID.fault(name=name)
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part.get("type") == "thinking" and not _is_thinking_part(part):
                yield _CHUNKS.fault(place=place, quoted=part.get("thinking"))


def _is_thinking_part(part: Wire) -> bool:
    inside: Any = part.get("thinking")
    return isinstance(inside, list) and all(
        isinstance(chunk, dict) and chunk.get("type") == "text" and isinstance(chunk.get("text"), str)
        for chunk in inside
    )
