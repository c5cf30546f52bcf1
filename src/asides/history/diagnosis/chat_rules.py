"""Rules about the thinking of chat completions: the field in which a host takes it, and the entries of its details."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from asides.dialects.openai_chat.encode_messages import encode_messages
from asides.history.diagnosis.draft import Draft, Node, Turn
from asides.history.diagnosis.findings import Fact
from asides.history.diagnosis.shape_chat import DETAILS, THOUGHT_FIELDS
from asides.providers.provider import ReplayRule, Target
from asides.values.messages import Message, Prompt
from asides.values.thinking import Thinking, Thought

# What a host checks of an entry, if it gave one.
_SEALED_FIELDS = ("signature", "data", "id", "format", "text", "summary")
# openrouter.ai docs reasoning-tokens, 2026-06-25: in this format text is a signed block of the upstream.
_SIGNED_FORMATS = ("anthropic-claude-v1",)
_TEXT_FIELDS = {"reasoning.text": "text", "reasoning.summary": "summary", "reasoning.encrypted": "data"}


def fix_details(draft: Draft, turns: Sequence[Turn]) -> None:
    """Repair the entries of `reasoning_details`: fragments of a stream are joined, and the order is that of their
    numbers. Entries that were changed so that nobody can know how they were are left out.
    """
    usual = _find_usual_fields(turns)
    for turn in turns:
        message = turn.nodes[0]
        details = message.get(DETAILS)
        if turn.role != "assistant":
            continue
        if not details and usual and isinstance(message.get("reasoning"), str):
            detail = "the thinking has lost its details, which other messages have"
            draft.report("thinking_block_modified", message, detail, "it is left out", field="reasoning")
            _drop_details(draft, message)
        if not details:
            continue
        if not _is_list_of_objects(details):
            draft.report("thinking_block_modified", message, "it is a list of objects", "it is left out", field=DETAILS)
            _drop_details(draft, message)
            continue
        joined = _join_fragments(details)
        if len(joined) != len(details):
            detail = "fragments of a stream, or one entry twice"
            draft.report("thinking_block_modified", message, detail, "each entry is there once", field=DETAILS)
        ordered = sorted(joined, key=_read_index)
        if [id(entry) for entry in ordered] != [id(entry) for entry in joined]:
            detail = "the entries are not in the order of their index"
            draft.report("thinking_block_modified", message, detail, "they are in their order", field=DETAILS)
        if fault := _find_fault(ordered, usual) or _find_lost_text(message, ordered):
            draft.report("thinking_block_modified", message, fault, "the details are left out", field=DETAILS)
            _drop_details(draft, message)
        elif ordered != details:
            message[DETAILS] = ordered
            draft.touch(message)


def _drop_details(draft: Draft, message: Node) -> None:
    # The plain text beside them is the same thinking, and not taken back without them.
    for name in (DETAILS, "reasoning"):
        message.pop(name, None)
    draft.touch(message)


def _read_index(entry: Node) -> int:
    index = entry.get("index")
    return index if isinstance(index, int) else 0


def _join_fragments(entries: list[Node]) -> list[Node]:
    """Join neighbours that are pieces of one entry: the same type, index and format, and at most one seal."""
    joined: list[Node] = []
    for entry in entries:
        last = joined[-1] if joined else None
        if any(entry == other for other in joined):
            continue
        if last is None or not _is_fragment(last, entry):
            joined.append(entry)
            continue
        name = _TEXT_FIELDS.get(str(entry.get("type")), "text")
        filled = {key: value for key, value in entry.items() if value is not None}
        text = f"{last.get(name) or ''}{entry.get(name) or ''}"
        joined[-1] = {**last, **filled, name: text}
    return joined


def _is_fragment(last: Node, entry: Node) -> bool:
    if not isinstance(entry.get("index"), int) or entry.get("type") not in ("reasoning.text", "reasoning.summary"):
        return False
    for name in ("type", "index", "id", "format"):
        here, there = entry.get(name), last.get(name)
        if here != there and None not in (here, there):
            return False
    return not last.get("signature")


def _find_lost_text(message: Node, entries: list[Node]) -> str:
    """Whether the plain text beside the details shows that their text is lost."""
    texts = [entry.get(name) for entry in entries for name in ("text", "summary") if name in entry]
    has_text = any(isinstance(text, str) and text.strip() for text in texts)
    plain = message.get("reasoning")
    shows = isinstance(plain, str) and bool(plain.strip()) and any(entry.get("signature") for entry in entries)
    return "the text of the entries is lost" if shows and not has_text else ""


def _find_usual_fields(turns: Sequence[Turn]) -> dict[str, set[str]]:
    """For each type of entry that most messages of this history have: the fields that most of its entries have.

    Empty if no entry has a seal.
    """
    lists: list[list[Node]] = []
    for turn in turns:
        details = turn.nodes[0].get(DETAILS) if turn.role == "assistant" else None
        if details and _is_list_of_objects(details):
            lists.append(_join_fragments(details))
    usual: dict[str, set[str]] = {}
    for kind in {str(entry.get("type")) for entries in lists for entry in entries}:
        found = [[entry for entry in entries if entry.get("type") == kind] for entries in lists]
        if 2 * sum(map(bool, found)) <= len(lists):
            continue
        same = [entry for entries in found for entry in entries]
        names = {name for entry in same for name in entry}
        usual[kind] = {name for name in names if 2 * sum(_is_filled(entry, name) for entry in same) > len(same)}
    sealed = any(not fields.isdisjoint(("signature", "data")) for fields in usual.values())
    return usual if sealed else {}


def _is_filled(entry: Node, name: str) -> bool:
    value = entry.get(name)
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _is_list_of_objects(details: Any) -> bool:
    return isinstance(details, list) and all(isinstance(entry, dict) for entry in details)


def _find_fault(entries: list[Node], usual: dict[str, set[str]]) -> str:
    for entry in entries:
        kind = entry.get("type")
        expected = usual.get(str(kind), set())
        if lost := [name for name in _SEALED_FIELDS if name in expected and not _is_filled(entry, name)]:
            return f"an entry has lost its {lost[0]}"
        if not isinstance(kind, str):
            return "an entry has no type"
        if kind == "reasoning.encrypted" and not entry.get("data"):
            return "an encrypted entry has no data"
        if kind == "reasoning.text" and entry.get("text") is None and not entry.get("signature"):
            return "an entry has neither text nor a signature"
        if kind == "reasoning.text" and entry.get("format") in _SIGNED_FORMATS and not entry.get("signature"):
            return "an entry has no signature, as after a reply that broke off"
    if lost_types := usual.keys() - {str(entry.get("type")) for entry in entries}:
        return f"an entry of the type {min(lost_types)} is missing, which other messages have"
    numbers = [entry["index"] for entry in entries if isinstance(entry.get("index"), int)]
    if len(numbers) == len(entries) and sorted(set(numbers)) != list(range(len(set(numbers)))):
        return "an entry is missing"
    return ""


def fix_messages(draft: Draft, turns: Sequence[Turn], target: Target) -> None:
    """Leave out what the host refuses in a message of the model: fields that it does not know, blank content."""
    quirks = target.quirks
    fact = Fact(target.provider.since, target.provider.docs)
    for turn in turns:
        message = turn.nodes[0]
        if turn.role != "assistant":
            continue
        known = (*quirks.message_fields, *THOUGHT_FIELDS)
        for name in [name for name in message if quirks.message_fields and name not in known]:
            if message[name]:
                continue  # it may be somebody's words
            detail = f"this host does not take the field {name}"
            draft.report("unknown_param", message, detail, "it is left out", field=name, fact=fact)
            del message[name]
            draft.touch(message)
        if not quirks.blank_content and message.get("tool_calls") and "content" in message:
            content = message["content"]
            if content is None or content == [] or (isinstance(content, str) and not content.strip()):
                detail = "a message with tool calls has no blank content beside them here"
                draft.report("empty_content", message, detail, "it is left out", field="content", fact=fact)
                del message["content"]
                draft.touch(message)


# --- fields -----------------------------------------------------------------------------------------------------------


class FieldRules:
    """In which fields a host takes thinking back, and where it demands it."""

    def __init__(self, draft: Draft, target: Target, thinking: Thinking) -> None:
        self.draft = draft
        self.target = target
        self.thinking = thinking
        self.rule: ReplayRule = target.provider.replay_rule(target.family or target.model)
        self.fact = Fact(self.rule.since, self.rule.source)

    def fix(self, turn: Turn, planned: Message) -> None:
        """Repair one message of the model. `planned` is what goes back of it."""
        message, draft = turn.nodes[0], self.draft
        held = [name for name in THOUGHT_FIELDS if message.get(name) is not None]
        wire = self._encode(planned)
        wanted = {name: wire[name] for name in THOUGHT_FIELDS if name in wire}
        wrong = [name for name in held if name not in self._list_accepted()]
        if wrong:
            self._replace(message, wrong, wanted, planned, wire)
        missing = [name for name in wanted if not _has_text(message, name)]
        needs = self.target.quirks.empty_thinking and bool(wire.get("tool_calls"))
        if needs and missing and not any(_has_text(message, name) for name in self._list_accepted()):
            detail = f"a turn with tool calls must carry its {missing[0]}, and has none"
            repair = "the field is there, with the thinking" if wanted[missing[0]] else "the field is there, and empty"
            draft.report("reasoning_content_required", message, detail, repair, fact=self.fact)
            message[missing[0]] = wanted[missing[0]]
            draft.touch(message)

    def _encode(self, planned: Message) -> Node:
        wires = encode_messages(Prompt((planned,), thinking=self.thinking), self.target, []) if planned.parts else []
        wire: Any = next((wire for wire in wires if wire.get("role") == "assistant"), {})
        plain: Node = msgspec.json.decode(msgspec.json.encode(wire))
        return plain

    def _list_accepted(self) -> tuple[str, ...]:
        """The fields that the host takes."""
        own = self.target.quirks.replay_field
        match self.target.facts.replay_as:
            case "details":
                return THOUGHT_FIELDS
            case "field":
                return (own,) if own else (*self.target.facts.thinking_in, *THOUGHT_FIELDS[:2])
            case "content_list" | "tags":
                return ()

    def _replace(self, message: Node, wrong: list[str], wanted: Node, planned: Message, wire: Node) -> None:
        """Put the thinking of fields that the host refuses where it takes it, or leave it out."""
        draft = self.draft
        detail = f"this host does not take the field {' or '.join(wrong)}"
        fact = Fact(self.target.provider.since, self.target.provider.docs)
        thoughts = [part for part in planned.parts if isinstance(part, Thought) and part.text]
        as_list = self.target.facts.replay_as == "content_list" and bool(thoughts)
        renamed = {name: value for name, value in wanted.items() if name not in message and value}
        repair = "it is left out"
        if as_list:
            repair = "it is a part of the content, as thinking"
        elif renamed:
            repair = f"it is in the field {', '.join(renamed)}"
        draft.report("reasoning_field_rejected", message, detail, repair, field=wrong[0], fact=fact)
        for name in wrong:
            del message[name]
        if as_list:
            message["content"] = wire.get("content")
        message.update(renamed)
        draft.touch(message)


def _has_text(message: Node, name: str) -> bool:
    value = message.get(name)
    return isinstance(value, (str, list))
