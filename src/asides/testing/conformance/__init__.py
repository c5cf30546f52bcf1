"""For whoever adds a provider or a dialect: the laws that asides holds itself to, as checks that a row of yours is held
to.

    asides.testing.conformance.examine(mine).raise_on_failure()

    class TestMine(asides.testing.conformance.ProviderSuite):
        provider = mine

Nothing is sent to the provider. Not here: whether its host agrees with its row, which examples of its answers tell.
"""

from __future__ import annotations

from asides.testing.conformance.case import Example
from asides.testing.conformance.report import Finding, Nonconformance, Report, Verdict
from asides.testing.conformance.suite import CHECKS, NETWORK, Check, ProviderSuite, checks, describe, examine

__all__ = [
    "CHECKS",
    "NETWORK",
    "Check",
    "Example",
    "Finding",
    "Nonconformance",
    "ProviderSuite",
    "Report",
    "Verdict",
    "checks",
    "describe",
    "examine",
]
