"""The help of every command, and the page that lists the same options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asides.cli.app import main
from asides.cli.arguments import list_commands
from asides.cli.exit_codes import Exit
from tests.cli.children import (
    here,
)

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"


def test_help_names_every_command_and_every_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for name, command in list_commands().items():
        assert f"  {name:<10} {command.summary}\n" in out
    assert out.count("\nexamples:\n") == 1
    assert main(["help", "exit-codes"]) == 0
    out = capsys.readouterr().out
    for code in Exit:
        assert f"  {code.value:<10} {code.meaning}\n" in out


def test_the_page_has_the_same_codes_and_commands() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(str(code.value), code.meaning) for code in Exit]
    for name in list_commands():
        assert f"## asides {name}\n" in page


@pytest.mark.parametrize("name", list_commands())
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: asides {name} ")
    assert list_commands()[name].summary.split(".")[0][:40] in " ".join(out.split())


def test_every_option_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = _PAGE.read_text(encoding="utf-8")
    for name in list_commands():
        main([name, "--help"])
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help"}
        assert [option for option in options if f"`{option}" not in page] == [], name


@pytest.mark.parametrize("port", ["99999", "-1", "x"])
def test_an_impossible_port_is_a_usage_error(capsys: pytest.CaptureFixture[str], port: str) -> None:
    done = here(capsys, "stage", f"--port={port}")
    assert (done.code, done.out) == (2, "")
    assert "is not a port number" in done.err
