"""Relays between clients in their own words and strict stages: one turn at a time, and what came of it.

A relay can be restarted between any two turns, with or without a store that outlives it. No law is here (test_relay).
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call, encode_request
from asides.options import Options, merge_options
from asides.providers.learned_rules import forget
from asides.relay.relay import Relay, RelayConfig
from asides.relay.relay_request import RelayOutcome, RelayRequest, ResponseStart
from asides.relay.state.relay_keys import can_encrypt
from asides.relay.state.thinking_origins import ThinkingOrigins
from asides.relay.state.turn_state import StateMode
from asides.relay.streams.relay_stream import AsyncRelayStream, RelayStream
from asides.relay.vault.open_vault import OpenedVault, open_vault
from asides.transports.http_async import AsyncHttpTransport
from asides.transports.http_sync import HttpTransport
from asides.values.messages import Message, ProviderState
from asides.values.parts import Text, ToolCall
from asides.values.thinking import Thought
from asides_stage.stage import Say, Scene, Stage
from asides_stage.stage.request_log import Received
from tests.laws.relay_clients import Ask, Heard, WireClient
from tests.laws.theatre import ALL_HOUSES, KEY, Target

MASTER_KEY = base64.b64encode(b"a master key of thirty-two bytes").decode()
"""Every relay has it, as those of one gateway do."""


class RelayAct(NamedTuple):
    """What came of one relayed request."""

    start: ResponseStart
    body: bytes
    """The body of the response."""
    outcome: RelayOutcome
    sent: bytes
    """The body of the client's request."""
    tokens: frozenset[bytes]
    """The seals of the reply, as they have to stand in a later request."""
    heard: Heard | None = None
    """What the client understood; None for an error."""
    received: tuple[Received, ...] = ()
    """The requests that the stage got."""

    @property
    def refusals(self) -> list[str]:
        """Why forms of the request were refused."""
        return [received.problem for received in self.received if received.problem is not None]


class RelayTheatre:
    """Three strict stages, and relays in front of them."""

    def __init__(
        self,
        runner: asyncio.Runner,
        folder: Path,
        play: Callable[[ServedRequest], Scene] | None,
        store: str | None = None,
    ) -> None:
        self._scene: Scene = Say(text="nothing was put on")
        self._stages = [Stage(play or (lambda _: self._scene)) for _ in range(3)]
        self._seen = [0, 0, 0]
        self._runner = runner
        self._transport = HttpTransport()
        self._awaiting = AsyncHttpTransport()
        self._builder = CallBuilder(Options(api_key=KEY, retries=0, timeout=20))
        self._relays: dict[Target, Relay] = {}
        self._origins = ThinkingOrigins()
        self._folder = folder
        self._store = store
        self._files = 0
        self.mode: StateMode = "memory"
        self._vault: OpenedVault = open_vault("memory", key=MASTER_KEY)

    def open(self) -> None:
        """Open the doors."""
        for stage in self._stages:
            stage.start()

    def close(self) -> None:
        """Close them, and raise what a stage raised."""
        self._runner.run(self._vault.close_async())
        self._transport.close()
        self._runner.run(self._awaiting.close())
        for stage in self._stages:
            stage.close()

    def restart(self) -> None:
        """End the relays and begin new ones, as another process would. Only a file or a database keeps what it has."""
        self._relays.clear()
        self._origins = ThinkingOrigins()
        forget()
        self._builder = CallBuilder(Options(api_key=KEY, retries=0, timeout=20))
        self._runner.run(self._vault.close_async())
        path = None
        if self.mode == "store":
            path = self._store or str(self._folder / f"vault-{self._files}.db")
        self._vault = open_vault(self.mode, path, key=MASTER_KEY)

    def use(self, mode: StateMode) -> None:
        """Begin anew, with an empty vault of this mode. Without encryption nothing is stored in a file."""
        self.mode = mode if mode != "store" or can_encrypt() else "memory"
        self._files += 1
        self.restart()
        if self._store is not None:
            import psycopg

            with psycopg.connect(self._store) as connection:
                connection.execute("TRUNCATE asides.vault_tenants CASCADE")

    def find_relay(self, target: Target) -> Relay:
        """Return the relay to a house."""
        if target not in self._relays:
            vault = self._vault
            config = RelayConfig(options=self._options(target), keys=vault.keys, state_mode=vault.mode)
            self._relays[target] = relay = Relay(self._builder, config)
            # They stand for the routes of one gateway, which knows who made which thinking.
            relay._origins = self._origins
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
        """Let a client ask, and a house answer with this scene."""
        self._scene = scene
        act = self.relay(client, target, ask, tenant=tenant, awaited=awaited)
        received = self.list_received(target)[self._seen[target.stage] :]
        self._seen[target.stage] += len(received)
        # A client hears its own provider's refusals too, some of them inside of a stream.
        is_refused = act.outcome.mode == "forward" and received and received[-1].problem is not None
        heard = None if act.start.status != 200 or is_refused else client.hear(act.body, ask)
        return act._replace(received=tuple(received), heard=heard)

    def relay(
        self,
        client: WireClient,
        target: Target,
        ask: Ask,
        *,
        tenant: str = "",
        awaited: bool = False,
        is_cut: bool = False,
        session: str = "",
    ) -> RelayAct:
        """Send what a client says through the relay. Safe in many threads, unless awaited. `is_cut`: the end of the
        response never arrives. `session`: how the client names its conversation.
        """
        path, query = client.address(ask)
        sent = json.dumps(client.write(ask)).encode()
        headers = {"content-type": "application/json", "authorization": "Bearer of-the-client"}
        headers |= {"session-id": session} if session else {}
        request = RelayRequest(client.dialect, "POST", path, query, headers, sent, tenant)
        exchange = self.find_relay(target).begin(request)
        store = self._vault.store
        if awaited:
            start, body, outcome = self._runner.run(
                _relay_async(AsyncRelayStream(exchange, self._awaiting, store), is_cut=is_cut)
            )
        else:
            start, body, outcome = _relay(RelayStream(exchange, self._transport, store), is_cut=is_cut)
        message = None if outcome.reply is None else outcome.reply.to_message()
        tokens = frozenset() if message is None else frozenset(find_tokens(message))
        return RelayAct(start, body, outcome, sent, tokens)

    def list_received(self, target: Target) -> list[Received]:
        """Return every request that a house's stage got."""
        return self._stages[target.stage].requests

    def encode_directly(
        self, client: WireClient, target: Target, sent: bytes, ask: Ask, messages: tuple[Message, ...], path: str
    ) -> bytes:
        """Encode what a `Conversation` with these messages would send for the same request: nothing in between loses
        any state there. `path`: where the relay sent it, since a host with two endpoints is asked at the client's.
        """
        served = find_dialect(client.dialect).read(sent, client.address(ask)[0])
        prompt = msgspec.structs.replace(served.prompt, messages=messages, state=ProviderState(), extra={})
        endpoint = "responses" if path.endswith("/responses") else None
        options = merge_options(self._options(target), Options(on_conflict="adjust", endpoint=endpoint))
        call: Call = self._builder.build(ask.model, prompt, options, stream=ask.stream)
        return encode_request(call.prompt, call.target, on_conflict="adjust").request.body


def _relay(stream: RelayStream, *, is_cut: bool) -> tuple[ResponseStart, bytes, RelayOutcome]:
    start = stream.start()
    body = b"".join(stream)
    outcome = stream.outcome
    assert outcome is not None
    if not is_cut:
        stream.confirm()
    return start, body, outcome


async def _relay_async(stream: AsyncRelayStream, *, is_cut: bool) -> tuple[ResponseStart, bytes, RelayOutcome]:
    start = await stream.start()
    body = b"".join([piece async for piece in stream])
    outcome = stream.outcome
    assert outcome is not None
    if not is_cut:
        stream.confirm()
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
def relays_opened(
    play: Callable[[ServedRequest], Scene] | None = None, store: str | None = None
) -> Generator[RelayTheatre, None, None]:
    """A theatre with relays, for as long as the block. `play` answers, if no scene is put on. `store`: the URL of a
    database, instead of files."""
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        theatre = RelayTheatre(runner, Path(folder), play, store)
        theatre.open()
        try:
            yield theatre
        finally:
            theatre.close()
