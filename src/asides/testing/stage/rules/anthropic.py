"""What Anthropic's servers check, and sign: order of blocks, signatures, budgets, sampling, forced tools.

Not a copy of any server: written from the documented rules and from the errors that people report. A model whose name
is known is held to its own row, others to the rules that all have. Signatures are made here and known when they return.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from asides.dialects.anthropic.blocks import REDACTED, SIGNATURE
from asides.dialects.anthropic.encode import INTERLEAVED
from asides.providers.provider import ModelRule
from asides.providers.table import plain_row
from asides.testing.stage.http_requests import Request
from asides.values.events import Event, ThinkingDelta, ThoughtSealed
from asides.values.thinking import Seal

Wire: TypeAlias = dict[str, Any]

_THOUGHTS = ("thinking", "redacted_thinking")


class Rules:
    """One stage's rules for requests for a message, and the signatures it gives out."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._given: dict[tuple[str, str], tuple[str, str]] = {}
        """Seals that a script gave out itself, with their model and text."""

    # --- signing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Every thought signed, unless the script did; without its text where the request does not ask to see it."""
        body = _read(request)
        rule = _rule_of(body)
        hidden = _hides(body, rule)
        seals = _Sealing(body, rule)
        texts: dict[int, str] = {}
        signed = {event.block for event in events if isinstance(event, ThoughtSealed)}
        sealed: list[Event] = []
        waiting: int | None = None
        for event in events:
            block = getattr(event, "block", None)
            if waiting is not None and block != waiting:
                if waiting not in signed:
                    seal = Seal(SIGNATURE, self._sign(seals, texts[waiting]))
                    sealed.append(ThoughtSealed(seal, waiting, "summary", "block"))
                waiting = None
            if isinstance(event, ThinkingDelta):
                waiting = event.block
                texts[waiting] = "" if hidden else texts.get(waiting, "") + event.text
                if hidden:
                    continue
            if isinstance(event, ThoughtSealed):
                self._given[event.seal.kind, event.seal.value] = (seals.model, texts.get(event.block, ""))
            sealed.append(event)
        return sealed

    def _sign(self, seals: _Sealing, text: str, place: int | None = None) -> str:
        told = msgspec.json.encode([seals.model, seals.prefix(place), text])
        return b64encode(hmac.digest(self._secret, told, "sha256")).decode()

    # --- refusing -----------------------------------------------------------------------------------------------------

    def refuse(self, request: Request) -> str | None:
        """The first rule that this request breaks, in the words of the real servers as far as they are known."""
        body = _read(request)
        return next(self._problems(body, request), None)

    def _problems(self, body: Wire, request: Request) -> Iterator[str]:
        rule = _rule_of(body)
        interleaved = INTERLEAVED in request.headers.get("anthropic-beta", "")
        if not isinstance(body.get("max_tokens"), int):
            yield "max_tokens: Field required"
        yield from _form_problems(body, rule, interleaved)
        yield from _sampling_problems(body, rule)
        messages = [_as_blocks(message) for message in body.get("messages") or []]
        yield from _turn_problems(messages, body, rule)
        yield from self._seal_problems(messages, _Sealing(body, rule))

    def _seal_problems(self, messages: list[Wire], seals: _Sealing) -> Iterator[str]:
        latest = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
        for place, message in enumerate(messages):
            for number, block in enumerate(message["content"]):
                if block.get("type") not in _THOUGHTS or self._is_ours(block, seals, place):
                    continue
                where = f"messages.{place}.content.{number}"
                if self._is_known(block) and place == latest:
                    yield (
                        f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                        "modified. These blocks must remain as they were in the original response."
                    )
                field = "data" if block["type"] == "redacted_thinking" else "signature"
                yield f"{where}: Invalid `{field}` in `{block['type']}` block"

    def _is_ours(self, block: Wire, seals: _Sealing, place: int) -> bool:
        if block["type"] == "redacted_thinking":
            return self._given.get((REDACTED, block.get("data", ""))) == (seals.model, "")
        text, signature = block.get("thinking", ""), block.get("signature", "")
        if self._given.get((SIGNATURE, signature)) == (seals.model, text):
            return True
        made = self._sign(seals, text, place)
        return hmac.compare_digest(made.encode(), str(signature).encode())

    def _is_known(self, block: Wire) -> bool:
        """Whether a script gave this signature out, for another text."""
        return (SIGNATURE, block.get("signature")) in self._given


class _Sealing:
    """What a signature is bound to: the model, and for the newest ones all that stands in front of it."""

    def __init__(self, body: Wire, rule: ModelRule) -> None:
        self.model = str(body.get("model"))
        self._bound = rule.prefix_bound
        self._front = [_plain(body.get("system")), _plain(body.get("tools"))]
        self._messages = [_plain(_as_blocks(message)) for message in body.get("messages") or []]

    def prefix(self, place: int | None) -> list[Any]:
        """What stands in front of the message at this place; of the reply, where none is given."""
        return [*self._front, *self._messages[:place]] if self._bound else []


def _read(request: Request) -> Wire:
    document: Wire = msgspec.json.decode(request.body)
    return document


def _rule_of(body: Wire) -> ModelRule:
    return plain_row("anthropic").rule(str(body.get("model")))


def _thinking(body: Wire) -> Wire:
    told = body.get("thinking")
    return told if isinstance(told, dict) else {}


def _thinks(body: Wire, rule: ModelRule) -> bool:
    kind = _thinking(body).get("type")
    if kind is None:
        return rule.thinking == "always" or rule.default == "on"
    return bool(kind != "disabled")


def _hides(body: Wire, rule: ModelRule) -> bool:
    return bool((_thinking(body).get("display") or rule.display) == "omitted")


def _as_blocks(message: Wire) -> Wire:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    return {"role": message.get("role"), "content": blocks}


def _plain(value: Any) -> Any:
    """A value without the marks of the cache, which may move from request to request."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if name != "cache_control"}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _form_problems(body: Wire, rule: ModelRule, interleaved: bool) -> Iterator[str]:
    thinking = _thinking(body)
    kind = thinking.get("type")
    if kind is None:
        return
    if rule.thinking == "never" or (rule.forms and kind not in rule.forms):
        yield f"thinking.type.{kind}: this model does not support `thinking.type` {kind!r}"
    if kind != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < 1024:
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    elif budget >= int(body.get("max_tokens") or 0) and not interleaved:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`"


def _sampling_problems(body: Wire, rule: ModelRule) -> Iterator[str]:
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
    budget = _thinking(body).get("type") == "enabled"
    if forced and (budget or not rule.forced_tools):
        yield "Thinking may not be enabled when tool_choice forces tool use"


def _turn_problems(messages: list[Wire], body: Wire, rule: ModelRule) -> Iterator[str]:
    if messages and messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    if messages and any(block.get("type") == "tool_result" for block in messages[0]["content"]):
        yield "messages.0: unexpected `tool_use_id` found in `tool_result` blocks"
    called: set[object] = set()
    for place, message in enumerate(messages):
        yield from _twice_called(message, called, place)
        following = messages[place + 1] if place + 1 < len(messages) else None
        yield from _block_problems(message, place)
        yield from _pair_problems(message, following, place)
    if messages and messages[-1]["role"] == "assistant" and not _is_paused(messages[-1]):
        if rule.prefill == "never":
            yield "This model does not support assistant message prefill: the conversation must end with a user message"
        if _thinks(body, rule):
            yield "Expected the conversation to end with a user message: prefill is not compatible with thinking"
    if _thinking(body).get("type") == "enabled":
        yield from _beginning_problems(messages)


def _twice_called(message: Wire, called: set[object], place: int) -> Iterator[str]:
    """Ids are unique in the whole conversation, not only in their turn."""
    for number, block in enumerate(message["content"]):
        if block.get("type") == "tool_use":
            if block.get("id") in called:
                yield f"messages.{place}.content.{number}: `tool_use` ids must be unique"
            called.add(block.get("id"))


def _block_problems(message: Wire, place: int) -> Iterator[str]:
    blocks = message["content"]
    for number, block in enumerate(blocks):
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            yield f"messages.{place}.content.{number}: text content blocks must contain non-whitespace text"
    if message["role"] == "assistant" and blocks and blocks[-1].get("type") in _THOUGHTS:
        yield f"messages.{place}: The final block in an assistant message cannot be `thinking`"
    if message["role"] == "user" and any(block.get("type") in _THOUGHTS for block in blocks):
        yield f"messages.{place}: `thinking` blocks are only allowed in assistant messages"


def _pair_problems(message: Wire, following: Wire | None, place: int) -> Iterator[str]:
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


def _beginning_problems(messages: list[Wire]) -> Iterator[str]:
    """While a turn with tools is under way, its first message begins with a thought."""
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
