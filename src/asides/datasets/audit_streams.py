"""Joins the text of recorded streams, whose tags may be cut between two events: `<thi`, `nk>`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from asides.datasets.audit_text import TextChecker, list_tags
from asides.datasets.audit_walk import AuditSettings, FoundPlace

_Object: TypeAlias = Mapping[str, Any]
_Key: TypeAlias = tuple[str, str, int]

_MAX_STREAMS = 32
_MAX_CHARACTERS = 4_000_000


class _Delta(NamedTuple):
    key: _Key
    text: str
    path: str
    is_end: bool


class _Stream:
    def __init__(self, row: int, path: str, model: str | None, settings: AuditSettings) -> None:
        self.row, self.path, self.model = row, path, model
        tags = settings.tags
        if tags is None:
            tags = list_tags(model, keeps_details=settings.keeps_details)
        self.checker = TextChecker(tags, settings.position)

    def finish(self) -> list[tuple[FoundPlace, int]]:
        checked = self.checker.finish()
        return [
            (FoundPlace(self.path, self.model, each._replace(is_removed=False)), self.row) for each in checked.found
        ]


class StreamJoiner:
    """Collects the text of the streams in a file. Those that take too much are checked before their end."""

    def __init__(self, settings: AuditSettings) -> None:
        self._settings = settings
        self._streams: dict[_Key, _Stream] = {}

    def feed(self, event: Any, row: int) -> list[tuple[FoundPlace, int]] | None:
        """Take an event; return what is found in streams that it ends. None: it is not an event of a stream."""
        if not isinstance(event, Mapping):
            return None
        deltas = list(_read_deltas(cast("_Object", event)))
        if not deltas:
            return None
        found: list[tuple[FoundPlace, int]] = []
        for delta in deltas:
            stream = self._streams.pop(delta.key, None)
            if stream is None:
                model = event.get("model")
                named = model if isinstance(model, str) else self._settings.model
                stream = _Stream(row, delta.path, named, self._settings)
            stream.checker.feed(delta.text)
            if delta.is_end or stream.checker.length > _MAX_CHARACTERS:
                found += stream.finish()
            else:
                self._streams[delta.key] = stream
        while len(self._streams) > _MAX_STREAMS:
            found += self._streams.pop(next(iter(self._streams))).finish()
        return found

    def finish(self) -> list[tuple[FoundPlace, int]]:
        """Return the findings of unfinished streams at the end of the file."""
        found = [each for stream in self._streams.values() for each in stream.finish()]
        self._streams = {}
        return found


def _read_deltas(event: _Object) -> Iterator[_Delta]:
    """The text that an event adds to an answer, in the dialects whose servers may leave tags in the text."""
    choices = event.get("choices")
    if isinstance(choices, list):
        yield from _read_choices(event, choices)
        return
    kind = event.get("type")
    delta = event.get("delta")
    if kind == "content_block_delta" and isinstance(delta, Mapping) and delta.get("type") == "text_delta":
        yield _Delta(("block", "", _get_number(event)), str(delta.get("text", "")), "$.delta.text", False)
    elif kind == "content_block_stop":
        yield _Delta(("block", "", _get_number(event)), "", "$", True)
    elif kind in ("response.output_text.delta", "response.output_text.done"):
        text = delta if isinstance(delta, str) else ""
        yield _Delta(("item", str(event.get("item_id")), 0), text, "$.delta", kind.endswith("done"))
    elif event.get("done") is False and isinstance(event.get("response"), str):
        yield _Delta(("generate", str(event.get("model")), 0), event["response"], "$.response", False)
    elif isinstance(message := event.get("message"), Mapping) and isinstance(event.get("done"), bool):
        content = message.get("content")
        if isinstance(content, str):
            yield _Delta(("chat", str(event.get("model")), 0), content, "$.message.content", bool(event["done"]))


def _read_choices(event: _Object, choices: list[Any]) -> Iterator[_Delta]:
    for choice in choices:
        delta = choice.get("delta") if isinstance(choice, Mapping) else None
        if isinstance(delta, Mapping):
            text = delta.get("content")
            ends = choice.get("finish_reason") is not None
            key = ("choice", str(event.get("id")), _get_number(choice))
            yield _Delta(key, text if isinstance(text, str) else "", "$.choices[0].delta.content", ends)


def _get_number(event: _Object) -> int:
    number = event.get("index")
    return number if isinstance(number, int) else 0
