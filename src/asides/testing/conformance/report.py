"""What the suite found: a finding for each check, and the report of them all. Not here: the checks."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Verdict: TypeAlias = Literal["passed", "failed", "skipped"]


class Nonconformance(AssertionError):
    """A provider does not hold what every provider holds: what was expected, what came, and what to do."""


class Broken(Exception):
    """Raised by a check: what was expected, what came instead, and where to look."""

    def __init__(self, expected: str, came: str, to_do: str) -> None:
        super().__init__(f"expected {expected}; came {came}. To do: {to_do}")
        self.expected = expected
        self.came = came
        self.to_do = to_do


class NotHere(Exception):
    """Raised by a check that has nothing to look at in this provider, with the reason."""


def expect(holds: bool, *, expected: str, came: str, to_do: str) -> None:
    """Go on where it holds, else end the check."""
    if not holds:
        raise Broken(expected, came, to_do)


class Finding(msgspec.Struct, frozen=True):
    """What one check found."""

    check: str
    """The name of the check."""
    verdict: Verdict
    expected: str = ""
    came: str = ""
    to_do: str = ""
    why: str = ""
    """For a check that was skipped: why."""

    def __str__(self) -> str:
        match self.verdict:
            case "passed":
                return f"passed   {self.check}"
            case "skipped":
                return f"skipped  {self.check}: {self.why}"
            case "failed":
                return (
                    f"FAILED   {self.check}\n"
                    f"           expected: {self.expected}\n"
                    f"           came:     {self.came}\n"
                    f"           to do:    {self.to_do}"
                )


class Report(msgspec.Struct, frozen=True):
    """What the suite found in one provider."""

    provider: str
    model: str
    dialect: str
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What failed."""
        return tuple(finding for finding in self.findings if finding.verdict == "failed")

    @property
    def skipped(self) -> tuple[Finding, ...]:
        """What could not be looked at, each with the reason."""
        return tuple(finding for finding in self.findings if finding.verdict == "skipped")

    def of(self, check: str) -> Finding:
        """What this check found. Raises KeyError where it was not run."""
        found = next((finding for finding in self.findings if finding.check == check), None)
        if found is None:
            raise KeyError(f"{check} was not run; there are {', '.join(finding.check for finding in self.findings)}.")
        return found

    def raise_on_failure(self) -> Report:
        """This report, or `Nonconformance` with everything that failed."""
        if self.failures:
            told = "\n".join(map(str, self.failures))
            raise Nonconformance(f"{self.provider}:{self.model} ({self.dialect}) does not conform:\n{told}")
        return self

    def __str__(self) -> str:
        counts = f"{len(self.failures)} of {len(self.findings)} checks failed, {len(self.skipped)} skipped"
        return "\n".join([f"{self.provider}:{self.model} ({self.dialect}): {counts}", *map(str, self.findings)])
