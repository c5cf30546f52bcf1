"""Remove the envelopes of a relay from a saved history of any format, for people who leave it: `clean_document`.

Only opaque fields are touched: a text or a tool's argument that looks like an envelope stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.relay.state.envelope import is_envelope, may_hold_envelope

OPAQUE_FIELDS = frozenset(
    {
        "encrypted_content",
        "encryptedContent",
        "encryptedValue",
        "reasoningEncryptedContent",
        "reasoning_opaque",
        "redactedContent",
        "redactedData",
        "signature",
        "thoughtSignature",
        "thought_signature",
    }
)
"""Fields that hold nothing but a provider's token, in the formats of providers and of the libraries above them."""
# What a tool was given, and what it answered: words of others.
_CONTENT = frozenset({"args", "arguments", "response", "toolUseResult", "tool_use_result"})
# Where front ends keep facts of a provider, and the place of ours in them (vercel_ui).
_METADATA = frozenset({"providerMetadata", "callProviderMetadata", "resultProviderMetadata"})
_OWN = "asides"
_BLOCK_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})


class CleanedHistory(msgspec.Struct, frozen=True):
    """A history without envelopes."""

    document: Any
    envelopes: int = 0
    """How many were removed."""
    thoughts: int = 0
    """How many thoughts went with them: providers refuse a block of thinking without its token."""


def clean_document(document: Any) -> CleanedHistory:
    """A JSON document without envelopes: a list of messages, a request, a saved conversation, lines of a session. What
    has none is returned as it is.
    """
    cleaner = _Cleaner()
    cleaned = cleaner.clean(document)
    return CleanedHistory(cleaned, cleaner.envelopes, cleaner.thoughts)


def holds_envelopes(body: bytes) -> bool:
    """Whether JSON has an envelope in an opaque field, wherever that is."""
    if not may_hold_envelope(body):
        return False
    try:
        return clean_document([msgspec.json.decode(body)]).envelopes > 0
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    except RecursionError:
        return True  # too deep to look


class _Cleaner:
    def __init__(self) -> None:
        self.envelopes = 0
        self.thoughts = 0

    def clean(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self._clean_object(value)
        if isinstance(value, list):
            return self._clean_list(value)
        return value

    def _clean_object(self, fields: Mapping[str, Any]) -> Any:
        cleaned: dict[str, Any] = {}
        for name, value in fields.items():
            if name in OPAQUE_FIELDS and is_envelope(value):
                self.envelopes += 1
            elif name in _METADATA and isinstance(value, Mapping):
                metadata = self._clean_metadata(value)
                if metadata or metadata is value:
                    cleaned[name] = metadata
            elif name in _CONTENT or (name == "input" and isinstance(value, Mapping)):
                cleaned[name] = value
            else:
                cleaned[name] = self.clean(value)
        is_same = len(cleaned) == len(fields) and all(cleaned[name] is value for name, value in fields.items())
        return fields if is_same else cleaned

    def _clean_metadata(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts of providers without our state; an empty object if nothing else was there."""
        own = metadata.get(_OWN)
        if isinstance(own, Mapping) and is_envelope(own.get("state")):
            self.envelopes += 1
            kept = {name: value for name, value in own.items() if name != "state"}
            others = {name: value for name, value in metadata.items() if name != _OWN}
            metadata = {**others, **({_OWN: kept} if kept else {})}
        cleaned: Mapping[str, Any] = self.clean(metadata)
        return cleaned

    def _clean_list(self, items: list[Any]) -> list[Any]:
        cleaned: list[Any] = []
        for item in items:
            if isinstance(item, Mapping):
                if is_seal := _is_sealed_entry(item):
                    self.envelopes += 1
                if is_block := _is_sealed_block(item):
                    self.envelopes += 1
                    self.thoughts += 1
                if is_seal or is_block:
                    continue
            each = self.clean(item)
            if each is item or not (_is_empty_turn(each) or _is_empty_thought(each)):
                cleaned.append(each)
        return items if len(cleaned) == len(items) and all(map(_is_same, cleaned, items)) else cleaned


def _is_same(one: object, other: object) -> bool:
    return one is other


def _is_sealed_block(item: Mapping[str, Any]) -> bool:
    """Whether a block is thinking sealed by an envelope: providers refuse it without its seal."""
    if item.get("type") in _BLOCK_TYPES:
        return any(is_envelope(item.get(name)) for name in ("signature", "data", "encrypted_content"))
    inner = item.get("reasoningContent")
    if not isinstance(inner, Mapping):
        return False
    text = inner.get("reasoningText")
    signature = text.get("signature") if isinstance(text, Mapping) else None
    return is_envelope(signature) or is_envelope(inner.get("redactedContent"))


def _is_sealed_entry(item: Mapping[str, Any]) -> bool:
    """Whether an object is nothing but an envelope with its kind: a seal of ours, an entry of `reasoning_details`."""
    if "kind" in item and is_envelope(item.get("value")):
        return True
    kind = item.get("type")
    return isinstance(kind, str) and kind.startswith("reasoning.") and is_envelope(item.get("data"))


def _is_empty_turn(item: Any) -> bool:
    """Whether a message of the model has nothing left to say; providers refuse such a message."""
    if not isinstance(item, Mapping) or item.get("role") not in ("assistant", "model"):
        return False
    names = [name for name in ("content", "parts") if name in item]
    return bool(names) and all(item[name] == [] for name in names) and not item.get("tool_calls")


def _is_empty_thought(item: Any) -> bool:
    """Whether a thought of a front end was nothing but a place for an envelope."""
    if not isinstance(item, Mapping):
        return False
    return (item.get("type") == "reasoning" and item.get("text") == "") or (
        item.get("role") == "reasoning" and item.get("content") == ""
    )
