"""Authentication of clients: `Authenticator(settings).identify(headers, query, …) → Identity | Refusal`.

Clients authenticate with keys. Host and Origin checks stop CSRF and DNS rebinding on keyless loopback gateways.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec

from asides_gateway.access import KeyRecord
from asides_gateway.access.key_cache import KeyCache
from asides_gateway.access.key_store import KEY_FORM, digest_key
from asides_gateway.gateway_settings import GatewaySettings, is_loopback

if TYPE_CHECKING:
    from asides_gateway.web import Headers

CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
KEY_PARAMETER = "key"
# Names under which containers reach their host. These domains cannot be registered.
_CONTAINER_HOST_NAMES = frozenset({"host.docker.internal", "host.containers.internal"})
_LONGEST_KEY = 4096
_MOST_KEYS = 8


class Identity(msgspec.Struct, frozen=True):
    """An authenticated client."""

    tenant: str = ""
    """Whose state it is: a digest of the key; "" where none is needed."""
    allowed_origin: str = ""
    """The page of another site that asks, and may read the answer; "" for any other client."""
    key: KeyRecord | None = None
    """The record of the key, with its limits; None for a key that has none."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is not answered."""

    status: int
    code: str
    message: str
    headers: dict[str, str] = {}


Identified: TypeAlias = Identity | Refusal


class Authenticator:
    """Decides who may ask. It keeps digests of keys, and no key."""

    def __init__(self, settings: GatewaySettings, records: KeyCache | None = None) -> None:
        """`records`: the keys of the database; None: only those of the settings count."""
        keys = [key for key in settings.keys if key]
        self._records = records
        self._has_static = bool(settings.keys)
        self._is_closed = not is_loopback(settings.host)
        self._digests = [digest_key(key) for key in keys]
        self._tenants = [derive_tenant(key) for key in keys]
        self._hosts = frozenset(name.lower().strip("[]") for name in (settings.host, *settings.allowed_hosts))
        self._names_hosts = bool(settings.allowed_hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in settings.allowed_origins)

    @property
    def needs_key(self) -> bool:
        """Whether a client has to send a key. True once a key was made, even if all are revoked since; and while
        that is unknown.
        """
        records = self._records
        return self._has_static or self._is_closed or (records is not None and records.has_keys is not False)

    async def admit(
        self,
        headers: Headers,
        query: str = "",
        *,
        method: str = "POST",
        is_open: bool = False,
        is_preflight: bool = False,
    ) -> Identified:
        """The same as `identify`, with keys that only the database knows yet: each is looked for once."""
        found = self.identify(headers, query, method=method, is_open=is_open, is_preflight=is_preflight)
        if self._records is None or (isinstance(found, Refusal) and found.status not in (401, 503)):
            return found
        if isinstance(found, Identity) and (self.needs_key or is_open or is_preflight):
            return found
        # If no key is needed yet, the first one may just have been made.
        is_busy = False
        for key in _list_keys(headers, query):
            if KEY_FORM.fullmatch(key) and self._records.can_look_up(digest := digest_key(key)):
                is_busy = not await self._records.look_up(digest) or is_busy
        found = self.identify(headers, query, method=method, is_open=is_open, is_preflight=is_preflight)
        # Strangers who try many keys must not make a new one look wrong.
        return _BUSY if is_busy and isinstance(found, Refusal) and found.status == 401 else found

    def identify(
        self,
        headers: Headers,
        query: str = "",
        *,
        method: str = "POST",
        is_open: bool = False,
        is_preflight: bool = False,
    ) -> Identified:
        """Decide about a request. `query`: as it was sent. `is_open`: what it asks for needs no key. `is_preflight`: a
        browser asks whether the page of another site may send one.
        """
        refusal, origin = self.check_browser(headers, method)
        if refusal is not None:
            return refusal
        if not self.needs_key or is_open or (is_preflight and origin):
            return Identity("", origin)
        found = self._find_owner(_list_keys(headers, query))
        if isinstance(found, str):
            return Identity(found, origin)
        return found if isinstance(found, Refusal) else Identity(derive_record_tenant(found), origin, found)

    def check_browser(self, headers: Headers, method: str) -> tuple[Refusal | None, str]:
        """Refuse what a page of a stranger made a browser send. Returns also the page of another site that may ask."""
        host = headers.get("Host", "")
        if (self._names_hosts or not self.needs_key) and host and not self._knows_host(host):
            return _refuse_host(host), ""
        origin = headers.get("Origin", "")
        if not origin:
            # Another port of this machine is same-site, but not ours.
            is_foreign = headers.get("Sec-Fetch-Site", "") in ("cross-site", "same-site")
            is_link = method in ("GET", "HEAD") and headers.get("Sec-Fetch-Mode", "") == "navigate"
            return (_refuse_origin("another site") if is_foreign and not is_link else None), ""
        if _is_own(origin, host):
            return None, ""
        if origin.lower() in self._origins or "*" in self._origins:
            return None, origin
        return _refuse_origin(origin), ""

    def _knows_host(self, host: str) -> bool:
        name = _read_host(host)
        return name in self._hosts or name in _CONTAINER_HOST_NAMES or is_loopback(name)

    def _find_owner(self, keys: Iterable[str]) -> str | KeyRecord | Refusal:
        """The tenant or the record of the first key that is known. Every comparison takes the same time, whatever it
        finds.
        """
        found: str | KeyRecord | None = None
        is_unsure = False
        for key in keys:
            digest = digest_key(key)
            for known, tenant in zip(self._digests, self._tenants, strict=True):
                if hmac.compare_digest(digest, known) and found is None:
                    found = tenant
            if self._records is not None and KEY_FORM.fullmatch(key):
                record = self._records.find(digest)
                found = record if found is None else found
                is_unsure = is_unsure or self._records.is_unsure(digest)
        if found is None:
            return _UNSURE if is_unsure else _NO_KEY
        return found

    def __repr__(self) -> str:
        return f"Authenticator({len(self._digests)} keys)"


# --- keys -------------------------------------------------------------------------------------------------------------


def derive_tenant(key: str) -> str:
    """The tenant of a key: a digest, from which the key cannot be read."""
    return hmac.digest(b"asides tenant", key.encode(errors="surrogatepass"), "sha256").hex()[:32]


def derive_record_tenant(record: KeyRecord) -> str:
    """The tenant of a key with a record: its own or a shared one."""
    own = f"name {record.tenant}" if record.tenant else f"id {record.id}"
    return hmac.digest(b"asides tenant of a record", own.encode(errors="surrogatepass"), "sha256").hex()[:32]


def remove_key(query: str) -> str:
    """The query without keys, as it goes to the relay."""
    if not query:
        return query
    return "&".join(part for part in query.split("&") if not _names_key(part))


def remove_credentials(headers: dict[str, str]) -> None:
    """Take the values of credentials out of headers with lower-case names. A name may show the dialect, so it stays."""
    for name in CREDENTIAL_HEADERS:
        if name in headers:
            headers[name] = ""


def _names_key(part: str) -> bool:
    parsed = parse_qsl(part, keep_blank_values=True)
    return bool(parsed) and parsed[0][0].lower() == KEY_PARAMETER


def _list_keys(headers: Headers, query: str) -> Iterator[str]:
    """The keys that a client sent, wherever its kind of client puts them. A few: each may be looked for."""
    return islice(_list_all_keys(headers, query), _MOST_KEYS)


def _list_all_keys(headers: Headers, query: str) -> Iterator[str]:
    for value in headers.getall("Authorization", []):
        scheme, _, key = value.strip().partition(" ")
        if scheme.lower() == "bearer":
            yield key.strip()[:_LONGEST_KEY]
    for name in CREDENTIAL_HEADERS[1:]:
        yield from (value.strip()[:_LONGEST_KEY] for value in headers.getall(name, []))
    if query:
        given = parse_qsl(query)
        yield from (value[:_LONGEST_KEY] for name, value in given if name.lower() == KEY_PARAMETER)


_NO_KEY = Refusal(
    401,
    "invalid_api_key",
    "this gateway requires one of its own keys, and the request has no valid one. Send the key of the "
    "gateway where you would send the provider's.",
    {"www-authenticate": "Bearer"},
)
_BUSY = Refusal(
    503,
    "keys_unavailable",
    "the gateway cannot look up this key now: too many lookups are waiting. Try again in a moment.",
    {"retry-after": "5"},
)
_UNSURE = Refusal(
    503,
    "keys_unavailable",
    "the gateway cannot look up this key now: its database does not answer. Try again in a moment.",
    {"retry-after": "5"},
)


# --- browsers ---------------------------------------------------------------------------------------------------------


SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""On every response that has no stricter ones: whatever a provider sends, a browser that shows it runs nothing."""


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser asks before it sends the request of a page. Such a request has no key."""
    return method == "OPTIONS" and "Access-Control-Request-Method" in headers and "Origin" in headers


def write_cors_headers(origin: str) -> dict[str, str]:
    """The headers that let the page of another site read a response."""
    return {"access-control-allow-origin": origin, "access-control-expose-headers": "*", "vary": "Origin"}


def write_preflight_headers(origin: str, asked: Mapping[str, str]) -> dict[str, str]:
    """The headers of the answer to a preflight. `asked`: the headers of its request."""
    headers = write_cors_headers(origin)
    headers["access-control-allow-methods"] = "GET, HEAD, POST, PUT, PATCH, DELETE"
    headers["access-control-allow-headers"] = asked.get("Access-Control-Request-Headers", "")[:_LONGEST_KEY]
    headers["access-control-max-age"] = "600"
    if asked.get("Access-Control-Request-Private-Network") == "true":
        headers["access-control-allow-private-network"] = "true"
    return headers


def _read_host(host: str) -> str:
    """The name in a Host header, without its port."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).lower().strip("[]").rstrip(".")


def _is_own(origin: str, host: str) -> bool:
    """Whether a page is one of ours. Behind a proxy that ends TLS, the scheme may differ."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return bool(host) and parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _refuse_host(host: str) -> Refusal:
    name = _shorten(_read_host(host))
    return Refusal(
        403,
        "host_not_allowed",
        f"this gateway is not known as {name}. Without a key it answers to names of this machine alone, so that no web "
        f"page can reach it under another. Ask 127.0.0.1, or add {name} to allowed_hosts.",
    )


def _refuse_origin(origin: str) -> Refusal:
    name = _shorten(origin)
    return Refusal(
        403,
        "origin_not_allowed",
        f"web pages of {name} may not use this gateway. Add the page's origin to allowed_origins if you trust it.",
    )


def _shorten(text: str) -> str:
    return "".join(character for character in text[:100] if character.isprintable()) or "that name"
