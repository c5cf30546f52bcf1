"""What conversations have cost so far: totals per conversation, the least recently used forgotten first.

The server's figures count and are never replaced by a guess; a guess says that it is one. Not here: a conversation's
words. Nothing of them is kept, only counts and the id of the last turn that a provider has stored.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from asides.values.messages import Message, StoredResponse
from asides.values.reply import Reply
from asides.values.usage import Usage

_log = logging.getLogger("asides")
_CHARACTERS_PER_TOKEN = 4


class Account(msgspec.Struct, frozen=True):
    """One conversation's sums."""

    total: Usage = Usage(origin="reported")
    turns: int = 0
    parent: StoredResponse | None = None
    """The newest turn that the provider has stored; what to go on from."""


class Accounts:
    """The accounts of many conversations, by their keys. `clock` gives seconds that only go up."""

    def __init__(self, clock: Callable[[], float], *, most: int = 256, lifetime: float = 7200.0) -> None:
        self._clock = clock
        self._most = most
        self._lifetime = lifetime
        self._known: OrderedDict[str, tuple[float, Account]] = OrderedDict()

    def of(self, conversation: str) -> Account | None:
        """The account; None when there is none, or when it was not touched for too long."""
        self._forget_old()
        found = self._known.get(conversation)
        return None if found is None else found[1]

    def note(self, conversation: str, reply: Reply, heard: Usage | None = None) -> Account:
        """Add a reply. `heard` is an estimate, and counts only where the server reported nothing."""
        cost = reply.usage
        if cost == Usage():
            cost = heard or Usage()
        before = self.of(conversation) or Account()
        kept = StoredResponse(reply.id, reply.origin) if reply.stored and reply.id else before.parent
        account = Account(before.total + cost, before.turns + 1, kept)
        self._put(conversation, account)
        _log.debug("conversation: %d turns, %s", account.turns, account.total)
        return account

    def invalidate(self, conversation: str) -> None:
        """Forget what the provider has stored, which was too long or is gone; what was spent stays spent."""
        known = self.of(conversation)
        if known is not None:
            self._put(conversation, msgspec.structs.replace(known, parent=None))

    def __len__(self) -> int:
        self._forget_old()
        return len(self._known)

    def _put(self, conversation: str, account: Account) -> None:
        self._known[conversation] = (self._clock(), account)
        self._known.move_to_end(conversation)
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def _forget_old(self) -> None:
        oldest = self._clock() - self._lifetime
        while self._known and next(iter(self._known.values()))[0] < oldest:
            self._known.popitem(last=False)


def estimate_usage(messages: tuple[Message, ...], reply: Reply) -> Usage:
    """A guess at what a reply cost, from the length of its words, and labelled as one."""
    heard = sum(len(message.text) for message in messages) // _CHARACTERS_PER_TOKEN
    thought = len(reply.thinking.text) // _CHARACTERS_PER_TOKEN if reply.thinking else 0
    said = len(reply.text) // _CHARACTERS_PER_TOKEN + thought
    return Usage(heard, said, thought, None, heard + said, "estimated")
