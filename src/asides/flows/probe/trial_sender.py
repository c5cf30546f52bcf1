"""Sends the requests of a probe one by one, reads their answers, and counts them. A part of a flow."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.flows.call import Policy
from asides.flows.probe import trials
from asides.flows.probe.infer_row import infer_row
from asides.flows.probe.knowledge import Knowledge
from asides.flows.probe.list_findings import list_findings
from asides.flows.probe.observe import Observation, observe, report_failure
from asides.flows.probe.probe_report import ProbeReport, ProbeStep
from asides.flows.probe.trials import Setup
from asides.flows.retry import NO_HEAD, fetch_key, read_retry_after
from asides.flows.steps import Allow, Emit, Flow, Head, Open, Read, Sleep
from asides.providers.credentials import KeySource, Secret, collect_secrets
from asides.providers.provider import Target
from asides.values.errors import ConnectionLost, TransportError
from asides.values.redaction import build_redactor, redact_bytes
from asides.wire.lenient import parse_or_none

Extent: TypeAlias = Literal["quick", "usual", "thorough"]
MOST_REQUESTS: dict[Extent, int] = {"quick": 6, "usual": 12, "thorough": 40}
BUSY = (429, 503, 529)
"""The statuses of a server that answers later."""
_MAX_BYTES = 1024 * 1024
_MAX_FAILURES = 2
_LONGEST_WAIT = 10.0


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
    query: tuple[tuple[str, str], ...] = ()
    """The query of the address as a row may show it: what may be a key is the name of a variable."""
    model: str | None = None
    dialect: str | None = None
    extent: Extent = "usual"
    most: int = MOST_REQUESTS["usual"]
    counts_all: bool = False
    """Requests that find nothing at their address count too: the caller has given the limit."""
    max_tokens: int = 512
    seconds: float = 120.0
    """For each request, from its first byte to the last of its answer."""


class SpentError(Exception):
    """The limit of requests is reached."""


class StoppedError(Exception):
    """The probe cannot continue."""


class TrialSender:
    """Sends requests and keeps what is known. `report` works at any time."""

    def __init__(self, call: ProbeCall) -> None:
        self.call = call
        self.known = Knowledge()
        self._redact = build_redactor(collect_secrets(call.target, call.key))
        self._sent = 0
        self._failures = 0
        self._answered = 0
        self.absent = 0
        """Requests that found nothing at their address. They cost no tokens; only a limit of the caller counts them."""
        self.complete = False

    @property
    def report(self) -> ProbeReport:
        """What is known so far."""
        call, known, setup = self.call, self.known, self.known.setup
        address = None if setup is None else self.show(setup.base_url)
        return ProbeReport(
            call.base_url,
            None if setup is None else setup.model,
            None if setup is None else setup.dialect,
            self._sent,
            list_findings(known),
            infer_row(known, call.name, call.key_env, base_url=address, query=call.query),
            self.complete,
            known.problem,
            known.state,
        )

    @property
    def requests_left(self) -> int:
        """How many more may be sent."""
        return self.call.most + (0 if self.call.counts_all else self.absent) - self._sent

    @property
    def setup(self) -> Setup:
        """How requests are currently encoded."""
        if self.known.setup is None:
            raise StoppedError
        return self.known.setup

    def ask(self, purpose: str, kind: str, **how: Any) -> Flow[Observation]:
        """Ask the question of a probe; a reply is kept as evidence."""
        seen = yield from self.send(purpose, trials.build_question(self.setup, **how), self.setup.dialect)
        if seen.state == "answered":
            self.known.replies.append((kind, seen))
        return seen

    def show(self, url: str) -> str:
        """The address to show in reports: requests may go to the stage instead."""
        inner = self.call.target.base_url
        return self._redact(url.replace(inner, self.call.base_url, 1) if url.startswith(inner) else url)

    def send(self, purpose: str, request: HttpRequest, dialect: str) -> Flow[Observation]:
        """Send a request and read its answer. Retries once if the server is busy."""
        seen, wait = yield from self._send_once(purpose, request, dialect)
        if wait is not None:
            yield Sleep(wait)
            seen, _ = yield from self._send_once(f"{purpose}, again", request, dialect)
        return seen

    def _send_once(self, purpose: str, request: HttpRequest, dialect: str) -> Flow[tuple[Observation, float | None]]:
        if self.requests_left <= 0:
            raise SpentError
        self._sent += 1
        body = parse_or_none(request.body) if request.body else None
        step = ProbeStep(
            self._sent, purpose, request.method, self.show(request.url.partition("?")[0]), body, None, self.report
        )
        yield Emit([step])
        head, received, cut_off, is_lost = NO_HEAD, b"", "", False
        try:
            yield Allow(self.call.seconds)
            if isinstance(self.call.key, KeySource):
                yield from fetch_key(self.call.key)
            head = yield Open(request)
            received, cut_off = yield from _receive(head)
        except TransportError as error:
            cut_off = self._redact(str(error))
            # Some servers break a connection that they promised to keep.
            is_lost = isinstance(error, ConnectionLost) and self._answered > 0
        if head is NO_HEAD:
            seen = report_failure(TransportError(cut_off))
        else:
            seen = observe(head, redact_bytes(received, self._redact), dialect, cut_off=cut_off)
        self._failures = self._failures + 1 if seen.state == "failed" else 0
        outcome = _describe(seen) if request.body else _describe_list(seen)
        yield Emit([msgspec.structs.replace(step, outcome=outcome)])
        if self._failures >= _MAX_FAILURES and self.known.setup is None:
            self.known.problem, self.known.state = seen.detail, "unreachable"
            raise StoppedError
        self._answered += seen.status > 0
        return seen, 0.0 if is_lost else _find_wait(head, seen)


def _describe(seen: Observation) -> str:
    if seen.state != "answered":
        return seen.detail or seen.state
    thinking = f"{len(seen.thinking)} characters of thinking" if seen.thinking else "no thinking"
    return f"{seen.dialect}: {thinking}, {len(seen.answer)} of answer"


def _receive(head: Head) -> Flow[tuple[bytes, str]]:
    """Read a body as far as a reply can go. Returns it, and why it is not whole."""
    pieces: list[bytes] = []
    size = 0
    try:
        while size < _MAX_BYTES and (data := (yield Read(patience=5.0 if head.status >= 400 else None))):
            pieces.append(data)
            size += len(data)
    except TransportError as error:
        return b"".join(pieces), str(error)
    cut_off = f"the answer is longer than {_MAX_BYTES} bytes" if size >= _MAX_BYTES else ""
    return b"".join(pieces)[:_MAX_BYTES], cut_off


def _describe_list(seen: Observation) -> str:
    models, _ = trials.read_list(parse_or_none(seen.body)) if 200 <= seen.status < 300 else ((), None)
    return f"{len(models)} models" if models else f"no list ({seen.detail})"


def _find_wait(head: Head, seen: Observation) -> float | None:
    """Seconds to wait before retrying a busy server."""
    if seen.status not in BUSY:
        return None
    wait = read_retry_after(head.headers, head.received)
    return min(2.0 if wait is None else wait, _LONGEST_WAIT)
