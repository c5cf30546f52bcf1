"""The spans inside a run: `agent_step` for each step, `execute_tool NAME` for each tool call that is run.

The span of a tool is the current one while the tool runs, in its thread or its task.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any

import msgspec
from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from asides.agents.tools.executor import Job, JobOutcome, Raised, Runnable, TimedOut
from asides.flows.steps import Emit, RunTools
from asides.telemetry.client_metrics import ClientMetrics
from asides.telemetry.current_span import CurrentSpan
from asides.telemetry.span_attributes import CLOSED, ERROR, OPERATION, Attributes, ReplyClock, describe_error, shorten
from asides.telemetry.span_content import MOST_CHARACTERS, write_arguments
from asides.values.errors import redact_keys
from asides.values.parts import ToolCall
from asides.values.result import RunEvent, StepEnded, StepStarted

TIMED_OUT = "timeout"


class StepSpans:
    """The spans of the steps of one run, and of the tools in them."""

    def __init__(self, tracer: Tracer, context: Context, metrics: ClientMetrics, *, content: bool) -> None:
        """`context`: the context with the span of the run."""
        self._tracer = tracer
        self._context = context
        self._tools = ToolSpans(tracer, metrics, content=content)
        self._span: Span | None = None
        self.current = CurrentSpan(context)
        """The span of the step, or of the run between steps."""

    def trace_step(self, step: Any) -> Any:
        """Begin or end the span of a step, if a step of the flow says so. Returns that, with its tools in spans."""
        if type(step) is RunTools:
            return self._tools.trace(step, self.current.context)
        if type(step) is Emit and step.events:
            event = step.events[0]
            if type(event) is StepStarted:
                number = {"asides.step.number": event.step}
                self._span = self._tracer.start_span("agent_step", context=self._context, attributes=number)
                self.current.context = set_span_in_context(self._span, self._context)
            elif type(event) is StepEnded:
                self.close({"asides.step.outcome": event.outcome})
        return step

    def close(self, attributes: Attributes) -> None:
        """End the current step, if any, and its tools."""
        self._tools.close()
        span, self._span, self.current.context = self._span, None, self._context
        if span is not None:
            span.set_attributes(attributes)
            if ERROR in attributes:
                span.set_status(Status(StatusCode.ERROR, str(attributes[ERROR])))
            span.end()


class ToolSpans:
    """The spans of the tools of one run."""

    def __init__(self, tracer: Tracer, metrics: ClientMetrics, *, content: bool) -> None:
        self._tracer = tracer
        self._metrics = metrics
        self._content = content
        self._open: list[TracedTool] = []

    def trace(self, step: RunTools, parent: Context) -> RunTools:
        """The step with each tool in a span. Approvals have none."""
        tools: dict[int, TracedTool] = {}
        jobs: list[Job] = []
        for number, job in enumerate(step.jobs):
            if isinstance(job.runnable, Runnable):
                tool = TracedTool(job.runnable, self._tracer, self._metrics, parent, content=self._content)
                tools[number] = tool
                job = Job(job.call, tool, job.timeout)
            jobs.append(job)
        if not tools:
            return step
        self._open = [*tools.values()]

        def report(number: int, outcome: JobOutcome) -> list[RunEvent]:
            if number in tools:
                tools[number].end_with(outcome)
            return step.report(number, outcome)

        return RunTools(tuple(jobs), step.most, report)

    def close(self) -> None:
        """End the spans of abandoned tools."""
        for tool in self._open:
            tool.end(None, {CLOSED: True})


class TracedTool:
    """A tool whose call is a span."""

    def __init__(
        self, runnable: Runnable, tracer: Tracer, metrics: ClientMetrics, parent: Context, *, content: bool
    ) -> None:
        self._runnable = runnable
        self._tracer = tracer
        self._metrics = metrics
        self._parent = parent
        self._content = content
        self._lock = threading.Lock()
        self._span: Span | None = None
        self._clock: ReplyClock | None = None
        self._attributes: Attributes = {}
        self.fatal = runnable.fatal
        self.may_exit: bool = getattr(runnable, "may_exit", False)

    @property
    def blocking(self) -> bool:
        """Whether the tool blocks."""
        return self._runnable.blocking

    def run(self, call: ToolCall) -> Any:
        """Run the tool in its span. If it returns an awaitable, that is awaited in the span too."""
        current = CurrentSpan(self._begin(call))
        current.enter()
        try:
            value = self._runnable.run(call)
        except BaseException as error:
            self.end(error)
            raise
        finally:
            current.leave()
        if inspect.isawaitable(value):
            return _TracedCoroutine(value, self, current)
        self.end(None, self._describe(value))
        return value

    def _begin(self, call: ToolCall) -> Context:
        name = shorten(call.name)
        self._attributes = {OPERATION: "execute_tool", "gen_ai.tool.name": name}
        more: Attributes = {"gen_ai.tool.call.id": shorten(call.id), "gen_ai.tool.type": "function"}
        if self._content:
            more["gen_ai.tool.call.arguments"] = _cut(write_arguments(call))
        self._clock = ReplyClock()
        self._span = self._tracer.start_span(
            f"execute_tool {name}", context=self._parent, attributes={**self._attributes, **more}
        )
        return set_span_in_context(self._span, self._parent)

    def end_with(self, outcome: JobOutcome) -> None:
        """End the span with the outcome of the call, also of an abandoned one."""
        if isinstance(outcome, TimedOut):
            self.end(None, {ERROR: TIMED_OUT})
        else:
            self.end(outcome.error if isinstance(outcome, Raised) else None)

    def end(self, error: BaseException | None, more: Attributes | None = None) -> None:
        """End the span. Only the first end counts: an abandoned tool may continue and end later."""
        with self._lock:
            span, self._span = self._span, None
        if span is None:
            return
        ended: Attributes = {**(more or {}), **({} if error is None else describe_error(error))}
        span.set_attributes(ended)
        if ERROR in ended:
            span.set_status(Status(StatusCode.ERROR, str(ended[ERROR])))
        span.end()
        if self._clock is not None:
            self._metrics.record({**self._attributes, **ended}, self._clock.elapsed)

    def finish(self, value: Any) -> None:
        """End the span of an awaited tool, with the value that it returned."""
        self.end(None, self._describe(value))

    def _describe(self, value: Any) -> Attributes:
        if not self._content:
            return {}
        try:
            text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
        except (TypeError, ValueError, msgspec.MsgspecError):
            text = f"({type(value).__name__})"
        return {"gen_ai.tool.call.result": _cut(text)}


class _TracedCoroutine(Coroutine[Any, Any, Any]):
    """The awaitable that a tool returned, in the span of its call. If it is closed first, it closes the awaitable."""

    def __init__(self, value: Awaitable[Any], tool: TracedTool, current: CurrentSpan) -> None:
        self._value = value
        self._tool = tool
        self._current = current
        self._waiting: Coroutine[Any, Any, Any] | None = None

    async def _wait(self) -> Any:
        self._current.enter()
        try:
            value = await self._value
        except BaseException as error:
            self._tool.end(error)
            raise
        finally:
            self._current.leave()
        self._tool.finish(value)
        return value

    def _begin(self) -> Coroutine[Any, Any, Any]:
        if self._waiting is None:
            self._waiting = self._wait()
        return self._waiting

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._begin().__await__()

    def send(self, value: Any, /) -> Any:
        """As for any coroutine."""
        return self._begin().send(value)

    def throw(self, *error: Any) -> Any:
        """As for any coroutine."""
        return self._begin().throw(*error)

    def close(self) -> None:
        """As for any coroutine. What was not awaited will not be."""
        if self._waiting is not None:
            self._waiting.close()
        elif isinstance(self._value, Coroutine):
            self._value.close()
        self._tool.end(None, {CLOSED: True})

    def __del__(self) -> None:
        self.close()


def _cut(text: str) -> str:
    return redact_keys(text[:MOST_CHARACTERS])
