"""Repairs of the other settings of a request: one function for each kind of refusal, smallest change first.

Each yields fixes in the order in which they are tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

import msgspec

from asides.dialects.refused_fields import has_field
from asides.flows.heal.refused_request import Fix, ListFixes, RefusedRequest, offer
from asides.flows.heal.refused_thinking import fix_thinking
from asides.flows.heal.replayed_state import NO_EFFORT_MESSAGES, drop_all_thoughts, send_whole_history
from asides.history.fit import CALLS_TOLD, SYSTEM_JOINED
from asides.providers.provider import Sampled
from asides.providers.refusals import OtherKind
from asides.providers.switches.table import EXCLUSIVE
from asides.values.rejections import RejectionKind

_SAMPLED: tuple[str, ...] = get_args(Sampled)
_LIMITS = ("max_tokens", "max_completion_tokens")


# --- two settings, limits ---------------------------------------------------------------------------------------------


def _drop_one_of_two(refused: RefusedRequest) -> Iterator[Fix]:
    extra = refused.prompt.extra
    for pair in EXCLUSIVE:
        has_both = has_field(refused.body, pair.one) and has_field(refused.body, pair.other)
        if has_both and has_field(refused.body, pair.dropped, extra):
            detail = f"{pair.one} and {pair.other} exclude each other here"
            yield fix_thinking(refused, detail, ("refused_fields", (pair.dropped,)), setting=pair.dropped)
    yield from _drop_named_fields(refused)


# "199759 + 8192 > 200000" (Anthropic); "maximum context length is 8192 tokens … 5000 in the messages" (OpenAI, vLLM).
_SUM = r"(\d{2,9}) ?\+ ?(\d{1,9}) ?> ?(\d{2,9})"
_PARTS = r"maximum context length is (\d{2,9}) tokens.{0,120}?\(?(\d{1,9}) in the (?:messages|input|prompt)"


def _shorten(refused: RefusedRequest) -> Iterator[Fix]:
    """The history that is known here instead of a stored one; a lower limit of the output. The rest is the caller's."""
    detail = "the stored conversation did not fit into the context; the history known here was sent instead"
    yield from send_whole_history(refused, "parent_dropped", detail)
    text, prompt = refused.rejection.text, refused.prompt
    room = 0
    if found := re.search(_SUM, text):
        room = int(found[3]) - int(found[1])
    elif found := re.search(_PARTS, text):
        room = int(found[1]) - int(found[2])
    limit = refused.planned.max_tokens
    needed = max(256, 2 * (refused.planned.thinking.budget or 0))
    if room >= needed and (limit is None or room < limit):
        lower = msgspec.structs.replace(prompt, max_tokens=room)
        detail = "the limit of the output did not fit into the context"
        asked = None if limit is None else str(limit)
        yield Fix(detail, prompt=lower, setting="max_tokens", asked=asked, sent=str(room))


# --- sampling, tools, prefill -----------------------------------------------------------------------------------------


def _to_snake(name: str) -> str:
    """The name of a setting as it is here: presencePenalty and generationConfig.topP are presence_penalty and top_p."""
    leaf = name.rpartition(".")[2].strip("[]`'\"")
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", leaf).lower()
    return {"p": "top_p", "k": "top_k", "stop_sequences": "stop"}.get(snake, snake)


def _list_sampled(refused: RefusedRequest) -> list[str]:
    """The sampling settings of the request that the refusal names."""
    sent = {*refused.planned.sampling.to_dict(), *(["stop"] if refused.planned.stop else [])}
    words = {_to_snake(name) for name in (*refused.rejection.names, *re.findall(r"\w+", refused.rejection.text))}
    return [name for name in _SAMPLED if name in words and name in sent]


def _drop_sampling(refused: RefusedRequest, field: str) -> Iterator[Fix]:
    named = _list_sampled(refused)
    if len(named) == 2 and "both" in refused.rejection.text.lower():
        named = [name for name in named if name != "temperature"]
    for names in (named, [name for name in _SAMPLED if name != "stop"], list(_SAMPLED)):
        if names:
            detail = f"{', '.join(names[:3])} {'is' if len(names) == 1 else 'are'} not accepted"
            yield Fix(detail, ((field, tuple(names)),), setting=names[0], asked="set", sent="nothing")


def _drop_sampling_while_thinking(refused: RefusedRequest) -> Iterator[Fix]:
    if refused.target.thinks(refused.planned.thinking):
        yield from _drop_sampling(refused, "forbids")
    yield from _drop_sampling(refused, "refuses")


def _drop_unsupported_sampling(refused: RefusedRequest) -> Iterator[Fix]:
    yield from _change_limit(refused)
    if _list_sampled(refused):
        yield from _drop_sampling(refused, "refuses")
    yield from _drop_named_fields(refused)


def _change_limit(refused: RefusedRequest) -> Iterator[Fix]:
    """The other name of the output limit, if the refusal names the one that was sent."""
    for name, other in (_LIMITS, _LIMITS[::-1]):
        if name in refused.body and name in refused.rejection.text and name not in refused.prompt.extra:
            yield Fix(f"the limit is called {other} here", (("output_limit", other),), setting="max_tokens")


def _free_choice(refused: RefusedRequest) -> Iterator[Fix]:
    detail, choice = "this model cannot be forced to call a tool while it thinks", refused.planned.tool_choice
    for forced in (False, "never"):
        changes = (("forced_tools", forced), ("forced_tools_with_budget", False))
        yield Fix(detail, changes, setting="tool_choice", asked=choice, sent="auto")


def _never_force(refused: RefusedRequest) -> Iterator[Fix]:
    detail, choice = "this model cannot be forced to call a tool", refused.planned.tool_choice
    yield Fix(detail, (("forced_tools", "never"),), setting="tool_choice", asked=choice, sent="auto")


_END_WITH_USER = offer(
    Fix(
        "this model does not continue an assistant's message; it was asked to continue",
        (("prefill", "never"),),
        code="prefill_adjusted",
        setting="messages",
    ),
    # The last message may also be a system message.
    Fix(SYSTEM_JOINED, (("message_rules", ("system_first",)),), code="system_moved", setting="messages"),
)


# --- fields -----------------------------------------------------------------------------------------------------------


def _drop_edit(refused: RefusedRequest) -> Iterator[Fix]:
    edit = re.search(r"clear_thinking_\d+", refused.rejection.text)
    names = (f"context_management.edits.{edit[0]}",) if edit else ()
    for name in (*names, "context_management"):
        yield Fix("earlier thinking is cleared only while thinking is on", (("refused_fields", (name,)),), setting=name)


def _drop_summary(refused: RefusedRequest) -> Iterator[Fix]:
    yield Fix(
        "this organisation gets no summaries of reasoning; asked without one",
        (("summaries", False),),
        every_model=True,
        code="summary_refused",
        setting="summary",
        asked=refused.prompt.thinking.summary or "auto",
        sent="nothing",
    )
    yield from _drop_named_fields(refused)


_STREAM = offer(
    Fix(
        "this host answers only as a stream",
        (("stream_only", True),),
        code="streamed",
        setting="stream",
        asked="false",
        sent="true",
    )
)


# Fields that many hosts lack, and a name in a refusal that means each.
_OPTIONAL = ("stream_options", "parallel_tool_calls", "metadata", "user", "store", "include", "tool_stream")
_ROOTS = ("", "options.", "generationConfig.", "inferenceConfig.", "additionalModelRequestFields.")


def _drop_named_fields(refused: RefusedRequest) -> Iterator[Fix]:
    """Leave out the field that the refusal names, if the request has it and the caller did not set it."""
    yield from _change_limit(refused)
    if re.search(r"(?i)effort|output_config|\bsystem\b", refused.rejection.text):
        yield NO_EFFORT_MESSAGES
    rejection, extra = refused.rejection, refused.prompt.extra
    paths = [".".join(str(step) for step in path if isinstance(step, str)) for path in rejection.where]
    names = [*paths, *rejection.names]
    names += [name for name in _OPTIONAL if re.search(rf"\b{name}\b", rejection.text)]
    for name in dict.fromkeys(names):
        plain = re.sub(r"\[\d*\]|\.\d+", "", name).strip(".")
        full = next((root + plain for root in _ROOTS if plain and has_field(refused.body, root + plain, extra)), None)
        if full is not None:
            yield Fix(
                f"{full} is not accepted here",
                (("refused_fields", (full,)),),
                setting=full,
                asked="set",
                sent="nothing",
            )


# --- no reason given --------------------------------------------------------------------------------------------------


def _try_one_by_one(refused: RefusedRequest) -> Iterator[Fix]:
    """One change at a time: the effort, state that others may have made, thinking."""
    detail = "the provider gave no reason; the request succeeded without this"
    thinking = refused.planned.thinking
    is_certain = refused.status is None or refused.status < 500
    if thinking.effort is not None:
        yield msgspec.structs.replace(fix_thinking(refused, detail, ("efforts", ())), lasts=is_certain)
    foreign = [token for token in refused.thoughts if not refused.is_own(token.origin)]
    if foreign:
        yield Fix(detail, refused=refused.digest(foreign), code="thoughts_rejected", setting="messages")
    if thinking.wanted:
        fix = fix_thinking(refused, detail, ("thinking", "never"), ("replay", "never"))
        yield msgspec.structs.replace(fix, lasts=is_certain)
    else:
        yield from drop_all_thoughts(refused)


FIXES: dict[RejectionKind, ListFixes] = {
    "reasoning_params_conflict": _drop_one_of_two,
    "sampling_with_thinking": _drop_sampling_while_thinking,
    "sampling_unsupported": _drop_unsupported_sampling,
    "tool_choice_with_thinking": _free_choice,
    "tool_choice_unsupported": _never_force,
    "prefill_unsupported": _END_WITH_USER,
    "prefill_with_thinking": _END_WITH_USER,
    "context_edit_needs_thinking": _drop_edit,
    "summary_not_allowed": _drop_summary,
    "stream_required": _STREAM,
    "unknown_param": _drop_named_fields,
    "context_length": _shorten,
    "opaque_provider_error": _try_one_by_one,
}
"""What may repair a refusal of this kind, smallest change first."""


# --- refusals without a kind ------------------------------------------------------------------------------------------

OTHER_FIXES: dict[OtherKind, ListFixes] = {
    "tools_undefined": offer(
        Fix(
            "a history with calls needs its tools here; only their names were sent",
            (("calls_need_tools", ("*",)),),
            code="tools_added",
            setting="tools",
        )
    ),
    "tools_unsupported": offer(
        Fix(CALLS_TOLD, (("tools", False),), code="calls_as_text", setting="messages"),
    ),
    # Every plan adapts the ids. Only a client's body that was forwarded verbatim can have others.
    "call_ids_refused": offer(),
    "schema_unsupported": offer(
        *(
            Fix(
                "this model takes no schema; its answer was asked for in another way",
                (("structured_output", form),),
                setting="output",
                asked="json_schema",
                sent=form,
            )
            for form in ("json_object", "nothing")
        )
    ),
}
"""Repairs of refusals that concern neither reasoning state nor its settings."""
