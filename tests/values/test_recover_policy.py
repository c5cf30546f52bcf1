"""The option `recover` in all its forms, and those that make no sense."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import asides
from asides.values.recover_policy import RecoverPolicy, read_recover


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        (True, RecoverPolicy()),
        (False, None),
        (RecoverPolicy(max_requests=1), RecoverPolicy(max_requests=1)),
        ({"steps": ["more_tokens"], "max_cost": 0.5}, RecoverPolicy(steps=("more_tokens",), max_cost=Decimal("0.5"))),
        ({"steps": []}, None),
        ({"max_requests": 0}, None),
    ],
)
def test_the_option_is_read(given: Any, policy: RecoverPolicy | None) -> None:
    assert read_recover(given) == policy


@pytest.mark.parametrize(
    "wrong",
    [
        1,
        "yes",
        {"steps": ["pray"]},
        {"tries": 2},
        {"max_requests": -1},
        {"max_tokens": 0},
        {"max_cost": "much"},
        {"max_cost": float("nan")},
        RecoverPolicy(max_requests="3"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_before_a_byte_is_sent(wrong: Any) -> None:
    with pytest.raises(asides.ConfigError, match="recover"):
        asides.ask("groq:qwen/qwen3-32b", "?", recover=wrong, api_key="none")
