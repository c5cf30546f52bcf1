"""What has to change between a caller and a target: `find_changes` decides for the request and for the reply, each with
its reason.

Where nothing changes in a direction, its bytes pass: the caller's to the provider, with model and credential replaced,
or the provider's to the caller.
"""

from __future__ import annotations

from functools import partial

import msgspec

from asides.dialects import find_facts, plain_row
from asides.flows.call import Call
from asides.flows.heal.refused_request import list_placed
from asides.history.check import check_request
from asides.history.replay import digest_token
from asides.providers.learned_rules import recall
from asides.providers.provider import Target
from asides.providers.table import is_maker
from asides.relay.endpoints import PLAIN_DIALECT
from asides.relay.known_calls import KnownCalls
from asides.relay.plain_requests import differs_for
from asides.relay.state.sealed_summary import takes_compactions
from asides.relay.state.thinking_origins import holds_foreign
from asides.relay.translate.translate_fields import find_unwritable
from asides.values.errors import ConfigError
from asides.values.traits import HAS_THOUGHTS, find_traits
from asides.values.visibility import Sink, Visibility

# What a client of the plain dialect would misread.
_MISREAD = ("fragmented_tags", "snapshots", "raw_reasoning", "hides_truncation")

_FOREIGN = "thinking of another provider is left out"
_STORED = "the relay stores the response"
_IN_ENVELOPES = "reasoning state travels in envelopes"


class Changes(msgspec.Struct, frozen=True):
    """Why the request and the reply of one target change; "" where the bytes pass as they are."""

    request: str = ""
    reply: str = ""


class Asked(msgspec.Struct, frozen=True):
    """What decides about all targets of a request."""

    dialect: str
    """The caller's dialect."""
    visibility: Visibility
    sink: Sink
    may_pass: bool = True
    """False: both directions are written, whatever the target."""
    has_options: bool = False
    """Options of ours change the request."""
    has_state: bool = False
    """It holds envelopes of ours, or the vault has state that it lacks."""
    is_labelled: bool = False
    """It may hold thinking of another provider."""
    traits: int | None = None
    """The traits of its messages, if they are known."""
    has_developer: bool = False
    """A message may have the role developer, which few hosts know."""
    compacts: bool = False
    """It asks for a compaction."""
    has_compaction: bool = False
    """It holds a compaction that only the provider which made it can read."""
    hides_usage: bool = False
    """The key is metered, and the request does not ask for usage."""
    shows_thinking: bool = True
    """Whether the client asked for thinking, or always gets it."""
    is_stored: bool = False
    """The relay stores the response, unless its provider does."""
    thinking_field: str = ""
    """The field of thinking that clients of chat completions expect."""
    carries: bool = False
    """No store keeps the state of the reply: it has to travel with the client, with the name of its maker."""


def find_changes(call: Call, asked: Asked, *, model: str = "", known: KnownCalls | None = None) -> Changes:
    """Decide for one target. `model`: the model that the request names, where that is another one. `known`: remembers
    what follows from the target alone.
    """
    both = _change_both(call, asked)
    if both:
        return Changes(both, both)
    request = _change_request(call, asked, model, known)
    reply = _change_reply(call, asked, request, known)
    if reply and not request and find_facts(asked.dialect).stored_as:
        # The provider would store a reply that differs from what the caller sees.
        request = reply
    return Changes(request, reply)


def _change_both(call: Call, asked: Asked) -> str:
    target = call.target
    if asked.compacts and not takes_compactions(target):
        return "a model sums up the conversation"
    if target.dialect != asked.dialect:
        return f"{target.provider.name} is asked in another dialect"
    if not asked.may_pass:
        return "forwarding is switched off"
    if asked.hides_usage:
        return "what it uses has to be reported"
    return "a cloud wraps this dialect" if target.quirks.transport != "direct" else ""


def _change_request(call: Call, asked: Asked, model: str, known: KnownCalls | None) -> str:
    target = call.target
    if asked.has_options:
        return "options change the request"
    if asked.has_state:
        return "reasoning state is put back"
    if asked.is_labelled and holds_foreign(call.prompt.messages, target):
        return _FOREIGN
    if _find_traits(call, asked) & HAS_THOUGHTS:
        if _takes_no_thinking(target):
            return "this model takes no thinking back"
        if _may_mix(target, asked.dialect):
            # Its own thinking has no mark there, and may be another model's.
            return "the plan says which thinking goes back"
    if asked.has_compaction and not takes_compactions(target):
        return "another provider compacted the conversation"
    if model and _differs(call, model):
        return "the model takes other settings than the one that was named"
    if _has_learned(call):
        return "earlier refusals taught what this model takes"
    if is_maker(target.provider, asked.dialect):
        return ""
    traits = _find_traits(call, asked)
    if differs_for(call.prompt, target, traits, known, has_developer=asked.has_developer):
        return f"{target.provider.name} differs from the plain dialect"
    return ""


def _change_reply(call: Call, asked: Asked, request: str, known: KnownCalls | None) -> str:
    """`request`: why the request changes."""
    target = call.target
    if not asked.visibility.allows(asked.sink, target.rule.kind):
        return "the caller may not see this thinking"
    facts, of_maker = find_facts(asked.dialect), is_maker(target.provider, asked.dialect)
    if (request or not of_maker) and not asked.shows_thinking:
        return "the client did not ask for thinking"
    if (request or not of_maker) and asked.is_stored:
        return _STORED
    has_moved = asked.has_state or request == _FOREIGN
    if facts.thinks_in_blocks and (has_moved or not of_maker):
        return _IN_ENVELOPES
    if asked.carries and not of_maker and not _takes_no_thinking(target):
        return _IN_ENVELOPES
    reason = ""
    if _may_mix(target, asked.dialect):
        reason = "thinking may be in the answer"
    elif _is_misread(target) if known is None else known.find_fact(target, "misread", partial(_is_misread, target)):
        reason = f"replies of {target.provider.name} differ from the plain dialect"
    elif asked.dialect == PLAIN_DIALECT and not of_maker and target.quirks.thinking_in[0] != asked.thinking_field:
        reason = "thinking has another field"
    # An answer that our events cannot hold passes as it is.
    return "" if reason and find_unwritable(call.prompt, asked.dialect) else reason


def _is_misread(target: Target) -> bool:
    """Whether a client of the plain dialect would misread what this host sends."""
    plain = plain_row(target.dialect).quirks
    return any(getattr(target.quirks, name) != getattr(plain, name) for name in _MISREAD)


def _find_traits(call: Call, asked: Asked) -> int:
    return find_traits(call.prompt.messages) if asked.traits is None else asked.traits


def _differs(call: Call, asked: str) -> bool:
    """Whether a request that was written for another model may not suit this one: what it says about thinking, or the
    thinking in its history.
    """
    target, prompt = call.target, call.prompt
    if target.provider.rule(asked) == target.rule:
        return False
    if prompt.thinking.asked or bool(find_traits(prompt.messages) & HAS_THOUGHTS):
        return True
    try:
        check_request(prompt, target, "raise", [])
    except ConfigError:
        return True
    return False


def _may_mix(target: Target, dialect: str) -> bool:
    """Whether thinking may be in the answer. A maker's dialect with blocks has it nowhere else."""
    return bool(target.facts.tags) and not (is_maker(target.provider, dialect) and find_facts(dialect).thinks_in_blocks)


def _takes_no_thinking(target: Target) -> bool:
    rule = target.provider.replay_rule(target.family or target.model)
    return rule.when == "never" and not target.rule.prefix_bound


def _has_learned(call: Call) -> bool:
    """Whether refusals taught something about the target, or about a token of this history."""
    target = call.target
    # No client's messages carry facts: the process alone has them.
    facts = [fact for fact in recall(target) if fact.dialect == target.dialect and fact.model in ("", target.model)]
    if not facts:
        return False
    if any(fact.changes for fact in facts):
        return True
    refused = {digest for fact in facts for digest in fact.refused}
    return any(digest_token(placed.token) in refused for placed in list_placed(call.prompt.messages))
