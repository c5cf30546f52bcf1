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
    issued_details,
    message_rules,
    openai_settings,
    returned_thinking,
    setting_rules,
)
from asides.testing.stage.rules.openai_chat.asked import Asked
from asides.testing.stage.rules.openai_chat.error_bodies import Fault
from asides.testing.stage.rules.openai_chat.hosts import Host, find_host, find_upstream
from asides.testing.stage.rules.openai_chat.issued_details import IssuedDetails
from asides.values.events import Event

_MODULES = (gateway_rules, issued_details, message_rules, openai_settings, returned_thinking, setting_rules)


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
        return next(self._check(request, Asked(body, self._today)), None)

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the state that the hosts of this model put on thoughts and calls; most add none."""
        body: Wire = msgspec.json.decode(request.body)
        model = str(body.get("model"))
        return self._issued.seal(events, model, find_upstream(find_host(request, model), model).form)

    def _check(self, request: Request, asked: Asked) -> Iterator[DetailedRefusal]:
        host = find_host(request, asked.model)
        for fault in host.check(asked):
            yield fault.refuse(host.write_body(fault))
        upstream = find_upstream(host, asked.model)
        for fault in self._check_upstream(asked, upstream is not host, upstream):
            inner = upstream.write_body(fault)
            yield fault.refuse(inner if host.wrap is None else host.wrap(fault, inner, upstream.title, asked.model))

    def _check_upstream(self, asked: Asked, is_passed_on: bool, upstream: Host) -> Iterator[Fault]:
        if is_passed_on:
            yield from upstream.check(asked)
        yield from self._issued.check(asked, upstream.form, exact=upstream.exact)
