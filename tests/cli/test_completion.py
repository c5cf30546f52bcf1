"""What a shell gets for a line, without a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from asides.providers.find import list_providers
from tests.cli.children import environment, here


def complete(line: str, env: dict[str, str] | None = None) -> list[str]:
    """Do what a script does: ask `asides` for the candidates of this line, which it writes into a file."""
    place = Path(env["ANSWER"]) if env else Path(os.devnull)
    variables = {
        **environment(env or {}),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "fish",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(place),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line.encode())),
    }
    done = subprocess.run([sys.executable, "-m", "asides"], env=variables, capture_output=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"", b"")
    return place.read_text().split() if place.exists() else []


def test_candidates_are_offline_and_create_nothing(tmp_path: Path) -> None:
    env = {"ASIDES_STATE": str(tmp_path / "state"), "ANSWER": str(tmp_path / "answer")}
    assert complete("asides ask --conversation ", env) == []
    assert not (tmp_path / "state").exists()
    assert set(complete("asides providers ", env)) == {row.name for row in list_providers()}
    assert all(name.endswith(":") for name in complete("asides ask -m ", env))
    assert complete("asides config get timeouts.c", env) == ["timeouts.connect"]


@pytest.mark.parametrize("line", ["asides ask -m unheard-of:x", "asides klingon --x", "asides", ""])
def test_a_shell_gets_nothing_rather_than_an_error(line: str, tmp_path: Path) -> None:
    complete(line, {"ANSWER": str(tmp_path / "answer")})


def test_a_broken_settings_file_does_not_disturb_the_shell(tmp_path: Path) -> None:
    (tmp_path / "asides.toml").write_text("broken = [")
    env = {"ASIDES_CONFIG": str(tmp_path / "asides.toml"), "ANSWER": str(tmp_path / "answer")}
    assert complete("asides ask -m ", env) == []


def test_without_a_shell_the_error_names_the_three(capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, "completion")
    assert (done.code, done.out) == (2, "")
    assert "bash, zsh or fish" in done.err
