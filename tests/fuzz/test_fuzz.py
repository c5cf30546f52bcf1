"""Some seconds of fuzzing with a fixed seed. `python scripts/fuzz.py --seconds 600` runs minutes of it."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.targets import TARGETS

# Inputs per target, by what they cost.
_COUNTS = {
    "decoders": 60,
    "calls": 60,
    "stores": 8,
    "sockets": 20,
    "ledgers": 15,
    "conversations": 40,
    "relayed requests": 60,
}


@pytest.mark.parametrize("target", TARGETS)
def test_any_input_ends_in_a_value_or_an_error_of_asides(target: str) -> None:
    for number in range(_COUNTS.get(target, 100)):
        TARGETS[target](random.Random(f"ci:{target}:{number}"))
