"""Relays between clients in their own words and strict stages: one turn at a time, and what came of it.

A relay can be restarted between any two turns, with or without a store that outlives it. No law is here (test_relay).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from asides.dialects import find_dialect
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call, encode_request
from asides.options import Options
from asides.providers.learned_rules import forget
from asides.relay.relay import Relay, RelayConfig
from asides.relay.relay_request import RelayOutcome, RelayRequest, ResponseStart
from asides.testing.stage import Say, Scene, Stage
from asides.testing.stage.request_log import Received
from asides.transports.aiohttp import AiohttpTransport
from asides.transports.relay_stream import AsyncRelayStream, RelayStream
from asides.transports.urllib3 import Urllib3Transport
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall
from asides.values.stored_records import StoredRecord
from asides.values.thinking import Thought
from tests.laws.relay_clients import Ask, Heard, WireClient
from tests.laws.theatre import ALL_HOUSES, KEY, Target

Memory: TypeAlias = Literal["none", "memory", "lasting"]
"""No store · one that ends with the relay · one that outlives it."""


class DictStore:
    """A store in memory that counts what it does. Each tenant has records of its own."""

    is_instant = True

    def __init__(self) -> None:
        self.records: dict[str, list[StoredRecord]] = {}
        self.reads = 0

    def read(self, tenant: str, keys: Sequence[str]) -> list[StoredRecord]:
        self.reads += 1
        wanted = set(keys)
        return [record for record in self.records.get(tenant, ()) if wanted & set(record.keys)]

    def write(self, tenant: str, record: StoredRecord) -> None:
        self.records.setdefault(tenant, []).append(record)

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        found = self.read(tenant, keys)
        self.records[tenant] = [record for record in self.records.get(tenant, ()) if record not in found]
        return len(found)

    def close(self) -> None:
        """Nothing is open."""


class RelayAct(NamedTuple):
    """What came of one relayed request."""

    start: ResponseStart
    body: bytes
    """The body of the response."""
    heard: Heard | None
    """What the client understood; None for an error."""
    outcome: RelayOutcome
    received: tuple[Received, ...]
    """The requests that the stage got."""
    sent: bytes
    """The body of the client's request."""
    tokens: frozenset[bytes] = frozenset()
    """The seals of the reply, as they have to stand in a later request."""

    @property
    def refusals(self) -> list[str]:
        """Why forms of the request were refused."""
        return [received.problem for received in self.received if received.problem is not None]


class RelayTheatre:
    """Three strict stages, and relays in front of them."""

    def __init__(self, runner: asyncio.Runner, memory: Memory = "lasting") -> None:
        self._scene: Scene = Say(text="nothing was put on")
        self._stages = [Stage(lambda _: self._scene) for _ in range(3)]
        self._seen = [0, 0, 0]
        self._runner = runner
        self._transport = Urllib3Transport()
        self._awaiting = AiohttpTransport()
        self._builder = CallBuilder(Options(api_key=KEY, retries=0, timeout=20))
        self._relays: dict[Target, Relay] = {}
        self.memory: Memory = memory
        self._store = DictStore()

    def open(self) -> None:
        """Open the doors."""
        for stage in self._stages:
            stage.start()

    def close(self) -> None:
        """Close them, and raise what a stage raised."""
        self._transport.close()
        self._runner.run(self._awaiting.close())
        for stage in self._stages:
            stage.close()

    def restart(self) -> None:
        """End the relays and begin new ones, as another process would. Only a lasting store keeps what it has."""
        self._relays.clear()
        forget()
        self._builder = CallBuilder(Options(api_key=KEY, retries=0, timeout=20))
        if self.memory != "lasting":
            self._store = DictStore()

    def use(self, memory: Memory) -> None:
        """Begin anew with this kind of memory."""
        self.memory = memory
        self._store = DictStore()
        self.restart()

    def find_relay(self, target: Target) -> Relay:
        """Return the relay to a house."""
        if target not in self._relays:
            self._relays[target] = Relay(self._builder, RelayConfig(options=self._options(target)))
        return self._relays[target]

    def _options(self, target: Target) -> Options:
        stage = self._stages[target.stage]
        return Options(base_url=stage.url.removesuffix("/v1") + ALL_HOUSES[target.house].base)

    def ask(
        self,
        client: WireClient,
        target: Target,
        ask: Ask,
        scene: Say,
        *,
        tenant: str = "",
        awaited: bool = False,
    ) -> RelayAct:
        """Send what a client says through the relay, and let the client hear the reply."""
        path, query = client.address(ask)
        sent = json.dumps(client.write(ask)).encode()
        headers = {"content-type": "application/json", "authorization": "Bearer of-the-client"}
        request = RelayRequest(client.dialect, "POST", path, query, headers, sent, tenant)
        self._scene = scene
        exchange = self.find_relay(target).begin(request)
        store = None if self.memory == "none" else self._store
        if awaited:
            start, body, outcome = self._runner.run(
                _relay_async(AsyncRelayStream(exchange, self._awaiting, store)),
            )
        else:
            start, body, outcome = _relay(RelayStream(exchange, self._transport, store))
        received = self._stages[target.stage].requests[self._seen[target.stage] :]
        self._seen[target.stage] += len(received)
        heard = client.hear(body, ask) if start.status == 200 else None
        message = None if outcome.reply is None else outcome.reply.to_message()
        tokens = frozenset() if message is None else frozenset(find_tokens(message))
        return RelayAct(start, body, heard, outcome, tuple(received), sent, tokens)

    def encode_directly(
        self, client: WireClient, target: Target, sent: bytes, ask: Ask, messages: tuple[Message, ...]
    ) -> bytes:
        """Encode what a `Conversation` with these messages would send for the same request: nothing in between loses
        any state there.
        """
        served = find_dialect(client.dialect).read(sent, client.address(ask)[0])
        prompt = msgspec.structs.replace(served.prompt, messages=messages)
        options = Options(**self._options(target), on_conflict="adjust")
        call: Call = self._builder.build(ask.model, prompt, options, stream=ask.stream)
        return encode_request(call.prompt, call.target, on_conflict="adjust").request.body


def _relay(stream: RelayStream) -> tuple[ResponseStart, bytes, RelayOutcome]:
    start = stream.start()
    body = b"".join(stream)
    outcome = stream.outcome
    assert outcome is not None
    return start, body, outcome


async def _relay_async(stream: AsyncRelayStream) -> tuple[ResponseStart, bytes, RelayOutcome]:
    start = await stream.start()
    body = b"".join([piece async for piece in stream])
    outcome = stream.outcome
    assert outcome is not None
    return start, body, outcome


def find_tokens(message: Message) -> list[bytes]:
    """Return every seal of a turn as it has to stand in a request: its value, or the whole entry if it has none."""
    seals = [seal for part in message.parts if isinstance(part, (Thought, Text, ToolCall)) for seal in part.seals]
    told = [seal.value or (seal.entry or "" if seal.kind == "reasoning_details" else "") for seal in seals]
    return [token.encode() for token in told if token]


def replace_model(body: bytes, name: str, other: str) -> bytes:
    """Replace the model's name in a body, and nothing else."""
    return body.replace(json.dumps(name).encode(), json.dumps(other).encode(), 1)


@contextmanager
def relays_opened(memory: Memory = "lasting") -> Generator[RelayTheatre, None, None]:
    """A theatre with relays, for as long as the block."""
    with asyncio.Runner() as runner:
        theatre = RelayTheatre(runner, memory)
        theatre.open()
        try:
            yield theatre
        finally:
            theatre.close()
