"""Count the tokens of a request: the provider's own count where it has one, else an estimate that says so."""

from __future__ import annotations

import random

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, encode_request
from asides.flows.fetch_body import fetch_body
from asides.flows.steps import Emit, Flow, Head, UseCall
from asides.history.trim import RequestCounter
from asides.providers.table import is_maker
from asides.relay.answers.count_forms import COUNT_FORMS, CountForm
from asides.relay.find_calls import find_calls
from asides.relay.relay_config import Caller
from asides.relay.relay_request import RelayMode, RelayOutcome
from asides.relay.request_options import FIELD, read_request_options
from asides.relay.state.caller_state import CallerState
from asides.relay.translate.translate_fields import fit_prompt
from asides.values.errors import AsidesError, AuthError, ProtocolError, ProviderError, RateLimited
from asides.values.notices import Notice

_ESTIMATED = Notice("tokens_estimated", "this provider does not count tokens; the count is an estimate")


def count_tokens(caller: Caller) -> Flow[RelayOutcome]:
    """Answer with the tokens of a request."""
    form = COUNT_FORMS[caller.dialect]
    served = form.read(caller.request.body, caller.endpoint.names)
    caller.show_asked(served)
    own = read_request_options(served.prompt.extra.pop(FIELD, None), caller.config, caller.builder.visibility)
    call = msgspec.structs.replace(find_calls(caller, served, own).call, fallbacks=())
    if caller.use is not None:
        yield from caller.use.count_request()
    state = CallerState(caller)
    served = yield from state.restore(served, [call.target])
    call = msgspec.structs.replace(
        call, prompt=msgspec.structs.replace(call.prompt, messages=served.prompt.messages, stream=False)
    )
    asked = msgspec.structs.replace(served, prompt=call.prompt)
    prompt, changes = fit_prompt(asked, caller.dialect, call.target)
    call = msgspec.structs.replace(call, prompt=prompt)
    yield UseCall(call)
    caller.show_target(call, "translate", "counted tokens")
    count = yield from caller.count_requests(_ask_provider(call))
    caller.notices += changes
    if count is None:
        count = RequestCounter(prompt, call.target)(prompt.messages)
        caller.notices.append(_ESTIMATED)
    mode: RelayMode = "own" if _ESTIMATED in caller.notices else "translate"
    body = msgspec.json.encode(form.write(count))
    yield Emit([*caller.start(200, {"content-type": "application/json"}), body])
    return RelayOutcome(200, mode, "counted tokens", call.model, notices=tuple(caller.notices))


def _ask_provider(call: Call) -> Flow[int | None]:
    """The provider's own count; None if it has none. Raises what any request to it would raise."""
    target = call.target
    form = COUNT_FORMS.get(target.dialect)
    if form is None or not is_maker(target.provider, target.dialect) or target.quirks.transport != "direct":
        return None
    request = _build_request(call, form)
    if request is None:
        return None
    dialect = find_dialect(target.dialect)

    def read(head: Head, body: bytes) -> int:  # noqa: ARG001 - as fetch_body calls it
        try:
            found = msgspec.json.decode(body).get(form.count_in)
        except (msgspec.DecodeError, AttributeError, UnicodeDecodeError, RecursionError):
            found = None
        # Clients decide by this number when to compact: a host that answers 0 has not counted.
        if not isinstance(found, int) or found <= 0:
            raise ProtocolError(f"{target.provider.name} did not send a token count.")
        return found

    try:
        return (
            yield from fetch_body(
                request,
                dialect,
                target,
                read,
                what="count of tokens",
                policy=call.policy,
                key=call.key,
                jitter=random.random,
            )
        )
    except (AuthError, RateLimited):
        raise
    except (ProviderError, ProtocolError):
        return None  # This host, or this model, has no such endpoint.


def _build_request(call: Call, form: CountForm) -> HttpRequest | None:
    try:
        sent = encode_request(call.prompt, call.target, on_conflict="adjust").request
    except AsidesError:
        return None
    url, mark, query = sent.url.partition("?")
    reply_path, count_path = form.path
    if not url.endswith(reply_path):
        return None
    body = form.wrap(msgspec.json.decode(sent.body), call.target.model)
    return msgspec.structs.replace(
        sent, url=url.removesuffix(reply_path) + count_path + mark + query, body=msgspec.json.encode(body)
    )
