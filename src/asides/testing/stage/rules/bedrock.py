"""Rules of Bedrock's Converse: its own checks of turns and tools, then those of the family of models.

Written from the documented rules and from reported errors, not copied from a server. A Claude's request is brought into
the shape of Messages and checked by Claude's rules; Bedrock puts its own words around what they say. OpenAI's newer
models hide their thinking in `redactedContent`, and the stage makes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any
from urllib.parse import unquote

import msgspec

from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import (
    DetailedRefusal,
    RequestRules,
    Rule,
    Wire,
    read_account,
    read_credential,
)
from asides.testing.stage.rules.anthropic import OLD_ACCOUNT
from asides.testing.stage.rules.claude_generations import find_generation
from asides.testing.stage.rules.claude_history import Dropped, SealCheck, check_history
from asides.testing.stage.rules.claude_seals import ClaudeSeals
from asides.testing.stage.rules.claude_settings import ClaudeRequest, check_settings
from asides.values.events import Event

_MODEL = re.compile(r"/model/([^/]+)/")
_WRAPPED = "The model returned the following errors: "
# Models that take no reasoning back: Nova's first generation, DeepSeek R1, Claude before 3.7.
_REFUSE_REASONING = re.compile(r"amazon\.nova-(?!2)|deepseek\.r1")
_HIDE_REASONING = re.compile(r"openai\.gpt-(?!oss)")
_KEEP_RESULTS_APART = re.compile(r"meta\.llama|mistral\.|cohere\.")

START = Rule(
    kind="role_alternation",
    text=(
        "A conversation must start with a user message. Try again with a conversation that starts with a user message."
    ),
    since="2024-06",
    source="docs.aws.amazon.com bedrock Converse; langchain-ai/langchain-aws, reports of 2024",
)
ALTERNATION = Rule(
    kind="role_alternation",
    text=(
        "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between "
        "user and assistant roles and try again."
    ),
    since="2026-07-15",
    source="genkit-ai/aws-bedrock-js-plugin#664",
)
BLANK = Rule(
    kind="empty_content",
    text="The text field in the ContentBlock object at {place} is blank. Add text to the text field, and try again.",
    since="2025-02-25",
    source="aws-samples/bedrock-engineer#8",
)
EMPTY = Rule(
    kind="empty_content",
    text="The content field in the Message object at {message} is empty. Add a ContentBlock object to the content "
    "field and try again.",
    since="2024-06",
    source="docs.aws.amazon.com bedrock Converse; langchain-ai/langchain-aws, reports of 2024",
)
EMPTY_ERROR = Rule(
    kind="empty_content",
    text="The content field at {place}.toolResult cannot be empty when status value is error.",
    since="2026-06-01",
    source="aws-samples/sample-multi-agent-orchestration-chat-on-agentcore#15",
)
RESULTS_MISSING = Rule(
    kind="tool_result_missing",
    text="Expected toolResult blocks at messages.{next}.content for the following Ids: {ids}",
    since="2026-07-15",
    source="genkit-ai/aws-bedrock-js-plugin#664",
)
RESULTS_ORPHANED = Rule(
    kind="tool_result_orphaned",
    text=(
        "The number of toolResult blocks at {message}.content exceeds the number of toolUse blocks of previous turn."
    ),
    since="2026-01-09",
    source="strands-agents/harness-sdk#1435",
)
RESULTS_MIXED = Rule(
    kind="tool_turn_order",
    text="{message}.content: Conversation blocks and tool result blocks cannot be provided in the same turn.",
    since="2025-11-23",
    source="strands-agents/harness-sdk#1223; langchain-ai/langchain-aws#141: models other than Claude",
)
TOOLS_UNDEFINED = Rule(
    kind=None,
    text="The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    since="2024-06",
    source="docs.aws.amazon.com bedrock Converse",
)
TEXT_NULL = Rule(
    kind="thinking_text_missing",
    text=(
        "Value at 'messages.{message}.member.content.{block}.member.reasoningContent.reasoningText.text' failed to "
        "satisfy constraint: Member must not be null"
    ),
    since="2026-06-22",
    source="danny-avila/LibreChat#13888",
)
REASONING_REFUSED = Rule(
    kind="reasoning_field_rejected",
    text="User messages cannot contain reasoning content. Please remove the reasoning content and try again.",
    since="2026-08-20",
    source="can1357/oh-my-pi#9086; strands-agents/harness-sdk#651",
)
SIGNATURE_REFUSED = Rule(
    kind="reasoning_field_rejected",
    text=(
        "This model doesn't support the reasoningContent.reasoningText.signature field. Remove "
        "reasoningContent.reasoningText.signature and try again."
    ),
    since="2025-08-16",
    source="strands-agents/harness-sdk#682",
)
RULES = tuple(value for value in globals().values() if isinstance(value, Rule))


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    return ConverseRules(secret, today)


class ConverseRules:
    """Also says which thinking blocks of the last request the server would leave out in silence."""

    def __init__(self, secret: bytes, today: date) -> None:
        self._seals = ClaudeSeals(secret)
        self._today = today
        self.dropped: list[Dropped] = []

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        body: Wire = msgspec.json.decode(request.body)
        self.dropped = []
        return next(self._check(body, request), None)

    def _check(self, body: Wire, request: Request) -> Iterator[DetailedRefusal]:
        model = _read_model(request)
        # Notes of the system may stand between the turns.
        turns = [(place, turn) for place, turn in enumerate(body.get("messages") or []) if turn.get("role") != "system"]
        yield from _check_turns(turns, model)
        kinds = {name for _, message in turns for block in message["content"] for name in block}
        if kinds & {"toolUse", "toolResult"} and not (body.get("toolConfig") or {}).get("tools"):
            yield TOOLS_UNDEFINED.refuse()
        yield from _check_reasoning(turns, model)
        read = self._read(body, request)
        is_claude = read.generation is not None
        if not is_claude and _HIDE_REASONING.search(model) is None:
            return
        for refusal in (*check_settings(read), *check_history(read)) if is_claude else ():
            yield _wrap(refusal)
        check = SealCheck(read, self._seals)
        for refusal in check.check():
            yield _wrap(refusal)
        self.dropped = check.dropped

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the seals of the models that have any: Claude's signatures, and the hidden thinking of others."""
        body: Wire = msgspec.json.decode(request.body)
        read = self._read(body, request)
        hides = _HIDE_REASONING.search(read.model) is not None
        if not hides and (read.generation is None or not read.generation.types):
            return events
        prefix = self._seals.read_prefix(read.body.get("system") or [], read.body.get("tools"), read.messages)
        return self._seals.seal(
            events,
            model=read.model,
            account=read.account,
            prefix=prefix,
            hidden=hides or read.hides_thinking,
            kind="redacted" if hides else "signature",
            asked=read.thinks,
        )

    def _read(self, body: Wire, request: Request) -> ClaudeRequest:
        converted = _to_messages(body)
        betas = converted.get("anthropic_beta")
        return ClaudeRequest(
            converted,
            model=_read_model(request),
            account=read_account(request),
            betas=frozenset(betas if isinstance(betas, list) else ()),
            today=self._today,
            is_old_account=OLD_ACCOUNT in read_credential(request),
            needs_limit=False,
        )


def _wrap(refusal: DetailedRefusal) -> DetailedRefusal:
    return DetailedRefusal(f"{_WRAPPED}{refusal}", status=refusal.status, kind=refusal.kind)


def _read_model(request: Request) -> str:
    found = _MODEL.search(request.path)
    return unquote(found[1]) if found else ""


# --- in the shape of Messages -----------------------------------------------------------------------------------------


def _to_messages(body: Wire) -> Wire:
    """Return a request of Converse as Claude gets it."""
    inference, tools = body.get("inferenceConfig") or {}, body.get("toolConfig") or {}
    converted: Wire = dict(body.get("additionalModelRequestFields") or {})
    renamed = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p"}
    converted |= {new: inference[old] for old, new in renamed.items() if inference.get(old) is not None}
    if effort := (body.get("outputConfig") or {}).get("effort"):
        converted["output_config"] = {**(converted.get("output_config") or {}), "effort": effort}
    converted["system"] = [_to_block(block) for block in body.get("system") or [] if "cachePoint" not in block]
    converted["tools"] = [tool for tool in tools.get("tools") or [] if "cachePoint" not in tool]
    if choice := tools.get("toolChoice"):
        converted["tool_choice"] = {"type": next(iter(choice))}
    converted["messages"] = [
        {
            "role": message.get("role"),
            "content": [_to_block(block) for block in message["content"] if "cachePoint" not in block],
        }
        for message in body.get("messages") or []
    ]
    return converted


def _to_block(block: Wire) -> Wire:
    match block:
        case {"text": text}:
            return {"type": "text", "text": text}
        case {"reasoningContent": {"redactedContent": data}}:
            return {"type": "redacted_thinking", "data": data}
        case {"reasoningContent": {"reasoningText": dict() as thought}}:
            return {
                "type": "thinking",
                **{"thinking" if name == "text" else str(name): value for name, value in thought.items()},
            }
        case {"toolUse": dict() as call} if "type" not in call:
            return {
                "type": "tool_use",
                "id": call.get("toolUseId"),
                "name": call.get("name"),
                "input": call.get("input"),
            }
        case {"toolResult": dict() as result} if "type" not in result:
            return {"type": "tool_result", "tool_use_id": result.get("toolUseId"), "content": result.get("content")}
        case _:
            return {"type": next(iter(block), ""), "block": block}


# --- Bedrock's own checks ---------------------------------------------------------------------------------------------


def _check_turns(turns: list[tuple[int, Wire]], model: str) -> Iterator[DetailedRefusal]:
    if not turns or turns[0][1].get("role") != "user":
        yield START.refuse()
    for number, (place, message) in enumerate(turns):
        before = turns[number - 1][1] if number else None
        if before is not None and before.get("role") == message.get("role"):
            yield ALTERNATION.refuse()
        yield from _check_content(message, place, model)
        following = turns[number + 1] if number + 1 < len(turns) else None
        yield from _check_pairs(message, following, place)
        if number == 0 and _list_results(message):
            yield RESULTS_ORPHANED.refuse(message=f"messages.{place}")


def _check_content(message: Wire, place: int, model: str) -> Iterator[DetailedRefusal]:
    if not message["content"]:
        yield EMPTY.refuse(message=f"messages.{place}")
    for number, block in enumerate(message["content"]):
        where = f"messages.{place}.content.{number}"
        if "text" in block and not str(block["text"]).strip():
            yield BLANK.refuse(place=where)
        result = block.get("toolResult") or {}
        if result.get("status") == "error" and not result.get("content"):
            yield EMPTY_ERROR.refuse(place=where)
    kinds = {name for block in message["content"] for name in block} - {"cachePoint"}
    if _KEEP_RESULTS_APART.search(model) and "toolResult" in kinds and len(kinds) > 1:
        yield RESULTS_MIXED.refuse(message=f"messages.{place}")


def _check_pairs(message: Wire, following: tuple[int, Wire] | None, place: int) -> Iterator[DetailedRefusal]:
    calls = [block["toolUse"].get("toolUseId") for block in message["content"] if _is_own(block.get("toolUse"))]
    next_place, answer = following or (place + 1, {"content": []})
    results = _list_results(answer)
    if missing := [call for call in calls if call not in results]:
        yield RESULTS_MISSING.refuse(next=next_place, ids=", ".join(map(str, missing)))
    if len(results) > len(calls) or any(result not in calls for result in results):
        yield RESULTS_ORPHANED.refuse(message=f"messages.{next_place}")


def _list_results(message: Wire) -> list[Any]:
    return [block["toolResult"].get("toolUseId") for block in message["content"] if _is_own(block.get("toolResult"))]


def _is_own(block: Wire | None) -> bool:
    """Return whether a call is for the caller to run, or a result from there."""
    return block is not None and "type" not in block


def _check_reasoning(turns: list[tuple[int, Wire]], model: str) -> Iterator[DetailedRefusal]:
    generation = find_generation(model)
    refuses_all = _REFUSE_REASONING.search(model) or (generation is not None and not generation.types)
    for place, message in turns:
        for number, block in enumerate(message["content"]):
            if "reasoningContent" not in block:
                continue
            if refuses_all or message.get("role") == "user":
                yield REASONING_REFUSED.refuse()
            thought = block["reasoningContent"].get("reasoningText")
            if thought is not None and not isinstance(thought.get("text"), str):
                yield TEXT_NULL.refuse(message=place + 1, block=number + 1)
            if generation is None and thought is not None and thought.get("signature") is not None:
                yield SIGNATURE_REFUSED.refuse()
