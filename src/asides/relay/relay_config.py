"""The settings of a relay, and the caller's side of one request: `Caller`.

Not here: what a caller may set in a request (request_options).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import msgspec

from asides.options import Options
from asides.relay.endpoints import Endpoint, name_request_id_header
from asides.relay.relay_request import RelayRequest, ResponseStart
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import StateMode
from asides.values.notices import Notice
from asides.values.visibility import Sink

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder
    from asides.relay.observer import RelayObserver

ThinkingField = Literal["reasoning_content", "reasoning", "thinking", "reasoning_details"]

NOTICE_HEADER = "x-asides-notice"
STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Headers of a stream: no proxy on the way keeps it, or holds it back."""
_MOST_NOTICES = 20
_MOST_CHARACTERS = 1000


class RelayConfig(msgspec.Struct, frozen=True):
    """The settings of a relay."""

    home: str = ""
    """The provider of a model that is named without one; "": the maker of the caller's dialect."""
    home_options: Options = msgspec.field(default_factory=Options)
    """Options of the calls to `home` alone: its key and its address, which belong to no other provider."""
    options: Options = msgspec.field(default_factory=Options)
    """Options of every call. Those of a request win."""
    forwards: bool = True
    """Whether requests may be forwarded as they are, where nothing has to be translated."""
    sink: Sink = "app"
    """Whose visibility holds for thinking: "app" for clients in this program, "gateway" for those of a server."""
    reports_cuts: bool = True
    """Whether a forwarded stream that breaks off ends with an error of its dialect. In process the caller gets an
    exception instead, as from the connection that broke."""
    trusts_callers: bool = False
    """Whether a request may name the address and the key of a provider, and its organisation. In process it may."""
    thinking_field: ThinkingField = "reasoning_content"
    """The field for thinking in chat completions, whatever the provider called it."""
    keys: RelayKeys | None = None
    """What encrypts the state of callers; None: a key of this process, whose state ends with it."""
    state_mode: StateMode = "carry-only"
    """Where reasoning state is kept. "memory" and "store" need a store of records beside the transport."""
    lists_home: bool = True
    """Whether lists of models hold those of the home provider too, which takes a request."""
    lists_providers: bool = False
    """Whether lists of a relay without a home ask each provider that has a key, which takes time. Else they hold the
    models that our table knows by name."""
    fallback_model: str = ""
    """The model that answers for names which no provider with a key has; "": such a request fails."""
    stores_responses: bool = True
    """Whether responses can be continued with `previous_response_id`, unless their request says `store: false`."""


class OptionLayers(msgspec.Struct, frozen=True):
    """What a relay and one of its routes say about every request, merged once."""

    options: Options
    """Without those of the settings, which reach each call by themselves."""
    of_prompt: frozenset[str]
    """Those, with the settings', that a request may say something else about."""


class Caller:
    """The caller's side of one request: what it asks for, and the head of its response, which leaves once."""

    def __init__(
        self,
        request: RelayRequest,
        endpoint: Endpoint,
        builder: CallBuilder,
        config: RelayConfig,
        layers: dict[str, OptionLayers] | None = None,
        observer: RelayObserver | None = None,
    ) -> None:
        """`layers`: by the names of routes, what earlier requests have merged."""
        self.observer = observer
        self.request = request
        self.layers: dict[str, OptionLayers] = {} if layers is None else layers
        self.endpoint = endpoint
        self.builder = builder
        self.config = config
        self.started = False
        """Whether the head has left. After that no other target is asked."""
        self.notices: list[Notice] = []
        """What there is to tell beside the notices of the reply."""

    @property
    def dialect(self) -> str:
        """The dialect of the response."""
        return self.endpoint.dialect

    def start(self, status: int, headers: dict[str, str], notices: Iterable[Notice] = ()) -> list[ResponseStart]:
        """The head of the response, if it has not left yet: its headers, and one with the notices so far."""
        if self.started:
            return []
        self.started = True
        name = name_request_id_header(self.dialect)
        own = {} if name in headers else {name: f"req_{uuid4().hex}"}
        if codes := write_codes([*self.notices, *notices]):
            own[NOTICE_HEADER] = codes
        return [ResponseStart(status, {**own, **headers})]


def write_codes(notices: Iterable[Notice]) -> str:
    """The value of the header that tells of notices: their codes, each once, with the setting that they are about."""
    codes = [f"{notice.code};{notice.setting}" if notice.setting else notice.code for notice in notices]
    clean = [code for code in dict.fromkeys(codes) if code.isascii() and code.isprintable()]
    return ", ".join(clean[:_MOST_NOTICES])[:_MOST_CHARACTERS]
