"""The calls of one reply: check approvals, run the tools, collect the results. A flow: drivers carry out its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import Any

import msgspec

from asides.agents.tools.executor import Job, JobOutcome, Raised, Returned, Runnable
from asides.agents.tools.results import build_result, deny_call, reject_unknown_tool
from asides.flows.run_config import Approve, RunConfig
from asides.flows.steps import Emit, Flow, RunTools
from asides.values.errors import ToolFailed
from asides.values.parts import ToolCall, ToolResult
from asides.values.result import RunEvent, ToolFinished, ToolStarted


class ApprovalRequest(msgspec.Struct, frozen=True):
    """The approval handler as a job for the driver, since it may block or need an event loop."""

    approve: Approve
    blocking: bool
    may_exit: bool = True
    """A handler that calls sys.exit() ends the program."""

    def run(self, call: ToolCall) -> Any:
        """Ask the handler."""
        return self.approve(call)


class ToolTurn:
    """The calls of one reply in progress. `results` can be read at any time, also when the flow was abandoned."""

    __slots__ = ("_calls", "_config", "_events", "_failure", "_results", "_step", "hands_over", "run_count")

    def __init__(self, calls: Sequence[ToolCall], config: RunConfig[Any], step: int) -> None:
        self._calls = tuple(calls)
        self._config = config
        self._step = step
        self._results: dict[int, ToolResult] = {}
        self._events: list[RunEvent] = []
        self._failure: tuple[ToolCall, BaseException] | None = None
        tools = config.tools
        self.run_count = sum(tools.get(call.name) is not None for call in self._calls)
        """How many of the calls have a function to run."""
        self.hands_over = any(self._is_callers(call) for call in self._calls)
        """Whether the caller has to run some of the calls."""

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results so far, in the order of the calls."""
        return tuple(self._results[place] for place in sorted(self._results))

    def steps(self, seconds_left: Callable[[], Flow[float | None]]) -> Flow[None]:
        """The flow. Calls `seconds_left` for the run's remaining time after the approvals, since these may take long.
        Raises ToolFailed when a tool raises an exception that it declares fatal.
        """
        config = self._config
        yield Emit([ToolStarted(call, self._step) for call in self._calls if not self._is_callers(call)])
        ready: list[tuple[int, Runnable]] = []
        for place, call in enumerate(self._calls):
            runnable = config.tools.get(call.name)
            if runnable is not None and config.approvals.get(call.name) != "deny":
                ready.append((place, runnable))
            elif runnable is not None:
                self._finish(place, deny_call(call, "its calls are not allowed"))
            elif not self._is_callers(call):
                self._finish(place, reject_unknown_tool(call, tuple(config.tools)))
        ready = yield from self._ask_approvals(ready)
        if self._events:
            yield Emit(self._take_events())
        if ready:
            left = yield from seconds_left()
            yield from self._run(ready, left)
        if self._failure is not None:
            call, problem = self._failure
            raise ToolFailed(
                f"the tool {call.name} raised {type(problem).__name__}, which it declares fatal. See __cause__; "
                ".result has the run so far.",
                call,
            ) from problem

    def _is_callers(self, call: ToolCall) -> bool:
        tools = self._config.tools
        return call.name in tools and tools[call.name] is None

    def _ask_approvals(self, ready: list[tuple[int, Runnable]]) -> Flow[list[tuple[int, Runnable]]]:
        """The calls that may run."""
        config = self._config
        to_approve = [place for place, _ in ready if config.approvals.get(self._calls[place].name) == "ask"]
        if not to_approve:
            return ready
        if config.approve is None:
            raise AssertionError("a run whose tools need approval has a handler")
        handler = ApprovalRequest(config.approve, blocking=not iscoroutinefunction(config.approve))
        # One after the other: a person cannot answer two questions at the same time.
        verdicts: list[JobOutcome | None] = []
        for place in to_approve:
            verdicts += yield RunTools((Job(self._calls[place], handler),), 1, _report_nothing)
        for place, verdict in zip(to_approve, verdicts, strict=True):
            allowed, reason = _read_verdict(verdict)
            if not allowed:
                self._finish(place, deny_call(self._calls[place], reason))
        return [(place, runnable) for place, runnable in ready if place not in self._results]

    def _run(self, ready: list[tuple[int, Runnable]], seconds: float | None) -> Flow[None]:
        jobs = tuple(
            Job(self._calls[place], runnable, _choose_timeout(runnable.timeout, self._config.tool_timeout, seconds))
            for place, runnable in ready
        )

        def report(number: int, outcome: JobOutcome) -> list[RunEvent]:
            place, runnable = ready[number]
            call = self._calls[place]
            if isinstance(outcome, Raised) and isinstance(outcome.error, runnable.fatal) and self._failure is None:
                self._failure = (call, outcome.error)
            self._finish(place, build_result(call, outcome), outcome.seconds)
            return self._take_events()

        yield RunTools(jobs, self._config.parallel, report)

    def _finish(self, place: int, result: ToolResult, seconds: float = 0.0) -> None:
        self._results[place] = result
        self._events.append(ToolFinished(self._calls[place], result, self._step, seconds))

    def _take_events(self) -> list[RunEvent]:
        events, self._events = self._events, []
        return events


def _report_nothing(_: int, __: JobOutcome) -> list[RunEvent]:
    return []


def _read_verdict(outcome: JobOutcome | None) -> tuple[bool, str]:
    """Whether the call may run; if not, the reason. Anything but an explicit approval denies it."""
    if not isinstance(outcome, Returned):
        return False, "the approval handler failed"
    match outcome.value:
        case True | "allow":
            return True, ""
        case str() as reason if reason not in ("deny", ""):
            return False, reason
        case _:
            return False, ""


def _choose_timeout(of_tool: float | None, of_agent: float | None, left: float | None) -> float | None:
    limit = of_tool if of_tool is not None else of_agent
    limits = [seconds for seconds in (limit, left) if seconds is not None]
    return min(limits) if limits else None
