"""The completion scripts, driven by real shells: bash by its functions and at a terminal, zsh and fish if installed."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asides.cli.arguments import list_commands
from asides.cli.manual import find_parser
from asides.cli.parse_arguments import list_actions
from asides.conversations.store.sqlite import SqliteStore
from asides.conversations.sync import Conversation
from asides.values.messages import user
from tests.cli.children import asides, environment

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells of Unix")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an `asides` command for PATH, the script for bash, and files to complete."""
    tmp_path = tmp_path_factory.mktemp("home")
    command = tmp_path / "bin" / "asides"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m asides "$@"\n')
    command.chmod(0o755)
    (tmp_path / "recording one.json").write_text("{}")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "asides.toml").write_text(
        '[mcp.sums]\ncommand = "x"\n[providers.mine]\nbase_url = "http://x"\n'
    )
    (tmp_path / "completion.bash").write_text(asides("completion", "bash").out)
    (tmp_path / "state").mkdir()
    with SqliteStore(tmp_path / "state" / "conversations.db") as store:
        for name in ("holiday", "hobby", "$(touch pwned)", "two words", "it's", "--all", "new\nline"):
            Conversation("vllm:qwen3", store=store, name=name).append(user("hi"))
    return tmp_path


def variables(home: Path) -> dict[str, str]:
    return environment(
        {
            "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "ASIDES_CONFIG": str(home / "config" / "asides.toml"),
            "ASIDES_STATE": str(home / "state"),
            "HOME": str(home),
            "PS1": "$ ",
            "TERM": "dumb",
        }
    )


# What bash does: it splits at COMP_WORDBREAKS, calls the function, and puts a reply where the last part stands.
_DRIVER = r"""
. "$HOME/completion.bash"
COMP_LINE="$1"; COMP_POINT=${#COMP_LINE}; COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
compopt() { :; }
_python_argcomplete asides
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete_in_bash(home: Path, line: str) -> list[str]:
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--norc", "-c", _DRIVER, "bash", line], capture_output=True, env=variables(home), check=True, timeout=60
    )
    assert done.stderr == b""
    return [row for row in done.stdout.decode().splitlines() if row]


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("asides expl", ["explain"]),
        ("asides ask --thi", ["--thinking"]),
        ("asides ask --thinking m", ["minimal", "medium", "max"]),
        ("asides ask hello --thinking=m", ["minimal", "medium", "max"]),
        ("asides ask -q --tag-position l", ["leading"]),
        ("asides ask -m anthropic-c", ["anthropic-compatible:"]),
        ("asides ask -m min", ["minimax:", "minimax-anthropic:", "mine:"]),
        ("asides ask -m anthropic:claude-haiku-5", ["claude-haiku-5-5"]),
        ("asides ask --model=anthropic:claude-haiku-5", ["claude-haiku-5-5"]),
        ("asides chat --conversation ho", ["hobby", "holiday"]),
        ("asides explain --mcp s", ["sums"]),
        ("asides providers groq", ["groq"]),
        ("asides models deepseek:deepseek-r", ["deepseek-reasoner"]),
        ("asides decode --dialect ge", ["gemini", "gemini_interactions"]),
        ("asides config t", ["trust"]),
        ("asides completion z", ["zsh"]),
        ("asides help comp", ["completion"]),
        ("asides ask -- --thi", []),
        ("asides ask wh", []),
        ("asides --v", ["--version"]),
        ("asides --thi", ["--thinking"]),
        ("asides -m anthropic-c", ["anthropic-compatible:"]),
        ("asides --thinking=m", ["minimal", "medium", "max"]),
        ("asides -c --conversation ho", ["hobby", "holiday"]),
        ("asides history show ho", ["hobby", "holiday"]),
        ("asides history rm hobby ho", ["hobby", "holiday"]),
        ("asides nothing --x", []),
    ],
)
def test_bash_completes(line: str, found: list[str], home: Path) -> None:
    assert sorted(complete_in_bash(home, line)) == sorted(found)


@pytest.mark.skipif(BASH is None, reason="no bash")
def test_bash_offers_every_command_and_every_option(home: Path) -> None:
    assert complete_in_bash(home, "asides ") == list(list_commands())
    for name in ("ask", "history", "batch"):
        parser = find_parser([name])
        options = [option for action in list_actions(parser) for option in action.option_strings]
        assert sorted(complete_in_bash(home, f"asides {name} -")) == sorted(options)


@pytest.mark.skipif(BASH is None, reason="no bash")
def test_a_tab_at_a_real_bash_completes_the_line(home: Path) -> None:
    """Readline itself: the colon of provider:model, no space behind a colon, and a file with a blank in its name."""
    assert BASH is not None
    master, slave = pty.openpty()
    with subprocess.Popen(
        [BASH, "--norc", "--noprofile", "-i"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=variables(home),
        cwd=home,
        start_new_session=True,
    ) as shell:
        os.close(slave)
        try:
            _type(
                master,
                "bind 'set enable-bracketed-paste off'; eval \"$(asides completion bash)\"; echo re''ady\n",
                "ready",
            )
            # The line is printed by a command that shows its arguments instead of running them.
            _type(master, 'asides() { command asides "$@"; }; show() { printf \'<%s>\' "$@"; echo; }\n', "$ ")
            _type(master, "answer() { _python_argcomplete asides; }; complete -o default -F answer show\n", "$ ")
            _type(master, "echo do''ne\n", "done")
            for keys, shown in (
                ("show ask -m cere\tgpt\n", "<ask><-m><cerebras:gpt>"),
                ("show ask -m anthropic:claude-haiku-5\t?\n", "<ask><-m><anthropic:claude-haiku-5-5><?>"),
                ("show decode rec\t\n", "<decode><recording one.json>"),
                ("show ask --hide\t\n", "<ask><--hide-thinking>"),
            ):
                assert shown in _type(master, keys, shown)
        finally:
            shell.kill()
            os.close(master)


def _type(master: int, keys: str, until: str) -> str:
    """Type these keys, and read until this appears."""
    os.write(master, keys.encode())
    seen, deadline = b"", time.monotonic() + 60
    while until.encode() not in seen and time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.5)
        if ready:
            seen += os.read(master, 65536)
    assert until.encode() in seen, seen.decode()
    return seen.decode()


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("asides history sh", ["show"]),
        ("asides history show ho", ["hobby", "holiday"]),
        ("asides history rm tw", [r"two\ words"]),
        (r"asides history show \$", [r"\$\(touch\ pwned\)"]),
        ("asides ask --conversation=$", [r"\$\(touch\ pwned\)"]),
        ("asides ask --conversation it", [r"it\'s"]),
        ("asides ask --conversation 'it", [r"it'\''s"]),
        ("asides ask --conversation '$", ["$(touch pwned)"]),
        ('asides ask --conversation "$', [r"\$(touch pwned)"]),
        ('asides ask --conversation "tw', ["two words"]),
        ("asides ask --conversation n", []),
        ("asides ask --conversation --a", ["--api-key"]),
    ],
)
def test_no_name_becomes_a_command_in_bash(line: str, found: list[str], home: Path) -> None:
    assert sorted(complete_in_bash(home, line)) == sorted(found)


# --- zsh and fish -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("asides expl", ["explain"]),
        ("asides ask --tag-position l", ["leading"]),
        ("asides ask -m anthropic:claude-haiku-5", ["anthropic:claude-haiku-5-5"]),
        ("asides chat --conversation ho", ["hobby", "holiday"]),
        ("asides -m anthropic:claude-haiku-5", ["anthropic:claude-haiku-5-5"]),
        ("asides --hide", ["--hide-thinking"]),
        ("asides history show ho", ["hobby", "holiday"]),
        ("asides history sh", ["show"]),
        ("asides history -n 5 sh", ["show"]),
        ("asides history show tw", ["two words"]),
        ("asides history show expo", []),
    ],
)
def test_fish_completes(line: str, found: list[str], home: Path) -> None:
    script = f"asides completion fish | source; complete -C {line!r}"
    done = subprocess.run(
        ["fish", "-N", "-c", script], capture_output=True, env=variables(home), check=True, timeout=60
    )
    assert sorted(row.split("\t")[0] for row in done.stdout.decode().splitlines()) == sorted(found)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_reads_the_script(home: Path) -> None:
    script = 'autoload -U compinit && compinit -u && eval "$(asides completion zsh)" && print ${_comps[asides]}'
    done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, env=variables(home), check=True, timeout=60)
    assert (done.stdout.decode().strip(), done.stderr.decode()) == ("_python_argcomplete", "")
