"""What the requests of every dialect share: native fields laid over ours, JSON, headers, the query of the address, and
who carries the key.

Not here: any field of any dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.providers.provider import Target
from asides.values.errors import ConfigError
from asides.values.version import VERSION


def merge_fields(ours: dict[str, Any], native: Mapping[str, Any]) -> dict[str, Any]:
    """Ours with native fields laid over it: theirs win, and inside objects their siblings stay.

    An object that names another type is another object, and replaces ours whole.
    """
    result = dict(ours)
    for name, value in native.items():
        mine = result.get(name)
        if isinstance(mine, dict) and isinstance(value, Mapping) and value.get("type") in (None, mine.get("type")):
            result[name] = merge_fields(mine, value)
        else:
            result[name] = value
    return result


def encode_json(body: dict[str, Any]) -> bytes:
    """The body as JSON; a value that JSON has not is an error that names its field."""
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            f"the request cannot be written as JSON: look at {_unwritable(body)!r} for a value of a type that JSON has "
            "not, or for text with half a character (a lone surrogate)."
        ) from None


def _unwritable(body: dict[str, Any]) -> str:
    for name, value in body.items():
        try:
            msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError):
            return name
    return "extra"


def build_post(
    target: Target, url: str, accept: str, body: dict[str, Any], headers: Mapping[str, str] | None = None
) -> HttpRequest:
    """The body, ready to be sent; `headers` go beside those of every request."""
    said = {**build_headers(target, accept), **(headers or {})}
    return HttpRequest("POST", url, said, encode_json(body), credential_header(target))


def join_url(
    target: Target, path: str, *, first: Iterable[tuple[str, str]] = (), last: Iterable[tuple[str, str]] = ()
) -> str:
    """This path of the target's host, with the query of the base URL and of the row between those that are given.

    What stands in front wins over the row's. A row's value "$NAME" that nobody resolved is left out.
    """
    base = urlsplit(target.base_url)
    given = [*first, *parse_qsl(base.query, keep_blank_values=True)]
    names = {name for name, _ in given}
    given += [pair for pair in target.provider.query if pair[0] not in names and not pair[1].startswith("$")]
    return urlunsplit((base.scheme, base.netloc, path, urlencode([*given, *last]), ""))


def build_headers(target: Target, accept: str) -> dict[str, str]:
    """The headers of a request, without the credential."""
    return {
        "Content-Type": "application/json",
        "Accept": accept,
        # Compression would hold events back until a block of it is full.
        "Accept-Encoding": "identity",
        "User-Agent": f"asides/{VERSION}",
        **dict(target.provider.headers),
    }


def credential_header(target: Target) -> tuple[str, str] | None:
    """The header and the prefix that carry the key; None where none is sent so."""
    match target.quirks.auth:
        case "bearer":
            return ("Authorization", "Bearer ")
        case "nothing":
            return None
        case name:
            return (name, "")
