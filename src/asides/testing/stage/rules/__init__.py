"""What a strict provider checks before it answers, and adds to what it says: one set of rules for each such dialect.

Not here: whether a request can be read at all (dialects), and what is answered (script).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Protocol, cast

import msgspec

from asides import dialects
from asides.testing.stage.http_requests import Request
from asides.values.events import Event

# The module of each dialect's rules, which has a class `Rules`; loaded when first used.
_RULES = {
    "anthropic": "asides.testing.stage.rules.anthropic",
    "bedrock": "asides.testing.stage.rules.bedrock",
    "cohere": "asides.testing.stage.rules.cohere",
    "gemini": "asides.testing.stage.rules.gemini",
    "ollama": "asides.testing.stage.rules.ollama",
    "openai_chat": "asides.testing.stage.rules.openai_chat",
    "openai_responses": "asides.testing.stage.rules.openai_responses",
}


class RequestRules(Protocol):
    """The rules of one dialect, as its real providers enforce them."""

    def refuse(self, request: Request) -> str | None:
        """Why this request is refused, in the provider's words; None when it is not."""
        ...

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """The events of a reply with the seals that the provider would put on its thoughts."""
        ...


class SealsNothing:
    """Rules of a server that hands out nothing it would have to know again: what it refuses is all there is to them."""

    def __init__(self, secret: bytes) -> None:
        del secret

    def problems(self, messages: list[dict[str, Any]]) -> Iterator[str]:
        """Whatever is wrong with a history, in the server's words as far as they are known."""
        raise NotImplementedError

    def refuse(self, request: Request) -> str | None:
        """Why this request is refused: the first problem; None when there is none."""
        body: dict[str, Any] = msgspec.json.decode(request.body)
        return next(self.problems(body.get("messages") or []), None)

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """As they are."""
        del request
        return events


class RulesByDialect:
    """The rules of every dialect, for one stage. Its secret is its own, so that no other stage's seals are taken."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, RequestRules | None] = {}

    def of(self, dialect: str) -> RequestRules | None:
        """The rules of this dialect; None where its providers check nothing."""
        if dialect not in self._known:
            self._known[dialect] = self._load(dialect)
        return self._known[dialect]

    def _load(self, dialect: str) -> RequestRules | None:
        if (module := _RULES.get(dialect)) is not None:
            return cast("HouseRules", import_module(module).Rules(self._secret))
        # A dialect that is not ours brings its rules itself, where its providers have any.
        own = getattr(dialects.find_dialect(dialect), "house_rules", None)
        return None if own is None else cast("HouseRules", own(self._secret))
