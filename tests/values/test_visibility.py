"""The policy by itself: what it allows by default, how it is read, and that a limit only takes away."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import asides
from asides.values.visibility import Sink, Visibility, read_visibility

KINDS = ("raw", "summary", "sealed")


def test_the_defaults_deny_what_no_switch_asks_for() -> None:
    default = Visibility()
    allowed = {sink: [kind for kind in KINDS if default.allows(sink, kind)] for sink in get_args(Sink)}  # type: ignore[arg-type]
    assert allowed == {
        "user": ["raw", "summary"],
        "app": ["raw", "summary", "sealed"],
        "log": [],
        "trace": [],
        "history": ["raw", "summary", "sealed"],
        "gateway": ["summary"],
    }
    assert default.find_saved(keep_thinking=False) == {"sealed"}


def test_hidden_thinking_has_nothing_to_hide() -> None:
    assert Visibility(user=()).allows("user", "hidden")


@pytest.mark.parametrize("sink", get_args(Sink))
def test_a_limit_only_takes_away(sink: Sink) -> None:
    wide = read_visibility({sink: ["raw", "summary"]})
    assert getattr(wide.limit(sink, ["summary", "sealed"]), sink) == ("summary",)
    assert Visibility(log=()).limit("log", KINDS).log == ()
    others = set(get_args(Sink)) - {sink}
    assert all(getattr(wide.limit(sink, ()), other) == getattr(wide, other) for other in others)


@pytest.mark.parametrize(
    "wrong",
    [
        1,
        "all",
        {"user": "raw"},
        {"user": ["sealed"]},
        {"log": ["sealed"]},
        {"trace": ["sealed"]},
        {"history": ["everything"]},
        {"screen": ["raw"]},
        Visibility(user="raw"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(asides.ConfigError, match=r"^visibility (is|must be) .*"):
        asides.Client(visibility=wrong)
