"""Streams with signs of life, and streams that end with an error, against the official clients of every dialect."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import ReplyWriter
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta, UsageReported
from asides.values.messages import Prompt, user
from asides.values.usage import Usage
from tests.loopback import saying, serving, whole_response

# The SDK's own class for aiohttp, which aiohttp discourages.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

EVENTS: list[Event] = [
    ReplyStarted("upstream", "one-id"),
    ThinkingDelta("let me see", 0, "summary", "block"),
    TextDelta("4", 1),
    TextDelta("2", 1),
    UsageReported(Usage(10, 5)),
    ReplyEnded(StopReason("stop")),
]


@contextmanager
def served(name: str, *, fails: bool = False) -> Generator[str, None, None]:
    """The address of a server with such a stream."""
    writer = find_dialect(name).writer(model="m", stream=True)
    assert isinstance(writer, ReplyWriter)
    writer.serve(ServedRequest(Prompt((user("hi"),)), "m", stream=True), {}, foreign=True)
    events = EVENTS[:4] if fails else EVENTS
    data = b"".join(writer.write_ping() + writer.write([event]) for event in events)
    if fails:
        data += writer.write_error(503, "the model is overloaded")
    answer = saying(whole_response(data, content_type=writer.content_type))
    with serving(answer) as server:
        yield server.url.removesuffix("/v1")


def ask_chat(url: str) -> Iterator[str]:
    openai = pytest.importorskip("openai")
    messages = [{"role": "user", "content": "hi"}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:
        for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
            yield from (choice.delta.content or "" for choice in chunk.choices)


def ask_responses(url: str) -> Iterator[str]:
    openai = pytest.importorskip("openai")
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client,
        client.responses.stream(model="m", input="hi") as stream,
    ):
        yield from (event.delta for event in stream if event.type == "response.output_text.delta")
        stream.get_final_response()


def ask_messages(url: str) -> Iterator[str]:
    anthropic = pytest.importorskip("anthropic")
    messages = [{"role": "user", "content": "hi"}]
    with (
        anthropic.Anthropic(base_url=url, api_key="any", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=100, messages=messages) as stream,
    ):
        yield from stream.text_stream
        assert stream.get_final_message().usage.input_tokens == 10


def ask_gemini(url: str) -> Iterator[str]:
    genai = pytest.importorskip("google.genai")
    client = genai.Client(api_key="any", http_options=genai.types.HttpOptions(base_url=url))
    try:
        for chunk in client.models.generate_content_stream(model="m", contents="hi"):
            parts = chunk.candidates[0].content.parts or ()
            yield from (part.text or "" for part in parts if not part.thought)
    finally:
        client.close()


def ask_ollama(url: str) -> Iterator[str]:
    ollama = pytest.importorskip("ollama")
    with ollama.Client(url) as client:
        for line in client.chat("m", [{"role": "user", "content": "hi"}], stream=True):
            yield line.message.content or ""


def ask_cohere(url: str) -> Iterator[str]:
    cohere = pytest.importorskip("cohere")
    with cohere.ClientV2("any", base_url=url, log_warning_experimental_features=False) as client:
        for event in client.chat_stream(model="m", messages=[{"role": "user", "content": "hi"}]):
            if event.type == "content-delta":
                yield event.delta.message.content.text or ""
            if event.type == "message-end" and event.delta.finish_reason == "ERROR":
                raise RuntimeError(event.delta.error)


def ask_bedrock(url: str) -> Iterator[str]:
    boto3 = pytest.importorskip("boto3")
    config = pytest.importorskip("botocore.config").Config(retries={"total_max_attempts": 1}, proxies={})
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    client = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=config, **keys)
    messages = [{"role": "user", "content": [{"text": "hi"}]}]
    try:
        for event in client.converse_stream(modelId="m", messages=messages)["stream"]:
            yield event.get("contentBlockDelta", {}).get("delta", {}).get("text", "")
    finally:
        client.close()


CLIENTS: dict[str, Callable[[str], Iterator[str]]] = {
    "anthropic": ask_messages,
    "bedrock": ask_bedrock,
    "cohere": ask_cohere,
    "gemini": ask_gemini,
    "ollama": ask_ollama,
    "openai_chat": ask_chat,
    "openai_responses": ask_responses,
}


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_signs_of_life_do_not_disturb_a_client(name: str) -> None:
    with served(name) as url:
        assert "".join(CLIENTS[name](url)) == "42"


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_a_client_gets_the_error_that_ends_a_stream(name: str) -> None:
    received: list[Any] = []
    with served(name, fails=True) as url, pytest.raises(Exception, match=r"overloaded|response\.completed"):
        received.extend(CLIENTS[name](url))
    assert "let me see" not in "".join(received)
