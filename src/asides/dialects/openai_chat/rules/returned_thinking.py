"""Rules for the thinking of earlier turns: where it must come back, and where its field is refused.

Written from the documented rules and from reported errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any, Literal

import msgspec

from asides.dialects.flat_messages import find_turn_start, list_call_ids
from asides.dialects.openai_chat.rules.chat_request import ChatRequest
from asides.dialects.rulebook import BrokenRule, Rule, Wire

# --- thinking that must come back -------------------------------------------------------------------------------------


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What a host demands of the thinking of earlier turns."""

    when: Literal["never", "tool_turns", "loop"]
    """never: the field is refused · tool_turns: every turn with calls has it, even if empty · loop: those after the
    last user message."""
    rule: Rule


_REASONER = Rule(
    kind="reasoning_field_rejected",
    text="The reasoning_content field must not be included in the input messages.",
    code="invalid_request_error",
    since="2025-01-20",
    source="api-docs.deepseek.com/zh-cn/guides/reasoning_model: status 400; unsure: the words",
)
_AT_INDEX = Rule(
    kind="reasoning_content_required",
    text="Missing `reasoning_content` field in the assistant message at message index {place}. For more information, "
    "please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    code="invalid_request_error",
    since="2025-12-01",
    source="CherryHQ/cherry-studio#11751",
)
_PASSED_BACK = Rule(
    kind="reasoning_content_required",
    text="The `reasoning_content` in the thinking mode must be passed back to the API.",
    code="invalid_request_error",
    since="2026-04-24",
    source="api-docs.deepseek.com/guides/thinking_mode; mnfst/modelparams.dev#29",
)
_PASSED_BACK_PLAIN = Rule(
    kind="reasoning_content_required",
    text="The reasoning_content in the thinking mode must be passed back to the API.",
    since="2026-05-12",
    source="platform.xiaomimimo.com usage-guide/passing-back-reasoning_content; tailcallhq/forgecode#3347",
)
_IN_TOOL_CALL = Rule(
    kind="reasoning_content_required",
    text="thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}",
    since="2025-11-06",
    source="MoonshotAI/kimi-agent-sdk#169; MoonshotAI/kimi-cli packages/kosong, 2026-07: even if empty",
)
# The days on which the names without a number came to mean the next generation.
_SECOND_DAY, _THIRD_DAY = date(2025, 12, 1), date(2026, 4, 24)
# In the loop (guide to thinking with tools, 2025-12); later in all requests after it (guide of 2026-04).
_REFUSED = Demand(when="never", rule=_REASONER)
_IN_LOOP = Demand(when="loop", rule=_AT_INDEX)
_IN_TURNS = Demand(when="tool_turns", rule=_PASSED_BACK)


def check_returned(asked: ChatRequest, demand: Demand, *, by_default: bool = True) -> Iterator[BrokenRule]:
    """Check that earlier thinking comes back where the host demands it, and not where it refuses it.

    `by_default`: the model thinks unless it is switched off.
    """
    turn_start = find_turn_start(asked.messages)
    thinks = asked.thinks(by_default=by_default)
    for place, message in asked.assistants():
        thought = message.get("reasoning_content")
        if demand.when == "never":
            if thought is not None:
                yield demand.rule.broken(f"messages[{place}]", place=place)
            continue
        is_required = thinks and message.get("tool_calls") and (demand.when == "tool_turns" or place > turn_start)
        if is_required and not isinstance(thought, str):
            yield demand.rule.broken(f"messages[{place}]", place=place)


def check_thinking_refused(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no thinking comes back."""
    yield from check_returned(asked, _REFUSED)


def check_loop_thinking(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that the calls of the current turn bring their thinking."""
    yield from check_returned(asked, _IN_LOOP, by_default=asked.rule.default == "on")


def check_turn_thinking(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that all calls bring their thinking."""
    yield from check_returned(asked, _IN_TURNS, by_default=asked.rule.default == "on")


def check_dated_thinking(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the thinking of a name that meant several generations: refused first, demanded later."""
    if asked.today >= _THIRD_DAY:
        yield from check_turn_thinking(asked)
    elif asked.today >= _SECOND_DAY:
        yield from check_loop_thinking(asked)
    elif asked.rule.default == "on":
        yield from check_thinking_refused(asked)


def check_tool_turns(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that turns with calls bring their thinking, at models that think."""
    if asked.rule.thinking != "never":
        yield from check_returned(asked, Demand(when="tool_turns", rule=_IN_TOOL_CALL))


def check_tool_turns_plain(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the same at a host that demands it since a day."""
    if asked.today >= date(2026, 5, 12):
        yield from check_returned(asked, Demand(when="tool_turns", rule=_PASSED_BACK_PLAIN))


# --- fields that are refused ------------------------------------------------------------------------------------------

_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
_UNSUPPORTED_FIELD = Rule(
    kind="reasoning_field_rejected",
    text="'messages.{place}' : for 'role:assistant' the following must be satisfied[('messages.{place}' : property "
    "'{name}' is unsupported)]",
    since="2026-04-16",
    source="NousResearch/hermes-agent#11089",
)
_UNSUPPORTED_WITH_MODEL = Rule(
    kind="reasoning_field_rejected",
    text="messages[{place}].reasoning: reasoning is not supported with this model",
    since="2025-08-14",
    source="vercel/ai#8057",
)
_UNSUPPORTED_PROPERTY = Rule(
    kind="reasoning_field_rejected",
    text="messages.{place}.assistant.{name}: property 'messages.{place}.assistant.{name}' is unsupported",
    since="2026-05-19",
    source="Kilo-Org/kilocode#10375; QwenLM/qwen-code#11045, 2026-09-04: every model; `reasoning` is accepted",
)
_EXTRA = Rule(
    kind="reasoning_field_rejected",
    text="Extra inputs are not permitted",
    status=422,
    param="messages.{place}.assistant.{name}",
    code="extra_forbidden",
    since="2026-04-22",
    source="NousResearch/hermes-agent#11390",
)
_CALL_ID = Rule(
    kind=None,
    text="Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9.",
    code="3280",
    since="2024-11",
    source="errors of the live service in public reports, such as langchain#27780; unsure: the code",
)
_CHUNKS = Rule(
    kind=None,
    text="Input should be a valid list",
    status=422,
    param="messages.{place}.assistant.content.thinking",
    code="list_type",
    since="2025-07",
    source="mistralai/client-python models/thinkchunk.py, 2026-06-30",
)
_NINE_ALPHANUMERICS = re.compile(r"[A-Za-z0-9]{9}")


def check_reasoning_field(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that thinking comes back only in the field of this host, and only to a model that thinks."""
    for place, message in asked.assistants():
        for name in _FIELDS:
            if name in message and name != "reasoning":
                yield _UNSUPPORTED_FIELD.broken(f"messages[{place}]", place=place, name=name)
        if message.get("reasoning") and asked.rule.thinking == "never":
            yield _UNSUPPORTED_WITH_MODEL.broken(f"messages[{place}]", place=place)


def check_assistant_fields(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that thinking comes back only in the field of this host."""
    for place, message in asked.assistants():
        for name in _FIELDS:
            if name in message and name != "reasoning":
                yield _UNSUPPORTED_PROPERTY.broken(f"messages[{place}]", place=place, name=name)


def check_strict_messages(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the form of the turns of the model: known fields only, ids of nine letters or digits, thinking in lists."""
    for place, message in asked.assistants():
        for name in message:
            if name not in (*asked.target.quirks.message_fields, "name"):
                yield _EXTRA.broken(f"messages[{place}]", place=place, name=name, quoted=message[name])
        for name in list_call_ids(message):
            if not _NINE_ALPHANUMERICS.fullmatch(name):
                yield _CALL_ID.broken(f"messages[{place}].tool_calls", name=name)
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part.get("type") == "thinking" and not _is_thinking_part(part):
                yield _CHUNKS.broken(f"messages[{place}]", place=place, quoted=part.get("thinking"))


def _is_thinking_part(part: Wire) -> bool:
    inside: Any = part.get("thinking")
    return isinstance(inside, list) and all(
        isinstance(chunk, dict) and chunk.get("type") == "text" and isinstance(chunk.get("text"), str)
        for chunk in inside
    )
