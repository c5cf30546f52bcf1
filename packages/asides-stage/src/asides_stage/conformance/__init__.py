"""The conformance suite for authors of providers and dialects: the laws of asides as checks of your row.

    asides_stage.examine(mine).raise_on_failure()

    class TestMine(asides_stage.ProviderSuite):
        provider = mine

Nothing is sent to the provider. Only examples of the host's answers can show whether the host agrees with its row.
"""

from __future__ import annotations

from asides_stage.conformance.case import Example
from asides_stage.conformance.report import Finding, Nonconformance, Report, Verdict
from asides_stage.conformance.suite import CHECKS, NETWORK, ProviderCheck, ProviderSuite, checks, describe, examine

__all__ = [
    "CHECKS",
    "NETWORK",
    "Example",
    "Finding",
    "Nonconformance",
    "ProviderCheck",
    "ProviderSuite",
    "Report",
    "Verdict",
    "checks",
    "describe",
    "examine",
]
