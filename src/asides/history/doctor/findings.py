"""The values of a diagnosis: `Finding` and `Diagnosis`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from asides.intake.detect import HistoryFormat
from asides.values.json_form import JsonForm

Effect: TypeAlias = Literal["refused", "ignored"]
"""refused: the request would fail. ignored: the model does not see it, and the request passes."""


class Finding(msgspec.Struct, JsonForm, frozen=True):
    """One part of a history, or one setting, that the model does not accept unchanged."""

    kind: str | None
    """The kind of the refusal, as in `ProviderError.kind`; None if it is not one of those."""
    effect: Effect
    path: str
    """The place in the file: "messages[3].content[0]", or the name of a setting."""
    message: int | None
    """The number of the message, or the item, in the file."""
    part: int | None
    """The number of the part in its message."""
    detail: str
    """What is wrong."""
    repair: str
    """What the repaired history has instead; "" where nothing changes."""
    since: str = ""
    """The date of the fact: year-month(-day)."""
    source: str = ""

    def __str__(self) -> str:
        kind = f" ({self.kind})" if self.kind else ""
        return f"{self.path}: {self.effect}{kind}: {self.detail}"


class Diagnosis(msgspec.Struct, JsonForm, frozen=True):
    """The parts of a history that a model would refuse, and a history that it accepts."""

    _private = {"repaired": "both"}

    model: str
    """The model, as provider:model."""
    format: HistoryFormat
    findings: tuple[Finding, ...]
    repaired: Any
    """The document in the same format, repaired; equal to the given one if it was sound."""
    notes: tuple[str, ...] = ()
    """What could not be checked."""

    @property
    def sound(self) -> bool:
        """Whether the model would accept the history unchanged."""
        return not self.refused

    @property
    def refused(self) -> tuple[Finding, ...]:
        """The findings that would make the request fail."""
        return tuple(finding for finding in self.findings if finding.effect == "refused")

    @property
    def ignored(self) -> tuple[Finding, ...]:
        """The findings about parts that the model does not see. They stay in the repaired history."""
        return tuple(finding for finding in self.findings if finding.effect == "ignored")

    def __repr__(self) -> str:
        kinds = [finding.kind for finding in self.refused]
        return f"Diagnosis(model={self.model!r}, format={self.format!r}, sound={self.sound}, refused={kinds})"
