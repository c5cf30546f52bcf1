"""`asides separate --via ray`: separates the files of a folder on a cluster, with the package `asides-batch`."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import redirect_stdout
from typing import Any

from asides.cli.terminal import Terminal
from asides.datasets.files import STDIN
from asides.datasets.run import Plan
from asides.datasets.tally import Tally
from asides.packages import PARTS, explain_missing, load_entry
from asides.values.errors import ConfigError


def separate_on_cluster(plan: Plan, arguments: Namespace, terminal: Terminal) -> tuple[Tally, bool]:
    """Write a file for each input; return the counts of all, and whether each could be separated."""
    separate_on_ray = load_entry(PARTS, "separate_on_ray")
    if separate_on_ray is None:
        raise explain_missing("--via ray", "ray")
    if plan.output == STDIN or STDIN in plan.inputs:
        raise ConfigError("--via ray reads files and writes a folder. Name both; -o names the folder.")
    if plan.input_format is not None or plan.output_format is not None:
        raise ConfigError("--via ray keeps the format of each file. Leave out --input-format and --output-format.")
    if arguments.actors is not None and arguments.actors < 1:
        raise ConfigError("--actors must be 1 or more.")
    count = 0

    def note(_: str, result: Any) -> None:
        nonlocal count
        count += 1
        rows = "" if result.tally is None else f", {result.tally.rows:,} rows"
        terminal.draw(f"{count:,} files{rows}")

    try:
        # Ray prints what happens to its nodes on stdout, which is for the report.
        with redirect_stdout(sys.stderr):
            tally, problems = separate_on_ray(
                plan.inputs,
                plan.output,
                plan.job,
                undecided=plan.undecided,
                address=arguments.ray_address,
                actors=arguments.actors,
                on_file=note,
            )
    finally:
        terminal.erase()
    for problem in problems:
        terminal.print_error(problem)
    return tally, not problems
