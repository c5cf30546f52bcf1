"""Rules of strict providers, which check requests and sign replies: one module for each dialect.

Here are the protocol, the lookup, and the checks that dialects with a flat list of messages share.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from hashlib import blake2b
from importlib import import_module
from typing import Any, Literal, Protocol, Self, TypeAlias, cast
from urllib.parse import parse_qsl

import msgspec

from asides import dialects
from asides.testing.stage.http_requests import Request
from asides.values.events import Event

Wire: TypeAlias = dict[str, Any]
"""A JSON object as it was sent."""
# Each module has a function `request_rules(secret, today)`. It is imported at the first request in its dialect.
_MODULES = {
    "anthropic": "asides.testing.stage.rules.anthropic",
    "bedrock": "asides.testing.stage.rules.bedrock",
    "cohere": "asides.testing.stage.rules.cohere",
    "gemini": "asides.testing.stage.rules.gemini",
    "ollama": "asides.testing.stage.rules.ollama",
    "openai_chat": "asides.testing.stage.rules.openai_chat",
    "openai_responses": "asides.testing.stage.rules.openai_responses",
}


class DetailedRefusal(str):
    """The reason of a refusal, with more than a sentence: the kind, the status, and the whole body of the error."""

    __slots__ = ("body", "kind", "status")
    body: bytes | None
    """None: the dialect writes the ordinary body around the reason."""
    status: int
    """200: the body is an error inside of a stream that was opened well."""
    kind: str | None
    """The kind of rejection, one of the slugs of `asides.ProviderError.kind`; None if it is none of them."""

    def __new__(cls, reason: str, body: bytes | None = None, *, status: int = 400, kind: str | None = None) -> Self:
        """Make a refusal with this body."""
        refusal = super().__new__(cls, reason)
        refusal.body, refusal.status, refusal.kind = body, status, kind
        return refusal


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of a provider as data: the kind of rejection, the server's words, where and when they were seen.

    Each module of rules has its rules in a tuple `RULES`, which the documentation lists.
    """

    kind: str | None
    """One of the slugs of `asides.ProviderError.kind`; None if it is none of them."""
    text: str
    """The server's words, with {names} for what changes. A brace of the words is written twice."""
    since: str
    """The date at which the words were seen or documented: "2026-09-25" or "2026-09"."""
    source: str
    status: int = 400

    def refuse(self, write: Callable[[int, str], bytes] | None = None, /, **names: object) -> DetailedRefusal:
        """Return the refusal of a request. `write` writes the body; None: the dialect's ordinary one."""
        text = self.text.format(**names)
        return DetailedRefusal(text, write and write(self.status, text), status=self.status, kind=self.kind)


class RequestRules(Protocol):
    """The rules of one dialect, as its real providers enforce them."""

    def refuse(self, request: Request) -> str | None:
        """Return why the provider refuses this request, in its words, or a DetailedRefusal; None if it accepts it."""
        ...

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Return the events of a reply with the seals that the provider puts on them."""
        ...


class RulesByDialect:
    """The rules of every dialect, for one stage. Each stage has its own secret and refuses the seals of another."""

    def __init__(self, today: date | None = None) -> None:
        """`today`: the date of the rules, for those that hold from or until a day; None: the real one."""
        self._secret = secrets.token_bytes(32)
        self._today = today or datetime.now(UTC).date()
        self._loaded: dict[str, RequestRules | None] = {}

    def find(self, dialect: str) -> RequestRules | None:
        """Return the rules of this dialect; None if its providers check nothing."""
        if dialect not in self._loaded:
            self._loaded[dialect] = self._load(dialect)
        return self._loaded[dialect]

    def _load(self, dialect: str) -> RequestRules | None:
        if (module := _MODULES.get(dialect)) is not None:
            return cast("RequestRules", import_module(module).request_rules(self._secret, self._today))
        # A registered dialect brings its own rules, if its providers have any.
        build = getattr(dialects.find_dialect(dialect), "request_rules", None)
        return None if build is None else cast("RequestRules", build(self._secret))


# --- accounts ---------------------------------------------------------------------------------------------------------

_KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
_AWS_KEY = re.compile(r"Credential=([^/,\s]+)/")


def read_credential(request: Request) -> str:
    """Return the key or token that a request carries, of a signature of AWS the id of its key; "" if there is none."""
    sent = request.headers.get("authorization", "").strip()
    if (signed := _AWS_KEY.search(sent)) is not None:
        return signed[1]
    scheme, _, token = sent.partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    in_query = dict(parse_qsl(request.query)).get("key", "")
    return next((request.headers[name].strip() for name in _KEY_HEADERS if name in request.headers), in_query)


def read_account(request: Request) -> str:
    """Return the account of a request: a fingerprint of its credential; "" if it carries none."""
    credential = read_credential(request)
    return blake2b(credential.encode(), digest_size=6).hexdigest() if credential else ""


# --- flat lists of messages -------------------------------------------------------------------------------------------


class HistoryRules:
    """Rules of a server that checks the list of messages and seals nothing."""

    def __init__(self, check: Callable[[list[Wire]], Iterator[str]]) -> None:
        self._check = check

    def refuse(self, request: Request) -> str | None:
        """Return the first problem of the messages; None if there is none."""
        body: Wire = msgspec.json.decode(request.body)
        return next(self._check(body.get("messages") or []), None)

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Return the events unchanged."""
        del request
        return events


class PairingFault(msgspec.Struct, frozen=True):
    """A tool call without a result, a result without a call, or either of them twice."""

    kind: Literal["unanswered", "unasked", "twice"]
    place: int
    """The index of the message that makes the calls or holds the result."""
    ids: tuple[str, ...]


def find_pairing_faults(messages: list[Wire]) -> Iterator[PairingFault]:
    """Yield every fault in order. Results must follow directly after the turn that made the calls, once each."""
    asked: list[str] = []
    waiting: list[str] = []
    asked_at = 0
    for place, message in enumerate(messages):
        if message.get("role") == "tool":
            name = str(message.get("tool_call_id"))
            if name in waiting:
                waiting.remove(name)
            else:
                yield PairingFault("twice" if name in asked else "unasked", place, (name,))
            continue
        if waiting:
            yield PairingFault("unanswered", asked_at, tuple(waiting))
        asked, asked_at = list_call_ids(message), place
        waiting = list(dict.fromkeys(asked))
        if len(waiting) != len(asked):
            yield PairingFault("twice", place, tuple(name for name in waiting if asked.count(name) > 1))
    if waiting:
        yield PairingFault("unanswered", asked_at, tuple(waiting))


def list_call_ids(message: Wire) -> list[str]:
    """Return the ids of the calls of an assistant message; [] for any other message."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return [str(call.get("id")) for call in calls or ()]


def find_turn_start(messages: list[Wire]) -> int:
    """Return the index of the last user message, which starts the current turn; -1 if there is none."""
    return max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
