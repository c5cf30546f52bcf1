"""Forward or translate: `choose_mode` decides for one target, and says why.

A request is forwarded only if nothing has to be changed in it: the same dialect on both sides, and a host that takes
the plain dialect.
"""

from __future__ import annotations

from functools import lru_cache, partial

import msgspec

from asides.dialects import find_facts, plain_row
from asides.flows.call import Call
from asides.flows.heal.refused_request import list_placed
from asides.history.check import check_request
from asides.history.replay import digest_token
from asides.providers.learned_rules import recall
from asides.providers.provider import Target
from asides.providers.quirks import NO_RESTRICTIONS, Quirks
from asides.providers.table import is_maker
from asides.relay.known_calls import KnownCalls
from asides.relay.relay_request import RelayMode
from asides.relay.state.sealed_summary import takes_compactions
from asides.relay.state.thinking_origins import holds_foreign
from asides.values.errors import ConfigError
from asides.values.traits import HAS_THOUGHTS, find_traits
from asides.values.visibility import Sink, Visibility

# What only concerns how replies are read and where requests go: the same request is right with any of them.
_ABOUT_REPLIES = (
    *("thinking_in", "heuristics", "tags", "tag_position", "fragmented_tags", "snapshots", "output_excludes_thinking"),
    *("hides_truncation", "raw_reasoning", "auth", "path", "account_bound", "compacts", "continues", "cache_key"),
    *("cache_control", "server_tools", "encrypted_reasoning"),
)
# Restrictions that a plain request may ignore.
_OPTIONAL = {"stores": True, "summaries": True, "includes_reasoning": True}
# What a model's rule may change for requests.
_ABOUT_REQUESTS = ("ask_by", "output_limit", "system_role", "replay_as")


class Mode(msgspec.Struct, frozen=True):
    """How a request is relayed to one target, and why."""

    name: RelayMode
    reason: str


def _translate(reason: str) -> Mode:
    return Mode("translate", reason)


def choose_mode(
    call: Call,
    caller: str,
    *,
    visibility: Visibility,
    sink: Sink,
    may_forward: bool = True,
    has_options: bool = False,
    has_state: bool = False,
    is_labelled: bool = False,
    asked: str = "",
    compacts: bool = False,
    has_compaction: bool = False,
    hides_usage: bool = False,
    known: KnownCalls | None = None,
) -> Mode:
    """Decide for one target. `caller`: the caller's dialect. `has_options`: options of ours change the request.
    `has_state`: it holds envelopes of ours, or the vault has state that it lacks. `is_labelled`: it may
    hold thinking of another provider. `asked`: the model that the request
    names, where that is another one. `compacts`: it asks for a compaction. `has_compaction`: it holds one that only the
    provider which made it can read. `hides_usage`: what it uses is counted, and it does not ask for the counts.
    `known`: remembers what follows from the target alone.
    """
    target = call.target
    if compacts and not takes_compactions(target):
        return _translate("a model sums up the conversation")
    if target.dialect != caller:
        return _translate(f"{target.provider.name} is asked in another dialect")
    if not may_forward:
        return _translate("forwarding is switched off")
    if has_options:
        return _translate("options change the request")
    if has_state:
        return _translate("reasoning state is put back")
    if is_labelled and holds_foreign(call.prompt.messages, target):
        return _translate("thinking of another provider is left out")
    if _takes_no_thinking(target) and bool(find_traits(call.prompt.messages) & HAS_THOUGHTS):
        return _translate("this model takes no thinking back")
    if hides_usage:
        return _translate("what it uses has to be reported")
    if has_compaction and not takes_compactions(target):
        return _translate("another provider compacted the conversation")
    if asked and _differs(call, asked):
        return _translate("the model takes other settings than the one that was named")
    if _has_learned(call):
        return _translate("earlier refusals taught what this model takes")
    if not visibility.allows(sink, target.rule.kind):
        return _translate("the caller may not see this thinking")
    if target.quirks.transport != "direct":
        return _translate("a cloud wraps this dialect")
    of_maker = is_maker(target.provider, caller)
    if target.facts.tags and not (of_maker and _thinks_apart(caller)):
        return _translate("thinking may stand in the answer")
    if of_maker:
        return Mode("forward", "the maker of this dialect")
    if not (_is_plain(target) if known is None else known.find_fact(target, "plain", partial(_is_plain, target))):
        return _translate(f"{target.provider.name} differs from the plain dialect")
    return Mode("forward", f"{target.provider.name} takes the plain dialect")


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


def _thinks_apart(dialect: str) -> bool:
    """Whether thinking comes as blocks of its own in this dialect, or in a field that its maker fills."""
    return find_facts(dialect).thinks_in_blocks


def _is_plain(target: Target) -> bool:
    """Whether a request of the plain dialect needs no change, and no state of earlier turns has to go back."""
    row, facts = target.provider, target.facts
    plain = plain_row(row.dialect).quirks
    if facts.fields or any(getattr(facts, name) != getattr(plain, name) for name in _ABOUT_REQUESTS):
        return False
    if row.replay_rule(target.model).when != "never":
        return False
    if msgspec.structs.replace(target.restrictions, **_OPTIONAL) != NO_RESTRICTIONS:
        return False
    return _has_same_requests(row.quirks, plain)


@lru_cache(maxsize=256)
def _has_same_requests(quirks: Quirks, plain: Quirks) -> bool:
    same = {name: getattr(plain, name) for name in _ABOUT_REPLIES}
    return msgspec.structs.replace(quirks, **same) == plain
