"""`diagnose(history, model) → Diagnosis`: rules → import → plan → export → rules again. Pure.

The rulebook of the dialect says what is refused. The repaired history is what a request of ours would send, in the
format of the file: messages that the plan does not change stay verbatim.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from operator import is_not
from typing import Any

import msgspec

from asides import dialects
from asides.dialects.anthropic.rules.words import SIGNATURE_MISSING
from asides.dialects.gemini.import_contents import PLACEHOLDERS
from asides.dialects.rulebook import BrokenRule, SavedHistory, WireRequest, check_saved, find_rule_of, find_rulebook
from asides.history.doctor.findings import Diagnosis, Effect, Finding
from asides.history.doctor.merge import Node, align, keep_unknown, list_texts
from asides.history.doctor.open_file import LIST_NAMES, OpenedHistory, open_document
from asides.history.doctor.readable import make_readable
from asides.history.document import VERSION, from_document, read_message, write_message
from asides.history.plan import Decision, Plan, encode_plan, plan
from asides.history.replay import (
    BY_RULE,
    EMPTY_THOUGHT,
    NOT_REPLAYABLE,
    NOT_SAVED,
    OTHER_ACCOUNT,
    OTHER_DIALECT,
    OTHER_HOST,
)
from asides.history.turns import begins_turn, move_late_results
from asides.intake.detect import HistoryFormat, ImportFormat
from asides.intake.documents import parse_items, refuse_unwritable
from asides.intake.objects.read_objects import open_history
from asides.providers.endpoint import CHAT, RESPONSES, EndpointRequest, choose_endpoint
from asides.providers.find import find_provider, find_rule, find_target
from asides.providers.learned_rules import recall
from asides.providers.provider import Provider, Quirks, Target
from asides.providers.settle import settle
from asides.values.errors import ConfigError, UnknownModel, UnknownProvider
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice, escape_controls
from asides.values.parts import Commentary, Part, Text, ToolCall, ToolResult
from asides.values.thinking import Origin, Thinking, ThinkingSetting, Thought, read_thinking
from asides.values.tools import Tool
from asides.values.traits import list_calls

__all__ = ["Diagnosis", "Finding", "diagnose"]

BRIDGE = "Noted."
CONTINUE = "Continue."
ANOTHER = "https://another-account.invalid"
"""The address in the origin of thinking that, as the caller says, another account made."""
_MAX_ROUNDS = 6
_SHORTEST_DATE = 6
_BLOCK_DIALECTS = ("anthropic", "bedrock")
"""Dialects with the same blocks, each in its own spelling."""
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "extra_content")
# The plan does not send these, but servers accept them.
_NEVER_REFUSED = (NOT_SAVED, NOT_REPLAYABLE, OTHER_DIALECT)
_SEAL_KINDS = {
    "signature": "thinking_signature_invalid",
    "redacted": "thinking_signature_invalid",
    "reasoning_details": "thinking_signature_invalid",
    "encrypted": "encrypted_reasoning_invalid",
    "item": "item_not_persisted",
    "thought_signature": "thought_signature_invalid",
}
# Notices about defaults for values that the caller did not set.
_NO_FAULTS = frozenset({"max_tokens_chosen", "unknown_model"})
# Settings that a program which converts the format of the file translates, too.
_TRANSLATED = frozenset({"effort_mapped", "budget_chosen", "budget_mapped", "form_adjusted"})
_SYSTEM_FIELDS = ("system", "systemInstruction", "instructions")
_PREFILLS = ("prefill_unsupported", "prefill_with_thinking")
_MAX_TOKENS = ("max_completion_tokens", "max_tokens")
_OTHER_FORM = "it is in the form that the model takes"
_BY_OTHERS = "it does not go with the repair of another part"
# How thinking is shown is the caller's choice.
_SHOWN = ("display", "includeThoughts", "summary")
_PATH = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def diagnose(
    history: Any,
    model: str,
    *,
    origin: str | None = None,
    other_account: bool = False,
    format_name: str | None = None,
    thinking: ThinkingSetting = None,
    base_url: str | None = None,
    providers: Sequence[Provider] = (),
) -> Diagnosis:
    """Find what a model would refuse of a history, part by part, and repair it. Sends nothing and needs no key.

    `history` is a list of messages as OpenAI, Anthropic, Responses or Gemini have them, a whole request (then its
    settings are checked too), a saved conversation, our own messages, or objects of other libraries. `model` is
    provider:model. `origin` names the model that made the thinking, where the history does not; `other_account`: it
    was made in another account.
    `thinking` is how the next request thinks, where the history has no settings. `format_name` wins over detection.
    """
    found = _find_model(model, base_url, providers)
    named = open_history(history, is_named=format_name is not None)
    opened = open_document(named, format_name, found.provider.dialect)
    target = _choose_dialect(found, opened.format)
    made_by = _read_origin(origin, target, providers, other_account=other_account)
    return _Examination(opened, target, made_by, read_thinking(thinking)[0]).run()


# --- the model --------------------------------------------------------------------------------------------------------


def _find_model(model: str, base_url: str | None, rows: Sequence[Provider]) -> Target:
    try:
        return find_target(model, base_url=base_url, rows=rows)
    except (UnknownModel, UnknownProvider):
        raise
    except ConfigError:
        # Only the address is missing, and nothing is sent there.
        provider, _, name = model.strip().partition(":")
        row = find_provider(provider, rows)
        return Target(row, name, row.base_url, find_rule(row, name, foreign=False))


def _choose_dialect(found: Target, format_name: str) -> Target:
    """Return the target in the dialect of the file, if the provider speaks it; else in the one of a call."""
    row = found.provider.with_dialect(format_name)
    chosen = format_name
    if row is None:
        spoken = found.provider.dialect
        if found.provider.chooses:
            spoken = choose_endpoint(found, EndpointRequest()).dialect
        row, chosen = found.provider.with_dialect(spoken), spoken
    if row is None or chosen not in (CHAT, RESPONSES, row.dialect):
        return found
    rule = find_rule(row, found.family or found.model, foreign=found.foreign)
    return msgspec.structs.replace(found, provider=row, rule=rule, chosen_dialect=chosen)


def _read_origin(origin: str | None, target: Target, rows: Sequence[Provider], *, other_account: bool) -> Origin | None:
    if origin is not None:
        made_by = _find_model(origin, None, rows).origin
    elif other_account:
        made_by = target.origin
    else:
        return None
    return msgspec.structs.replace(made_by, endpoint=ANOTHER) if other_account else made_by


def _choose_writer(target: Target, format_name: str) -> Target:
    """Return the target whose rules hold for the file: the model itself; in another format, a host without quirks."""
    if format_name in (target.dialect, "asides"):
        return target
    row = dialects.plain_row(format_name)
    if format_name == "anthropic" and target.dialect in _BLOCK_DIALECTS:
        name = target.family or target.model
        return Target(row, name, row.base_url, find_rule(row, name, foreign=True))
    plain = msgspec.structs.replace(row, quirks=Quirks(), models=(), replay=())
    return Target(plain, target.model, row.base_url)


# --- rounds -----------------------------------------------------------------------------------------------------------


class _Round(msgspec.Struct):
    """A history before and after one plan."""

    items: list[Node]
    settings: Node
    broken: list[BrokenRule]
    findings: list[Finding]
    """The content of a file, and what the plan drops."""
    notices: tuple[Notice, ...] = ()
    repaired: list[Node] = []
    origins: list[int | None] = []
    """The place of each repaired message in `items`; None for a new one."""
    repaired_settings: Node = {}

    @property
    def is_sound(self) -> bool:
        return not self.broken and all(finding.effect == "ignored" for finding in self.findings)

    @property
    def told(self) -> set[int | None]:
        """The places of messages with a fault."""
        places = {_find_item(each.path) for each in self.broken}
        return places | {finding.message for finding in self.findings if finding.effect == "refused"}


class _Examination:
    """Runs rounds until one changes nothing."""

    def __init__(self, opened: OpenedHistory, target: Target, made_by: Origin | None, thinking: Thinking) -> None:
        self.opened = opened
        self.format: HistoryFormat = opened.format
        self.import_format: ImportFormat = "openai_chat" if opened.format == "asides" else opened.format
        self.is_ours = opened.format == "asides"
        self.list_name = LIST_NAMES[opened.format]
        self.made_by = made_by
        self.thinking = thinking
        self.notes: list[str] = []
        self.unread = ""
        """Why the settings could not be read."""
        self.too_long = ""
        fields = opened.fields or {}
        self.continues = fields.get("previous_response_id") is not None or fields.get("conversation") is not None
        if self.is_ours:
            document = opened.document if opened.fields is not None else {"asides": VERSION, "messages": []}
            from_document(msgspec.json.encode(document))
            target = settle(target, learned=recall(target, self._read(opened.items)))
        self.target = target
        self.writer = _choose_writer(target, opened.format)
        is_stored = self.continues or (opened.is_request and fields.get("store") is not False)
        self.case = SavedHistory(self.writer, opened.is_request, is_stored, self.continues)
        # A program that converts the format of the file sends no foreign state.
        blocks = opened.format == "anthropic" and target.dialect in _BLOCK_DIALECTS
        self.is_native = blocks or opened.format in (target.dialect, "asides")
        self.dialect = dialects.find_dialect(self.writer.dialect)

    def run(self) -> Diagnosis:
        """Examine the history and its repaired versions until nothing is refused."""
        opened = self.opened
        first = last = self._examine(opened.items, opened.fields or {})
        origins: list[int | None] = list(range(len(opened.items)))
        for _ in range(_MAX_ROUNDS):
            if last.is_sound or (last.repaired == last.items and last.repaired_settings == last.settings):
                break
            origins = [None if place is None else origins[place] for place in last.origins]
            last = self._examine(last.repaired, last.repaired_settings)
        findings = [self._report_half(path) for path in opened.halves]
        findings += [self._report_broken(each) for each in first.broken]
        findings += first.findings
        repaired = opened.document
        if any(finding.effect == "refused" for finding in findings):
            findings = self._describe_repairs(findings, first, last, origins)
            repaired = opened.write(last.items, origins, last.settings)
        for each in last.broken:
            self.notes.append(f"{each.path} is not repaired: {each.text}")
        self._add_notes(last)
        name = f"{self.target.provider.name}:{self.target.model}"
        # In the order of the file, with the settings at the end. Findings about one message stay in their order.
        findings.sort(key=lambda found: (found.message is None, found.message or 0))
        return Diagnosis(name, opened.format, tuple(findings), repaired, tuple(self.notes))

    def _examine(self, items: list[Node], settings: Node) -> _Round:
        messages = self._read(items)
        given, base = self._read_settings(settings, messages)
        is_bare = not self.opened.is_request
        broken = list(self._check(items, messages, base if is_bare else settings))
        shown = [self._report_broken(each) for each in check_saved(self.format, items, self.case)]
        prompt = given if given is not None else self._assume(messages)
        if not is_bare and messages[-1:] and any(each.kind in _PREFILLS for each in broken):
            messages = [*messages, self._ask()]
        planned, kept, findings = self._plan(prompt, messages, items, is_bare=is_bare)
        told = {(each.kind, _find_item(each.path)) for each in broken}
        findings = [each for each in findings if (each.kind, each.message) not in told]
        done = _Round(items, settings, broken, [*shown, *findings], planned.notices)
        if self.is_ours:
            done.findings += map(self._report_broken, self._find_pairs(messages, kept))
        if done.is_sound:
            done.repaired, done.origins, done.repaired_settings = items, list(range(len(items))), settings
        elif self.is_ours:
            self._write_ours(done, messages, kept)
        else:
            kept = self._drop_bound(done, messages, kept)
            self._write(done, planned, kept, base, is_bare=is_bare)
        return done

    def _find_pairs(self, messages: Sequence[Message], kept: Sequence[Message]) -> Iterator[BrokenRule]:
        """Yield the calls and results of our own messages that the plan had to complete or leave out."""
        missing, orphaned = (
            find_rule_of(self.target.dialect, kind) for kind in ("tool_result_missing", "tool_result_orphaned")
        )
        before = {id(part) for message in messages for part in message.parts}
        after = {id(part) for message in kept for part in message.parts}
        added = {part.call_id for message in kept for part in message.parts
                 if isinstance(part, ToolResult) and id(part) not in before}  # fmt: skip
        for place, message in enumerate(messages):
            for number, part in enumerate(message.parts):
                path = f"messages[{place}].parts[{number}]"
                if isinstance(part, ToolCall) and part.id in added:
                    yield missing.shown(path, f"the call of {part.name} has no result")
                elif isinstance(part, ToolResult) and id(part) not in after and part.call_id not in added:
                    yield orphaned.shown(path, "a tool result has no call before it")

    def _drop_bound(self, done: _Round, messages: Sequence[Message], kept: list[Message]) -> list[Message]:
        """Drop the thinking after a repair, for models that bind it to everything before it."""
        if not self.target.rule.prefix_bound or self.format != self.target.dialect:
            return kept
        places = self._locate(messages, done.items)
        first = min((place for place in done.told if place is not None), default=-1)
        numbers = {id(message): number for number, message in enumerate(messages)}
        found: list[Message] = []
        for message in kept:
            number = numbers.get(id(message))
            parts = tuple(part for part in message.parts if not isinstance(part, Thought))
            place = None if number is None else places.get((number, 0))
            if message.role != "assistant" or len(parts) == len(message.parts) or place is None or place[0] <= first:
                found.append(message)
                continue
            for at, part in enumerate(message.parts):
                if isinstance(part, Thought):
                    path = self._write_path(done.items[place[0]], place[0], at, part)
                    detail = "it is bound to the messages before it, which the repair changes"
                    since, source = self.target.rule.since, self.target.rule.source
                    done.findings.append(self._find("thinking_prefix_mismatch", "refused", path, detail, since, source))
            if parts:
                found.append(msgspec.structs.replace(message, parts=parts))
        return found

    # --- reading ----------------------------------------------------------------------------------------------------

    def _read(self, items: Sequence[Node]) -> list[Message]:
        """Import the messages."""
        if self.is_ours:
            return [self._read_saved(item, place) for place, item in enumerate(items)]
        readable = make_readable(items, self.format, self.case)
        try:
            with refuse_unwritable():
                messages = list(parse_items(readable, self.import_format))
        except ConfigError as problem:
            raise ConfigError(re.sub(r"^messages\.(\d+)", r"messages[\1]", str(problem))) from None
        if self.format == "anthropic" and self.opened.fields is None:
            # A bare list has no field for a system prompt.
            messages = [
                msgspec.structs.replace(message, role="user") if message.role == "system" else message
                for message in messages
            ]
        if not self.continues:
            messages = list(move_late_results(messages))
        return self._set_origins(messages, items)

    def _read_saved(self, item: Node, place: int) -> Message:
        try:
            return read_message(msgspec.json.encode(item))[0]
        except ConfigError as problem:
            raise ConfigError(f"messages[{place}]: {problem}") from None

    def _set_origins(self, messages: list[Message], items: Sequence[Node]) -> list[Message]:
        """Set the origin of thoughts and seals that have none, where the caller or the file names the model."""
        named = str((self.opened.fields or {}).get("model") or "")
        if self.made_by is None and not named and not any("model" in item for item in items):
            return messages
        places = self._locate(messages, items)
        found = list(messages)
        for number, message in enumerate(messages):
            place = places.get((number, 0))
            model = None if place is None else items[place[0]].get("model")
            origin = self.made_by or self._find_origin(model if isinstance(model, str) and model else named)
            if message.role == "assistant" and origin is not None:
                parts = tuple(_set_origin(part, origin) for part in message.parts)
                found[number] = _replace_parts(message, parts)
        return found

    def _find_origin(self, named: str) -> Origin | None:
        own = self.target.origin
        if not named or named in (self.target.model, self.target.family) or _is_alias(named, self.target.model):
            return None
        return Origin(own.provider, own.endpoint, named.rpartition(":")[2] or named)

    def _locate(self, messages: Sequence[Message], items: Sequence[Node]) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the item of each part of the model's messages, and the number of the part there."""
        turns = [number for number, message in enumerate(messages) if message.role == "assistant"]
        found: dict[tuple[int, int], tuple[int, int]] = {}
        if self.format != "openai_responses":
            places = [place for place, item in enumerate(items) if item.get("role") in ("assistant", "model")]
            for number, place in zip(turns, places, strict=False):
                found |= {(number, part): (place, part) for part in range(max(len(messages[number].parts), 1))}
            return found
        flat = [
            (place, part)
            for place, item in enumerate(items)
            for message in self._read_alone(item)
            if message.role == "assistant"
            for part in range(len(message.parts))
        ]
        parts = ((number, part) for number in turns for part in range(len(messages[number].parts)))
        return dict(zip(parts, flat, strict=False))

    def _read_alone(self, item: Node) -> tuple[Message, ...]:
        try:
            if self.is_ours:
                return (read_message(msgspec.json.encode(item))[0],)
            return parse_items([item], self.import_format)
        except ConfigError:
            pass
        try:
            return parse_items(self._make_readable(item), self.import_format)
        except ConfigError:
            return ()

    # --- settings ---------------------------------------------------------------------------------------------------

    def _read_settings(self, settings: Node, messages: Sequence[Message]) -> tuple[Prompt | None, Node]:
        """Return the settings of a request as a prompt without messages (None if there are none, or they cannot be
        read), and the request that we would write for them.
        """
        if self.is_ours:
            return None, {}
        given: Prompt | None = None
        if self.opened.is_request:
            body = {**settings, **self._encode_settings(Prompt(()), [self._ask()], only_list=True)}
            body.setdefault("model", "model")
            if self.format == "gemini":
                body.pop("model", None)
            try:
                given = self.dialect.read(msgspec.json.encode(body), "/v1beta/models/model:generateContent").prompt
                self.unread = ""
            except ConfigError as problem:
                self.unread = str(problem)
        prompt = given if given is not None else self._assume(messages)
        if not self.is_native and given is None:
            prompt = msgspec.structs.replace(prompt, thinking=Thinking())
        return given, self._encode_settings(prompt, [self._ask()])

    def _ask(self) -> Message:
        return Message("user", (Text(CONTINUE),))

    def _encode_settings(self, prompt: Prompt, messages: list[Message], *, only_list: bool = False) -> Node:
        prompt = msgspec.structs.replace(prompt, messages=tuple(messages))
        try:
            body: Node = msgspec.json.decode(self.dialect.encode(prompt, self.writer)[0].body)
        except ConfigError:
            return {}
        return {self.list_name: body[self.list_name]} if only_list else body

    def _assume(self, messages: Sequence[Message]) -> Prompt:
        """Return the settings for a history without any: those that demand the most, and the tools that were called."""
        rule, thinking = self.target.rule, self.thinking
        if not thinking.asked and rule.budget is not None and rule.begins_with_thinking:
            thinking = Thinking(budget=rule.budget[0])
        names = dict.fromkeys(call.name for call in list_calls(messages))
        return Prompt((), thinking=thinking, tools=tuple(map(Tool, names)))

    # --- rules ------------------------------------------------------------------------------------------------------

    def _check(self, items: Sequence[Node], messages: Sequence[Message], settings: Node) -> Iterator[BrokenRule]:
        """Yield every rule that the document breaks as a request."""
        rules = None if self.is_ours else find_rulebook(self.writer.dialect)
        if rules is None:
            return
        sent = list(items)
        if not self.opened.is_request and messages and messages[-1].role == "assistant":
            sent += self._encode_settings(Prompt(()), [self._ask()], only_list=True).get(self.list_name, [])
        body = {**settings, "model": self.writer.model, self.list_name: sent}
        path = f"/v1beta/models/{self.writer.model}:generateContent"
        try:
            for broken in rules.check(WireRequest(body, path=path), self.writer):
                # A file may hold more than its request. Settings are translated with the format. No repair shortens it.
                if broken.kind == "context_length":
                    self.too_long = broken.text
                elif (broken.kind != "unknown_param" or _find_item(broken.path) is not None) and (
                    self.is_native or _find_item(broken.path) is not None
                ):
                    yield broken
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            note = f"a part of the history could not be checked: {type(problem).__name__}"
            if note not in self.notes:
                self.notes.append(note)

    # --- the plan ---------------------------------------------------------------------------------------------------

    def _plan(
        self, prompt: Prompt, messages: list[Message], items: Sequence[Node], *, is_bare: bool
    ) -> tuple[Plan, list[Message], list[Finding]]:
        """Plan the messages. Returns the plan, the messages to write, and what the plan leaves out."""
        question = [self._ask()] if is_bare and messages and messages[-1].role == "assistant" else []
        planned = self._run_plan(prompt, [*messages, *question])
        findings, ignored = self._judge_all(planned.decisions, messages, items)
        hidden = _hide(messages, ignored)
        shown = [each for each in hidden.shown if each is not None]
        if ignored:
            planned = self._run_plan(prompt, [*shown, *question])
        if is_bare and any(notice.code == "thinking_paused" for notice in planned.notices):
            planned = self._run_plan(prompt, _close_turn(shown))
            question = []
        sent = tuple(each for each in planned.prompt.messages if not any(each is asked for asked in question))
        sent = sent or (self._ask(),)
        planned = msgspec.structs.replace(planned, prompt=msgspec.structs.replace(planned.prompt, messages=sent))
        kept = _restore(sent, hidden) if ignored else list(sent)
        return planned, kept, findings

    def _run_plan(self, prompt: Prompt, messages: Sequence[Message]) -> Plan:
        target = self.target
        if target.rule.interleaves == "by_beta":
            # A header allows it, and a file does not show whether it is sent.
            rule = msgspec.structs.replace(target.rule, interleaves="never")
            target = msgspec.structs.replace(target, rule=rule)
        prompt = msgspec.structs.replace(prompt, messages=tuple(messages))
        return plan(prompt, target, on_conflict="adjust")

    def _judge_all(
        self, decisions: Sequence[Decision], messages: Sequence[Message], items: Sequence[Node]
    ) -> tuple[list[Finding], set[tuple[int, int]]]:
        """Return a finding for each part that the plan leaves out, and the places of those that the file may keep."""
        dropped = [each for each in decisions if each.action == "drop" and each.message < len(messages)]
        dropped = [each for each in dropped if each.what != "message"]
        places = self._locate(messages, items) if dropped else {}
        findings: list[Finding] = []
        ignored: set[tuple[int, int]] = set()
        for decision in dropped:
            part = messages[decision.message].parts[decision.part]
            kind, effect = self._judge(decision, part)
            if effect == "ignored":
                ignored.add((decision.message, decision.part))
            if isinstance(part, Thought) and part.source == "tags":
                continue  # in a text, which must not be changed
            place = places.get((decision.message, decision.part))
            path = self.list_name if place is None else self._write_path(items[place[0]], *place, part)
            why = OTHER_ACCOUNT if decision.why == OTHER_HOST and _is_of_another_account(part) else decision.why
            verb = "does not" if effect == "ignored" else "cannot"
            detail = f"the {decision.what} {verb} go back: {why}"
            if kind == "thinking_signature_missing":
                detail = "the thought has no signature, as after a reply that broke off"
            fact = SIGNATURE_MISSING if kind == "thinking_signature_missing" else decision
            source = fact.source or self.target.provider.docs
            findings.append(self._find(kind, effect, path, detail, fact.since, source))
        return findings, ignored

    def _judge(self, decision: Decision, part: Any) -> tuple[str | None, Effect]:
        seals = [seal for seal in part.seals if seal.value or seal.entry]
        kinds = [_SEAL_KINDS[seal.kind] for seal in seals if seal.kind in _SEAL_KINDS]
        kind = kinds[0] if kinds else None
        why = decision.why
        if why in _NEVER_REFUSED or not self.is_native or decision.what == "part":
            return None, "ignored"
        if why.startswith(BY_RULE):
            if self.target.dialect in _BLOCK_DIALECTS and why.endswith("sealed"):
                return "thinking_signature_missing", "refused"
            name = (self.target.family or self.target.model).lower()
            refuses = any(fnmatchcase(name, glob) for glob in self.target.quirks.refuses_thinking)
            return ("reasoning_field_rejected", "refused") if refuses else (None, "ignored")
        if kind == "encrypted_reasoning_invalid" and (why == OTHER_ACCOUNT or _is_of_another_account(part)):
            kind = "encrypted_reasoning_wrong_account"
        if kind is None and self.format == "openai_chat":
            return None, "ignored"  # text without a seal, which any host reads
        return kind or "thinking_signature_invalid", "refused"

    def _write_path(self, item: Node, place: int, number: int, part: Part) -> str:
        path = f"{self.list_name}[{place}]"
        match self.format:
            case "openai_responses":
                return path
            case "openai_chat":
                if isinstance(part, Thought):
                    field = next((name for name in _THOUGHT_FIELDS if item.get(name) is not None), "content")
                    return f"{path}.{field}"
                calls = item.get("tool_calls") or []
                ids = [call.get("id") for call in calls if isinstance(call, dict)]
                if isinstance(part, ToolCall) and part.id in ids:
                    return f"{path}.tool_calls[{ids.index(part.id)}]"
                return path
            case "anthropic":
                return f"{path}.content[{number}]"
            case _:
                return f"{path}.parts[{number}]"

    # --- writing ----------------------------------------------------------------------------------------------------

    def _write_ours(self, done: _Round, messages: list[Message], kept: list[Message]) -> None:
        places = {id(message): place for place, message in enumerate(messages)}
        parts = {id(part): place for place, message in enumerate(messages) for part in message.parts}
        used: set[int] = set()
        for message in kept:
            place = places.get(id(message))
            if place is not None:
                done.repaired.append(done.items[place])
            else:
                place = next((parts[id(part)] for part in message.parts if id(part) in parts), None)
                done.repaired.append(msgspec.json.decode(write_message(message)))
            place = None if place in used else place
            if place is not None:
                used.add(place)
            done.origins.append(place)
        done.repaired_settings = done.settings

    def _write(self, done: _Round, planned: Plan, kept: list[Message], base: Node, *, is_bare: bool) -> None:
        if self.writer.facts.replay_as == "tags":
            kept = [_drop_fields(message) for message in kept]  # thinking never becomes text
        body = self._encode(planned, kept)
        done.repaired_settings = done.settings if is_bare else self._repair_settings(done, planned, base, body)
        settings = base if is_bare else done.repaired_settings
        broken: list[BrokenRule] = []
        for written in self._list_candidates(done, planned, kept, body):
            done.repaired = written
            broken = [each for each in self._check(written, kept, settings) if _find_item(each.path) is not None]
            if not broken:
                break
        else:
            # No form of these messages is accepted.
            places = {_find_item(each.path) for each in broken if each.kind not in _PREFILLS}
            done.repaired = [item for place, item in enumerate(done.repaired) if place not in places]
            if not places:
                done.repaired += self._encode(planned, [self._ask()])[self.list_name]
        done.repaired = done.repaired or self._encode(planned, [self._ask()])[self.list_name]
        done.origins = align(done.items, done.repaired)

    def _encode(self, planned: Plan, messages: Sequence[Message]) -> Node:
        # The last message of a saved history is not the start of an answer.
        is_saved = not self.opened.is_request and messages[-1].role == "assistant"
        sent = (*messages, self._ask()) if is_saved else tuple(messages)
        planned = msgspec.structs.replace(planned, prompt=msgspec.structs.replace(planned.prompt, messages=sent))
        request, _ = encode_plan(planned, self.writer, self.dialect, on_conflict="adjust")
        body: Node = msgspec.json.decode(request.body)
        if is_saved:
            body[self.list_name].pop()
        return body

    def _list_candidates(self, done: _Round, planned: Plan, kept: list[Message], body: Node) -> Iterator[list[Node]]:
        """Yield written messages, from those that keep the most of the given ones to those of a new request."""
        sent = planned.prompt.messages
        whole = [self._merge(done, body[self.list_name])]
        yield _keep_untold(done.items, *whole[0], done.told)
        # A result may share the message after its call with other parts.
        near = done.told | {place + 1 for place in done.told if place is not None}
        yield _keep_untold(done.items, *whole[0], near)
        if len(sent) != len(kept) or any(map(is_not, sent, kept)):
            whole.append(self._merge(done, self._encode(planned, sent)[self.list_name]))
            yield _keep_untold(done.items, *whole[1], done.told)
        fresh = self._encode(planned, [msgspec.structs.replace(message, source=None) for message in sent])
        written: list[Node] = fresh[self.list_name]
        yield _keep_untold(done.items, written, align(done.items, written), done.told)
        yield from (merged for merged, _ in whole)
        yield written

    def _merge(self, done: _Round, written: list[Node]) -> tuple[list[Node], list[int | None]]:
        """Return written messages with the unknown fields of the given ones, and the places of those."""
        items, origins = done.items, align(done.items, written)
        merged: list[Node] = []
        for item, place in zip(written, origins, strict=True):
            given = [] if place is None or item == items[place] else self._make_readable(items[place])
            merged.append(keep_unknown(given[0], item, self._read_alone) if given else item)
        return merged, origins

    def _make_readable(self, item: Node) -> list[Node]:
        return make_readable([item], self.format, self.case)

    def _repair_settings(self, done: _Round, planned: Plan, base: Node, body: Node) -> Node:
        """Give each setting that the plan changes, or that breaks a rule, the value that our request would have."""
        broken = [each for each in done.broken if _find_item(each.path) is None]
        codes = {notice.code for notice in planned.notices if notice.setting not in (None, "messages")} - _NO_FAULTS
        if not self.is_native:
            codes -= _TRANSLATED
        repaired: Node = msgspec.json.decode(msgspec.json.encode(done.settings))
        is_moved = any(base.get(name) != body.get(name) for name in _SYSTEM_FIELDS)
        if broken or codes or is_moved:
            before = {name: value for name, value in base.items() if name != self.list_name}
            after = {name: value for name, value in body.items() if name != self.list_name}
            _apply_changes(repaired, before, after)
            for each in self._check(done.items, (), repaired):
                if each.path and _find_item(each.path) is None:
                    self._repair_setting(repaired, each, _get(after, each.path))
        return repaired

    def _repair_setting(self, settings: Node, broken: BrokenRule, ours: Any) -> None:
        """Set the value of our request where a rule is broken, or leave the setting out: one field of it, if that is
        enough.
        """
        held = _get(settings, broken.path)
        if ours is not None and ours != held:
            _set(settings, broken.path, ours)
            return
        for name in held if isinstance(held, dict) and len(held) > 1 else ():
            _set(settings, broken.path, {other: value for other, value in held.items() if other != name})
            if all(each.path != broken.path for each in self._check((), (), settings)):
                return
        _set(settings, broken.path, None)

    # --- findings ---------------------------------------------------------------------------------------------------

    def _find(self, kind: str | None, effect: Effect, path: str, detail: str, since: str, source: str) -> Finding:
        numbers = [step for step in _split(path) if isinstance(step, int)]
        is_listed = path.startswith((f"{self.list_name}[", f"{self.opened.list_name}["))
        message, part = (*numbers, None, None)[:2] if is_listed else (None, None)
        return Finding(kind, effect, path, message, part, escape_controls(detail), "", since, source)

    def _report_half(self, path: str) -> Finding:
        detail = "the text has a lone surrogate (half a character), which is not JSON for a server"
        found = self._find(None, "refused", path, detail, "2025-06", "claude-code#2108; opencode#13985")
        return msgspec.structs.replace(found, repair="U+FFFD is in its place")

    def _report_broken(self, broken: BrokenRule) -> Finding:
        rule, text = broken.rule, broken.text
        if rule.kind == "budget_exceeds_max_tokens" and self.target.rule.interleaves == "by_beta":
            text += " Beside tools it is accepted with the header anthropic-beta: interleaved-thinking-2025-05-14."
        return self._find(broken.kind, "refused", broken.path or self.list_name, text, rule.since, rule.source)

    def _describe_repairs(
        self, findings: list[Finding], first: _Round, last: _Round, origins: Sequence[int | None]
    ) -> list[Finding]:
        """Add the repair to each finding, and a finding for each other message that the repair changes."""
        written = {place: last.items[number] for number, place in enumerate(origins) if place is not None}
        inserted = len(last.items) - len(written)
        described: list[Finding] = []
        seen: set[tuple[str | None, str, str]] = set()
        for finding in findings:
            if (key := (finding.kind, finding.path, finding.detail)) in seen:
                continue
            seen.add(key)
            if finding.effect == "refused" and not finding.repair:
                repair = self._describe(finding, first, last, written, is_longer=inserted > 0)
                finding = msgspec.structs.replace(finding, repair=repair)
            described.append(finding)
        told = {finding.message for finding in described if finding.effect == "refused"}
        source = next((each.source for each in described if each.effect == "refused"), self.target.provider.docs)
        others = [place for place, item in enumerate(first.items) if place not in told and written.get(place) != item]
        for place in others:
            found = self._find(None, "refused", f"{self.list_name}[{place}]", _BY_OTHERS, "", source)
            repair = _OTHER_FORM
            if place not in written:
                repair = "it is left out"
            elif _count_parts(written[place]) < _count_parts(first.items[place]):
                repair = "a part of it is left out"
            described.append(msgspec.structs.replace(found, repair=repair))
        paths = [finding.path for finding in described if finding.message is None]
        for name in dict.fromkeys((*first.settings, *last.settings)):
            is_told = any(path == name or path.startswith((f"{name}.", f"{name}[")) for path in paths)
            if name == self.list_name or is_told or first.settings.get(name) == last.settings.get(name):
                continue
            detail = next((each.detail for each in first.notices if each.setting == name and each.detail), _BY_OTHERS)
            found = self._find(None, "refused", name, detail, "", source)
            repair = self._describe(found, first, last, written, is_longer=False)
            described.append(msgspec.structs.replace(found, repair=repair))
        return described

    def _describe(
        self, finding: Finding, first: _Round, last: _Round, written: dict[int, Node], *, is_longer: bool
    ) -> str:
        if finding.message is None:
            old, new = _get(first.settings, finding.path), _get(last.settings, finding.path)
            if old == new:
                return "the messages are repaired"
            if new is None:
                return f"{finding.path} is left out"
            shown = new if isinstance(new, (str, int, float)) else "changed"
            return f"{finding.path} is {shown}" + (f", not {old}" if isinstance(old, (str, int, float)) else "")
        if finding.message not in written:
            return "it is left out"
        if finding.kind == "tool_result_missing" and is_longer:
            return "an error result follows it"
        old, new = first.items[finding.message], written[finding.message]
        if old == new:
            return "the messages around it are repaired"
        inner = finding.path.partition("]")[2].lstrip(".")
        if inner and _count(_get(new, inner)) < _count(_get(old, inner)):
            return "it is left out"
        holder = inner.rpartition("[")[0]
        if holder and _count(_get(new, holder)) < _count(_get(old, holder)):
            return "it is left out"
        return "a part of it is left out" if _count_parts(new) < _count_parts(old) else _OTHER_FORM

    def _add_notes(self, last: _Round) -> None:
        """Report what could not be checked."""
        if self.too_long:
            self.notes.append(f"the history may be too long: {self.too_long}")
        if self.unread:
            self.notes.append(f"the settings beside the history were not checked: {self.unread}")
        if self.continues:
            self.notes.append(
                "previous_response_id or conversation continues what the server has stored, and no file shows whether "
                "it still has that. If it is refused: leave the field out and send the whole history"
            )
        is_bound = self.target.rule.prefix_bound and self.format == "anthropic"
        parts = (part for message in self._read(last.items) for part in message.parts) if is_bound else ()
        if any(isinstance(part, Thought) for part in parts):
            self.notes.append(
                "this model binds its thinking to everything before it, and no file shows whether the past was "
                "changed. If it is refused: --other-account (other_account=True) leaves all thinking out"
            )


# --- messages ---------------------------------------------------------------------------------------------------------


def _replace_parts(message: Message, parts: tuple[Part, ...]) -> Message:
    """Return the message with other parts that say the same as the JSON it was read from."""
    source = message.source
    if source is not None:
        source = msgspec.structs.replace(source, digest="")
    return msgspec.structs.replace(message, parts=parts, source=source)


def _drop_fields(message: Message) -> Message:
    parts = tuple(part for part in message.parts if not isinstance(part, Thought) or part.source == "tags")
    if message.role != "assistant" or not parts or len(parts) == len(message.parts):
        return message
    return msgspec.structs.replace(message, parts=parts)


def _set_origin(part: Part, origin: Origin) -> Part:
    if isinstance(part, Thought) and part.text == EMPTY_THOUGHT:
        return part  # a stand-in, not made by a model
    changes: dict[str, Any] = {}
    if seals := part.seals:
        changes["seals"] = tuple(
            seal
            if seal.origin is not None or seal.value in PLACEHOLDERS
            else msgspec.structs.replace(seal, origin=origin)
            for seal in seals
        )
    if isinstance(part, Thought) and part.origin is None:
        changes["origin"] = origin
    return msgspec.structs.replace(part, **changes) if changes else part


def _is_of_another_account(part: Any) -> bool:
    origins = (getattr(part, "origin", None), *(seal.origin for seal in part.seals))
    return any(origin is not None and origin.endpoint == ANOTHER for origin in origins)


class _Hidden(msgspec.Struct):
    """Messages without parts and seals that are not sent but may stay in the file."""

    messages: list[Message]
    shown: list[Message | None]
    """None for a message that has nothing else."""
    parts: set[tuple[int, int]]
    sealed: dict[int, Part]
    """Parts with their seals, by the ids of those without."""


def _hide(messages: list[Message], ignored: set[tuple[int, int]]) -> _Hidden:
    hidden = _Hidden(messages, list(messages), set(), {})
    for number in {number for number, _ in ignored}:
        parts: list[Part] = []
        for place, part in enumerate(messages[number].parts):
            if (number, place) not in ignored:
                parts.append(part)
            elif isinstance(part, (Text, Commentary, ToolCall)):
                bare = msgspec.structs.replace(part, seals=())
                hidden.sealed[id(bare)] = part
                parts.append(bare)
            else:
                hidden.parts.add((number, place))
        hidden.shown[number] = msgspec.structs.replace(messages[number], parts=tuple(parts)) if parts else None
    return hidden


def _restore(kept: Sequence[Message], hidden: _Hidden) -> list[Message]:
    """Return planned messages with the hidden parts restored."""
    messages = hidden.messages
    whole = {id(message): number for number, message in enumerate(hidden.shown) if message is not None}
    owners = {id(part): number for number, message in enumerate(messages) for part in message.parts}
    restored: list[tuple[int | None, Message]] = []
    for message in kept:
        number = whole.get(id(message))
        if number is not None:
            restored.append((number, messages[number]))
            continue
        parts = tuple(hidden.sealed.get(id(part), part) for part in message.parts)
        number = next((owners[id(part)] for part in parts if id(part) in owners), None)
        if number is not None and any(number == each for each, _ in hidden.parts):
            parts = _weave(parts, messages[number], number, hidden.parts)
        if len(parts) != len(message.parts) or any(map(is_not, parts, message.parts)):
            message = msgspec.structs.replace(message, parts=parts)
        restored.append((number, message))
    for number, shown in enumerate(hidden.shown):
        if shown is None:
            places = (place for place, (other, _) in enumerate(restored) if other is not None and other > number)
            restored.insert(next(places, len(restored)), (number, messages[number]))
    return [message for _, message in restored]


def _weave(planned: Sequence[Part], message: Message, number: int, ignored: set[tuple[int, int]]) -> tuple[Part, ...]:
    parts: list[Part] = []
    rest = list(planned)
    for place, part in enumerate(message.parts):
        if (number, place) in ignored:
            parts.append(part)
            continue
        at = next((index for index, each in enumerate(rest) if each is part), None)
        if at is not None:
            parts += rest[: at + 1]
            del rest[: at + 1]
    return (*parts, *rest)


def _close_turn(messages: list[Message]) -> list[Message]:
    """End a turn of tool calls that has lost its thinking, so that the next one can think."""
    noted, go_on = Message("assistant", (Text(BRIDGE),)), Message("user", (Text(CONTINUE),))
    last = messages[-1]
    if begins_turn(last):
        return [*messages[:-1], noted, last]
    return [*messages, noted, go_on]


def _keep_untold(
    items: Sequence[Node], written: Sequence[Node], origins: Sequence[int | None], told: set[int | None]
) -> list[Node]:
    """Return the written messages, with the given ones wherever those have no fault."""
    missing = [place for place in sorted(set(range(len(items))) - set(origins)) if place not in told]
    chosen: list[tuple[int | None, Node]] = []
    for item, place in zip(written, origins, strict=True):
        texts = list_texts(item)
        if place is not None and place not in told and texts <= list_texts(items[place]):
            chosen.append((place, items[place]))
            continue
        chosen.append((place, item))
        # Exporting may join messages.
        missing = [place for place in missing if not (found := list_texts(items[place])) or not _holds(texts, found)]
    waiting = deque(missing)
    kept: list[Node] = []
    for place, item in chosen:
        while place is not None and waiting and waiting[0] < place:
            kept.append(items[waiting.popleft()])
        kept.append(item)
    return [*kept, *(items[place] for place in waiting)]


def _holds(texts: set[str], found: set[str]) -> bool:
    """Whether the texts are among these, alone or joined with others by a blank line."""
    joined = [f"\n\n{text}\n\n" for text in texts]
    return all(text in texts or any(f"\n\n{text}\n\n" in other for other in joined) for text in found)


def _is_alias(named: str, model: str) -> bool:
    """Whether two names differ only in a date or a maker before it: claude-opus-4-5 and claude-opus-4-5-20251101."""
    one, other = named.rpartition("/")[2].rpartition(":")[2], model.rpartition("/")[2]
    longer, shorter = sorted((one, other), key=len, reverse=True)
    rest = longer.removeprefix(shorter)
    date = rest.lstrip("-@")
    return one == other or (rest != longer and date.isdecimal() and len(date) >= _SHORTEST_DATE)


# --- paths ------------------------------------------------------------------------------------------------------------


def _find_item(path: str) -> int | None:
    """Return the number of the message that a path names; None for a setting."""
    found = re.match(r"(?:messages|input|contents|output)\[(\d+)\]", path)
    return None if found is None else int(found[1])


def _split(path: str) -> list[str | int]:
    return [int(number) if number else name for name, number in _PATH.findall(path)]


def _get(value: Any, path: str) -> Any:
    for step in _split(path):
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def _set(fields: Node, path: str, value: Any) -> None:
    """Set a value; None removes it, and the objects around it that are empty then."""
    *outer, last = _split(path)
    holders: list[Any] = [fields]
    for step in outer:
        inner = holders[-1].get(step) if isinstance(holders[-1], dict) else None
        if isinstance(step, int) and isinstance(holders[-1], list) and step < len(holders[-1]):
            inner = holders[-1][step]
        if inner is None:
            if value is None or not isinstance(holders[-1], dict):
                return
            inner = holders[-1][step] = {}
        holders.append(inner)
    holder = holders[-1]
    if value is not None and isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, dict):
        holder.pop(last, None)
    elif isinstance(holder, list) and isinstance(last, int) and last < len(holder) and value is None:
        del holder[last]
    if value is None and outer and not holder:
        _set(fields, path[: path.rindex("[" if isinstance(last, int) else ".")], None)


def _apply_changes(fields: Node, before: Node, after: Node) -> None:
    """Change the fields that differ between two requests of ours."""
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if old == new or (name in _SHOWN and name not in before):
            continue
        if isinstance(old, dict) and isinstance(new, dict) and isinstance(fields.get(name), dict):
            _apply_changes(fields[name], old, new)
        elif new is None:
            fields.pop(name, None)
        else:
            held = next((other for other in _MAX_TOKENS if name in _MAX_TOKENS and other in fields), name)
            fields[held] = _without_shown(new, old)


def _without_shown(new: Any, old: Any) -> Any:
    if not isinstance(new, dict):
        return new
    known = old if isinstance(old, dict) else {}
    return {name: value for name, value in new.items() if name not in _SHOWN or name in known}


def _count(value: Any) -> int:
    return len(value) if isinstance(value, (list, dict)) else int(value is not None)


def _count_parts(item: Node) -> int:
    return sum(_count(item.get(name)) for name in ("content", "parts", "tool_calls"))
