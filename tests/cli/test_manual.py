"""`asides help`, and the manual page that is made from the same declarations."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from asides.cli.arguments import list_commands
from asides.cli.manual import find_parser, format_man_page
from asides.cli.parse_arguments import list_actions
from tests.cli.children import here, show_at_terminal

_PAGE = Path(__file__).resolve().parents[2] / "man" / "asides.1"


def test_help_of_a_command_is_the_same_wherever_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for name in list_commands():
        expected = here(capsys, name, "--help")
        assert expected.code == 0
        for arguments in (["help", name], ["--help", name], ["-h", name], [name, "-h"]):
            assert here(capsys, *arguments) == expected
    assert here(capsys, "help") == here(capsys, "--help") == here(capsys, "-h")
    assert here(capsys, "help", "config", "trust") == here(capsys, "config", "--help")


def test_help_of_nothing_known_says_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, "help", "explian")
    assert (done.code, done.out) == (2, "")
    assert "no command is called 'explian'; did you mean explain?" in done.err
    assert "the commands are ask, chat" in here(capsys, "help", "xyzzy").err
    assert "no command of `asides ask` is called 'more'" in here(capsys, "help", "ask", "more").err


@pytest.mark.parametrize("arguments", [["help"], ["help", "ask"], ["ask", "--help"], ["help", "decode"]])
@pytest.mark.parametrize("columns", [50, 80])
def test_help_is_wrapped_to_the_terminal(arguments: list[str], columns: int) -> None:
    shown = show_at_terminal(*arguments, env={"COLUMNS": str(columns)})
    assert shown.code == 0
    assert max(map(len, shown.screen)) <= columns


# --- the manual page --------------------------------------------------------------------------------------------------


def test_the_manual_page_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert _PAGE.read_text(encoding="ascii") == format_man_page(), "run python scripts/man_page.py"
    assert here(capsys, "help", "--man") == (0, format_man_page(), "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_groff_shows_every_command_and_option_and_has_no_complaint() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-P-cbou", str(_PAGE)], capture_output=True, check=True, timeout=60
    )
    assert done.stderr == b""
    # Lines are filled and hyphenated.
    shown = re.sub(r"-\n\s+", "-", done.stdout.decode())
    for command in list_commands():
        assert f"asides {command}" in shown
        for action in list_actions(find_parser([command])):
            for name in action.option_strings:
                assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", shown), name


@pytest.mark.skipif(shutil.which("man") is None, reason="no man")
def test_man_reads_the_page() -> None:
    done = subprocess.run(
        ["man", "-l", "--warnings", str(_PAGE)],
        capture_output=True,
        check=False,
        timeout=60,
        env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin"},
    )
    if b"No manual entry" in done.stderr or b"minimized" in done.stdout + done.stderr:
        pytest.skip("this system has no manual pages")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"EXIT STATUS" in re.sub(rb".\x08", b"", done.stdout)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="no mandoc")
def test_mandoc_finds_no_error() -> None:
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "error", str(_PAGE)], capture_output=True, check=False, timeout=60
    )
    assert done.stdout == b""
