"""The flow of a probe: which request comes next, and what its answer adds to what is known. Drivers carry out its steps.

In order: the list of models, an endpoint that answers, a streamed reply, the switch and the effort of thinking, a tool,
the second turn, other endpoints. Not here: reading answers (observe), requests (trials), conclusions (conclude).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import merge_fields
from asides.flows.call import Policy
from asides.flows.exchange import ResponseReader
from asides.flows.probe import trials
from asides.flows.probe.conclude import EndpointSight, Knowledge, build_row, list_findings
from asides.flows.probe.find_switch import SwitchSearch
from asides.flows.probe.observe import Observation, observe, report_failure
from asides.flows.probe.probe_report import ProbeReport, ProbeStep
from asides.flows.probe.repair_request import repair_setup
from asides.flows.probe.spellings import UNKNOWN_EFFORT, keep_efforts, read_efforts
from asides.flows.probe.trials import Setup
from asides.flows.retry import NO_HEAD, fetch_key, read_retry_after
from asides.flows.steps import Allow, Emit, Flow, Head, Open, Read, Sleep
from asides.providers.credentials import KeySource, Secret, collect_secrets
from asides.providers.provider import Target
from asides.values.errors import AsidesError, TransportError
from asides.values.messages import Message
from asides.values.redaction import build_redactor, redact_bytes
from asides.values.thinking import Thought
from asides.wire.lenient import parse_or_none

Extent: TypeAlias = Literal["quick", "usual", "thorough"]
MOST_REQUESTS: dict[Extent, int] = {"quick": 6, "usual": 12, "thorough": 40}
_MOST_BYTES = 1024 * 1024
_MOST_REPAIRS = 4
_MOST_FAILURES = 2
_LONGEST_WAIT = 10.0
_BUSY = (429, 503, 529)
# The dialects that stand at one base URL.
_SIBLINGS = ("openai_chat", "openai_responses")
_GROWTH = 4
# Of two amounts of thinking, the larger is at least this many times the smaller where the effort made the difference.
_CLEARLY_MORE = 2


class ProbeCall(msgspec.Struct, frozen=True):
    """Everything that a probe needs, decided before anything is sent."""

    target: Target
    """The server, without a model."""
    base_url: str
    """Its address as reports show it."""
    policy: Policy = Policy()
    key: Secret | None = None
    name: str = "probed"
    key_env: tuple[str, ...] = ()
    model: str | None = None
    dialect: str | None = None
    extent: Extent = "usual"
    most: int = MOST_REQUESTS["usual"]
    max_tokens: int = 512
    seconds: float = 60.0
    """For each request, from its first byte to the last of its answer."""


class _SpentError(Exception):
    """No request is left."""


class _StoppedError(Exception):
    """Nothing more can be found out."""


class Probe:
    """A probe in progress. `steps()` is its flow; `report` works at any time, also when the flow was abandoned."""

    def __init__(self, call: ProbeCall) -> None:
        self._call = call
        self._known = Knowledge()
        self._redact = build_redactor(collect_secrets(call.target, call.key))
        self._sent = 0
        self._failures = 0
        self._complete = False

    @property
    def report(self) -> ProbeReport:
        """What is known so far."""
        call, known, setup = self._call, self._known, self._known.setup
        address = None if setup is None else self._show(setup.base_url)
        return ProbeReport(
            call.base_url,
            None if setup is None else setup.model,
            None if setup is None else setup.dialect,
            self._sent,
            list_findings(known),
            build_row(known, call.name, call.key_env, base_url=address),
            self._complete,
            known.problem,
        )

    def steps(self) -> Flow[ProbeReport]:
        """The flow. It raises nothing that a server causes."""
        try:
            yield from self._discover()
            yield from self._look_at_thinking()
            yield from self._look_at_turns()
            yield from self._look_around()
            self._complete = True
        except _SpentError:
            self._known.problem = f"no request was left (of {self._call.most}); the thorough probe asks more"
        except _StoppedError:
            pass
        return self.report

    # --- one request --------------------------------------------------------------------------------------------------

    def _show(self, url: str) -> str:
        """An address as reports show it: the stage may stand in for it."""
        inner = self._call.target.base_url
        return self._redact(url.replace(inner, self._call.base_url, 1) if url.startswith(inner) else url)

    def send(self, purpose: str, request: HttpRequest, dialect: str) -> Flow[Observation]:
        """Send a request and read its answer. A server that is busy is asked once more."""
        seen, wait = yield from self._send_once(purpose, request, dialect)
        if wait is not None:
            yield Sleep(wait)
            seen, _ = yield from self._send_once(f"{purpose}, again", request, dialect)
        return seen

    def _send_once(self, purpose: str, request: HttpRequest, dialect: str) -> Flow[tuple[Observation, float | None]]:
        if self._sent >= self._call.most:
            raise _SpentError
        self._sent += 1
        body = parse_or_none(request.body) if request.body else None
        step = ProbeStep(self._sent, purpose, request.method, self._show(request.url.partition("?")[0]), body)
        yield Emit([step])
        head, received, cut_off = NO_HEAD, b"", ""
        try:
            yield Allow(self._call.seconds)
            if isinstance(self._call.key, KeySource):
                yield from fetch_key(self._call.key)
            head = yield Open(request)
            received, cut_off = yield from _receive(head)
        except TransportError as error:
            cut_off = self._redact(str(error))
        if head is NO_HEAD:
            seen = report_failure(TransportError(cut_off))
        else:
            seen = observe(head, redact_bytes(received, self._redact), dialect, cut_off=cut_off)
        self._failures = self._failures + 1 if seen.state == "failed" else 0
        outcome = self._describe(seen)
        yield Emit([msgspec.structs.replace(step, outcome=outcome, report=self.report)])
        if self._failures >= _MOST_FAILURES and self._known.setup is None:
            self._known.problem = seen.detail
            raise _StoppedError
        return seen, _find_wait(head, seen)

    @staticmethod
    def _describe(seen: Observation) -> str:
        if seen.state != "answered":
            return seen.detail or seen.state
        thinking = f"{len(seen.thinking)} characters of thinking" if seen.thinking else "no thinking"
        return f"{seen.dialect}: {thinking}, {len(seen.answer)} of answer"

    # --- an endpoint that answers -------------------------------------------------------------------------------------

    def _discover(self) -> Flow[None]:
        call = self._call
        hint: str | None = None
        if call.model is None or call.extent != "quick":
            hint = yield from self._list_models()
        model = call.model or trials.choose_model(self._known.models) or "default"
        first = [call.dialect] if call.dialect is not None else [hint] if hint is not None else []
        order = first if call.dialect is not None else [*first, *(name for name in trials.DIALECTS if name not in first)]
        for dialect in order:
            for address in trials.list_addresses(dialect or "", trials.strip_ending(call.target.base_url)):
                setup = Setup(
                    dialect or "", address, model, call.target.provider.query, max_tokens=call.max_tokens
                )
                if (yield from self._try_endpoint(setup)):
                    return
        known = self._known
        locked = [sight for sight in known.endpoints if sight.detail.startswith(("401", "403"))]
        if locked:
            known.needs_key = True
            what = "the key was not accepted" if call.key is not None else "it wants a key: give one with api_key="
            known.problem = f"{what} ({locked[0].detail})"
        else:
            refused = [sight for sight in known.endpoints if sight.answers]
            known.problem = (
                f"no endpoint gave a reply to model {model}: {refused[0].detail}"
                if refused
                else "no endpoint of a known dialect answers at this address"
            )
        raise _StoppedError

    def _list_models(self) -> Flow[str | None]:
        """Ask for the list of models. Returns the dialect that it shows."""
        call, known = self._call, self._known
        dialect = call.dialect or "openai_chat"
        for address in trials.list_addresses(dialect, trials.strip_ending(call.target.base_url)):
            setup = Setup(dialect, address, "", call.target.provider.query)
            try:
                request = trials.build_list_request(setup)
            except AsidesError:
                return None
            seen = yield from self.send("list the models", request, dialect)
            document = parse_or_none(seen.body) if 200 <= seen.status < 300 else None
            models, hint = trials.read_list(document)
            if document is not None and (models or hint):
                known.models, known.list_detail = models, ""
                return hint
            known.list_detail = f"no list of models ({seen.detail or 'it lists none'})"
            if seen.state in ("failed", "locked"):
                break
        return None

    def _try_endpoint(self, setup: Setup) -> Flow[bool]:
        """Ask a question at an endpoint, with repairs. True when it answers in the dialect it was asked in."""
        known = self._known
        has_key = self._call.key is not None
        seen: Observation | None = None
        for _ in range(_MOST_REPAIRS):
            request = trials.build_question(setup)
            seen = yield from self.send("ask a question", request, setup.dialect)
            repaired = repair_setup(setup, seen, has_key=has_key)
            if repaired is None:
                break
            setup, note = repaired
            known.adjusted.append(note)
        if seen is None:
            return False
        url = self._show(trials.build_question(setup).url.partition("?")[0])
        if seen.state == "answered" and seen.dialect == setup.dialect:
            known.endpoints.append(EndpointSight(setup.dialect, url, True))
            known.setup, known.baseline = setup, seen
            known.replies.append(("default", seen))
            return True
        answers = {"refused": True, "locked": True, "absent": False, "failed": None}.get(seen.state, False)
        detail = seen.detail if seen.state != "answered" else f"it answers in {seen.dialect}"
        known.endpoints.append(EndpointSight(setup.dialect, url, answers, detail))
        return False

    # --- thinking -----------------------------------------------------------------------------------------------------

    @property
    def setup(self) -> Setup:
        """How requests are written now."""
        if self._known.setup is None:
            raise _StoppedError
        return self._known.setup

    def ask(self, purpose: str, kind: str, **how: Any) -> Flow[Observation]:
        """Ask the question of a probe; a reply is kept as evidence."""
        seen = yield from self.send(purpose, trials.build_question(self.setup, **how), self.setup.dialect)
        if seen.state == "answered":
            self._known.replies.append((kind, seen))
        return seen

    def _look_at_thinking(self) -> Flow[None]:
        known = self._known
        base = known.baseline
        if base is not None and base.is_cut and not base.answer.strip():
            yield from self._allow_more()
        if known.baseline is not None and known.baseline.thinks:
            yield from self._stream("default")
            yield from SwitchSearch(self, known, "off").run()
        else:
            yield from SwitchSearch(self, known, "on").run()
            if known.switch is not None:
                fields = known.switch.on or {}
                known.setup = msgspec.structs.replace(self.setup, fields=fields, room=known.switch.room)
            yield from self._stream("default" if known.switch is None else "on")
        if known.thinking:
            yield from self._look_at_effort()

    def _allow_more(self) -> Flow[None]:
        """The reply ran out of tokens before its answer: ask once more, with room for both."""
        known = self._known
        known.setup = msgspec.structs.replace(self.setup, max_tokens=self.setup.max_tokens * _GROWTH)
        seen = yield from self.ask("ask again with more tokens", "default")
        if seen.state == "answered":
            known.baseline = seen
            # The first reply shows nothing that this one does not.
            known.replies = [pair for pair in known.replies if pair[1] is seen]

    def _stream(self, kind: str) -> Flow[None]:
        known = self._known
        for _ in range(2):
            known.streamed = yield from self.ask("stream the reply", kind, stream=True)
            repaired = repair_setup(self.setup, known.streamed, has_key=False)
            if repaired is None:
                return
            known.setup, note = repaired
            known.adjusted.append(note)

    def _look_at_effort(self) -> Flow[None]:
        write = _EFFORT_FIELDS.get(self.setup.dialect)
        if write is None:
            return
        known = self._known
        fields = merge_fields(self.setup.fields, write(UNKNOWN_EFFORT))
        room = self.setup.room
        seen = yield from self.ask("an effort that nobody knows", "effort", fields=fields, room=room)
        if seen.state == "refused" and seen.status not in _BUSY:
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
        if self._call.most - self._sent < (8 if self._call.extent == "thorough" else 5):
            return
        amounts: list[int] = []
        for effort in ("low", "high"):
            fields = merge_fields(self.setup.fields, write(effort))
            seen = yield from self.ask(f"effort {effort}", "effort", fields=fields, room=room)
            if seen.state != "answered":
                known.effort_text += f"; {effort} is not ({seen.detail})"
                return
            amounts.append(seen.amount)
        known.effort_counts = amounts[1] >= _CLEARLY_MORE * max(amounts[0], 1)
        verdict = "they differ" if known.effort_counts else "no clear difference"
        known.effort_text += f"; low thinks {amounts[0]} tokens, high {amounts[1]}: {verdict}"

    # --- tools and the second turn ------------------------------------------------------------------------------------

    def _look_at_turns(self) -> Flow[None]:
        known = self._known
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
        """The turn as it would be read with the row that is known by now."""
        row = build_row(self._known, self._call.name, ())
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
        known = self._known
        row = build_row(known, self._call.name, ())
        if row is None:
            return
        in_tags = any(isinstance(part, Thought) and part.source == "tags" for part in turn.parts)
        if in_tags:
            # In the text of a turn thinking is welcome anywhere, and seldom needed.
            row = msgspec.structs.replace(row, quirks=msgspec.structs.replace(row.quirks, replay_as="tags"))
        ways: list[Literal["kept", "left_out", "altered"]] = ["left_out", "kept"] if in_tags else ["kept", "left_out"]
        if self._call.extent == "thorough":
            ways.append("altered")
        for way in ways:
            if in_tags and way == "kept" and known.replay.get("left_out") == "" and self._call.extent != "thorough":
                continue
            request = trials.build_second_turn(self.setup, row, turn, thinking=way, tools=tools)
            seen = yield from self.send(f"a second turn, thinking {way.replace('_', ' ')}", request, row.dialect)
            if seen.state in ("answered", "refused") and seen.status not in _BUSY:
                known.replay[way] = "" if seen.state == "answered" else seen.detail

    # --- other endpoints and settings ---------------------------------------------------------------------------------

    def _look_around(self) -> Flow[None]:
        known = self._known
        asked = {sight.dialect for sight in known.endpoints}
        others = [name for name in trials.DIALECTS if name not in asked]
        if self._call.extent != "thorough":
            others = [name for name in others if name in ("openai_chat", "openai_responses", "anthropic")]
        for dialect in others if self._call.extent != "quick" else ():
            yield from self._check_endpoint(dialect)
        if self._call.extent != "thorough":
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
        base = trials.strip_ending(self._call.target.base_url)
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
        url = self._show(request.url.partition("?")[0])
        self._known.endpoints.append(EndpointSight(dialect, url, answers, detail))


# --- parts of the flow ------------------------------------------------------------------------------------------------


def _receive(head: Head) -> Flow[tuple[bytes, str]]:
    """Read a body as far as a reply can go. Returns it, and why it is not whole."""
    pieces: list[bytes] = []
    size = 0
    try:
        while size < _MOST_BYTES and (data := (yield Read(patience=5.0 if head.status >= 400 else None))):
            pieces.append(data)
            size += len(data)
    except TransportError as error:
        return b"".join(pieces), str(error)
    cut_off = f"the answer is longer than {_MOST_BYTES} bytes" if size >= _MOST_BYTES else ""
    return b"".join(pieces)[:_MOST_BYTES], cut_off


def _find_wait(head: Head, seen: Observation) -> float | None:
    """The seconds after which a busy server is asked once more."""
    if seen.status not in _BUSY:
        return None
    wait = read_retry_after(head.headers, head.received)
    return min(2.0 if wait is None else wait, _LONGEST_WAIT)


_EFFORT_FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "openai_chat": lambda effort: {"reasoning_effort": effort},
    "openai_responses": lambda effort: {"reasoning": {"effort": effort}},
    "ollama": lambda effort: {"think": effort},
}
