"""A relay without sockets: callers of each dialect, strict models of each provider, and the state between them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from asides.dialects import find_dialect, plain_row
from asides.providers.provider import Target
from asides.relay.state.carry_state import StateCarrier
from asides.relay.state.relay_keys import RelayKeys, TenantKeys
from asides.relay.state.restore_state import RestoredPrompt, restore
from asides.relay.state.turn_state import StateMode
from asides.relay.steps import ReadRecords
from asides.relay.streams.step_handlers import RecordStore, carry_out
from asides.relay.vault.memory_vault import MemoryVault
from asides.values.events import Event
from asides.values.fold import fold, simulate
from asides.values.messages import Message, Prompt, user
from asides.values.parts import Part, Refusal, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.tools import Tool
from tests.history.strict_stages import TOOLS, Model, StrictRules

KEYS = RelayKeys((b"k" * 32,))
_Result = TypeVar("_Result")


def run_with_store(flow: Generator[ReadRecords, Any, _Result], store: RecordStore | None) -> tuple[_Result, int]:
    """Run a flow that asks for records. Returns its result, and how often it asked."""
    value: Any = None
    reads = 0
    while True:
        try:
            step = flow.send(value)
        except StopIteration as stop:
            return stop.value, reads
        value = carry_out(step, store)
        reads += 1


def write_reply(dialect: str, batches: Sequence[list[Event]], *, stream: bool = True) -> bytes:
    """What a caller of this dialect receives."""
    writer = find_dialect(dialect).writer(model="the-model", stream=stream)
    return b"".join(writer.write(batch) for batch in batches)


def read_reply(dialect: str, data: bytes) -> Reply:
    """What a client of this dialect understands."""
    decoder = find_dialect(dialect).decoder(_find_plain_target(dialect))
    events = decoder.feed(data) + decoder.finish()
    assert decoder.failure is None, decoder.failure
    return fold(events)


def read_request(dialect: str, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Prompt:
    """The prompt that a relay reads from a client of this dialect with this history."""
    spoken = find_dialect(dialect)
    made, _ = spoken.encode(Prompt(tuple(messages), tools=tuple(tools)), _find_plain_target(dialect))
    return spoken.read(made.body, urlsplit(made.url).path).prompt


def _find_plain_target(dialect: str) -> Target:
    return Target(plain_row(dialect), "the-model", "http://127.0.0.1:9/v1")


def strip(message: Message) -> Message:
    """What a client gives back that knows of no thinking: texts and calls."""
    kept: list[Part] = []
    for part in message.parts:
        if isinstance(part, Text):
            kept.append(Text(part.text))
        elif isinstance(part, ToolCall):
            kept.append(msgspec.structs.replace(part, seals=()))
        elif isinstance(part, (Refusal, ToolResult)):
            kept.append(part)
    return Message(message.role, tuple(kept))


def keep(message: Message) -> Message:
    """What a client gives back that keeps everything."""
    return message


class Caller:
    """A client of one dialect. It holds its own history, as it understands it."""

    def __init__(
        self,
        dialect: str,
        *,
        mode: StateMode = "memory",
        store: RecordStore | None = None,
        keys: TenantKeys | None = None,
        strips: bool = False,
    ) -> None:
        self.dialect = dialect
        self.mode: StateMode = mode
        self.store = MemoryVault() if store is None and mode == "memory" else store
        self.keys = keys or KEYS.find_tenant("a")
        self.history: tuple[Message, ...] = ()
        self.restored: RestoredPrompt | None = None
        self.reads = 0
        self._give_back = strip if strips else keep

    def say(self, text: str) -> None:
        """Add words of the user."""
        self.history = (*self.history, user(text))

    def restore(self, *targets: Target) -> RestoredPrompt:
        """The prompt of its next request, with the state that the relay finds."""
        prompt = read_request(self.dialect, self.history, TOOLS)
        restored, self.reads = run_with_store(restore(prompt, self.keys, self.mode, targets=targets), self.store)
        return restored

    def receive(self, batches: Sequence[list[Event]], reply: Reply, *, stream: bool = True) -> Reply:
        """Receive a reply through the relay, and add what is given back of it to the history."""
        sent = read_request(self.dialect, self.history, TOOLS).messages
        carrier = StateCarrier(self.dialect, self.keys, self.mode)
        written = write_reply(self.dialect, [carrier.carry(batch) for batch in batches], stream=stream)
        record = carrier.finish(reply, sent)
        if record is not None and self.store is not None:
            self.store.write(self.keys.tenant, record)
        received = read_reply(self.dialect, written)
        message = received.to_message()
        assert message is not None
        self.history = (*self.history, self._give_back(message))
        if received.tool_calls:
            results = tuple(ToolResult(call.id, "42", call.name) for call in received.tool_calls)
            self.history = (*self.history, Message("tool", results))
        return received

    def hear(self, reply: Reply, *, size: int = 20) -> Reply:
        """Receive a reply that is given whole, one event at a time."""
        return self.receive([[event] for event in simulate(reply, size)], reply)

    def last_turn(self) -> Message:
        """The last turn of the model in the next request, with its state."""
        turns = [message for message in self.restore().prompt.messages if message.role == "assistant"]
        return turns[-1]


class Relayed:
    """A caller, a strict model, and the relay between them. Beside it the same conversation without a relay."""

    def __init__(self, model: Model, caller: Caller) -> None:
        self.caller = caller
        self.rules = StrictRules(model)
        self.native: tuple[Message, ...] = ()

    def say(self, message: Message) -> None:
        """A message of the user."""
        self.caller.history = (*self.caller.history, message)
        self.native = (*self.native, message)

    def step(self) -> Reply:
        """One request and its reply, which the model accepts, or the test fails."""
        restored = self.caller.restore()
        data = self.rules.stream(restored.prompt.messages)
        reply = self.rules.reply(data)
        decoder = self.rules.dialect.decoder(self.rules.target)
        # A call and its seal come in one read, as from servers.
        batches = [decoder.feed(data[start : start + 3000]) for start in range(0, len(data), 3000)]
        batches.append(decoder.finish())
        message = reply.to_message()
        assert message is not None
        self.native = (*self.native, message)
        received = self.caller.receive(batches, reply)
        if reply.tool_calls:
            results = tuple(ToolResult(call.id, "42", call.name) for call in reply.tool_calls)
            self.native = (*self.native, Message("tool", results))
        assert received.text == reply.text
        return reply

    def requests(self) -> tuple[bytes, bytes]:
        """The bodies of the next request: through the relay, and without it."""
        restored = self.caller.restore()
        return self.rules.request(restored.prompt.messages)[0].body, self.rules.request(self.native)[0].body
