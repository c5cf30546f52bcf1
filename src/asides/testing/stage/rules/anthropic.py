"""Rules of Anthropic's Messages: order of blocks, signatures, budgets, sampling, forced tools.

Written from the documented rules and from reported errors, not copied from a server. A known model is checked against
its row, an unknown one against the rules of all models. The stage makes signatures and verifies those that come back.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from typing import Any

import msgspec

from asides.dialects.anthropic.blocks import REDACTED, SIGNATURE
from asides.dialects.anthropic.encode import INTERLEAVED
from asides.dialects.anthropic.server.write_reply import write_error
from asides.providers.provider import ModelRule
from asides.providers.table import plain_row
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import DetailedRefusal, RequestRules, Wire
from asides.values.events import Event, ThinkingDelta, ThoughtSealed
from asides.values.thinking import Seal
from asides.wire.lenient import unify_base64

_THOUGHTS = ("thinking", "redacted_thinking")
# The error and its code are those of anthropic-python 2.8, types/thread_unsupported_request_error.py, 2026-11: clients
# send the whole conversation without `thread` after it.
_NO_THREADS = "thread: threads are not supported here. Send the full conversation without `thread`."
_NO_THREADS_CODE = {"error_code": "thread_unsupported_request"}


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del today  # No rule here depends on the date yet.
    return _MessagesRules(secret)


class _MessagesRules:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._scripted_seals: dict[tuple[str, str], tuple[str, str]] = {}
        """Seals from the script itself, with their model and text."""

    # --- signing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Sign every thought that the script did not sign; drop its text if the request hides it."""
        body: Wire = msgspec.json.decode(request.body)
        rule = _find_rule(body)
        hidden = _hides_thinking(body, rule)
        context = _SigningContext(body, rule)
        texts: dict[int, list[str]] = {}
        signed = {event.block for event in events if isinstance(event, ThoughtSealed)}
        sealed: list[Event] = []
        waiting: int | None = None
        for event in events:
            block = getattr(event, "block", None)
            if waiting is not None and block != waiting:
                if waiting not in signed:
                    seal = Seal(SIGNATURE, self._sign(context, "".join(texts[waiting])))
                    sealed.append(ThoughtSealed(seal, waiting, "summary", "block"))
                waiting = None
            if isinstance(event, ThinkingDelta):
                waiting = event.block
                pieces = texts.setdefault(waiting, [])
                if hidden:
                    continue
                pieces.append(event.text)
            if isinstance(event, ThoughtSealed):
                name = (event.seal.kind, unify_base64(event.seal.value))
                self._scripted_seals[name] = (context.model, "".join(texts.get(event.block, ())))
            sealed.append(event)
        return sealed

    def _sign(self, context: _SigningContext, text: str, place: int | None = None) -> str:
        content = msgspec.json.encode([context.model, context.prefix(place), text])
        return b64encode(hmac.digest(self._secret, content, "sha256")).decode()

    # --- refusing -----------------------------------------------------------------------------------------------------

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        body: Wire = msgspec.json.decode(request.body)
        if body.get("thread") is not None:
            return DetailedRefusal(_NO_THREADS, write_error(400, _NO_THREADS, details=_NO_THREADS_CODE))
        return next(self._check(body, request), None)

    def _check(self, body: Wire, request: Request) -> Iterator[str]:
        rule = _find_rule(body)
        interleaved = INTERLEAVED in request.headers.get("anthropic-beta", "")
        if not isinstance(body.get("max_tokens"), int):
            yield "max_tokens: Field required"
        yield from _check_form(body, rule, interleaved)
        yield from _check_sampling(body, rule)
        messages = [_to_blocks(message) for message in body.get("messages") or []]
        yield from _check_turns(messages, body, rule)
        yield from self._check_seals(messages, _SigningContext(body, rule))

    def _check_seals(self, messages: list[Wire], context: _SigningContext) -> Iterator[str]:
        latest = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
        for place, message in enumerate(messages):
            for number, block in enumerate(message["content"]):
                if block.get("type") not in _THOUGHTS or self._is_ours(block, context, place):
                    continue
                where = f"messages.{place}.content.{number}"
                if self._is_from_script(block) and place == latest:
                    yield (
                        f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                        "modified. These blocks must remain as they were in the original response."
                    )
                field = "data" if block["type"] == "redacted_thinking" else "signature"
                yield f"{where}: Invalid `{field}` in `{block['type']}` block"

    def _is_ours(self, block: Wire, context: _SigningContext, place: int) -> bool:
        if block["type"] == "redacted_thinking":
            return self._scripted_seals.get((REDACTED, unify_base64(str(block.get("data", ""))))) == (context.model, "")
        text, signature = block.get("thinking", ""), unify_base64(str(block.get("signature", "")))
        if self._scripted_seals.get((SIGNATURE, signature)) == (context.model, text):
            return True
        return hmac.compare_digest(unify_base64(self._sign(context, text, place)).encode(), signature.encode())

    def _is_from_script(self, block: Wire) -> bool:
        """Return whether the script issued this signature, for any text."""
        return (SIGNATURE, unify_base64(str(block.get("signature")))) in self._scripted_seals


class _SigningContext:
    """The content that a signature covers: the model, and for the newest models everything before the thought."""

    def __init__(self, body: Wire, rule: ModelRule) -> None:
        self.model = str(body.get("model"))
        self._bound = rule.prefix_bound
        self._front = [_without_cache_marks(body.get("system")), _without_cache_marks(body.get("tools"))]
        self._messages = [_without_cache_marks(_to_blocks(message)) for message in body.get("messages") or []]

    def prefix(self, place: int | None) -> list[Any]:
        """Return everything before the message at this index; None means before the reply."""
        return [*self._front, *self._messages[:place]] if self._bound else []


def _find_rule(body: Wire) -> ModelRule:
    return plain_row("anthropic").rule(str(body.get("model")))


def _thinking_settings(body: Wire) -> Wire:
    thinking = body.get("thinking")
    return thinking if isinstance(thinking, dict) else {}


def _thinks(body: Wire, rule: ModelRule) -> bool:
    kind = _thinking_settings(body).get("type")
    if kind is None:
        return rule.thinking == "always" or rule.default == "on"
    return bool(kind != "disabled")


def _hides_thinking(body: Wire, rule: ModelRule) -> bool:
    return bool((_thinking_settings(body).get("display") or rule.display) == "omitted")


def _to_blocks(message: Wire) -> Wire:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    return {"role": message.get("role"), "content": blocks}


def _without_cache_marks(value: Any) -> Any:
    """Remove cache_control marks, which may move from request to request."""
    if isinstance(value, dict):
        return {name: _without_cache_marks(inner) for name, inner in value.items() if name != "cache_control"}
    return [_without_cache_marks(inner) for inner in value] if isinstance(value, list) else value


def _check_form(body: Wire, rule: ModelRule, interleaved: bool) -> Iterator[str]:
    thinking = _thinking_settings(body)
    kind = thinking.get("type")
    if kind is None:
        return
    if rule.thinking == "never" or (rule.forms and kind not in rule.forms):
        yield f"thinking.type.{kind}: this model does not support `thinking.type` {kind!r}"
    effort = (body.get("output_config") or {}).get("effort")
    if kind == "between_tools" and effort in ("xhigh", "max"):
        yield f"output_config.effort: {effort!r} is not supported with `thinking.type` 'between_tools'"
    if kind != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < 1024:
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    elif budget >= int(body.get("max_tokens") or 0) and not interleaved:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`"


def _check_sampling(body: Wire, rule: ModelRule) -> Iterator[str]:
    yield from (f"{name}: not supported by this model" for name in rule.refuses if name in body)
    if not _thinks(body, rule):
        return
    if body.get("temperature") not in (None, 1, 1.0):
        yield "`temperature` may only be set to 1 when thinking is enabled"
    if body.get("top_k") is not None:
        yield "`top_k` must be unset when thinking is enabled"
    if body.get("top_p") is not None and not 0.95 <= float(body["top_p"]) <= 1:
        yield "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled"
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    budget = _thinking_settings(body).get("type") == "enabled"
    if forced and (budget or not rule.forced_tools):
        yield "Thinking may not be enabled when tool_choice forces tool use"


def _check_turns(messages: list[Wire], body: Wire, rule: ModelRule) -> Iterator[str]:
    if messages and messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    if messages and any(block.get("type") == "tool_result" for block in messages[0]["content"]):
        yield "messages.0: unexpected `tool_use_id` found in `tool_result` blocks"
    called: set[object] = set()
    for place, message in enumerate(messages):
        yield from _check_unique_ids(message, called, place)
        following = messages[place + 1] if place + 1 < len(messages) else None
        yield from _check_blocks(message, place)
        yield from _check_pairs(message, following, place)
    if messages and messages[-1]["role"] == "assistant" and not _is_paused(messages[-1]):
        if rule.prefill == "never":
            yield "This model does not support assistant message prefill: the conversation must end with a user message"
        if _thinks(body, rule):
            yield "Expected the conversation to end with a user message: prefill is not compatible with thinking"
    if _thinking_settings(body).get("type") == "enabled":
        yield from _check_turn_start(messages)


def _check_unique_ids(message: Wire, called: set[object], place: int) -> Iterator[str]:
    """Check that call ids are unique in the whole conversation, not only in their turn."""
    for number, block in enumerate(message["content"]):
        if block.get("type") == "tool_use":
            if block.get("id") in called:
                yield f"messages.{place}.content.{number}: `tool_use` ids must be unique"
            called.add(block.get("id"))


def _check_blocks(message: Wire, place: int) -> Iterator[str]:
    blocks = message["content"]
    for number, block in enumerate(blocks):
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            yield f"messages.{place}.content.{number}: text content blocks must contain non-whitespace text"
    if message["role"] == "assistant" and blocks and blocks[-1].get("type") in _THOUGHTS:
        yield f"messages.{place}: The final block in an assistant message cannot be `thinking`"
    if message["role"] == "user" and any(block.get("type") in _THOUGHTS for block in blocks):
        yield f"messages.{place}: `thinking` blocks are only allowed in assistant messages"


def _check_pairs(message: Wire, following: Wire | None, place: int) -> Iterator[str]:
    calls = [block.get("id") for block in message["content"] if block.get("type") == "tool_use"]
    answered = [block.get("tool_use_id") for block in (following or {"content": []})["content"]]
    missing = [call for call in calls if call not in answered]
    if missing:
        yield (
            f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(map(str, missing))}"
        )
    if following is None or following["role"] != "user":
        return
    kinds = [block.get("type") == "tool_result" for block in following["content"]]
    if kinds != sorted(kinds, reverse=True):
        yield f"messages.{place + 1}: `tool_result` blocks must come first"
    unasked = [name for name, is_result in zip(answered, kinds, strict=True) if is_result and name not in calls]
    if unasked:
        yield f"messages.{place + 1}: unexpected `tool_use_id` found in `tool_result` blocks: {unasked[0]}"


def _is_paused(message: Wire) -> bool:
    return any(str(block.get("type")).startswith("server_tool") for block in message["content"])


def _check_turn_start(messages: list[Wire]) -> Iterator[str]:
    """Check that the first assistant message of a turn with tool calls begins with a thought."""
    first = len(messages)
    for place in range(len(messages) - 1, -1, -1):
        if messages[place]["role"] == "assistant":
            first = place
        elif any(block.get("type") != "tool_result" for block in messages[place]["content"]):
            break
    present = messages[first:]
    if not any(block.get("type") == "tool_use" for message in present for block in message["content"]):
        return
    found = messages[first]["content"][0].get("type")
    if found not in _THOUGHTS:
        yield (
            f"messages.{first}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block"
        )
