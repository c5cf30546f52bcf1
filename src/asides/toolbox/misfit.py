"""A value that does not fit its type. Not here: the words around it that a model is told."""

from __future__ import annotations


class Misfit(Exception):
    """A value is not of its type: where in it (`"[0].city"`; `""` for all of it), and what is wrong there."""

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"{where or 'it'}: {what}" for where, what in problems))
        self.problems = problems
