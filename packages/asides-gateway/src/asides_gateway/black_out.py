"""Requests as the inspector may show them: `black_out(body, …)` gives JSON without keys, seals, envelopes, and thinking
that may not be seen; `show_address`, `show_headers` and `SentHead` have no secrets.

Fields are found by their structure, whatever the dialect.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from asides.providers.credentials import is_secret_query
from asides.providers.quirks import ANY_TAGS, THINKING_FIELDS
from asides.relay.state.clean_history import OPAQUE_FIELDS
from asides.relay.state.envelope import is_envelope
from asides.values.errors import redact_keys
from asides.values.notices import escape_controls
from asides.values.redaction import HIDDEN, Redact
from asides.values.visibility import Readable
from asides.wire.inline_tags import may_hold_tags, separate

# Blocks of thinking: of Messages, Cohere and Mistral, of Responses, and the entries of reasoning_details.
_THOUGHT_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"})
_ENTRY = "reasoning."
_SUMMARY_TYPES = frozenset({"summary_text", "reasoning.summary"})
# Fields that hold a thought, or a list of thoughts. An object in one of the first is a setting.
_THOUGHT_FIELDS = frozenset({*THINKING_FIELDS, "reasoning_text", "thinking_text"})
_THOUGHT_OBJECTS = frozenset({"reasoning_details", "reasoningDetails", "thinking_blocks", "reasoningContent"})
# Fields beside the text of a thought that are not part of it.
_PLAIN_FIELDS = frozenset({"type", "id", "format", "index", "status", "role", "object"})
_MODEL_ROLES = frozenset({"assistant", "model"})
# Fields for credentials: options of a relay, and the servers of tools that a provider calls itself.
_CREDENTIAL = re.compile(
    r"(?i)(?:^|[_-])(?:api[_-]?key|key|secret|password|passwd|bearer|jwt|cookie)$|authorization|auth[_-]?token|access[_-]?"
    r"token|apikey|credential"
)
_HEADER_FIELDS = frozenset({"headers", "extra_headers", "http_headers"})
# Headers whose values are shown. Of others the names are.
_SHOWN_HEADERS = (
    "accept",
    "content-type",
    "user-agent",
    "anthropic-",
    "openai-beta",
    "x-stainless-",
    "x-goog-api-client",
)
_MOST_CHARACTERS = 2000
_ADDRESS_FIELDS = frozenset({"server_url", "base_url"})


def black_out(body: bytes, *, shows: Collection[Readable], redact: Redact = str) -> Any:
    """The JSON of a body with everything blacked out that must not be shown. Raises ValueError if it is not JSON, or
    too deep.

    `shows`: the kinds of thinking that may be seen. `redact`: takes known secrets out of a text.
    """
    try:
        return _BlackOut(frozenset(shows), redact).visit(msgspec.json.decode(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("the body is not JSON that can be shown") from None


def hide(text: str) -> str:
    """The replacement of a hidden text."""
    return f"{HIDDEN} ({len(text)} characters)"


class _BlackOut:
    def __init__(self, shows: frozenset[Readable], redact: Redact) -> None:
        self._shows = shows
        self._redact = redact

    def visit(self, value: Any, kind: Readable | None = None, *, of_model: bool = False) -> Any:
        """The value as it may be shown. `kind`: it is in a thought. `of_model`: it is in a turn of the model."""
        if isinstance(value, str):
            return self._show_thought(value, kind) if kind else self._show_text(value, of_model=of_model)
        if isinstance(value, list):
            return [self.visit(each, kind, of_model=of_model) for each in value]
        if isinstance(value, dict):
            return self._visit_object(value, kind, of_model=of_model)
        return value

    def _visit_object(self, fields: Mapping[str, Any], kind: Readable | None, *, of_model: bool) -> dict[str, Any]:
        kind = _find_kind(fields, kind)
        of_model = of_model or fields.get("role") in _MODEL_ROLES
        return {name: self._visit_field(fields, name, kind, of_model=of_model) for name in fields}

    def _visit_field(self, fields: Mapping[str, Any], name: str, kind: Readable | None, *, of_model: bool) -> Any:
        value = fields[name]
        if isinstance(value, str):
            if _is_token(fields, name, value):
                return hide(value)
            if _CREDENTIAL.search(name):
                return HIDDEN
            if name in _ADDRESS_FIELDS:
                return self._show_text(show_address(value))
            if name in _PLAIN_FIELDS:
                return self._show_text(value)
            if name in _THOUGHT_FIELDS:
                return self._show_thought(value, kind or "raw")
        elif name in _HEADER_FIELDS and isinstance(value, dict):
            return dict.fromkeys(value, HIDDEN)
        elif name in _THOUGHT_OBJECTS or (name in _THOUGHT_FIELDS and isinstance(value, list)):
            return self.visit(value, kind or "raw", of_model=of_model)
        elif name == "summary" and kind is not None:
            return self.visit(value, "summary", of_model=of_model)
        return self.visit(value, kind, of_model=of_model)

    def _show_thought(self, text: str, kind: Readable) -> str:
        if not text or kind in self._shows:
            return self._show_text(text)
        return hide(text)

    def _show_text(self, text: str, *, of_model: bool = False) -> str:
        if is_envelope(text):
            return hide(text)
        if of_model and "raw" not in self._shows and may_hold_tags(text, ANY_TAGS):
            found = separate(text, ANY_TAGS, "anywhere", starts_inside="auto")
            if found.thinking:
                text = "\n".join(filter(None, (hide(found.thinking), found.commentary, found.text)))
        return redact_keys(self._redact(text))


def _find_kind(fields: Mapping[str, Any], kind: Readable | None) -> Readable | None:
    """The kind of thinking that an object holds; None if it holds none."""
    named = fields.get("type")
    if isinstance(named, str) and (named in _THOUGHT_TYPES or named.startswith(_ENTRY)):
        return "summary" if named in _SUMMARY_TYPES else kind or "raw"
    return "raw" if kind is None and fields.get("thought") is True else kind


def _is_token(fields: Mapping[str, Any], name: str, value: str) -> bool:
    """Whether a field holds a token that only a provider, or this gateway, can read."""
    if name in OPAQUE_FIELDS:
        return value != ""
    named = fields.get("type")
    if name == "data":
        return isinstance(named, str) and (named == "redacted_thinking" or named.startswith(_ENTRY))
    return name == "value" and "kind" in fields


def show_address(url: str) -> str:
    """An address without user and password, and without the values of parameters that may be secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    query = [(name, HIDDEN if is_secret_query(name) else value) for name, value in parse_qsl(parts.query)]
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return escape_controls(f"{shown}?{urlencode(query, safe='*')}" if query else shown)[:_MOST_CHARACTERS]


def show_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers, with the values that are useful and not secret."""
    return {
        name: escape_controls(value)[:_MOST_CHARACTERS] if name.lower().startswith(_SHOWN_HEADERS) else HIDDEN
        for name, value in headers.items()
    }


class SentHead(NamedTuple):
    """The head of a request to a provider, which has no key yet, and figures about it."""

    method: str
    url: str
    headers: Mapping[str, str]
    model: str
    figures: dict[str, Any]

    def show(self) -> dict[str, Any]:
        """It as it may be shown."""
        shown = {"method": self.method, "url": show_address(self.url), "model": self.model}
        return {**shown, "headers": show_headers(self.headers), **self.figures}
