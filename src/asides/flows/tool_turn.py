"""The calls of one reply, run: who may, who is asked, what the model is told. A flow: it asks, the shells do.

Not here: how a function is called and what its value becomes (toolbox), and what happens next (agent).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any

from asides.agents.tools.results import build_result, deny_call, reject_unknown_tool
from asides.agents.tools.runnable import Job, JobOutcome, Raised, Returned, Runnable
from asides.flows.run_config import ApprovalRequest, RunConfig
from asides.flows.steps import Emit, Flow, RunTools
from asides.values.errors import ToolFailed
from asides.values.messages import ToolCall, ToolResult
from asides.values.result import RunEvent, ToolFinished, ToolStarted


class ToolTurn:
    """The calls of one reply under way. `results` may be asked at any time, also when nobody drives it on."""

    __slots__ = ("_calls", "_errand", "_events", "_failure", "_results", "_step")

    def __init__(self, calls: Sequence[ToolCall], errand: RunConfig[Any], step: int) -> None:
        self._calls = tuple(calls)
        self._errand = errand
        self._step = step
        self._results: dict[int, ToolResult] = {}
        self._events: list[RunEvent] = []
        self._failure: tuple[ToolCall, BaseException] | None = None

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """What there is so far, in the order of the calls."""
        return tuple(self._results[place] for place in sorted(self._results))

    @property
    def runs(self) -> int:
        """How many of the calls have a function behind them."""
        return sum(self._errand.tools.get(call.name) is not None for call in self._calls)

    @property
    def handed_over(self) -> bool:
        """Whether some of the calls are for the caller to run."""
        return any(self._is_callers(call) for call in self._calls)

    def steps(self, seconds_left: Callable[[], Flow[float | None]]) -> Flow[None]:
        """The flow. `seconds_left` is asked what the run has left when the tools begin, since a person may have taken
        time to approve of them. Raises ToolFailed when a tool raised what it calls fatal.
        """
        tools = self._errand.tools
        yield Emit([ToolStarted(call, self._step) for call in self._calls if not self._is_callers(call)])
        ready: list[tuple[int, Runnable]] = []
        for place, call in enumerate(self._calls):
            runnable = tools.get(call.name)
            if runnable is not None and self._errand.approval_of(call.name, runnable) != "deny":
                ready.append((place, runnable))
            elif runnable is not None:
                self._finish(place, deny_call(call, "its calls are not allowed"))
            elif not self._is_callers(call):
                self._finish(place, reject_unknown_tool(call, tuple(tools)))
        ready = yield from self._approved(ready)
        yield from self._tell()
        if ready:
            left = yield from seconds_left()
            yield from self._run(ready, left)
        if self._failure is not None:
            call, problem = self._failure
            raise ToolFailed(
                f"the tool {call.name} raised {type(problem).__name__}, which it calls fatal. To do: see __cause__; "
                ".result has what was done before.",
                call,
            ) from problem

    def _is_callers(self, call: ToolCall) -> bool:
        return call.name in self._errand.tools and self._errand.tools[call.name] is None

    def _approved(self, ready: list[tuple[int, Runnable]]) -> Flow[list[tuple[int, Runnable]]]:
        errand = self._errand
        asking = [place for place, runnable in ready if errand.approval_of(self._calls[place].name, runnable) == "ask"]
        if not asking:
            return ready
        if errand.approve is None:
            raise AssertionError("a run whose tools want approval begins with somebody to give it")
        handler = ApprovalRequest(errand.approve, blocking=not iscoroutinefunction(errand.approve))
        # One after the other: a person answers, and not two questions at once.
        verdicts: list[JobOutcome | None] = []
        for place in asking:
            verdicts += yield RunTools((Job(self._calls[place], handler),), 1, _no_events)
        for place, verdict in zip(asking, verdicts, strict=True):
            allowed, reason = _read_verdict(verdict)
            if not allowed:
                self._finish(place, deny_call(self._calls[place], reason))
        return [(place, runnable) for place, runnable in ready if place not in self._results]

    def _run(self, ready: list[tuple[int, Runnable]], seconds: float | None) -> Flow[None]:
        jobs = tuple(
            Job(self._calls[place], runnable, _least(runnable.timeout, self._errand.tool_timeout, seconds))
            for place, runnable in ready
        )

        def report(number: int, outcome: JobOutcome) -> list[RunEvent]:
            place, runnable = ready[number]
            call = self._calls[place]
            if isinstance(outcome, Raised) and isinstance(outcome.error, runnable.fatal) and self._failure is None:
                self._failure = (call, outcome.error)
            self._finish(place, build_result(call, outcome), outcome.seconds)
            told, self._events = self._events, []
            return told

        yield RunTools(jobs, self._errand.parallel, report)

    def _finish(self, place: int, result: ToolResult, seconds: float = 0.0) -> None:
        self._results[place] = result
        self._events.append(ToolFinished(self._calls[place], result, self._step, seconds))

    def _tell(self) -> Flow[None]:
        if self._events:
            told, self._events = self._events, []
            yield Emit(told)


def _no_events(_: int, __: JobOutcome) -> list[RunEvent]:
    return []


def _read_verdict(outcome: JobOutcome | None) -> tuple[bool, str]:
    """Whether the call may be run; if not, the reason. What is not a clear yes is a no."""
    if not isinstance(outcome, Returned):
        return False, "the approval could not be had"
    match outcome.value:
        case True | "allow":
            return True, ""
        case str() as reason if reason not in ("deny", ""):
            return False, reason
        case _:
            return False, ""


def _least(own: float | None, agents: float | None, left: float | None) -> float | None:
    limit = own if own is not None else agents
    given = [seconds for seconds in (limit, left) if seconds is not None]
    return min(given) if given else None
