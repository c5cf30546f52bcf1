"""What Bedrock's Converse refuses: its own checks of turns and tools, then those of the family of models.

A Claude's request is brought into the shape of Messages and checked by Claude's rules; Bedrock puts its own words
around theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from asides.dialects.anthropic.rules import check_claude
from asides.dialects.anthropic.rules import words as claude_words
from asides.dialects.anthropic.rules.settings import ClaudeRequest
from asides.dialects.rulebook import BrokenRule, Rule, Wire, WireRequest, as_object, as_objects
from asides.providers.provider import Target
from asides.providers.quirks import fits_any

_WRAPPED = "The model returned the following errors: "

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
CALLS_MIXED = Rule(
    kind="tool_turn_order",
    text="{message}.content: Conversation blocks and tool use blocks cannot be provided in the same turn.",
    since="2025-11-28",
    source="quarkiverse/quarkus-langchain4j#1983: a history of another model",
)
TOOLS_UNDEFINED = Rule(
    kind=None,
    text="The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    since="2024-06",
    source="docs.aws.amazon.com bedrock Converse",
)
TOOLS_REFUSED = Rule(
    kind=None,
    text="This model doesn't support tool use.",
    since="2024-09",
    source="docs.aws.amazon.com bedrock userguide conversation-inference-supported-models-features; public reports",
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
REASONING_KEY = Rule(
    kind="reasoning_field_rejected",
    text=(
        'Unknown parameter in messages[{message}].content[{block}].reasoningContent: "{key}", must be one of: '
        "reasoningText, redactedContent"
    ),
    since="2026-09-07",
    source="NousResearch/hermes-agent#105119: botocore, before it sends",
)
ORDER = Rule(
    kind="thinking_order",
    text="If an assistant message contains any thinking blocks, the first block must be thinking. Found {found}",
    since="2026-04-16",
    source="aws/bedrock-agentcore-sdk-python#419",
)
RULES = tuple(value for value in globals().values() if isinstance(value, Rule))


Mixed = Mapping[str, Rule]


def check(request: WireRequest, target: Target) -> Iterator[BrokenRule]:
    """Yield every rule that the request breaks at this target, in the order in which the server checks."""
    body = request.body
    # System notes may occur between the turns.
    turns = [
        (place, {**message, "content": as_objects(message.get("content"))})
        for place, message in enumerate(as_objects(body.get("messages")))
        if message.get("role") != "system"
    ]
    alone = (
        ("toolUse", CALLS_MIXED, fits_any(target.model, target.quirks.calls_alone)),
        ("toolResult", RESULTS_MIXED, fits_any(target.model, target.quirks.results_alone)),
    )
    mixed = {kind: rule for kind, rule, holds in alone if holds}
    is_claude = "claude_rules" in target.facts.enforces
    # Claude's newer models take a conversation that begins with the model's words (recorded).
    if not (is_claude and target.rule.thinking != "never") and (not turns or turns[0][1].get("role") != "user"):
        yield START.broken("messages")
    yield from _check_turns(turns, alternates="alternation" in target.facts.enforces, mixed=mixed)
    kinds = {name for _, message in turns for block in message["content"] for name in block}
    has_tools = bool(kinds & {"toolUse", "toolResult"})
    if "no_tools" in target.facts.enforces and (has_tools or as_object(body.get("toolConfig")).get("tools")):
        yield TOOLS_REFUSED.broken("messages" if has_tools else "toolConfig")
    elif has_tools and not as_object(body.get("toolConfig")).get("tools"):
        yield TOOLS_UNDEFINED.broken("toolConfig")
    yield from _check_reasoning(turns, target, is_claude=is_claude)
    if is_claude:
        for broken in check_claude(read_as_messages(request, target)):
            yield _wrap(broken)


def _wrap(broken: BrokenRule) -> BrokenRule:
    """Return one of Claude's refusals in Bedrock's words."""
    if broken.rule is claude_words.ORDER:
        return ORDER.broken(broken.path, found=broken.quoted)
    return wrap_words(broken)


def wrap_words(broken: BrokenRule) -> BrokenRule:
    """Wrap the words of a model's server in Bedrock's."""
    return msgspec.structs.replace(broken, text=f"{_WRAPPED}{broken.text}")


# --- in the shape of Messages -----------------------------------------------------------------------------------------


def read_as_messages(request: WireRequest, target: Target) -> ClaudeRequest:
    """Return a request of Converse as Claude gets it."""
    converted = _to_messages(request.body)
    betas = converted.get("anthropic_beta")
    named = frozenset(map(str, betas if isinstance(betas, list) else ()))
    return ClaudeRequest(converted, target, betas=named, today=request.today, needs_limit=False)


def _to_messages(body: Wire) -> Wire:
    inference, tools = as_object(body.get("inferenceConfig")), as_object(body.get("toolConfig"))
    converted: Wire = dict(as_object(body.get("additionalModelRequestFields")))
    if "reasoning_config" in converted:  # An older name (recorded).
        converted["thinking"] = converted.pop("reasoning_config")
    renamed = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p"}
    converted |= {new: inference[old] for old, new in renamed.items() if inference.get(old) is not None}
    if effort := as_object(body.get("outputConfig")).get("effort"):
        converted["output_config"] = {**(converted.get("output_config") or {}), "effort": effort}
    converted["system"] = [_to_block(block) for block in as_objects(body.get("system")) if "cachePoint" not in block]
    converted["tools"] = [tool for tool in as_objects(tools.get("tools")) if "cachePoint" not in tool]
    if choice := tools.get("toolChoice"):
        converted["tool_choice"] = {"type": next(iter(choice))}
    converted["messages"] = [
        {
            "role": message.get("role"),
            "content": [_to_block(block) for block in as_objects(message.get("content")) if "cachePoint" not in block],
        }
        for message in as_objects(body.get("messages"))
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


def _check_turns(turns: list[tuple[int, Wire]], *, alternates: bool, mixed: Mixed) -> Iterator[BrokenRule]:
    """`alternates`: whether the roles must take turns; `mixed`: what refuses other content in its turn."""
    for number, (place, message) in enumerate(turns):
        if alternates and number and turns[number - 1][1].get("role") == message.get("role"):
            yield ALTERNATION.broken(f"messages[{place}]")
        yield from _check_content(message, place, mixed=mixed)
        following = turns[number + 1] if number + 1 < len(turns) else None
        yield from _check_pairs(message, following, place)
        if number == 0 and _list_results(message):
            yield RESULTS_ORPHANED.broken(f"messages[{place}]", message=f"messages.{place}")


def _check_content(message: Wire, place: int, *, mixed: Mixed) -> Iterator[BrokenRule]:
    if not message["content"]:
        yield EMPTY.broken(f"messages[{place}]", message=f"messages.{place}")
    for number, block in enumerate(message["content"]):
        where, path = f"messages.{place}.content.{number}", f"messages[{place}].content[{number}]"
        if "text" in block and not str(block["text"]).strip():
            yield BLANK.broken(path, place=where)
        result = as_object(block.get("toolResult"))
        if result.get("status") == "error" and not result.get("content"):
            yield EMPTY_ERROR.broken(path, place=where)
    kinds = {name for block in message["content"] for name in block} - {"cachePoint"}
    for kind, rule in mixed.items():
        if kind in kinds and len(kinds) > 1:
            yield rule.broken(f"messages[{place}]", message=f"messages.{place}")


def _check_pairs(message: Wire, following: tuple[int, Wire] | None, place: int) -> Iterator[BrokenRule]:
    calls = _list_ids(message, "toolUse")
    next_place, answer = following or (place + 1, {"content": []})
    results = _list_results(answer)
    if missing := [call for call in calls if call not in results]:
        yield RESULTS_MISSING.broken(f"messages[{place}]", next=next_place, ids=", ".join(map(str, missing)))
    if len(results) > len(calls) or any(result not in calls for result in results):
        yield RESULTS_ORPHANED.broken(f"messages[{next_place}]", message=f"messages.{next_place}")


def _list_results(message: Wire) -> list[Any]:
    return _list_ids(message, "toolResult")


def _list_ids(message: Wire, kind: str) -> list[Any]:
    """Return the ids of the calls that the caller runs, or of its results; the server's own have a type."""
    blocks = [as_object(block[kind]) for block in message["content"] if kind in block]
    return [block.get("toolUseId") for block in blocks if "type" not in block]


def _check_reasoning(turns: list[tuple[int, Wire]], target: Target, *, is_claude: bool) -> Iterator[BrokenRule]:
    refuses_all = fits_any(target.model, target.quirks.refuses_thinking)
    refuses_all = refuses_all or (is_claude and target.rule.thinking == "never")
    for place, message in turns:
        for number, block in enumerate(message["content"]):
            if "reasoningContent" not in block:
                continue
            path, reasoning = f"messages[{place}].content[{number}]", as_object(block["reasoningContent"])
            if refuses_all or message.get("role") == "user":
                yield REASONING_REFUSED.broken(path)
            for key in reasoning.keys() - {"reasoningText", "redactedContent"}:
                yield REASONING_KEY.broken(path, message=place, block=number, key=key)
            if (thought := reasoning.get("reasoningText")) is None:
                continue
            if not isinstance(as_object(thought).get("text"), str):
                yield TEXT_NULL.broken(path, message=place + 1, block=number + 1)
            if not is_claude and as_object(thought).get("signature") is not None:
                yield SIGNATURE_REFUSED.broken(path)
