"""What spans say about a call, its reply and its error, by the GenAI conventions of OpenTelemetry. No content.

The names are those of opentelemetry-semantic-conventions 0.66b (2026-11); what they have no name for begins with
"asides.".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from asides.flows.call import Call
from asides.providers.provider import Target
from asides.providers.trace_names import name_for_traces
from asides.values.errors import AsidesError, redact_keys
from asides.values.messages import Prompt
from asides.values.notices import escape_controls
from asides.values.reply import Reply
from asides.values.usage import Usage

Attributes = dict[str, Any]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
FIRST_THOUGHT = "asides.response.time_to_first_thought"
FIRST_ANSWER = "asides.response.time_to_first_answer"
ERROR = "error.type"
STATUS = "http.response.status_code"
ADDRESS, PORT = "server.address", "server.port"
CLOSED = "asides.closed"
"""Whether the caller left before the end: the stream was closed or dropped, or its task cancelled."""
_LONGEST_NAME = 200
_PORTS = {"http": 80, "https": 443}


def shorten(text: str) -> str:
    """A safe name for a span: short, without control characters, and without anything like a key."""
    return escape_controls(redact_keys(text[: 2 * _LONGEST_NAME])[:_LONGEST_NAME])


def describe_target(target: Target, operation: str) -> Attributes:
    """What is asked, and where: attributes of spans and of metrics."""
    return {
        OPERATION: operation,
        PROVIDER: name_for_traces(target.provider),
        REQUEST_MODEL: shorten(target.model),
        **_locate(target.base_url),
    }


@lru_cache(maxsize=256)
def _locate(url: str) -> Attributes:
    """The host and the port of an address; nothing if it is invalid: sending will report that."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 443)
    except ValueError:
        return {}
    return {ADDRESS: shorten(parts.hostname), PORT: port} if parts.hostname else {}


def describe_request(call: Call) -> Attributes:
    """The settings of a request."""
    prompt, sampling = call.prompt, call.prompt.sampling
    given: Attributes = {
        "gen_ai.request.max_tokens": prompt.max_tokens,
        "gen_ai.request.temperature": sampling.temperature,
        "gen_ai.request.top_p": sampling.top_p,
        "gen_ai.request.top_k": sampling.top_k,
        "gen_ai.request.frequency_penalty": sampling.frequency_penalty,
        "gen_ai.request.presence_penalty": sampling.presence_penalty,
        "gen_ai.request.seed": sampling.seed,
        "asides.request.thinking": _describe_thinking(prompt),
        "asides.request.tools": len(prompt.tools) or None,
        "asides.request.dialect": call.target.dialect,
        "gen_ai.request.stream": prompt.stream,
        "gen_ai.output.type": None if prompt.output is None else "json",
    }
    return {name: value for name, value in given.items() if value is not None}


def _describe_thinking(prompt: Prompt) -> str | None:
    thinking = prompt.thinking
    if thinking.effort is not None:
        return thinking.effort
    return thinking.mode if thinking.budget is None else f"{thinking.budget} tokens"


def describe_usage(usage: Usage) -> Attributes:
    """The tokens, as far as they are known."""
    counts: Attributes = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.reasoning.output_tokens": usage.thinking,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_written,
        "asides.usage.cache_creation.hour.input_tokens": usage.cache_written_hour,
        "asides.usage.tool_requests": usage.tool_requests,
        "asides.usage.tier": None if usage.tier is None else shorten(usage.tier),
    }
    return {name: count for name, count in counts.items() if count is not None}


def describe_reply(reply: Reply) -> Attributes:
    """The tokens, the model and the outcome of a reply, or of the part of it that arrived."""
    attributes = describe_usage(reply.usage)
    if reply.model:
        attributes[RESPONSE_MODEL] = shorten(reply.model)
    if reply.id:
        attributes["gen_ai.response.id"] = shorten(reply.id)
    if reply.complete:
        attributes["gen_ai.response.finish_reasons"] = (reply.stop.reason,)
        attributes["asides.response.outcome"] = reply.outcome
    return attributes


def name_error(error: BaseException) -> str:
    """The type of an error: its class. Its message is left out, since it may quote content."""
    return type(error).__qualname__ if isinstance(error, AsidesError) else _name_class(type(error))


def _name_class(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def describe_error(error: BaseException) -> Attributes:
    """The type of an error, and the status of the response that it came with."""
    attributes: Attributes = {ERROR: name_error(error)}
    if isinstance(status := getattr(error, "status", None), int) and status:
        attributes[STATUS] = status
    return attributes


class ReplyClock:
    """When a reply began, by a clock that only goes forward. In seconds from the start of its span."""

    __slots__ = ("_began", "_now", "first")

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self.first: float | None = None
        """The seconds until the first events."""

    @property
    def elapsed(self) -> float:
        """The seconds until now."""
        return self._now() - self._began

    def stamp(self) -> None:
        """Note that the first events arrived."""
        self.first = self.elapsed

    def describe(self, reply: Reply) -> Attributes:
        """The times of a streamed reply; none of a whole one, which does not show when it began."""
        if self.first is None or not reply.streamed:
            return {}
        attributes: Attributes = {FIRST_CHUNK: self.first}
        timing = reply.timing
        if timing is not None and timing.first_event is not None:
            # `timing` counts from the start of the whole call, which may have asked other models before.
            before = timing.first_event - self.first
            for name, seconds in ((FIRST_THOUGHT, timing.first_thought), (FIRST_ANSWER, timing.first_word)):
                if seconds is not None:
                    attributes[name] = max(seconds - before, 0.0)
        return attributes
