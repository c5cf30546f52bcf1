"""The pytest fixture `stage` for tests of programs that use asides. Nothing is imported before a test uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, get_args

import pytest

if TYPE_CHECKING:
    from asides.dialects.dialect import ServedRequest
    from asides.testing.stage import OpenStage, Scene, Stage


@pytest.fixture
def stage() -> Iterator[OpenStage]:
    """Open offline servers: `stage(Say(text="hi")).url`, `stage([Say(text="hi"), Fail(500)])`, `stage(function)`, or
    `stage()` for the stage's actor.

    They close after the test. The test fails if a script raised or a stage does not end.
    """
    from asides.testing.stage import Scene, Stage

    with ExitStack() as opened:

        def open_stage(*script: Scene | Sequence[Scene] | Callable[[ServedRequest], Scene], **options: Any) -> Stage:
            given: list[Any] = []
            for each in script:
                given += each if isinstance(each, (list, tuple)) else [each]
            functions: list[Any] = [each for each in given if callable(each)]
            if functions and len(given) > 1:
                raise TypeError("a stage takes scenes, or one function that returns them.")
            for each in given:
                if not callable(each) and not isinstance(each, get_args(Scene)):
                    raise TypeError(
                        f"a stage takes scenes, a list of them, or one function, not {type(each).__name__}. To do: "
                        'write stage(Say(text="hi")), with Say from asides.testing.'
                    )
            return opened.enter_context(Stage(functions[0] if functions else given or None, **options))

        yield open_stage
