"""Rules of Bedrock's Converse: turns, calls paired with results, Claude's signatures, budgets, sampling.

Written from the documented rules and from reported errors, not copied from a server. A known model is checked against
its row, an unknown one against the rules of all models. The stage makes signatures and verifies those that come back.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from urllib.parse import unquote

import msgspec

from asides.dialects.bedrock.blocks import REDACTED, SIGNATURE
from asides.providers.provider import ModelRule
from asides.providers.table import plain_row
from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import RequestRules, Wire
from asides.values.events import Event, ThinkingDelta, ThoughtSealed
from asides.values.thinking import Seal

_MODEL = re.compile(r"/model/([^/]+)/")


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    del today  # No rule here depends on the date yet.
    return _ConverseRules(secret)


class _ConverseRules:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._scripted_seals: dict[tuple[str, str], tuple[str, str]] = {}
        """Seals from the script itself, with their model and text."""

    # --- signing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Sign every thought that the script did not sign, for models that sign."""
        model = _read_model(request)
        texts: dict[int, str] = {}
        sealed: list[Event] = []
        signed = {event.block for event in events if isinstance(event, ThoughtSealed)}
        waiting: int | None = None
        for event in events:
            if waiting is not None and getattr(event, "block", None) != waiting:
                if waiting not in signed and _has_signatures(model):
                    seal = Seal(SIGNATURE, self._sign(model, texts[waiting]))
                    sealed.append(ThoughtSealed(seal, waiting, "summary", "block"))
                waiting = None
            if isinstance(event, ThinkingDelta):
                waiting = event.block
                texts[waiting] = texts.get(waiting, "") + event.text
            if isinstance(event, ThoughtSealed):
                self._scripted_seals[event.seal.kind, event.seal.value] = (model, texts.get(event.block, ""))
            sealed.append(event)
        return sealed

    def _sign(self, model: str, text: str) -> str:
        return b64encode(hmac.digest(self._secret, msgspec.json.encode([model, text]), "sha256")).decode()

    # --- refusing -----------------------------------------------------------------------------------------------------

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        body: Wire = msgspec.json.decode(request.body)
        return next(self._check(body, _read_model(request)), None)

    def _check(self, body: Wire, model: str) -> Iterator[str]:
        # Notes of the system may stand between the turns.
        messages: list[Wire] = [turn for turn in body.get("messages") or [] if turn.get("role") != "system"]
        yield from _check_turns(messages)
        kinds = {name for message in messages for block in message["content"] for name in block}
        if kinds & {"toolUse", "toolResult"} and not (body.get("toolConfig") or {}).get("tools"):
            yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        yield from _check_thinking(body, _find_rule(model))
        yield from self._check_seals(messages, model)
        for place, message in enumerate(messages):
            if message["role"] == "assistant" and "reasoningContent" in (message["content"] or [{}])[-1]:
                yield f"messages.{place}: The final block in an assistant message cannot be `thinking`."

    def _check_seals(self, messages: list[Wire], model: str) -> Iterator[str]:
        for place, message in enumerate(messages):
            for number, block in enumerate(message["content"]):
                reasoning = block.get("reasoningContent")
                if reasoning is None or self._is_ours(reasoning, model):
                    continue
                where = f"messages.{place}.content.{number}"
                yield f"{where}: Invalid `signature` in `thinking` block"

    def _is_ours(self, reasoning: Wire, model: str) -> bool:
        if "redactedContent" in reasoning:
            return self._scripted_seals.get((REDACTED, reasoning["redactedContent"])) == (model, "")
        content = reasoning.get("reasoningText") or {}
        text, signature = content.get("text", ""), content.get("signature", "")
        if self._scripted_seals.get((SIGNATURE, signature)) == (model, text):
            return True
        return _has_signatures(model) and hmac.compare_digest(self._sign(model, text).encode(), str(signature).encode())


def _read_model(request: Request) -> str:
    found = _MODEL.search(request.path)
    return unquote(found[1]) if found else ""


def _find_rule(model: str) -> ModelRule:
    return plain_row("bedrock").rule(model)


def _has_signatures(model: str) -> bool:
    """Return whether thoughts of this model carry signatures: the models with forms of thinking do."""
    return bool(_find_rule(model).forms)


def _check_turns(messages: list[Wire]) -> Iterator[str]:
    if not messages or messages[0].get("role") != "user":
        yield "A conversation must start with a user message."
    for place, message in enumerate(messages):
        before = messages[place - 1] if place else None
        if before is not None and before["role"] == message["role"]:
            yield "A conversation must alternate between user and assistant roles."
        if any(not block["text"].strip() for block in message["content"] if "text" in block):
            yield f"The text field in the ContentBlock object at messages.{place} is blank."
        yield from _check_pairs(message, messages[place + 1] if place + 1 < len(messages) else None, place)


def _check_pairs(message: Wire, following: Wire | None, place: int) -> Iterator[str]:
    calls = {block["toolUse"]["toolUseId"] for block in message["content"] if _is_call(block)}
    results = {
        block["toolResult"]["toolUseId"]
        for block in (following or {"content": []})["content"]
        if "toolResult" in block and "type" not in block["toolResult"]
    }
    if following is not None and calls != results:
        yield f"Expected toolResult blocks at messages.{place + 1}.content for the following Ids: {sorted(calls)}"


def _is_call(block: Wire) -> bool:
    return "toolUse" in block and "type" not in block["toolUse"]


def _check_thinking(body: Wire, rule: ModelRule) -> Iterator[str]:
    native = body.get("additionalModelRequestFields") or {}
    inference = body.get("inferenceConfig") or {}
    thinking = native.get("thinking") or {}
    if not isinstance(thinking, dict):
        yield "thinking: Input should be a valid dictionary"
        return
    kind = thinking.get("type")
    if kind is not None and rule.forms and kind not in rule.forms:
        yield f"thinking.type.{kind}: this model does not support `thinking.type` {kind!r}"
    if kind not in ("enabled", "adaptive") or not rule.forms:
        return
    limit = inference.get("maxTokens")
    budget = thinking.get("budget_tokens")
    if kind == "enabled" and (not isinstance(budget, int) or budget < 1024):
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    elif kind == "enabled" and limit is not None and budget >= limit and not native.get("anthropic_beta"):
        yield "`max_tokens` must be greater than `thinking.budget_tokens`"
    if inference.get("temperature") not in (None, 1, 1.0):
        yield "`temperature` may only be set to 1 when thinking is enabled"
    if native.get("top_k") is not None:
        yield "`top_k` must be unset when thinking is enabled"
    choice = (body.get("toolConfig") or {}).get("toolChoice") or {}
    if (kind == "enabled" or not rule.forced_tools) and ({"any", "tool"} & set(choice)):
        yield "Thinking may not be enabled when tool_choice forces tool use"
