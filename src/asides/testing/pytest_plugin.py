"""The pytest fixture `stage` for tests of programs that use asides. Nothing is imported before a test uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from asides.dialects.dialect import ServedRequest
    from asides.testing.stage import OpenStage, Scene, Stage


@pytest.fixture
def stage() -> Iterator[OpenStage]:
    """Open offline servers: `stage(Say(text="hi")).url`, `stage(function)`, or `stage()` for the stage's actor.

    They close after the test. The test fails if a script raised or a stage does not end.
    """
    from asides.testing.stage import Stage

    with ExitStack() as opened:

        def open_stage(*script: Scene | Callable[[ServedRequest], Scene], **options: Any) -> Stage:
            scenes = [scene for scene in script if not callable(scene)]
            functions = [each for each in script if callable(each)]
            if functions and len(script) > 1:
                raise TypeError("a stage takes scenes, or one function that returns them.")
            return opened.enter_context(Stage(functions[0] if functions else scenes or None, **options))

        yield open_stage
