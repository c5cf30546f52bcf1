"""What a step of recovery changes in a call, whether a reply needs one, and when the limits are reached. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from asides.flows.call import Call
from asides.history.check import ANSWER_ROOM, check_request
from asides.providers.provider import ModelRule, Target
from asides.providers.settle import settle
from asides.values.errors import AsidesError, InvalidOutput
from asides.values.messages import Prompt, user
from asides.values.notices import Notice
from asides.values.parts import File, Image
from asides.values.recover_policy import RecoverPolicy, RecoverStep
from asides.values.reply import Reply
from asides.values.thinking import EFFORTS, Effort, Thinking, Thought, join_thoughts, turn_off

if TYPE_CHECKING:
    from asides.agents.outputs.expected_output import ExpectedOutput

Need: TypeAlias = Literal["starved", "unterminated", "unanswered", "cut"]
"""Why a reply needs to be recovered. cut: a typed answer that ran out of tokens."""

# The provider continues by itself, or reports that it cannot: asking for less does not help.
_NOT_ENDED = ("pause", "error")
_GROWTH = 4
# The field of a limit, in the dialects. In `extra=` it wins over `max_tokens`, so a higher one would not be sent.
_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig", "inferenceConfig"})


class NextAttempt(msgspec.Struct, frozen=True):
    """One more request: the step, the call, and the notice about it."""

    step: RecoverStep | Literal["correct"]
    call: Call
    notice: Notice


def find_need(reply: Reply, call: Call) -> Need | None:
    """Why this reply needs to be recovered. None if it has an answer, a refusal, a call, or was filtered."""
    outcome = reply.outcome
    if outcome == "starved" or (outcome in ("unterminated", "unanswered") and reply.stop.reason not in _NOT_ENDED):
        # A picture is an answer without text.
        has_answer = any(isinstance(part, (Image, File)) for part in reply.parts)
        return None if has_answer else outcome
    if reply.stop.reason == "length" and call.expected is not None and _is_cut(reply, call.expected):
        return "cut"
    return None


def _is_cut(reply: Reply, expected: ExpectedOutput) -> bool:
    """Whether the typed answer of a reply that ran out of tokens cannot be read."""
    if any(call.name != expected.strategy.tool for call in reply.tool_calls):
        return False
    if reply.outcome not in ("answered", "tool_calls"):
        return False
    try:
        expected.read(reply)
    except Exception:  # noqa: BLE001 - the type may run code of the caller
        return True
    return False


def find_limit(policy: RecoverPolicy, requests: int, so_far: Reply) -> Notice | None:
    """The limit that forbids a further request, or None. `so_far` has the usage of all attempts."""
    usage = so_far.usage
    tokens = usage.total if usage.total is not None else (usage.input or 0) + (usage.output or 0)
    if requests >= policy.max_requests:
        return _report_limit("max_requests", policy.max_requests)
    if policy.max_total_tokens is not None and tokens >= policy.max_total_tokens:
        return _report_limit("max_total_tokens", policy.max_total_tokens)
    if policy.max_cost is not None:
        cost = so_far.cost
        if cost is None:
            return Notice("recover_stopped", "max_cost is set, and the cost is not known", "recover")
        if cost.amount >= policy.max_cost:
            return _report_limit("max_cost", policy.max_cost)
    return None


def _report_limit(name: str, limit: object) -> Notice:
    return Notice("recover_stopped", f"the reply has no answer, and {name} is reached ({limit})", "recover")


def choose_attempt(
    step: RecoverStep, need: Need, call: Call, reply: Reply, policy: RecoverPolicy
) -> NextAttempt | None:
    """The call for a step; None if the model does not allow it, or if it would change nothing."""
    try:
        # The request as it was sent. A contradiction in it was reported then.
        sent = check_request(call.prompt, call.target, "adjust", [])
    except AsidesError:
        return None
    match step:
        case "continue":
            changes, target, notice = _continue(sent, call.target, reply, need)
        case "less_effort":
            target = call.target
            changes, notice = _lower_effort(sent, target.rule, need)
        case "more_tokens":
            target = call.target
            changes, notice = _raise_limit(sent, target.rule, reply, need, policy)
    if notice is None:
        return None
    prompt = msgspec.structs.replace(call.prompt, **changes)
    # The notices of the call were reported with its first request.
    return NextAttempt(
        step, msgspec.structs.replace(call, prompt=prompt, target=target, notices=(), fallbacks=()), notice
    )


# --- correct ----------------------------------------------------------------------------------------------------------


def find_misfit(reply: Reply, call: Call) -> InvalidOutput | None:
    """Why the answer does not fit the requested output; None if it fits, or if there is no answer."""
    if call.expected is None or reply.outcome not in ("answered", "tool_calls"):
        return None
    try:
        call.expected.read(reply)
    except InvalidOutput as problem:
        return problem
    except AsidesError:
        return None
    return None


def ask_for_corrected(call: Call, reply: Reply, problem: InvalidOutput, attempt: int) -> NextAttempt:
    """The call that shows the model its answer and what is wrong with it."""
    answer = reply.to_message()
    shown = () if answer is None else (answer,)
    messages = (*call.prompt.messages, *shown, user(problem.feedback or "Your answer does not fit. Give it again."))
    prompt = msgspec.structs.replace(call.prompt, messages=messages)
    notice = Notice("output_corrected", f"the answer did not fit; correction {attempt} was asked for", "output")
    return NextAttempt("correct", msgspec.structs.replace(call, prompt=prompt, notices=(), fallbacks=()), notice)


# --- continue ---------------------------------------------------------------------------------------------------------


def _continue(sent: Prompt, target: Target, reply: Reply, need: Need) -> tuple[dict[str, Any], Target, Notice | None]:
    """Close the model's own thinking and let it continue. Raw thinking only: a model cannot continue a summary."""
    thoughts = [part for part in reply.parts if isinstance(part, Thought)]
    text = join_thoughts([thought.text for thought in thoughts if thought.kind == "raw"])
    kind = target.quirks.continues
    can = (kind == "prefix" and not target.foreign) or (kind == "final_message" and target.facts.tags[:1] == ("think",))
    if need == "cut" or text is None or not can or any(thought.kind == "summary" for thought in thoughts):
        return {}, target, None
    changes: dict[str, Any] = {"begun_thinking": text}
    if kind == "final_message":
        if target.rule.thinking != "always":
            # The server refuses a begun turn while the template thinks, or would read the answer as thinking.
            changes["thinking"] = turn_off(sent.thinking)
        target = settle(target, overrides={"starts_inside": False})
    detail = f"the reply had no answer ({need}); the model went on from its thinking"
    return changes, target, Notice("recover_continue", detail, "recover")


# --- less effort ------------------------------------------------------------------------------------------------------


def _lower_effort(sent: Prompt, rule: ModelRule, need: Need) -> tuple[dict[str, Any], Notice | None]:
    lower = find_less_thinking(sent.thinking, rule)
    if lower is None:
        return {}, None
    detail = f"the reply had no answer ({need}); it was asked again with less thinking"
    return {"thinking": lower}, Notice(
        "recover_less_effort", detail, "thinking", _describe(sent.thinking), _describe(lower)
    )


def find_less_thinking(thinking: Thinking, rule: ModelRule) -> Thinking | None:
    """The next lower amount of thinking that the model accepts; off if it can stop; None if there is none."""
    if rule.thinking == "never" or thinking.mode in ("off", "between_tools"):
        return None
    if thinking.budget is not None:
        least = (rule.budget or (1, None))[0]
        half = max(thinking.budget // 2, least)
        if half < thinking.budget:
            return msgspec.structs.replace(thinking, budget=half)
        return _stop_if_possible(thinking, rule)
    ladder = rule.efforts if rule.efforts is not None else EFFORTS if thinking.effort is not None else ()
    if ladder:
        below = [effort for effort in ladder if EFFORTS.index(effort) < EFFORTS.index(_guess_effort(thinking, ladder))]
        if below:
            return msgspec.structs.replace(thinking, mode=None, effort=max(below, key=EFFORTS.index))
    return _stop_if_possible(thinking, rule)


def _guess_effort(thinking: Thinking, ladder: tuple[Effort, ...]) -> Effort:
    """The effort of a request. Without one the provider decides: medium or high, according to its documentation."""
    if thinking.effort is not None:
        return thinking.effort
    return "medium" if "medium" in ladder else "high"


def _stop_if_possible(thinking: Thinking, rule: ModelRule) -> Thinking | None:
    return turn_off(thinking) if rule.thinking == "optional" else None


def _describe(thinking: Thinking) -> str:
    amount = thinking.budget if thinking.budget is not None else thinking.effort or thinking.mode
    return str(amount or "default")


# --- more tokens ------------------------------------------------------------------------------------------------------


def _raise_limit(
    sent: Prompt, rule: ModelRule, reply: Reply, need: Need, policy: RecoverPolicy
) -> tuple[dict[str, Any], Notice | None]:
    limit = sent.max_tokens or reply.usage.output
    caps = [cap for cap in (policy.max_tokens, rule.max_output) if cap is not None]
    if not _LIMITS.isdisjoint(sent.extra) or (limit is None and not caps):
        return {}, None
    grown: list[int] = [] if limit is None else [max(limit * _GROWTH, limit + ANSWER_ROOM)]
    higher = min([*caps, *grown])
    if limit is not None and higher <= limit:
        return {}, None
    detail = f"the reply had no answer ({need}); it was asked again with more tokens"
    asked = None if sent.max_tokens is None else str(sent.max_tokens)
    return {"max_tokens": higher}, Notice("recover_more_tokens", detail, "max_tokens", asked, str(higher))
