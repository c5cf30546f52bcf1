"""The API of the inspector: the last requests, one of them, their changes as server-sent events, and whether bodies are
kept. `add_routes(app, service)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from asides.values.visibility import Readable
from asides_gateway import web
from asides_gateway.captured_body import BodyCapture
from asides_gateway.page_events import PING, write_event
from asides_gateway.page_requests import (
    EVENT_HEADERS,
    Handler,
    PageError,
    add_paths,
    answer_json,
    check_query,
    find_tenant,
    read_json,
    read_number,
)
from asides_gateway.recent_requests import MOST_REQUESTS, ChangeFeed, RecentRequests, TooManyFeeds
from asides_gateway.repeat_as_curl import write_curl
from asides_gateway.seen_request import SeenRequest
from asides_gateway.service import Service
from asides_gateway.shared_requests import find_instance, read_others, shares_requests
from asides_gateway.watched_turn import DIALECT as PAGE

PREFIX = "/ui/api/requests"
_KINDS: tuple[Readable, ...] = ("raw", "summary")
_USUAL_REQUESTS = 200
_PING_SECONDS = 10.0
# Changes that come within this time leave together.
_GATHER_SECONDS = 0.05
_MOST_TOGETHER = 50


class InspectorSettings(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a change of the settings."""

    captures_bodies: bool


def add_routes(app: web.Application, service: Service) -> None:
    """Watch the requests of a service, and add the paths of the API."""

    def make_capture() -> BodyCapture:
        visibility = service.builder.visibility
        shows: list[Readable] = [kind for kind in _KINDS if visibility.allows("gateway", kind)]
        return BodyCapture(tuple(shows), service.settings.keys)

    def has_reader(tenant: str) -> bool:
        return bool(tenant) or not service.authenticator.needs_key

    recent = RecentRequests(make_capture, has_reader=has_reader)
    service.watchers.append(recent)
    service.recent_requests = recent
    api = RequestsApi(service, recent)
    paths: dict[str, dict[str, Handler]] = {
        "": {"GET": api.list_requests},
        "/events": {"GET": api.follow},
        "/settings": {"PUT": api.change_settings},
        "/{id}": {"GET": api.show},
    }
    add_paths(app, PREFIX, paths)

    async def end_feeds(_: web.Application) -> None:
        recent.close()

    # A gateway that ends waits for its replies, and not for those who watch them.
    app.on_shutdown.append(end_feeds)


def captures_bodies(service: Service, tenant: str) -> bool:
    """Whether the tenant's bodies are kept."""
    recent = service.recent_requests
    return recent is not None and recent.captures(tenant)


class RequestsApi:
    """The handlers."""

    def __init__(self, service: Service, recent: RecentRequests) -> None:
        self._service = service
        self._recent = recent

    async def list_requests(self, request: web.Request) -> web.StreamResponse:
        """The last requests of the tenant, the newest first."""
        tenant = self._find_tenant(request)
        check_query(request, "limit")
        limit = read_number(request, "limit", _USUAL_REQUESTS, MOST_REQUESTS)
        recent = self._recent
        # A change that arrives while prices are looked up is reported after this position.
        position = recent.position
        limit = MOST_REQUESTS if limit is None else limit
        found = recent.list_requests(tenant, limit)
        await _price(found)
        own = [seen.to_summary() for seen in found]
        others = await read_others(self._service, tenant, limit, {seen.id for seen in found})
        listed = sorted((*own, *others), key=lambda each: -float(each["at"]))[:limit]
        return answer_json(
            {
                "requests": listed,
                "shares_requests": shares_requests(self._service),
                "captures_bodies": recent.captures(tenant),
                "position": position,
                "workers": self._service.settings.workers,
            }
        )

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Everything about one request."""
        tenant = self._find_tenant(request)
        check_query(request)
        seen = self._recent.find(tenant, request.match["id"])
        if seen is None:
            instance = await find_instance(self._service, tenant, request.match["id"])
            raise _refuse_unknown(self._service.settings.workers, instance)
        await _price([seen])
        await asyncio.to_thread(seen.black_out)
        return answer_json({**seen.to_detail(), "curl": _write_curl(request, seen)})

    async def change_settings(self, request: web.Request) -> web.StreamResponse:
        """Keep bodies, or drop them."""
        tenant = self._find_tenant(request)
        body = await read_json(request, InspectorSettings, self._service.settings)
        self._recent.set_capture(tenant, body.captures_bodies)
        return answer_json(self._show_settings(tenant))

    async def follow(self, request: web.Request) -> web.StreamResponse:
        """The changes as they happen: `request` with a summary, `settings`, and `reset` for a reader who knows another
        process and has to read the list again. A reader names the last change that it has: Last-Event-ID, or `after`.
        """
        tenant = self._find_tenant(request)
        check_query(request, "after")
        last = request.headers.get("Last-Event-ID", "") or request.query.get("after", "")
        try:
            feed = self._recent.follow(tenant, last)
        except TooManyFeeds:
            message = "too many pages follow these requests already. Close some."
            raise PageError(message, "too_many_readers", 503) from None
        try:
            response = web.StreamResponse(headers=EVENT_HEADERS)
            await response.prepare(request)
            await self._write_changes(response, feed)
            await response.write_eof()
        finally:
            self._recent.leave(feed)
        return response

    async def _write_changes(self, response: web.StreamResponse, feed: ChangeFeed) -> None:
        recent = self._recent
        if feed.is_reset:
            await response.write(write_event("reset", {}, recent.position))
        else:
            await response.write(PING)
        while not feed.is_over:
            if not await feed.wait(_PING_SECONDS):
                await response.write(PING)
                continue
            await asyncio.sleep(_GATHER_SECONDS)
            changed, has_settings = feed.take()
            await _price(changed)
            for start in range(0, len(changed), _MOST_TOGETHER):
                written = [
                    write_event("request", seen.to_summary(), recent.name_revision(seen.revision))
                    for seen in changed[start : start + _MOST_TOGETHER]
                ]
                # A reader that is slow is waited for here, while its changes gather in the feed.
                await response.write(b"".join(written))
            if has_settings:
                await response.write(write_event("settings", self._show_settings(feed.tenant), recent.position))

    def _show_settings(self, tenant: str) -> dict[str, Any]:
        return {"captures_bodies": self._recent.captures(tenant)}

    def _find_tenant(self, request: web.Request) -> str:
        """The tenant whose requests may be seen: the caller's own."""
        return find_tenant(request, self._service.authenticator)


async def _price(seen: Sequence[SeenRequest]) -> None:
    """Look the prices of requests up, in another thread: the first one loads a table, which takes a moment."""
    unpriced = [each for each in seen if each.needs_price]
    if unpriced:
        await asyncio.to_thread(_price_all, unpriced)


def _price_all(seen: Sequence[SeenRequest]) -> None:
    for each in seen:
        each.price()


def _write_curl(request: web.Request, seen: SeenRequest) -> str:
    if seen.record.dialect == PAGE:
        return ""  # A turn of a conversation is repeated there.
    return write_curl(
        request.origin,
        seen.record.method,
        seen.record.path,
        seen.record.dialect,
        seen.repeated,
        body=seen.request_body,
        size=seen.record.received,
    )


def _refuse_unknown(workers: int, instance: str) -> PageError:
    if instance:
        message = (
            f"another process of this gateway has answered this request: {instance}. Its figures are in the list; its "
            "details, and bodies if they are kept, are with that process."
        )
        return PageError(message, "request_elsewhere", 404)
    message = "this request is not kept here, or no longer. Reload the list."
    if workers > 1:
        message += f" The gateway has {workers} processes, and each keeps its own requests."
    return PageError(message, "no_request", 404)
