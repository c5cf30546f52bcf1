"""Signatures for AWS (SigV4): the headers that a request gets instead of a key."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

from asides.providers.credentials import AwsCredentials
from asides.providers.find import DEFAULT_PORTS

_ALGORITHM = "AWS4-HMAC-SHA256"
# Proxies and HTTP libraries may change other headers in transit.
_SIGNED_HEADERS = ("content-type",)


def sign(
    method: str, url: str, headers: Mapping[str, str], body: bytes, credentials: AwsCredentials, now: float
) -> dict[str, str]:
    """The headers that sign a request, to add to its own. `now` is Unix time."""
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    headers_to_add = {"X-Amz-Date": moment}
    if credentials.token:
        headers_to_add["X-Amz-Security-Token"] = credentials.token
    signed = {name.lower(): value for name, value in headers.items() if name.lower() in _SIGNED_HEADERS}
    signed |= {name.lower(): value for name, value in headers_to_add.items()}
    signed["host"] = _format_host(url)
    names = ";".join(sorted(signed))
    scope = f"{moment[:8]}/{credentials.region}/{credentials.service}/aws4_request"
    request = _build_canonical_request(method, url, signed, body)
    to_sign = "\n".join((_ALGORITHM, moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    signature = hmac.new(derive_signing_key(credentials, moment[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
    headers_to_add["Authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers_to_add


def derive_signing_key(credentials: AwsCredentials, day: str) -> bytes:
    """The signing key of one day, region and service."""
    key = f"AWS4{credentials.reveal()}".encode()
    for part in (day, credentials.region, credentials.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _build_canonical_request(method: str, url: str, signed: Mapping[str, str], body: bytes) -> str:
    parts = urlsplit(url)
    # AWS signs the path encoded once more than it is sent (S3 is the exception, and is not used here).
    path = quote(parts.path or "/", safe="/~")
    query = "&".join(
        f"{name}={value}"
        for name, value in sorted(
            (quote(name, safe="~"), quote(value, safe="~")) for name, value in parse_qsl(parts.query, True)
        )
    )
    headers = "".join(f"{name}:{' '.join(signed[name].split())}\n" for name in sorted(signed))
    names = ";".join(sorted(signed))
    return "\n".join((method, path, query, headers, names, hashlib.sha256(body).hexdigest()))


def _format_host(url: str) -> str:
    """The host as HTTP libraries send it: without the default port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{parts.port}"
