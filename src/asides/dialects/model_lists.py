"""What the lists of models share in every dialect: the request for a page, and entries of which all may be missing.

Not here: the fields of any dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_headers, credential_header, join_url
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.wire.lenient import read_document

Value = TypeVar("Value")


def build_list_request(target: Target, path: str, query: Iterable[tuple[str, str]] = ()) -> HttpRequest:
    """A request for a list at this path of the target's host; the query of the address and of the row goes along."""
    headers = build_headers(target, "application/json")
    del headers["Content-Type"]
    return HttpRequest("GET", join_url(target, path, first=query), headers, b"", credential_header(target))


def strip_reply_path(target: Target) -> str:
    """The path of the target's address, without the end that asks for a reply."""
    return urlsplit(target.base_url).path.rstrip("/").removesuffix(target.quirks.path or "/").rstrip("/")


class Entry:
    """One JSON object of a list. A field that is missing, null or of another type is None."""

    def __init__(self, fields: object) -> None:
        self.fields: dict[str, Any] = fields if isinstance(fields, dict) else {}

    def text(self, *names: str) -> str | None:
        """The first of these fields that is text and not empty."""
        return next((value for value in self._all(names, str) if value), None)

    def count(self, *names: str) -> int | None:
        """The first of these fields that is a number above zero; some write 0 for what they do not know."""
        values = (value for value in self._all(names, (int, float)) if not isinstance(value, bool))
        return next((int(value) for value in values if 0 < value < float("inf")), None)

    def flag(self, name: str) -> bool | None:
        """The field, if it is true or false."""
        value = self.fields.get(name)
        return value if isinstance(value, bool) else None

    def words(self, name: str) -> tuple[str, ...] | None:
        """The texts of a list."""
        value = self.fields.get(name)
        return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else None

    def within(self, name: str) -> Entry | None:
        """An object inside this one."""
        value = self.fields.get(name)
        return Entry(value) if isinstance(value, dict) else None

    def moment(self, name: str) -> int | None:
        """A date in ISO's spelling, as Unix time. The epoch is how some write that they do not know."""
        try:
            read = datetime.fromisoformat(self.text(name) or "")
        except ValueError:
            return None
        return int(read.timestamp()) if read.tzinfo is not None and read.timestamp() > 0 else None

    def _all(self, names: Sequence[str], kind: type[Value] | tuple[type, ...]) -> Iterable[Any]:
        return (value for name in names if isinstance(value := self.fields.get(name), kind))


def read_list(body: bytes, *names: str, beside: frozenset[str] | None = None) -> tuple[list[Entry], Entry]:
    """The entries of a list that stands under one of these names, or is the whole document; and what is around it.

    `beside` is for those who leave an empty list out: the fields that may then stand alone. Raises `ProtocolError` when
    there is no list.
    """
    document, _ = read_document(body)
    around = Entry(document)
    lists = [document, *(around.fields.get(name) for name in names)]
    if beside is not None and isinstance(document, dict) and document.keys() <= beside:
        lists.append([])
    found = next((value for value in lists if isinstance(value, list)), None)
    if found is None:
        raise ProtocolError("the response is no list of models. To do: check the base URL.", payload=body)
    return [Entry(entry) for entry in found], around


def page_of(
    items: Sequence[Value], names: Sequence[str], after: str | None, limit: str, most: int
) -> tuple[list[Value], bool]:
    """Server half: the items behind the one that is named `after`, at most `limit` of them, and whether more follow."""
    start = names.index(after) + 1 if after in names else 0
    size = min(int(limit), most) if limit.isdecimal() and int(limit) > 0 else most
    return list(items[start : start + size]), start + size < len(items)
