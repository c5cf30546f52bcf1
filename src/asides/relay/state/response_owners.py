"""Owners of responses that providers store: the tenant that requested them.

A provider knows one account, and the tenants of a relay share it. So the relay records whose a forwarded response is,
before its caller gets the id, and lets no other tenant read, continue, cancel or delete it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import msgspec

from asides.flows.steps import Flow
from asides.providers.provider import Target
from asides.relay.state.relay_keys import TenantKeys
from asides.relay.state.vault_records import read_payload, write_payload
from asides.relay.steps import DeleteRecords, ReadRecords, StoredRecord


class ResponseOwner(msgspec.Struct, frozen=True):
    """Where a forwarded response is stored."""

    id: str
    provider: str
    base_url: str

    def is_at(self, target: Target) -> bool:
        """Whether the response is at this target's provider."""
        return (self.provider, self.base_url) == (target.provider.name, target.base_url)


def make_owner_record(keys: TenantKeys, response_id: str, target: Target) -> StoredRecord:
    """The record that this tenant owns a response."""
    record_id = f"own_{secrets.token_hex(16)}"
    owner = ResponseOwner(response_id, target.provider.name, target.base_url)
    payload = write_payload(msgspec.json.encode(owner), record_id, keys)
    return StoredRecord(record_id, (keys.make_lookup_key("resp", _name(response_id)),), payload)


def read_owner(keys: TenantKeys, response_id: str) -> Flow[ResponseOwner | None]:
    """Where a response of this tenant is stored; None if it has none of this id, or the store fails."""
    found: Sequence[StoredRecord] | None = yield ReadRecords(keys.tenant, _list_keys(keys, response_id))
    for record in found or ():
        data = read_payload(record, keys)
        try:
            owner = None if data is None else msgspec.json.decode(data, type=ResponseOwner)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if owner is not None and owner.id == response_id:
            return owner
    return None


def forget_owner(keys: TenantKeys, response_id: str) -> Flow[None]:
    """Delete the record of a response that is deleted."""
    yield DeleteRecords(keys.tenant, _list_keys(keys, response_id))


def _name(response_id: str) -> str:
    return f"forwarded:{response_id}"


def _list_keys(keys: TenantKeys, response_id: str) -> tuple[str, ...]:
    return keys.list_lookup_keys("resp", _name(response_id))
