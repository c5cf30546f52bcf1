"""The flow of a probe: which request comes next, and what its answer adds. Drivers carry out its steps.

In order: the list of models, an endpoint that answers, a streamed reply, the switch and the effort of thinking, a tool,
the second turn, other endpoints.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from asides.dialects import find_dialect
from asides.dialects.http_body import merge_fields
from asides.flows.exchange import ResponseReader
from asides.flows.probe import trials
from asides.flows.probe.find_switch import SwitchSearch
from asides.flows.probe.infer_row import infer_row
from asides.flows.probe.knowledge import FoundEndpoint
from asides.flows.probe.observe import Observation
from asides.flows.probe.probe_report import ProbeReport
from asides.flows.probe.refused_switches import UNKNOWN_EFFORT, keep_efforts, read_efforts
from asides.flows.probe.repair_request import repair_setup
from asides.flows.probe.trial_sender import BUSY, MOST_REQUESTS, ProbeCall, SpentError, StoppedError, TrialSender
from asides.flows.probe.trials import Auth, Setup
from asides.flows.steps import Flow
from asides.providers.provider import Target
from asides.providers.switches.table import EFFORT, OLLAMA, RESPONSES
from asides.values.errors import AsidesError
from asides.values.messages import Message
from asides.values.thinking import Thought
from asides.wire.lenient import parse_or_none

_MAX_REPAIRS = 4
# The dialects that share one base URL.
_SIBLINGS = ("openai_chat", "openai_responses")
_GROWTH = 4
_MANY_LEFT = 5
# Of two amounts of thinking, the larger is at least this many times the smaller where the effort made the difference.
_CLEARLY_MORE = 2
# The switches whose efforts are tried, by dialect.
_EFFORT_SWITCHES = {"openai_chat": EFFORT, "openai_responses": RESPONSES, "ollama": OLLAMA}


class Probe(TrialSender):
    """A probe in progress. `steps()` is its flow; `report` works at any time, also when the flow was abandoned."""

    def __init__(self, call: ProbeCall) -> None:
        super().__init__(call)
        self._auth: Auth | None = None

    def steps(self) -> Flow[ProbeReport]:
        """Run the flow. Errors caused by the server are not raised."""
        try:
            yield from self._discover()
            yield from self._examine_thinking()
            yield from self._examine_turns()
            yield from self._check_other_endpoints()
            self.complete = True
        except SpentError:
            thorough = MOST_REQUESTS["thorough"]
            self.known.problem = f"stopped after {self.call.most} requests; --thorough sends up to {thorough}"
        except StoppedError:
            pass
        return self.report

    # --- an endpoint that answers -------------------------------------------------------------------------------------

    def _discover(self) -> Flow[None]:
        call = self.call
        hint: str | None = None
        if call.model is None or call.extent != "quick":
            hint = yield from self._list_models()
        model = call.model or trials.choose_model(self.known.models) or "default"
        base = trials.strip_ending(call.target.base_url)
        order = [call.dialect] if call.dialect is not None else trials.order_dialects(call.target.base_url, hint)
        for dialect in order:
            for address in trials.list_addresses(dialect, base):
                query = call.target.provider.query
                setup = Setup(dialect, address, model, query, self._auth, max_tokens=call.max_tokens)
                if (yield from self._try_endpoint(setup)):
                    yield from self._read_capabilities()
                    return
        known = self.known
        locked = [endpoint for endpoint in known.endpoints if endpoint.detail.startswith(("401", "403"))]
        if locked:
            known.state = "locked"
            what = "the key was not accepted" if call.key is not None else "it wants a key: give one with api_key="
            known.problem = f"{what} ({locked[0].detail})"
        else:
            refused = [endpoint for endpoint in known.endpoints if endpoint.answers]
            known.problem = (
                f"no endpoint gave a reply to model {model}: {refused[0].detail}"
                if refused
                else "no endpoint of a known dialect answers at this address"
            )
        raise StoppedError

    def _list_models(self) -> Flow[str | None]:
        """Ask for the list of models. Returns the dialect that it shows."""
        call, known = self.call, self.known
        dialect = call.dialect or trials.order_dialects(call.target.base_url, None)[0]
        address = trials.list_addresses(dialect, trials.strip_ending(call.target.base_url))[0]
        setup = Setup(dialect, address, "", call.target.provider.query)
        while True:
            try:
                request = trials.build_list_request(setup)
            except AsidesError:  # this dialect has none
                return None
            seen = yield from self.send("list the models", request, dialect)
            repaired = repair_setup(setup, seen, has_key=call.key is not None)
            if repaired is None or seen.state != "locked":
                break
            setup = repaired[0]
        self._auth = setup.auth if seen.state != "locked" else None
        document = parse_or_none(seen.body) if 200 <= seen.status < 300 else None
        known.models, hint = trials.read_list(document)
        known.list_detail = f"no list of models ({seen.detail if document is None else 'it lists none'})"
        return hint

    def _read_capabilities(self) -> Flow[None]:
        """Ask the server for the model's capabilities, if the dialect has such a request. It costs no tokens."""
        request = trials.build_capabilities_request(self.setup)
        if request is not None and self.call.extent != "quick":
            seen = yield from self.send("what can the model do?", request, self.setup.dialect)
            self.known.capabilities = trials.read_capabilities(parse_or_none(seen.body))

    def _try_endpoint(self, setup: Setup) -> Flow[bool]:
        """Ask a question at an endpoint, with repairs. True when it answers in the dialect it was asked in."""
        known = self.known
        has_key = self.call.key is not None
        seen: Observation | None = None
        notes: list[str] = []
        for _ in range(_MAX_REPAIRS):
            request = trials.build_question(setup)
            seen = yield from self.send("ask a question", request, setup.dialect)
            repaired = repair_setup(setup, seen, has_key=has_key)
            if repaired is None:
                break
            setup, note = repaired
            notes.append(note)
        if seen is None:
            return False
        url = self.show(trials.build_question(setup).url.partition("?")[0])
        if seen.state == "answered" and seen.dialect == setup.dialect:
            known.endpoints.append(FoundEndpoint(setup.dialect, url, True))
            known.setup, known.baseline, known.state = setup, seen, "answered"
            known.adjusted += notes
            known.replies.append(("default", seen))
            return True
        answers = {"refused": True, "locked": True, "absent": False, "failed": None}.get(seen.state, False)
        detail = seen.detail if seen.state != "answered" else f"it answers in {seen.dialect}"
        known.endpoints.append(FoundEndpoint(setup.dialect, url, answers, detail))
        self.absent += seen.state == "absent"
        return False

    # --- thinking -----------------------------------------------------------------------------------------------------

    def _examine_thinking(self) -> Flow[None]:
        known = self.known
        base = known.baseline
        if base is not None and base.is_cut:
            yield from self._allow_more()
        if known.baseline is not None and known.baseline.thinking.strip():
            yield from self._stream("default")
            yield from SwitchSearch(self, known, "off").run()
        else:
            yield from SwitchSearch(self, known, "on").run()
            if known.switch is not None:
                known.setup = msgspec.structs.replace(self.setup, fields=known.switch.ask("on"), room=known.switch.room)
            yield from self._stream("default" if known.switch is None else "on")
            if known.baseline is not None and known.baseline.thinks and known.switch is None:
                # It thinks without showing the thinking.
                yield from SwitchSearch(self, known, "off").run()
        if known.thinking:
            yield from self._examine_effort()

    def _allow_more(self) -> Flow[None]:
        """The reply ran out of tokens, perhaps before the tag that ends its thinking: ask once more, with more."""
        known = self.known
        known.setup = msgspec.structs.replace(self.setup, max_tokens=self.setup.max_tokens * _GROWTH)
        seen = yield from self.ask("ask again with more tokens", "default")
        if seen.state == "answered":
            known.baseline = seen
            # This reply shows everything that the first one did.
            known.replies = [pair for pair in known.replies if pair[1] is seen]

    def _stream(self, kind: str) -> Flow[None]:
        known = self.known
        for _ in range(2):
            known.streamed = yield from self.ask("stream the reply", kind, stream=True)
            repaired = repair_setup(self.setup, known.streamed, has_key=False)
            if repaired is None:
                return
            known.setup, note = repaired
            known.adjusted.append(note)

    def _examine_effort(self) -> Flow[None]:
        switch = _EFFORT_SWITCHES.get(self.setup.dialect)
        if switch is None:
            return
        known = self.known
        fields = merge_fields(self.setup.fields, switch.build(((switch.effort, UNKNOWN_EFFORT),)))
        room = self.setup.room
        seen = yield from self.ask("an unknown effort", "effort", fields=fields, room=room)
        if seen.state == "refused" and seen.status not in BUSY:
            efforts = read_efforts(seen.said)
            known.efforts = efforts or known.efforts
            known.effort_counts = bool(keep_efforts(efforts))
            listed = f"it knows {' '.join(efforts)}" if efforts else "it lists none"
            known.effort_text = f"an unknown effort is refused; {listed} ({seen.detail})"
            return
        if seen.state != "answered":
            known.effort_text = f"not known ({seen.detail})"
            return
        known.effort_text = "an unknown effort is accepted: it is ignored, or not checked"
        if self.requests_left < _MANY_LEFT:
            return
        amounts: list[int] = []
        for effort in ("low", "high"):
            fields = merge_fields(self.setup.fields, switch.build(((switch.effort, effort),)))
            seen = yield from self.ask(f"effort {effort}", "effort", fields=fields, room=room)
            if seen.state != "answered":
                known.effort_text += f"; {effort} is not ({seen.detail})"
                return
            amounts.append(seen.amount)
        known.effort_counts = amounts[1] >= _CLEARLY_MORE * max(amounts[0], 1)
        verdict = "they differ" if known.effort_counts else "no clear difference"
        known.effort_text += f"; low thinks {amounts[0]} tokens, high {amounts[1]}: {verdict}"

    # --- tools and the second turn ------------------------------------------------------------------------------------

    def _examine_turns(self) -> Flow[None]:
        known = self.known
        seen = yield from self.ask("offer a tool", "tools", tools=True)
        turn: Message | None = None
        if seen.state == "answered" and seen.reply is not None:
            calls = seen.reply.tool_calls
            known.tool_called = bool(calls)
            known.tools = f"a tool was {'called' if calls else 'accepted, and not called'}"
            turn = self._read_turn(seen)
        else:
            known.tools = f"refused ({seen.detail})" if seen.state == "refused" else f"not known ({seen.detail})"
        tools = turn is not None and bool(turn.tool_calls)
        if not tools and known.thinking:
            turn = self._read_turn(known.thinking[0])
        if turn is not None and any(isinstance(part, Thought) for part in turn.parts):
            yield from self._send_back(turn, tools=tools)

    def _read_turn(self, seen: Observation) -> Message | None:
        """The turn as decoded with the row inferred so far."""
        row = infer_row(self.known, self.call.name, (), query=self.setup.query)
        if row is None:
            return None
        target = Target(row, self.setup.model, self.setup.base_url, row.rule(self.setup.model))
        reader = ResponseReader(find_dialect(self.setup.dialect).decoder(target), row.name)
        reader.feed(seen.body)
        reader.finish()
        try:
            return reader.reply().to_message()
        except AsidesError:
            return None

    def _send_back(self, turn: Message, *, tools: bool) -> Flow[None]:
        known = self.known
        row = infer_row(known, self.call.name, (), query=self.setup.query)
        if row is None:
            return
        in_tags = any(isinstance(part, Thought) and part.source == "tags" for part in turn.parts)
        if in_tags:
            # In the text of a turn thinking is welcome anywhere, and seldom needed.
            row = msgspec.structs.replace(row, quirks=msgspec.structs.replace(row.quirks, replay_as="tags"))
        ways: list[Literal["kept", "left_out", "altered"]] = ["left_out", "kept"] if in_tags else ["kept", "left_out"]
        if self.call.extent == "thorough":
            ways.append("altered")
        for way in ways:
            if in_tags and way == "kept" and known.replay.get("left_out") == "" and self.call.extent != "thorough":
                continue
            request = trials.build_second_turn(self.setup, row, turn, thinking=way, tools=tools)
            seen = yield from self.send(f"a second turn, thinking {way.replace('_', ' ')}", request, row.dialect)
            if seen.state in ("answered", "refused") and seen.status not in BUSY:
                known.replay[way] = "" if seen.state == "answered" else seen.detail

    # --- other endpoints and settings ---------------------------------------------------------------------------------

    def _check_other_endpoints(self) -> Flow[None]:
        known = self.known
        asked = {endpoint.dialect for endpoint in known.endpoints}
        others = [name for name in trials.DIALECTS if name not in asked]
        if self.call.extent != "thorough":
            others = [name for name in others if name in ("openai_chat", "openai_responses", "anthropic")]
        for dialect in others if self.call.extent != "quick" else ():
            yield from self._check_endpoint(dialect)
        if self.call.extent != "thorough":
            return
        for role in ("system", "developer"):
            if self.setup.dialect == "openai_chat":
                seen = yield from self.ask(f"a {role} message", "settings", role=role)
                known.roles[role] = "accepted" if seen.state == "answered" else f"refused ({seen.detail})"
        if self.setup.dialect not in _SIBLINGS:
            return
        seen = yield from self.ask("a JSON schema for the answer", "settings", output=True)
        known.structured = "accepted" if seen.state == "answered" else f"refused ({seen.detail})"

    def _check_endpoint(self, dialect: str) -> Flow[None]:
        setup = self.setup
        base = trials.strip_ending(self.call.target.base_url)
        siblings = dialect in _SIBLINGS and setup.dialect in _SIBLINGS
        address = setup.base_url if siblings else trials.list_addresses(dialect, base)[0]
        check = msgspec.structs.replace(setup, dialect=dialect, base_url=address, auth=None, fields={}, room=0)
        request = trials.build_check(check)
        seen = yield from self.send("is there another endpoint?", request, dialect)
        answers: bool | None = {"refused": True, "locked": True, "failed": None}.get(seen.state, False)
        detail = seen.detail
        if seen.state == "answered":
            answers = seen.dialect == dialect
            detail = "" if answers else f"it answers in {seen.dialect}"
        url = self.show(request.url.partition("?")[0])
        self.known.endpoints.append(FoundEndpoint(dialect, url, answers, detail))
