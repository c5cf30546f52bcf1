"""What a reply teaches that was given without the thoughts that were sent: they do not go back a second time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from asides.dialects.input_reports import is_report
from asides.flows.heal.refused_request import RefusedRequest
from asides.providers.learned_rules import remember
from asides.providers.refusals import find_ids, find_places
from asides.values.learned import Learned
from asides.values.notices import Notice
from asides.values.rejections import Rejection, RejectionKind

if TYPE_CHECKING:
    from asides.flows.call import SentRequest

_KINDS: tuple[tuple[str, RejectionKind, tuple[tuple[str, Any], ...]], ...] = (
    ("prefix", "thinking_prefix_mismatch", (("prefix_bound", True),)),
    ("organization", "encrypted_reasoning_wrong_account", (("account_bound", True),)),
    ("end_user", "encrypted_reasoning_wrong_account", (("account_bound", True),)),
    ("model", "thinking_signature_invalid", ()),
)
"""By a word of the reason: the kind that the refusal would have had, and the fact of the target."""


def learn_from_reports(sent: SentRequest, notices: Iterable[Notice]) -> tuple[Learned, ...]:
    """Remember what the notices of a reply teach, and return it. What the end of a turn removes is no lesson."""
    learned: list[Learned] = []
    for notice in notices:
        if not is_report(notice):
            continue
        found = next((row for row in _KINDS if f"({row[0]}" in notice.detail), None)
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
