"""Without an official client's package, or with an old one, its module says what to install; nothing else needs it."""

from __future__ import annotations

import os
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
    assert f"ModuleNotFoundError: asides.{name} needs the package {name}, which is not installed." in done.stderr
    assert f"Run pip install 'asides[{name}]'" in done.stderr
    assert "During handling" not in done.stderr


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_an_old_package_is_named_with_its_version(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("NOT_GIVEN = None\n")
    (tmp_path / f"{name}-1.2.3.dist-info").mkdir()
    (tmp_path / f"{name}-1.2.3.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.2.3\n")
    source = str(Path(asides.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", f"import asides.{name}"],
        env={"PYTHONPATH": os.pathsep.join([str(tmp_path), source])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"ImportError: asides.{name} does not know version 1.2.3 of the package {name}: cannot import" in done.stderr
    assert f"Run pip install -U 'asides[{name}]'" in done.stderr
