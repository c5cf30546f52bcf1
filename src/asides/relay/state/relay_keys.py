"""The keys of a relay: a ring of master keys (`RelayKeys`), and those that are derived from it for a tenant
(`TenantKeys`).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Self

from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MASTER_BYTES = 32
KEY_VARIABLE = "ASIDES_RELAY_KEY"
_MOST_TENANTS = 1024
_NONCE_BYTES = 12

Purpose = Literal["envelope", "record"]
KeyKind = Literal["call", "chained", "near", "text", "resp", "ref", "pending"]
"""What a record is found by: a call's id; the visible turn after all that was said before it, after the words directly
before it, or alone; the id of a response; a reference in an envelope. By "pending" only a later record of the
same words finds it."""


@cache
def can_encrypt() -> bool:
    """Whether the package `cryptography` is installed (extra `relay`)."""
    try:
        import_module("cryptography.hazmat.primitives.ciphers.aead")
    except ImportError:
        return False
    return True


class RelayKeys:
    """Master keys, the newest first. The newest one encrypts; all of them open what they encrypted."""

    def __init__(self, masters: Sequence[bytes]) -> None:
        if not masters:
            raise ConfigError("a relay needs at least one master key. Omit the argument to create one.")
        if any(len(master) != MASTER_BYTES for master in masters):
            raise ConfigError(f"a master key of a relay has {MASTER_BYTES} bytes. {_HOW_TO_MAKE}")
        self._masters = tuple(masters)
        self._tenants: dict[str, TenantKeys] = {}

    @classmethod
    def generate(cls) -> Self:
        """Make a random key. What it encrypts is lost with the process."""
        return cls((secrets.token_bytes(MASTER_BYTES),))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read keys as text, the newest first, with blanks, commas or line ends between them: 64 hexadecimal digits, or
        base64. Raises ConfigError, which shows nothing of them.
        """
        return cls([_parse_master(word) for word in text.replace(",", " ").split()])

    def find_tenant(self, tenant: str) -> TenantKeys:
        """The keys of a tenant."""
        found = self._tenants.get(tenant)
        if found is None:
            if len(self._tenants) >= _MOST_TENANTS:
                self._tenants.clear()
            found = self._tenants[tenant] = TenantKeys(tenant, self._masters)
        return found

    def has_key(self, key_id: str) -> bool:
        """Whether a key of this id is in the ring. The id is the same for all tenants."""
        return self.find_tenant("").has_key(key_id)

    def __repr__(self) -> str:
        return f"RelayKeys(<{len(self._masters)} keys>)"

    def __reduce__(self) -> str:
        raise TypeError("the keys of a relay cannot be copied into a file.")


_HOW_TO_MAKE = 'Make one with python -c "import secrets; print(secrets.token_urlsafe(32))".'


def _parse_master(word: str) -> bytes:
    try:
        # 64 digits are as well base64, of 48 bytes.
        master = bytes.fromhex(word) if len(word) == 2 * MASTER_BYTES else _decode_base64(word)
    except ValueError:
        master = b""
    if len(master) != MASTER_BYTES:
        raise ConfigError(
            f"a master key of a relay ({KEY_VARIABLE}, or its file) is not {MASTER_BYTES} bytes as base64 or "
            f"hexadecimal digits. {_HOW_TO_MAKE}"
        )
    return master


def _decode_base64(word: str) -> bytes:
    bare = word.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except (NotBase64, UnicodeEncodeError):
        return b""


class _Derived:
    """What one master key gives for one tenant."""

    def __init__(self, master: bytes, tenant: bytes) -> None:
        self.id = _derive(master, b"id", b"")[:4].hex()
        self.digest_lookup = make_digester(_derive(master, b"lookup", tenant))
        self._secrets = {
            "envelope": _derive(master, b"envelope", tenant),
            "record": _derive(master, b"record", tenant),
        }
        self._ciphers: dict[str, AESGCM] = {}

    def find_cipher(self, purpose: Purpose) -> AESGCM:
        cipher = self._ciphers.get(purpose)
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            cipher = self._ciphers[purpose] = AESGCM(self._secrets[purpose])
        return cipher


def make_digester(key: bytes) -> Callable[[bytes], bytes]:
    """HMAC-SHA-256 under one key (RFC 2104), with its two blocks hashed once: a request needs several."""
    block = key.ljust(hashlib.sha256().block_size, b"\0")
    inner, outer = (hashlib.sha256(bytes(byte ^ mask for byte in block)) for mask in (0x36, 0x5C))

    def digest(message: bytes) -> bytes:
        first, second = inner.copy(), outer.copy()
        first.update(message)
        second.update(first.digest())
        return second.digest()

    return digest


def _derive(master: bytes, purpose: bytes, tenant: bytes) -> bytes:
    return hmac.digest(master, b"asides relay 1\0" + purpose + b"\0" + tenant, "sha256")


class TenantKeys:
    """The keys of one tenant."""

    def __init__(self, tenant: str, masters: Sequence[bytes]) -> None:
        self.tenant = tenant
        self._bound = tenant.encode("utf-8", "surrogatepass")
        self._ring = tuple(_Derived(master, self._bound) for master in masters)

    @property
    def current_id(self) -> str:
        """The id of the key that encrypts."""
        return self._ring[0].id

    def make_lookup_key(self, kind: KeyKind, value: bytes | str) -> str:
        """The key under which a record is stored."""
        return _make_lookup_key(self._ring[0], kind, value)

    def list_lookup_keys(self, kind: KeyKind, value: bytes | str) -> tuple[str, ...]:
        """The keys under which a record may be found: one for each master key."""
        return tuple([_make_lookup_key(derived, kind, value) for derived in self._ring])

    def encrypt(self, data: bytes, purpose: Purpose, bound: bytes = b"") -> bytes:
        """Encrypt with the newest key. `bound` and the tenant must be the same for decryption. Needs `cryptography`."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._ring[0].find_cipher(purpose).encrypt(nonce, data, self._bound + b"\0" + bound)

    def decrypt(self, data: bytes, key_id: str, purpose: Purpose, bound: bytes = b"") -> bytes | None:
        """Decrypt what the key of this id encrypted; None if any bit of it differs, or was made for another tenant."""
        from cryptography.exceptions import InvalidTag

        for derived in self._ring:
            if derived.id == key_id:
                try:
                    cipher = derived.find_cipher(purpose)
                    return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], self._bound + b"\0" + bound)
                except (InvalidTag, ValueError):
                    continue
        return None

    def has_key(self, key_id: str) -> bool:
        """Whether a key of this id is in the ring."""
        return any(derived.id == key_id for derived in self._ring)

    def __repr__(self) -> str:
        return f"TenantKeys(<{len(self._ring)} keys>)"

    def __reduce__(self) -> str:
        raise TypeError("the keys of a relay cannot be copied into a file.")


def _make_lookup_key(derived: _Derived, kind: KeyKind, value: bytes | str) -> str:
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    message = hashlib.blake2b(data, digest_size=32).digest()
    return derived.digest_lookup(kind.encode() + b"\0" + message)[:20].hex()
