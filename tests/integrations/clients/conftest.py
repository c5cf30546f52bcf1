"""The stage behind every provider: examples name real models, and no request leaves this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from asides_stage import OpenStage, Stage


@pytest.fixture
def behind(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stage]:
    """Open a stage that answers for every provider."""

    def open_stage(*script: Any, **options: Any) -> Stage:
        opened = stage(*script, **options)
        monkeypatch.setenv("ASIDES_STAGE", opened.url)
        return opened

    return open_stage
