"""What refusals taught about targets: `remember(learned)`, and `recall(target, messages)`, an input of `settle`.

The process remembers for each address and account; messages carry what their own requests taught, so that a saved
conversation knows it too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from asides.providers.provider import Target
from asides.values.learned import Learned
from asides.values.messages import Message

LEARNABLE_RULES = frozenset(
    {
        *("thinking", "default", "efforts", "off_as_effort", "budget", "budget_excludes_effort", "forbids", "refuses"),
        *("forced_tools", "forced_tools_with_budget", "tools", "tools_while_thinking", "forms", "temperature"),
        *("begins_with_thinking", "prefix_bound", "account_bound", "prefill", "display", "max_output", "signed_calls"),
        *("structured_output", "output_limit", "system_role", "replay_as", "ask_by", "interleaves", "effort_updates"),
        "top_p",
    }
)
"""The fields of a model's rule that a refusal can teach. A saved conversation is a file of others: it changes no
address, no header and no key."""
LEARNABLE_QUIRKS = frozenset(
    {
        *("stream_usage", "empty_thinking", "call_order", "after_results", "encrypted_reasoning", "toggle_on"),
        *("raw_items", "refuses_thoughts_while_off", "refused_fields", "results_alone", "calls_alone"),
    }
)
"""The quirks of a host that a refusal can teach, besides all `Restrictions`."""
REPLAY_WHEN = "replay"
"""The name of a change of the replay rule."""
DIALECT = "dialect"
"""The name of a change to another dialect of the same row."""

_MAX_PLACES = 1024
_MAX_FACTS = 64
_MAX_REFUSED = 1024

MEMORY: OrderedDict[tuple[str, str], tuple[Learned, ...]] = OrderedDict()
"""Facts learned by this process, by address and account."""


def remember(learned: Learned) -> None:
    """Remember a fact for the rest of the process."""
    place = (learned.endpoint, learned.account)
    known = [fact for fact in MEMORY.get(place, ()) if fact != learned]
    if learned.refused and not learned.changes:
        # Digests of many histories share one fact, so that they do not evict other facts.
        same = [fact for fact in known if not fact.changes and _is_about_same(fact, learned)]
        digests = dict.fromkeys(digest for fact in (*same, learned) for digest in fact.refused)
        learned = msgspec.structs.replace(learned, refused=tuple(digests)[-_MAX_REFUSED:])
        known = [fact for fact in known if fact not in same]
    MEMORY[place] = (*known, learned)[-_MAX_FACTS:]
    MEMORY.move_to_end(place)
    while len(MEMORY) > _MAX_PLACES:
        MEMORY.popitem(last=False)


def _is_about_same(one: Learned, other: Learned) -> bool:
    return (one.kind, one.dialect, one.model) == (other.kind, other.dialect, other.model)


def forget() -> None:
    """Forget everything that the process has learned."""
    MEMORY.clear()


def recall(target: Target, messages: Sequence[Message] = ()) -> tuple[Learned, ...]:
    """What refusals taught, in these messages or in this process. The latest fact is last."""
    told = tuple([fact for message in messages if message.learned for fact in message.learned])
    return (*told, *MEMORY.get((target.base_url, target.account), ())) if MEMORY else told
