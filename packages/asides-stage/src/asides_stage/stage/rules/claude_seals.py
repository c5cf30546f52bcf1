"""Claude's signatures on the stage: made for a thought, and read when it comes back.

A signature says which model and account it was made for, and holds a MAC of the thought, of the thoughts before it in
its message, and of the system prompt, the tools and the messages before that. So the stage can tell, as the servers do,
a changed thought from one of another model, of another account or after another conversation.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.rulebook import Wire
from asides.values.events import Event, ThinkingDelta, ThoughtSealed
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.lenient import read_base64, unify_base64

SealKind: TypeAlias = Literal["signature", "redacted", "compaction"]
Fault: TypeAlias = Literal["forged", "text", "sequence", "model", "account", "system", "tools", "messages"]
"""Why a seal is invalid in its place: not made here, or made for something else."""

_MAC_SIZE = 16
_MAX_SCRIPTED = 10_000


class Issued(msgspec.Struct, frozen=True, array_like=True):
    """What a seal was made for; every text is a digest, but for model and account."""

    model: str
    account: str
    text: str
    sequence: str
    """The thoughts before it in its message."""
    system: str
    tools: str
    messages: str
    asked: bool = True
    """Whether the request asked for thinking. A script may think unasked, which no real server does."""


class Prefix:
    """What precedes a place in a request, as digests."""

    def __init__(self, secret: bytes, system: Any, tools: Any, messages: Sequence[Wire]) -> None:
        """`messages` have lists of blocks as their content."""
        self._secret = secret
        self.system = _digest(secret, _normalise(system))
        self.tools = _digest(secret, _normalise(tools or []))
        self._before = [""]
        for message in messages:
            content = [message.get("role"), [_normalise(block) for block in message["content"]]]
            self._before.append(_digest(secret, [self._before[-1], content]))

    def before(self, place: int | None) -> str:
        """Return the digest of the messages before this index; None: of all."""
        return self._before[-1 if place is None else place]


class ClaudeSeals:
    """Makes and reads the seals of one stage."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._scripted: dict[tuple[str, str], Issued] = {}
        """Seals from the script itself. The oldest are forgotten."""

    def read_prefix(self, system: Any, tools: Any, messages: Sequence[Wire]) -> Prefix:
        """Return the digests of what a request says."""
        return Prefix(self._secret, system, tools, messages)

    # --- making -------------------------------------------------------------------------------------------------------

    def seal(
        self,
        events: list[Event],
        *,
        model: str,
        account: str,
        prefix: Prefix,
        hidden: bool = False,
        kind: Literal["signature", "redacted"] = "signature",
        asked: bool = True,
    ) -> list[Event]:
        """Seal every thought that the script did not seal; drop its text if the request or the model hides it.

        `asked`: whether the request asked for thinking.
        """
        made_for = Issued(model, account, "", "", prefix.system, prefix.tools, prefix.before(None), asked)
        texts: dict[int, list[str]] = {}
        signed = {event.block for event in events if isinstance(event, ThoughtSealed)}
        values: list[str] = []
        sealed: list[Event] = []
        waiting: int | None = None
        for event in events:
            if waiting is not None and getattr(event, "block", None) != waiting:
                if waiting not in signed:
                    issued = self._describe(made_for, "".join(texts[waiting]), values)
                    value = self._write(kind, issued)
                    values.append(unify_base64(value))
                    shown: ThoughtKind = "summary" if kind == "signature" else "hidden"
                    sealed.append(ThoughtSealed(Seal(kind, value), waiting, shown, "block"))
                waiting = None
            if isinstance(event, ThinkingDelta):
                waiting = event.block
                pieces = texts.setdefault(waiting, [])
                if hidden:
                    continue
                pieces.append(event.text)
            if isinstance(event, ThoughtSealed):
                value = unify_base64(event.seal.value)
                text = "".join(texts.get(event.block, ()))
                self._remember(event.seal.kind, value, self._describe(made_for, text, values))
                values.append(value)
            sealed.append(event)
        return sealed

    def sign_summary(self, model: str, account: str, text: str) -> str:
        """Return the signature of a compaction block."""
        digest = _digest(self._secret, text)
        return self._write("compaction", Issued(model, account, digest, "", "", "", ""))

    def _describe(self, made_for: Issued, text: str, earlier: list[str]) -> Issued:
        sequence = _digest(self._secret, earlier)
        return msgspec.structs.replace(made_for, text=_digest(self._secret, text), sequence=sequence)

    def _write(self, kind: SealKind, issued: Issued) -> str:
        content = msgspec.json.encode([kind, issued])
        return b64encode(blake2b(content, key=self._secret, digest_size=_MAC_SIZE).digest() + content).decode()

    def _remember(self, kind: str, value: str, issued: Issued) -> None:
        while len(self._scripted) >= _MAX_SCRIPTED:
            del self._scripted[next(iter(self._scripted))]
        self._scripted[kind, value] = issued

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, kind: SealKind, value: object) -> Issued | None:
        """Return what a seal was made for; None if this stage did not make it."""
        written = unify_base64(str(value))
        if (scripted := self._scripted.get((kind, written))) is not None:
            return scripted
        token = read_base64(written) or b""
        try:
            _, issued = msgspec.json.decode(token[_MAC_SIZE:], type=tuple[str, Issued])
        except msgspec.MsgspecError:
            return None
        return issued if hmac.compare_digest(unify_base64(self._write(kind, issued)), written) else None

    def has_text(self, issued: Issued, text: str) -> bool:
        """Return whether the seal was made for this text."""
        return issued.text == _digest(self._secret, text)

    def find_faults(
        self, issued: Issued, *, text: str, earlier: list[str], model: str, account: str, prefix: Prefix, place: int
    ) -> set[Fault]:
        """Return how a seal differs from its present place. `earlier`: the seals before it in its message."""
        compared: dict[Fault, tuple[str, str]] = {
            "text": (issued.text, _digest(self._secret, text)),
            "sequence": (issued.sequence, _digest(self._secret, earlier)),
            "model": (issued.model, model),
            "account": (issued.account, account),
            "system": (issued.system, prefix.system),
            "tools": (issued.tools, prefix.tools),
            "messages": (issued.messages, prefix.before(place)),
        }
        return {fault for fault, (then, now) in compared.items() if then != now}


def read_seal(block: Wire) -> tuple[SealKind, str]:
    """Return the seal of a thinking block."""
    if block.get("type") == "redacted_thinking":
        return "redacted", unify_base64(str(block.get("data", "")))
    return "signature", unify_base64(str(block.get("signature", "")))


def _digest(secret: bytes, value: Any) -> str:
    return blake2b(msgspec.json.encode(value, order="sorted"), key=secret, digest_size=9).hexdigest()


def _normalise(value: Any) -> Any:
    """Return what a server reads: without cache marks, which may move, and a text as the equivalent block."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if isinstance(value, dict):
        return {
            name: _normalise(inner) if name == "content" else _strip_marks(inner)
            for name, inner in value.items()
            if name != "cache_control"
        }
    return [_strip_marks(inner) for inner in value] if isinstance(value, list) else value


def _strip_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _strip_marks(inner) for name, inner in value.items() if name != "cache_control"}
    return [_strip_marks(inner) for inner in value] if isinstance(value, list) else value
