"""`Learned`: what the refusal of a request taught about a model at an address, so that the next request fits.

A reply carries what it took to get it, and so does its message: a saved conversation needs no second refusal.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from asides.values.json_form import JsonForm


class Learned(msgspec.Struct, JsonForm, frozen=True):
    """One fact about a model at an address, for one account. It holds no content, no seal and no key."""

    kind: str
    """The kind of the refusal: a `RejectionKind`."""
    endpoint: str
    """The base URL, without credentials."""
    dialect: str = ""
    account: str = ""
    """The fingerprint of the account; "" where it is not known."""
    model: str = ""
    """"" = all models of the account."""
    changes: tuple[tuple[str, Any], ...] = ()
    """Facts that differ from the provider's row, by field name."""
    refused: tuple[str, ...] = ()
    """Digests of seals and thoughts that do not go back there."""

    def __post_init__(self) -> None:
        # A file has lists, which neither hash nor equal the tuples of a row.
        msgspec.structs.force_setattr(self, "changes", _freeze(self.changes))


def _freeze(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_freeze, value))
    return repr(value) if isinstance(value, (dict, set)) else value  # no fact is one


def digest_refused(value: str) -> str:
    """The digest under which a refused seal or thought is remembered."""
    return hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
