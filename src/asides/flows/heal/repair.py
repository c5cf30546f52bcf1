"""Try the repairs of a refused request, each kind once, and remember those that helped: `Healer`.

A repair is a fact about the target, or another prompt. The ordinary plan and encoder make the request of it. What a
reply teaches that was given without the thoughts that were sent is remembered too (`learn_from_reports`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.input_reports import is_report
from asides.flows.call import SentRequest
from asides.flows.heal import refused_settings, refused_thinking, replayed_state
from asides.flows.heal.refused_request import Fix, ListFixes, RefusedRequest, list_placed
from asides.history.replay import digest_token
from asides.providers.learned_rules import remember
from asides.providers.provider import Target
from asides.providers.refusals import find_ids, find_other_kind, find_places, read_rejection
from asides.providers.settle import settle
from asides.values.errors import ConfigError, ProviderError, ReplayRejected
from asides.values.learned import Learned
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.rejections import Rejection, RejectionKind

MOST_REPAIRS = 3
"""Maximum number of repairs of one request."""

_ANY_STATE = "replay_rejected"
"""The kind of a refusal of earlier thinking without details."""


class _Step(msgspec.Struct, frozen=True):
    """A repair that is being tried."""

    kind: str
    learned: Learned | None
    lasts: bool
    notice: Notice
    before: SentRequest
    status: int | None


class Healer:
    """The repairs of one call."""

    def __init__(self, encode: Callable[[Prompt, Target], SentRequest]) -> None:
        self._encode = encode
        self._steps: list[_Step] = []
        self._tried: dict[str, int] = {}
        """How many fixes of each kind were tried."""
        self._requests: list[HttpRequest] = []
        """The refused request, and those of all repairs."""

    def begin_response(self) -> tuple[Notice, ...]:
        """Call when a response begins. Returns a notice per repair; remembers those whose refusal had a status."""
        self._remember([step for step in self._steps if (step.status or 0) >= 400])
        return tuple(step.notice for step in self._steps)

    def repair(self, error: ProviderError, sent: SentRequest, *, may_retry: bool = False) -> SentRequest | None:
        """The request to send instead of a refused one; None when no repair is left to try. `may_retry`: the same
        request can be sent again.
        """
        rejection = read_rejection(error)
        kind: str
        if rejection is not None:
            kind = rejection.kind
        elif isinstance(error, ReplayRejected):
            kind = _ANY_STATE
        elif other := find_other_kind(str(error)):
            kind = other
        else:
            return None
        if kind == "opaque_provider_error" and may_retry and (error.status or 0) >= 500:
            return None  # perhaps it is only busy
        if sum(self._tried.values()) >= MOST_REPAIRS:
            return None
        if not self._requests:
            self._requests.append(sent.request)
        if self._steps and self._steps[-1].kind == kind:
            # The last repair did not help: undo it and try the next one.
            sent = self._steps.pop().before
        return self._try_next(kind, error, rejection, sent)

    def _try_next(
        self, kind: str, error: ProviderError, rejection: Rejection | None, sent: SentRequest
    ) -> SentRequest | None:
        refused = RefusedRequest(
            rejection or Rejection("thinking_signature_invalid", str(error)),
            sent.prompt,
            sent.planned,
            sent.target,
            sent.request,
            error.status,
        )
        tried = skipped = self._tried.get(kind, 0)
        for fix in _list_fixes(kind, refused):
            repaired = self._apply(kind, fix, sent, error.status)
            if repaired is None:
                continue
            step, request = repaired
            if skipped:
                skipped -= 1
            elif not any(_is_same(request.request, other) for other in self._requests):
                self._tried[kind] = tried + 1
                self._requests.append(request.request)
                self._steps.append(step)
                return request
        return None

    def _apply(self, kind: str, fix: Fix, sent: SentRequest, status: int | None) -> tuple[_Step, SentRequest] | None:
        """The request with a fix; None if that changes nothing, or cannot be sent."""
        target, learned = sent.target, None
        if fix.changes or fix.refused:
            learned = Learned(
                kind,
                target.base_url,
                target.dialect,
                target.account,
                "" if fix.every_model else target.model,
                fix.changes,
                fix.refused,
            )
            target = settle(target, learned=(learned,))
        try:
            request = self._encode(fix.prompt or sent.prompt, target)
        except ConfigError:
            return None
        if _is_same(request.request, sent.request):
            return None
        notice = Notice(fix.code, fix.detail, fix.setting, fix.asked, fix.sent or _describe_sent(fix, request))
        return _Step(kind, learned, fix.lasts, notice, sent, status), request

    def remember(self) -> None:
        """Remember what the repairs taught: the request went through."""
        self._remember(self._steps)

    def _remember(self, steps: Iterable[_Step]) -> None:
        for step in steps:
            if step.learned is not None and step.lasts:
                remember(step.learned)

    @property
    def temporary(self) -> tuple[Learned, ...]:
        """Facts that may hold for this request only."""
        return tuple(step.learned for step in self._steps if step.learned is not None and not step.lasts)


def _list_fixes(kind: str, refused: RefusedRequest) -> Iterator[Fix]:
    if kind == _ANY_STATE:
        return replayed_state.drop_all_thoughts(refused)
    tables = (replayed_state.FIXES, refused_thinking.FIXES, refused_settings.FIXES)
    fixes: dict[str, ListFixes] = {name: fix for table in tables for name, fix in table.items()}
    fixes.update((name, fix) for name, fix in refused_settings.OTHER_FIXES.items())
    return fixes[kind](refused) if kind in fixes else iter(())


def _is_same(one: HttpRequest, other: HttpRequest) -> bool:
    return (one.url, one.body, dict(one.headers)) == (other.url, other.body, dict(other.headers))


def _describe_sent(fix: Fix, request: SentRequest) -> str | None:
    if fix.setting != "thinking":
        return None
    return refused_thinking.describe(request.planned.thinking)


def select_new_facts(sent: SentRequest, temporary: tuple[Learned, ...]) -> tuple[Learned, ...]:
    """What the message of a reply has to know of its target: facts that no message before it has, and that are not
    `temporary`. Of the refused seals and thoughts, those of this conversation.
    """
    known = [fact for message in sent.prompt.messages for fact in message.learned]
    digests = {digest for fact in known for digest in fact.refused}
    tokens = {digest_token(placed.token) for placed in list_placed(sent.prompt.messages)} - digests
    new: list[Learned] = []
    for fact in sent.target.learned:
        alike = [other for other in known if _is_alike(fact, other)]
        if (fact in known and not _is_outdated(fact, alike)) or fact in temporary:
            continue
        refused = tuple(digest for digest in fact.refused if digest in tokens)
        is_known = any(fact.changes == other.changes for other in alike) and not _is_outdated(fact, alike)
        changes = () if is_known else fact.changes
        if refused or changes:
            new.append(msgspec.structs.replace(fact, changes=changes, refused=refused))
    return tuple(new)


def _is_outdated(fact: Learned, known: list[Learned]) -> bool:
    """Whether a later fact of the same place contradicts it."""
    last = max((place for place, other in enumerate(known) if other.changes == fact.changes), default=-1)
    own = dict(fact.changes)
    later = (change for other in known[last + 1 :] for change in other.changes)
    return last >= 0 and any(name in own and own[name] != value for name, value in later)


def _is_alike(one: Learned, other: Learned) -> bool:
    return (one.endpoint, one.dialect, one.account, one.model) == (
        other.endpoint,
        other.dialect,
        other.account,
        other.model,
    )


# --- what replies teach -----------------------------------------------------------------------------------------------


_REPORTED: tuple[tuple[str, RejectionKind, tuple[tuple[str, Any], ...]], ...] = (
    ("prefix", "thinking_prefix_mismatch", (("prefix_bound", True),)),
    ("organization", "encrypted_reasoning_wrong_account", (("account_bound", True),)),
    ("end_user", "encrypted_reasoning_wrong_account", (("account_bound", True),)),
    ("model", "thinking_signature_invalid", ()),
)
"""By a keyword of the reason: the kind of the equivalent refusal, and the fact about the target."""


def learn_from_reports(sent: SentRequest, notices: Iterable[Notice]) -> tuple[Learned, ...]:
    """Remember what the notices of a reply teach, and return it. Removals at the end of a turn teach nothing."""
    learned: list[Learned] = []
    for notice in notices:
        if not is_report(notice):
            continue
        found = next((row for row in _REPORTED if f"({row[0]}" in notice.detail), None)
        if found is None:
            continue
        _, kind, changes = found
        rejection = Rejection(kind, notice.detail, find_places(notice.detail), find_ids(notice.detail))
        request = RefusedRequest(rejection, sent.prompt, sent.planned, sent.target, sent.request)
        refused = request.digest(token for token in request.named if token.is_thinking)
        if refused or changes:
            target = sent.target
            learned.append(
                Learned(kind, target.base_url, target.dialect, target.account, target.model, changes, refused)
            )
    for fact in learned:
        remember(fact)
    return tuple(dict.fromkeys(learned))
