"""The requests and responses of vendors' batches: pure builders and parsers, one module for each form.

A form knows how a batch is created, watched, found again, cancelled and read. The rows themselves are encoded and
decoded by the dialects.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol, TypeAlias, cast
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.providers.batch_facts import VendorForm
from asides.values.errors import ProtocolError

RowKind: TypeAlias = Literal["answered", "failed", "expired", "cancelled", "unreadable"]
"""unreadable: the vendor has a result of the row that says neither that it was answered nor that it failed."""
_MODULES: dict[VendorForm, str] = {"files": "file_form", "messages": "message_form", "contents": "content_form"}


class VendorRow(msgspec.Struct, frozen=True):
    """One request of a batch, as its dialect encoded it for a live call."""

    custom_id: str
    request: HttpRequest

    def __repr__(self) -> str:
        return f"VendorRow({self.custom_id}, <{len(self.request.body)} bytes>)"


class RowOutcome(msgspec.Struct, frozen=True):
    """What became of one row."""

    custom_id: str
    kind: RowKind
    status: int = 200
    body: bytes = b""
    """The reply or the error as the dialect would send it live."""
    message: str = ""
    """The vendor's words, where there is no error in the dialect."""

    def __repr__(self) -> str:
        return f"RowOutcome({self.custom_id}, {self.kind}, {self.status}, <{len(self.body)} bytes>)"


class VendorStatus(msgspec.Struct, frozen=True):
    """How far a batch is."""

    id: str
    is_ended: bool
    state: str
    """The vendor's word for it."""
    total: int | None = None
    done: int | None = None
    """The requests that have an outcome, where the vendor counts them."""
    error: str = ""
    """Why the whole batch failed, in the vendor's words."""
    results: tuple[str, ...] = ()
    """The files of the results, for forms that have files."""
    has_results: bool = False
    """Whether results can be fetched."""
    is_limit: bool = False
    """Whether it failed only because too much is waiting at the vendor."""


class ListedBatch(msgspec.Struct, frozen=True):
    """A batch in the vendor's list."""

    id: str
    marker: str | None
    """The name that its creator gave it; None where the vendor keeps no name."""
    total: int | None
    created: float | None
    """Unix time."""


class ListPage(msgspec.Struct, frozen=True):
    """A page of the vendor's list, the newest batch first."""

    batches: tuple[ListedBatch, ...]
    after: str | None
    """What asks for the next page; None at the last."""


class FormResponse(msgspec.Struct, frozen=True):
    """A response to a request of a form."""

    headers: Mapping[str, str]
    body: bytes


Upload: TypeAlias = Generator[HttpRequest, FormResponse, str | None]
"""The requests that upload a batch before it is created, which costs nothing. Returns the id of the file."""


class BatchForm(Protocol):
    """One form. Its requests are built from that of a row: address, headers and key are those of a live call."""

    has_marker: bool
    """Whether the vendor keeps the name that we give a batch."""
    most_inline_rows: int
    """The results of a batch with up to this many rows may be in its description; 0: never."""

    def group(self, row: VendorRow) -> tuple[Any, ...]:
        """What the rows of one batch must have in common."""
        ...

    def encode_row(self, row: VendorRow) -> bytes:
        """The row as one line of JSON."""
        ...

    def upload(self, row: VendorRow, marker: str, lines: Sequence[bytes], most_inline: int) -> Upload:
        """Bring the lines to the vendor, where that comes before the creation."""
        ...

    def create(self, row: VendorRow, marker: str, lines: Sequence[bytes], file: str | None) -> HttpRequest:
        """Create the batch. To be sent once."""
        ...

    def show(self, row: VendorRow, batch_id: str) -> HttpRequest:
        """Ask how far a batch is."""
        ...

    def cancel(self, row: VendorRow, batch_id: str) -> HttpRequest:
        """Cancel a batch."""
        ...

    def list(self, row: VendorRow, after: str | None) -> HttpRequest:
        """Ask for a page of the list of batches."""
        ...

    def fetch(self, row: VendorRow, status: VendorStatus) -> tuple[HttpRequest, ...]:
        """Ask for the results of a batch that has ended."""
        ...

    def read_status(self, body: bytes) -> VendorStatus:
        """Read the description of a batch."""
        ...

    def read_list(self, body: bytes) -> ListPage:
        """Read a page of the list."""
        ...

    def read_entry(self, entry: bytes) -> RowOutcome:
        """Read one entry of the results: a line, or a part of a document. Raises ProtocolError."""
        ...

    def split(self, body: bytes) -> Sequence[bytes]:
        """Split results that come as one document into their entries. Raises ProtocolError."""
        ...

    def has_lines(self, status: VendorStatus) -> bool:
        """Whether results come as lines."""
        ...


def find_form(name: VendorForm) -> BatchForm:
    """The form of this name."""
    return cast("BatchForm", import_module(f"asides_batch.vendor.forms.{_MODULES[name]}").FORM)


# --- what the forms share ---------------------------------------------------------------------------------------------


def build_request(
    row: VendorRow,
    method: str,
    path: str,
    *,
    query: Mapping[str, str | int] | None = None,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    has_key: bool = True,
) -> HttpRequest:
    """Build a request to this path at the host of a row, with the row's headers and key."""
    address = urlsplit(row.request.url)
    parts = [part for part in (address.query, urlencode(query or {})) if part]
    url = urlunsplit((address.scheme, address.netloc, path, "&".join(parts), ""))
    common = {**row.request.headers, "Accept": "application/json", **(headers or {})}
    if not body and "content-type" not in {name.lower() for name in headers or {}}:
        common = {name: value for name, value in common.items() if name.lower() != "content-type"}
    key = row.request.credential_header if has_key else None
    return msgspec.structs.replace(
        row.request, method=method, url=url, headers=common, body=body, credential_header=key
    )


def get_path(row: VendorRow) -> str:
    """The path of a row's live request."""
    return urlsplit(row.request.url).path


def parse_object(body: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ProtocolError."""
    try:
        parsed = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ProtocolError(f"{what} is not a JSON object.", payload=body[:2000])
    return parsed


def take_name(entry: Any, name: str) -> str:
    """The id of the row that an entry of the results belongs to. Raises ProtocolError if it has none."""
    found = take_text(entry, name)
    if found is None:
        raise ProtocolError(f"an entry of the results has no {name}.")
    return found


def take_text(fields: Any, name: str) -> str | None:
    """A field, if it is text."""
    found = fields.get(name) if isinstance(fields, dict) else None
    return found if isinstance(found, str) and found else None


# An id becomes part of a path.
_ID = re.compile(r"[A-Za-z0-9][\w-]*(?:/[\w-]+)?")


def take_id(fields: Any, name: str) -> str | None:
    """A field, if it is text of the form that ids have. Raises ProtocolError for other text."""
    found = take_text(fields, name)
    if found is not None and (len(found) > 200 or not _ID.fullmatch(found)):
        raise ProtocolError(f"{name} is not a valid id.")
    return found


def take_count(fields: Any, name: str) -> int | None:
    """A field, if it is a number, or a number as text."""
    found = fields.get(name) if isinstance(fields, dict) else None
    if isinstance(found, str) and found.isdigit() and len(found) < 19:
        return int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def parse_time(text: str | None) -> float | None:
    """The Unix time of an RFC 3339 date; None if it is not one."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return None


def encode_error(message: str, **fields: Any) -> bytes:
    """Write the error of a row as a document."""
    return msgspec.json.encode({"error": {"message": message, **fields}})
