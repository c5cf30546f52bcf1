"""Rules of strict providers, which check requests and sign replies: one module for each dialect.

Here are the protocol, the lookup, and the accounts of requests.
"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, date, datetime
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, Self, TypeAlias, cast
from urllib.parse import parse_qsl

import msgspec

from asides import dialects
from asides.dialects.rulebook import BrokenRule, WireRequest, find_rulebook
from asides.values.events import Event
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules.hosts import find_target

Wire: TypeAlias = dict[str, Any]
"""A JSON object as it was sent."""
# A dialect whose hosts seal or store has a module of its name here, with a function `request_rules(secret, today)`. It
# is imported at the first request in its dialect. Two dialects share one.
_SHARED_MODULES = {
    "anthropic": "asides_stage.stage.rules.claude:messages_rules",
    "bedrock": "asides_stage.stage.rules.claude:converse_rules",
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


def read_wire(request: Request, today: date) -> WireRequest:
    """Return a request as a rulebook sees it. Raises ValueError if its body is not JSON."""
    return WireRequest(msgspec.json.decode(request.body, type=dict[str, Any]), request.headers, request.path, today)


def refuse_broken(broken: BrokenRule, body: bytes | None = None) -> DetailedRefusal:
    """Return the refusal of a request that breaks a rule. `body`: the error; None: the dialect's ordinary one."""
    return DetailedRefusal(broken.text, body, status=broken.rule.status, kind=broken.kind)


class RequestRules(Protocol):
    """The rules of one dialect, as its real providers enforce them."""

    def refuse(self, request: Request) -> str | None:
        """Return why the provider refuses this request, in its words, or a DetailedRefusal; None if it accepts it."""
        ...

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Return the events of a reply with the seals that the provider puts on them."""
        ...


class RulebookRules:
    """The rulebook of a dialect whose hosts seal nothing."""

    def __init__(self, dialect: str, today: date) -> None:
        self._dialect = dialect
        self._today = today

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that the request breaks; None if there is none."""
        wire, rules = read_wire(request, self._today), find_rulebook(self._dialect)
        target = find_target(self._dialect, wire.path, str(wire.body.get("model")))
        broken = None if rules is None else next(rules.check(wire, target), None)
        return None if broken is None else refuse_broken(broken)

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Return the events unchanged."""
        del request
        return events


class RulesByDialect:
    """The rules of every dialect, for one stage. Each stage refuses the seals of a stage with another secret."""

    def __init__(self, today: date | None = None, secret: bytes | None = None) -> None:
        """`today`: the date of the rules, for those that hold from or until a day; None: the real one. `secret`: signs
        the seals; None: a random one."""
        self._secret = secrets.token_bytes(32) if secret is None else secret
        self._today = today or datetime.now(UTC).date()
        self._loaded: dict[str, RequestRules | None] = {}

    def find(self, dialect: str) -> RequestRules | None:
        """Return the rules of this dialect; None if its providers check nothing."""
        if dialect not in self._loaded:
            self._loaded[dialect] = self._load(dialect)
        return self._loaded[dialect]

    def _load(self, dialect: str) -> RequestRules | None:
        module = _SHARED_MODULES.get(dialect, f"{__name__}.{dialect}")
        where, _, name = module.partition(":")
        if dialect in dialects.DIALECTS and find_spec(where) is not None:
            build_rules = getattr(import_module(where), name or "request_rules")
            return cast("RequestRules", build_rules(self._secret, self._today))
        if find_rulebook(dialect) is not None:
            return RulebookRules(dialect, self._today)
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
