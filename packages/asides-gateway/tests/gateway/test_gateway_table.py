"""[gateway] as it may stand in asides.toml: its words and its bounds."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from asides.relay.relay_config import ThinkingField
from asides.relay.state.turn_state import StateMode
from asides.settings import GatewayTable, load_settings
from asides.values.errors import ConfigError

KEY = "sk-gateway-0123456789"


def test_the_words_of_the_table_are_those_of_the_relay() -> None:
    hints = get_type_hints(GatewayTable)
    assert get_args(hints["state"]) == get_args(StateMode)
    assert get_args(hints["thinking_field"]) == get_args(ThinkingField)


@pytest.mark.parametrize(
    "table",
    [
        {"port": 70000},
        {"port": -1},
        {"workers": 0},
        {"state": "disk"},
        {"log": "xml"},
        {"max_body_mb": 0},
        {"ping_seconds": 0},
        {"drain_seconds": -1},
        {"key": KEY},
    ],
)
def test_what_cannot_be_is_an_error_with_its_name(table: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(table))) as caught:
        load_settings({}, files=[], gateway=table)
    assert KEY not in str(caught.value)
