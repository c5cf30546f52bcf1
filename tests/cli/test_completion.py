"""What the completion scripts ask `asides completion` for."""

from __future__ import annotations

from pathlib import Path

import pytest

from asides.cli.completion import find_candidates, list_entries
from asides.providers.find import list_providers
from tests.cli.children import asides, here


def test_values_are_completed_by_what_they_are() -> None:
    entries = {entry.path: entry for entry in list_entries()}
    kinds = {name: argument.kind for argument in entries["ask"].options for name in argument.options}
    assert (kinds["-m"], kinds["--file"], kinds["--mcp"]) == ("model", "file", "mcp")
    assert (kinds["--json"], kinds["--seed"]) == (None, "")
    assert [argument.kind for argument in entries["providers"].words] == ["provider"]


def test_candidates_are_offline_and_create_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "state"))
    assert list(find_candidates("conversation", "")) == []
    assert not (tmp_path / "state").exists()
    assert set(find_candidates("provider", "")) == {row.name for row in list_providers()}
    assert all(name.endswith(":") for name in find_candidates("model", ""))
    assert list(find_candidates("setting", "timeouts.c")) == ["timeouts.connect"]


@pytest.mark.parametrize("arguments", [["--candidates", "model", "--beginning=nobody:x"], ["--candidates", "klingon"]])
def test_a_shell_gets_nothing_rather_than_an_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert here(capsys, "completion", *arguments) == (0, "", "")


def test_a_broken_settings_file_does_not_disturb_the_shell(tmp_path: Path) -> None:
    (tmp_path / "asides.toml").write_text("broken = [")
    done = asides("completion", "--candidates", "model", env={"ASIDES_CONFIG": str(tmp_path / "asides.toml")})
    assert done == (0, "", "")


def test_without_a_shell_the_error_names_the_three(capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, "completion")
    assert (done.code, done.out) == (2, "")
    assert "bash, zsh or fish" in done.err
