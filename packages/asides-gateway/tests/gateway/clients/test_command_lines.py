"""Command lines of other makers on models of yet others: each writes a file with its own tool, and reads it back in a
second run that goes on with the first.

They run against `asides serve` in front of the strict stage, which refuses a request whose reasoning state is missing.
`python scripts/clients.py install` installs them.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from asides_stage import Stage
from tests.gateway.clients.command_lines import (
    CANARY,
    CONTENT,
    ONLY_THIS_MACHINE,
    READ,
    WRITE,
    Desk,
    NoteModel,
    list_lost_states,
)
from tests.local.processes import needs_engine

pytestmark = pytest.mark.timeout(300)
SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).resolve().parents[5] / "scripts" / "clients.py"))


class Case(NamedTuple):
    """A client on a model of another maker."""

    client: str
    model: str
    options: tuple[str, ...] = ()
    """Of `asides connect`."""

    @property
    def is_bound(self) -> bool:
        """Whether seals hold only behind the very same history: these clients tell the model what is in the folder, so
        a second run begins with other words."""
        return self.model == BOUND


CLAUDE = "anthropic:claude-sonnet-4-5"
BOUND = "anthropic:claude-opus-5-5"
GEMINI = "gemini:gemini-3-pro-preview"
CHAT = "deepseek:deepseek-v4-pro"
RESPONSES = "openai-responses:gpt-5"

CASES = [
    Case("claude", GEMINI),
    Case("claude", CHAT, ("--write",)),
    Case("claude", RESPONSES),
    Case("codex", CLAUDE, ("--write",)),
    Case("codex", GEMINI, ("--write",)),
    Case("gemini", CHAT, ("--write",)),
    Case("gemini", BOUND, ("--write",)),
    Case("opencode", GEMINI, ("--write", "--dialect", "chat")),
    Case("opencode", CLAUDE, ("--write", "--dialect", "responses")),
    Case("opencode", CHAT, ("--write", "--dialect", "anthropic")),
    Case("opencode", RESPONSES, ("--write", "--dialect", "gemini")),
    Case("qwen", BOUND, ("--write",)),
    Case("qwen", CLAUDE),
]

FIRST = {
    "claude": ("-p", "--dangerously-skip-permissions", WRITE),
    "codex": ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", WRITE),
    "gemini": ("--yolo", "--skip-trust", "-p", WRITE),
    "opencode": ("run", WRITE),
    "qwen": ("--auth-type", "openai", "--yolo", "-p", WRITE),
}
THEN = {
    "claude": ("-p", "--continue", "--dangerously-skip-permissions", READ),
    "codex": ("exec", "resume", "--last", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", READ),
    "gemini": ("--yolo", "--skip-trust", "--resume", "latest", "-p", READ),
    "opencode": ("run", "--continue", READ),
    "qwen": ("--auth-type", "openai", "--yolo", "--continue", "-p", READ),
}
VARIABLES = {
    "claude": {"IS_SANDBOX": "1", **ONLY_THIS_MACHINE},  # It is needed to skip questions where the user is root.
    "codex": ONLY_THIS_MACHINE,
    "gemini": ONLY_THIS_MACHINE,
    "opencode": ONLY_THIS_MACHINE,
    "qwen": {},  # It would send everything to the proxy.
}


def find_client(name: str) -> list[str]:
    """The words that run a client; skips the test where it is not installed."""
    try:
        command: list[str] = SCRIPT["find_command"](name)
    except SCRIPT["ClientMissing"] as problem:
        pytest.skip(str(problem))
    return command


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join((case.client, "on", case.model, *case.options)))
def test_it_writes_a_file_and_reads_it_back_in_a_later_run(case: Case, tmp_path: Path) -> None:
    client = find_client(case.client)
    note = tmp_path / "work" / "note.txt"
    with Stage(NoteModel(note)) as stage:
        desk = Desk(tmp_path, stage)
        with desk.serve():
            lines = desk.connect(case.client, case.model, *case.options)
            lines = lines if "--write" not in case.options else ""
            first = desk.run(lines, [*client, *FIRST[case.client]], **VARIABLES[case.client])
            assert (first.code, "It is written." in first.out) == (0, True), first
            assert note.read_text() == f"{CONTENT}\n"
            then = desk.run(lines, [*client, *THEN[case.client]], **VARIABLES[case.client])
            assert (then.code, f"It says: {CONTENT}" in then.out) == (0, True), then
    assert CANARY not in first.out + then.out
    assert [str(received.refusal) for received in stage.requests if received.refusal is not None] == []
    assert list_lost_states(stage, since_task=case.is_bound) == []


# --- the model that comes with asides ---------------------------------------------------------------------------------

SUM = "What is 23 * 47?"


@needs_engine
@pytest.mark.engine
def test_claude_code_asks_the_model_that_comes_with_asides(tmp_path: Path) -> None:
    client = find_client("claude")
    desk = Desk(tmp_path)
    with desk.serve():
        lines = desk.connect("claude", "local:tiny")
        words = [*client, "-p", SUM, "--system-prompt", "You answer.", "--tools", ""]
        asked = desk.run(lines, words, **VARIABLES["claude"])
        # Its own system prompt and its tools are longer than this model can read.
        whole = desk.run(lines, [*client, "-p", SUM], **VARIABLES["claude"])
    assert (asked.code, "1081" in asked.out) == (0, True), asked
    assert (whole.code, "Prompt is too long" in whole.out) == (1, True), whole
