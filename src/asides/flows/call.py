"""One call as a value: a prompt, its target, and the policy that carries it out. `exchange` runs it.

Also: reading the policy from the options, notices about the target, and encoding a prompt.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from asides.dialects import find_dialect, plain_row
from asides.dialects.dialect import HttpRequest
from asides.history.plan import Decision, OnConflict, encode_plan, plan
from asides.options import OPTIONS, CallOptions, ReplyLimits, Timeout, convert_option
from asides.providers.credentials import Secret
from asides.providers.endpoint import RESPONSES
from asides.providers.find import OWN_STAGE
from asides.providers.provider import Target
from asides.values.errors import ConfigError, MissingKey, Unsupported
from asides.values.messages import Prompt, ProviderState
from asides.values.notices import Notice
from asides.values.thinking import Effort

if TYPE_CHECKING:
    # Most calls name no type for their answer.
    from asides.agents.outputs.expected_output import ExpectedOutput
    from asides.flows.pace import Pace
    from asides.values.recover_policy import RecoverPolicy
    from asides.values.visibility import Visibility


# Counts and names only, as everywhere (contract, §4.10).
_log = logging.getLogger("asides")


class Policy(msgspec.Struct, frozen=True):
    """How a call is carried out: timeouts, retries and the like. It is never sent."""

    timeout: Timeout = Timeout()
    retries: int = 2
    """Attempts after the first."""
    max_wait: float = 60.0
    """Maximum wait before the next attempt that a server may ask for. A longer one ends the call."""
    backoff: float = 0.5
    """The first wait if the server does not set one. It doubles with each attempt."""
    max_backoff: float = 8.0
    on_conflict: OnConflict = "raise"
    keep_raw: bool = True
    """Store the JSON documents that a reply was decoded from (`reply.raw`)."""
    thinking_encrypted: bool = False
    """Show encrypted reasoning in `reply.metadata["thinking_encrypted"]`."""
    reply_limits: ReplyLimits = ReplyLimits()
    continuations: int = 16
    """How many more requests may continue a reply that the provider ends before its end; 0: none."""
    recover: RecoverPolicy | None = None
    """What to try when a reply ends without an answer; None: nothing."""
    attempts: int | None = None
    """How often the model may correct an answer that does not fit `output`; None: it is checked when it is read."""
    visibility: Visibility | None = None
    """Which thinking of a reply may be seen; None: the default."""
    pace: Pace | None = None
    """The pace of the list that this call belongs to; None: it is a single call."""


class CallLike(Protocol):
    """The facts that a driver needs for any flow: target, policy and key."""

    @property
    def target(self) -> Target:
        """The destination of the requests."""
        ...

    @property
    def policy(self) -> Policy:
        """Timeouts and retries."""
        ...

    @property
    def key(self) -> Secret | None:
        """The credential of the requests."""
        ...


class BareCall(msgspec.Struct, frozen=True):
    """A call without a prompt, for requests that put no question to a model."""

    target: Target
    policy: Policy = Policy()
    key: Secret | None = None


class Call(msgspec.Struct, frozen=True):
    """Everything that a call needs, decided before anything is sent."""

    prompt: Prompt
    target: Target
    policy: Policy = Policy()
    key: Secret | None = None
    notices: tuple[Notice, ...] = ()
    """Notices from argument parsing."""
    why_endpoint: str = ""
    """Why this dialect was chosen, if there was a choice."""
    expected: ExpectedOutput | None = None
    """Expected output type, if the caller set one."""
    fallbacks: tuple[Call, ...] = ()
    """The calls to make in order when this one fails before its first event."""
    skipped: tuple[tuple[str, MissingKey], ...] = ()
    """The models of the same list that have no key."""

    @property
    def is_one_of_several(self) -> bool:
        """Whether the caller or the settings named fallback models."""
        return bool(self.fallbacks or self.skipped)

    @property
    def model(self) -> str:
        """The model as its caller names it: provider:model."""
        return f"{self.target.provider.name}:{self.target.model}"

    def __repr__(self) -> str:
        return f"Call({self.model}, {self.prompt!r})"


class SentRequest(msgspec.Struct, frozen=True):
    """A request, and what it was built from."""

    prompt: Prompt
    target: Target
    planned: Prompt
    """The prompt after planning."""
    request: HttpRequest
    notices: tuple[Notice, ...]
    is_off: bool = False
    """It turns thinking off."""
    has_state: bool = False
    """It sends thoughts of earlier turns back."""
    prefix: str = ""
    """The digest of its content, if the model binds its seals to that."""
    effort: Effort | None = None
    """The effort in force for the answer."""
    decisions: tuple[Decision, ...] = ()
    """What the plan decided about the parts of earlier turns."""


def encode_request(prompt: Prompt, target: Target, *, on_conflict: OnConflict) -> SentRequest:
    """Plan a prompt and encode it."""
    planned = plan(prompt, target, on_conflict=on_conflict)
    request, notices = encode_plan(planned, target, find_dialect(target.dialect), on_conflict=on_conflict)
    kept = [decision for decision in planned.decisions if decision.action == "keep"]
    if planned.decisions:
        _log.debug("%s: of %d earlier parts %d go back", target.provider.name, len(planned.decisions), len(kept))
    is_off = planned.prompt.thinking.mode == "off"
    all_notices = (*planned.notices, *notices)
    kinds = (is_off, bool(kept), planned.prefix, planned.effort, planned.decisions)
    return SentRequest(prompt, target, planned.prompt, request, all_notices, *kinds)


NO_STATE = ProviderState()
"""The provider stores nothing for the call."""


def report_target(prompt: Prompt, target: Target) -> tuple[Notice, ...]:
    """Notices about the target: a foreign address, the stage in its place, no stored state though the caller asks."""
    notices: tuple[Notice, ...] = ()
    if target.foreign:
        plain = plain_row(target.dialect).name
        detail = f"the address is not {target.provider.name}'s own, so replies are read as those of {plain}"
        notices += (Notice("foreign_address", f"{detail}; add a provider row for it to change that", "base_url"),)
    if target.provider.launcher == OWN_STAGE:
        notices += (Notice("answered_by_stage", "ASIDES_STAGE is set, so the stage answers instead of the provider"),)
    if prompt.state != NO_STATE and target.dialect != RESPONSES:
        notices += (
            Notice("state_not_sent", "this endpoint stores nothing; the whole history is sent each time", "stateful"),
        )
    return notices


def fit_compaction(
    prompt: Prompt, target: Target, on_conflict: OnConflict, notices: tuple[Notice, ...] = ()
) -> tuple[Prompt, tuple[Notice, ...]]:
    """The prompt and the notices for a provider that compacts. Raises Unsupported for others, or drops the option."""
    if isinstance(prompt.compaction, int) and prompt.compaction < 1:
        raise ConfigError(f"compaction is {prompt.compaction}; give a number of tokens, or 'provider'.")
    if target.quirks.compacts:
        return prompt, notices
    name, dialect = target.provider.name, target.dialect
    if on_conflict == "raise":
        raise Unsupported(
            f"{name} is not known to compact conversations itself ({dialect}). Use conversation.compact(), "
            "endpoint='responses' where the provider has it, or on_conflict='adjust', which leaves it out."
        )
    notice = Notice("compaction_not_sent", f"{name} is not known to compact conversations itself", "compaction")
    return msgspec.structs.replace(prompt, compaction=None), (*notices, notice)


# --- the policy ---------------------------------------------------------------------------------------------------

POLICY_OPTIONS = OPTIONS & frozenset(Policy.__struct_fields__)
_PLAIN_OPTIONS = POLICY_OPTIONS - {"reply_limits", "timeout", "recover"}
"""Options that become fields of a policy unchanged."""


def read_policy(given: CallOptions) -> Policy:
    """The policy that the options set. Raises a ConfigError for an invalid value."""
    changes = {name: value for name in _PLAIN_OPTIONS if (value := getattr(given, name)) is not None}
    if changes.get("retries", 0) < 0 or changes.get("max_wait", 0.0) < 0 or changes.get("continuations", 0) < 0:
        raise ConfigError("retries, max_wait and continuations cannot be below zero.")
    if changes.get("attempts", 0) < 0:
        raise ConfigError("attempts is how often an answer may be corrected, 0 or more.")
    if "max_wait" in changes:
        changes["max_wait"] = min(changes["max_wait"], _LONGEST_WAIT)
    if given.reply_limits is not None:
        changes["reply_limits"] = _read_reply_limits(given.reply_limits)
    if given.recover is not None and given.recover is not False:
        from asides.values.recover_policy import read_recover  # Most calls recover nothing.

        changes["recover"] = read_recover(given.recover)
    return Policy(_read_timeout(given.timeout), **changes)


def _read_reply_limits(given: object) -> ReplyLimits:
    """A ReplyLimits, or a mapping of its fields."""
    limits = convert_option("reply_limits", dict(given) if isinstance(given, Mapping) else given, ReplyLimits)
    for name, limit in msgspec.structs.asdict(limits).items():
        if limit is not None and limit < 1:
            raise ConfigError(f"reply_limits: {name} is {limit}; give a number above zero, or None for no limit.")
    return limits


# ~30 years. Larger timeouts, including inf, overflow some event loops.
_LONGEST_WAIT = 1e9


def _read_timeout(given: object) -> Timeout:
    """A number limits every wait; a Timeout, or a mapping of its fields, sets each limit."""
    default = Timeout()
    if given is None:
        return default
    if isinstance(given, Mapping):
        given = convert_option("timeout", dict(given), Timeout)
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = Timeout(connect=min(given, default.connect or given), first_byte=given, idle=given)
    if not isinstance(given, Timeout):
        raise ConfigError(f"timeout must be a number of seconds or a Timeout, not {type(given).__name__}.")
    if any(seconds is not None and not seconds > 0 for seconds in msgspec.structs.astuple(given)):
        raise ConfigError("a timeout must be above zero. Pass seconds, or None to wait without a limit.")
    endless = [name for name, seconds in msgspec.structs.asdict(given).items() if (seconds or 0) > _LONGEST_WAIT]
    return msgspec.structs.replace(given, **dict.fromkeys(endless)) if endless else given
