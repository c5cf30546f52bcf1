"""The `stage` fixture for the tests of whoever uses asides. Loads nothing of it before a test asks for one."""

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
    """Opens offline servers: `stage(Say(text="hi")).url`, `stage(function)`, `stage()` for the stage's own actor.

    They close when the test is over. The test fails when a script raised, or when a stage does not end.
    """
    from asides.testing.stage import Stage

    with ExitStack() as opened:

        def open_stage(*script: Scene | Callable[[ServedRequest], Scene], **options: Any) -> Stage:
            scenes = [scene for scene in script if not callable(scene)]
            functions = [each for each in script if callable(each)]
            if functions and len(script) > 1:
                raise TypeError("a stage takes scenes, or one function that gives them.")
            made = Stage(functions[0] if functions else scenes or None, **options)
            return opened.enter_context(made)

        yield open_stage
