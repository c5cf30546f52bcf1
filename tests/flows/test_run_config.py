"""How a run is to go: which tools may be run without asking anybody."""

from __future__ import annotations

import pytest

from asides.agents.tools.function_tool import tool
from asides.agents.tools.runnable import Approval
from asides.flows.run_config import RunConfig

PATTERNS: tuple[tuple[str, Approval], ...] = (("read_*", "allow"), ("read_secrets", "deny"), ("delete_*", "ask"))


@tool
def silent() -> None:
    """Says nothing of approval."""


@tool(approval="allow")
def outspoken() -> None:
    """Says it itself."""


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("read_mail", "allow"),
        ("read_secrets", "allow"),  # the first pattern that fits
        ("delete_mail", "ask"),
        ("DELETE_mail", "allow"),  # names are told apart by case
        ("send_mail", "allow"),  # no pattern fits
    ],
)
def test_the_first_pattern_that_fits_a_name_counts_and_without_one_a_tool_may_be_run(name: str, word: str) -> None:
    assert RunConfig[str](approval=PATTERNS).approval_of(name, silent) == word


def test_what_a_tool_says_of_itself_counts_more_than_what_the_agent_says_of_it() -> None:
    assert RunConfig[str](approval="deny").approval_of("outspoken", outspoken) == "allow"
    assert RunConfig[str](approval=(("*", "deny"),)).approval_of("outspoken", outspoken) == "allow"
    assert RunConfig[str](approval="deny").approval_of("silent", silent) == "deny"
