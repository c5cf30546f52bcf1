"""One relayed request over HTTP: the request → the relay → its response, written as it comes."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from urllib.parse import unquote

from asides.relay.answers.background_responses import RunsInBackground
from asides.relay.endpoints import NoEndpoint, find_endpoint, name_request_id_header
from asides.relay.error_response import RelayRefusal, write_error_response
from asides.relay.relay import RelayExchange
from asides.relay.relay_config import STREAM_HEADERS, make_request_id
from asides.relay.relay_request import RelayOutcome, RelayRequest, ResponseStart
from asides.relay.state.restore_state import STORE_FAILED
from asides.relay.streams.relay_stream import AsyncRelayStream
from asides_gateway import web
from asides_gateway.access.key_meter import build_caller_limits
from asides_gateway.authenticate import (
    SAFE_HEADERS,
    Identity,
    Refusal,
    is_preflight,
    remove_credentials,
    remove_key,
    write_cors_headers,
    write_preflight_headers,
)
from asides_gateway.read_body import read_body
from asides_gateway.report_fault import report_fault
from asides_gateway.request_record import End, RequestRecord
from asides_gateway.service import Service
from asides_gateway.watcher import RequestWatch

_STREAM_MARK = next(iter(STREAM_HEADERS.keys() - {"cache-control"}))
"""The header that only streams have."""
# Valid header names and values (RFC 9110), and headers that the connection sets.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_HOP_BY_HOP_HEADERS = frozenset({"content-length", "transfer-encoding", "keep-alive", "content-encoding", "trailer"})
_STOPPED = re.compile(r"POST .*/responses/([^/]+)/cancel|DELETE .*/responses/([^/]+)")
"""The requests that stop a response in the background."""
_CLIENT = re.compile(r"[!-~]{1,60}")
_FAULT = "the gateway failed to answer this request. Try again; if it fails again, report it with the log."
_BUSY_SECONDS = "5"


async def handle_relayed(request: web.Request, service: Service) -> web.StreamResponse:
    """Answer a request in its dialect. A client that leaves ends the request to the provider."""
    started, at = time.monotonic(), time.time()
    method, path, query = request.method, request.raw_path, request.raw_query
    asks_first = is_preflight(method, request.headers)
    is_open = method == "HEAD" and path == "/"
    identity = await service.authenticator.admit(
        request.headers, query, method=method, is_open=is_open, is_preflight=asks_first
    )
    headers = collect_headers(request)
    query = remove_key(query)
    refusal: RelayRefusal | None = None
    if isinstance(identity, Refusal):
        refusal = RelayRefusal(identity.message, status=identity.status, code=identity.code, headers=identity.headers)
        identity = Identity()
    elif asks_first and identity.allowed_origin:
        return web.Response(status=204, headers=write_preflight_headers(identity.allowed_origin, request.headers))
    elif (busy := service.find_busy(identity.tenant)) is not None:
        refusal = RelayRefusal(busy.message, status=busy.status, headers={"retry-after": _BUSY_SECONDS})
    name = make_request_id()
    relayed: RelayRequest | None = None
    tenant = identity.tenant
    service.begin_request(tenant)
    try:
        if refusal is None:
            try:
                # Unauthenticated endpoints take no body.
                body = b"" if is_open else await read_body(request, service.settings)
                limits = build_caller_limits(identity.key)
                await service.meters.prepare(identity.key)
                relayed = RelayRequest("", method, path, query, headers, body, identity.tenant, name, limits)
                await service.prepare(relayed)
            except RelayRefusal as problem:
                refusal = problem
        dialect = find_dialect_of(method, path, query, headers)
        client, address = read_client(headers), request.remote
        key_id = "" if identity.key is None else identity.key.id
        record = RequestRecord(name, method, path, dialect, client, identity.tenant, started, at, address, key_id)
        answer = _Answer(request, service, record, identity)
        if relayed is None or refusal is not None:
            return await answer.refuse(refusal or RelayRefusal(_FAULT, status=500))
        return await answer.relay(relayed)
    finally:
        service.end_request(tenant)


class _Answer:
    """The response to one request, while it is written."""

    __slots__ = (
        "_accepted",
        "_exchange",
        "_first_byte",
        "_identity",
        "_loop",
        "_outcome",
        "_ping",
        "_request",
        "_response",
        "_sent",
        "_service",
        "_stream",
        "_timer",
        "_touched",
        "_watch",
    )

    def __init__(self, request: web.Request, service: Service, record: RequestRecord, identity: Identity) -> None:
        self._request = request
        self._service = service
        self._watch = RequestWatch(service.watchers, record)
        self._identity = identity
        self._loop = asyncio.get_running_loop()
        self._response: web.StreamResponse | None = None
        self._exchange: RelayExchange | None = None
        self._stream: AsyncRelayStream | None = None
        self._outcome: RelayOutcome | None = None
        self._accepted: RelayOutcome | None = None
        """How a request ended whose reply comes in the background."""
        self._sent = 0
        self._first_byte: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._touched = 0.0
        """When something was written last, or the client took something."""
        self._ping: asyncio.Task[None] | None = None

    async def refuse(self, refusal: RelayRefusal) -> web.StreamResponse:
        """Answer a request that does not go to the relay."""
        try:
            response = await self._write_error(refusal)
        finally:
            self._tell_end("refused")
        return response

    async def relay(self, relayed: RelayRequest) -> web.StreamResponse:
        """Answer a request with what the relay says."""
        service = self._service
        how: End = "left"
        began = time.monotonic()
        try:
            self._exchange = service.relay.begin(relayed, self._watch.begin(relayed))
            self._stream = stream = service.carry_out(self._exchange, self._identity.key)
            self._touched = self._loop.time()
            self._watch_silence(service.settings.ping_seconds)
            start = await stream.start()
            if self._ping is not None:
                await self._ping  # It may be sending the head.
            if self._response is not None or _STREAM_MARK in start.headers:
                response = await self._write_stream(start, stream)
            else:
                response = await self._write_whole(start, stream, relayed)
            stream.confirm()
            outcome = self._accepted or stream.outcome
            how = "failed" if outcome is None or outcome.error is not None else "done"
        except asyncio.CancelledError:
            if self._sent and self._stream is not None:
                # Many clients leave as soon as they have the last event.
                self._stream.confirm()
            raise
        except ConnectionError:
            # The client is gone, and the connection with it.
            return self._response or web.Response(status=499)
        except Exception as problem:  # noqa: BLE001 - on any internal error, still end the response
            how = "failed"
            report_fault(problem)
            response = await self._end_with_fault()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._ping is not None:
                self._ping.cancel()
            if self._stream is not None:
                await self._stream.close()
                self._outcome = self._accepted or self._stream.outcome
                if self._outcome is not None and any(each.code == STORE_FAILED for each in self._outcome.notices):
                    service.note_store_failure(began)
            self._tell_end(how)
        return response

    # --- writing ------------------------------------------------------------------------------------------------------

    async def _write_whole(
        self, start: ResponseStart, stream: AsyncRelayStream, relayed: RelayRequest
    ) -> web.StreamResponse:
        """Write a response with its length, in one piece."""
        body = b"".join([piece async for piece in stream])
        outcome = stream.outcome
        if outcome is not None and isinstance(outcome.error, RunsInBackground):
            return await self._begin_background(relayed)
        if start.status == 200 and (found := _STOPPED.fullmatch(f"{relayed.method} {relayed.path.rstrip('/')}")):
            self._service.background.stop(relayed.tenant, unquote(found[1] or found[2]))
        return await self._send_whole(start.status, start.headers, body)

    async def _begin_background(self, relayed: RelayRequest) -> web.StreamResponse:
        record = self._watch.record
        try:
            document = await self._service.background.begin(relayed, record, self._identity.key)
        except RelayRefusal as problem:
            return await self._write_error(problem)
        self._accepted = RelayOutcome(200, "own", "it runs in the background")
        headers = {"content-type": "application/json", name_request_id_header(record.dialect): record.id}
        return await self._send_whole(200, headers, document)

    async def _write_error(self, refusal: RelayRefusal) -> web.StreamResponse:
        record = self._watch.record
        error = write_error_response(refusal, record.dialect)
        headers = {name_request_id_header(record.dialect): record.id, **error.headers}
        return await self._send_whole(error.status, headers, error.body)

    async def _send_whole(self, status: int, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        response = web.Response(status=status, headers=self._fit_headers(headers), body=body)
        self._response = response
        self._note_first_byte()
        await response.prepare(self._request)
        await response.write_eof()
        self._sent += len(body)
        return response

    async def _write_stream(self, start: ResponseStart, stream: AsyncRelayStream) -> web.StreamResponse:
        """Write each batch as it comes. A client that reads slowly is waited for, and so the provider is."""
        response = self._response
        if response is None:
            response = await self._open(start)
        clock = self._loop.time
        write = response.write
        self._note_first_byte()
        async for data in stream:
            await write(data)
            self._sent += len(data)
            self._touched = clock()
        await response.write_eof()
        return response

    async def _open(self, start: ResponseStart) -> web.StreamResponse:
        self._response = response = web.StreamResponse(status=start.status, headers=self._fit_headers(start.headers))
        await response.prepare(self._request)
        return response

    async def _end_with_fault(self) -> web.StreamResponse:
        """End a response after an error in our own code: in the caller's dialect, or by closing its connection."""
        fault = RelayRefusal(_FAULT, status=500)
        response = self._response
        if response is None:
            return await self._write_error(fault)
        last = b"" if self._exchange is None else self._exchange.write_last_error(fault)
        with suppress(Exception):
            if last and not isinstance(response, web.Response):
                await response.write(last)
                await response.write_eof()
                return response
        # A connection that breaks off is the only way left to say that this was not all.
        self._request.abort()
        return response

    def _fit_headers(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers without what HTTP does not allow, or what the connection decides."""
        fit = {
            name: value
            for name, value in headers.items()
            if name not in _HOP_BY_HOP_HEADERS and _NAME.fullmatch(name) and _VALUE.fullmatch(value)
        }
        fit["server"] = "asides"
        for name, value in SAFE_HEADERS.items():
            fit.setdefault(name, value)
        if self._identity.allowed_origin:
            fit |= write_cors_headers(self._identity.allowed_origin)
        return fit

    # --- silence ------------------------------------------------------------------------------------------------------

    def _watch_silence(self, seconds: float) -> None:
        if seconds > 0:
            self._timer = self._loop.call_at(self._touched + seconds, self._check_silence, seconds)

    def _check_silence(self, seconds: float) -> None:
        """Send a ping if nothing was written for these seconds. One timer serves a whole stream."""
        now = self._loop.time()
        silent = now - self._touched
        if silent + 0.001 < seconds:
            self._timer = self._loop.call_at(self._touched + seconds, self._check_silence, seconds)
            return
        if not self._request.is_sending and (self._ping is None or self._ping.done()):
            self._ping = self._loop.create_task(self._send_ping())
        self._timer = self._loop.call_at(now + seconds, self._check_silence, seconds)

    async def _send_ping(self) -> None:
        exchange, stream, response = self._exchange, self._stream, self._response
        if exchange is None or stream is None:
            return
        try:
            if response is None:
                early = exchange.open_early()
                if early is None:
                    return
                stream.early = early
                response = await self._open(early)
            if ping := exchange.write_ping(time.time()):
                await response.write(ping)
                self._sent += len(ping)
                self._touched = self._loop.time()
        except ConnectionError:
            pass  # The request is about to be cancelled.
        except Exception as problem:  # noqa: BLE001 - the reply may still come
            report_fault(problem)

    # --- telling ------------------------------------------------------------------------------------------------------

    def _note_first_byte(self) -> None:
        self._first_byte = self._watch.elapsed

    def _tell_end(self, ended: End) -> None:
        self._watch.end(
            ended,
            status=0 if self._response is None else self._response.status,
            sent_bytes=self._sent,
            first_byte=self._first_byte,
            outcome=self._outcome,
        )


# --- requests ---------------------------------------------------------------------------------------------------------


def collect_headers(request: web.Request) -> dict[str, str]:
    """The headers by their names in lower case, without credentials. Those that come twice are joined."""
    headers: dict[str, str] = {}
    for name, value in request.headers.list_pairs():
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    remove_credentials(headers)
    return headers


def find_dialect_of(method: str, path: str, query: str, headers: dict[str, str]) -> str:
    """The dialect in which a request is answered."""
    try:
        return find_endpoint(method, path, query, headers).dialect
    except NoEndpoint as problem:
        return problem.dialect


def read_client(headers: dict[str, str]) -> str:
    """The first word of the User-Agent, if it can be read."""
    found = _CLIENT.match(headers.get("user-agent", "").lstrip())
    return "" if found is None else found[0]
