"""Which item an event means: the items of one reply by place and by id, for servers that count well or not.

`output_index` counts first, since some proxies give an item another id in every event; where there is no index, the id;
where there is neither, the last item is meant. Not here: what an item tells (items).
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


class Register:
    """The items of one reply."""

    def __init__(self, target: Target) -> None:
        self.items: list[ItemState] = []
        self._by_key: dict[int | str, ItemState] = {}
        self._target = target
        self._raw_reasoning: RawReasoning = _raw_reasoning(target)

    def find(self, event: StreamEvent, kind: str) -> ItemState:
        """The item of this kind that an event belongs to; a new one where it was never announced."""
        key = key_of(event.output_index, event.item_id)
        found = self._by_key.get(key) if key is not None else self._last()
        if found is not None and found.kind != kind and event.item_id is not None:
            found = next((item for item in self.items if item.id == event.item_id and item.kind == kind), found)
        if found is None or found.kind != kind:
            found = self._add(kind, event.output_index, event.item_id)
        return found

    def announced(self, index: int | None, item: Item) -> ItemState:
        """The item that begins here. An index that is taken is a server's slip: what comes later stands later."""
        kind = item.type or "message"
        key = key_of(index, item.id)
        state = self._by_key.get(key) if key is not None else None
        if state is None or state.announced or state.kind != kind:
            state = self._add(kind, index, item.id)
        state.announced, state.id = True, item.id or state.id
        return state

    def ended(self, index: int | None, item: Item) -> ItemState:
        """The item that ends here, with all that it has."""
        kind = item.type or "message"
        key = key_of(index, item.id)
        state = self._by_key.get(key) if key is not None else self._last()
        if state is None or state.done or state.kind != kind:
            state = self._open_by_id(item.id, kind)
        return state or self._add(kind, index, item.id)

    def untold(self, place: int, item: Item, known: int) -> ItemState | None:
        """The item at this place of the response object that ends a stream; None where the stream told it already.

        `known` items were there before that object was read.
        """
        kind = item.type or "message"
        told = [state for state in self.items[:known] if state.kind == kind]
        if item.id is not None and any(state.done and state.id == item.id for state in told):
            return None
        here = next((state for state in told if state.block == block_of(place)), None)
        if here is not None:
            return None if here.done else here
        if (begun := self._open_by_id(item.id, kind)) is not None:
            return begun
        # Told under another index and another id; the stream is what counts.
        return None if any(state.done for state in told) else self._add(kind, place, item.id)

    def breaks_off_in_a_tag(self) -> bool:
        """Whether a message opens a tag of thinking and never closes it."""
        messages = (item for item in self.items if isinstance(item, MessageState))
        return any(item.truncated for item in messages)

    def ends_with_a_thought(self) -> bool:
        """Whether the item that stands last is reasoning."""
        last = max(self.items, key=lambda item: item.block, default=None)
        return isinstance(last, ReasoningState)

    def _last(self) -> ItemState | None:
        return self.items[-1] if self.items else None

    def _open_by_id(self, item_id: str | None, kind: str) -> ItemState | None:
        if item_id is None:
            return None
        named = (state for state in self.items if state.id == item_id and state.kind == kind and not state.done)
        return next(named, None)

    def _add(self, kind: str, index: int | None, item_id: str | None) -> ItemState:
        taken = {item.block for item in self.items}
        block = block_of(len(self.items) if index is None else index)
        if block in taken:
            block = max(taken) + SEGMENTS
        state = self._state_of(kind, block)
        state.id = item_id
        self.items.append(state)
        key = key_of(index, item_id)
        if key is not None:
            self._by_key[key] = state
        return state

    def _state_of(self, kind: str, block: int) -> ItemState:
        origin = self._target.origin
        match kind:
            case "reasoning":
                return ReasoningState(block, origin, self._raw_reasoning)
            case "message":
                return MessageState(self._target, self._text_at(block))
            case "function_call" | "custom_tool_call":
                return CallState(block, kind, origin)
            case _ if kind in SERVER_TOOLS:
                return ServerToolState(block, kind, origin)
            case _:
                return UnknownState(block, kind, origin)

    def _text_at(self, block: int) -> TaggedText:
        # A server that sends a thought in an item of its own has removed the tag that its template opened.
        first = not any(isinstance(item, (ReasoningState, MessageState)) for item in self.items)
        return TaggedText(block, self._target, first=first)


def key_of(index: int | None, item_id: str | None) -> int | str | None:
    """What an item is known by."""
    return index if index is not None else item_id


def block_of(place: int) -> int:
    """The first block of the item at this place; those before the first item are for what is no item."""
    return (place + 1) * SEGMENTS


def _raw_reasoning(target: Target) -> RawReasoning:
    """What raw reasoning is here: the row's word; else, of a model known to summarise, an aside."""
    told = "shown" if target.shows_raw else target.quirks.raw_reasoning
    if told is not None:
        return told
    return "alone" if target.rule.kind == "raw" else "aside"
