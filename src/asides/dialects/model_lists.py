"""Lists of models in every dialect: builds the request for a page, reads the page, and writes it for the server half.

Every field of an entry may be missing. Not here: the fields of each dialect (model_list_formats).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import build_headers, choose_credential_header, join_url
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.model_info import ModelInfo, ModelPage
from asides.wire.lenient import read_document

Value = TypeVar("Value")

# The most models that a page can hold. A server sends fewer unless it is asked for this number.
_PAGE_SIZE = 1000


def build_list_request(target: Target, path: str, query: Iterable[tuple[str, str]] = ()) -> HttpRequest:
    """Build the request for a list at this path of the target's host, with the query of the address and of the row."""
    headers = build_headers(target, "application/json")
    del headers["Content-Type"]
    return HttpRequest("GET", join_url(target, path, first=query), headers, b"", choose_credential_header(target))


def strip_reply_path(target: Target) -> str:
    """Return the path of the target's address, without its end for replies."""
    return urlsplit(target.base_url).path.rstrip("/").removesuffix(target.quirks.path or "/").rstrip("/")


class Entry:
    """One JSON object of a list. A field that is missing, null or of another type is None."""

    def __init__(self, fields: object) -> None:
        self.fields: dict[str, Any] = fields if isinstance(fields, dict) else {}

    def get_text(self, *names: str) -> str | None:
        """Return the first of these fields that is text and not empty."""
        return next((value for value in self._find_values(names, str) if value), None)

    def get_count(self, *names: str) -> int | None:
        """Return the first of these fields that is a number above zero; some servers write 0 for "not known"."""
        values = (value for value in self._find_values(names, (int, float)) if not isinstance(value, bool))
        return next((int(value) for value in values if 0 < value < float("inf")), None)

    def get_flag(self, name: str) -> bool | None:
        """Return the field if it is true or false."""
        value = self.fields.get(name)
        return value if isinstance(value, bool) else None

    def get_texts(self, name: str) -> tuple[str, ...] | None:
        """Return the texts of a list."""
        value = self.fields.get(name)
        return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else None

    def get_object(self, name: str) -> Entry | None:
        """Return an object inside this one."""
        value = self.fields.get(name)
        return Entry(value) if isinstance(value, dict) else None

    def get_timestamp(self, name: str) -> int | None:
        """Return an ISO date as Unix time. The epoch is None: some servers write it for a date they do not know."""
        try:
            date = datetime.fromisoformat(self.get_text(name) or "")
        except ValueError:
            return None
        return int(date.timestamp()) if date.tzinfo is not None and date.timestamp() > 0 else None

    def _find_values(self, names: Sequence[str], kind: type[Value] | tuple[type, ...]) -> Iterable[Any]:
        return (value for name in names if isinstance(value := self.fields.get(name), kind))


def read_list(body: bytes, *names: str, beside: frozenset[str] | None = None) -> tuple[list[Entry], Entry]:
    """Return the entries of a list, and the object around it. The list has one of these names, or is the whole
    document.

    `beside` is for servers that leave an empty list out: a document with only these fields is an empty list. Raises
    `ProtocolError` when there is no list.
    """
    document, _ = read_document(body)
    around = Entry(document)
    lists = [document, *(around.fields.get(name) for name in names)]
    if beside is not None and isinstance(document, dict) and document.keys() <= beside:
        lists.append([])
    found = next((value for value in lists if isinstance(value, list)), None)
    if found is None:
        raise ProtocolError("the response is not a list of models. To do: check the base URL.", payload=body)
    return [Entry(entry) for entry in found], around


class Paging(msgspec.Struct, frozen=True):
    """The pages of a dialect's list: the names of the query's parameters and of the fields around a page."""

    size: str
    after: str
    next_field: str
    usual_size: int
    more_flag: str | None = None
    """The field that says whether more follows; None if `next_field` itself says so."""


class ModelList(msgspec.Struct, frozen=True):
    """The list of models in one dialect."""

    find_path: Callable[[Target], str]
    """Raises Unsupported if there is no list."""
    read_entry: Callable[[Entry, str], ModelInfo]
    write_entry: Callable[[ModelInfo], dict[str, Any]]
    names: tuple[str, ...]
    """The fields that may hold the list; a server writes the first."""
    id_fields: tuple[str, ...]
    paging: Paging | None = None
    query: tuple[tuple[str, str], ...] = ()
    omits_empty: bool = False
    """An empty list may be missing."""
    around: tuple[tuple[str, str], ...] = ()
    """Fields before the list."""

    def build_request(self, target: Target, after: str | None = None) -> HttpRequest:
        """Build the request for the page that follows `after`, or for the first."""
        path, query = self.find_path(target), [*self.query]
        if self.paging is not None:
            query.append((self.paging.size, str(_PAGE_SIZE)))
            query += [] if after is None else [(self.paging.after, after)]
        return build_list_request(target, path, query)

    def read_page(self, body: bytes) -> ModelPage:
        """Read a page. Raises ProtocolError if the body holds none."""
        paging = self.paging
        beside = frozenset({paging.next_field}) if paging is not None and self.omits_empty else None
        entries, around = read_list(body, *self.names, beside=beside)
        models = tuple(self.read_entry(entry, model) for entry in entries if (model := entry.get_text(*self.id_fields)))
        if paging is None or (paging.more_flag is not None and not around.get_flag(paging.more_flag)):
            return ModelPage(models)
        return ModelPage(models, around.get_text(paging.next_field))

    def write_page(self, models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
        """Server half: write the page that the query asks for."""
        if self.paging is None:
            return self._write(models)
        limit, after = query.get(self.paging.size, str(self.paging.usual_size)), query.get(self.paging.after)
        size = min(int(limit), _PAGE_SIZE) if limit.isdecimal() and len(limit) < 10 and int(limit) > 0 else _PAGE_SIZE
        names = [model.id for model in models]
        start = names.index(after) + 1 if after in names else 0
        page, more = models[start : start + size], start + size < len(models)
        last = page[-1].id if page else None
        if self.paging.more_flag is None:
            return self._write(page, {self.paging.next_field: last} if more else {})
        first = page[0].id if page else None
        return self._write(page, {"first_id": first, self.paging.more_flag: more, self.paging.next_field: last})

    def _write(self, page: Sequence[ModelInfo], after: Mapping[str, Any] | None = None) -> bytes:
        entries = [self.write_entry(model) for model in page]
        return msgspec.json.encode({**dict(self.around), self.names[0]: entries, **(after or {})})
