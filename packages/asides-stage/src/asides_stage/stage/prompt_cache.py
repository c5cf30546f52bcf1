"""The providers' prompt caches: how much of a request repeats the beginning of an earlier one.

Anthropic and Bedrock write at the marks of a request, and read back from each mark at most twenty blocks; a change of
the thinking settings or of the tool choice loses the messages, not the tools and the system prompt. The others find a
repeated beginning themselves. Accounts and models share nothing. Words count as tokens, no beginning is too short, and
none grows old.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from asides_stage.stage.rules import Wire

_LOOK_BACK = 20
_MOST_PREFIXES = 200_000
_MARKED = ("anthropic", "bedrock")
_SAMPLED = ("system", "developer", "user", "assistant")


class CacheUse(msgspec.Struct, frozen=True):
    """What the cache did for one request."""

    read: int
    """Tokens that were read from the cache."""
    written: int
    """Tokens that marks wrote to it."""
    parts: int
    """The tools, system blocks, messages or blocks of the request."""
    read_parts: int
    """How many of them, from the first on, were read from the cache."""
    is_marked: bool = False

    @property
    def is_reported(self) -> bool:
        """Whether the reply says it: servers without marks are silent about an empty cache."""
        return self.is_marked or self.read > 0


class _Piece(msgspec.Struct):
    """One part of a request, in the order in which the model reads it."""

    content: bytes
    tokens: int = 0
    marked: bool = False


class PromptCache:
    """The beginnings of the requests of one stage."""

    def __init__(self) -> None:
        self._prefixes: dict[bytes, None] = {}
        """Digests of beginnings, with account and model in them. The oldest are forgotten."""

    def use(self, dialect: str, account: str, model: str, body: Any) -> CacheUse | None:
        """Return what the cache has of a request, and remember the request; None if its form is not known."""
        if not isinstance(body, dict):
            return None
        split = _SPLITTERS.get(dialect) or (_split_input if isinstance(body.get("input"), list) else None)
        if split is None:
            return None
        try:
            pieces = list(split(body))
        except (AttributeError, TypeError, LookupError):  # A lenient stage answers any form.
            return None
        digests = list(_chain(f"{dialect}\n{account}\n{model}".encode(), pieces))
        if dialect not in _MARKED:
            found = next((place for place in range(len(pieces) - 1, -1, -1) if digests[place] in self._prefixes), -1)
            self._remember(digests)
            return CacheUse(_sum(pieces[: found + 1]), 0, len(pieces), found + 1)
        marks = [place for place, piece in enumerate(pieces) if piece.marked]
        found = max((self._look_back(digests, mark) for mark in marks), default=-1)
        self._remember(digests[mark] for mark in marks)
        written = _sum(pieces[found + 1 : marks[-1] + 1]) if marks and marks[-1] > found else 0
        return CacheUse(_sum(pieces[: found + 1]), written, len(pieces), found + 1, is_marked=bool(marks))

    def _look_back(self, digests: list[bytes], mark: int) -> int:
        places = range(mark, max(mark - _LOOK_BACK, -1), -1)
        return next((place for place in places if digests[place] in self._prefixes), -1)

    def _remember(self, digests: Iterable[bytes]) -> None:
        for digest in digests:
            self._prefixes.pop(digest, None)
            self._prefixes[digest] = None
        while len(self._prefixes) > _MOST_PREFIXES:
            del self._prefixes[next(iter(self._prefixes))]


def _chain(start: bytes, pieces: list[_Piece]) -> Iterator[bytes]:
    digest = blake2b(start, digest_size=16).digest()
    for piece in pieces:
        digest = blake2b(digest + piece.content, digest_size=16).digest()
        yield digest


def _sum(pieces: list[_Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


# --- requests in pieces -----------------------------------------------------------------------------------------------


def _split_messages(body: Wire) -> Iterator[_Piece]:
    """Split a request of Anthropic by its blocks. A mark on the whole request counts as one on the last block."""
    pieces = [
        *(_encode(tool, marked="cache_control" in tool) for tool in body.get("tools") or ()),
        *(_encode(block, _read_text(block), "cache_control" in block) for block in _to_blocks(body.get("system"))),
    ]
    # What else the messages depend on.
    settings = [(body.get("thinking") or {}).get(name) for name in ("type", "budget_tokens")]
    pieces.append(_encode([settings, body.get("tool_choice")]))
    for message in body.get("messages") or ():
        for block in _to_blocks(message.get("content")):
            piece = _encode(block, _read_text(block), "cache_control" in block)
            piece.content += str(message.get("role")).encode()
            pieces.append(piece)
    if body.get("cache_control") is not None:
        pieces[-1].marked = True
    yield from pieces


def _split_converse(body: Wire) -> Iterator[_Piece]:
    """Split a request of Bedrock by its blocks. A cache point marks the block before it."""
    tools, native = body.get("toolConfig") or {}, body.get("additionalModelRequestFields") or {}
    pieces: list[_Piece] = []

    def add(blocks: Iterable[Wire], role: str) -> None:
        for block in blocks:
            if "cachePoint" in block and pieces:
                pieces[-1].marked = True
            elif "cachePoint" not in block:
                piece = _encode(block, str(block.get("text") or ""))
                piece.content += role.encode()
                pieces.append(piece)

    add(tools.get("tools") or (), "tools")
    add(body.get("system") or (), "system")
    settings = _encode([native.get("thinking"), tools.get("toolChoice")])
    for number, message in enumerate(body.get("messages") or ()):
        if number == 0:
            pieces.append(settings)
        add(message.get("content") or (), str(message.get("role")))
    yield from pieces


def _split_chat(body: Wire) -> Iterator[_Piece]:
    yield from (_encode(tool) for tool in body.get("tools") or ())
    for message in body.get("messages") or ():
        counted = message.get("role") in _SAMPLED
        content = message.get("content")
        yield _encode(message, content if isinstance(content, str) else _to_blocks(content), counted=counted)


def _split_responses(body: Wire) -> Iterator[_Piece]:
    yield from (_encode(tool) for tool in body.get("tools") or ())
    yield _encode(body.get("previous_response_id"))
    yield _encode(body.get("instructions"), body.get("instructions"))
    items = body.get("input")
    for item in [items] if isinstance(items, str) else items or ():
        if isinstance(item, str):
            yield _encode({"role": "user", "content": item}, item)
        else:
            yield _encode(item, item.get("content"), counted=item.get("type", "message") == "message")


def _split_gemini(body: Wire) -> Iterator[_Piece]:
    yield from (_encode(tool) for tool in body.get("tools") or ())
    system = body.get("systemInstruction") or body.get("system_instruction")
    yield _encode(system, system.get("parts") if isinstance(system, dict) else system)
    for content in body.get("contents") or ():
        parts = content.get("parts") or []
        yield _encode(content, [part for part in parts if not part.get("thought")])


def _split_input(body: Wire) -> Iterator[_Piece]:
    """Split a request whose field `input` is the conversation, as most younger dialects have it."""
    yield from (_encode(tool) for tool in body.get("tools") or ())
    yield _encode([value for name, value in body.items() if name.startswith("previous_")])
    system = body.get("system_instruction") or body.get("instructions")
    yield _encode(system, system)
    for item in body["input"]:
        yield _encode(item, item.get("content"))


_SPLITTERS = {
    "anthropic": _split_messages,
    "bedrock": _split_converse,
    "cohere": _split_chat,
    "gemini": _split_gemini,
    "ollama": _split_chat,
    "openai_chat": _split_chat,
    "openai_responses": _split_responses,
}


def _to_blocks(content: Any) -> list[Wire]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _read_text(block: Wire) -> str:
    return str(block.get("text") or "") if block.get("type") == "text" else ""


def _encode(value: Any, text: Any = None, marked: bool = False, *, counted: bool = True) -> _Piece:
    """Return a piece: the bytes without marks, and the words of its texts."""
    if isinstance(value, dict):
        value = {name: inner for name, inner in value.items() if name != "cache_control"}
    return _Piece(msgspec.json.encode(value), _count_words(text) if counted else 0, marked)


def _count_words(text: Any) -> int:
    if isinstance(text, str):
        return len(text.split())
    blocks = text if isinstance(text, list) else ()
    return sum(len(str(block.get("text") or "").split()) for block in blocks if isinstance(block, dict))
