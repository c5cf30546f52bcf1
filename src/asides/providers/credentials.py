"""The key of a call, from the caller or from the environment, and signatures for AWS. A `Secret` prints as ***.

Not here: which header carries the key (dialects), and the names of the variables (table).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

from asides.providers.provider import Provider, Target
from asides.values.errors import ConfigError, MissingKey

_AWS_ACCESS_KEY, _AWS_SECRET, _AWS_TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_AWS_HOST = r"^[a-z0-9-]+(?:-fips)?\.(?P<region>[a-z]{2}(?:-[a-z0-9]+)+-\d)\."
_ALGORITHM = "AWS4-HMAC-SHA256"
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Proxies and HTTP libraries may change other headers on the way.
_SIGNED_HEADERS = ("content-type",)


class Secret:
    """A key that only `reveal()` shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key itself, for the wire only."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not pickled or copied; give the key again where it is needed.")


class AwsCredentials(Secret):
    """The credentials that sign a request to AWS when it carries no key (see `sign`)."""

    __slots__ = ("access_key", "region", "service", "token")

    def __init__(self, access_key: str, secret: str, token: str = "", *, region: str, service: str) -> None:
        super().__init__(secret)
        self.access_key = access_key
        self.token = token
        """The token of a temporary session; "" for permanent keys."""
        self.region = region
        self.service = service

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AwsCredentials):
            return NotImplemented
        return self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def _all(self) -> tuple[str, ...]:
        return self.access_key, self._value, self.token, self.region, self.service


def find_key(
    provider: Provider,
    explicit: str | Secret | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    base_url: str | None = None,
) -> Secret | None:
    """Return the key for a provider: the explicit one, else the first of its variables that is set and not blank.

    `base_url` is the address of the request; the default is the row's own. Raises `MissingKey` if the provider requires
    a key and none is set; addresses on this machine never require one. None means: send no credential.
    """
    if provider.quirks.auth == "nothing":
        return None
    given = explicit.reveal() if isinstance(explicit, Secret) else explicit or ""
    if given.strip():
        return _read_key(given, provider, "api_key=")
    environ = os.environ if environ is None else environ
    for name in provider.key_env:
        if value := environ.get(name, "").strip():
            return _read_key(value, provider, name)
    if provider.signing == "aws" and (credentials := _read_aws_credentials(provider, environ, base_url)) is not None:
        return credentials
    if provider.key == "optional" or is_loopback(provider.base_url if base_url is None else base_url):
        return None
    together = (f"{_AWS_ACCESS_KEY} with {_AWS_SECRET}",) if provider.signing == "aws" else ()
    raise MissingKey(provider.title or provider.name, (*provider.key_env, *together))


def _read_aws_credentials(
    provider: Provider, environ: Mapping[str, str], base_url: str | None
) -> AwsCredentials | None:
    """The AWS credentials in the environment. A region in the address wins over the variables."""
    names = (_AWS_ACCESS_KEY, _AWS_SECRET, _AWS_TOKEN)
    given = {name: value for name in names if (value := environ.get(name, "").strip())}
    if _AWS_ACCESS_KEY not in given or _AWS_SECRET not in given:
        return None
    keys = {name: _read_key(value, provider, name).reveal() for name, value in given.items()}
    named = re.match(_AWS_HOST, (urlsplit(base_url or provider.base_url).hostname or "").lower())
    default = next((value for name in _AWS_REGIONS if (value := environ.get(name, "").strip())), "us-east-1")
    region = default if named is None else named["region"]
    access_key, secret, token = (keys.get(name, "") for name in names)
    return AwsCredentials(access_key, secret, token, region=region, service="bedrock")


def _read_key(value: str, provider: Provider, where: str) -> Secret:
    """Return a key that a header can carry: visible ASCII. HTTP libraries would print a key that they refuse."""
    key = value.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            f"the API key for {provider.name} (from {where}) holds a blank, a line break or a character that "
            "no key has. To do: copy it again."
        )
    return Secret(key)


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine: localhost, or an IP that is really one of loopback, or 0.0.0.0."""
    from ipaddress import ip_address

    try:
        host = urlsplit(url).hostname or ""
        if host == "localhost":
            return True
        address = ip_address(host)
    except ValueError:
        return False  # A name such as 127.evil.com is anyone's.
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


# --- what must not be shown -------------------------------------------------------------------------------------------

# Patterns are text: `re` compiles and keeps one when it is first used, and most rows need none.
_SECRETIVE = r"(?i)key|token|secret|auth|pass|sig|cred|cookie|session|bearer|jwt"
_HARMLESS_QUERY = frozenset({"api-version", "api_version", "version", "alt", "beta", "region", "location", "stream"})
_VARIABLE = r"[A-Z][A-Z0-9_]*"


def collect_secrets(target: Target, key: Secret | None, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Everything that a request to this target carries and nothing may show: the key, and what the row, its query and
    its address bring along.
    """
    environ = os.environ if environ is None else environ
    row = target.provider
    found = [] if key is None else [key.reveal()]
    if isinstance(key, AwsCredentials):
        found += [key.access_key, key.token]
    found += [value for name, value in row.query if is_secret_query(name)]
    for name, value in row.headers:
        if is_secret_header(name):
            found += [value, *value.split()[1:]]  # Without `Bearer`, too.
    if row.base_url != row.base_url.lower():
        variables = filter(is_secret_header, re.findall(_VARIABLE, row.base_url))
        found += [environ.get(name, "").strip() for name in variables]
    # The password of `user:password`.
    found += [value.partition(":")[2] for value in found]
    return tuple(dict.fromkeys(value for value in found if value and value.lower() != row.name))


def is_secret_query(name: str) -> bool:
    """Whether the value of a parameter of an address is hidden."""
    return name.lower() not in _HARMLESS_QUERY


def is_secret_header(name: str) -> bool:
    """Whether the value of a header of a row is hidden."""
    return re.search(_SECRETIVE, name) is not None


# --- signing for AWS --------------------------------------------------------------------------------------------------


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
    return host if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{parts.port}"
