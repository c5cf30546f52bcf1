"""What a dialect is: the Protocol that the flows use on one side, and the stage and the gateway on the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any, Protocol, cast

import msgspec

from asides.providers.provider import Target
from asides.values.errors import AsidesError, ProviderError
from asides.values.events import Event
from asides.values.messages import Prompt
from asides.values.model_info import ModelInfo, ModelPage
from asides.values.notices import Notice


class HttpRequest(msgspec.Struct, frozen=True):
    """A request, ready to be sent. The transport adds the credential and the connection."""

    method: str
    url: str
    headers: dict[str, str]
    """Without the credential, which `credential_header` names."""
    body: bytes
    credential_header: tuple[str, str] | None = None
    """The header and the prefix that carry the key: ("Authorization", "Bearer ")."""
    direct: bool = False
    """Never through a proxy: the server is a child of this process."""

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {self.url}, <{len(self.body)} bytes>)"


class Decoder(Protocol):
    """Bytes of one response in, events out. Any chunking gives the same events; `finish` is always called.

    Neither method raises: what went wrong stands in `failure`, so that the events before it are never lost. A caller
    stops reading when it appears, calls `finish`, takes those events too, and then raises it. A decoder may also have
    `done`, true once the server announced that nothing follows: the caller then does not wait for it to hang up.
    """

    payloads: list[bytes]
    """The JSON documents read so far."""
    failure: AsidesError | None
    """Set when the server sent an error, its bytes broke the dialect, or (by `finish`) the reply was not whole."""

    @property
    def streamed(self) -> bool:
        """Whether the documents came as a stream."""
        ...

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes; return every event they complete."""
        ...

    def finish(self) -> list[Event]:
        """The end of the bytes: the last events; ReplyEnded is the very last, unless there is a failure."""
        ...


class Writer(Protocol):
    """Events of one reply in, bytes of a response out: the inverse of the decoder."""

    content_type: str

    def write(self, events: Iterable[Event]) -> bytes:
        """The bytes for these events; a whole response appears with ReplyEnded."""
        ...


class ServedRequest(msgspec.Struct, frozen=True):
    """A request as the server half reads it."""

    prompt: Prompt
    model: str
    stream: bool
    include_usage: bool = False


class DialectFacts(msgspec.Struct, frozen=True):
    """What a dialect declares about itself. A third-party dialect may have it as `facts`."""

    json_mode: bool = True
    """Whether a request can ask for JSON without a schema."""
    seal_kinds: tuple[str, ...] | None = None
    """The kinds of seals that are made in this dialect and in few others; None: not known."""
    refusals_as_text: bool = False
    """Whether a refusal goes back as text. The maker of the dialect has a field for it, which other hosts reject."""


class Dialect(Protocol):
    """A wire language, both halves."""

    name: str

    def encode(self, prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
        """Encode a planned prompt for its target."""
        ...

    def decoder(self, target: Target) -> Decoder:
        """A fresh decoder for one response."""
        ...

    def error(self, status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
        """The error that this response is. Header names are in lower case."""
        ...

    def models_request(self, target: Target, after: str | None = None) -> HttpRequest:
        """The request for a page of the list of models; `after` comes from the page before. The target's model means
        nothing. Raises Unsupported where there is no list.
        """
        ...

    def read_models(self, body: bytes) -> ModelPage:
        """The page of the list in these bytes. Raises ProtocolError where they hold none."""
        ...

    def read(self, body: bytes, path: str = "") -> ServedRequest:
        """Server half: a client's request as a prompt. Raises ConfigError with a message for the client. `path` is
        the path of the request, for the dialects that name the model there.
        """
        ...

    def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> Writer:
        """Server half: a fresh writer for one response."""
        ...

    def write_error(self, status: int, message: str, kind: str | None = None) -> bytes:
        """Server half: an error body."""
        ...

    def write_models(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
        """Server half: the page of the list that the query asks for."""
        ...


class StagedDialect(Dialect, Protocol):
    """A dialect that is not ours, with what the offline stage needs to serve it. It may also have a method
    `request_rules(secret)`, which gives what its providers check and sign (testing/stage/rules), and a `plain_row`.
    """

    reply_paths: tuple[str, ...]
    """The ends of the paths at which a reply is asked for: ("/talk",)."""
    list_paths: tuple[str, ...]
    """The ends of the paths at which the models are listed; () where there is no list."""


# The decoder and the writer of each dialect.
_OWN_NAMES = {
    "anthropic": ("MessagesDecoder", "MessagesWriter"),
    "bedrock": ("ConverseDecoder", "ConverseWriter"),
    "cohere": ("ChatDecoder", "ChatWriter"),
    "gemini": ("ContentDecoder", "ContentWriter"),
    "ollama": ("ChatLineDecoder", "ChatLineWriter"),
    "openai_chat": ("ChatDecoder", "ChatWriter"),
    "openai_responses": ("ResponsesDecoder", "ResponsesWriter"),
}
_WRITES_ERRORS_LIKE = {"openai_responses": "openai_chat"}


class _Places(msgspec.Struct, frozen=True):
    """Where the methods of a dialect are: "module:name", the module inside `asides.dialects`."""

    encode: str
    decoder: str
    error: str
    models_request: str
    read_models: str
    read: str
    writer: str
    write_error: str
    write_models: str


def _find_places(dialect: str) -> _Places:
    decoder, writer = _OWN_NAMES[dialect]
    models = f"model_list_formats:{dialect.upper()}"
    return _Places(
        encode=f"{dialect}.encode:encode",
        decoder=f"{dialect}.decode:{decoder}",
        error=f"{dialect}.wire:decode_error",
        models_request=f"{models}.build_request",
        read_models=f"{models}.read_page",
        read=f"{dialect}.server.read_request:read",
        writer=f"{dialect}.server.write_reply:{writer}",
        write_error=f"{_WRITES_ERRORS_LIKE.get(dialect, dialect)}.server.write_reply:write_error",
        write_models=f"{models}.write_page",
    )


class _LazyDialect:
    """A dialect whose methods become attributes when they are first used, so that a later call costs nothing more."""

    def __init__(self, name: str, facts: DialectFacts) -> None:
        self.name = name
        self.facts = facts

    def __getattr__(self, method: str) -> Any:
        if method not in _Places.__struct_fields__:
            raise AttributeError(f"the dialect {self.name} has no {method}")
        module, _, name = getattr(_find_places(self.name), method).partition(":")
        found = attrgetter(name)(import_module(f"asides.dialects.{module}"))
        setattr(self, method, found)
        return found

    def __repr__(self) -> str:
        return f"<dialect {self.name}>"


def lazy_dialect(name: str, facts: DialectFacts) -> Dialect:
    """The dialect of this name, with what it declares about itself. Nothing of its code is loaded yet."""
    return cast("Dialect", _LazyDialect(name, facts))
