"""A caller of the relay in any dialect: our own client half writes its requests and reads its responses."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from asides.dialects import find_dialect
from asides.flows.build_call import CallBuilder
from asides.flows.call import encode_request
from asides.flows.exchange import ResponseReader
from asides.flows.retry import decode_error
from asides.flows.steps import Head
from asides.options import Options, merge_options
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.providers.table import find_maker
from asides.relay.observer import RelayObserver
from asides.relay.relay import Relay, RelayConfig
from asides.relay.relay_request import RelayOutcome, RelayRequest, ResponseStart
from asides.relay.streams.relay_stream import RelayStream
from asides.relay.streams.step_handlers import RecordStore
from asides.relay.vault.memory_vault import MemoryVault
from asides.settings import Settings, load_settings
from asides.transports.http_sync import HttpTransport
from asides.transports.protocols import Transport
from asides.values.messages import Prompt
from asides.values.reply import Reply
from asides_stage import Stage

CALLERS = (
    "anthropic",
    "bedrock",
    "cohere",
    "gemini",
    "gemini_interactions",
    "ollama",
    "openai_chat",
    "openai_responses",
)
UPSTREAMS = (
    "anthropic:claude-opus-4-5",
    "bedrock:anthropic.claude-opus-4-5-20251101-v1:0",
    "cohere:command-a-reasoning-08-2025",
    "gemini:gemini-3-pro-preview",
    "gemini-interactions:gemini-3-pro-preview",
    "ollama:qwen3:8b",
    "deepseek:deepseek-v4-pro",
    "openai-responses:gpt-5.2",
)
"""A model behind each dialect."""


# Clients of these dialects ask models of these makers for thinking.
_USUAL_MODELS = {
    "anthropic": "claude-opus-4-5",
    "bedrock": "anthropic.claude-opus-4-5-20251101-v1:0",
    "gemini": "gemini-3-pro-preview",
    "gemini_interactions": "gemini-3-pro-preview",
}


ROUTES = {
    "best": {"targets": ["openai-compatible:big", "openai-compatible:small"], "thinking": "low", "max_tokens": 99},
    "claude-*": {"targets": "openai-compatible:any"},
}


def load(**tables: Any) -> Settings:
    """Settings of these tables alone."""
    return load_settings(environ={}, files=[], **tables)


class Response(msgspec.Struct, frozen=True):
    """What a caller got."""

    status: int
    headers: dict[str, str]
    body: bytes
    outcome: RelayOutcome | None

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Door:
    """A relay in front of a stage."""

    def __init__(
        self,
        stage: Stage | None,
        *,
        store: bool = True,
        records: RecordStore | None = None,
        settings: Settings | None = None,
        options: Options | None = None,
        **config: Any,
    ) -> None:
        given = Options() if stage is None else Options(base_url=stage.url, api_key="sk-test")
        self.records: RecordStore | None = (records or MemoryVault()) if store else None
        config.setdefault("state_mode", "memory" if store else "carry-only")
        builder = CallBuilder(merge_options(given, options or Options()), settings=settings or Settings())
        self.relay = Relay(builder, RelayConfig(**config))
        self.transport: Transport = HttpTransport()

    def open(self, request: RelayRequest, observer: RelayObserver | None = None) -> tuple[RelayStream, ResponseStart]:
        stream = RelayStream(self.relay.begin(request, observer), self.transport, self.records)
        return stream, stream.start()

    def send(self, request: RelayRequest, observer: RelayObserver | None = None) -> Response:
        stream, start = self.open(request, observer)
        body = b"".join(stream)
        stream.confirm()
        return Response(start.status, start.headers, body, stream.outcome)

    def post(self, path: str, body: Any, dialect: str = "", **more: Any) -> Response:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.send(RelayRequest(dialect, "POST", path, body=data, **more))

    def get(self, path: str, dialect: str = "", method: str = "GET", **more: Any) -> Response:
        return self.send(RelayRequest(dialect, method, path, **more))

    def ask(self, dialect: str, model: str, prompt: Prompt) -> Reply:
        """Ask in a dialect. Raises the error that its client would see."""
        return self.answer(dialect, model, prompt)[0]

    def answer(self, dialect: str, model: str, prompt: Prompt) -> tuple[Reply, Response]:
        request = write_request(dialect, model, prompt)
        response = self.send(request)
        return read_response(dialect, model, response), response


def make_target(dialect: str, model: str) -> Target:
    """The relay as a client of this dialect knows it: like the dialect's maker."""
    row = find_provider(find_maker(dialect) or "").with_dialect(dialect)
    assert row is not None
    return Target(row, model, "http://relay.test/v1", row.rule(_USUAL_MODELS.get(dialect, model)))


def write_request(dialect: str, model: str, prompt: Prompt) -> RelayRequest:
    """A request as a client of this dialect writes it."""
    sent = encode_request(prompt, make_target(dialect, model), on_conflict="adjust").request
    parts = urlsplit(sent.url)
    headers = {name.lower(): value for name, value in sent.headers.items()}
    return RelayRequest("", sent.method, parts.path, parts.query, headers, sent.body)


def read_response(dialect: str, model: str, response: Response) -> Reply:
    """The reply as a client of this dialect reads it. Raises its error."""
    target, wire = make_target(dialect, model), find_dialect(dialect)
    if response.status >= 400:
        raise decode_error(wire, Head(response.status, response.headers), response.body, target)
    reader = ResponseReader(wire.decoder(target), target.provider.name)
    reader.feed(response.body)
    reader.finish()
    return reader.reply()


FROM_CLAUDE = b"""{ "max_tokens" : 64,
  "model":"anthropic:claude-opus-4-5" , "messages": [ {"role":"user","content":"caf\\u00e9?"} ],
  "new_field_of_2027": {"a": [1, 2.50, 1e3]}, "stream": %b }"""


def post_claude(door: Door, body: bytes, **more: object) -> Response:
    """Send what the official client of Anthropic sends, and headers that are nobody else's business."""
    headers = {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one-2026-01-01,two-2026-02-02",
        "x-stainless-lang": "python",
        "user-agent": "Anthropic/Python 2.8",
        "authorization": "Bearer of-the-caller",
        "x-api-key": "of-the-caller",
        "cookie": "session=1",
        "host": "relay.test",
        "content-length": "1",
        "connection": "keep-alive",
        "accept-encoding": "gzip",
        "x-forwarded-for": "10.0.0.1",
    }
    request = RelayRequest("", "POST", "/v1/messages", "beta=true&key=secret", headers, body, **more)  # type: ignore[arg-type]
    return door.send(request)
