"""What the requests of every dialect share: native fields laid over ours, JSON, headers, and who carries the key.

Not here: any field of any dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.errors import ConfigError
from asides.providers.provider import Target
from asides.version import VERSION


def merged(ours: dict[str, Any], native: Mapping[str, Any]) -> dict[str, Any]:
    """Ours with native fields laid over it: theirs win, and inside objects their siblings stay.

    An object that names another type is another object, and replaces ours whole.
    """
    result = dict(ours)
    for name, value in native.items():
        mine = result.get(name)
        if isinstance(mine, dict) and isinstance(value, Mapping) and value.get("type") in (None, mine.get("type")):
            result[name] = merged(mine, value)
        else:
            result[name] = value
    return result


def json_body(body: dict[str, Any]) -> bytes:
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


def headers_for(target: Target, accept: str) -> dict[str, str]:
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
