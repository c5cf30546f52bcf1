"""The stage as a host of chat completions: refuses by the rulebook, and puts the state of the host into replies.

The path or the model's name decides which host the stage plays (hosts).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import msgspec

from asides.dialects.openai_chat.rules import GATEWAY_RULES, check
from asides.dialects.rulebook import BrokenRule, Wire, WireRequest
from asides.values.events import Event, ThinkingDelta
from asides_stage.stage.http_requests import Request
from asides_stage.stage.rules import DetailedRefusal, RequestRules, read_wire, refuse_broken
from asides_stage.stage.rules.hosts import make_target
from asides_stage.stage.rules.openai_chat.error_bodies import write_midstream
from asides_stage.stage.rules.openai_chat.hosts import Host, find_host, find_upstream
from asides_stage.stage.rules.openai_chat.issued_details import IssuedDetails

_DIALECT = "openai_chat"


def request_rules(secret: bytes, today: date) -> RequestRules:
    """Build the rules for one stage."""
    return _ChatRules(secret, today)


class _ChatRules:
    def __init__(self, secret: bytes, today: date) -> None:
        self._issued = IssuedDetails(secret)
        self._today = today

    def refuse(self, request: Request) -> str | None:
        """Return the first rule that this request breaks, in the real server's words and form."""
        return next(self._check(read_wire(request, self._today)), None)

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """Add the state that the hosts of this model put on thoughts and calls; most add none."""
        body: Wire = msgspec.json.decode(request.body)
        model = str(body.get("model"))
        upstream = find_upstream(find_host(request.path, model), model)
        return self._issued.seal(_name_field(events, upstream.field), model, upstream.form)

    def _check(self, wire: WireRequest) -> Iterator[DetailedRefusal]:
        model = str(wire.body.get("model"))
        host = find_host(wire.path, model)
        upstream = find_upstream(host, model)
        if host.wrap is None:
            for broken in self._check_upstream(wire, host, model, upstream):
                yield refuse_broken(broken, host.write_body(broken))
            return
        for broken in check(wire, make_target(host, _DIALECT, model)):
            if broken.rule in GATEWAY_RULES:
                yield refuse_broken(broken, host.write_body(broken))
        # A gateway that shows its upstreams by the names of models has their rules in its own row.
        served_by = host if host.models is not None else upstream
        for broken in self._check_upstream(wire, served_by, model, upstream):
            if broken.rule in GATEWAY_RULES:
                continue
            if upstream.fails_midstream and wire.body.get("stream") is True:
                body = write_midstream(broken, upstream.title, model)
                yield DetailedRefusal(broken.text, body, status=200, kind=broken.kind)
            else:
                yield refuse_broken(broken, host.wrap(broken, upstream.write_body(broken), upstream.title, model))

    def _check_upstream(self, wire: WireRequest, host: Host, model: str, upstream: Host) -> Iterator[BrokenRule]:
        yield from check(wire, make_target(host, _DIALECT, model))
        yield from self._issued.check(wire.body, upstream.form, exact=upstream.exact)


def _name_field(events: list[Event], field: str | None) -> list[Event]:
    """Return the events with the thinking in the field of this host, unless the script names another."""
    if field is None:
        return events
    return [
        msgspec.structs.replace(event, via=field) if isinstance(event, ThinkingDelta) and event.via is None else event
        for event in events
    ]
