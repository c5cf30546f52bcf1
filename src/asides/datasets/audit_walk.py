"""Finds thinking inside a JSON document: decides which texts are answers, and checks each of them.

Facts about the formats, read on 2026-11-19:
- Claude Code (~/.claude/projects/*.jsonl): one record a line, `type` and a `message` as in Anthropic's Messages API.
- Codex (rollout-*.jsonl): `timestamp`, `type`, `payload`; a payload is an item of the Responses API, or an event such
  as `agent_message` and `agent_reasoning` (openai/codex, codex-rs/protocol).
- ShareGPT: `conversations` with `from` and `value`.
- ChatGPT exports: `mapping` with messages that have `author.role` and `content.content_type` ("thoughts").
- OTLP JSON: attributes are `{"key": …, "value": {"stringValue": …}}` (opentelemetry.io, specs/otlp); messages of
  GenAI conventions are JSON in a string, with parts of the types `text` and `reasoning` (opentelemetry.io,
  specs/semconv/gen-ai).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

from asides.datasets.audit_text import FoundInText, Tag, check_text, list_tags
from asides.values.notices import escape_controls
from asides.values.parts import MAX_DEPTH
from asides.wire.inline_tags import Position

_Object: TypeAlias = Mapping[str, Any]

_LONGEST_KEY = 60
_LONGEST_NAME = 200
_MAX_THOUGHTS = 64


class AuditSettings(NamedTuple):
    """How texts are checked."""

    tags: tuple[Tag, ...] | None = None
    """None: the grammars of the model, and those that are always known."""
    position: Position = "auto"
    model: str | None = None
    """The model of texts that no field names."""
    keeps_details: bool = False
    """Thinking in a `details` block is in its place, as in a database of Open WebUI."""


class FoundPlace(NamedTuple):
    """Thinking in a document, with its place."""

    path: str
    model: str | None
    found: FoundInText


class Document(NamedTuple):
    """A document after the check."""

    cleaned: Any
    """The same object if nothing was removed."""
    found: tuple[FoundPlace, ...]
    mentions: int
    """Opening tags that are part of an answer."""
    thoughts: tuple[str, ...] = ()
    """The reasoning that is stored in it, in places of its own."""


class TooDeep(Exception):
    """The document is nested too deeply."""


class _Speaker(Enum):
    ANSWER = auto()
    INPUT = auto()
    """Texts are the user's; messages inside may be answers."""
    OTHER = auto()
    """The message of a user, a system or a tool."""
    THINKING = auto()


class _Place(NamedTuple):
    parent: _Place | None
    key: str | int

    def __str__(self) -> str:
        steps: list[str] = []
        place: _Place | None = self
        while place is not None:
            steps.append(_write_step(place.key))
            place = place.parent
        return "$" + "".join(reversed(steps))


def _write_step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if key.isidentifier() and key.isascii() and len(key) <= _LONGEST_KEY:
        return f".{key}"
    # A key may be anything, even an answer.
    return f'["{escape_controls(key[:_LONGEST_KEY])}{"…" if len(key) > _LONGEST_KEY else ""}"]'


class _Scope(NamedTuple):
    speaker: _Speaker
    model: str | None
    thoughts: tuple[str, ...] = ()
    depth: int = 0
    is_message: bool = False
    """Inside a message of the model."""


def check_document(value: Any, settings: AuditSettings, table: str = "", thoughts: tuple[str, ...] = ()) -> Document:
    """Check a JSON value. Raises TooDeep.

    `table` is the name of the table that it is a row of, and `thoughts` the reasoning in records before it.
    """
    if table and names_thinking(table):
        return Document(value, (), 0)
    walk = _Walk(settings)
    speaker = _Speaker.INPUT if is_input(table) else _Speaker.ANSWER
    cleaned = walk.walk(value, _Scope(speaker, settings.model, thoughts), None)
    return Document(cleaned, tuple(walk.found), walk.mentions, tuple(walk.thoughts))


class _Walk:
    """Walks through one document."""

    def __init__(self, settings: AuditSettings) -> None:
        self._settings = settings
        self.found: list[FoundPlace] = []
        self.mentions = 0
        self.thoughts: dict[str, None] = {}

    def walk(self, value: Any, scope: _Scope, place: _Place | None) -> Any:
        if isinstance(value, str):
            return self._check(value, scope, place)
        if scope.depth > MAX_DEPTH:
            raise TooDeep
        if isinstance(value, Mapping):
            return self._walk_object(cast("_Object", value), scope, place)
        if isinstance(value, list):
            return self._walk_list(value, scope, place)
        return value

    def _check(self, text: str, scope: _Scope, place: _Place | None) -> str:
        if scope.speaker is not _Speaker.ANSWER:
            return text
        settings = self._settings
        tags: Sequence[Tag] | None = settings.tags
        if tags is None:
            tags = list_tags(scope.model, keeps_details=settings.keeps_details)
        checked = check_text(
            text,
            tags,
            settings.position,
            scope.thoughts,
            keeps_details=settings.keeps_details,
            is_message=scope.is_message,
        )
        self.mentions += checked.mentions
        if checked.found:
            path = "$" if place is None else str(place)
            self.found += [FoundPlace(path, scope.model, found) for found in checked.found]
        return checked.cleaned

    def _walk_list(self, values: list[Any], scope: _Scope, place: _Place | None) -> list[Any]:
        inner = self._enter(scope, _find_thoughts_of_items(values), _find_attribute_model(values))
        changed: dict[int, Any] = {}
        for number, value in enumerate(values):
            cleaned = self.walk(value, inner, _Place(place, number))
            if cleaned is not value:
                changed[number] = cleaned
        return [changed.get(number, value) for number, value in enumerate(values)] if changed else values

    def _walk_object(self, value: _Object, scope: _Scope, place: _Place | None) -> _Object:
        speaker = find_speaker(value)
        if speaker is _Speaker.THINKING:
            self.thoughts.update(dict.fromkeys(_list_texts(value)))
        if speaker in (_Speaker.OTHER, _Speaker.THINKING):
            return value
        if "key" in value and isinstance(value.get("value"), Mapping) and _is_any_value(value["value"]):
            return self._walk_attribute(value, scope, place)
        if _is_any_value(value):
            return self._walk_any_value(value, scope, place)
        inner = self._enter(scope, _find_own_thoughts(value), _find_model(value), speaker)
        changed: dict[str, Any] = {}
        for name, field in value.items():
            if not isinstance(field, (str, Mapping, list)) or names_thinking(name):
                continue
            below = inner
            if inner.speaker is _Speaker.ANSWER and is_input(name):
                below = inner._replace(speaker=_Speaker.INPUT)
            here = _Place(place, name)
            cleaned = self._walk_encoded(field, below, here) if is_encoded(name) else self.walk(field, below, here)
            if cleaned is not field:
                changed[name] = cleaned
        return {**value, **changed} if changed else value

    def _walk_encoded(self, value: Any, scope: _Scope, place: _Place) -> Any:
        """Check JSON in a text, or a text that has none."""
        document = parse_inner(value)
        if document is None:
            return self.walk(value, scope, place)
        cleaned = self.walk(document, scope._replace(depth=scope.depth + 1), place)
        return value if cleaned is document else json.dumps(cleaned, ensure_ascii=False)

    def _enter(
        self, scope: _Scope, thoughts: tuple[str, ...], model: str | None, speaker: _Speaker | None = None
    ) -> _Scope:
        """The scope inside an object or a list."""
        self.thoughts.update(dict.fromkeys(thoughts))
        return _Scope(
            speaker or scope.speaker,
            model or scope.model,
            tuple(dict.fromkeys((*scope.thoughts, *thoughts)))[:_MAX_THOUGHTS] if thoughts else scope.thoughts,
            scope.depth + 1,
            scope.is_message or speaker is _Speaker.ANSWER,
        )

    # --- OTLP ---------------------------------------------------------------------------------------------------------

    def _walk_attribute(self, value: _Object, scope: _Scope, place: _Place | None) -> _Object:
        name = str(value["key"])
        if names_thinking(name):
            return value
        below = scope._replace(depth=scope.depth + 1, thoughts=())
        if scope.speaker is _Speaker.ANSWER and is_input(name):
            below = below._replace(speaker=_Speaker.INPUT)
        cleaned = self._walk_any_value(value["value"], below, _Place(place, name[:_LONGEST_NAME]))
        return value if cleaned is value["value"] else {**value, "value": cleaned}

    def _walk_any_value(self, value: _Object, scope: _Scope, place: _Place | None) -> _Object:
        if (text := value.get("stringValue")) is not None:
            cleaned = self._walk_encoded(text, scope, _Place(place, "stringValue"))
            return value if cleaned is text else {**value, "stringValue": cleaned}
        plain = _read_any_value(value)
        if plain is not value:  # Else it has no text, or is not an OTLP value.
            cleaned = self.walk(plain, scope._replace(depth=scope.depth + 1), place)
            if cleaned is not plain:
                return cast("_Object", _write_any_value(cleaned))
        return value


# --- names ------------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_THINKING_WORDS = frozenset({"thinking", "reasoning", "thought", "thoughts", "cot", "scratchpad"})
_NEGATIONS = frozenset({"no", "non", "not", "without"})
_ANSWER_WORDS = frozenset({
    "answer", "answers", "completion", "completions", "output", "outputs", "replies", "reply", "response", "responses",
})  # fmt: skip
_TOOL_WORDS = frozenset({"arguments", "args", "function", "functions", "tool", "tools"})
_INPUT_WORDS = _TOOL_WORDS | {
    "context", "document", "documents", "fragment", "fragments", "input", "inputs", "instruction", "instructions",
    "parameters", "prompt", "prompts", "query", "question", "schema", "schemas", "system", "template", "templates",
    "user",
}  # fmt: skip


@lru_cache(maxsize=2048)
def _split_name(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name[:_LONGEST_NAME]))


@lru_cache(maxsize=2048)
def names_thinking(name: str) -> bool:
    """Whether a field has the name of a place for thinking: `reasoning_content`, `thinking`, `deepseek_reasoning`."""
    words = _split_name(name)
    return bool(words) and bool({words[0], words[-1]} & _THINKING_WORDS) and _NEGATIONS.isdisjoint(words)


@lru_cache(maxsize=2048)
def is_input(name: str) -> bool:
    """Whether a field has the name of something that a model reads: `prompt`, `gen_ai.input.messages`, `tool_calls`."""
    words = _split_name(name)
    if words and words[-1] in _ANSWER_WORDS and _TOOL_WORDS.isdisjoint(words):
        return False
    return not _INPUT_WORDS.isdisjoint(words)


@lru_cache(maxsize=2048)
def is_encoded(name: str) -> bool:
    """Whether a field holds JSON in a text: `response_json`."""
    return "json" in _split_name(name)


# --- messages, items and parts ----------------------------------------------------------------------------------------

_ANSWER_ROLES = frozenset({"ai", "assistant", "bot", "chatbot", "chatgpt", "gpt", "model"})
_OTHER_ROLES = frozenset({
    "context", "critic", "developer", "environment", "function", "human", "ipython", "observation", "prompter",
    "system", "tool", "tool_response", "user",
})  # fmt: skip
_KINDS = ("type", "part_type", "part_kind", "kind", "content_type")
_OTHER_KINDS = frozenset({
    "attachment", "audio", "call", "commentary", "file", "function", "human", "image", "input", "mcp", "prompt",
    "queue", "system", "tool", "user",
})  # fmt: skip
# A row of a data set may have a field `type` of its own, such as "math reasoning".
_ROW_FIELDS = frozenset({
    "answer", "choices", "chosen", "completion", "conversation", "conversations", "messages", "prompt", "question",
    "response",
})  # fmt: skip
_INNER_LISTS = ("content", "parts", "output", "summary")


def find_speaker(value: _Object) -> _Speaker | None:
    """The role of a message, an item or a part of content, or None."""
    role = value.get("role")
    author = value.get("author")
    if role is None and isinstance(author, Mapping):
        role = cast("_Object", author).get("role")
    if role is None and "value" in value:
        role = value.get("from")
    if value.get("channel") == "analysis" or value.get("thought") is True:
        return _Speaker.THINKING
    if value.get("channel") == "commentary" or value.get("phase") == "commentary":
        return _Speaker.OTHER
    words = _read_kinds(value)
    if words and _ROW_FIELDS.isdisjoint(value):
        if not _THINKING_WORDS.isdisjoint(words):
            return _Speaker.THINKING
        if not _OTHER_KINDS.isdisjoint(words):
            return _Speaker.OTHER
    if isinstance(role, str):
        name = role.lower()
        if name in _ANSWER_ROLES:
            return _Speaker.ANSWER
        if name in _OTHER_ROLES:
            return _Speaker.OTHER
        if not _THINKING_WORDS.isdisjoint(_split_name(name)):
            return _Speaker.THINKING
    # As LangChain and Claude Code mark messages.
    return _Speaker.ANSWER if value.get("type") in ("ai", "assistant") else None


def _read_kinds(value: _Object) -> set[str]:
    words: set[str] = set()
    for name in _KINDS:
        if isinstance(kind := value.get(name), str):
            words.update(_split_name(kind))
    constructor = value.get("id") if value.get("type") == "constructor" else None  # how LangChain dumps a message
    if isinstance(constructor, list) and constructor and isinstance(constructor[-1], str):
        words.update(_split_name(constructor[-1]))
    return words


def _find_model(value: _Object) -> str | None:
    for name in ("model", "model_id", "modelName"):
        if isinstance(model := value.get(name), str) and model:
            return model[:_LONGEST_NAME]
    return None


def _find_attribute_model(values: list[Any]) -> str | None:
    """The model that a list of OTLP attributes names."""
    for value in values:
        if not isinstance(value, Mapping) or "key" not in value:
            return None
        if str(value["key"]).endswith((".response.model", ".request.model", "llm.model_name")):
            model = value["value"].get("stringValue") if isinstance(value.get("value"), Mapping) else None
            if isinstance(model, str):
                return model[:_LONGEST_NAME]
    return None


def _find_own_thoughts(value: _Object) -> tuple[str, ...]:
    """The reasoning of a message, in its fields and blocks."""
    thoughts: list[str] = []
    for name, field in value.items():
        if not isinstance(field, (str, Mapping, list)):
            continue
        if names_thinking(name):
            thoughts += _list_texts(field)
        elif name in _INNER_LISTS and isinstance(field, list):
            thoughts += _find_thoughts_of_items(field)
    return tuple(thoughts[:_MAX_THOUGHTS])


def _find_thoughts_of_items(values: list[Any]) -> tuple[str, ...]:
    found = [
        text
        for value in values
        if isinstance(value, Mapping) and find_speaker(value) is _Speaker.THINKING
        for text in _list_texts(value)
    ]
    return tuple(found[:_MAX_THOUGHTS])


def _list_texts(value: Any, depth: int = 4) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth:
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        for each in cast("Sequence[Any]", inner):
            yield from _list_texts(each, depth - 1)


# --- JSON in texts, and the values of OTLP ----------------------------------------------------------------------------


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. Raises ValueError; also reads what Python writes beyond JSON: NaN and lone surrogates."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError:
        raise TooDeep from None
    try:
        return json.loads(text)
    except RecursionError:
        raise TooDeep from None


def parse_inner(value: Any) -> Any:
    """The object or list that a text holds as JSON; None for other texts."""
    if not isinstance(value, str) or value[:1] not in ("{", "[") or value.rstrip()[-1:] not in ("}", "]"):
        return None
    try:
        return parse_json(value)
    except ValueError:
        return None


_ANY_VALUES = frozenset({
    "stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue",
})  # fmt: skip


def _is_any_value(value: _Object) -> bool:
    return len(value) == 1 and not _ANY_VALUES.isdisjoint(value)


def _read_any_value(value: Any) -> Any:
    """A value of OTLP as plain JSON."""
    if not isinstance(value, Mapping):
        return value
    match value:
        case {"stringValue": text}:
            return text
        case {"arrayValue": {"values": list(values)}}:
            return [_read_any_value(each) for each in values]
        case {"kvlistValue": {"values": list(pairs)}} if all(isinstance(each, Mapping) for each in pairs):
            return {str(each.get("key")): _read_any_value(each.get("value")) for each in pairs}
        case _:
            return value


def _write_any_value(value: Any) -> Any:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_write_any_value(each) for each in value]}}
    if isinstance(value, Mapping) and not _is_any_value(cast("_Object", value)):
        pairs = [{"key": name, "value": _write_any_value(each)} for name, each in value.items()]
        return {"kvlistValue": {"values": pairs}}
    return value
