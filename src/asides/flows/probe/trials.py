"""The requests of a probe: addresses to try, questions, a tool, and the second turn. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from asides.dialects import find_dialect, plain_row
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_headers, choose_credential_header, encode_json, join_url
from asides.providers.provider import ModelRule, Provider, Target
from asides.providers.quirks import OutputLimit
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, system, user
from asides.values.model_info import NO_CHAT
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool

Auth = Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "nothing"]

QUESTION = "What is 47 + 85?"
NEXT_QUESTION = "What is 23 + 9?"
TOOL_QUESTION = "What is the weather in Paris?"
TOOL = Tool(
    name="get_weather",
    description="Get the current weather",
    parameters={
        "type": "object",
        "properties": {"location": {"type": "string", "description": "City name"}},
        "required": ["location"],
    },
)
_TOOL_RESULT = "18 degrees, sunny"
_SYSTEM = "You are a careful assistant."
_SCHEMA = OutputSchema(
    "sum",
    {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    },
)

# In this order: the most common first.
DIALECTS = ("openai_chat", "anthropic", "openai_responses", "ollama", "gemini", "cohere", "bedrock")
_VERSION = re.compile(r"/v\d\w*\Z")
# The ends of addresses that people copy.
_ENDINGS = re.compile(
    r"(?:/chat/completions|/completions|/messages|/responses|/api/(?:chat|tags|generate|show)|/models(?:/[^/]+:\w+)?|/chat)"
    r"/?\Z"
)


_PATH_HINTS = (
    (r"/chat/completions/?\Z", "openai_chat"),
    (r"/responses/?\Z", "openai_responses"),
    (r"/messages/?\Z|/anthropic(?:/|\Z)", "anthropic"),
    (r"/v1(?:alpha|beta)\d*(?:/models[^/]*)?/?\Z|:\w+Content\Z", "gemini"),
    (r"/api/(?:chat|tags|generate|show)/?\Z", "ollama"),
    (r"/v2(?:/chat)?/?\Z", "cohere"),
)


class Setup(msgspec.Struct, frozen=True):
    """How requests are written: what is known so far about how the server takes them."""

    dialect: str
    base_url: str
    model: str
    query: tuple[tuple[str, str], ...] = ()
    auth: Auth | None = None
    """None: as the dialect usually has it."""
    output_limit: OutputLimit = "max_tokens"
    stream_usage: bool = True
    max_tokens: int = 512
    only_streams: bool = False
    """Whole replies are refused."""
    fields: dict[str, Any] = {}
    """The fields that make it think."""
    room: int = 0
    """Tokens that those fields need."""


def strip_ending(base_url: str) -> str:
    """The address without the end of an endpoint."""
    return _ENDINGS.sub("", base_url.rstrip("/"))


def order_dialects(base_url: str, hint: str | None) -> list[str]:
    """The dialects to try, the likeliest first: the one that the list of models shows, or the address."""
    path = urlsplit(base_url).path
    named = next((name for pattern, name in _PATH_HINTS if re.search(pattern, path)), None)
    first = [name for name in (hint, named) if name is not None][:1]
    return [*first, *(name for name in DIALECTS if name not in first)]


def list_addresses(dialect: str, base_url: str) -> list[str]:
    """The base URLs under which a dialect may answer, the likeliest first."""
    path = urlsplit(base_url).path
    bare = _VERSION.sub("", base_url)
    match dialect:
        case "openai_chat" | "openai_responses":
            return [base_url] if _VERSION.search(path) else _order(f"{base_url}/v1", base_url, first=not path)
        case "gemini":
            return [base_url] if re.search(r"/v1(?:alpha|beta)\w*\Z", path) else [f"{bare}/v1beta", base_url]
        case "cohere":
            return [bare]
        case _:
            return [base_url]


def _order(one: str, other: str, *, first: bool) -> list[str]:
    return [one, other] if first else [other, one]


def build_row(setup: Setup) -> Provider:
    """The plain row of the dialect at this address, as far as it is known how to write for it."""
    plain = plain_row(setup.dialect)
    quirks = msgspec.structs.replace(
        plain.quirks,
        output_limit=setup.output_limit,
        stream_usage=setup.stream_usage,
        auth=setup.auth or plain.quirks.auth,
    )
    return msgspec.structs.replace(plain, base_url=setup.base_url, quirks=quirks, query=setup.query, models=())


def build_list_request(setup: Setup) -> HttpRequest:
    """The request for the list of models."""
    target = Target(build_row(setup), "", setup.base_url)
    if setup.dialect == "openai_chat":
        headers = build_headers(target, "application/json")
        del headers["Content-Type"]
        url = join_url(target, f"{urlsplit(setup.base_url).path.rstrip('/')}/models")
        return HttpRequest("GET", url, headers, b"", choose_credential_header(target))
    return find_dialect(setup.dialect).models_request(target)


def build_question(
    setup: Setup,
    *,
    stream: bool = False,
    fields: dict[str, Any] | None = None,
    room: int = 0,
    tools: bool = False,
    role: Literal["system", "developer"] | None = None,
    output: bool = False,
    temperature: float | None = None,
) -> HttpRequest:
    """A small question. `fields` are merged into the body; `role` adds a message of the system in that role."""
    extra = dict(setup.fields if fields is None else fields)
    messages: tuple[Message, ...] = (user(TOOL_QUESTION if tools else QUESTION),)
    if role is not None:
        messages = (system(_SYSTEM), *messages)
    prompt = Prompt(
        messages,
        tools=(TOOL,) if tools else (),
        max_tokens=setup.max_tokens + (setup.room if fields is None else room),
        stream=stream or setup.only_streams,
        output=_SCHEMA if output else None,
        sampling=Sampling(temperature=temperature),
        extra=extra,
    )
    row = build_row(setup)
    if role is not None:
        row = msgspec.structs.replace(row, quirks=msgspec.structs.replace(row.quirks, system_role=role))
    return _encode(prompt, row, ModelRule(), setup)


def build_second_turn(
    setup: Setup, row: Provider, turn: Message, *, thinking: Literal["kept", "left_out", "altered"], tools: bool
) -> HttpRequest:
    """The turn after `turn`: the result of its calls, or the next question. `row` says how thinking goes back."""
    parts = turn.parts
    if thinking == "left_out":
        parts = tuple(part for part in parts if not isinstance(part, Thought))
    elif thinking == "altered":
        parts = tuple(_alter(part) if isinstance(part, Thought) else part for part in parts)
    if not parts:
        parts = (Text("132"),)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    results = tuple(ToolResult(call.id, _TOOL_RESULT, name=call.name) for call in calls)
    later = Message("tool", results) if results else user(NEXT_QUESTION)
    prompt = Prompt(
        (user(TOOL_QUESTION if tools else QUESTION), Message("assistant", parts), later),
        tools=(TOOL,) if tools else (),
        max_tokens=setup.max_tokens + setup.room,
        stream=setup.only_streams,
        extra=dict(setup.fields),
    )
    return _encode(prompt, row, row.rule(setup.model), setup)


def _alter(thought: Thought) -> Thought:
    """The thought as if edited: other words, and a seal that does not match."""
    seals = tuple(
        msgspec.structs.replace(seal, value=seal.value[::-1], entry=None if seal.entry is None else seal.entry)
        for seal in thought.seals
    )
    return msgspec.structs.replace(thought, text=f"{thought.text} (edited)", seals=seals)


def build_check(setup: Setup) -> HttpRequest:
    """An empty request. An existing endpoint refuses it, and it costs no tokens."""
    request = _encode(Prompt((user(QUESTION),), stream=False), build_row(setup), ModelRule(), setup)
    return msgspec.structs.replace(request, body=b"{}")


def _encode(prompt: Prompt, row: Provider, rule: ModelRule, setup: Setup) -> HttpRequest:
    # A rule without restrictions: the probe finds out what the server accepts.
    plain = msgspec.structs.replace(rule, forbids=(), refuses=())
    target = Target(row, setup.model, setup.base_url, plain)
    return find_dialect(setup.dialect).encode(prompt, target)[0]


def build_capabilities_request(setup: Setup) -> HttpRequest | None:
    """The request for a model's capabilities; None in dialects without one."""
    if setup.dialect != "ollama":
        return None
    request = build_check(setup)
    url = request.url.replace("/api/chat", "/api/show", 1)
    return msgspec.structs.replace(request, url=url, body=encode_json({"model": setup.model}))


# --- lists of models --------------------------------------------------------------------------------------------------


def read_list(document: Any) -> tuple[tuple[str, ...], str | None]:
    """The models of a list in any dialect, and the dialect of its form; ((), None) if it is not a list."""
    entries: Any = document
    if isinstance(document, dict):
        entries = next((document[name] for name in ("data", "models") if isinstance(document.get(name), list)), None)
    if not isinstance(entries, list):
        return (), None
    found = [entry for entry in entries if isinstance(entry, dict)]
    names = [next((entry[k] for k in ("id", "model", "name") if isinstance(entry.get(k), str)), "") for entry in found]
    names += [entry for entry in entries if isinstance(entry, str)]
    models = tuple(dict.fromkeys(name for name in names if name))
    return models, _guess_dialect(document, found)


def read_capabilities(document: Any) -> tuple[str, ...]:
    """The capabilities that a server reports: "completion", "tools", "thinking" …"""
    listed = document.get("capabilities") if isinstance(document, dict) else None
    return tuple(name for name in listed[:20] if isinstance(name, str)) if isinstance(listed, list) else ()


def _guess_dialect(document: Any, entries: Sequence[dict[str, Any]]) -> str | None:
    if not entries:
        return None
    first = entries[0]
    if str(first.get("name", "")).startswith("models/"):
        return "gemini"
    if "digest" in first or ("details" in first and "data" not in document):
        return "ollama"
    if first.get("type") == "model" and "display_name" in first:
        return "anthropic"
    return "cohere" if isinstance(first.get("endpoints"), list) and "name" in first else None


def choose_model(models: Sequence[str]) -> str | None:
    """The first chat model, or None."""
    return next((name for name in models if not NO_CHAT.search(name)), models[0] if models else None)
