"""What conversations have cost: the server's figures count, guesses say so, the oldest are forgotten."""

from __future__ import annotations

import logging

import pytest

from asides.values.accounting import Accounts
from asides.values.messages import Text, user
from asides.values.reply import Reply
from asides.values.usage import Usage, estimate_usage


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


TOLD = Usage(10, 5, 2, 0, 15)


def reply(usage: Usage = TOLD, *, stored: bool = False) -> Reply:
    return Reply((Text("forty-two, as everybody knows"),), usage, id="resp_1", stored=stored)


@pytest.mark.requirement("S4-REQ-002.1", "FT-23")
def test_the_figures_of_the_server_add_up() -> None:
    accounts = Accounts(Clock())
    accounts.note("a", reply())
    assert accounts.note("a", reply()).total == Usage(20, 10, 4, 0, 30)
    assert accounts.of("b") is None


@pytest.mark.requirement("S4-REQ-002.2")
def test_a_guess_counts_only_where_the_server_said_nothing_and_says_that_it_is_one() -> None:
    accounts = Accounts(Clock())
    guess = estimate_usage((user("What is six times seven?"),), reply())
    assert guess.origin == "estimated"
    assert accounts.note("a", reply(), guess).total == Usage(10, 5, 2, 0, 15)
    assert accounts.note("a", reply(Usage()), guess).total.origin == "estimated"
    assert accounts.note("b", reply(Usage())).total == Usage()


def test_the_least_recently_used_goes_first_and_the_old_ones_go_anyway() -> None:
    clock = Clock()
    accounts = Accounts(clock, most=2, lifetime=60)
    for name in ("a", "b"):
        accounts.note(name, reply())
    clock.now = 30
    accounts.note("a", reply())
    accounts.note("c", reply())
    assert (accounts.of("b"), len(accounts)) == (None, 2)
    clock.now = 91
    assert len(accounts) == 0


@pytest.mark.requirement("S4-REQ-002.1")
def test_ES1_a_context_that_is_too_long_forgets_the_parent_and_not_the_cost() -> None:
    accounts = Accounts(Clock())
    noted = accounts.note("a", reply(stored=True))
    assert noted.parent is not None
    assert noted.parent.id == "resp_1"
    accounts.invalidate("a")
    left = accounts.of("a")
    assert left is not None
    assert (left.parent, left.total.total) == (None, 15)


@pytest.mark.requirement("S4-REQ-010.1")
def test_the_log_has_counts_and_no_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "asides"):
        Accounts(Clock()).note("a", reply())
    assert "15" in caplog.text
    assert "forty" not in caplog.text
