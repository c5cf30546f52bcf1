"""Claude on the stage, in Messages and in Converse: the rulebook, then the signatures that only their maker can check.

A known Claude is checked by the facts of its model, an unknown model by the rules of all. A key that contains
"older-account" plays an account from before the day on which new accounts began to have their prefix checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from urllib.parse import unquote

import msgspec

from asides.dialects.anthropic import rules as messages_rulebook
from asides.dialects.anthropic.rules import words
from asides.dialects.anthropic.rules.history import THOUGHTS
from asides.dialects.anthropic.rules.settings import BINDING_CONTROLS, ClaudeRequest
from asides.dialects.anthropic.server.write_reply import write_error
from asides.dialects.bedrock import rules as converse_rulebook
from asides.dialects.rulebook import BrokenRule, Wire, WireRequest, as_object
from asides.providers.find import find_rule
from asides.providers.provider import Target
from asides.providers.quirks import fits_glob
from asides.values.events import Event, PartArrived, ReplyEnded, ReplyStarted, StopReason, TextDelta, UsageReported
from asides.values.parts import ServerTool
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules import (
    RequestRules,
    read_account,
    read_credential,
    read_wire,
    refuse_broken,
)
from asides_stage.stage.rules.claude_seals import ClaudeSeals, Fault, Issued, Prefix, read_seal
from asides_stage.stage.rules.hosts import find_target

OLD_ACCOUNT = "older-account"
_PATH_MODEL = re.compile(r"/model/([^/]+)/|/models/([^/:]+):")
_BLOCK_PATH = re.compile(r"messages\[(\d+)\]\.content\[(\d+)\]")
_BETA_SENTENCE = (
    " That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
)
_SYSTEM_SENTENCE = " The `system` prompt differs from the one this block was created with."


def messages_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules of Messages for one stage."""
    return MessagesRules(secret, today)


def converse_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules of Converse for one stage."""
    return ConverseRules(secret, today)


class Dropped(msgspec.Struct, frozen=True):
    """A thinking block that the server silently leaves out, and why."""

    path: str
    reason: str


class MessagesRules:
    """Checks requests and signs replies. `dropped`: the blocks of the last request that the server would drop."""

    def __init__(self, secret: bytes, today: date) -> None:
        self._seals = ClaudeSeals(secret)
        self._today = today
        self.dropped: list[Dropped] = []

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        self.dropped = []
        wire = read_wire(request, self._today)
        target = find_target("anthropic", request.path, _read_model(request, wire.body))
        read = messages_rulebook.read_request(wire, target)
        for broken in messages_rulebook.check(wire, target):
            if not self._is_unasked(broken, read):
                return refuse_broken(broken, _write_body(broken, target))
        if "claude_rules" in target.facts.enforces:
            check = SealCheck(read, self._seals, request)
            for broken in check.check():
                return refuse_broken(broken, _write_body(broken, target))
            self.dropped = check.dropped
        return None

    def _is_unasked(self, broken: BrokenRule, read: ClaudeRequest) -> bool:
        """Return whether a thought is refused that the stage itself sent unasked. Only a script does so."""
        found = _BLOCK_PATH.fullmatch(broken.path) if broken.rule is words.WHILE_DISABLED else None
        if found is None:
            return False
        issued = self._seals.read(*read_seal(read.messages[int(found[1])]["content"][int(found[2])]))
        return issued is not None and not issued.asked

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Sign every thought that the script did not sign; drop its text if the request hides it."""
        wire = read_wire(request, self._today)
        target = find_target("anthropic", request.path, _read_model(request, wire.body))
        read = messages_rulebook.read_request(wire, target)
        if (wire.body.get("compaction") or {}).get("type") == "summarize":
            return self._summarise(events, target.model, read_account(request))
        return self._sign(events, read, request, hides=False)

    def _sign(self, events: list[Event], read: ClaudeRequest, request: Request, *, hides: bool) -> list[Event]:
        return self._seals.seal(
            events,
            model=read.target.model,
            account=read_account(request),
            prefix=self._seals.read_prefix(read.body.get("system") or [], read.body.get("tools"), read.messages),
            hidden=hides or read.hides_thinking,
            kind="redacted" if hides else "signature",
            asked=read.thinks,
        )

    def _summarise(self, events: list[Event], model: str, account: str) -> list[Event]:
        """Return a reply that is only a signed summary, whose text is that of the scene."""
        text = "".join(event.text for event in events if isinstance(event, TextDelta)) or "Nothing was said."
        block = {
            "type": "compaction",
            "content": text,
            "signature": self._seals.sign_summary(model, account, text),
        }
        kept = [event for event in events if isinstance(event, (ReplyStarted, UsageReported))]
        part = PartArrived(ServerTool("compaction", json=msgspec.json.encode(block).decode()), 0)
        return [*kept, part, ReplyEnded(StopReason("pause", "compaction"))]


class ConverseRules(MessagesRules):
    """Also signs and checks the hidden thinking of models other than Claude."""

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real servers' words where known."""
        self.dropped = []
        wire, target, read = self._read(request)
        for broken in converse_rulebook.check(wire, target):
            if not self._is_unasked(broken, read):
                return refuse_broken(broken)
        if "claude_rules" in target.facts.enforces or target.rule.kind == "hidden":
            check = SealCheck(read, self._seals, request)
            for broken in check.check():
                return refuse_broken(converse_rulebook.wrap_words(broken))
            self.dropped = check.dropped
        return None

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the seals of the models that have any: Claude's signatures, and the hidden thinking of others."""
        _, target, read = self._read(request)
        hides = target.rule.kind == "hidden"
        signs = "claude_rules" in target.facts.enforces and target.rule.thinking != "never"
        return self._sign(events, read, request, hides=hides) if hides or signs else events

    def _read(self, request: Request) -> tuple[WireRequest, Target, ClaudeRequest]:
        wire = read_wire(request, self._today)
        target = find_target("bedrock", request.path, _read_model(request, {}))
        return wire, target, converse_rulebook.read_as_messages(wire, target)


def _read_model(request: Request, body: Wire) -> str:
    """Return the model of a request: the clouds have it in the path."""
    found = _PATH_MODEL.search(request.path)
    return unquote(found[1] or found[2]) if found and "model" not in body else str(body.get("model", ""))


def _write_body(broken: BrokenRule, target: Target) -> bytes | None:
    """Return the body of an error; None: the dialect's ordinary one."""
    if broken.rule.code is not None:
        return write_error(broken.rule.status, broken.text, details={"error_code": broken.rule.code})
    if "numbered_errors" in target.facts.enforces:
        error = {"type": "bad_request_error", "message": broken.text, "http_code": str(broken.rule.status)}
        return msgspec.json.encode({"type": "error", "error": error})
    return None


# --- signatures -------------------------------------------------------------------------------------------------------


class SealCheck:
    """Checks the signatures of one request. `dropped`: the blocks that the server silently leaves out."""

    def __init__(self, read: ClaudeRequest, seals: ClaudeSeals, request: Request) -> None:
        self._read = read
        self._seals = seals
        self._account = read_account(request)
        self._is_old_account = OLD_ACCOUNT in read_credential(request)
        self._prefix: Prefix = seals.read_prefix(read.body.get("system") or [], read.body.get("tools"), read.messages)
        self.dropped: list[Dropped] = []

    @property
    def _checks_prefix(self) -> bool:
        """Whether thinking holds only after the conversation that it was made in."""
        rule = self._read.rule
        if rule is None or not rule.prefix_bound:
            return False
        since = rule.prefix_bound_since
        return not since or (not self._is_old_account and self._read.today >= date.fromisoformat(since))

    @property
    def _drops_unbound(self) -> bool:
        """Whether the request asks to drop thinking of another conversation, instead of refusing it."""
        binding = as_object(self._read.thinking.get("block_binding"))
        return binding.get("prefix_mismatch_behavior") == "drop_block" and BINDING_CONTROLS in self._read.betas

    def check(self) -> Iterator[BrokenRule]:
        """Yield every rule that the seals of a request break."""
        messages = self._read.messages
        answers = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
        for place, message in enumerate(messages):
            earlier: list[str] = []
            drops_rest = False
            for number, block in enumerate(message["content"]):
                if block.get("type") == "compaction":
                    yield from self._check_summary(block, place, number)
                if block.get("type") not in THOUGHTS:
                    drops_rest = False
                    continue
                if drops_rest:
                    self._drop(place, number, "prefix_binding_mismatch")
                else:
                    dropped = len(self.dropped)
                    yield from self._check_thought(block, earlier, place, number, is_latest=place in answers[-1:])
                    drops_rest = any(drop.reason.startswith("prefix") for drop in self.dropped[dropped:])
                earlier.append(read_seal(block)[1])

    def _drop(self, place: int, number: int, reason: str) -> None:
        self.dropped.append(Dropped(f"messages.{place}.content.{number}", reason))

    def _check_thought(
        self, block: Wire, earlier: list[str], place: int, number: int, *, is_latest: bool
    ) -> Iterator[BrokenRule]:
        rule = self._read.rule
        kind, value = read_seal(block)
        issued = self._seals.read(kind, value)
        path = f"messages[{place}].content[{number}]"
        field = "data" if kind == "redacted" else "signature"
        names = {"place": f"messages.{place}.content.{number}", "field": field, "type": block["type"]}
        if issued is None:
            yield words.SIGNATURE_INVALID.broken(path, **names)
            return
        faults = self._seals.find_faults(
            issued,
            text="" if kind == "redacted" else str(block.get("thinking", "")),
            earlier=earlier,
            model=self._read.target.model,
            account=self._account,
            prefix=self._prefix,
            place=place,
        )
        if (reason := self._find_silent_drop(issued, faults)) is not None:
            self._drop(place, number, reason)
            return
        if "model" in faults and not self._can_read(issued.model):
            yield words.SIGNATURE_INVALID.broken(path, **names)
        checks_text = not (self._is_old_account and rule is not None and rule.prefix_bound)
        if "text" in faults and checks_text:
            yield (words.BLOCK_MODIFIED if is_latest else words.SIGNATURE_INVALID).broken(path, **names)
        if is_latest and "sequence" in faults:
            yield words.BLOCK_MODIFIED.broken(path, **names)
        if self._checks_prefix and faults & {"system", "tools", "messages"}:
            if self._drops_unbound:
                self._drop(place, number, "prefix_binding_mismatch")
                return
            beta = "" if BINDING_CONTROLS in self._read.betas else _BETA_SENTENCE
            cause = _SYSTEM_SENTENCE if "system" in faults else ""
            yield words.PREFIX_MISMATCH.broken(path, **names, beta=beta, cause=cause)

    def _find_silent_drop(self, issued: Issued, faults: set[Fault]) -> str | None:
        """Return why the server silently leaves a block out; None if it does not."""
        made_by, rule = find_rule(self._read.target.provider, issued.model, foreign=True), self._read.rule
        if "account" in faults and made_by.account_bound:
            return "organization_binding_mismatch"
        if "model" in faults and rule is not None and rule.prefix_bound and not self._can_read(issued.model):
            return "model_binding_mismatch"
        return None

    def _can_read(self, model: str) -> bool:
        """Return whether the requested model reads the thinking of this one: itself, under any name, and a few."""
        target = self._read.target
        made_by, asked = _name_claude(model), _name_claude(target.model)
        if made_by is None or asked is None:
            return model == target.model
        return made_by == asked or any(fits_glob(model.lower(), glob) for glob in target.rule.reads)

    def _check_summary(self, block: Wire, place: int, number: int) -> Iterator[BrokenRule]:
        signature, content = block.get("signature"), block.get("content")
        if signature is None or content is None:
            return
        issued = self._seals.read("compaction", signature)
        if issued is None or not self._seals.has_text(issued, str(content)):
            path = f"messages[{place}].content[{number}]"
            yield words.COMPACTION_MISMATCH.broken(path, place=f"messages.{place}.content.{number}")


_FAMILY_FIRST = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:[-.](\d))?(?!\d)")
_NUMBER_FIRST = re.compile(r"claude-(\d)(?:[-.](\d))?-(opus|sonnet|haiku)")


def _name_claude(model: str) -> str | None:
    """Return a Claude's family and version, "opus 4.5", under whatever name a host has it; None for any other model."""
    lowered = model.lower()
    if (found := _FAMILY_FIRST.search(lowered)) is not None:
        family, major, minor = found.groups()
    elif (found := _NUMBER_FIRST.search(lowered)) is not None:
        major, minor, family = found.groups()
    else:
        return "mythos preview" if "claude-mythos" in lowered else None
    return f"{family} {major}.{minor}" if minor and minor != "0" else f"{family} {major}"
