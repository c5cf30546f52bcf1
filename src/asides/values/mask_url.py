"""`mask_url`: the URL of a server as it may be shown, without its password; and structs that hold one.

A URL that is written wrongly is masked all the more: what might be a password is never shown.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus

import msgspec

_MASK = "***"
_SECRET = re.compile(r"pass(word|wd|phrase)|secret|token|^pwd$", re.IGNORECASE)
# libpq's key/value form of a connection string: host=db password='two words'.
_WORD = re.compile(r"(\b(?=\w*(?:password|passwd|secret|token))\w+\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)


def mask_url(url: str) -> str:
    """The URL with `***` for its password: before the host, and in its query."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return _WORD.sub(rf"\1{_MASK}", url)
    # A password that is not written as a percent code may hold any mark, so the last @ ends it.
    credentials, at, place = rest.rpartition("@")
    if at:
        user, colon, _ = credentials.partition(":")
        place = f"{user}{colon and f':{_MASK}'}@{place}"
    start, question, query = place.partition("?")
    return f"{scheme}://{start}{question}{'&'.join(map(_mask_pair, query.split('&')))}"


def _mask_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={_MASK}" if equals and _SECRET.search(unquote_plus(name)) else pair


def show_value(value: Any) -> Any:
    """The value as it may be shown: a URL without its password, anything else as it is."""
    return mask_url(value) if isinstance(value, str) and "://" in value else value


class MaskedStruct(msgspec.Struct, frozen=True):
    """A struct that may hold URLs with passwords, which its repr does not show."""

    def __repr__(self) -> str:
        fields = (f"{name}={show_value(getattr(self, name))!r}" for name in self.__struct_fields__)
        return f"{type(self).__name__}({', '.join(fields)})"
