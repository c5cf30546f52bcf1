"""A refused request with what its refusal names, and the changes that may repair it.

`RefusedRequest` finds the parts of the history that a refusal means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.history.replay import digest_token, is_same_host
from asides.providers.provider import Target
from asides.values.messages import Message, Prompt
from asides.values.parts import Part, ServerTool, Text, ToolCall, UnknownPart
from asides.values.rejections import Rejection
from asides.values.thinking import Origin, Seal, Thought

Token: TypeAlias = Seal | Thought | ServerTool | UnknownPart
"""What is sent back to the maker of a part: its seal, or a part without a seal."""

_ITEM = "item"
# An item that the encoder can write without its entry.
_PLAIN_ITEMS = ("message", "function_call", "custom_tool_call")
# The ends of a ciphertext, as OpenAI shows one: gAAA...wXBV.
_SHORTENED = r"([\w+/=-]{3,})(?:\.{3}|…)([\w+/=-]{3,})"


class Fix(msgspec.Struct, frozen=True):
    """One change that may repair a request."""

    detail: str
    """A sentence for the notice."""
    changes: tuple[tuple[str, Any], ...] = ()
    """Facts that differ from the row (learned_rules)."""
    refused: tuple[str, ...] = ()
    """Digests of seals and thoughts that do not go back."""
    every_model: bool = False
    """The facts hold for all models of the account."""
    prompt: Prompt | None = None
    """The changed prompt, if the change is not a fact about the target."""
    lasts: bool = True
    """Whether the facts are remembered."""
    code: str = "request_repaired"
    setting: str | None = None
    asked: str | None = None
    sent: str | None = None


class PlacedToken(NamedTuple):
    """A token of a message that was sent."""

    message: int
    part: int
    token: Token
    owner: Part

    @property
    def origin(self) -> Origin | None:
        """Its maker, if known."""
        own = self.token.origin
        return own if own is not None else getattr(self.owner, "origin", None)

    @property
    def is_thinking(self) -> bool:
        """Whether it is, or belongs to, a thought: an id or a citation does not."""
        return isinstance(self.owner, Thought) or (isinstance(self.token, Seal) and bool(self.token.value))


class RefusedRequest:
    """A refused request: what was sent where, and what the refusal says about it."""

    def __init__(
        self,
        rejection: Rejection,
        prompt: Prompt,
        planned: Prompt,
        target: Target,
        request: HttpRequest,
        status: int | None = None,
    ) -> None:
        self.rejection = rejection
        self.prompt = prompt
        """As the caller gave it."""
        self.planned = planned
        """As it was sent."""
        self.target = target
        self.request = request
        self.status = status

    @cached_property
    def body(self) -> Any:
        """The body that was sent."""
        try:
            return msgspec.json.decode(self.request.body)
        except msgspec.DecodeError:
            return {}

    @property
    def replay(self) -> str:
        """When earlier thinking goes back here."""
        return self.target.provider.replay_rule(self.target.family or self.target.model).when

    # --- tokens ---------------------------------------------------------------------------------------------------

    @cached_property
    def tokens(self) -> list[PlacedToken]:
        """Every token that the request may hold, in order."""
        return list_placed(self.planned.messages)

    @property
    def thoughts(self) -> list[PlacedToken]:
        """The tokens of thoughts."""
        return [token for token in self.tokens if token.is_thinking]

    @cached_property
    def named(self) -> list[PlacedToken]:
        """The tokens that the refusal names: by their place in the request, by an id, or by a piece of them."""
        blocks = [block for path in self.rejection.where if (block := find_block(self.body, path)) is not None]
        strings = {text for block in blocks for text in _list_strings(block)}
        ids = self.rejection.ids
        ends = [(found[1], found[2]) for found in re.finditer(_SHORTENED, self.rejection.text)]
        return [
            placed
            for placed in self.tokens
            if _is_among(placed.token, strings) or _has_id(placed.token, ids) or _has_ends(placed.token, ends)
        ]

    def list_same_origin(self, tokens: Iterable[PlacedToken]) -> list[PlacedToken]:
        """These tokens; and if one may come from elsewhere, all that come from there."""
        chosen = list(tokens)
        elsewhere = {token.origin for token in chosen if not self.is_own(token.origin)}
        return [token for token in self.tokens if token in chosen or (token.is_thinking and token.origin in elsewhere)]

    def is_own(self, origin: Origin | None) -> bool:
        """Whether something is known to come from this very model, address and account."""
        target = self.target
        return (
            origin is not None
            and bool(origin.account and origin.endpoint)
            and origin.account == target.account
            and origin.model == target.model
            and is_same_host(origin, target)
        )

    def digest(self, tokens: Iterable[PlacedToken]) -> tuple[str, ...]:
        """The digests of these tokens, and of the ids of items that are bound to their thoughts."""
        chosen = list(tokens)
        turns = {token.message for token in chosen if isinstance(token.owner, Thought)}
        bound = [
            placed
            for placed in self.tokens
            if placed.message in turns and not placed.is_thinking and _is_plain_item(placed.token)
        ]
        keeps_ids = self.target.quirks.encrypted_reasoning and not self.planned.state.continues
        return tuple(dict.fromkeys(digest_token(placed.token) for placed in (*chosen, *([] if keeps_ids else bound))))


ListFixes: TypeAlias = Callable[[RefusedRequest], Iterator[Fix]]
"""Lists what may repair a refused request, smallest change first."""


def offer(*fixes: Fix) -> ListFixes:
    """Offer these fixes, whatever was refused."""
    return lambda _: iter(fixes)


# --- where a refusal points -------------------------------------------------------------------------------------------


def find_block(body: Any, path: tuple[str | int, ...]) -> Any:
    """The object at a path of a request; None if the path is of another request. Names after the object that it does
    not have are fields that it lacks, or its type.
    """
    node, last = body, None
    counts_from_one = "member" in path
    steps = [step for step in path if step != "member"]
    for place, step in enumerate(steps):
        if isinstance(step, int):
            at = step - 1 if counts_from_one else step
            if not isinstance(node, list) or not 0 <= at < len(node):
                return None
            node = node[at]
        elif isinstance(node, dict) and step in node:
            node = node[step]
        elif any(isinstance(rest, int) for rest in steps[place:]):
            return None
        else:
            break
        last = node if isinstance(node, dict) and isinstance(step, int) else last
    return last


def _list_strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        if node:
            yield node
    elif isinstance(node, (list, dict)):
        for each in node.values() if isinstance(node, dict) else node:
            yield from _list_strings(each)


# --- tokens -----------------------------------------------------------------------------------------------------------


def list_placed(messages: Sequence[Message]) -> list[PlacedToken]:
    """Every token of the model's turns, in order."""
    return [
        PlacedToken(number, place, token, part)
        for number, message in enumerate(messages)
        if message.role == "assistant"
        for place, part in enumerate(message.parts)
        for token in _list_tokens(part)
    ]


def _list_tokens(part: Part) -> list[Token]:
    match part:
        case Thought():
            return list(part.seals) or [part]
        case Text() | ToolCall():
            return list(part.seals)
        case ServerTool() | UnknownPart():
            return [*part.seals, part]
        case _:
            return list(part.seals)


def _is_among(token: Token, strings: set[str]) -> bool:
    if not strings:
        return False
    if isinstance(token, Thought):
        return token.text in strings
    if isinstance(token, Seal) and token.value:
        return token.value in strings
    entry = token.entry if isinstance(token, Seal) else token.json
    fields = _read_object(entry)
    marks = [fields.get(name) for name in ("id", "data", "signature", "encrypted_content", "call_id")]
    return any(isinstance(mark, str) and mark in strings for mark in marks)


def _has_id(token: Token, ids: tuple[str, ...]) -> bool:
    entry = token.entry if isinstance(token, Seal) else getattr(token, "json", None)
    return entry is not None and any(f'"{name}"' in entry for name in ids)


def _has_ends(token: Token, ends: list[tuple[str, str]]) -> bool:
    value = token.value if isinstance(token, Seal) else ""
    return any(value.startswith(start) and value.endswith(end) for start, end in ends) if value else False


def _is_plain_item(token: Token) -> bool:
    return isinstance(token, Seal) and token.kind == _ITEM and _read_object(token.entry).get("type") in _PLAIN_ITEMS


def _read_object(text: str | None) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}
