"""Rules of chat completions: what the hosts of a model check, in their words, and the state that they put into replies.

Written from the documented rules and from reported errors, not copied from a server. The path or the model's name
decides which host the stage imitates (hosts); for an unknown name, only the rules of all hosts apply. The models are
stated here a second time, independent of the providers' rows, so that tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import msgspec

from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import DetailedRefusal, RequestRules, Rule, Wire
from asides.testing.stage.rules.openai_chat import (
    gateway_rules,
    host_settings,
    issued_details,
    message_rules,
    openai_settings,
    returned_thinking,
)
from asides.testing.stage.rules.openai_chat.chat_request import ChatRequest
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, write_midstream
from asides.testing.stage.rules.openai_chat.hosts import Host, find_host, find_upstream
from asides.testing.stage.rules.openai_chat.issued_details import IssuedDetails
from asides.values.events import Event, ThinkingDelta

_MODULES = (gateway_rules, issued_details, message_rules, openai_settings, returned_thinking, host_settings)


def _list_rules() -> Iterator[Rule]:
    for module in _MODULES:
        for value in vars(module).values():
            if isinstance(value, Rule):
                yield value
            elif isinstance(value, message_rules.PairWords):
                yield from (value.missing, value.orphaned, value.twice)


RULES = tuple(dict.fromkeys(_list_rules()))
"""Every rule, with its words, its date and its source."""


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    return _ChatRules(secret, today)


class _ChatRules:
    def __init__(self, secret: bytes, today: date) -> None:
        self._issued = IssuedDetails(secret)
        self._today = today

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real server's words and form."""
        body: Wire = msgspec.json.decode(request.body)
        return next(self._check(request, ChatRequest(body, self._today)), None)

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the state that the hosts of this model put on thoughts and calls; most add none."""
        body: Wire = msgspec.json.decode(request.body)
        model = str(body.get("model"))
        upstream = find_upstream(find_host(request, model), model)
        return self._issued.seal(_name_field(events, upstream.field), model, upstream.form)

    def _check(self, request: Request, asked: ChatRequest) -> Iterator[DetailedRefusal]:
        host = find_host(request, asked.model)
        for fault in host.check(asked):
            yield fault.refuse(host.write_body(fault))
        upstream = find_upstream(host, asked.model)
        for fault in self._check_upstream(asked, upstream is not host, upstream):
            inner = upstream.write_body(fault)
            if host.wrap is None:
                yield fault.refuse(inner)
            elif upstream.fails_midstream and asked.body.get("stream") is True:
                body = write_midstream(fault, upstream.title, asked.model)
                yield DetailedRefusal(fault.text, body, status=200, kind=fault.kind)
            else:
                yield fault.refuse(host.wrap(fault, inner, upstream.title, asked.model))

    def _check_upstream(self, asked: ChatRequest, is_passed_on: bool, upstream: Host) -> Iterator[Fault]:
        if is_passed_on:
            yield from upstream.check(asked)
        yield from self._issued.check(asked, upstream.form, exact=upstream.exact)


def _name_field(events: list[Event], field: str | None) -> list[Event]:
    """Return the events with the thinking in the field of this host, unless the script names another."""
    if field is None:
        return events
    return [
        msgspec.structs.replace(event, via=field) if isinstance(event, ThinkingDelta) and event.via is None else event
        for event in events
    ]
