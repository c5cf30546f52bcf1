"""The protocol of a dialect: the client half for the flows, the server half for the stage and the gateway.

Also the lazy objects that our dialects are (`make_lazy_dialect`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from asides.providers.provider import Target
from asides.values.errors import AsidesError, ProviderError
from asides.values.events import Event
from asides.values.messages import Prompt
from asides.values.notices import Notice

if TYPE_CHECKING:
    # A plain call loads nothing that lists models.
    from asides.values.model_info import ModelInfo, ModelPage


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
        return f"HttpRequest({self.method} {self.url.partition('?')[0]}, <{len(self.body)} bytes>)"


class Decoder(Protocol):
    """Bytes of one response in, events out. Any chunking gives the same events; `finish` is always called.

    Neither method raises: an error is put into `failure`, so that the events before it are never lost. A caller stops
    reading when `failure` is set, calls `finish`, uses those events too, and then raises the failure. A decoder may
    also have `done`, true once the server announced that nothing follows: the caller then does not wait for the
    connection to close; `reads_on`, true after a failure if counts may follow it: the caller then reads the rest; and
    `max_documents`, which the caller sets.
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
        """Add the next bytes; return every event they complete."""
        ...

    def finish(self) -> list[Event]:
        """Return the last events: no more bytes come. ReplyEnded is the very last, unless there is a failure."""
        ...


class Writer(Protocol):
    """Events of one reply in, bytes of a response out: the inverse of the decoder."""

    content_type: str

    def write(self, events: Iterable[Event]) -> bytes:
        """Write these events. A whole response appears with ReplyEnded."""
        ...


class ServedRequest(msgspec.Struct, frozen=True):
    """A request as the server half reads it."""

    prompt: Prompt
    model: str
    stream: bool
    include_usage: bool = False


class DialectFacts(msgspec.Struct, frozen=True):
    """The facts that a dialect declares about itself. A third-party dialect may have them as `facts`."""

    json_mode: bool = True
    """Whether a request can ask for JSON without a schema."""
    thinks_in_blocks: bool = False
    """Thinking goes back only as a block of this dialect. A thought of unknown origin that came in a field beside the
    answer, or in tags, was made elsewhere."""
    seal_kinds: tuple[str, ...] | None = None
    """The kinds of seals that are made in this dialect and in few others; None if not known."""
    refusals_as_text: bool = False
    """Whether a refusal goes back as text: its field exists at one host, and other hosts reject it."""
    tools_field: str = ""
    """The field of the tools, where a history with calls is refused without it."""
    forbids_calls: bool = True
    """Whether a request with tools can forbid calls (tool_choice "none")."""
    joins_turns: bool = False
    """Two messages of the model in a row are one on the wire, whose thoughts then are not those of one reply."""
    effort_updates: bool = False
    """Whether it has messages that change the effort inside a conversation."""
    returns_call_ids: bool = True
    """Whether clients give the ids of tool calls back: calls have ids here, and results name them."""
    pairs_by_turn: bool = False
    """Whether messages of the model in a row are one turn, whose results follow the last of them."""
    blank_texts: bool = False
    """Whether servers accept a message whose text is empty."""
    budget_below_limit: bool = True
    """Whether servers refuse a thinking budget that leaves nothing of the limit for the answer."""
    cache_since: str = ""
    """The date of what is known about the prompt caches of this dialect."""
    cache_source: str = ""


class Dialect(Protocol):
    """A wire language, both halves."""

    name: str

    def encode(self, prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
        """Encode a planned prompt for its target."""
        ...

    def decoder(self, target: Target) -> Decoder:
        """Make a decoder for one response."""
        ...

    def error(self, status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
        """Build the error for this response. Header names are in lower case."""
        ...

    def models_request(self, target: Target, after: str | None = None) -> HttpRequest:
        """Build the request for a page of the list of models; `after` comes from the page before. The target's model is
        ignored. Raises Unsupported if there is no list.
        """
        ...

    def read_models(self, body: bytes) -> ModelPage:
        """Read a page of the list. Raises ProtocolError if the body holds none."""
        ...

    def read(self, body: bytes, path: str = "") -> ServedRequest:
        """Server half: read a client's request as a prompt. Raises ConfigError with a message for the client. `path` is
        the path of the request, for the dialects that name the model there.
        """
        ...

    def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> Writer:
        """Server half: make a writer for one response."""
        ...

    def write_error(self, status: int, message: str, kind: str | None = None) -> bytes:
        """Server half: write an error body."""
        ...

    def write_models(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
        """Server half: write the page of the list that the query asks for."""
        ...

    # A dialect may also have `write_error_headers(status, kind) → dict[str, str]`, if its errors have headers.


class StagedDialect(Dialect, Protocol):
    """A third-party dialect that the offline stage can serve. It may also have a method `request_rules(secret)`, which
    returns the checks and signatures of its providers (testing/stage/rules), and a `plain_row`.
    """

    reply_paths: tuple[str, ...]
    """The ends of the paths for a reply: ("/talk",)."""
    list_paths: tuple[str, ...]
    """The ends of the paths for the list of models; () if there is no list."""


# --- our dialects, loaded on use --------------------------------------------------------------------------------------

# The decoder and the writer of each dialect.
_DECODER_AND_WRITER = {
    "anthropic": ("MessagesDecoder", "MessagesWriter"),
    "bedrock": ("ConverseDecoder", "ConverseWriter"),
    "cohere": ("ChatDecoder", "ChatWriter"),
    "gemini": ("ContentDecoder", "ContentWriter"),
    "ollama": ("ChatLineDecoder", "ChatLineWriter"),
    "openai_chat": ("ChatDecoder", "ChatWriter"),
    "openai_responses": ("ResponsesDecoder", "ResponsesWriter"),
}
_WITH_ERROR_HEADERS = ("anthropic", "bedrock")
_WRITES_ERRORS_LIKE = {"openai_responses": "openai_chat"}


class _Places(msgspec.Struct, frozen=True):
    """The place of each method of a dialect: "module:name", the module inside `asides.dialects`."""

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
    decoder, writer = _DECODER_AND_WRITER[dialect]
    models = f"model_lists:{dialect.upper()}"
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
        if method == "write_error_headers" and self.name in _WITH_ERROR_HEADERS:
            return getattr(import_module(f"asides.dialects.{self.name}.server.write_reply"), method)
        if method not in _Places.__struct_fields__:
            raise AttributeError(f"the dialect {self.name} has no {method}")
        module, _, name = getattr(_find_places(self.name), method).partition(":")
        found = attrgetter(name)(import_module(f"asides.dialects.{module}"))
        setattr(self, method, found)
        return found

    def __repr__(self) -> str:
        return f"<dialect {self.name}>"


def make_lazy_dialect(name: str, facts: DialectFacts) -> Dialect:
    """Make the dialect of this name, with its facts. None of its code is loaded yet."""
    return cast("Dialect", _LazyDialect(name, facts))
