"""Rules for the messages of a chat: calls and results, content, and order.

Written from the documented rules and from reported errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from typing import Any

import msgspec

from asides.dialects.flat_messages import find_pairing_faults
from asides.dialects.openai_chat.rules.chat_request import ChatRequest
from asides.dialects.rulebook import BrokenRule, Rule, Wire, as_object, as_objects
from asides.providers.quirks import THINKING_FIELDS

_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")

# --- calls and results ------------------------------------------------------------------------------------------------


class PairWords(msgspec.Struct, frozen=True, kw_only=True):
    """How a host speaks of calls and results that do not pair."""

    missing: Rule
    orphaned: Rule
    twice: Rule


_LIVE_ERRORS = "errors of the live service in many public reports, such as langchain#29701"
USUAL_PAIRS = PairWords(
    missing=Rule(
        kind="tool_result_missing",
        text="An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
        param="messages",
        since="2023-11",
        source=_LIVE_ERRORS,
    ),
    orphaned=Rule(
        kind="tool_result_orphaned",
        text="Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
        "'tool_calls'.",
        param="messages.[{place}].role",
        since="2023-11",
        source=_LIVE_ERRORS,
    ),
    twice=Rule(
        kind=None,
        text="Duplicate value for 'tool_call_id' of '{ids}' in messages[{place}].",
        param="messages.[{place}].tool_call_id",
        since="2024-05",
        source="unsure: the words",
    ),
)
_NOT_FOUND = "invalid params, tool result's tool id({ids}) not found"
NUMBERED_PAIRS = PairWords(
    missing=Rule(
        kind="tool_result_missing",
        text="invalid params, tool call result does not follow tool call",
        since="2025-11-22",
        source="Kilo-Org/kilocode#3967; anomalyco/opencode#32608",
    ),
    orphaned=Rule(kind="tool_result_orphaned", text=_NOT_FOUND, since="2026-02-11", source="MiniMax-AI/MiniMax-M2#76"),
    twice=Rule(kind="tool_result_orphaned", text=_NOT_FOUND, since="2026-02-11", source="MiniMax-AI/MiniMax-M2#76"),
)
_ILLEGAL = Rule(
    kind=None,
    text="The messages parameter is illegal. Please check the documentation.",
    code="1214",
    since="2025-08",
    source="docs.z.ai api-reference api-code",
)
ONE_PAIR_ERROR = PairWords(missing=_ILLEGAL, orphaned=_ILLEGAL, twice=_ILLEGAL)
_UNMATCHED = Rule(
    kind="tool_result_missing",
    text="messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each "
    "`tool_use` block must have a corresponding `tool_result` block in the next message.",
    since="2025-10-16",
    source="github/copilot-cli#330",
)
_UNEXPECTED = Rule(
    kind="tool_result_orphaned",
    text="messages.{place}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {ids}. Each "
    "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
    since="2025-12-12",
    source="router-for-me/CLIProxyAPI#497",
)
BLOCK_PAIRS = PairWords(missing=_UNMATCHED, orphaned=_UNEXPECTED, twice=_UNEXPECTED)


def check_pairs(asked: ChatRequest, words: PairWords) -> Iterator[BrokenRule]:
    """Check that each call has a result and each result a call."""
    for fault in find_pairing_faults(asked.messages):
        rule = {"unanswered": words.missing, "unasked": words.orphaned, "twice": words.twice}[fault.kind]
        yield rule.broken(f"messages[{fault.place}]", place=fault.place, ids=", ".join(fault.ids))


ARGUMENTS = Rule(
    kind="tool_arguments_invalid",
    text="invalid params, invalid function arguments json string, tool_call_id: {name}",
    since="2026-04-18",
    source="earendil-works/pi#5468; NousResearch/hermes-agent#12167",
)


def check_arguments(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that the arguments of every call are the JSON of an object."""
    for place, message in asked.assistants():
        for call in message.get("tool_calls") or ():
            if not _is_object(call.get("function", {}).get("arguments")):
                yield ARGUMENTS.broken(f"messages[{place}].tool_calls", name=call.get("id"))


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(msgspec.json.decode(str(arguments)), dict)
    except msgspec.DecodeError:
        return False


_NO_CALLS = Rule(
    kind=None,
    text="Invalid 'messages[{place}].tool_calls': empty array. Expected an array with minimum length 1, but got an "
    "empty array instead.",
    param="messages[{place}].tool_calls",
    code="empty_array",
    since="2024-05-31",
    source="home-assistant/core#118577; openai/openai-node#1341",
)
_NO_CALLS_AT_QWEN = Rule(
    kind=None,
    text="Empty tool_calls is not supported in message",
    since="2026-03-13",
    source="smallmain/vscode-unify-chat-provider#65",
)


_LONG_ID = Rule(
    kind=None,
    text="Invalid 'messages[{place}].tool_calls[{number}].id': string too long. Expected a string with maximum length "
    "40, but got a string with length {length} instead.",
    param="messages[{place}].tool_calls[{number}].id",
    code="string_above_max_length",
    since="2026-11",
    source="errors of the live service in public reports",
)
_NO_NAME = Rule(
    kind=None,
    text="Invalid 'messages[{place}].tool_calls[{number}].function.name': empty string. Expected a string with minimum "
    "length 1, but got an empty string instead.",
    param="messages[{place}].tool_calls[{number}].function.name",
    code="empty_string",
    since="2026-03-20",
    source="continuedev/continue#11645",
)
_NO_NAME_2013 = Rule(
    kind=None,
    text="invalid params, function name or parameters is empty",
    since="2026-04-20",
    source="gsd-build/gsd-2#4602",
)
_LONGEST_ID = 40


def check_short_ids(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no id of a call is too long."""
    for place, number, call in _list_calls(asked):
        length = len(str(call.get("id") or ""))
        if length > _LONGEST_ID:
            yield _LONG_ID.broken(f"messages[{place}].tool_calls", place=place, number=number, length=length)


def check_named_calls(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that every call has a name."""
    rule = _NO_NAME_2013 if "numbered_pairs" in asked.target.facts.enforces else _NO_NAME
    for place, number, call in _list_calls(asked):
        if not as_object(call.get("function")).get("name"):
            yield rule.broken(f"messages[{place}].tool_calls", place=place, number=number)


def _list_calls(asked: ChatRequest) -> Iterator[tuple[int, int, Wire]]:
    for place, message in asked.assistants():
        for number, call in enumerate(as_objects(message.get("tool_calls"))):
            if "function" in call:
                yield place, number, call


def check_filled_calls(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a list of calls has one. A turn without calls leaves the field out."""
    for place, message in asked.assistants():
        if message.get("tool_calls") == []:
            rule = _NO_CALLS_AT_QWEN if "thinking_switch" in asked.target.facts.enforces else _NO_CALLS
            yield rule.broken(f"messages[{place}].tool_calls", place=place)


# --- content ----------------------------------------------------------------------------------------------------------

_NULL = Rule(
    kind="empty_content",
    text="Invalid value for 'content': expected a string, got null.",
    param="messages.[{place}].content",
    since="2023-11",
    source="errors of the live service in many public reports, such as openai-python#1118",
)
_NO_TEXT = Rule(
    kind=None,
    text="Missing required parameter: 'messages[{place}].content[{number}].text'.",
    param="messages[{place}].content[{number}].text",
    code="missing_required_parameter",
    since="2024-05",
    source="errors of the live service; unsure: the words",
)
_EMPTY = Rule(
    kind="empty_content",
    text="Invalid request: the message at position {place} with role '{role}' must not be empty",
    since="2025-07",
    source="errors of the live service in public reports, such as anomalyco/opencode#1720",
)
NO_ELEMENT = Rule(
    kind="empty_content",
    text="Invalid request content: Each message must have at least one content element.",
    since="2026-05-22",
    source="NousResearch/hermes-agent#30310",
)


_NO_PICTURE = Rule(
    kind=None,
    text="Failed to deserialize the JSON body into the target type: messages[{place}]: unknown variant `image_url`, "
    "expected `text`",
    code="invalid_request_error",
    since="2026-07",
    source="recorded; vercel/ai#9179; rikkahub/rikkahub#1433",
)


def check_text_content(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a model that does not see is sent no pictures."""
    if not asked.target.facts.pictures:
        yield from _find_pictures(asked)


def check_pictures_2026(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no pictures are sent before the day on which the model began to see."""
    if asked.today < date(2026, 11, 15):
        yield from _find_pictures(asked)


def _find_pictures(asked: ChatRequest) -> Iterator[BrokenRule]:
    for place, message in enumerate(asked.messages):
        parts = message["content"] if isinstance(message.get("content"), list) else ()
        if any(isinstance(part, dict) and part.get("type") == "image_url" for part in parts):
            yield _NO_PICTURE.broken(f"messages[{place}]", place=place)


def check_content(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a message has content, and a text part its text."""
    for place, message in enumerate(asked.messages):
        content = message.get("content")
        instead = message.get("role") == "assistant" and any(message.get(name) for name in _INSTEAD_OF_CONTENT)
        if content is None and not instead:
            yield _NULL.broken(f"messages[{place}]", place=place)
        parts: list[Any] = content if isinstance(content, list) else []
        for number, part in enumerate(parts):
            if isinstance(part, dict) and part.get("type") == "text" and not isinstance(part.get("text"), str):
                yield _NO_TEXT.broken(f"messages[{place}]", place=place, number=number)


def check_blanks(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no message is empty. A turn with calls leaves its content out instead."""
    for place, message in enumerate(asked.messages):
        role = message.get("role")
        if role not in ("user", "assistant") or (message.get("tool_calls") and "content" not in message):
            continue
        if _is_blank(message.get("content")):
            yield _EMPTY.broken(f"messages[{place}]", place=place, role=role)


_EMPTY_CHAT = Rule(
    kind="empty_content",
    text="invalid params, chat content is empty",
    since="2026-08",
    source="reports in public repositories to 2026-09: a tool that returned nothing, a turn without text; a turn with "
    "calls is taken without the field",
)


def check_chat_content(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no message of any role is empty. A turn with calls leaves its content out instead."""
    for place, message in enumerate(asked.messages):
        if message.get("tool_calls") and message.get("content") is None:
            continue
        if _is_blank(message.get("content")):
            yield _EMPTY_CHAT.broken(f"messages[{place}]")


def check_elements(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a message has an element of content, or calls."""
    for place, message in enumerate(asked.messages):
        is_empty = message.get("content") in (None, "", []) and not message.get("tool_calls")
        if is_empty and message.get("role") in ("user", "assistant"):
            yield NO_ELEMENT.broken(f"messages[{place}]")


def _is_blank(content: object) -> bool:
    if isinstance(content, list):
        parts: list[Any] = content
        return all(
            isinstance(part, dict) and part.get("type") == "text" and _is_blank(part.get("text")) for part in parts
        )
    return content is None or (isinstance(content, str) and not content.strip())


# --- order ------------------------------------------------------------------------------------------------------------

_ORDER = "avante.nvim#2695, litellm#17761, hermes-agent#20154"
_AFTER_TOOL = Rule(
    kind="tool_turn_order",
    text="Unexpected role '{role}' after role '{before}'",
    code="3230",
    since="2026-05",
    source=_ORDER,
)
_LAST_ROLE = Rule(
    kind="prefill_unsupported",
    text="Expected last role User or Tool (or Assistant with prefix True) for serving but got {role}",
    code="3230",
    since="2025-08",
    source=_ORDER,
)


def check_order(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the order of strict templates: only the model follows tool results, never a user.

    Small models without thinking accept it (recorded).
    """
    roles = [str(message.get("role")) for message in asked.messages]
    for place, (before, role) in enumerate(pairwise(roles), 1):
        if role == "user" and before == "tool" and asked.rule.thinking == "always":
            yield _AFTER_TOOL.broken(f"messages[{place}]", role=role, before=before)
    if roles and roles[-1] not in ("user", "tool") and not asked.messages[-1].get("prefix"):
        yield _LAST_ROLE.broken(f"messages[{len(roles) - 1}]", role=roles[-1])


_NO_SYSTEM_ROLE = Rule(
    kind="system_position",
    text="Unsupported value: 'messages[{place}].role' does not support '{role}' with this model.",
    param="messages[{place}].role",
    code="unsupported_value",
    since="2025-02",
    source="recorded in pydantic-ai's test_openai cassettes: o1-mini; unsure: the date",
)
_SYSTEM_ROLE = Rule(
    kind="system_position",
    text="invalid params, chat content has invalid message role: system",
    since="2026-05-23",
    source="BigPizzaV3/CodexPlusPlus#267",
)
_SYSTEM_FIRST = Rule(
    kind="system_position",
    text="System message must be at the beginning.",
    since="2026-04-21",
    source="nashsu/llm_wiki#45: raise_exception in the template of Qwen3.5",
)


_DEVELOPER = Rule(
    kind="system_position",
    text="Failed to deserialize the JSON body into the target type: messages[{place}].role: unknown variant "
    "`developer`, expected one of `system`, `user`, `assistant`, `tool`, `latest_reminder`",
    code="invalid_request_error",
    since="2026-05-02",
    source="decolua/9router#773",
)


def check_no_developer(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no message has OpenAI's newer role for the system."""
    for place, message in enumerate(asked.messages):
        if message.get("role") == "developer":
            yield _DEVELOPER.broken(f"messages[{place}]", place=place)


_BOTH_CHANNELS = Rule(
    kind="reasoning_field_rejected",
    text="Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis message in "
    "one or the other, but not both.",
    since="2025-11-07",
    source="ggml-org/llama.cpp#17040: raise_exception in the template of gpt-oss",
)
_CHANNEL_TAGS = Rule(
    kind="reasoning_field_rejected",
    text="You have passed a message containing <|channel|> tags in the content field. Instead of doing this, you "
    "should pass analysis messages (the string between '<|message|>' and '<|end|>') in the 'thinking' field, and final "
    "messages (the string between '<|message|>' and '<|end|>') in the 'content' field.",
    since="2025-08-11",
    source="ggml-org/llama.cpp#15242: raise_exception in the template of gpt-oss",
)


def check_channels(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a turn with calls has content or thinking, and that no content holds the tags of channels."""
    for place, message in asked.assistants():
        content, thinks = message.get("content"), any(message.get(name) for name in THINKING_FIELDS)
        if isinstance(content, str) and "<|channel|>" in content:
            yield _CHANNEL_TAGS.broken(f"messages[{place}].content")
        if message.get("tool_calls") and content and thinks:
            yield _BOTH_CHANNELS.broken(f"messages[{place}]")


def check_no_system_role(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no message has the role system or developer."""
    for place, message in enumerate(asked.messages):
        if message.get("role") in ("system", "developer"):
            yield _NO_SYSTEM_ROLE.broken(f"messages[{place}].role", place=place, role=message["role"])


def check_system_role(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that system messages occur only at the start."""
    if _has_late_system(asked.messages):
        yield _SYSTEM_ROLE.broken("messages")


def check_system_first(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the same in the words of a template."""
    if _has_late_system(asked.messages):
        yield _SYSTEM_FIRST.broken("messages")


def _has_late_system(messages: list[Wire]) -> bool:
    started = False
    for message in messages:
        if message.get("role") not in ("system", "developer"):
            started = True
        elif started:
            return True
    return False


_ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
_ALTERNATION = Rule(
    kind="role_alternation",
    # The text comes twice: the server writes an exception and its cause.
    text=f"{_ALTERNATE} {_ALTERNATE}",
    since="2025-12-05",
    source="suitenumerique/conversations#197",
)
ALTERNATION_2024 = Rule(
    kind="role_alternation",
    text="After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
    since="2024-07-27",
    source="vllm-project/vllm#6862",
)
_SUCCESSIVE = Rule(
    kind="role_alternation",
    text="{model} does not support successive user or assistant messages (messages[{before}] and messages[{place}] in "
    "your input). You should interleave the user/assistant messages in the message sequence.",
    code="invalid_request_error",
    since="2025-01-20",
    source="errors of the live service in public reports, such as cline#1353; until the models of 2025-05-28",
)


def check_alternation(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that user and assistant take turns, as the template demands."""
    for place in _find_successive(asked.messages):
        yield (_ALTERNATION if asked.today >= date(2025, 7, 1) else ALTERNATION_2024).broken(f"messages[{place}]")


_ALTERNATING_USERS = Rule(
    kind="role_alternation",
    text="After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).",
    since="2025-06",
    source="Perplexity; unsure: the date",
)


def check_alternating_users(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the same in the words of Perplexity."""
    for place in _find_successive(asked.messages):
        yield _ALTERNATING_USERS.broken(f"messages[{place}]")


def check_interleaved(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the same of a model of 2025."""
    if asked.today < date(2025, 5, 28):
        for place in _find_successive(asked.messages):
            yield _SUCCESSIVE.broken(f"messages[{place}]", model=asked.name, before=place - 1, place=place)


def _find_successive(messages: list[Wire]) -> Iterator[int]:
    roles = [message.get("role") for message in messages]
    for place, (before, role) in enumerate(pairwise(roles), 1):
        if role == before and role in ("user", "assistant"):
            yield place


_NO_QUERY = Rule(
    kind="role_alternation",
    text="No user query found in messages.",
    since="2026-03-09",
    source="vllm-project/vllm#36432; lmstudio-ai/lmstudio-bug-tracker#1586; tinyhumansai/openhuman#5291 for llama.cpp: "
    "raise_exception in the template of Qwen3.5",
)


_NO_PROMPT = Rule(
    kind="empty_content",
    text="The prompt parameter was not received normally.",
    code="1213",
    since="2025-08",
    source="docs.z.ai api-reference api-code; unsure: that it means messages without a user",
)


def check_asked(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the same in the words of Z.ai."""
    if asked.messages and not any(message.get("role") == "user" for message in asked.messages):
        yield _NO_PROMPT.broken("messages[0]")


_NO_SYSTEM = Rule(
    kind="system_position",
    text="System role not supported",
    since="2024-07-27",
    source="raise_exception in the chat template of google/gemma-2-9b-it",
)


def check_template_without_system(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no message is the system's, as the template demands."""
    for place, message in enumerate(asked.messages):
        if message.get("role") in ("system", "developer"):
            yield _NO_SYSTEM.broken(f"messages[{place}]")


def check_user_query(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that there is a user message with content, as the template demands."""
    if asked.messages and not any(message.get("role") == "user" for message in asked.messages):
        yield _NO_QUERY.broken("messages[0]")


_PREFILL = Rule(
    kind="prefill_with_thinking",
    text="Assistant response prefill is incompatible with enable_thinking.",
    since="2026-03-22",
    source="ggml-org/llama.cpp#20861: any trailing assistant message, even an empty one",
)
_CONTINUED = Rule(
    kind="prefill_with_thinking",
    text="continue_final_message is set but the final message does not appear in the chat after applying the chat "
    "template! This can happen if the chat template deletes portions of the final message. Please verify the chat "
    "template and final message in your chat to ensure they are compatible.",
    since="2025-07-31",
    source="PrimeIntellect-ai/verifiers#179",
)


def check_prefill(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a model that thinks is not given the start of its answer."""
    if asked.messages and asked.messages[-1].get("role") == "assistant" and asked.thinks(by_default=True):
        yield _PREFILL.broken(f"messages[{len(asked.messages) - 1}]")


def check_continued(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a final message that is to be continued has no thinking, which templates delete."""
    last = asked.messages[-1] if asked.messages else {}
    if asked.body.get("continue_final_message") and "</think>" in str(last.get("content")):
        yield _CONTINUED.broken(f"messages[{len(asked.messages) - 1}]")
