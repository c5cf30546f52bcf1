"""Answer `/responses/compact`: the provider's own compaction where it has one, else a summary by the model."""

from __future__ import annotations

import msgspec

from asides.dialects import find_dialect
from asides.dialects.compaction import build_compact_request
from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.dialects.openai_responses.server.write_reply import CompactionWriter
from asides.flows.call import Call, encode_request
from asides.flows.steps import Flow, UseCall
from asides.relay.answers.stored_responses import (
    join_messages,
    list_input_items,
    read_previous,
    refuse_conversation,
    refuse_previous,
)
from asides.relay.compacted_exchange import CompactedExchange
from asides.relay.find_calls import find_calls
from asides.relay.find_changes import Asked, find_changes
from asides.relay.forward import build_forward_request, return_response
from asides.relay.relay_config import Caller
from asides.relay.relay_request import RelayOutcome
from asides.relay.request_options import FIELD, RequestOptions, read_request_options
from asides.relay.state.caller_state import CallerState
from asides.relay.state.clean_history import holds_envelopes
from asides.relay.state.sealed_summary import has_foreign_compaction, takes_compactions


def answer_compaction(caller: Caller) -> Flow[RelayOutcome]:
    """Compact a conversation. One target is asked: the next one of a route would know nothing of its items."""
    served = find_dialect(caller.dialect).read(caller.request.body, caller.endpoint.path)
    served = msgspec.structs.replace(served, stream=False)
    own = read_request_options(served.prompt.extra.pop(FIELD, None), caller.config, caller.builder.visibility)
    state = CallerState(caller)
    items = list_input_items(caller.request.body, "compacted")
    previous, conversation = served.prompt.state.previous_response_id, served.prompt.state.conversation
    if conversation is not None and caller.request.tenant:
        # As for a reply: none is known to be a tenant's.
        raise refuse_conversation(conversation)
    if previous is not None:
        records = (yield from read_previous(state.keys, previous)) if state.has_store else None
        if records is None:
            raise refuse_previous(previous, caller.dialect)
        items = [item for record in records for item in record.items] + items
        messages = (*join_messages(records), *served.prompt.messages)
        served = msgspec.structs.replace(served, prompt=msgspec.structs.replace(served.prompt, messages=messages))
        state.is_changed = True
    found = find_calls(caller, served, own)
    call, options = msgspec.structs.replace(found.call, fallbacks=()), found.options
    served = yield from state.restore(served, [call.target])
    state.is_changed = state.is_changed or holds_envelopes(caller.request.body)
    call = msgspec.structs.replace(
        call, prompt=msgspec.structs.replace(call.prompt, messages=served.prompt.messages, stream=False)
    )
    if takes_compactions(call.target):
        request = _build_request(caller, call, state, served, options)
        yield from caller.reserve(call, None, lambda: None)
        return (yield from return_response(caller, call, request))
    writer = CompactionWriter(model=served.model)
    writer.keep(items)
    exchange = CompactedExchange(call, caller, served, state, writer)
    yield UseCall(call)
    reply = yield from exchange.steps()
    notices = (*caller.notices, *reply.warnings)
    return RelayOutcome(200, "translate", "a model sums up the conversation", call.model, reply=reply, notices=notices)


def _build_request(
    caller: Caller, call: Call, state: CallerState, served: ServedRequest, options: RequestOptions
) -> HttpRequest:
    """The request to a provider that compacts: the caller's own bytes, if nothing of ours is in them."""
    asked = Asked(
        caller.dialect,
        state.find_visibility(options.visibility),
        caller.config.sink,
        may_pass=caller.config.forwards and options.may_forward,
        has_state=state.is_changed,
        has_compaction=has_foreign_compaction(served.prompt.messages),
    )
    changes = find_changes(call, asked)
    request = None if changes.request else build_forward_request(call, caller, False, (FIELD,))
    if request is None:
        sent = encode_request(call.prompt, call.target, on_conflict="adjust").request
        return build_compact_request(sent)
    url, mark, query = request.url.partition("?")
    return msgspec.structs.replace(request, url=f"{url}/compact{mark}{query}")
