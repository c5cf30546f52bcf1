"""Runs requests with `background: true` after their response has left: `BackgroundResponses(service)`.

Each is a task of the service, which counts as a request under way. Its client polls the record of its response.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec

from asides.relay.answers.background_responses import (
    fail_document,
    make_background_record,
    make_response_id,
    write_document,
)
from asides.relay.answers.stored_responses import MOST_BACKGROUND_SECONDS
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_config import make_request_id
from asides.relay.relay_request import RelayRequest
from asides.relay.steps import WriteRecord
from asides.relay.streams.step_handlers import carry_out_async
from asides_gateway.access import KeyRecord
from asides_gateway.report_fault import report_fault
from asides_gateway.request_record import End, RequestRecord
from asides_gateway.watcher import RequestWatch

if TYPE_CHECKING:
    from asides_gateway.service import Service

_NOT_STORED = "the response cannot run in the background: the store failed. Try again later."
_SHUT_DOWN = "the gateway was shut down before the response was complete"
_TOO_LONG = "the response took too long"
_FAULT = "the gateway failed to answer this request"


class BackgroundResponses:
    """The responses that run in the background of one process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        """By tenant and id."""

    def __len__(self) -> int:
        return len(self._tasks)

    async def begin(self, request: RelayRequest, record: RequestRecord, key: KeyRecord | None) -> bytes:
        """Begin a response, and return it as it is now. `record`: of the request that asked for it. Raises RelayRefusal
        if the store does not take it.
        """
        response_id, now = make_response_id(), time.time()
        running = _Running(self._service, msgspec.structs.replace(request, background_id=response_id), now, key)
        if not await running.write(running.document):
            raise RelayRefusal(_NOT_STORED, status=503)
        task = asyncio.create_task(running.run(record))
        name = request.tenant, response_id
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))
        return msgspec.json.encode(running.document)

    def stop(self, tenant: str, response_id: str) -> None:
        """Stop a response whose client has cancelled or deleted it. A response of another process continues, but its
        reply is not shown.
        """
        if (task := self._tasks.pop((tenant, response_id), None)) is not None:
            task.cancel("stopped")

    async def close(self) -> None:
        """Stop all of them. Those that were not complete have failed."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Running:
    """One response that runs."""

    def __init__(self, service: Service, request: RelayRequest, now: float, key: KeyRecord | None) -> None:
        self._service = service
        self._request = request
        self._key = key
        self._began = now
        self.document = write_document(request, request.background_id, now)

    async def write(self, document: dict[str, Any]) -> bool:
        """Store how far the response is."""
        vault, tenant = self._service.vault, self._request.tenant
        record = make_background_record(vault.keys.find_tenant(tenant), self._request, document, self._began)
        return bool(await carry_out_async(WriteRecord(tenant, record), vault.store))

    async def run(self, asked: RequestRecord) -> None:
        """Ask the provider, and store the reply."""
        service, tenant = self._service, self._request.tenant
        service.begin_request(tenant)
        name, started, at = make_request_id(), time.monotonic(), time.time()
        of_client = (asked.dialect, asked.client, tenant, started, at, asked.address, asked.key_id)
        watch = RequestWatch(service.watchers, RequestRecord(name, asked.method, asked.path, *of_client))
        request = msgspec.structs.replace(self._request, id=name)
        stream = service.carry_out(service.relay.begin(request, watch.begin(request)), self._key)
        how: End = "left"
        status = 0
        try:
            async with asyncio.timeout(MOST_BACKGROUND_SECONDS):
                start = await stream.start()
                body = b"".join([piece async for piece in stream])
            stream.confirm()
            status, how = start.status, "done" if start.status < 300 else "failed"
            if status >= 300:
                await self._fail(*_read_error(body))
        except asyncio.CancelledError as cut:
            # A client that stopped it has its own record.
            if "stopped" not in cut.args:
                await self._fail("server_error", _SHUT_DOWN)
            raise
        except TimeoutError:
            how = "failed"
            await self._fail("server_error", _TOO_LONG)
        except Exception as problem:  # noqa: BLE001 - on any internal error, still end the response
            how = "failed"
            report_fault(problem)
            await self._fail("server_error", _FAULT)
        finally:
            await stream.close()
            watch.end(how, status=status, sent_bytes=0, first_byte=None, outcome=stream.outcome)
            service.end_request(tenant)

    async def _fail(self, code: str, message: str) -> None:
        await self.write(fail_document(self.document, code, message))


def _read_error(body: bytes) -> tuple[str, str]:
    """The code and the message of an error in this dialect."""
    try:
        error = msgspec.json.decode(body)["error"]
        return str(error.get("code") or error.get("type") or "server_error"), str(error.get("message") or "")
    except (msgspec.DecodeError, LookupError, AttributeError, TypeError):
        return "server_error", _FAULT
