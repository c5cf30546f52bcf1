"""Origins of thinking: `ThinkingOrigins` remembers them for every reply of a relay, also where its bytes were passed
on unchanged. Clients send thinking back without its origin, and no other provider may read it.

It stores only digests. A store of records keeps the same facts for longer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from asides.history.replay import UNKNOWN_HOST, is_same_host
from asides.providers.provider import Target
from asides.providers.table import is_maker
from asides.values.messages import Message
from asides.values.parts import Part, Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Origin, Seal, Thought

_MOST = 30_000
"""How many tokens are kept at least, once that many were seen."""
_DIGEST_BYTES = 16


class ThinkingOrigins:
    """The origins of the thoughts and seals of one relay's replies. Safe to use from many threads."""

    def __init__(self) -> None:
        self._recent: dict[bytes, Origin | None] = {}
        """None: two hosts produced the same thought, so its origin is ambiguous."""
        self._older: dict[bytes, Origin | None] = {}

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def remember(self, tenant: str, reply: Reply) -> None:
        """Remember who made a reply's thoughts and seals."""
        if reply.origin is None:
            return
        thoughts = [part for part in reply.parts if isinstance(part, Thought)]
        texts = [thought.text for thought in thoughts]
        if len(texts) > 1:
            # Some dialects join the thoughts of a turn.
            texts += ["".join(texts), "\n\n".join(texts), "\n".join(texts)]
        tokens = [_name_text(text) for text in texts if text.strip()]
        tokens += [_name_seal(seal) for part in reply.parts for seal in _list_seals(part)]
        self.learn(tenant, dict.fromkeys(tokens, reply.origin))

    def learn(self, tenant: str, origins: Mapping[str, Origin]) -> None:
        """Remember the origins of these tokens (`name_tokens`)."""
        for token, origin in origins.items():
            digest = _digest(tenant, token)
            is_known, known = self._find(digest)
            is_same = not is_known or (known is not None and _find_host(known) == _find_host(origin))
            self._recent[digest] = origin if is_same else None
        if len(self._recent) > _MOST:
            self._older, self._recent = self._recent, {}

    def _find(self, digest: bytes) -> tuple[bool, Origin | None]:
        """Whether a token is known, and its origin."""
        for tokens in (self._recent, self._older):
            if digest in tokens:
                return True, tokens.get(digest)
        return False, None

    def knows(self, tenant: str, part: Part) -> bool:
        """Whether it is known who made every token of a part."""
        return all(self._find(_digest(tenant, token))[0] for token in name_tokens(part))

    def label(
        self,
        tenant: str,
        messages: tuple[Message, ...],
        targets: Sequence[Target],
        *,
        trusts: bool = False,
        sealed_in: str = "",
    ) -> tuple[Message, ...]:
        """The messages with the origin on each thought and seal that one of the targets did not make. Those without are
        returned as they are. `trusts`: a thought of unknown origin is the caller's own and goes back anywhere;
        otherwise it gets the origin `UNKNOWN_HOST`. `sealed_in`: the caller's dialect, where only its maker's seals
        reach the caller as they are.
        """
        if trusts and not len(self):
            return messages
        maker = _find_maker(targets, sealed_in)

        def find(token: str, is_thought: bool) -> Origin | None:
            origin = self._find(_digest(tenant, token))[1]
            if origin is None and is_thought and not trusts:
                # A relay seals the thinking of all other hosts in envelopes, so a bare seal is the maker's.
                origin = maker if token.startswith(_SEAL) else UNKNOWN_HOST
            is_own = origin is None or all(is_same_host(origin, target) for target in targets)
            return None if is_own else origin

        labelled = tuple([_label(message, find) if message.role == "assistant" else message for message in messages])
        return messages if all(map(_is_same, labelled, messages)) else labelled


def name_tokens(part: Part) -> Iterator[str]:
    """The names of what is recognised of a part: its seals, or the text of a thought without any."""
    seals = _list_seals(part)
    yield from map(_name_seal, seals)
    if not seals and isinstance(part, Thought) and part.text.strip():
        yield _name_text(part.text)


def name_seal_tokens(seals: Iterable[Seal]) -> list[str]:
    """The names of these seals."""
    return [_name_seal(seal) for seal in seals if seal.value or seal.entry]


def holds_foreign(messages: Iterable[Message], target: Target) -> bool:
    """Whether there is a thought or a seal that is known to be made by another host."""
    return any(
        not is_same_host(origin, target)
        for message in messages
        if message.role == "assistant"
        for part in message.parts
        for origin in _list_origins(part)
    )


def holds_unknown(messages: Iterable[Message]) -> bool:
    """Whether there is a thought of unknown origin."""
    return any(
        isinstance(part, Thought) and part.origin == UNKNOWN_HOST
        for message in messages
        if message.role == "assistant"
        for part in message.parts
    )


def _find_maker(targets: Sequence[Target], dialect: str) -> Origin:
    """The origin of a seal that no relay has wrapped: the target that made the caller's dialect."""
    made = (target.origin for target in targets if is_maker(target.provider, dialect))
    return next((msgspec.structs.replace(origin, model="", account="") for origin in made), UNKNOWN_HOST)


def _list_origins(part: Part) -> Iterator[Origin]:
    if isinstance(part, Thought) and part.origin is not None:
        yield part.origin
    for seal in _list_seals(part):
        if seal.origin is not None:
            yield seal.origin


_Find = Callable[[str, bool], "Origin | None"]
"""Finds the origin of a token. The flag: it is that of a thought."""


def _label(message: Message, find: _Find) -> Message:
    if len(message.parts) == 1 and type(only := message.parts[0]) is Text and not only.seals:
        return message
    parts = tuple([_label_part(part, find) for part in message.parts])
    return message if all(map(_is_same, parts, message.parts)) else msgspec.structs.replace(message, parts=parts)


def _label_part(part: Part, find: _Find) -> Part:
    if not isinstance(part, (Thought, Text, ToolCall)) or (isinstance(part, Thought) and part.origin is not None):
        return part
    is_thought = isinstance(part, Thought)
    origin = next((found for token in name_tokens(part) if (found := find(token, is_thought)) is not None), None)
    if origin is None:
        return part
    seals = tuple(seal if seal.origin else msgspec.structs.replace(seal, origin=origin) for seal in part.seals)
    if isinstance(part, Thought):
        return msgspec.structs.replace(part, origin=origin, seals=seals)
    return msgspec.structs.replace(part, seals=seals)


def _list_seals(part: Part) -> list[Seal]:
    if not isinstance(part, (Thought, Text, ToolCall)):
        return []
    return [seal for seal in part.seals if seal.value or (seal.entry and isinstance(part, Thought))]


_SEAL = "seal:"


def _name_seal(seal: Seal) -> str:
    return f"{_SEAL}{seal.value or seal.entry}"


def _name_text(text: str) -> str:
    return f"text:{text.strip()}"


def _find_host(origin: Origin) -> tuple[str, str]:
    return origin.provider, origin.endpoint


def _digest(tenant: str, token: str) -> bytes:
    data = f"{tenant}\0{token}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _is_same(one: object, other: object) -> bool:
    return one is other
