"""Finds the item that an event belongs to: the items of one reply, by id, by index and by their text.

An id that is known counts first. Some proxies change the id of an item in every event; then the index counts. Some
number items in one way in deltas and in another at the end; then the text that has come shows the item. So no text
comes twice. Not here: the events of an item (items, tool_items).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from operator import attrgetter

from asides.dialects.openai_responses.items import (
    ItemState,
    MessageState,
    RawReasoning,
    ReasoningState,
    UnknownState,
)
from asides.dialects.openai_responses.tool_items import (
    CLIENT_CALLS,
    SERVER_TOOLS,
    CallState,
    CustomCallState,
    ServerToolState,
    ToolItemState,
    may_be_server_run,
)
from asides.dialects.openai_responses.wire import Entry, Item, PlainEvent, StreamEvent, read_whole_text
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target
from asides.values.events import Event

_NUMBER = attrgetter("number")


class ItemIndex:
    """The items of one reply."""

    def __init__(self, target: Target) -> None:
        self.items: list[ItemState] = []
        self._unfinished: list[ItemState] = []
        """The items that may still get text, in order; the finished ones among them are removed from time to time."""
        self._announced: dict[str, list[ItemState]] = {}
        """For each kind: the announced items in order. The finished ones among them are removed when they are last."""
        self._by_index: dict[int, ItemState] = {}
        self._by_id: dict[tuple[str, str], ItemState | None] = {}
        """The item of a kind and an id; None if several have it."""
        self._renumbered: dict[str | None, dict[int | str | None, ItemState]] = {}
        """For each type of event: the items that these events number and name otherwise than they were announced."""
        self.tool_names: set[str] = set()
        """The names of the request's tools, if the server repeats them."""
        self._undecided: list[CustomCallState] = []
        """Calls of custom tools of which it may not be known yet who runs them."""
        self._has_words = False
        """Whether there is a message or reasoning."""
        self._blocks: set[int] = set()
        self._last_block = 0
        self._target = target
        self._origin = target.origin
        self._raw_reasoning: RawReasoning = _find_raw_reasoning(target)

    def find(self, event: StreamEvent | PlainEvent, kind: str) -> ItemState:
        """Return the item of this kind that an event belongs to; a new one if it was not announced."""
        index, item_id = event.output_index, event.item_id
        found = self._find_by_id(item_id, kind)
        if found is not None:
            return found
        if index is None and item_id is None and self.items and self.items[-1].kind == kind:
            return self.items[-1]
        renumbered = self._renumbered.get(event.type, {})
        if index is not None and not renumbered:
            found = self._by_index.get(index)
            if found is not None and found.kind == kind and not _is_other(found, item_id):
                return found
        key = item_id if index is None else index
        found = renumbered.get(key)
        if found is None and (found := self._find_announced(kind)) is not None:
            self._renumbered.setdefault(event.type, {})[key] = found
        return found or self.add(kind, index, item_id)

    def find_reasoning(self, event: StreamEvent | PlainEvent) -> ReasoningState | None:
        """Return the reasoning that an event about text names: all of that is thinking."""
        found = self._find_by_id(event.item_id, "reasoning") if event.item_id is not None else None
        if found is None and event.item_id is None and event.output_index is not None:
            found = self._by_index.get(event.output_index)
            found = found if found in self.items[-1:] else None
        return found if isinstance(found, ReasoningState) and not found.done else None

    def begin(self, index: int | None, item: Item) -> ItemState:
        """Return the item that begins here. If the server uses an index twice, the second is a new item after the
        others.
        """
        kind = item.type or "message"
        state = self._find_by_id(item.id, kind)
        if state is None and index is not None:
            state = self._by_index.get(index)
        repeated = state is not None and state.announced and (state.done or state.id != item.id or item.id is None)
        if state is None or repeated or state.kind != kind:
            state = self.add(kind, index, item.id)
        if not state.announced:
            state.announced = True
            insort(self._announced.setdefault(kind, []), state, key=_NUMBER)
        self._name(state, item.id)
        return state

    def end(self, index: int | None, item: Item) -> ItemState:
        """Return the item that ends here."""
        kind = item.type or "message"
        self._unfinished = [state for state in self._unfinished if not state.done]
        unfinished = [state for state in self._unfinished if state.kind == kind]
        here = self._by_index.get(index) if index is not None else None
        own = [state for state in (self._find_by_id(item.id, kind), here) if state is not None and state in unfinished]
        if index is None and item.id is None:
            own += unfinished[-1:]
        begun = next((state for state in (*own, *unfinished) if state.has_begun(item)), None)
        if begun is None:
            begun = _join_pieces(unfinished, item)
        return begun or next(iter(own), None) or self.add(kind, index, item.id)

    def match_response(self, output: list[tuple[Item, Entry]]) -> Iterator[tuple[ItemState, Item, Entry]]:
        """Yield the items of the last response object that the stream has not finished, each with its state.

        Every item that the stream had is one of them, under whatever index and id; the stream counts.
        """
        if not self.items:
            for place, (item, entry) in enumerate(output):
                yield self.add(item.type or "message", place, item.id), item, entry
            return
        matched: dict[int, ItemState] = {}
        states = list(self.items)
        for is_same in _RANKED:
            for place, (item, _) in enumerate(output):
                if place in matched:
                    continue
                kind = item.type or "message"
                found = next((state for state in states if state.kind == kind and is_same(state, item, place)), None)
                if found is not None:
                    matched[place] = found
                    states.remove(found)
        has_all_texts = self._has_all_texts(output)
        for place, (item, entry) in enumerate(output):
            kind, state = item.type or "message", matched.get(place)
            if kind == "message" and has_all_texts and (state is None or not state.sent):
                continue
            if state is None:
                yield self.add(kind, place, item.id), item, entry
            elif not state.done or (isinstance(state, MessageState) and not state.sent):
                yield state, item, entry

    def _has_all_texts(self, output: list[tuple[Item, Entry]]) -> bool:
        """Whether the messages of the stream together have the texts of the last response object."""
        spoken = "".join(state.sent for state in self.items if state.kind == "message")
        texts = [read_whole_text("message", item) for item, _ in output if (item.type or "message") == "message"]
        return bool(spoken) and "".join(texts) == spoken

    def decide_by_name(self, state: ItemState, item: Item, events: list[Event]) -> None:
        """Decide who runs a call of a custom tool: the provider, if the request had no tool of that name. If the server
        does not repeat the tools, the name says it, or the answer that follows.
        """
        if not isinstance(state, CustomCallState) or state.runs_here is not None or not item.name:
            return
        if self.tool_names:
            state.decide(item.name in self.tool_names, events)
        elif not may_be_server_run(item):
            state.decide(True, events)

    def decide_by_answer(self, message: ItemState, events: list[Event]) -> None:
        """Decide who ran the calls of custom tools before an answer: the provider, since the answer did not wait."""
        if not self._undecided:
            return
        for state in self._undecided:
            if state.runs_here is None and state.block < message.block:
                state.decide(False, events)
        self._undecided = [state for state in self._undecided if state.runs_here is None]

    def decide_rest(self, events: list[Event]) -> None:
        """Decide who runs the calls of custom tools that no answer followed: the caller."""
        for state in self._undecided:
            if state.runs_here is None:
                state.decide(True, events)
        self._undecided = []

    def has_open_tag(self) -> bool:
        """Whether a message opens a thinking tag and does not close it."""
        messages = (item for item in self.items if isinstance(item, MessageState))
        return any(item.truncated for item in messages)

    def is_last_a_thought(self) -> bool:
        """Whether the last item is reasoning."""
        last = max(self.items, key=lambda item: item.block, default=None)
        return isinstance(last, ReasoningState)

    def _find_by_id(self, item_id: str | None, kind: str) -> ItemState | None:
        return self._by_id.get((kind, item_id)) if item_id is not None else None

    def _find_announced(self, kind: str) -> ItemState | None:
        """Return the last item of this kind that was announced and is not finished."""
        announced = self._announced.get(kind)
        while announced and announced[-1].done:
            announced.pop()
        return announced[-1] if announced else None

    def _name(self, state: ItemState, item_id: str | None) -> None:
        if item_id is None or (state.id == item_id and self._by_id.get((state.kind, item_id)) is state):
            return
        state.id = item_id
        key = (state.kind, item_id)
        self._by_id[key] = None if key in self._by_id else state

    def add(self, kind: str, index: int | None, item_id: str | None) -> ItemState:
        """Add an item of this kind, after the others if it has no index, and return it."""
        block = find_first_block(len(self.items) if index is None else index)
        if block in self._blocks:
            block = self._last_block + SEGMENTS
        self._blocks.add(block)
        self._last_block = block if len(self._blocks) == 1 else max(block, self._last_block)
        state = self._make_state(kind, block)
        state.number = len(self.items)
        self._name(state, item_id)
        self.items.append(state)
        self._unfinished.append(state)
        if index is not None:
            self._by_index[index] = state
        return state

    def _make_state(self, kind: str, block: int) -> ItemState:
        origin = self._origin
        match kind:
            case "reasoning":
                self._has_words = True
                return ReasoningState(block, origin, self._raw_reasoning)
            case "message":
                # A server that sends a thought as a separate item has removed the tag that its template opened.
                text = TaggedText(block, self._target, first=not self._has_words)
                self._has_words = True
                return MessageState(origin, text)
            case "function_call":
                return CallState(block, kind, origin)
            case "custom_tool_call":
                custom = CustomCallState(block, kind, origin)
                self._undecided.append(custom)
                return custom
            case _ if kind in CLIENT_CALLS:
                return ToolItemState(block, kind, origin)
            case _ if kind in SERVER_TOOLS:
                return ServerToolState(block, kind, origin)
            case _:
                return UnknownState(block, kind, origin)


def _is_other(state: ItemState, item_id: str | None) -> bool:
    """Whether an item is finished and has another id: the server uses its index again."""
    return state.done and item_id is not None and state.id is not None and state.id != item_id


def _join_pieces(states: list[ItemState], item: Item) -> ItemState | None:
    """Return the last of these items if their texts together begin this one: the server named every piece anew."""
    pieces = [state for state in states if state.sent and not state.is_call]
    text = "".join(state.sent for state in pieces)
    if not text or not read_whole_text(item.type or "message", item).startswith(text):
        return None
    *others, last = pieces
    last.absorb("".join(state.sent for state in others))
    for state in others:
        state.done = True
    return last


# How an item of the last response object is found among those of the stream, the surest way first.
_RANKED: tuple[Callable[[ItemState, Item, int], bool], ...] = (
    lambda state, item, _: item.id is not None and state.id == item.id and state.has_begun(item) is True,
    lambda state, item, place: state.block == find_first_block(place) and state.has_begun(item) is True,
    lambda state, item, _: state.has_begun(item) is True,
    lambda state, item, _: item.id is not None and state.id == item.id,
    lambda state, _, place: state.block == find_first_block(place),
    lambda state, item, _: state.done or state.announced or state.has_begun(item) is False,
)


def find_first_block(place: int) -> int:
    """Return the first block of the item at this position. Blocks before the first item are for text outside items."""
    return (place + 1) * SEGMENTS


def _find_raw_reasoning(target: Target) -> RawReasoning:
    """Return the use of raw reasoning: that of the row, else "aside" for models that send summaries."""
    use = "shown" if target.shows_raw else target.quirks.raw_reasoning
    if use is not None:
        return use
    return "alone" if target.rule.kind == "raw" else "aside"
