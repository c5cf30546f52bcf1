"""The front door: help, versions, codes, and streams that cannot carry every character."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from asides.cli.app import main
from asides.cli.exit_codes import Exit, of_error, of_outcome
from asides.cli.options import COMMANDS
from asides.testing.stage import OpenStage, Say
from asides.values import errors
from asides.values.reply import Reply
from asides.values.version import VERSION
from tests.cli.children import asides, at, environment

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"


def test_help_names_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for name, command in COMMANDS.items():
        assert f"  {name:<10} {command.summary}\n" in out
    for code in Exit:
        assert f"  {code.value:<10} {code.meaning}\n" in out


def test_the_page_has_the_same_codes_and_commands() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(str(code.value), code.meaning) for code in Exit]
    for name in COMMANDS:
        assert f"## asides {name}\n" in page


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: asides {name} ")
    assert COMMANDS[name].summary.split(".")[0][:40] in " ".join(out.split())


def test_every_option_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = _PAGE.read_text(encoding="utf-8")
    for name in COMMANDS:
        main([name, "--help"])
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help"}
        assert [option for option in options if f"`{option}" not in page] == [], name


def test_no_command_and_a_wrong_one_are_wrong_uses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: asides COMMAND")
    assert main(["aks"]) == 2
    assert capsys.readouterr().err == "asides: no command is called 'aks'; did you mean ask?\n"
    assert main(["config", "--", "x"]) == 2


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"asides {VERSION}\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 2),
        (errors.InvalidThinking("x"), 2),
        (errors.MissingKey("x", ()), 3),
        (errors.AuthError("x"), 3),
        (errors.RateLimited("x"), 4),
        (errors.Overloaded("x"), 4),
        (errors.ConnectTimeout("x"), 5),
        (errors.IdleTimeout("x"), 5),
        (errors.ConnectionLost("x"), 5),
        (errors.BadRequest("x"), 6),
        (errors.ContextTooLong("x"), 6),
        (errors.NotFound("x"), 6),
        (errors.ProviderError("x"), 6),
        (errors.ProtocolError("x"), 6),
        (errors.NoAnswer("x", Reply()), 7),
        (errors.ContentFiltered("x"), 8),
        (errors.TooManyTurns("x"), 7),
        (ValueError("x"), 1),
    ],
)
def test_each_error_has_its_code(error: Exception, code: int) -> None:
    assert of_error(error) == code


def test_only_an_answer_and_tool_calls_are_success() -> None:
    assert [of_outcome("answered"), of_outcome("tool_calls")] == [0, 0]
    assert [of_outcome("starved"), of_outcome("unterminated")] == [7, 7]
    assert [of_outcome("refused"), of_outcome("filtered")] == [8, 8]


def test_a_stream_that_cannot_carry_a_character_gets_an_escape_and_json_stays_json(stage: OpenStage) -> None:
    theatre = stage(Say(text="naïve 日本"))
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    assert asides("ask", *at(theatre), "?", env=ascii_only).out == "na\\xefve \\u65e5\\u672c\n"
    assert '"text": "na\\u00efve \\u65e5\\u672c"' in asides("ask", *at(theatre), "--json", "?", env=ascii_only).out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_streams_that_are_closed_or_full_are_no_bug() -> None:
    shell = f"{shlex.quote(sys.executable)} -m asides"
    closed = subprocess.run(
        ["sh", "-c", f"echo x | {shell} separate 1>&- 2>&-"], env=environment(), check=False, timeout=20
    )
    assert closed.returncode == 0
    full = subprocess.run(
        ["sh", "-c", f"echo x | {shell} separate >/dev/full"],
        env=environment(),
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert full.returncode == 1
    assert full.stderr == b"asides: the system says: No space left on device.\n"


def test_bytes_that_are_no_text_are_asked_as_marks_or_refused(stage: OpenStage) -> None:
    theatre = stage(Say(text="ok"))
    done = asides("ask", *at(theatre), "caf\udce9")
    assert done.out == "ok\n"
    assert theatre.requests[0].json["messages"][0]["content"] == "caf\ufffd"
    done = asides("ask", *at(theatre), "?", stdin=b"\xff\xfe")
    assert done.code == 2
    assert "not text in UTF-8" in done.err
