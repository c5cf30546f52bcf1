"""Bytes that pass: the caller's request with another model and credential, and the headers of both directions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from asides.dialects import find_dialect, find_facts
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_headers, choose_credential_header, join_url
from asides.flows.call import BareCall, Call, CallLike, read_policy
from asides.flows.retry import clean_error, decode_error, fetch_key
from asides.flows.steps import Emit, Flow, Head, Open, Read, UseCall
from asides.options import CallOptions
from asides.providers.credentials import KeySource, collect_secrets, find_key
from asides.providers.find import find_host, find_row
from asides.providers.provider import Target
from asides.relay.relay_config import Caller
from asides.relay.relay_request import RelayOutcome
from asides.relay.splice_body import splice_body
from asides.values.errors import (
    AsidesError,
    ProtocolError,
)
from asides.values.messages import Prompt, user
from asides.values.redaction import Redact, build_redactor, redact_bytes

# Headers of the caller that stay behind: of the connection, of its credentials, and of its browser or proxies.
_DROPPED_HEADERS = frozenset(
    """
    host content-length connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade expect accept-encoding content-encoding content-md5 digest
    authorization x-api-key api-key x-goog-api-key x-goog-user-project cookie cookie2
    origin referer via forwarded x-real-ip accept-language dnt priority
    """.split()
)
# Credentials under other names: a proxy's, another service's, a company login's.
_CREDENTIAL = re.compile(r"(?<!idempotency-)key|token|secret|auth|passw|cred|jwt|bearer")
_TRACE_HEADERS = (
    "traceparent",
    "tracestate",
    "baggage",
    "b3",
    "x-b3-",
    "uber-",
    "x-cloud-trace",
    "x-datadog-",
    "sentry-",
)
_DROPPED_PREFIXES = (
    "x-forwarded-",
    "sec-",
    "cf-",
    "x-asides-",
    "x-amz-",
    "proxy-",
    "cdn-",
    "x-envoy-",
    *_TRACE_HEADERS,
)
_ACCOUNT_HEADERS = ("openai-organization", "openai-project", "chatgpt-account-id")
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
# The parameters that choose a format, and the formats that we read.
_FORMS = ("alt", "$alt", "fields")
_READ_FORM = re.compile(r"(?:json|sse)(?:;enum-encoding=int)?$")
# Those of requests about a stored response.
_STORED_QUERY = frozenset(
    {"include", "include[]", "stream", "starting_after", "include_obfuscation", "limit", "order", "after", "before"}
)
_RESPONSE_ID = re.compile(r"[A-Za-z0-9_-]+")
_MOST_STORED_BYTES = 256 * 1024 * 1024
_NAMES_MODEL_IN_PATH = ("gemini", "bedrock")


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


def add_caller_headers(request: HttpRequest, caller: Caller) -> HttpRequest:
    """The request of a plan in the caller's own dialect, with the headers of the caller that it lacks. Lists of beta
    features are merged: each belongs to fields of the body.
    """
    ours = {name.lower(): name for name in request.headers}
    more: dict[str, str] = {}
    trusted, is_tenant = caller.config.trusts_callers, bool(caller.request.tenant)
    for name, value in select_request_headers(caller.request.headers, trusted=trusted, is_tenant=is_tenant).items():
        if name not in ours:
            more[name] = value
        elif name.endswith("-beta"):
            listed = f"{request.headers[ours[name]]},{value}".split(",")
            more[ours[name]] = ",".join(dict.fromkeys(each.strip() for each in listed if each.strip()))
    return msgspec.structs.replace(request, headers={**request.headers, **more}) if more else request


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
        and (trusted or (name not in _ACCOUNT_HEADERS and _CREDENTIAL.search(name) is None))
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
    stored = find_facts(caller.dialect).stored_as
    key = find_key(row, own.get("api_key"), base_url=target.base_url)
    path = (
        urlsplit(target.base_url).path.rstrip("/") + caller.endpoint.path[caller.endpoint.path.rindex(f"/{stored}s/") :]
    )
    query = [(name, value) for name, value in caller.endpoint.query.items() if name in _STORED_QUERY]
    url = join_url(target, path, last=query)
    headers = {**build_headers(target, "application/json")}
    sent = HttpRequest(request.method, url, headers, request.body, choose_credential_header(target))
    return return_response(caller, BareCall(target, read_policy(CallOptions()), key), sent)
