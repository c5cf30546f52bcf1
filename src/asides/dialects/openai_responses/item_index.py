"""Finds the item that an event belongs to: the items of one reply by index and by id.

`output_index` counts first, since some proxies change the id of an item in every event. Without an index the id counts;
without both it is the last item. Not here: the events of an item (items).
"""

from __future__ import annotations

from asides.dialects.openai_responses.items import (
    SERVER_TOOLS,
    CallState,
    ItemState,
    MessageState,
    RawReasoning,
    ReasoningState,
    ServerToolState,
    UnknownState,
)
from asides.dialects.openai_responses.wire import Item, StreamEvent
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target


class ItemIndex:
    """The items of one reply."""

    def __init__(self, target: Target) -> None:
        self.items: list[ItemState] = []
        self._by_key: dict[int | str, ItemState] = {}
        self._target = target
        self._raw_reasoning: RawReasoning = _find_raw_reasoning(target)

    def find(self, event: StreamEvent, kind: str) -> ItemState:
        """Return the item of this kind that an event belongs to; a new one if it was not announced."""
        key = make_key(event.output_index, event.item_id)
        found = self._by_key.get(key) if key is not None else self._find_last()
        if found is not None and found.kind != kind and event.item_id is not None:
            found = next((item for item in self.items if item.id == event.item_id and item.kind == kind), found)
        if found is None or found.kind != kind:
            found = self._add(kind, event.output_index, event.item_id)
        return found

    def begin(self, index: int | None, item: Item) -> ItemState:
        """Return the item that begins here. If the server uses an index twice, the second is a new item after the
        others.
        """
        kind = item.type or "message"
        key = make_key(index, item.id)
        state = self._by_key.get(key) if key is not None else None
        if state is None or state.announced or state.kind != kind:
            state = self._add(kind, index, item.id)
        state.announced, state.id = True, item.id or state.id
        return state

    def end(self, index: int | None, item: Item) -> ItemState:
        """Return the item that ends here."""
        kind = item.type or "message"
        key = make_key(index, item.id)
        state = self._by_key.get(key) if key is not None else self._find_last()
        if state is None or state.done or state.kind != kind:
            state = self._find_open_by_id(item.id, kind)
        return state or self._add(kind, index, item.id)

    def find_unfinished(self, place: int, item: Item, known: int) -> ItemState | None:
        """Return the item at this position of the last response object; None if the stream has finished it already.

        `known` items existed before that object was read.
        """
        kind = item.type or "message"
        streamed = [state for state in self.items[:known] if state.kind == kind]
        if item.id is not None and any(state.done and state.id == item.id for state in streamed):
            return None
        here = next((state for state in streamed if state.block == find_first_block(place)), None)
        if here is not None:
            return None if here.done else here
        if (begun := self._find_open_by_id(item.id, kind)) is not None:
            return begun
        # The stream had it with another index and another id; the stream counts.
        return None if any(state.done for state in streamed) else self._add(kind, place, item.id)

    def has_open_tag(self) -> bool:
        """Whether a message opens a thinking tag and does not close it."""
        messages = (item for item in self.items if isinstance(item, MessageState))
        return any(item.truncated for item in messages)

    def is_last_a_thought(self) -> bool:
        """Whether the last item is reasoning."""
        last = max(self.items, key=lambda item: item.block, default=None)
        return isinstance(last, ReasoningState)

    def _find_last(self) -> ItemState | None:
        return self.items[-1] if self.items else None

    def _find_open_by_id(self, item_id: str | None, kind: str) -> ItemState | None:
        if item_id is None:
            return None
        named = (state for state in self.items if state.id == item_id and state.kind == kind and not state.done)
        return next(named, None)

    def _add(self, kind: str, index: int | None, item_id: str | None) -> ItemState:
        taken = {item.block for item in self.items}
        block = find_first_block(len(self.items) if index is None else index)
        if block in taken:
            block = max(taken) + SEGMENTS
        state = self._make_state(kind, block)
        state.id = item_id
        self.items.append(state)
        key = make_key(index, item_id)
        if key is not None:
            self._by_key[key] = state
        return state

    def _make_state(self, kind: str, block: int) -> ItemState:
        origin = self._target.origin
        match kind:
            case "reasoning":
                return ReasoningState(block, origin, self._raw_reasoning)
            case "message":
                return MessageState(self._target, self._make_text(block))
            case "function_call" | "custom_tool_call":
                return CallState(block, kind, origin)
            case _ if kind in SERVER_TOOLS:
                return ServerToolState(block, kind, origin)
            case _:
                return UnknownState(block, kind, origin)

    def _make_text(self, block: int) -> TaggedText:
        # A server that sends a thought as a separate item has removed the tag that its template opened.
        first = not any(isinstance(item, (ReasoningState, MessageState)) for item in self.items)
        return TaggedText(block, self._target, first=first)


def make_key(index: int | None, item_id: str | None) -> int | str | None:
    """Return the key of an item: its index, else its id."""
    return index if index is not None else item_id


def find_first_block(place: int) -> int:
    """Return the first block of the item at this position. Blocks before the first item are for text outside items."""
    return (place + 1) * SEGMENTS


def _find_raw_reasoning(target: Target) -> RawReasoning:
    """Return the use of raw reasoning: that of the row, else "aside" for models that send summaries."""
    use = "shown" if target.shows_raw else target.quirks.raw_reasoning
    if use is not None:
        return use
    return "alone" if target.rule.kind == "raw" else "aside"
