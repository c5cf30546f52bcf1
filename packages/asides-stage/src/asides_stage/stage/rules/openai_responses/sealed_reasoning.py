"""Encrypted reasoning of Responses: a token with a real MAC over what it holds, bound to an account and a model.

The token has the outer form of the real ones. What it holds is encrypted with a key stream of a keyed hash: enough that
no reader of the wire finds the thinking in it, which is all that a stage needs.
"""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from time import time

import msgspec

_VERSION = b"\x80"
_NONCE = 16
_MAC = 32
_DAY = re.compile(r"-\d{4}-\d{2}-\d{2}$")


class Opened(msgspec.Struct, frozen=True):
    """What a token holds."""

    model: str
    account: str
    """The fingerprint of the account; "" for a request without a key."""
    text: str
    """The thinking itself."""

    def __repr__(self) -> str:
        return f"Opened(model={self.model!r})"


class SealedReasoning:
    """Makes and opens the tokens of one stage."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def seal(self, opened: Opened) -> str:
        """Return the token that holds this."""
        nonce = secrets.token_bytes(_NONCE)
        head = _VERSION + int(time()).to_bytes(8, "big") + nonce
        sealed = head + self._encrypt(msgspec.json.encode(opened), nonce)
        return urlsafe_b64encode(sealed + self._sign(sealed)).decode()

    def open(self, token: object) -> Opened | None:
        """Return what a token holds; None if this stage did not make it so."""
        try:
            data = urlsafe_b64decode(str(token).encode())
        except ValueError:
            return None
        sealed, mac = data[:-_MAC], data[-_MAC:]
        if not hmac.compare_digest(mac, self._sign(sealed)):
            return None
        start = len(_VERSION) + 8
        nonce, hidden = sealed[start : start + _NONCE], sealed[start + _NONCE :]
        return msgspec.json.decode(self._encrypt(hidden, nonce), type=Opened)

    def _sign(self, data: bytes) -> bytes:
        return blake2b(data, key=self._secret, digest_size=_MAC, person=b"mac").digest()

    def _encrypt(self, data: bytes, nonce: bytes) -> bytes:
        """Combine the data with a stream of bytes that only this stage can make; twice gives the data again."""
        stream = bytearray()
        for number in range(0, len(data), 64):
            block = nonce + number.to_bytes(8, "big")
            stream += blake2b(block, key=self._secret, person=b"stream").digest()
        return bytes(left ^ right for left, right in zip(data, stream, strict=False))


def find_family(model: str) -> str:
    """Return the name that all days of a model share: gpt-5 for gpt-5-2025-08-07."""
    return _DAY.sub("", model.lower().rpartition("/")[2])


def shorten(token: object) -> str:
    """Return the ends of a token, as an error shows it."""
    return f"{str(token)[:4]}...{str(token)[-4:]}"
