"""Real engines to ask: llama.cpp's server with the embedded model, over every dialect that both it and asides speak.

Nothing here was written to please asides: the engine parses, streams and cuts as it does for everybody. Not a test.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

import asides
from asides.dialects import DIALECTS
from asides.local import launch
from asides.providers.table import plain_row
from asides.transports.launch import RunningServer

MODEL = "local:tiny"
SUM = "What is 47 + 85?"
PRODUCT = "What is 23 * 47?"
WEATHER = "What is the weather in Paris?"

# Where llama.cpp's server speaks each language. Those that asides does not speak are left out until it does.
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
SPOKEN = [dialect for dialect in PATHS if dialect in DIALECTS]


WEATHER_TOOL = asides.Tool(
    name="get_weather",
    description="Get the current weather",
    parameters={
        "type": "object",
        "properties": {"location": {"type": "string", "description": "City name"}},
        "required": ["location"],
    },
)


class Essence(NamedTuple):
    """What has to be the same however a reply was asked for and sent.

    The engine trims its thoughts where it sends them apart, and not where it leaves them in tags.
    """

    text: str
    thinking: str | None
    tool_calls: tuple[tuple[str, Any], ...]
    outcome: str
    stop: str


def essence(reply: asides.Reply) -> Essence:
    return Essence(
        reply.text,
        reply.thinking.text.strip() if reply.thinking else None,
        tuple((call.name, call.arguments) for call in reply.tool_calls),
        reply.outcome,
        reply.stop.reason,
    )


def server() -> RunningServer:
    """The server that all tests of a run share."""
    served = launch("tiny")
    assert served is not None
    return served


SAME_SERVER = "engine:tiny-reasoner"


@contextmanager
def asking_over(dialect: str) -> Generator[asides.Client]:
    """A client whose `SAME_SERVER` is the same server asked in this language, as a host that nothing is known of."""
    served = server()
    plain = plain_row(dialect)
    # As its own row does: this engine breaks connections that it promised to keep.
    headers = (*plain.headers, ("Connection", "close"))
    for base_url in (f"{served.url}/v1", served.url):
        row = msgspec.structs.replace(plain, name="engine", base_url=base_url, base_url_env=(), headers=headers)
        told = asides.explain(SAME_SERVER, SUM, providers=[row], max_tokens=1)
        if told.url == served.url + PATHS[dialect]:
            with asides.Client(providers=[row], api_key=served.key) as client:
                yield client
            return
    raise AssertionError(f"no base_url leads {dialect} to {PATHS[dialect]}")


@contextmanager
def connected() -> Generator[HTTPConnection]:
    connection = HTTPConnection(urlsplit(server().url).netloc, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


def busy_slots() -> int:
    """How many conversations the engine is working on."""
    with connected() as connection:
        connection.request("GET", "/slots", headers={"Authorization": f"Bearer {server().key.reveal()}"})
        slots = json.loads(connection.getresponse().read())
    return sum(bool(slot["is_processing"]) for slot in slots)
