"""Decodes chat lines into events; one decoder for streams and whole bodies.

Theory of operation. A message has one thinking field, one content and a list of calls, without an order between them.
So blocks are numbered by their kind: the thought, the segments of the content, pictures, the calls as they come. A
stream and a whole body then fold to the same reply. A whole body is a stream of one line.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from typing import Any

import msgspec

from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.ollama.wire import (
    LINES,
    Call,
    Function,
    Line,
    Message,
    build_error,
    map_stop_reason,
)
from asides.dialects.tagged_text import TaggedText
from asides.providers.provider import Target
from asides.values.errors import ConfigError
from asides.values.events import (
    Event,
    PartArrived,
    StopReason,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.parts import Image
from asides.values.thinking import ThoughtKind
from asides.values.usage import normalise_usage
from asides.wire.framing import Framing
from asides.wire.lenient import raw_to_json_text, read_thought_text

CONTENT_BLOCK = 1_000
IMAGE_BLOCK = 500_000
CALL_BLOCK = 1_000_000
VIA = "thinking"


class ChatLineDecoder(DocumentDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = "ollama"

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing(lines=True))
        rule = target.rule
        self._kind: ThoughtKind = "raw" if rule.kind == "hidden" else rule.kind
        self._thought: list[str] = []
        self._content: TaggedText | None = None
        self._images = 0
        self._calls = 0
        self._undecided: Line | None = None

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one line."""
        line = self.read(payload, LINES, events)
        if line.error is not None:
            self.failure = build_error(200, {}, line.error, payload, self.target)
        else:
            self._decode_line(line, events)

    def _decode_line(self, line: Line, events: list[Event]) -> None:
        if not self.target.model and line.model:
            # The caller of recorded bytes may not know the model; the line names it.
            rule = self.target.provider.rule(line.model)
            self.target = msgspec.structs.replace(self.target, model=line.model, rule=rule)
        if not self._started:
            self.start(events, line.model)
        message = line.message
        if message is not None:
            self._decode_message(message, events)
        elif line.response is not None or line.thinking is not None:
            self._decode_message(Message(line.response, line.thinking), events)
        elif not line.done:
            self.warn("unknown_line", "a line without a message is only in metadata['raw']", events)
        if line.done:
            self._decode_end(line, events)
        elif line.done is None:
            self._undecided = line

    def _decode_message(self, message: Message, events: list[Event]) -> None:
        thinking = message.thinking
        if thinking and type(thinking) is not str:
            thinking = self._read_thinking(thinking, events)
        if thinking:
            self._thought.append(thinking)
            events.append(ThinkingDelta(thinking, 0, self._kind, "field", VIA))
        if message.content:
            self._decode_text(message.content, events)
        for call in message.tool_calls or ():
            self._decode_call(call, events)
        for image in message.images or ():
            self._decode_image(image, events)

    def _decode_text(self, text: str, events: list[Event]) -> None:
        if self._content is None:
            self._content = TaggedText(CONTENT_BLOCK, self.target, self._kind, field_thinking=self._thought)
        self._content.feed(text, events)

    def _read_thinking(self, value: Any, events: list[Event]) -> str:
        """Return the text of thinking that is not a string."""
        text = read_thought_text(value)
        if not text:
            self.warn("unreadable_thinking", f"the field {VIA} holds {type(value).__name__}, not text", events)
        return text

    def _decode_call(self, call: Call, events: list[Event]) -> None:
        block = CALL_BLOCK + self._calls
        self._calls += 1
        function = call.function
        name, arguments = (None, "") if function is None else (function.name, self._read_arguments(function))
        events.append(ToolCallDelta(block, call.id or None, name or None, arguments))

    def _read_arguments(self, function: Function) -> str:
        """Return the arguments as JSON text without white space, so that streamed and whole replies are equal."""
        return raw_to_json_text(self.clean(function.arguments))

    def _decode_image(self, image: str, events: list[Event]) -> None:
        try:
            picture = Image(data=b64decode(image, validate=True))
        except (NotBase64, ValueError, ConfigError):
            self.warn("malformed_field", "a picture cannot be read and is only in metadata['raw']", events)
            return
        events.append(PartArrived(picture, IMAGE_BLOCK + self._images))
        self._images += 1

    def _decode_end(self, line: Line, events: list[Event]) -> None:
        self.ended = True
        if line.done_reason is not None:
            reason = map_stop_reason(line.done_reason, has_calls=bool(self._calls))
            if reason == "unknown" and line.done_reason:
                self.warn("unknown_stop_reason", f"the reason {line.done_reason!r} is not known", events)
            self.stop = StopReason(reason, line.done_reason)
        if line.prompt_eval_count is not None or line.eval_count is not None:
            events.append(UsageReported(normalise_usage(input=line.prompt_eval_count, output=line.eval_count)))

    def flush(self, events: list[Event]) -> None:
        """Emit the held events: no more lines come."""
        if not self.ended and self._undecided is not None and not self.streamed and self.failure is None:
            # A single document without `done` is a whole reply, not a line of a stream.
            self._decode_end(self._undecided, events)
        if self._content is not None:
            self._content.finish(events, cut=self.is_cut_off)
            self.truncated_thought = self._content.truncated
        elif self._thought and self.stop is not None and self.stop.reason == "length" and not self._calls:
            self.truncated_thought = True
