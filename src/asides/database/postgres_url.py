"""The URL of a PostgreSQL database: read it for libpq, and describe it without user and password.

`pgbouncer=true` in its query declares a pooler in transaction mode before the server, `pgbouncer=false` none. Without
it each connection detects the pooler (postgres_pools). libpq does not know this parameter, so it is removed.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from asides.values.errors import ConfigError

SCHEMA = "asides"
"""The schema of all tables."""
_POOLER = "pgbouncer"
_SCHEMES = ("postgresql", "postgres")
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class PostgresUrl(NamedTuple):
    """A URL in libpq's form, and its setting for a pooler."""

    conninfo: str
    has_pooler: bool | None
    """Whether a connection keeps nothing from one transaction to the next; None: the URL does not say."""
    name: str
    """The server and the database, without user and password."""

    def __repr__(self) -> str:
        return f"PostgresUrl({self.name!r})"


def is_postgres_url(location: object) -> bool:
    """Whether a location of a store is the URL of a PostgreSQL database, and no file."""
    return isinstance(location, str) and "://" in location and location.partition("://")[0].lower() in _SCHEMES


def read_url(url: str) -> PostgresUrl:
    """Read a URL. Raises ConfigError for a wrong one; the error shows no password."""
    try:
        parts = urlsplit(url)
        name = describe_url(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise ConfigError(
            "the URL of the store cannot be read. Write it as postgresql://user@host:5432/name, and special "
            "characters in a password as percent codes, such as %40 for @."
        ) from None
    if not is_postgres_url(url):
        scheme, has_scheme, _ = url.partition("://")
        what = f"begins with {scheme[:20]}://" if has_scheme else "has no ://"
        raise ConfigError(
            f"the setting store (ASIDES_STORE) {what}, and is not a PostgreSQL database. Write "
            "postgresql://user@host/name."
        )
    said = [value.lower() for key, value in pairs if key == _POOLER]
    if any(value not in _TRUE + _FALSE for value in said):
        raise ConfigError(f"{_POOLER}= of the store {name} is neither true nor false. Write one of them.")
    # libpq knows schemes in small letters only.
    url = f"{parts.scheme}://{url.partition('://')[2]}"
    if said:
        rest = urlencode([(key, value) for key, value in pairs if key != _POOLER], safe="/:,")
        url = url.partition("?")[0] + (f"?{rest}" if rest else "")
    return PostgresUrl(url, said[-1] in _TRUE if said else None, name)


def describe_url(url: str) -> str:
    """The server and the database of a URL, without user and password."""
    # A password may hold an @ that is not a percent code, so the last @ ends it.
    place = url.partition("://")[2].rpartition("@")[2]
    hosts, slash, name = place.partition("?")[0].partition("/")
    return f"{hosts or 'localhost'}{slash}{name}"


def build_parameters(url: PostgresUrl, patience: float) -> dict[str, Any]:
    """The parameters of every connection."""
    parameters: dict[str, Any] = {
        "autocommit": True,
        "connect_timeout": max(2, int(patience)),
        "application_name": "asides",
        # Behind a pooler, a prepared statement would collide with those of the connection's next user.
        "prepare_threshold": None,
    }
    if "keepalives" not in url.conninfo:
        # Firewalls and proxies drop connections that are silent for some minutes.
        parameters["keepalives_idle"] = 60
    return parameters
