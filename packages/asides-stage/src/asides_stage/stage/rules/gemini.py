"""Signatures of Gemini on the stage: put on replies, and checked when they come back.

A reply carries a signature on its first call, or after its text if it has no call. One that comes back must have been
made for this model, this project (or key) and this call, or be the documented placeholder. That of a text covers only
model and project: clients join, cut and move texts.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from hashlib import blake2b
from itertools import chain

import msgspec

from asides.dialects.gemini import rules
from asides.dialects.gemini.decode import SIGNATURE
from asides.dialects.rulebook import BrokenRule, Wire, WireRequest, as_objects
from asides.providers.provider import Target
from asides.values.events import Event, ReplyEnded, TextDelta, ThoughtSealed, ToolCallDelta, UsageReported, Warned
from asides.values.fold import fold
from asides.values.parts import Part, Text, ToolCall
from asides.values.thinking import Seal
from asides.wire.lenient import read_base64, unify_base64
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules import RequestRules, read_account, read_wire, refuse_broken
from asides_stage.stage.rules.hosts import find_target

_PATH = re.compile(r"/models/([^/:]+):")
_PROJECT = re.compile(r"/projects/([^/]+)/")
_MAC_SIZE = 16
_MAX_SCRIPTED = 10_000


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    return _GeminiRules(secret, today)


class _GeminiRules:
    def __init__(self, secret: bytes, today: date) -> None:
        self._secret = secret
        self._today = today
        self._scripted_seals: dict[tuple[str, str, str, str], None] = {}
        """Signatures from the script itself, with their model, project and part. The oldest are forgotten."""

    # --- signing ------------------------------------------------------------------------------------------------------

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the signature of a reply, unless the script signed it."""
        model, project = _read_model(request), _read_project(request)
        if not any(isinstance(event, ThoughtSealed) for event in events):
            return self._add_signature(events, model, project)
        for part in fold(events).parts:
            for value in [seal.value for seal in _list_seals(part)]:
                while len(self._scripted_seals) >= _MAX_SCRIPTED:
                    del self._scripted_seals[next(iter(self._scripted_seals))]
                self._scripted_seals[unify_base64(value), model, project, _describe(part)] = None
        return events

    def _add_signature(self, events: list[Event], model: str, project: str) -> list[Event]:
        called = next((event.block for event in events if isinstance(event, ToolCallDelta)), None)
        if called is None:
            block = 1 + max((getattr(event, "block", -1) for event in events), default=-1)
            added: list[Event] = [TextDelta("", block)]
            part: Part = Text("")
        else:
            block, added = called, []
            part = next(iter(fold(events).tool_calls))
        signature = self._sign(model, project, _describe(part))
        added.append(ThoughtSealed(Seal(SIGNATURE, signature), block, "hidden", "block"))
        closing = (UsageReported, Warned, ReplyEnded)
        end = 1 + max((place for place, event in enumerate(events) if not isinstance(event, closing)), default=-1)
        return [*events[:end], *added, *events[end:]]

    def _sign(self, model: str, project: str, part: str) -> str:
        digest = blake2b(part.encode(), key=self._secret, digest_size=9).hexdigest()
        return self._write(msgspec.json.encode([model, project, digest]))

    def _write(self, content: bytes) -> str:
        return b64encode(blake2b(content, key=self._secret, digest_size=_MAC_SIZE).digest() + content).decode()

    # --- refusing -----------------------------------------------------------------------------------------------------

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        wire = read_wire(request, self._today)
        target = find_target("gemini", request.path, _read_model(request))
        broken = next(chain(rules.check(wire, target), self._check_signatures(wire, target, request)), None)
        return None if broken is None else refuse_broken(broken)

    def _check_signatures(self, wire: WireRequest, target: Target, request: Request) -> Iterator[BrokenRule]:
        """Check that each signature was made for this model, project and call, or is a documented placeholder."""
        project = _read_project(request)
        for place, content in enumerate(as_objects(wire.body.get("contents"))):
            for number, part in enumerate(rules.list_parts(content)):
                signature = rules.read_signature(part)
                data = read_base64(signature) if signature is not None else None
                if signature in rules.PLACEHOLDERS or data is None or data.decode("latin-1") in rules.PLACEHOLDERS:
                    continue
                known = (unify_base64(str(signature)), target.model, project, _describe_wire(part))
                if known in self._scripted_seals:
                    continue
                path = f"contents[{place}].parts[{number}].thoughtSignature"
                if not hmac.compare_digest(self._write(data[_MAC_SIZE:]).encode(), b64encode(data)):
                    yield rules.CORRUPTED.broken(path)
                elif unify_base64(self._sign(*known[1:])) != unify_base64(b64encode(data).decode()):
                    is_cloud = "cloud_words" in target.facts.enforces
                    yield (rules.INVALID_VERTEX if is_cloud else rules.INVALID).broken(path)


def _read_model(request: Request) -> str:
    found = _PATH.search(request.path)
    return found[1] if found else ""


def _read_project(request: Request) -> str:
    """Return the project in the address; without one, the account of the key."""
    found = _PROJECT.search(request.path)
    return found[1] if found else read_account(request)


# --- parts ------------------------------------------------------------------------------------------------------------


def _list_seals(part: Part) -> tuple[Seal, ...]:
    return tuple(seal for seal in part.seals if seal.value)


def _describe(part: Part) -> str:
    """Return what a signature covers besides model and project: a call and its arguments, of anything else nothing."""
    return _describe_call(part.name, part.arguments) if isinstance(part, ToolCall) else ""


def _describe_wire(part: Wire) -> str:
    call = rules.get_field(part, "functionCall")
    return "" if call is None else _describe_call(call.get("name"), call.get("args") or {})


def _describe_call(name: object, arguments: object) -> str:
    return f"{name} {msgspec.json.encode(arguments, order='sorted').decode()}"
