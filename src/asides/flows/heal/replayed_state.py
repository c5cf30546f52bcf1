"""Repairs of the earlier turns sent back: one function for each kind of refusal, smallest change first.

Each yields fixes in the order in which they are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from asides.flows.heal.refused_request import Fix, ListFixes, PlacedToken, RefusedRequest, offer
from asides.history.fit import ARGUMENTS_EMPTIED, BLANKS_FILLED, NEIGHBOURS_JOINED, SYSTEM_IN_USER, SYSTEM_JOINED
from asides.history.replay import NOT_LED, NOT_THINKING
from asides.values.messages import Prompt
from asides.values.parts import ServerTool, ToolCall, UnknownPart
from asides.values.rejections import RejectionKind
from asides.values.thinking import Seal, Thought, turn_off

_OF_CODE = ("caller", "container")
_LEFT_OUT = "the provider rejects thoughts of earlier turns; they were left out"
_ONE_LEFT_OUT = "the provider rejects a thought of an earlier turn; it was left out"


def _drop(refused: RefusedRequest, tokens: Iterable[PlacedToken], detail: str = _LEFT_OUT) -> Fix:
    chosen = list(tokens)
    detail = _ONE_LEFT_OUT if len(chosen) == 1 and detail is _LEFT_OUT else detail
    sent = [token for token in refused.thoughts if token not in chosen]
    return Fix(
        detail,
        refused=refused.digest(chosen),
        code="thoughts_rejected",
        setting="messages",
        asked=f"{len(refused.thoughts)} thoughts",
        sent=f"{len(sent)} thoughts",
    )


def drop_all_thoughts(refused: RefusedRequest) -> Iterator[Fix]:
    """Drop every earlier thought."""
    if refused.thoughts:
        yield _drop(refused, refused.thoughts)


def _drop_named(refused: RefusedRequest) -> Iterator[Fix]:
    """Drop the named thought and all others of the same foreign origin; then all thoughts."""
    if named := [token for token in refused.named if token.is_thinking]:
        yield _drop(refused, refused.list_same_origin(named))
    yield from drop_all_thoughts(refused)


def _drop_named_and_later(refused: RefusedRequest) -> Iterator[Fix]:
    """Drop the named thought and all later ones: they are bound to a history without it."""
    if named := [token for token in refused.named if token.is_thinking]:
        first = min((token.message, token.part) for token in named)
        fix = _drop(refused, [token for token in refused.thoughts if (token.message, token.part) >= first])
        # From now on, the plan detects a changed history itself.
        yield msgspec.structs.replace(fix, changes=(("prefix_bound", True),))
    yield from drop_all_thoughts(refused)


def _drop_named_turn(refused: RefusedRequest) -> Iterator[Fix]:
    """Drop all thoughts of the named turn; without a name, those of the last turn; then all."""
    thoughts = refused.thoughts
    named = {token.message for token in refused.named} or {token.message for token in thoughts[-1:]}
    yield _drop(refused, [token for token in thoughts if token.message in named])
    yield from drop_all_thoughts(refused)


def _begin_with_thinking(refused: RefusedRequest) -> Iterator[Fix]:
    """A turn that does not begin with its thinking goes back without it."""
    yield Fix(NOT_LED, (("begins_with_thinking", True),), code="thoughts_rejected", setting="messages")
    yield from _drop_named_turn(refused)


def _drop_unsigned(refused: RefusedRequest) -> Iterator[Fix]:
    """Drop thoughts without a signature."""
    if refused.replay == "all":
        yield Fix(_LEFT_OUT, (("replay", "sealed"),), code="thoughts_rejected", setting="messages")
    unsigned = [
        token
        for token in refused.thoughts
        if not (isinstance(token.owner, Thought) and any(seal.value for seal in token.owner.seals))
    ]
    if unsigned:
        yield _drop(refused, unsigned)
    yield from _drop_named(refused)


def _lead_with_thinking(refused: RefusedRequest) -> Iterator[Fix]:
    """The turn lost its required leading thought: turn thinking off for this turn."""
    detail = "the current turn has lost its thinking, which this model requires; it does not think in this turn"
    yield Fix(detail, (("begins_with_thinking", True),), setting="thinking")
    yield Fix(detail, prompt=_stop_thinking(refused), setting="thinking")


def _stop_thinking(refused: RefusedRequest) -> Prompt:
    return msgspec.structs.replace(refused.prompt, thinking=turn_off(refused.prompt.thinking))


def _drop_while_off(refused: RefusedRequest) -> Iterator[Fix]:
    off: tuple[tuple[str, object], ...] = (("refuses_thoughts_while_off", ("*",)),)
    yield Fix(NOT_THINKING, off, code="thoughts_rejected", setting="messages")
    if refused.target.thinks(refused.planned.thinking) is None:
        # It thinks only on request.
        yield Fix(NOT_THINKING, (*off, ("default", "off")), code="thoughts_rejected", setting="messages")
    yield from _drop_named_turn(refused)


_DROP_CONTROL = offer(
    Fix("block_binding is not known here", (("refused_fields", ("thinking.block_binding",)),), setting="thinking")
)


def _drop_block(refused: RefusedRequest) -> Iterator[Fix]:
    """Drop the named block, of any kind."""
    blocks = [token for token in refused.named if isinstance(token.token, (ServerTool, UnknownPart))]
    if blocks:
        digests = refused.digest(blocks)
        yield Fix(
            "a block was changed since the provider sent it; it was left out", refused=digests, setting="messages"
        )
    yield from _drop_named(refused)


_PENDING = "the container of a call of the provider's code is not known; the call was sent as the model's own"


def _end_code(refused: RefusedRequest) -> Iterator[Fix]:
    """Code that the provider runs waits in a container for the result of a call, and the container is not known or
    gone: the call goes back as an ordinary one, without the code and without the container.
    """
    if "container" not in refused.rejection.text.lower():
        return
    seals = [token for token in refused.tokens if isinstance(token.token, Seal) and token.token.kind in _OF_CODE]
    turns = {token.message for token in seals}
    code = [token for token in refused.tokens if isinstance(token.token, ServerTool) and token.message in turns]
    if seals:
        yield Fix(_PENDING, refused=refused.digest([*seals, *code]), setting="messages")


# --- items of reasoning -----------------------------------------------------------------------------------------------

_WITHOUT_IDS = "the provider does not know the ids of earlier items; they were sent without"


def _drop_ids(refused: RefusedRequest) -> Iterator[Fix]:
    yield Fix(_WITHOUT_IDS, (("item_ids", False),), setting="messages")
    yield from _drop_named(refused)


def _drop_named_ids(refused: RefusedRequest) -> Iterator[Fix]:
    """An item lacks its reasoning: send it without the id that binds it."""
    items = [token for token in refused.named if not token.is_thinking and isinstance(token.token, Seal)]
    if items:
        yield Fix("an item was sent without its id, since its reasoning is gone", refused=refused.digest(items))
    yield from _drop_ids(refused)


def _drop_unknown_items(refused: RefusedRequest) -> Iterator[Fix]:
    """The provider has not stored an item: send its encrypted content without the id, or leave it out."""
    named = [token for token in refused.named if token.is_thinking]
    encrypted = [token for token in named if isinstance(token.token, Seal) and token.token.value]
    if encrypted or not named:
        yield Fix(_WITHOUT_IDS, (("item_ids", False),), setting="messages")
    if named:
        lost = [token for token in refused.thoughts if isinstance(token.token, Seal) and not token.token.value]
        # An id that this request cannot use, no other request can.
        yield _drop(refused, lost if not encrypted else named)
    yield from drop_all_thoughts(refused)


def _drop_other_account(refused: RefusedRequest) -> Iterator[Fix]:
    """Drop everything that may be of another account."""
    named = [token for token in refused.named if token.is_thinking]
    others = [token for token in refused.thoughts if not refused.is_own(token.origin) or token in named]
    if others:
        fix = _drop(refused, others, "thoughts of another account do not go back")
        yield msgspec.structs.replace(fix, changes=(("account_bound", True),))
    yield from drop_all_thoughts(refused)


def _ask_without_encrypted(refused: RefusedRequest) -> Iterator[Fix]:
    detail = "this model has no encrypted reasoning; asked without it"
    yield Fix(detail, (("includes_reasoning", False),), setting="include")
    yield from drop_all_thoughts(refused)


def _send_without_raw_text(refused: RefusedRequest) -> Iterator[Fix]:
    detail = "items of reasoning go back without their raw text here"
    yield Fix(detail, (("raw_items", False),), setting="messages")
    yield from _drop_named(refused)


# --- stored conversations ---------------------------------------------------------------------------------------------


def send_whole_history(refused: RefusedRequest, code: str, detail: str) -> Iterator[Fix]:
    """Send the whole history instead of a stored parent, if it is known here."""
    prompt, state = refused.prompt, refused.prompt.state
    has_history = any(message.role == "assistant" for message in prompt.messages)
    if not has_history or not (state.continues or state.resume):
        return
    cleared = msgspec.structs.replace(state, previous_response_id=None, conversation=None, resume=False)
    # The next turn can continue from this one once it is stored.
    store = True if state.store is None else state.store
    # Earlier turns are not stored where the parent was.
    messages = tuple(msgspec.structs.replace(message, stored=None) for message in prompt.messages)
    whole = msgspec.structs.replace(prompt, state=msgspec.structs.replace(cleared, store=store), messages=messages)
    yield Fix(detail, prompt=whole, code=code, setting="previous_response_id")


def _replace_parent(refused: RefusedRequest) -> Iterator[Fix]:
    detail = "the provider does not have the turn to continue from; everything was sent instead"
    yield from send_whole_history(refused, "parent_rejected", detail)


def _send_with_pairs(refused: RefusedRequest) -> Iterator[Fix]:
    """A result lost its call, or a call its result: the other one is not in the stored turn. The plan pairs them."""
    detail = "the calls of the stored turn and these results do not fit; everything was sent instead"
    yield from send_whole_history(refused, "parent_rejected", detail)


def _add_results(refused: RefusedRequest) -> Iterator[Fix]:
    yield from _end_code(refused)
    yield from _send_with_pairs(refused)


_REPLACE_PARENTS = offer(
    Fix(
        "the provider stores nothing for this account; everything was sent instead",
        (("stores", False),),
        every_model=True,
        code="parent_rejected",
        setting="previous_response_id",
    )
)


# --- signatures of calls, thinking in fields --------------------------------------------------------------------------


_STAND_IN = "a call has no signature of this model; the documented stand-in was sent"
# In all turns: one that is over would change when the next begins, and the prompt cache would be lost.
_SIGN_CALLS = offer(Fix(_STAND_IN, (("signed_calls", True),), code="signature_stand_in", setting="messages"))


def _replace_signatures(refused: RefusedRequest) -> Iterator[Fix]:
    """Leave the refused signatures out; a call that must have one gets the stand-in."""
    signed = any(isinstance(token.owner, ToolCall) and token.is_thinking for token in refused.tokens)
    for fix in _drop_named(refused):
        yield msgspec.structs.replace(fix, changes=(("signed_calls", True),)) if signed else fix
    if signed:
        yield msgspec.structs.replace(_drop(refused, refused.thoughts), changes=(("signed_calls", True),))


def _give_thinking_back(refused: RefusedRequest) -> Iterator[Fix]:
    """Send earlier thinking back where it is known, and a stand-in where it is lost: empty, or a dot. If that is
    refused too, turn thinking off.
    """
    replay = () if refused.replay == "all" else (("replay", "all"),)
    # Where a field counts as missing, one without text may too (Kimi; rejections of 2026-04).
    fillers = (".", "") if "missing" in refused.rejection.text.lower() else ("", ".")
    for filler in fillers:
        detail = "this provider wants earlier thinking back; it was sent, or a stand-in where it is gone"
        yield Fix(detail, (*replay, ("missing_thinking", filler)), setting="messages", sent=repr(filler))
    detail = "this provider wants earlier thinking back, which is gone; it does not think in this turn"
    yield Fix(detail, prompt=_stop_thinking(refused), setting="thinking")


def _keep_thinking_back(refused: RefusedRequest) -> Iterator[Fix]:
    if "signature" in refused.rejection.text.lower():
        fields = ("messages.content.reasoningContent.reasoningText.signature",)
        yield Fix("this model takes no signatures back", (("refused_fields", fields),), setting="messages")
    detail = "this provider takes no earlier thinking back; it was left out"
    never = (("replay", "never"),)
    yield Fix(detail, never, code="thoughts_rejected", setting="messages")
    # A turn that the provider stores has its thinking too: the history goes without.
    for fix in send_whole_history(refused, "parent_rejected", detail):
        yield msgspec.structs.replace(fix, changes=never)
    yield from drop_all_thoughts(refused)


# --- messages ---------------------------------------------------------------------------------------------------------


NO_EFFORT_MESSAGES = Fix(
    "messages that change the effort do not exist here; the request names it",
    (("effort_updates", None),),
    setting="messages",
)
"""Tried when a message of the system is refused, or a field of it: changes nothing where none was sent."""
_MERGE = (
    Fix(NEIGHBOURS_JOINED, (("message_rules", ("alternate",)),), code="messages_merged", setting="messages"),
    Fix(
        NEIGHBOURS_JOINED,
        (("message_rules", ("alternate", "system_first")),),
        code="messages_merged",
        setting="messages",
    ),
)
_ORDER = (
    Fix(
        "only the assistant may follow tool results here; a short assistant message was added",
        (("after_results", "assistant"),),
        code="turn_added",
        setting="messages",
    ),
    Fix(
        "tool results need a message of their own here; a short assistant message was added after them",
        (("results_alone", ("*",)),),
        code="turn_added",
        setting="messages",
    ),
    Fix("the calls of a turn follow each other here", (("call_order", "grouped"),), setting="messages"),
)
_CALLS_ALONE = Fix(
    "tool calls need a message of their own here; a short user message was added before them",
    (("calls_alone", ("*",)),),
    code="turn_added",
    setting="messages",
)


def _order_turns(refused: RefusedRequest) -> Iterator[Fix]:
    # Converse has its own wording for calls.
    if "tool use block" in refused.rejection.text.lower():
        yield _CALLS_ALONE
    yield from (*_ORDER, *_MERGE)


_ADD_QUERY = Fix(
    "a user message is required here; a short one was added",
    (("message_rules", ("user_query",)),),
    code="turn_added",
    setting="messages",
)
_PUT_SYSTEM_FIRST = offer(
    NO_EFFORT_MESSAGES,
    Fix("the system prompt has the role system here", (("system_role", "system"),), setting="system"),
    Fix(
        SYSTEM_JOINED,
        (("message_rules", ("system_first",)),),
        code="system_moved",
        setting="messages",
    ),
    Fix(
        SYSTEM_IN_USER,
        (("message_rules", ("alternate", "system_first", "system_in_user")),),
        code="system_moved",
        setting="system",
    ),
)


_EMPTY_ARGUMENTS = offer(
    Fix(
        ARGUMENTS_EMPTIED,
        (("message_rules", ("object_arguments",)),),
        code="arguments_not_sent",
        setting="messages",
    )
)


def _fill_blanks(refused: RefusedRequest) -> Iterator[Fix]:
    yield Fix(BLANKS_FILLED, (("message_rules", ("filled",)),), setting="messages")
    yield _ADD_QUERY
    yield from drop_all_thoughts(refused)


FIXES: dict[RejectionKind, ListFixes] = {
    "thinking_signature_invalid": _drop_named,
    "thinking_prefix_mismatch": _drop_named_and_later,
    "binding_control_unavailable": _DROP_CONTROL,
    "compaction_signature_mismatch": _drop_block,
    "thinking_signature_missing": _drop_unsigned,
    "thinking_text_missing": _drop_named,
    "thinking_block_modified": _drop_named_turn,
    "thinking_must_lead": _lead_with_thinking,
    "thinking_order": _begin_with_thinking,
    "thinking_final_block": _drop_named_turn,
    "thinking_present_while_disabled": _drop_while_off,
    "reasoning_item_orphaned": _drop_named,
    "reasoning_item_missing": _drop_named_ids,
    "item_not_persisted": _drop_unknown_items,
    "encrypted_reasoning_invalid": _drop_named,
    "encrypted_reasoning_wrong_account": _drop_other_account,
    "encrypted_reasoning_unsupported": _ask_without_encrypted,
    "previous_response_missing": _replace_parent,
    "previous_response_forbidden": _REPLACE_PARENTS,
    "reasoning_item_id_invalid": _drop_ids,
    "reasoning_item_duplicate": _drop_ids,
    "reasoning_content_nonempty": _send_without_raw_text,
    "thought_signature_missing": _SIGN_CALLS,
    "thought_signature_invalid": _replace_signatures,
    "reasoning_content_required": _give_thinking_back,
    "reasoning_field_rejected": _keep_thinking_back,
    "tool_result_missing": _add_results,
    "tool_result_orphaned": _send_with_pairs,
    "tool_arguments_invalid": _EMPTY_ARGUMENTS,
    "tool_turn_order": _order_turns,
    "empty_content": _fill_blanks,
    "role_alternation": offer(*_MERGE, *_ORDER, _ADD_QUERY),
    "system_position": _PUT_SYSTEM_FIRST,
}
"""What may repair a refusal of this kind, smallest change first."""
