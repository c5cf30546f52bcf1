"""The relay inside this process, for clients of other libraries: their requests in, exchanges out.

Requests that the relay has no endpoint for go to the home provider as they came.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, cast, get_args

import msgspec

from asides.database.postgres_url import is_postgres_url
from asides.dialects import plain_row
from asides.dialects.dialect import HttpRequest
from asides.flows.build_call import CallBuilder
from asides.flows.call import BareCall, CallLike, Policy
from asides.flows.retry import fetch_key
from asides.flows.steps import Emit, Flow, Open, Read
from asides.integrations.client_requests import (
    Home,
    check_options,
    find_base_path,
    find_home,
    read_key,
    read_timeout,
    select_own_headers,
    select_shared_headers,
)
from asides.options import Options, Timeout, merge_options
from asides.providers.credentials import KeySource, Secret, find_key
from asides.providers.find import find_host, find_row
from asides.providers.provider import LAUNCH_URL, Provider, Target
from asides.relay.endpoints import NoEndpoint, find_endpoint
from asides.relay.error_response import write_error_response
from asides.relay.relay import Relay, RelayConfig, find_no_call
from asides.relay.relay_request import RelayOutcome, RelayRequest, ResponseStart
from asides.relay.state.relay_keys import KEY_VARIABLE
from asides.relay.state.turn_state import StateMode
from asides.relay.steps import UnconfirmedRecord
from asides.relay.streams.relay_stream import Relayed
from asides.relay.streams.step_handlers import RecordStore
from asides.relay.vault.open_vault import OpenedVault, open_vault
from asides.settings import Settings
from asides.transports.protocols import AsyncTransport, Transport
from asides.values.errors import AsidesError, ConfigError, TransportError

AnyTransport = TypeVar("AnyTransport", Transport, AsyncTransport)


class RelayOptions(Options, total=False):
    """What `asides={…}` takes: every option of `ask`, as a default of each request, and what the relay itself needs."""

    providers: Sequence[Provider]
    """Your own rows."""
    settings: Settings
    """Replaces asides.toml and the environment."""
    tenant: str
    """Whose state it is, where one process serves several people. Tenants never get each other's."""
    vault: StateMode | str | os.PathLike[str] | OpenedVault
    """Where reasoning state is kept that the client drops: "memory" of this process (the default), "off", "carry-only",
    the path of a file, or the URL of a PostgreSQL database, which other machines may share."""
    relay_key: str
    """The master key that encrypts the state. The default is ASIDES_RELAY_KEY, else one of this process. A
    database needs one of the first two."""


# The client tries again by itself.
_DEFAULTS = Options(retries=0)
# Headers of a response that are about the connection to a server, which the client does not have.
_CONNECTION_HEADERS = frozenset({"connection", "content-length", "transfer-encoding", "content-encoding", "keep-alive"})


class ClientRequest(msgspec.Struct, frozen=True):
    """An HTTP request as a client sends it."""

    method: str
    origin: str
    """Scheme, host and port."""
    path: str
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    limits: Any
    """The client's timeouts: a mapping with connect and read."""

    def __repr__(self) -> str:
        return f"ClientRequest({self.method} {self.path}, <{len(self.body)} bytes>)"


class InProcessRelay:
    """Begins the requests of a client. Safe to use from many threads."""

    def __init__(self, options: RelayOptions | Mapping[str, Any] | None = None) -> None:
        given: dict[str, Any] = dict(options or {})
        providers = given.pop("providers", None) or ()
        settings = given.pop("settings", None)
        self._tenant = str(given.pop("tenant", None) or "")
        self._vault = _open_vault(given.pop("vault", None), given.pop("relay_key", None))
        self._options = merge_options(_DEFAULTS, check_options(given))
        self._builder = CallBuilder(Options(), providers=providers, settings=settings)
        self._homes: dict[tuple[str, str], Home] = {}
        self._relays: dict[tuple[str, str, str | None, Timeout], Relay] = {}
        self._lock = threading.Lock()

    @property
    def records(self) -> RecordStore | None:
        """The store of reasoning state."""
        return self._vault.store

    def begin(self, request: ClientRequest) -> Relayed:
        """Begin a request. Nothing is sent yet, and what is wrong with it becomes an error response."""
        try:
            endpoint = find_endpoint(request.method, request.path, request.query, request.headers)
            # A client in this process asks its own host for what is not a reply.
            dialect, is_served = endpoint.dialect, endpoint.action != "pass_through"
        except NoEndpoint as problem:
            dialect, is_served = problem.dialect, bool(problem.allowed)
        try:
            timeout = read_timeout(request.limits)
            if not is_served:
                return self._forward(request, dialect, timeout)
            return self._relay(request, dialect, timeout)
        except AsidesError as error:
            return Answered(dialect, error)

    def add_headers(self, request: ClientRequest, transport: AnyTransport) -> AnyTransport:
        """The transport for a request: the headers of the program itself go to its home, as ever."""
        own = select_own_headers(request.headers)
        # A client may send a token where the provider's row has a key: it knows which of them it was given.
        bearer = request.headers.get("authorization", "")
        if not own and "anthropic-version" not in request.headers:
            return transport
        return cast("AnyTransport", _HeaderTransport(transport, f"{request.origin}/", own, bearer))

    def _relay(self, request: ClientRequest, dialect: str, timeout: Timeout) -> Relayed:
        relay = self._find_relay(
            request.origin + find_base_path(request.path), dialect, read_key(request.headers), timeout
        )
        headers = select_shared_headers(request.headers)
        relayed = RelayRequest(
            dialect, request.method, request.path, request.query, headers, request.body, self._tenant
        )
        return relay.begin(relayed)

    def _find_relay(self, address: str, dialect: str, key: str | None, timeout: Timeout) -> Relay:
        """The relay for a home, the key of a client, and its limits: clients send many requests with the same."""
        kind = (address, dialect, key, timeout)
        known = self._relays.get(kind)
        if known is None:
            known = self._build_relay(address, dialect, key, timeout)
            with self._lock:
                if len(self._relays) >= _MOST_RELAYS:
                    self._relays.clear()
                self._relays[kind] = known
        return known

    def _build_relay(self, address: str, dialect: str, key: str | None, timeout: Timeout) -> Relay:
        home = self._find_home(address, dialect)
        config = RelayConfig(
            home=home.provider,
            home_options=home.options(key),
            options=merge_options(Options(timeout=timeout), self._options),
            sink="app",
            reports_cuts=False,
            trusts_callers=True,
            keys=self._vault.keys,
            state_mode=self._vault.mode,
        )
        return Relay(self._builder, config)

    def _find_home(self, address: str, dialect: str) -> Home:
        known = self._homes.get((address, dialect))
        if known is None:
            known = find_home(address, dialect, self._builder.rows)
            with self._lock:
                if len(self._homes) >= _MOST_HOMES:
                    self._homes.clear()
                self._homes[address, dialect] = known
        return known

    def _forward(self, request: ClientRequest, dialect: str, timeout: Timeout) -> Forwarded:
        """The request to the home as it came."""
        home = self._find_home(request.origin, dialect)
        self._check_model(request, home)
        target = find_host(home.provider, base_url=home.base_url, rows=self._builder.rows)
        key = find_key(target.provider, read_key(request.headers), base_url=target.base_url)
        return Forwarded(request, target, key, timeout)

    def _check_model(self, request: ClientRequest, home: Home) -> None:
        """Raise if the request names a model of another provider, which has no such endpoint here."""
        model = _read_model(request.body)
        name, colon, _ = model.partition(":")
        row = find_row(name, self._builder.rows) if colon else None
        if row is not None and row is not find_row(home.provider, self._builder.rows):
            raise ConfigError(
                f"{request.path} is not relayed to other providers, and the model names {row.name}. Use chat "
                f"completions, Responses or Messages, or a model of {home.provider}."
            )


_MOST_HOMES = 64
# Few: a key that a client has replaced must not stay.
_MOST_RELAYS = 8


def _read_model(body: bytes) -> str:
    if not body.startswith(b"{"):
        return ""
    try:
        model = msgspec.json.decode(body, type=_ModelField).model
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return model if isinstance(model, str) else ""


class _ModelField(msgspec.Struct):
    model: Any = ""


class _HeaderTransport:
    """A transport that adds headers to the requests to one server. It serves blocking and awaiting clients."""

    def __init__(self, transport: Any, origin: str, headers: dict[str, str], bearer: str) -> None:
        self._transport = transport
        self._origin = origin
        self._headers = headers
        self._bearer = bearer

    def open(self, request: HttpRequest, timeout: Timeout) -> Any:
        if request.url.startswith(self._origin):
            headers = {name.lower(): value for name, value in request.headers.items()}
            if self._bearer and f"Bearer {headers.get('x-api-key')}" == self._bearer:
                headers["authorization"] = self._bearer
                del headers["x-api-key"]
            request = msgspec.structs.replace(request, headers={**self._headers, **headers})
        return self._transport.open(request, timeout)

    def close(self) -> Any:
        return self._transport.close()


# --- requests that the relay has no endpoint for -----------------------------------------------------------------


class Forwarded:
    """A request passed unchanged to the home provider, with its key. The response is passed back unchanged."""

    def __init__(self, request: ClientRequest, target: Target, key: Secret | None, timeout: Timeout) -> None:
        self.call: CallLike = BareCall(target, Policy(timeout=timeout), key)
        self.unconfirmed: list[UnconfirmedRecord] = []
        self._dialect = plain_row(target.dialect).dialect
        query = f"?{request.query}" if request.query else ""
        headers = select_shared_headers(request.headers)
        origin = LAUNCH_URL if target.launches else request.origin
        credential = None if target.quirks.auth == "nothing" else _name_credential(request.headers)
        self._request = HttpRequest(request.method, f"{origin}{request.path}{query}", headers, request.body, credential)

    def steps(self) -> Flow[RelayOutcome]:
        """The flow."""
        try:
            if isinstance(self.call.key, KeySource):
                yield from fetch_key(self.call.key)
            head = yield Open(self._request)
            headers = {name: value for name, value in head.headers.items() if name not in _CONNECTION_HEADERS}
            yield Emit([ResponseStart(head.status, headers)])
        except AsidesError as error:
            return (yield from Answered(self._dialect, error).steps())
        try:
            while data := (yield Read()):
                yield Emit([data])
        except TransportError as error:
            return RelayOutcome(head.status, "forward", error=error, passed=True)
        return RelayOutcome(head.status, "forward", passed=True)


def _name_credential(headers: dict[str, str]) -> tuple[str, str]:
    """The header in which the client sent its key."""
    return ("x-api-key", "") if "x-api-key" in headers else ("Authorization", "Bearer ")


class Answered:
    """A request that is answered with an error, before anything is sent."""

    def __init__(self, dialect: str, error: AsidesError) -> None:
        self.call: CallLike = find_no_call(dialect)
        self.unconfirmed: list[UnconfirmedRecord] = []
        self._response = write_error_response(error, dialect)
        self._error = error

    def steps(self) -> Flow[RelayOutcome]:
        """The flow."""
        response = self._response
        yield Emit([ResponseStart(response.status, response.headers), response.body])
        return RelayOutcome(response.status, "own", error=self._error)


# --- the vault --------------------------------------------------------------------------------------------------------


@cache
def _get_shared_vault() -> OpenedVault:
    """The vault in the memory of this process. Programs make clients as they need them, and all find their state."""
    return open_vault("memory")


@cache
def _get_vault_at(url: str, key: Any, variable: str | None) -> OpenedVault:
    """The vault in a database. Its connections are for all clients of this process that use it with one key."""
    return open_vault("store", url, key=key, environ={} if variable is None else {KEY_VARIABLE: variable})


_PATH_MARKS = frozenset("./\\")


def _open_vault(vault: Any, key: Any) -> OpenedVault:
    if isinstance(vault, OpenedVault):
        return vault
    if key is None and vault in (None, "memory"):
        return _get_shared_vault()
    if vault is None or vault in get_args(StateMode):
        return open_vault(vault or "memory", key=key)
    if is_postgres_url(vault):
        return _get_vault_at(vault, key, os.environ.get(KEY_VARIABLE))
    if isinstance(vault, str) and not _PATH_MARKS.intersection(vault):
        # A misspelt word must not create a file.
        raise ConfigError(
            f"vault={vault!r} is not a place for reasoning state. Use memory, off, carry-only, or the path of a "
            f"file, such as ./{vault or 'vault'}."
        )
    return open_vault("store", vault, key=key)
