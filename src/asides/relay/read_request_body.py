"""Read the body of a request for a reply; of one that our reader refuses, what decides where it goes (`read_shallow`).

A request that is forwarded need not be understood: its provider may know more than we do.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.relay.endpoints import ReadRequest
from asides.relay.error_response import MALFORMED, refuse_malformed
from asides.relay.relay_config import Caller
from asides.relay.routes import refuse_unnamed
from asides.relay.splice_body import find_members
from asides.values.errors import ConfigError
from asides.values.messages import Prompt, ProviderState

_MODEL_IN_PATH = re.compile(r"/models?/(.+?)(?::\w+|/converse(?:-stream)?)$")
_STREAMS = (":streamGenerateContent", "/converse-stream")


def read_request(read: ReadRequest, caller: Caller) -> tuple[ServedRequest | None, ConfigError | None]:
    """The request, or the reason why it cannot be read. One that is forwarded need not be."""
    try:
        return read(caller.request.body, caller.endpoint.path), None
    except ConfigError as problem:
        if find_members(caller.request.body) is None:
            raise
        return None, problem
    except MALFORMED:
        # A reader that trusted the type of a field. The provider may know better.
        return None, refuse_malformed()


class _Shallow(msgspec.Struct):
    model: Any = None
    stream: Any = None
    previous_response_id: Any = None
    conversation: Any = None


def read_shallow(caller: Caller) -> ServedRequest:
    """A request without messages that could not be read: its model, whether it streams, and what it continues at its
    provider. Raises RelayRefusal if it names no model.
    """
    try:
        found = msgspec.json.decode(caller.request.body, type=_Shallow)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        found = _Shallow()
    path = caller.endpoint.path
    from_path = _MODEL_IN_PATH.search(unquote(path))
    model = from_path[1] if from_path is not None else found.model
    if not isinstance(model, str) or not model:
        raise refuse_unnamed()
    prompt = Prompt((), state=_read_state(found))
    return ServedRequest(prompt, model, found.stream is True or path.endswith(_STREAMS))


def _read_state(found: _Shallow) -> ProviderState:
    named = found.conversation
    given = (found.previous_response_id, named.get("id") if isinstance(named, dict) else named)
    # Whatever is no id names nothing that anybody owns.
    previous, conversation = (None if each is None else str(each) for each in given)
    return ProviderState(previous_response_id=previous, conversation=conversation)
