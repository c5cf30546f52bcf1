"""The last requests of a gateway, in the memory of its process: `RecentRequests`, a watcher, and feeds of changes.

Bounded in number and in bytes. Every tenant sees its own requests and no others.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from asides.relay.relay_request import RelayRequest
from asides_gateway.captured_body import BodyCapture
from asides_gateway.request_record import RequestRecord
from asides_gateway.seen_request import SeenRequest
from asides_gateway.watcher import RequestWatcher

MOST_REQUESTS = 1000
MOST_BYTES = 64 * 1024 * 1024
MOST_FEEDS = 32
"""Upper bound of concurrently open feeds of one tenant."""


class TooManyFeeds(Exception):
    """So many follow the changes of a tenant already that no one else can."""


class RecentRequests(RequestWatcher):
    """The last requests. It belongs to the event loop of the gateway."""

    def __init__(
        self,
        make_capture: Callable[[], BodyCapture],
        *,
        has_reader: Callable[[str], bool] = lambda _: True,
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`make_capture`: how bodies are kept for tenants that want them, with the current settings.
        `has_reader`: whether anyone can be this tenant. Unauthenticated requests are not kept: they would
        displace those of tenants.
        """
        self._has_reader = has_reader
        self._make_capture = make_capture
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self._open: dict[str, SeenRequest] = {}
        self._ended: dict[str, SeenRequest] = {}
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._held: dict[str, int] = {}
        """The bytes of each tenant."""
        self._capturing: set[str] = set()
        self._feeds: dict[str, set[ChangeFeed]] = {}
        """By tenant."""
        self._revision = 0
        self._mark = secrets.token_hex(4)
        """Differs from that of any other process, so that a number of theirs is not taken for one of ours."""

    # --- as a watcher -------------------------------------------------------------------------------------------------

    def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:  # noqa: D102 - as in RequestWatcher
        if self._has_reader(record.tenant):
            self._add(record, request)

    def change(self, record: RequestRecord) -> None:  # noqa: D102
        if (seen := self._open.get(record.id)) is not None:
            self._note(seen)

    def end(self, record: RequestRecord) -> None:  # noqa: D102
        seen = self._open.pop(record.id, None)
        if seen is None:
            if record.has_begun or not self._has_reader(record.tenant):
                return  # One of too many, or of a tenant without a reader.
            seen = self._add(record, None)
            del self._open[record.id]
        self._ended[record.id] = seen
        self._note(seen)

    def _add(self, record: RequestRecord, request: RelayRequest | None) -> SeenRequest:
        capture = self._make_capture() if record.tenant in self._capturing else None
        seen = SeenRequest(record, request, capture)
        self._open[record.id] = seen
        self._sizes[record.id] = 0
        self._note(seen)
        return seen

    def _measure(self, seen: SeenRequest) -> None:
        """Count what it takes, and drop the oldest where that is too much: first those that have ended, and of several
        tenants those of the one that holds most.
        """
        self._count(seen, seen.size)
        while len(self._sizes) > self._most_requests or (self._bytes > self._most_bytes and len(self._sizes) > 1):
            kept = self._ended or self._open
            oldest = self._find_oldest(kept)
            del kept[oldest.id]
            self._count(oldest, 0)
            del self._sizes[oldest.id]

    def _count(self, seen: SeenRequest, size: int) -> None:
        more = size - self._sizes[seen.id]
        self._sizes[seen.id] = size
        self._bytes += more
        held = self._held[seen.tenant] = self._held.get(seen.tenant, 0) + more
        if not held:
            del self._held[seen.tenant]

    def _find_oldest(self, kept: dict[str, SeenRequest]) -> SeenRequest:
        if len(self._held) > 1:
            most = max(self._held, key=self._held.__getitem__)
            for seen in kept.values():
                if seen.tenant == most:
                    return seen
        return next(iter(kept.values()))

    def _note(self, seen: SeenRequest) -> None:
        """A request has changed."""
        size = self._sizes.get(seen.id)
        if size is None:
            return  # It was one of too many.
        if size != seen.size:
            self._measure(seen)
        self._revision += 1
        seen.revision = self._revision
        for feed in self._feeds.get(seen.tenant, ()):
            feed.note(seen.id)

    # --- for readers --------------------------------------------------------------------------------------------------

    @property
    def position(self) -> str:
        """The name of the last change: a feed that resumes there misses nothing."""
        return self.name_revision(self._revision)

    def name_revision(self, revision: int) -> str:
        """The name of a change."""
        return f"{self._mark}-{revision}"

    def list_requests(self, tenant: str, limit: int) -> list[SeenRequest]:
        """The requests of a tenant, those that began last first."""
        own = [seen for kept in (self._ended, self._open) for seen in kept.values() if seen.tenant == tenant]
        own.sort(key=lambda seen: seen.record.at, reverse=True)
        return own[:limit]

    def find(self, tenant: str, name: str) -> SeenRequest | None:
        """The request of this id, if it is of this tenant."""
        seen = self._open.get(name) or self._ended.get(name)
        return seen if seen is not None and seen.tenant == tenant else None

    def captures(self, tenant: str) -> bool:
        """Whether the bodies of a tenant's requests are kept."""
        return tenant in self._capturing

    def set_capture(self, tenant: str, is_on: bool) -> None:
        """Keep the bodies of a tenant's requests from now on, or drop them and keep no more."""
        if is_on == self.captures(tenant):
            return
        if is_on:
            self._capturing.add(tenant)
        else:
            self._capturing.discard(tenant)
            for seen in (*self._ended.values(), *self._open.values()):
                if seen.tenant == tenant:
                    seen.forget_bodies()
                    self._measure(seen)
        for feed in self._feeds.get(tenant, ()):
            feed.note_settings()

    def follow(self, tenant: str, last: str = "") -> ChangeFeed:
        """Follow the changes of a tenant's requests, from after the change of this name. Raises TooManyFeeds."""
        if len(self._feeds.get(tenant, ())) >= MOST_FEEDS:
            raise TooManyFeeds
        mark, _, number = last.partition("-")
        is_known = mark == self._mark and number.isascii() and number.isdigit()
        feed = ChangeFeed(self, tenant, is_reset=bool(last) and not is_known)
        if is_known:
            for seen in reversed(self.list_requests(tenant, self._most_requests)):
                if seen.revision > int(number[:18]):
                    feed.note(seen.id)
        self._feeds.setdefault(tenant, set()).add(feed)
        return feed

    def leave(self, feed: ChangeFeed) -> None:
        """Tell a feed nothing more."""
        feeds = self._feeds.get(feed.tenant, set())
        feeds.discard(feed)
        if not feeds:
            self._feeds.pop(feed.tenant, None)

    def close(self) -> None:
        """End every feed."""
        for feeds in self._feeds.values():
            for feed in feeds:
                feed.end()

    def __repr__(self) -> str:
        return f"RecentRequests({len(self._open)} open, {len(self._ended)} ended)"


class ChangeFeed:
    """The changes for one reader. A request that changes several times while the reader is slow is reported once, in
    its latest state, so a feed never holds more than the ids of the kept requests.
    """

    def __init__(self, requests: RecentRequests, tenant: str, *, is_reset: bool = False) -> None:
        self.tenant = tenant
        self.is_reset = is_reset
        """Whether the reader knows an earlier process, and has to read the list again."""
        self.is_over = False
        self._requests = requests
        self._changed: dict[str, None] = {}
        self._has_settings = False
        self._wake = asyncio.Event()

    def note(self, name: str) -> None:
        """A request has changed."""
        self._changed[name] = None
        self._wake.set()
        if len(self._changed) > 2 * MOST_REQUESTS:
            known = [each for each in self._changed if self._requests.find(self.tenant, each) is not None]
            self._changed = dict.fromkeys(known)

    def note_settings(self) -> None:
        """The settings have changed."""
        self._has_settings = True
        self._wake.set()

    def end(self) -> None:
        """Close the feed: its reader gets the pending changes only."""
        self.is_over = True
        self._wake.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for a change, with a timeout. Returns whether there is one."""
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def take(self) -> tuple[list[SeenRequest], bool]:
        """The requests that changed, in the order of their last changes, and whether the settings did."""
        found = [self._requests.find(self.tenant, name) for name in self._changed]
        changed = sorted((seen for seen in found if seen is not None), key=lambda seen: seen.revision)
        has_settings, self._has_settings = self._has_settings, False
        self._changed = {}
        self._wake.clear()
        return changed, has_settings
