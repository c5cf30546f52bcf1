"""The pytest fixture `stage` for tests of programs that use asides. Nothing is imported before a test uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, get_args

import pytest

if TYPE_CHECKING:
    from asides.dialects.dialect import ServedRequest
    from asides_stage.stage import OpenStage, Scene, Stage
    from asides_stage.stage.expectations import RefusalExpectation, Searched


class _Stages:
    """The stages of one test."""

    def __init__(self) -> None:
        self._opened: list[Stage] = []
        self._closing = ExitStack()
        self._expectations: list[RefusalExpectation] = []

    def __call__(self, *script: Scene | Sequence[Scene] | Callable[[ServedRequest], Scene], **options: Any) -> Stage:
        from asides_stage.stage import Scene, Stage

        given: list[Any] = []
        for each in script:
            given += each if isinstance(each, (list, tuple)) else [each]
        functions: list[Any] = [each for each in given if callable(each)]
        if functions and len(given) > 1:
            raise TypeError("a stage takes scenes, or one function that returns them.")
        for each in given:
            if not callable(each) and not isinstance(each, get_args(Scene)):
                raise TypeError(
                    f"a stage takes scenes, a list of them, or one function, not {type(each).__name__}. "
                    'Write stage(Say(text="hi")), with Say from asides_stage.'
                )
        opened = self._closing.enter_context(Stage(functions[0] if functions else given or None, **options))
        self._opened.append(opened)
        return opened

    def expect_no_refusals(self) -> RefusalExpectation:
        from asides_stage.stage.expectations import RefusalExpectation

        expectation = RefusalExpectation(lambda: [refusal for stage in self._opened for refusal in stage.refusals])
        self._expectations.append(expectation)
        return expectation

    def assert_no_leak(self, canary: str, in_: Searched | None = None) -> None:
        from asides_stage.stage.expectations import assert_no_leak

        assert_no_leak(canary, [request for stage in self._opened for request in stage.requests], in_)

    def close(self) -> None:
        self._closing.close()
        for expectation in self._expectations:
            expectation.check()


@pytest.fixture
def stage() -> Iterator[OpenStage]:
    """Open offline servers: `stage(Say(text="hi")).url`, `stage([Say(text="hi"), Fail(500)])`, `stage(function)`, or
    `stage()` for the stage's actor.

    They close after the test. The test fails if a script raised, a stage does not end, or a request was refused after
    `stage.expect_no_refusals()`. `stage.assert_no_leak("word of the thinking")` searches the requests.
    """
    stages = _Stages()
    try:
        yield stages
    finally:
        stages.close()
