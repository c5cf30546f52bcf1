"""`asides separate --column …`: separates the rows of files, with a report, and continues where it was stopped."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from asides.cli.exit_codes import Exit
from asides.cli.layout import find_width, wrap_columns
from asides.cli.render import print_json, print_lines
from asides.cli.separate import STARTS_INSIDE, read_tags
from asides.cli.terminal import LiveLine, Terminal, make_visible
from asides.datasets.block_job import BlockJob
from asides.datasets.files import STDIN, check_format
from asides.datasets.run import Plan, Progress, SeparationRun
from asides.datasets.separation import DEFAULT_UNDECIDED, VERDICTS, TagSettings, Verdict, find_tag_settings
from asides.datasets.separator import RowSeparator
from asides.datasets.stats import Group, Stats
from asides.datasets.tally import Tally
from asides.values.errors import ConfigError

_MOST_PROCESSES = 256
_MOST_SHOWN = 1000
_MOST_GROUPS = 20


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Write the rows with their new columns, and print the report; 9 if a person has to look at some rows."""
    plan = _make_plan(arguments)
    if arguments.via is not None:
        return _run_on_cluster(plan, arguments, terminal)
    watch = _Watch(plan)
    separation = SeparationRun(plan, watch.take)
    if separation.progress.resumed_rows:
        terminal.print_note(f"continuing after {separation.progress.resumed_rows:,} rows …")
    watch.progress = separation.progress
    line = LiveLine(terminal, watch.write_line)
    line.start()
    try:
        tally = separation.run()
    except KeyboardInterrupt:
        line.stop()
        if plan.output != STDIN:
            rows = separation.progress.tally.rows
            terminal.print_note(f"stopped after {rows:,} rows. Run the same command again to continue.")
        raise
    finally:
        line.stop()
    _report(tally, plan, arguments, terminal)
    return Exit.SOME_FAILED if tally.undecided else Exit.DONE


def _run_on_cluster(plan: Plan, arguments: Namespace, terminal: Terminal) -> int:
    from asides.cli.separate_on_cluster import separate_on_cluster

    tally, is_complete = separate_on_cluster(plan, arguments, terminal)
    _report(tally, plan, arguments, terminal)
    return Exit.DONE if is_complete and not tally.undecided else Exit.SOME_FAILED


# --- what to do -------------------------------------------------------------------------------------------------------


def _make_plan(arguments: Namespace) -> Plan:
    output = arguments.output or STDIN
    undecided = arguments.undecided
    if undecided is None and output != STDIN:
        undecided = f"{output}.undecided.jsonl"
    if not 1 <= arguments.processes <= _MOST_PROCESSES:
        raise ConfigError(f"--processes is a number from 1 to {_MOST_PROCESSES}.")
    if not 0 <= arguments.show <= _MOST_SHOWN:
        raise ConfigError(f"--show is a number from 0 to {_MOST_SHOWN}.")
    settings = TagSettings() if arguments.model is None else find_tag_settings(arguments.model)
    tags = read_tags(arguments)
    given = arguments.starts_inside
    accepted = {_read_verdict(name) for name in arguments.accept}
    separator = RowSeparator(
        column=arguments.column,
        messages=arguments.messages,
        response=arguments.response,
        tags=settings.tags if tags is None else tags,
        position=arguments.position or settings.position,
        starts_inside=settings.starts_inside if given is None else STARTS_INSIDE[given],
        answer=arguments.answer_column,
        thinking=arguments.thinking_column,
        commentary=arguments.commentary_column,
        verdict=arguments.verdict_column,
        to=arguments.to,
        into=arguments.into,
        prompt=arguments.prompt_column,
        undecided=tuple(verdict for verdict in DEFAULT_UNDECIDED if verdict not in accepted),
    )
    wants_stats = bool(arguments.stats or arguments.stats_page)
    return Plan(
        tuple(arguments.files) or (STDIN,),
        BlockJob(separator, show=arguments.show, stats=wants_stats),
        output,
        undecided,
        check_format(arguments.input_format),
        check_format(arguments.output_format),
        arguments.processes,
    ).settle()


def _read_verdict(name: str) -> Verdict:
    for verdict in VERDICTS:
        if name.replace("-", "_") == verdict:
            return verdict
    raise ConfigError(f"unknown verdict {name[:40]!r}. Use one of {', '.join(VERDICTS)}.")


def _write_text(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"{path} cannot be written: {problem.strerror}.") from None


# --- how far it is ----------------------------------------------------------------------------------------------------


class _Watch:
    """The line of progress: rows, rate and time left."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        self.progress = Progress()
        self._files = len(plan.inputs)
        self._clock = clock
        self._began = clock()
        self._first_share: float | None = None

    def take(self, progress: Progress) -> None:
        """Take what the run reports."""
        self.progress = progress
        if self._first_share is None:
            self._first_share = self._share

    @property
    def _share(self) -> float | None:
        share = self.progress.share
        return None if share is None else (self.progress.file + share) / self._files

    def write_line(self) -> str:
        """The line as it is now."""
        progress, seconds = self.progress, self._clock() - self._began
        rows = progress.tally.rows
        parts = [f"{rows:,} rows", f"{(rows - progress.resumed_rows) / max(seconds, 0.001):,.0f} rows/s"]
        share, first = self._share, self._first_share
        if share is not None and first is not None and share > first:
            left = seconds * (1 - share) / (share - first)
            parts += [f"{share:.0%}", f"{_format_seconds(left)} left"]
        if progress.tally.undecided:
            parts.append(f"{progress.tally.undecided:,} undecided")
        return ", ".join(parts)


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


# --- the report -------------------------------------------------------------------------------------------------------


def _report(tally: Tally, plan: Plan, arguments: Namespace, terminal: Terminal) -> None:
    """Print the report: on stdout, or on stderr if the rows are there. Write the page of statistics, if asked."""
    if arguments.stats_page is not None and tally.stats is not None:
        from asides.datasets.stats_page import write_page

        _write_text(arguments.stats_page, write_page(tally.stats))
    is_file = plan.output != STDIN
    if arguments.json:
        report = tally.to_report() | ({"undecided_file": plan.undecided} if tally.undecided else {})
        if tally.undecided and plan.undecided is None:
            report["undecided_rows"] = [{"row": row, "verdict": verdict} for row, verdict in tally.listed]
        if is_file:
            print_json(terminal, report)
        else:
            import json

            terminal.print_info(json.dumps(report))
        return
    width = find_width(terminal) if is_file else None
    lines = list(_write_report(tally, width))
    if tally.undecided:
        lines += ["", *_list_undecided(tally, plan)]
    if is_file:
        print_lines(terminal, lines)
    else:
        for line in lines:
            terminal.print_note(line)


def _list_undecided(tally: Tally, plan: Plan) -> list[str]:
    """Where the undecided rows are listed; without a file, the first of them."""
    found = "1 undecided row" if tally.undecided == 1 else f"{tally.undecided:,} undecided rows"
    if plan.undecided:
        return [f"{found}, listed in {plan.undecided}"]
    file = f"{plan.inputs[0]}:" if len(plan.inputs) == 1 else ""
    lines = [f"{file}{row} {verdict}" for row, verdict in tally.listed]
    left = tally.undecided - len(lines)
    return [f"{found}:", *lines, *([f"and {left:,} more; --undecided FILE lists all"] if left else [])]


def _write_report(tally: Tally, width: int | None) -> list[str]:
    rows = [["verdict", "rows", "share", "for example row"]]
    for verdict in VERDICTS:
        count = tally.verdicts.get(verdict, 0)
        share = f"{count / tally.rows:.1%}" if tally.rows else ""
        rows.append([verdict, f"{count:,}", share, ", ".join(tally.samples.get(verdict, ()))])
    lines = wrap_columns([*rows, ["all", f"{tally.rows:,}", "", ""]], width)
    counts = sorted(tally.grammars.items(), key=lambda item: -item[1])
    lines += ["", *wrap_columns([["grammar", "rows"], *([name, f"{count:,}"] for name, count in counts)], width)]
    if tally.notes:
        lines += ["", *(f"in {count:,} rows {note}" for note, count in tally.notes.items())]
    for name, excerpts in tally.excerpts.items():
        for excerpt in excerpts:
            lines += ["", f"{name}, row {excerpt.row}"]
            lines += [f"  thinking: {make_visible(excerpt.thinking)}", f"  answer: {make_visible(excerpt.answer)}"]
    if tally.stats is not None:
        lines += ["", *_write_stats(tally.stats, width)]
    return lines


def _write_stats(stats: Stats, width: int | None) -> list[str]:
    head = ["model", "day", "rows", "thinking: rows", "median", "p95", "answer: median", "p95", "share", "unclosed"]
    found = sorted(stats, key=lambda each: -each[2].rows)
    table = [head, *(_write_group(model, day, group) for model, day, group in found[:_MOST_GROUPS])]
    lines = wrap_columns([*table, _write_group("all", "", stats.sum())], width)
    if len(found) > _MOST_GROUPS:
        lines.append(f"and {len(found) - _MOST_GROUPS} more groups, which --json and --stats-page have")
    return lines


def _write_group(model: str, day: str, group: Group) -> list[str]:
    thinking, answer = group.thinking, group.answer
    counts = (group.rows, thinking.count, thinking.estimate(0.5), thinking.estimate(0.95))
    lengths = (answer.estimate(0.5), answer.estimate(0.95))
    return [
        make_visible(model),
        make_visible(day),
        *(f"{count:,}" for count in (*counts, *lengths)),
        f"{group.share:.0%}",
        f"{group.unclosed:,}",
    ]
