"""Requests signed the way AWS wants it (Signature Version 4): `signed_headers(…) → headers`. Pure: the clock is given.

Not here: whose credentials these are (credentials), and when a request goes out (the shells).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

from asides.providers.credentials import AwsCredentials

_ALGORITHM = "AWS4-HMAC-SHA256"
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Others may be changed on the way by proxies and HTTP libraries.
_SIGNED = ("content-type",)


def sign(
    method: str, url: str, headers: Mapping[str, str], body: bytes, credentials: AwsCredentials, now: float
) -> dict[str, str]:
    """The headers that sign this request, to be sent beside its own. `now` is Unix time."""
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    told = {"X-Amz-Date": moment}
    if credentials.token:
        told["X-Amz-Security-Token"] = credentials.token
    signed = {name.lower(): value for name, value in headers.items() if name.lower() in _SIGNED}
    signed |= {name.lower(): value for name, value in told.items()}
    signed["host"] = _host(url)
    names = ";".join(sorted(signed))
    scope = f"{moment[:8]}/{credentials.region}/{credentials.service}/aws4_request"
    request = _canonical(method, url, signed, body)
    to_sign = "\n".join((_ALGORITHM, moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    signature = hmac.new(signing_key(credentials, moment[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
    told["Authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return told


def signing_key(credentials: AwsCredentials, day: str) -> bytes:
    """The key of one day, region and service."""
    key = f"AWS4{credentials.reveal()}".encode()
    for part in (day, credentials.region, credentials.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _canonical(method: str, url: str, signed: Mapping[str, str], body: bytes) -> str:
    parts = urlsplit(url)
    # The path is encoded once more than it is sent, except for one service that is none of ours.
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


def _host(url: str) -> str:
    """The host as HTTP libraries send it: without the port that goes without saying."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{parts.port}"
