"""The results of the suite: a finding for each check, and the report of all."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Verdict: TypeAlias = Literal["passed", "failed", "skipped"]


class Nonconformance(AssertionError):
    """A provider fails a check. The message says what was expected, what was found, and what to do."""


class CheckFailed(Exception):
    """A check failed: what it expected, what it found, and what to do."""

    def __init__(self, expected: str, actual: str, to_do: str) -> None:
        super().__init__(f"expected {expected}; actual: {actual}. {to_do[:1].upper()}{to_do[1:]}")
        self.expected = expected
        self.actual = actual
        self.to_do = to_do


class CheckSkipped(Exception):
    """A check has nothing to examine in this provider; the message is the reason."""


def expect(holds: bool, *, expected: str, actual: str, to_do: str) -> None:
    """Raise CheckFailed unless it holds."""
    if not holds:
        raise CheckFailed(expected, actual, to_do)


class Finding(msgspec.Struct, frozen=True):
    """The result of one check."""

    check: str
    """The name of the check."""
    verdict: Verdict
    expected: str = ""
    actual: str = ""
    to_do: str = ""
    reason: str = ""
    """The reason why the check was skipped."""

    def __str__(self) -> str:
        match self.verdict:
            case "passed":
                return f"passed   {self.check}"
            case "skipped":
                return f"skipped  {self.check}: {self.reason}"
            case "failed":
                return (
                    f"FAILED   {self.check}\n"
                    f"           expected: {self.expected}\n"
                    f"           actual:   {self.actual}\n"
                    f"           to do:    {self.to_do}"
                )


class Report(msgspec.Struct, frozen=True):
    """The findings of all checks for one provider."""

    provider: str
    model: str
    dialect: str
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The failed checks."""
        return tuple(finding for finding in self.findings if finding.verdict == "failed")

    @property
    def skipped(self) -> tuple[Finding, ...]:
        """The skipped checks, each with its reason."""
        return tuple(finding for finding in self.findings if finding.verdict == "skipped")

    def of(self, check: str) -> Finding:
        """Return the finding of this check. Raises KeyError if it was not run."""
        found = next((finding for finding in self.findings if finding.check == check), None)
        if found is None:
            raise KeyError(f"{check} was not run; there are {', '.join(finding.check for finding in self.findings)}.")
        return found

    def raise_on_failure(self) -> Report:
        """Return this report, or raise `Nonconformance` with all failures."""
        if self.failures:
            failures = "\n".join(map(str, self.failures))
            raise Nonconformance(f"{self.provider}:{self.model} ({self.dialect}) does not conform:\n{failures}")
        return self

    def __str__(self) -> str:
        counts = f"{len(self.failures)} of {len(self.findings)} checks failed, {len(self.skipped)} skipped"
        return "\n".join([f"{self.provider}:{self.model} ({self.dialect}): {counts}", *map(str, self.findings)])
