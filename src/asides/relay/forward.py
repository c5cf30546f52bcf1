"""Forward a request: its bytes go out as they came, and the provider's response comes back as it is.

Only the model's name changes, and the credential. A decoder reads along, for usage, thinking and the record of the
turn. A refusal that an ordinary exchange may repair begins one, with plan and repairs; if that is refused too, the
caller gets the first refusal as it came. Any other status that tells of a failure goes to the caller, who tries again
itself; only a connection that fails before the head of a response is tried again here, as the policy says.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.dialects.http_body import build_headers, choose_credential_header, join_url
from asides.flows.call import BareCall, Call, CallLike, read_policy
from asides.flows.exchange import RefusedBody, ResponseReader
from asides.flows.retry import ERROR_BODY_LIMIT, NO_HEAD, clean_error, decode_error, fetch_key, wait_before_next
from asides.flows.steps import Emit, Flow, Head, Now, Open, Read, Sleep, UseCall, traced
from asides.options import CallOptions
from asides.providers.credentials import KeySource, collect_secrets, find_key
from asides.providers.find import find_host, find_row
from asides.providers.provider import Target
from asides.providers.refusals import find_other_kind, read_rejection
from asides.relay.relay_config import STREAM_HEADERS, Caller
from asides.relay.relay_request import RelayOutcome
from asides.relay.splice_body import splice_body
from asides.relay.whole_events import EventSplitter, find_splitter
from asides.values.errors import (
    AsidesError,
    AuthError,
    NotFound,
    ProtocolError,
    ProviderError,
    ReplayRejected,
    TransportError,
)
from asides.values.events import Event, ReplyStarted, Warned
from asides.values.messages import Prompt, user
from asides.values.notices import Notice
from asides.values.redaction import Redact, build_redactor, redact_bytes
from asides.values.reply import Reply

if TYPE_CHECKING:
    from asides.relay.translate.translated_exchange import TranslatedExchange

# Headers of the caller that stay behind: of the connection, of its credentials, and of its browser or proxies.
_DROPPED_HEADERS = frozenset(
    """
    host content-length connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade expect accept-encoding content-encoding content-md5 digest
    authorization x-api-key api-key x-goog-api-key x-goog-user-project cookie cookie2
    origin referer via forwarded x-real-ip accept-language dnt priority
    """.split()
)
# Credentials under any other name: of a proxy between, of another service, of a company's login.
_CREDENTIAL = re.compile(r"(?<!idempotency-)key|token|secret|auth|passw|cred|jwt|bearer")
_OF_TRACES = ("traceparent", "tracestate", "baggage", "b3", "x-b3-", "uber-", "x-cloud-trace", "x-datadog-", "sentry-")
_DROPPED_PREFIXES = ("x-forwarded-", "sec-", "cf-", "x-asides-", "x-amz-", "proxy-", "cdn-", "x-envoy-", *_OF_TRACES)
_OF_ACCOUNT = ("openai-organization", "openai-project", "chatgpt-account-id")
# All that a tenant may send with a key that is not its own: what describes its client, its session and the form of the
# reply. Any other header may choose an account, an address or a method at a host that we do not know. Seen of clients
# until 2026-11.
_TENANT_HEADERS = frozenset(
    """
    user-agent accept content-type idempotency-key x-client-request-id x-request-id originator x-app x-title
    http-referer session-id session_id x-session-id x-session-affinity thread-id x-grok-conv-id x-server-timeout
    anthropic-version anthropic-beta anthropic-dangerous-direct-browser-access openai-beta x-goog-api-client
    """.split()
)
_TENANT_PREFIXES = ("x-stainless-", "x-codex-", "x-claude-code-")
# Headers of the provider that the caller gets: what names, limits and explains a request, and nothing of the account.
_RETURNED = (
    *("content-type", "request-id", "x-request-id", "retry-after", "x-should-retry", "x-ratelimit-", "ratelimit"),
    *("anthropic-", "openai-", "x-amzn-", "x-goog-", "cohere-", "x-api-", "num_", "x-trial-", "warning", "x-endpoint-"),
)
_OF_PROVIDER_ACCOUNT = ("organization", "project", "account", "cookie", "-key")
# What a header may be called and may hold (RFC 9110). A line break in one would begin another.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_USUAL_NAME = 64
"""The longest name of a header about which a decision is kept."""
# Parameters of the query that have a meaning. Keys, above all, have none here.
_QUERY = frozenset({"alt", "beta", "$alt", "prettyPrint", "fields"})
# Of these, those that choose a form, and the forms that we read.
_FORMS = ("alt", "$alt", "fields")
_READ_FORM = re.compile(r"(?:json|sse)(?:;enum-encoding=int)?$")
# Those of requests about a stored response.
_STORED_QUERY = frozenset(
    {"include", "include[]", "stream", "starting_after", "include_obfuscation", "limit", "order", "after", "before"}
)
_RESPONSE_ID = re.compile(r"[A-Za-z0-9_-]+")
_MOST_ERROR_BYTES, _MOST_STORED_BYTES = 16 * 1024 * 1024, 256 * 1024 * 1024
_NAMES_MODEL_IN_PATH = ("gemini", "bedrock")

Record = Callable[[Reply], Flow[None]]
"""Stores what has to be kept of a complete reply."""
Repair = Callable[[RefusedBody], "TranslatedExchange | None"]
"""Begins the exchange that repairs a refused request; None if the request cannot be read or written."""
Claim = Callable[[str], Flow[None]]
"""Records whose the reply of this id is, which its provider stores."""


def build_forward_request(call: Call, caller: Caller, stream: bool, drop: tuple[str, ...] = ()) -> HttpRequest | None:
    """The request as it goes to the provider; None if its bytes cannot be kept."""
    target = call.target
    model = None if target.dialect in _NAMES_MODEL_IN_PATH else target.model
    body = splice_body(caller.request.body, model, drop)
    if body is None:
        return None
    # The address, the row's headers and the place of the key are those of any request to this target.
    known = caller.known_calls
    make = partial(_make_template, target, stream)
    template = make() if known is None else known.find_fact(target, ("template", stream), make)
    headers = {**template.headers}
    ours = {name.lower(): name for name in headers}
    trusted, is_tenant = caller.config.trusts_callers, bool(caller.request.tenant)
    for name, value in select_request_headers(caller.request.headers, trusted=trusted, is_tenant=is_tenant).items():
        headers[ours.get(name, name)] = value
    query = caller.endpoint.query if not is_tenant else _select_tenant_query(caller.endpoint.query)
    url = _merge_query(template.url, query)
    return HttpRequest("POST", url, headers, body, template.credential_header, template.direct)


def _make_template(target: Target, stream: bool) -> HttpRequest:
    return find_dialect(target.dialect).encode(Prompt((user("."),), stream=stream, max_tokens=1), target)[0]


def select_request_headers(headers: Mapping[str, str], *, trusted: bool, is_tenant: bool = False) -> dict[str, str]:
    """The headers of the caller that go to the provider, without those of the connection and keys; of a tenant, only
    those on a list.
    """
    return {
        name: value
        for name, value in headers.items()
        if (_may_leave if len(name) <= _USUAL_NAME else _may_leave.__wrapped__)(name, trusted, is_tenant)
        and _VALUE.fullmatch(value)
    }


@lru_cache(maxsize=512)
def _may_leave(name: str, trusted: bool, is_tenant: bool) -> bool:
    """Whether a header of a caller goes to the provider, by its name."""
    if is_tenant and name not in _TENANT_HEADERS and not name.startswith(_TENANT_PREFIXES):
        return False
    return (
        name not in _DROPPED_HEADERS
        and not name.startswith(_DROPPED_PREFIXES)
        and (trusted or (name not in _OF_ACCOUNT and _CREDENTIAL.search(name) is None))
        and _NAME.fullmatch(name) is not None
    )


def select_response_headers(headers: Mapping[str, str], redact: Redact = str) -> dict[str, str]:
    """The headers of the provider that go to the caller."""
    return {
        name: redact(value)
        for name, value in headers.items()
        if name.startswith(_RETURNED) and not any(word in name for word in _OF_PROVIDER_ACCOUNT)
    }


def _merge_query(url: str, query: Mapping[str, str]) -> str:
    """The address with the parameters of the caller that have a meaning, and `alt` only if the caller has it."""
    if not query and "?" not in url:
        return url
    parts = urlsplit(url)
    own = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "alt"]
    given = [(name, value) for name, value in query.items() if name in _QUERY]
    return urlunsplit(parts._replace(query=urlencode([*own, *given])))


def _select_tenant_query(query: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a tenant: without those that take the usage out of the reply, or write it in another form."""
    return {name: value for name, value in query.items() if name not in _FORMS or _READ_FORM.match(value)}


def return_response(
    caller: Caller,
    call: CallLike,
    request: HttpRequest,
    *,
    replaces: Callable[[Head], AsidesError | None] = lambda _: None,
) -> Flow[RelayOutcome]:
    """Send a request that asks for no reply, and hand its response to the caller as it is. `replaces`: the error to
    raise instead of some responses.
    """
    yield UseCall(call)  # type: ignore[arg-type]
    if isinstance(call.key, KeySource):
        yield from fetch_key(call.key)
    redact = build_redactor(collect_secrets(call.target, call.key))
    try:
        caller.count_request(request)
        head: Head = yield Open(request)
        if (other := replaces(head)) is not None:
            raise other
        pieces: list[bytes] = []
        size = 0
        while data := (yield Read()):
            size += len(data)
            if size > _MOST_STORED_BYTES:
                raise ProtocolError(f"{call.target.provider.name} sent a response that does not end.")
            pieces.append(data)
    except AsidesError as error:
        clean_error(error, call.target, call.key)
        raise
    if not (200 <= head.status < 300 or 400 <= head.status < 600):
        # A redirect, or no status of HTTP.
        odd = decode_error(find_dialect(call.target.dialect), head, b"", call.target)
        clean_error(odd, call.target, call.key)
        raise odd
    body = redact_bytes(b"".join(pieces), redact)
    if caller.use is not None:
        yield from caller.use.settle_body(body if head.status < 300 else None)
    start = caller.start(head.status, select_response_headers(head.headers, redact))
    yield Emit([*start, body] if body else [*start])
    return RelayOutcome(head.status, "forward", "asked where it is stored", call.target.provider.name)


def forward_to_host(caller: Caller, host: str = "") -> Flow[RelayOutcome] | None:
    """Forward a request about a stored response to the provider that has it; "": the home. None if there is none that
    speaks its dialect, or if no provider has such a response: an id with a slash would lead elsewhere with the
    provider's key.
    """
    config, request = caller.config, caller.request
    rows = caller.builder.rows
    host = host or config.home
    if not host or _RESPONSE_ID.fullmatch(caller.endpoint.names["response"]) is None:
        return None
    is_home = bool(config.home) and find_row(host, rows) is find_row(config.home, rows)
    own = config.home_options if is_home else caller.builder.defaults
    base_url = own.get("base_url")
    target = find_host(host, base_url=base_url, rows=rows)
    row = target.provider.with_dialect(caller.dialect)
    if row is None:
        return None
    target = msgspec.structs.replace(target, provider=row)
    key = find_key(row, own.get("api_key"), base_url=target.base_url)
    path = (
        urlsplit(target.base_url).path.rstrip("/") + caller.endpoint.path[caller.endpoint.path.rindex("/responses/") :]
    )
    query = [(name, value) for name, value in caller.endpoint.query.items() if name in _STORED_QUERY]
    url = join_url(target, path, last=query)
    headers = {**build_headers(target, "application/json")}
    sent = HttpRequest(request.method, url, headers, request.body, choose_credential_header(target))
    return return_response(caller, BareCall(target, read_policy(CallOptions()), key), sent)


# Refusals that go to the caller all the same: clients act on a conversation that is too long, and one without a known
# reason says nothing about what to change.
_NOT_REPAIRED = frozenset({"context_length", "opaque_provider_error"})


def can_repair(error: ProviderError) -> bool:
    """Whether an ordinary exchange may get through what this refusal refused."""
    rejection = read_rejection(error)
    if rejection is not None:
        return rejection.kind not in _NOT_REPAIRED
    return isinstance(error, ReplayRejected) or find_other_kind(str(error)) is not None


class ForwardExchange:
    """A forwarded request to one target in progress."""

    def __init__(
        self,
        call: Call,
        request: HttpRequest,
        caller: Caller,
        served: ServedRequest | None,
        record: Record | None = None,
        notices: tuple[Notice, ...] = (),
        *,
        stream: bool = False,
        is_last: bool = True,
        has_other: bool = False,
        claim: Claim | None = None,
        repair: Repair | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`served`: the request as it was read; None if it could not be. `is_last`: no other target follows.
        `has_other`: the same server may have it at another endpoint. `claim`: called with the id of a reply before the
        caller knows it. `repair`: begins the exchange after a refusal.
        """
        self._call = call
        self._request = request
        self._caller = caller
        self._served = served
        self._record = record
        self._notices = (*notices, *call.notices)
        self._stream = stream
        self._is_last = is_last
        self._has_other = has_other
        self._claim = claim
        self._repair = repair
        self.repaired: TranslatedExchange | None = None
        """The ordinary exchange that goes on after a refusal; None if there is none."""
        self._jitter = jitter
        self._reader: ResponseReader | None = None
        self.status = 0
        """The status that the caller got."""
        self._splitter: EventSplitter | None = None
        """Finds whole events; None before the response has begun."""
        self.is_cut = False
        """Whether a stream that has begun broke off, so that its end has to be told."""

    @property
    def partial(self) -> Reply | None:
        """The reply so far."""
        if self.repaired is not None:
            return self.repaired.partial
        return None if self._reader is None else self._reader.partial

    @property
    def emitted(self) -> bool:
        """Whether the caller got the head of the response."""
        return self._caller.started

    @property
    def is_between_events(self) -> bool:
        """Whether the caller has whole events so far, and more may follow."""
        is_over = self._reader is not None and getattr(self._reader.decoder, "done", False)
        return not is_over and (self._splitter is None or self._splitter.is_between)

    @traced
    def steps(self, began: float | None = None) -> Flow[Reply]:
        """The flow: it emits the head and the bytes of the response. Its errors leave after their response did, if no
        other target follows.
        """
        call = self._call
        try:
            if began is None:
                began = yield Now()
            yield from self._caller.reserve(call, self._served, lambda: self.partial)
            head = yield from self._open()
            if 200 <= head.status < 300:
                return (yield from self._receive(head, began))
            body, refusal = yield from self._read_error(head)
            if (repaired := self._begin_repair(refusal)) is not None:
                try:
                    return (yield from repaired.steps(began))
                except AsidesError:
                    if self._caller.started:
                        raise
                    # Nothing helped: its own refusal says what the provider had against the request.
                    self.repaired = None
            yield from self._return_error(head, body, refusal)
            raise refusal
        except AsidesError as error:
            self._caller.note_problem(error)
            error.partial = self.partial if error.partial is None else error.partial
            clean_error(error, call.target, call.key, None if self._served is None else self._served.prompt)
            raise

    def _open(self) -> Flow[Head]:
        call, attempt = self._call, 0
        while True:
            attempt += 1
            try:
                if isinstance(call.key, KeySource):
                    yield from fetch_key(call.key)
                self._caller.count_request(self._request)
                head: Head = yield Open(self._request)
                return head
            except TransportError as error:
                seconds = wait_before_next(error, NO_HEAD, attempt, call.policy, self._jitter(), call.key)
            yield Sleep(seconds)

    def _begin_repair(self, refusal: ProviderError) -> TranslatedExchange | None:
        """The ordinary exchange for a request that was refused in a way that is known; None for other errors."""
        if self._repair is None or not can_repair(refusal):
            return None
        self.repaired = self._repair(RefusedBody(self._request.body, refusal))
        return self.repaired

    def _read_error(self, head: Head) -> Flow[tuple[bytes, ProviderError]]:
        """Read the provider's error."""
        body = b""
        try:
            while len(body) < _MOST_ERROR_BYTES and (data := (yield Read(patience=5.0))):
                body += data
        except TransportError:
            pass  # The status says enough.
        target = self._call.target
        return body, decode_error(find_dialect(target.dialect), head, body[:ERROR_BODY_LIMIT], target)

    def _return_error(self, head: Head, body: bytes, refusal: ProviderError) -> Flow[None]:
        """Hand the provider's error to the caller, unless another target follows, or it is about a key that is not the
        caller's.
        """
        target = self._call.target
        yield from self._caller.settle(None, has_failed=True)
        is_own = isinstance(refusal, AuthError) and not self._caller.config.trusts_callers
        is_own = is_own or (self._has_other and isinstance(refusal, NotFound))
        if self._is_last and 400 <= head.status < 600 and not self._caller.opened_early and not is_own:
            self.status = head.status
            redact = build_redactor(collect_secrets(target, self._call.key))
            headers = select_response_headers(head.headers, redact)
            start = self._caller.start(head.status, headers, self._notices)
            body = redact_bytes(body, redact)
            yield Emit([*start, body] if body else [*start])

    def _receive(self, head: Head, began: float | None) -> Flow[Reply]:
        call, caller = self._call, self._caller
        decoder = find_dialect(call.target.dialect).decoder(call.target)
        given = (("visibility", call.policy.visibility), ("priced_by", call.target.provider.prices))
        self._reader = reader = ResponseReader(
            decoder,
            call.target.provider.name,
            self._notices,
            keep_raw=call.policy.keep_raw,
            limits=call.policy.reply_limits,
            fields={name: value for name, value in given if value},
            began=began,
        )
        self.status = head.status
        headers = select_response_headers(head.headers)
        if not self._stream:
            return (yield from self._receive_whole(reader, headers))
        headers |= STREAM_HEADERS
        splitter = self._splitter = find_splitter(headers.get("content-type", ""))
        is_recorded = False
        lost: TransportError | None = None
        while True:
            try:
                data: bytes = yield Read()
            except TransportError as problem:
                lost, data = problem, b""
            if not data:
                break
            if not is_recorded:
                events = reader.feed(data)
                if caller.observer is not None:
                    caller.show_events(events)
                if self._claim is not None:
                    yield from self._claim_reply(events)
                if getattr(decoder, "done", False) and decoder.failure is None:
                    # The caller may be back with its next request as soon as it has the last event.
                    is_recorded = True
                    caller.show_events(reader.finish())
                    yield from self._keep()
            if whole := splitter.feed(data):
                yield Emit([whole] if caller.started else [*self._start(headers), whole])
        if not is_recorded:
            caller.show_events(reader.finish(lost))
            if decoder.failure is None:
                yield from self._keep()
        self.is_cut = not is_recorded and lost is not None and decoder.failure is not None
        if not self.is_cut or not caller.config.reports_cuts:
            rest = splitter.flush()
            if rest or not (caller.started or lost):
                yield Emit([*self._start(headers), rest] if rest else self._start(headers))
        return reader.reply()

    def _start(self, headers: dict[str, str]) -> list[Any]:
        """The head of a stream, which leaves with its first event. Until then another target may be asked."""
        return [*self._caller.start(self.status, headers, self._notices)]

    def _receive_whole(self, reader: ResponseReader, headers: dict[str, str]) -> Flow[Reply]:
        pieces: list[bytes] = []
        events: list[Event] = []
        while data := (yield Read()):
            pieces.append(data)
            events += reader.feed(data)
        events += reader.finish()
        self._caller.show_events(events)
        yield from self._claim_reply(events)
        whole = reader.reply() if reader.decoder.failure is None else None
        if whole is not None and self._record is not None:
            yield from self._record(whole)
        if reader.decoder.failure is not None:
            self._caller.note_problem(reader.decoder.failure)
        yield from self._caller.settle(whole or self.partial, has_failed=whole is None)
        warned = [event.notice for event in events if isinstance(event, Warned)]
        start = self._caller.start(self.status, headers, [*self._notices, *warned])
        yield Emit([*start, *pieces])
        return reader.reply() if whole is None else whole

    def _claim_reply(self, events: list[Event]) -> Flow[None]:
        """Say whose reply this is, once: its provider may store it, and the id is all that one needs to read it."""
        started = next((event for event in events if isinstance(event, ReplyStarted)), None)
        if self._claim is not None and started is not None and started.id:
            claim, self._claim = self._claim, None
            yield from claim(started.id)

    def _keep(self) -> Flow[None]:
        reply = self.partial
        if self._record is not None and reply is not None:
            yield from self._record(reply)
        yield from self._caller.settle(reply)
