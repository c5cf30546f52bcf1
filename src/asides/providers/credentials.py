"""The key of a call and where it comes from. A `Secret` prints as ***.

`api_key=` wins over the environment, that over the key file, and that over the credentials of a cloud.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, TypeAlias
from urllib.parse import urlsplit

from asides.providers.provider import Cloud, Provider, Target
from asides.settings_files import FOLDER_VARIABLES, find_config_folder
from asides.values.errors import ConfigError, MissingKey, ProviderError

_AWS_ACCESS_KEY, _AWS_SECRET, _AWS_TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_AWS_HOST = r"^[a-z0-9-]+(?:-fips)?\.(?P<region>[a-z]{2}(?:-[a-z0-9]+)+-\d)\."
_BEARER = ("Authorization", "Bearer ")
_JWT = r"eyJ[\w-]+\.[\w-]+\.[\w-]*"


def fingerprint_account(key: str) -> str:
    """Twelve hexadecimal digits that distinguish the accounts of keys. Many keys share each, so none can be guessed."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=6, person=b"asides account").hexdigest()


class Secret:
    """A key that only `reveal()` returns."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    signs: ClassVar[bool] = False
    """Whether it signs requests instead of going into a header."""
    header: ClassVar[tuple[str, str] | None] = None
    """The header and the prefix that carry it; None: those of the row."""

    def reveal(self) -> str:
        """The key itself, for the wire only."""
        return self._value

    @property
    def account(self) -> str:
        """A fingerprint that distinguishes accounts; "" where it is not known. The key cannot be derived from it."""
        return fingerprint_account(self._value)

    def list_secrets(self) -> list[str]:
        """All its secret values, which must never be shown."""
        return [self._value]

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


class BearerToken(Secret):
    """A token that goes into `Authorization`, whatever header carries the keys of the row."""

    __slots__ = ()

    header: ClassVar[tuple[str, str] | None] = _BEARER


class AwsCredentials(Secret):
    """The credentials that sign a request to AWS when it carries no key (aws_signing)."""

    __slots__ = ("access_key", "region", "service", "token")

    signs: ClassVar[bool] = True

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

    def list_secrets(self) -> list[str]:
        """Also the name of the key, and the token of its session."""
        return [self._value, self.access_key, self.token]

    def _all(self) -> tuple[str, ...]:
        return self.access_key, self._value, self.token, self.region, self.service


KeyFunction: TypeAlias = Callable[[], str | Secret | Awaitable[str | Secret]]
"""A function that returns the key, or for async clients an awaitable of it. Called for each attempt."""
KeyLike: TypeAlias = str | Secret | KeyFunction
"""What `api_key=` takes."""


class KeySource(Secret):
    """A key that is fetched for each attempt of one call: from a function of the caller, or from a cloud.

    Flows ask for it with the step `FetchKey`, drivers fetch it, and `take` checks and keeps it. Belongs to one call.
    """

    __slots__ = ("_fetched", "base_url", "cloud", "current", "function", "is_required", "provider", "refusal")

    def __init__(
        self,
        provider: Provider,
        function: KeyFunction | None = None,
        *,
        cloud: Cloud = "nothing",
        base_url: str = "",
        is_required: bool = True,
    ) -> None:
        super().__init__("")
        self.provider = provider
        self.function = function
        self.cloud: Cloud = cloud
        self.base_url = base_url
        self.is_required = is_required
        """Whether missing cloud credentials are an error; else requests are sent without any."""
        self.current: Secret | None = None
        """The key of this attempt."""
        self.refusal: ProviderError | None = None
        """The error of a server that refused the current key."""
        self._fetched: list[Secret] = []

    @property
    def signs(self) -> bool:  # type: ignore[override]
        """Whether what it fetches signs requests."""
        return self.cloud == "aws"

    @property
    def header(self) -> tuple[str, str] | None:  # type: ignore[override]
        """The header of what it fetches."""
        if self.current is not None:
            return self.current.header
        return _BEARER if self.cloud == "azure-ad" else None

    @property
    def account(self) -> str:
        """Unknown: the keys of one account change over time."""
        return ""

    def reveal(self) -> str:
        """The key of this attempt; "" before it is fetched."""
        return "" if self.current is None else self.current.reveal()

    def list_secrets(self) -> list[str]:
        """Every key that was fetched for this call."""
        return [secret for key in self._fetched for secret in key.list_secrets()]

    def take(self, value: object) -> None:
        """Check what was fetched, and keep it for this attempt. Raises what the fetching raised.

        A key that a server has just refused is not sent again: its error is raised.
        """
        refusal, self.refusal = self.refusal, None
        if isinstance(value, Exception):
            raise value
        key: Secret | None = value if isinstance(value, (AwsCredentials, BearerToken)) else None
        if key is None and (value is not None or self.is_required):
            key = self._read(value)
        if refusal is not None and key == self.current:
            raise refusal
        self.current = key
        if key is not None and key not in self._fetched:
            self._fetched.append(key)

    def _read(self, value: object) -> Secret:
        text = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(text, str):
            raise ConfigError(f"the function in api_key= returned {type(value).__name__}, not text.")
        if not text.strip():
            raise ConfigError(
                f"the function in api_key= returned an empty key for {self.provider.name}. Return the key, or "
                "raise an error that says why there is none."
            )
        return read_key(text, self.provider, "the function in api_key=")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def find_key(
    provider: Provider,
    explicit: KeyLike | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    base_url: str | None = None,
) -> Secret | None:
    """Return the key for a provider: the explicit one, else the first of its variables that is set and not blank, else
    the one in the key file, else the source of a cloud's credentials.

    `base_url` is the address of the request; the default is the row's own. Raises `MissingKey` if the provider requires
    a key and none is set; addresses on this machine never require one. None means: send no credential.
    """
    if provider.quirks.auth == "nothing":
        return None
    if explicit is not None and not isinstance(explicit, (str, Secret)):
        return KeySource(provider, explicit)
    given = explicit.reveal() if isinstance(explicit, Secret) else explicit or ""
    if given.strip():
        return read_key(given, provider, "api_key=")
    environ = os.environ if environ is None else environ
    for name in provider.key_env:
        if value := environ.get(name, "").strip():
            return read_key(value, provider, name)
    if provider.signing == "aws" and (credentials := _read_aws_credentials(provider, environ, base_url)) is not None:
        return credentials
    if (path := _find_key_file(environ)) is not None:
        from asides.providers.key_file import find_stored_key

        if stored := find_stored_key(provider, path):
            return read_key(stored, provider, f"the key file {path}")
    address = provider.base_url if base_url is None else base_url
    is_required = provider.key != "optional" and not is_loopback(address)
    cloud = name_cloud(provider)
    if cloud != "nothing":
        from asides.providers.cloud_hints import can_receive_token, has_cloud_hint

        if can_receive_token(provider, cloud, address) and has_cloud_hint(cloud, environ):
            return KeySource(provider, cloud=cloud, base_url=address, is_required=is_required)
    if is_required:
        raise report_missing_key(provider)
    return None


def name_cloud(provider: Provider) -> Cloud:
    """The cloud whose credentials the provider accepts instead of a key."""
    return "aws" if provider.signing == "aws" else provider.cloud


EXTRAS: dict[Cloud, str] = {"aws": "aws", "google-cloud": "google", "azure-ad": "azure"}
"""The extra that installs the library of a cloud."""


def report_missing_key(provider: Provider, *ways: str) -> MissingKey:
    """The error for a provider without a key. `ways` are further ways to get one."""
    cloud = name_cloud(provider)
    together = (f"{_AWS_ACCESS_KEY} with {_AWS_SECRET}",) if cloud == "aws" else ()
    if not ways and cloud != "nothing":
        ways = (f"sign in to the cloud on this machine (extra asides[{EXTRAS[cloud]}])",)
    return MissingKey(provider.title or provider.name, (*provider.key_env, *together), name=provider.name, ways=ways)


# The key file of each configuration folder. Only paths: the content is read again for each call.
_KEY_FILES: dict[tuple[str, ...], str] = {}
_MAX_KEY_FILES = 64
KEY_FILE = "keys.json"


def _find_key_file(environ: Mapping[str, str]) -> str | None:
    """The path of the key file; None without one. Most machines have none: one look at the disk, nothing loaded."""
    place = tuple([environ.get(name, "") for name in FOLDER_VARIABLES])
    path = _KEY_FILES.get(place)
    if path is None:
        folder = find_config_folder(environ)
        if len(_KEY_FILES) >= _MAX_KEY_FILES:
            _KEY_FILES.clear()
        path = _KEY_FILES[place] = "" if folder is None else str(folder / KEY_FILE)
    return path if path and os.path.lexists(path) else None


AWS_PAIR = (_AWS_ACCESS_KEY, _AWS_SECRET)
"""The variables that sign requests where there is no key."""


def _read_aws_credentials(
    provider: Provider, environ: Mapping[str, str], base_url: str | None
) -> AwsCredentials | None:
    """The AWS credentials in the environment. A region in the address wins over the variables."""
    names = (_AWS_ACCESS_KEY, _AWS_SECRET, _AWS_TOKEN)
    given = {name: value for name in names if (value := environ.get(name, "").strip())}
    if not given.keys() >= set(AWS_PAIR):
        return None
    keys = {name: read_key(value, provider, name).reveal() for name, value in given.items()}
    access_key, secret, token = (keys.get(name, "") for name in names)
    region = choose_aws_region(base_url or provider.base_url, environ)
    return AwsCredentials(access_key, secret, token, region=region, service="bedrock")


def choose_aws_region(base_url: str, environ: Mapping[str, str], usual: str | None = None) -> str:
    """The region to sign for: that of the address, else that of the variables, else the usual one."""
    named = re.match(_AWS_HOST, (urlsplit(base_url).hostname or "").lower())
    if named is not None:
        return named["region"]
    return next((value for name in _AWS_REGIONS if (value := environ.get(name, "").strip())), usual or "us-east-1")


def read_key(value: str, provider: Provider, where: str) -> Secret:
    """Check that a header can carry a key: visible ASCII. HTTP libraries would print a key that they refuse."""
    key = value.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            f"the API key for {provider.name} (from {where}) holds a blank, a line break or a character that "
            "no key has. Copy it again."
        )
    # A token of Azure AD is a JWT; an Azure key is not, since it has no dots.
    return BearerToken(key) if provider.cloud == "azure-ad" and re.fullmatch(_JWT, key) else Secret(key)


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine: localhost, or an IP that is really one of loopback, or 0.0.0.0."""
    from ipaddress import ip_address

    try:
        host = urlsplit(url).hostname or ""
        if host == "localhost":
            return True
        address = ip_address(host)
    except ValueError:
        return False  # A name such as 127.evil.com can belong to anyone.
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
    found = [] if key is None else key.list_secrets()
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
