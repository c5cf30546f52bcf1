"""The calls of one reply, step by step without a shell: who may run, what is asked for, and what the model gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from asides.agents.tools.executor import Approval, Job, JobOutcome, Raised, Returned, TimedOut
from asides.flows.run_config import RunConfig, Verdict
from asides.flows.steps import Emit, Flow, Now, RunTools
from asides.flows.tool_turn import ToolTurn
from asides.values.errors import ToolFailed
from asides.values.parts import ToolCall, ToolResult
from asides.values.result import RunEvent, ToolFinished, ToolStarted
from asides.values.tools import Tool


class Made(msgspec.Struct, frozen=True):
    """A tool that returns its name and what it was given."""

    name: str
    approval: Approval | None = None
    timeout: float | None = None
    fatal: tuple[type[BaseException], ...] = ()
    blocking: bool = True

    @property
    def tool(self) -> Tool:
        return Tool(self.name)

    def run(self, call: ToolCall) -> str:
        return f"{self.name}{sorted(call.arguments.values())}"


def call(name: str, number: int = 1) -> ToolCall:
    return ToolCall(f"c{number}", name, {"n": number})


class Driver:
    """Carries out the steps of a turn in one thread, and notes them."""

    def __init__(self, turn: ToolTurn, left: float | None = None, fail: dict[str, JobOutcome] | None = None) -> None:
        self.turn = turn
        self.left = left
        self.outcomes = fail or {}
        self.events: list[RunEvent] = []
        self.jobs: list[tuple[Job, ...]] = []
        self.most: list[int] = []

    def seconds_left(self) -> Flow[float | None]:
        yield Now()
        return self.left

    def run(self) -> tuple[ToolResult, ...]:
        flow = self.turn.steps(self.seconds_left)
        value: Any = None
        while True:
            try:
                step = flow.send(value)
            except StopIteration:
                return self.turn.results
            value = None
            if isinstance(step, Emit):
                self.events += step.events
            elif isinstance(step, RunTools):
                self.jobs.append(step.jobs)
                self.most.append(step.most)
                value = [self.outcome(job) for job in step.jobs]
                for number, outcome in reversed(list(enumerate(value))):  # the last one ends first
                    self.events += step.report(number, outcome)

    def outcome(self, job: Job) -> JobOutcome:
        try:
            return self.outcomes.get(job.call.name) or Returned(job.runnable.run(job.call), 0.5)
        except Exception as problem:  # noqa: BLE001 - as a shell does
            return Raised(problem)


def test_calls_run_together_and_results_stand_in_the_order_of_the_calls() -> None:
    config: RunConfig[Any] = RunConfig(tools={"a": Made("a"), "b": Made("b")}, parallel=3)
    first, second = call("a", 1), call("b", 2)
    turn = ToolTurn([first, second], config, 4)
    driver = Driver(turn)
    results = driver.run()
    assert results == (ToolResult("c1", "a[1]", "a"), ToolResult("c2", "b[2]", "b"))
    assert driver.events == [
        ToolStarted(first, 4),
        ToolStarted(second, 4),
        ToolFinished(second, results[1], 4, 0.5),
        ToolFinished(first, results[0], 4, 0.5),
    ]
    assert ([len(jobs) for jobs in driver.jobs], driver.most) == ([2], [3])
    assert (turn.run_count, turn.hands_over) == (2, False)


def test_calls_for_the_caller_are_neither_run_nor_reported() -> None:
    config: RunConfig[Any] = RunConfig(tools={"mine": Made("mine"), "yours": None})
    turn = ToolTurn([call("yours", 1), call("mine", 2)], config, 1)
    driver = Driver(turn)
    assert driver.run() == (ToolResult("c2", "mine[2]", "mine"),)
    assert [type(event).__name__ for event in driver.events] == ["ToolStarted", "ToolFinished"]
    assert (turn.run_count, turn.hands_over) == (1, True)


def test_unknown_and_forbidden_calls_are_answered_without_a_run() -> None:
    config: RunConfig[Any] = RunConfig(tools={"look": Made("look"), "drop": Made("drop")}, approvals={"drop": "deny"})
    driver = Driver(ToolTurn([call("lokk", 1), call("drop", 2)], config, 1))
    unknown, denied = driver.run()
    assert unknown == ToolResult("c1", "There is no tool named 'lokk'. Did you mean look?", "lokk", is_error=True)
    assert (denied.is_error, "its calls are not allowed" in denied.text) == (True, True)
    assert driver.jobs == []
    assert [event.result for event in driver.events if isinstance(event, ToolFinished)] == [unknown, denied]


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (True, "act[1]"),
        ("allow", "act[1]"),
        (False, "The call of act was not allowed. Go on without it."),
        (None, "The call of act was not allowed. Go on without it."),
        ("deny", "The call of act was not allowed. Go on without it."),
        ("", "The call of act was not allowed. Go on without it."),
        (1, "The call of act was not allowed. Go on without it."),
        ("not today.", "The call of act was not allowed: not today. Go on without it."),
        (ValueError("x"), "The call of act was not allowed: the approval handler failed. Go on without it."),
    ],
)
def test_a_call_that_needs_approval_runs_only_after_a_clear_yes(verdict: Any, text: str) -> None:
    def approve(_: ToolCall) -> Verdict:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict  # type: ignore[no-any-return]

    config: RunConfig[Any] = RunConfig(tools={"act": Made("act")}, approvals={"act": "ask"}, approve=approve)
    (result,) = Driver(ToolTurn([call("act")], config, 1)).run()
    assert (result.text, result.is_error) == (text, not text.startswith("act"))


def test_one_question_at_a_time_before_anything_runs() -> None:
    def approve(asked: ToolCall) -> Verdict:
        return asked.id != "c2"

    config: RunConfig[Any] = RunConfig(
        tools={"act": Made("act"), "look": Made("look")},
        approvals={"act": "ask", "look": "allow"},
        approve=approve,
    )
    driver = Driver(ToolTurn([call("look", 1), call("act", 2), call("act", 3)], config, 1))
    assert [result.is_error for result in driver.run()] == [False, True, False]
    ran = [[job.call.id for job in jobs] for jobs in driver.jobs]
    assert (ran, driver.most) == ([["c2"], ["c3"], ["c1", "c3"]], [1, 1, 8])
    assert all(job.runnable.blocking for job in driver.jobs[0])


def test_a_handler_that_is_a_coroutine_is_not_run_in_a_thread() -> None:
    async def approve(_: ToolCall) -> Verdict:
        return True

    config: RunConfig[Any] = RunConfig(tools={"act": Made("act")}, approvals={"act": "ask"}, approve=approve)
    driver = Driver(ToolTurn([call("act")], config, 1), fail={"act": Returned(True)})
    driver.run()
    assert [job.runnable.blocking for jobs in driver.jobs for job in jobs] == [False, True]


@pytest.mark.parametrize(
    ("own", "agents", "left", "timeout"),
    [
        (None, None, None, None),
        (3.0, None, None, 3.0),
        (3.0, 1.0, None, 3.0),
        (None, 2.0, None, 2.0),
        (None, None, 5.0, 5.0),
        (9.0, 1.0, 5.0, 5.0),
        (3.0, 1.0, 5.0, 3.0),
    ],
)
def test_a_call_may_take_what_its_tool_says_or_the_agent_and_never_more_than_is_left(
    own: float | None, agents: float | None, left: float | None, timeout: float | None
) -> None:
    config: RunConfig[Any] = RunConfig(tools={"a": Made("a", timeout=own)}, tool_timeout=agents)
    driver = Driver(ToolTurn([call("a")], config, 1), left)
    driver.run()
    assert [job.timeout for jobs in driver.jobs for job in jobs] == [timeout]


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Raised(ValueError("no such city")), "ValueError: no such city"),
        (TimedOut(2.0), "a was given up after 2 s: it took too long. Ask for less."),
    ],
)
def test_a_tool_that_fails_gives_the_model_an_error(outcome: JobOutcome, text: str) -> None:
    config: RunConfig[Any] = RunConfig(tools={"a": Made("a")})
    assert Driver(ToolTurn([call("a")], config, 1), fail={"a": outcome}).run() == (
        ToolResult("c1", text, "a", is_error=True),
    )


def test_a_fatal_exception_ends_the_turn_after_all_results_are_in() -> None:
    problem = KeyError("gone")
    config: RunConfig[Any] = RunConfig(tools={"a": Made("a", fatal=(LookupError,)), "b": Made("b")})
    turn = ToolTurn([call("a", 1), call("b", 2)], config, 1)
    with pytest.raises(ToolFailed, match="the tool a raised KeyError, which it declares fatal") as caught:
        Driver(turn, fail={"a": Raised(problem)}).run()
    assert (caught.value.call, caught.value.__cause__) == (call("a", 1), problem)
    assert [(result.call_id, result.is_error) for result in turn.results] == [("c1", True), ("c2", False)]


def test_of_two_fatal_exceptions_the_first_one_counts() -> None:
    config: RunConfig[Any] = RunConfig(tools={name: Made(name, fatal=(Exception,)) for name in ("a", "b")})
    driver = Driver(
        ToolTurn([call("a", 1), call("b", 2)], config, 1), fail={"a": Raised(KeyError()), "b": Raised(OSError())}
    )
    with pytest.raises(ToolFailed, match="the tool b raised OSError"):
        driver.run()


def test_nothing_is_asked_of_the_clock_when_nothing_runs() -> None:
    asked: list[str] = []

    def seconds_left() -> Flow[float | None]:
        asked.append("left")
        yield Now()
        return None

    def drain(tools: dict[str, Made | None]) -> list[type]:
        config: RunConfig[Any] = RunConfig(tools=tools)
        steps: Callable[..., Flow[None]] = ToolTurn([call("a")], config, 1).steps
        return [type(step) for step in steps(seconds_left)]

    assert (drain({}), drain({"a": None}), asked) == ([Emit, Emit], [Emit], [])
    assert (drain({"a": Made("a")}), asked) == ([Emit, Now, RunTools], ["left"])


# --- ids ------------------------------------------------------------------------------------------------------------
