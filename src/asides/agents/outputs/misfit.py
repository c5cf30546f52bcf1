"""An answer that is not what was wanted, in words for the model. Not an error for people: the flow asks again."""

from __future__ import annotations

from asides.values.messages import ToolResult


class Misfit(Exception):
    """What was said does not fit. `words` are for the model, and may hold its own; `str()` never does."""

    def __init__(self, words: str, *, results: tuple[ToolResult, ...] = ()) -> None:
        super().__init__("the answer does not have the form that was asked for")
        self.words = words
        self.results = results
        """What the calls are answered with that brought it, so that the conversation can go on."""

    def __repr__(self) -> str:
        return f"Misfit(<{len(self.words)} characters>)"
