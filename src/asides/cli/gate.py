"""Whether the thinking of a model is shown. Separating it and asking for it are other switches, elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from asides.settings import Settings


class Gate(NamedTuple):
    """Showing is for whoever wants to see (-t, or `show_reasoning_thinking`), and for allowed models only."""

    settings: Settings
    model: str
    """provider:model"""

    @property
    def wanted(self) -> bool:
        """Somebody wants to see thinking."""
        return self.settings.show_reasoning_thinking

    @property
    def allows(self) -> bool:
        """`reasoning_allowed_models` names this model."""
        return msgspec.structs.replace(self.settings, show_reasoning_thinking=True).shows_thinking(self.model)

    @property
    def shows(self) -> bool:
        """Both."""
        return self.settings.shows_thinking(self.model)
