"""Ids of what a provider's account holds: files, containers, stores, stored items.

A provider knows one account, and the tenants of a relay share it. So a tenant names only what its own replies had.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from asides.flows.steps import Flow
from asides.relay.ambiguous_names import CLIENT_OBJECTS, Members, fold_name, read_members
from asides.relay.error_response import RelayRefusal
from asides.relay.state.relay_keys import TenantKeys
from asides.relay.state.vault_records import read_payload, write_payload
from asides.relay.steps import ReadRecords, StoredRecord
from asides.values.parts import ServerTool, UnknownPart
from asides.values.reply import Reply

_IDS = frozenset(
    """
    fileid fileids vectorstoreid vectorstoreids collectionid collectionids libraryid libraryids containerid container
    filesearchstorenames datastore ragcorpus ragcorpora cachedcontent memorystoreid memorystoreids skillid thread
    workspaceid userprofileid fallbackcredittoken
    """.split()
)
"""Fields that hold an id or several, without case and underscores (openai 3.49, anthropic 2.8, google-genai 2.9,
xai-sdk, mistralai 3.7, API_runtime_Converse; 2026-11)."""
_OBJECTS = frozenset({"container", "prompt", "thread"})
"""Objects whose field `id` is one."""
_ADDRESSES = frozenset({"fileuri", "uri", "url", "imageurl", "fileurl"})
_ACCOUNT_ID = re.compile(
    r"(?:gs|s3)://|files/|https?://[^/]*\bgenerativelanguage\.googleapis\.com/.*files/", re.IGNORECASE
)
"""Addresses that the provider opens with its account's own rights."""
_FREE = frozenset({"auto", "none", ""})
"""Values that ask for a new container."""
_CLIENT_OBJECTS = CLIENT_OBJECTS | {"response", "json"}
_SLICE = 1 << 18
_OVERLAP = 64
_MAX_IDS = 200


_NAMES = "|".join(sorted(_IDS | _OBJECTS | {"itemreference"}))
_MARK = re.compile(
    rf'"(?=[a-z])(?:(?:{_NAMES})"|(?:gs|s3)://|files/)|generativelanguage\.googleapis\.com'
    # A name may be escaped, and the long s and the sign of kelvin fold to letters.
    r"|\\u00[2-7]|\\u017f|\\u212a|\\/|\xc5\xbf|\xe2\x84\xaa".encode()
)
"""What a body with an id has in it, without case, underscores and hyphens."""
# An object of nothing but an id, a type, a status and empty values.
_BARE = re.compile(
    rb'\{\s*(?:(?:"(?:id|type|status)"\s*:\s*"[^"]+"|"[^"]*"\s*:\s*(?:null|""|\[\s*\]|\{\s*\}))\s*,?\s*)++\}'
)
_REASONING = re.compile(rb'"type"\s*:\s*"reasoning"')
_FOLD = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))


class AccountId(msgspec.Struct, frozen=True):
    """An id in a request, and the field that names it."""

    field: str
    id: str
    is_item: bool = False
    """It is an item of a stored response, which only a provider of Responses has."""


class _OwnedIds(msgspec.Struct, frozen=True):
    ids: tuple[str, ...]


def find_account_ids(body: bytes) -> list[AccountId]:
    """The ids in a request."""
    return list(dict.fromkeys(_find(read_members(body), ""))) if _may_have_ids(body) else []


def _may_have_ids(body: bytes) -> bool:
    """Whether a body has to be parsed. Large ones are searched in slices, since a search stops all other threads."""
    folded = body.translate(_FOLD, b"_-")
    starts = range(0, len(folded), _SLICE)
    if any(_MARK.search(folded, start, start + _SLICE + _OVERLAP) for start in starts):
        return True
    return _REASONING.search(body) is not None or any(b'"id"' in found[0] for found in _BARE.finditer(body))


def check_account_ids(keys: TenantKeys, given: Sequence[AccountId], *, has_store: bool) -> Flow[None]:
    """Raise RelayRefusal for an id that no reply of this tenant had."""
    if not given:
        return
    if len(given) > _MAX_IDS:
        raise _refuse(given[0])
    wanted = [key for each in given for key in _list_keys(keys, each.id)]
    found: Sequence[StoredRecord] | None = (yield ReadRecords(keys.tenant, tuple(wanted))) if has_store else None
    owned = {own for record in found or () for own in _read_record(record, keys)}
    foreign = next((each for each in given if each.id not in owned), None)
    if foreign is not None:
        raise _refuse(foreign)


def list_reply_ids(reply: Reply, *, with_items: bool) -> tuple[str, ...]:
    """The ids that a reply names. `with_items`: also those of its items, since its provider stores them."""
    found: dict[str, None] = {}
    for part in reply.parts:
        documents = [part.json] if isinstance(part, (ServerTool, UnknownPart)) else []
        texts = (text for seal in part.seals for text in (seal.value, seal.entry))
        documents += [text for text in texts if text and text[0] in "[{"]
        for document in documents:
            members = read_members(document.encode(errors="surrogatepass"))
            found |= dict.fromkeys(each.id for each in _find(members, ""))
            own = dict(members).get("id") if with_items and isinstance(members, Members) else None
            if isinstance(own, str) and own:
                found[own] = None
    return tuple(found)[:_MAX_IDS]


def make_ids_record(keys: TenantKeys, ids: Sequence[str]) -> StoredRecord:
    """The record that this tenant may name these ids."""
    record_id = f"ids_{secrets.token_hex(16)}"
    payload = write_payload(msgspec.json.encode(_OwnedIds(tuple(ids))), record_id, keys)
    return StoredRecord(record_id, tuple(keys.make_lookup_key("resp", _name(each)) for each in ids), payload)


def _read_record(record: StoredRecord, keys: TenantKeys) -> tuple[str, ...]:
    data = read_payload(record, keys)
    try:
        return () if data is None else msgspec.json.decode(data, type=_OwnedIds).ids
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()


def _list_keys(keys: TenantKeys, account_id: str) -> tuple[str, ...]:
    return keys.list_lookup_keys("resp", _name(account_id))


def _name(account_id: str) -> str:
    return f"account:{account_id}"


def _refuse(given: AccountId) -> RelayRefusal:
    return RelayRefusal(
        f"{given.field[:200]} names something that the account of the provider holds, and that no reply to this key "
        "had. Send the content itself, or leave the field out.",
        status=404,
        param=given.field[:200],
    )


def _find(value: Any, path: str) -> Iterator[AccountId]:
    if isinstance(value, Members):
        yield from _find_in_object(value, path)
    elif isinstance(value, list):
        for inner in value:
            yield from _find(inner, path)


def _find_in_object(members: Members, path: str) -> Iterator[AccountId]:
    holder = fold_name(path.rpartition(".")[2])
    kinds = {inner for name, inner in members if name == "type" and isinstance(inner, str)}
    is_item = "item_reference" in kinds or (path == "input" and _is_only_id(members, kinds))
    for name, inner in members:
        where, folded = f"{path}.{name}" if path else name, fold_name(name)
        if folded == "id" and (is_item or holder in _OBJECTS):
            yield from (AccountId(where, each, is_item) for each in _list_texts(inner))
        elif folded in _IDS and not (folded == "skillid" and "anthropic" in kinds):
            yield from (AccountId(where, each) for each in _list_texts(inner) if each not in _FREE)
        elif folded in _ADDRESSES:
            yield from (AccountId(where, each) for each in _list_texts(inner) if _ACCOUNT_ID.match(each))
        # The input of a tool and its result are the client's own; an input at the top is the conversation.
        is_own = name == "data" or (name in ("input", "result") and bool(path))
        is_free = name in _CLIENT_OBJECTS or (is_own and isinstance(inner, Members))
        if isinstance(inner, list) and not is_free:
            yield from _find(inner, where)


def _is_only_id(members: Members, kinds: set[str]) -> bool:
    """Whether an item holds nothing of its own: its provider looks it up by its id."""
    if "reasoning" in kinds:
        return not any(inner for name, inner in members if name in ("summary", "content", "encrypted_content"))
    own = {name for name, inner in members if inner not in (None, "", [], {})}
    return "id" in own and own <= {"id", "type", "status"}


def _list_texts(value: Any) -> Iterable[str]:
    return (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str) and each)
