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
    `max_documents`, which the caller sets; and `end_body`, `continuation` and `resume`, for replies that take several
    requests.
    """

    payloads: list[bytes]
    """The JSON documents read so far."""
    failure: AsidesError | None
    """Set when the server sent an error, its bytes broke the dialect, or (by `finish`) the reply was not whole."""

    @property
    def streamed(self) -> bool:
        """Whether the documents arrived as a stream."""
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
    seals_are_bytes: bool = False
    """Whether the fields of seals hold bytes, written as base64."""
    refusals_as_text: bool = False
    """Whether a refusal is sent back as text: its field exists at one host, and other hosts reject it."""
    tools_field: str = ""
    """The field of the tools, where a history with calls is refused without it."""
    forbids_calls: bool = True
    """Whether a request with tools can forbid calls (tool_choice "none")."""
    joins_turns: bool = False
    """Consecutive assistant messages are joined on the wire, so a message may have thoughts of several replies."""
    effort_updates: bool = False
    """Whether it has messages that change the effort inside a conversation."""
    returns_call_ids: bool = True
    """Whether clients give the ids of tool calls back: calls have ids here, and results name them."""
    reply_paths: tuple[str, ...] = ()
    """The ends of the paths for a reply. (A third-party dialect has them as an attribute of its own.)"""
    path_mark: str = ""
    """A pattern of its other paths, which no other dialect uses."""
    request_fields: tuple[str, ...] = ()
    """The fields of a request, as its hosts spell them."""
    untranslatable: tuple[str, ...] = ()
    """The fields of a request that only a provider of this dialect can act on: a relay translates none that has one."""
    routing_fields: tuple[str, ...] = ()
    """The fields that concern only how the provider stores, routes or bills a request."""
    stored_as: str = ""
    """What servers call a reply that they store, as "response"; "" where they store none. The fields and the paths for
    stored replies are named after it: `previous_response_id`, `/responses/{id}`."""
    unknown_previous: str = "Previous response with id '{id}' not found."
    """The server's message about an unknown previous reply."""
    pairs_by_turn: bool = False
    """Whether messages of the model in a row are one turn, whose results follow the last of them."""
    blank_texts: bool = False
    """Whether servers accept a message whose text is empty."""
    budget_below_limit: bool = True
    """Whether servers refuse a thinking budget that leaves nothing of the limit for the answer."""
    cache_since: str = ""
    """The date of the facts about the prompt caches of this dialect."""
    cache_source: str = ""

    @property
    def previous_field(self) -> str:
        """The field of a request that names the stored reply it continues; "" where servers store none."""
        return f"previous_{self.stored_as}_id" if self.stored_as else ""


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
        """Read a page of the list. Raises ProtocolError if the body is not one."""
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


class DialectCode(msgspec.Struct, frozen=True):
    """The names of the code of one of our dialects that are not the same in all of them."""

    decoder: str
    """The class in its module `decode`."""
    writer: str
    """The class in `server.write_reply`."""
    importer: str = ""
    """The function that reads a history in this format, as "module:name" in the folder; "": its server half does."""
    lists: str = ""
    """The dialect whose lists of models it has; "": its own."""
    errors: str = ""
    """The dialect whose `write_error` it has; "": its own."""
    error_headers: bool = False
    """Whether its errors have headers."""


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
    write_error_headers: str = ""
    import_history: str = ""
    """Of some dialects, beside the protocol: reads a list of messages, as clients write it."""


def _find_places(dialect: str, code: DialectCode) -> _Places:
    models = f"model_lists:{(code.lists or dialect).upper()}"
    return _Places(
        encode=f"{dialect}.encode:encode",
        decoder=f"{dialect}.decode:{code.decoder}",
        error=f"{dialect}.wire:decode_error",
        models_request=f"{models}.build_request",
        read_models=f"{models}.read_page",
        read=f"{dialect}.server.read_request:read",
        writer=f"{dialect}.server.write_reply:{code.writer}",
        write_error=f"{code.errors or dialect}.server.write_reply:write_error",
        write_models=f"{models}.write_page",
        write_error_headers=f"{dialect}.server.write_reply:write_error_headers" if code.error_headers else "",
        import_history=f"{dialect}.{code.importer}" if code.importer else "",
    )


class _LazyDialect:
    """A dialect whose methods become attributes when they are first used, so that a later call costs nothing more."""

    def __init__(self, name: str, facts: DialectFacts, code: DialectCode) -> None:
        self.name = name
        self.facts = facts
        self._code = code

    def __getattr__(self, method: str) -> Any:
        place = getattr(_find_places(self.name, self._code), method, "") if method in _Places.__struct_fields__ else ""
        if not place:
            raise AttributeError(f"the dialect {self.name} has no {method}")
        module, _, name = place.partition(":")
        found = attrgetter(name)(import_module(f"asides.dialects.{module}"))
        setattr(self, method, found)
        return found

    def __repr__(self) -> str:
        return f"<dialect {self.name}>"


def make_lazy_dialect(name: str, facts: DialectFacts, code: DialectCode) -> Dialect:
    """Make the dialect of this name, with its facts. None of its code is loaded yet."""
    return cast("Dialect", _LazyDialect(name, facts, code))
