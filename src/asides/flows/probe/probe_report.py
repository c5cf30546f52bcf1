"""The report of a probe: findings with their evidence, and the row, as values, as JSON and as text."""

from __future__ import annotations

from typing import Any

import msgspec

from asides.flows.probe.knowledge import ProbeState
from asides.flows.probe.list_findings import ProbeFinding
from asides.flows.probe.write_row import write_python, write_toml
from asides.providers.provider import Provider
from asides.values.notices import escape_controls

_COLUMN = 10


class ProbeReport(msgspec.Struct, frozen=True):
    """The findings of a probe about a server. Contains no key, no answer and no thinking."""

    base_url: str
    model: str | None
    dialect: str | None
    """The dialect that was probed; None when nothing answered."""
    requests: int
    findings: tuple[ProbeFinding, ...]
    row: Provider | None
    """The row to paste; None when nothing answered."""
    complete: bool = False
    """False: it was interrupted, or ran out of requests before everything was asked."""
    problem: str = ""
    """Why the probe had to stop."""
    state: ProbeState = "nothing"
    """Whether an endpoint answered, and if not, why."""

    def __repr__(self) -> str:
        return f"ProbeReport({self.base_url}, dialect={self.dialect!r}, requests={self.requests}, row={self.row!r})"

    def find(self, topic: str) -> ProbeFinding | None:
        """The finding on a topic: endpoints, model, thinking, where, stream, switch, effort, usage, tools, replay,
        settings."""
        return next((finding for finding in self.findings if finding.topic == topic), None)

    @property
    def toml(self) -> str:
        """The row as a table of `asides.toml`; "" without a row."""
        return "" if self.row is None else write_toml(self.row)

    @property
    def python(self) -> str:
        """The row as Python; "" without a row."""
        return "" if self.row is None else write_python(self.row)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON."""
        return {
            "base_url": self.base_url,
            "model": self.model,
            "dialect": self.dialect,
            "requests": self.requests,
            "state": self.state,
            "complete": self.complete,
            "problem": self.problem or None,
            "findings": {
                finding.topic: {"value": finding.value, "evidence": finding.text} for finding in self.findings
            },
            "row": None if self.row is None else msgspec.to_builtins(self.row),
            "toml": self.toml or None,
            "python": self.python or None,
        }

    def to_text(self) -> str:
        """The report as a settings file: the findings as comments, the row, and the same row in Python as a comment."""
        lines = [f"# asides probe {self.base_url}: {self.requests} requests{'' if self.complete else ', not complete'}"]
        lines += [f"# {finding.topic:<{_COLUMN}} {finding.text}" for finding in self.findings]
        if self.problem:
            lines.append(f"# {'note' if self.state == 'answered' else 'problem':<{_COLUMN}} {self.problem}")
        if self.row is not None and self.row.key_env:
            lines.append(f"# key        set {self.row.key_env[0]}, or run `asides keys set {self.row.name}`")
        lines = [escape_controls(line) for line in lines]
        if self.row is not None:
            python = "".join(f"#   {line}\n" for line in escape_lines(self.python))
            lines += ["", self.toml, "# The same row in Python:", python.rstrip("\n")]
        return "\n".join(lines) + "\n"


def escape_lines(text: str) -> list[str]:
    """The lines of a text, with control characters made visible."""
    return [escape_controls(line) for line in text.splitlines()]


class ProbeStep(msgspec.Struct, frozen=True):
    """A request of a probe: emitted before it is sent, and again with its outcome."""

    number: int
    purpose: str
    method: str
    url: str
    body: Any = None
    """The JSON that is sent."""
    outcome: str | None = None
    """None: it is about to be sent."""
    report: ProbeReport | None = None
    """What was known before this request."""
