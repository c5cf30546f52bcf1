"""Decodes the calls of a chat message from their pieces: numbered, unnumbered or in the older form.

Not here: the rest of the message (decode).
"""

from __future__ import annotations

from typing import Any

from asides.dialects.openai_chat.wire import Function, ToolCallPart, is_nothing, read_signature
from asides.values.events import Event, ThinkingDelta, ThoughtSealed, ToolCallDelta
from asides.values.thinking import Origin, Seal
from asides.wire.inline_tags import Splitter
from asides.wire.lenient import to_json_text


class _Call:
    __slots__ = ("begun", "block", "id", "named", "splitter", "started")

    def __init__(self, block: int) -> None:
        self.block = block
        self.id: str | None = None
        self.named = False
        self.started = False
        self.begun = False
        """Whether the arguments have begun, without a tag."""
        self.splitter: Splitter | None = None


class ToolCalls:
    """Decodes the calls of one reply."""

    __slots__ = ("_by_index", "_calls", "_first_block", "_origin", "_tags")

    def __init__(self, first_block: int, tags: tuple[str | tuple[str, str], ...], origin: Origin) -> None:
        self._first_block = first_block
        self._tags = tags
        self._origin = origin
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}

    def decode(self, delta: Any, events: list[Event]) -> None:
        """Decode the calls in one message, or pieces of them."""
        here: list[_Call] = []
        for part in delta.tool_calls or ():
            here.append(self._decode_part(part, events, here))
        legacy: Function | None = delta.function_call
        if legacy is not None and (legacy.name or legacy.arguments):
            self._decode_part(ToolCallPart(function=legacy, index=-1), events, here)

    def _decode_part(self, part: ToolCallPart, events: list[Event], here: list[_Call]) -> _Call:
        function = part.function
        if function is None or not (function.name or function.arguments):
            function = part.custom or function or Function()
        call = self._find_call(part, function, here)
        name = None if call.named or not function.name else function.name
        call_id = None if call.id or not part.id else part.id
        call.named = call.named or bool(name)
        call.id = call.id or call_id
        text = to_json_text(function.arguments if function.arguments is not None else function.input)
        if text:
            text = self._remove_thinking(call, text, events)
        if text or name or call_id or not call.started:
            call.started = True
            events.append(ToolCallDelta(call.block, call_id, name, text))
        if not is_nothing(part.extra_content):
            self._seal(call, bytes(part.extra_content), events)
        return call

    def _find_call(self, part: ToolCallPart, function: Function, here: list[_Call]) -> _Call:
        call = self._by_index.get(part.index)
        is_new = call is None
        if call is not None and part.id and call.id and part.id != call.id and function.name:
            # Some servers number every call 0, or none at all; then the id distinguishes them.
            is_new = True
        elif call is not None and part.index is None and function.name and call.named:
            # Not numbered: a new call if it has no id, or if the earlier call is in the same list.
            is_new = not part.id or call in here
        if is_new or call is None:
            call = _Call(self._first_block + len(self._calls))
            self._calls.append(call)
            self._by_index[part.index] = call
        return call

    def _remove_thinking(self, call: _Call, text: str, events: list[Event]) -> str:
        """Remove a thinking block before the arguments, which some models write there."""
        if call.splitter is None:
            if call.begun or not self._tags or text.lstrip()[:1] not in ("<", "[", ""):
                call.begun = True
                return text
            call.splitter = Splitter(self._tags, "leading", False)
        return self._separate(call, call.splitter.feed(text), events)

    def _separate(self, call: _Call, pieces: list[tuple[int, bool, str]], events: list[Event]) -> str:
        for number, is_thinking, text in pieces:
            if is_thinking:
                events.append(ThinkingDelta(text, call.block - self._first_block + 900 + number, "raw", "tags"))
        return "".join(text for _, is_thinking, text in pieces if not is_thinking)

    def _seal(self, call: _Call, extra_content: bytes, events: list[Event]) -> None:
        value = read_signature(extra_content)
        if value:
            entry = extra_content.decode("utf-8", "replace")
            events.append(ThoughtSealed(Seal("thought_signature", value, self._origin, entry), call.block))

    def finish(self, events: list[Event]) -> None:
        """Emit the arguments that are still held."""
        for call in self._calls:
            if call.splitter is not None and (text := self._separate(call, call.splitter.finish(), events)):
                events.append(ToolCallDelta(call.block, arguments=text))
