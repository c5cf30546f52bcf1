"""What `import asides_gateway` offers, and what it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import asides_gateway
from asides_gateway import Gateway, GatewaySettings, embedded, gateway_settings


def test_its_names_are_those_of_its_modules() -> None:
    assert Gateway is embedded.Gateway
    assert GatewaySettings is gateway_settings.GatewaySettings
    assert dir(asides_gateway) == ["Gateway", "GatewaySettings", "app"]
    with pytest.raises(AttributeError, match="has no attribute 'Gatway'"):
        _ = asides_gateway.Gatway


def test_importing_it_loads_no_other_module() -> None:
    program = (
        "import __future__, sys; before = set(sys.modules); import asides_gateway; print(set(sys.modules) - before)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert found.stdout.strip() == "{'asides_gateway'}"
