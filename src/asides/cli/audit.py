"""`asides audit`: finds thinking where it must not be, in files and databases. Prints places and counts, no content."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from asides.cli.exit_codes import Exit
from asides.cli.layout import find_width, wrap_columns
from asides.cli.render import print_json, print_lines
from asides.cli.terminal import Terminal
from asides.datasets.audit import AuditFinding, make_settings
from asides.datasets.audit_files import audit_file, list_files
from asides.datasets.audit_report import FileReport
from asides.datasets.audit_walk import AuditSettings
from asides.datasets.files import STDIN
from asides.values.errors import ConfigError
from asides.values.notices import escape_controls

_Class: TypeAlias = tuple[str, str, str]

_LONGEST_SAMPLE = 300
_KINDS = {
    "closed": "between tags",
    "unclosed": "no closing tag",
    "lone_close": "no opening tag",
    "empty": "empty tags",
    "later": "after the beginning",
    "copied": "copy of the reasoning",
    "unreadable": "cannot be read",
}


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the report on stdout, and what could not be read on stderr."""
    tags = None if arguments.tags is None else [(opening, closing) for opening, closing in arguments.tags]
    settings = make_settings(tags, arguments.position, arguments.model)
    if arguments.places < 0 or arguments.show < 0:
        raise ConfigError("--places and --show must be 0 or more.")
    audit = _Audit(settings, arguments.places, arguments.show)
    files = list(list_files(arguments.paths))
    copies = _name_copies(arguments.paths, files, arguments.fix)
    for file in files:
        try:
            audit.read(file, copies.get(file))
        except ConfigError as problem:
            if len(files) == 1:
                raise
            audit.failed += 1
            terminal.print_error(str(problem))
    if arguments.json:
        print_json(terminal, audit.describe(is_fixed=arguments.fix is not None))
    else:
        lines = list(audit.format(find_width(terminal), arguments.fix))
        print_lines(terminal, lines)
        terminal.end_answer()
    if not arguments.quiet:
        for report in audit.reports:
            _print_notes(report, terminal)
    return audit.choose_code(is_fixed=arguments.fix is not None)


class _Audit:
    """Counts findings and keeps the first ones."""

    def __init__(self, settings: AuditSettings, most_places: int, most_samples: int) -> None:
        self._settings = settings
        self._most_places, self._most_samples = most_places, most_samples
        self.reports: list[FileReport] = []
        self.counts: Counter[_Class] = Counter()
        self.places: list[AuditFinding] = []
        self.samples: dict[_Class, list[AuditFinding]] = {}
        self.failed = 0

    def read(self, file: str, copy: Path | None) -> None:
        """Audit a file."""
        report = FileReport(file)
        self.reports.append(report)
        for finding in audit_file(file, self._settings, report, copy):
            found = (finding.channel, finding.grammar, finding.kind)
            self.counts[found] += 1
            if len(self.places) < self._most_places:
                self.places.append(finding)
            samples = self.samples.setdefault(found, [])
            if len(samples) < self._most_samples:
                samples.append(finding)

    @property
    def found(self) -> int:
        """How much was found."""
        return self.counts.total()

    def choose_code(self, *, is_fixed: bool) -> Exit:
        """Found is 1; with --fix, only what the copy still holds is."""
        if sum(report.left for report in self.reports) if is_fixed else self.found:
            return Exit.UNEXPECTED
        return Exit.SOME_FAILED if self.failed or any(report.unread for report in self.reports) else Exit.DONE

    # --- JSON ---------------------------------------------------------------------------------------------------------

    def describe(self, *, is_fixed: bool) -> dict[str, Any]:
        """The report as JSON."""
        counts = [
            {"channel": channel, "grammar": grammar, "kind": kind, "found": number}
            for (channel, grammar, kind), number in self.counts.most_common()
        ]
        described = {
            "found": self.found,
            "rows": sum(report.rows for report in self.reports),
            "counts": counts,
            "places": [_describe(finding) for finding in self.places],
            "files": [_describe_file(report, is_fixed=is_fixed) for report in self.reports],
        }
        if self._most_samples:
            described["samples"] = [
                {**_describe(finding), "text": finding.text[:_LONGEST_SAMPLE]} for finding in self._list_samples()
            ]
        return described

    def _list_samples(self) -> Iterator[AuditFinding]:
        for samples in self.samples.values():
            yield from samples

    # --- text ---------------------------------------------------------------------------------------------------------

    def format(self, width: int | None, fix: str | None) -> Iterator[str]:
        """The report in lines."""
        rows = sum(report.rows for report in self.reports)
        where = f"{_count(rows, 'row')} of {_count(len(self.reports), 'file')}"
        if not self.found:
            yield f"clean: {where}"
            return
        yield f"{self.found:,} found in {where}"
        yield ""
        table = [["channel", "grammar", "kind", "found"]]
        table += [
            [channel, grammar or "-", _KINDS[kind], f"{number:,}"]
            for (channel, grammar, kind), number in self.counts.most_common()
        ]
        yield from wrap_columns(table, width)
        yield ""
        yield from (_format_place(finding) for finding in self.places)
        if self.found > len(self.places):
            yield f"… and {self.found - len(self.places):,} more; --places lists them"
        for finding in self._list_samples():
            text = finding.text[:_LONGEST_SAMPLE]
            end = "…" if len(text) < len(finding.text) else ""
            yield from ("", _format_place(finding), f"  {escape_controls(text)}{end}")
        if fix is not None:
            left = sum(report.left for report in self.reports)
            yield ""
            yield f"the copy in {escape_controls(fix)} is without {self.found - left:,} of them" + (
                f"; {left:,} left to decide by hand" if left else ""
            )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _describe(finding: AuditFinding) -> dict[str, Any]:
    fields = finding.to_dict()
    del fields["text"]
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _describe_file(report: FileReport, *, is_fixed: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "file": report.file,
        "format": report.form,
        "rows": report.rows,
        "found": report.found,
        "mentions": report.mentions,
        "unread": report.unread,
        "problems": [{"row": row, "problem": problem} for row, problem in report.problems],
    }
    return {**described, "left": report.left} if is_fixed else described


def _format_place(finding: AuditFinding) -> str:
    place = f"{finding.table}:{finding.row}" if finding.table else str(finding.row)
    name = "standard input" if finding.file == STDIN else finding.file
    parts = (f"{name}:{place}", finding.path, finding.grammar, f"{_KINDS[finding.kind]},")
    return escape_controls(" ".join(part for part in parts if part) + f" {finding.characters:,} characters")


def _print_notes(report: FileReport, terminal: Terminal) -> None:
    name = escape_controls(report.file)
    if report.mentions:
        terminal.print_note(
            f"{name}: a tag after the beginning of an answer is not reported (in {_count(report.mentions, 'answer')}); "
            "--position anywhere reports it"
        )
    for row, problem in report.problems:
        terminal.print_note(f"{name}:{row}: not checked: {escape_controls(problem)}")
    if report.unread > len(report.problems):
        terminal.print_note(f"{name}: not checked: {_count(report.unread - len(report.problems), 'more row')}")


# --- copies -----------------------------------------------------------------------------------------------------------


def _name_copies(paths: list[str], files: list[str], fix: str | None) -> dict[str, Path]:
    """The name of the copy of each file. Raises ConfigError if one exists."""
    if fix is None:
        return {}
    if fix == STDIN:
        raise ConfigError("--fix cannot write to a pipe. Name a file.")
    target = Path(fix)
    if len(paths) == 1 and files == paths:
        copies = {files[0]: target / Path(files[0]).name if target.is_dir() else target}
    else:
        copies = {file: target / _find_relative_name(file, paths) for file in files}
    taken: set[Path] = set()
    for file, copy in copies.items():
        if copy in taken:
            raise ConfigError(f"two copies would have the name {copy}. Audit the folders one by one.")
        if copy.exists():
            raise ConfigError(f"{copy} exists already. Name a new file for the copy of {file}, or delete it.")
        taken.add(copy)
        copy.parent.mkdir(parents=True, exist_ok=True)
    return copies


def _find_relative_name(file: str, paths: list[str]) -> Path:
    for path in paths:
        if file != path and Path(file).is_relative_to(path):
            return Path(file).relative_to(path)
    return Path("standard-input.jsonl" if file == STDIN else Path(file).name)
