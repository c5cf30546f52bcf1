"""Without an official client's package, its module says what to install; nothing else of asides needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import asides

_HIDE = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("openai", "anthropic", "httpx", "httpx2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
"""


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_missing_package_is_named(name: str) -> None:
    program = f"{_HIDE}import asides, asides.integrations.httpx_transport\nimport asides.{name}"
    source = str(Path(asides.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": source}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"ImportError: asides.{name} needs the package {name}" in done.stderr
    assert f"pip install 'asides[{name}]'" in done.stderr
