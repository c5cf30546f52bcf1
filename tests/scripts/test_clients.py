"""The script that installs other makers' command lines: what it finds, and what it says where it finds nothing."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "clients.py"
CLIENTS: dict[str, Any] = runpy.run_path(str(_SCRIPT))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a client that looks as if npm had installed it."""
    home = tmp_path / "gemini"
    program = home / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    program.parent.mkdir(parents=True)
    program.touch()
    client = CLIENTS["CLIENTS"]["gemini"]
    (home / "installed.json").write_text(json.dumps({"package": client.package, "version": client.version}))
    return tmp_path


def test_a_client_is_found_where_its_package_has_it(folder: Path) -> None:
    node, program = CLIENTS["find_command"]("gemini", folder)
    assert (Path(node).stem, Path(program).relative_to(folder).parts[:2]) == ("node", ("gemini", "node_modules"))


def test_a_client_that_is_missing_or_of_another_version_is_not_run(folder: Path) -> None:
    (folder / "gemini" / "installed.json").write_text('{"package": "@google/gemini-cli", "version": "0.1.0"}')
    for name in ("gemini", "codex"):
        with pytest.raises(
            CLIENTS["ClientMissing"], match=f"{name} .* is not installed: run scripts/clients.py install"
        ):
            CLIENTS["find_command"](name, folder)


def test_every_version_is_exact() -> None:
    assert [client for client in CLIENTS["CLIENTS"].values() if not client.version.replace(".", "").isdecimal()] == []


def test_a_name_that_nobody_has_is_refused_with_the_list() -> None:
    ran = subprocess.run(
        [sys.executable, str(_SCRIPT), "install", "cladue"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert "no client is called 'cladue': there are claude, codex, gemini" in ran.stderr
