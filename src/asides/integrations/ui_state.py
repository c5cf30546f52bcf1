"""`StateCarrier`: reasoning state that travels through a browser and back, encrypted.

Providers want opaque tokens (seals) back with the next turn. A front end that posts the history anew has to hold them
in between. The token of a part is encrypted with a key of yours, so a reader can neither read nor change it.
Not here: where a protocol has a place for a token (vercel_ui, ag_ui), and who reads it back (read_vercel, read_ag_ui).
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec

from asides.values.errors import ConfigError
from asides.values.parts import ServerTool, Text, ToolCall, UnknownPart
from asides.values.thinking import Thought

CarriedPart: TypeAlias = Thought | Text | ToolCall | ServerTool | UnknownPart
"""A part with its state. Texts that the reader has anyway are left out of it."""

_PREFIX = "asui1."
_NONCE_BYTES = 12
_SHORTEST_KEY = 16
_MOST_TOKEN_CHARACTERS = 4 * 1024 * 1024


class CarriedState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a token holds."""

    part: CarriedPart
    block: int = 0
    """The number of the part in its reply. Tokens of one block belong to one part."""
    digest: str = ""
    """Of the text that stands beside the token; "" where the part has its own text."""


def digest_text(text: str) -> str:
    """The digest that ties a token to its text."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


class StateCarrier:
    """Encrypts reasoning state for a front end, and reads it back: `StateCarrier(key, tenant=user_id)`.

    `key` is a secret of at least 16 characters or bytes, the same in every process that serves the front end. A token
    of one `tenant` is nothing to another. Needs the package `cryptography`.
    """

    __slots__ = ("_cipher", "_tenant")

    def __init__(self, key: str | bytes, *, tenant: str = "") -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise ConfigError("StateCarrier needs a package. To do: pip install cryptography.") from None
        secret = key.encode() if isinstance(key, str) else bytes(key)
        if len(secret) < _SHORTEST_KEY:
            raise ConfigError(
                f"the key of a StateCarrier has {len(secret)} bytes, and fewer than {_SHORTEST_KEY} can be guessed. To "
                "do: make one with secrets.token_urlsafe(32), and keep it."
            )
        self._cipher = AESGCM(blake2b(secret, digest_size=32, person=b"asides.ui").digest())
        self._tenant = tenant.encode()

    def seal(self, state: CarriedState) -> str:
        """The token of a part."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, msgspec.json.encode(state), self._tenant)
        return _PREFIX + urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def open(self, token: object) -> CarriedState | None:
        """The state in a token; None for one that was changed, or made with another key or for another tenant."""
        if not isinstance(token, str) or not token.startswith(_PREFIX) or len(token) > _MOST_TOKEN_CHARACTERS:
            return None
        from cryptography.exceptions import InvalidTag

        text = token[len(_PREFIX) :]
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            plain: Any = self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self._tenant)
            return msgspec.json.decode(plain, type=CarriedState)
        except (InvalidTag, NotBase64, ValueError, msgspec.MsgspecError):
            return None

    def __repr__(self) -> str:
        return "StateCarrier(***)"
