"""Master keys and what is derived from them: every tenant has its own, old keys still open, nothing shows them."""

from __future__ import annotations

import copy
import pickle
import re
import secrets
from base64 import b64encode, urlsafe_b64encode

import pytest

from asides.relay.state.relay_keys import RelayKeys
from asides.values.errors import ConfigError

OLD, NEW = b"o" * 32, b"n" * 32


def test_what_is_encrypted_for_a_tenant_opens_for_it_alone() -> None:
    keys = RelayKeys((NEW,))
    tenant = keys.find_tenant("a")
    sealed = tenant.encrypt(b"state", "record", b"id")
    assert tenant.decrypt(sealed, tenant.current_id, "record", b"id") == b"state"
    assert keys.find_tenant("b").decrypt(sealed, tenant.current_id, "record", b"id") is None
    assert tenant.decrypt(sealed, tenant.current_id, "record", b"other") is None
    assert tenant.decrypt(sealed, tenant.current_id, "envelope", b"id") is None
    assert tenant.decrypt(b"short", tenant.current_id, "record", b"id") is None


def test_an_older_key_of_the_ring_opens_and_the_newest_one_encrypts() -> None:
    before, after, without = RelayKeys((OLD,)), RelayKeys((NEW, OLD)), RelayKeys((NEW,))
    sealed = before.find_tenant("a").encrypt(b"state", "record")
    old_id = before.find_tenant("a").current_id
    assert after.find_tenant("a").decrypt(sealed, old_id, "record") == b"state"
    assert after.find_tenant("a").current_id == without.find_tenant("a").current_id != old_id
    assert without.find_tenant("a").decrypt(sealed, old_id, "record") is None
    assert not without.find_tenant("a").has_key(old_id)


def test_a_record_is_looked_for_under_every_key_and_stored_under_the_newest() -> None:
    before, after = RelayKeys((OLD,)).find_tenant("a"), RelayKeys((NEW, OLD)).find_tenant("a")
    assert before.make_lookup_key("call", "c1") in after.list_lookup_keys("call", "c1")
    assert after.make_lookup_key("call", "c1") == after.list_lookup_keys("call", "c1")[0]


def test_no_two_tenants_kinds_or_values_share_a_lookup_key() -> None:
    keys = RelayKeys((NEW,))
    made = {
        keys.find_tenant(tenant).make_lookup_key(kind, value)
        for tenant in ("", "a", "b")
        for kind in ("call", "text", "ref")
        for value in ("x", "y", "")
    }
    assert len(made) == 27


def test_keys_are_read_as_people_make_them() -> None:
    master = secrets.token_bytes(32)
    forms = [master.hex(), b64encode(master).decode(), urlsafe_b64encode(master).decode().rstrip("=")]
    ids = {RelayKeys.parse(f" {form}\n").find_tenant("a").current_id for form in forms}
    assert len(ids) == 1
    ring = RelayKeys.parse(f"{NEW.hex()}, {OLD.hex()}\n{master.hex()}")
    assert ring.find_tenant("a").current_id == RelayKeys((NEW,)).find_tenant("a").current_id
    assert ring.find_tenant("a").has_key(RelayKeys((OLD,)).find_tenant("a").current_id)


@pytest.mark.parametrize("text", ["", " , ", "a pass phrase", "ab" * 31, "é" * 43, "zz" * 32, "A" * 40])
def test_a_key_that_is_none_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RelayKeys.parse(text)
    assert re.search(r"\. [A-Z]", str(caught.value))
    assert not text.strip(" ,") or text not in str(caught.value)


def test_keys_are_shown_nowhere_and_leave_the_process_in_no_pickle() -> None:
    keys = RelayKeys((NEW,))
    tenant = keys.find_tenant("a")
    shown = f"{keys!r} {keys} {tenant!r} {tenant}"
    assert "nnnn" not in shown
    assert NEW.hex() not in shown
    for each in (keys, tenant):
        with pytest.raises(TypeError):
            pickle.dumps(each)
        with pytest.raises(TypeError):
            copy.deepcopy(each)


def test_many_tenants_take_no_more_and_more_memory() -> None:
    keys = RelayKeys((NEW,))
    first = keys.find_tenant("0").make_lookup_key("call", "x")
    for number in range(3000):
        keys.find_tenant(str(number))
    assert len(keys._tenants) <= 1024
    assert keys.find_tenant("0").make_lookup_key("call", "x") == first
