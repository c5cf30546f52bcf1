"""`asides probe`: detects how an unknown server returns thinking, and prints a provider entry for it.

The report is a settings file on stdout; each request is shown on stderr before it is sent.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import suppress
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.render import name_options, print_json
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.flows.probe.plan_probe import ProbeOptions, build_probe, preview
from asides.flows.probe.probe_report import ProbeReport, ProbeStep
from asides.flows.probe.trial_sender import ProbeCall
from asides.providers.credentials import is_loopback
from asides.values.notices import escape_controls

_MOST_SHOWN = 240
_CODES = {
    "answered": Exit.DONE,
    "locked": Exit.KEY,
    "unreachable": Exit.TRANSPORT,
    "nothing": Exit.REJECTED,
}


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Probe a server, or show how."""
    options = _read_options(arguments)
    call = build_probe(arguments.base_url, options)
    if arguments.dry_run:
        return _print_plan(call, arguments, terminal)
    _warn(arguments, call, terminal)
    if not arguments.yes and sys.stdin is not None and sys.stdin.isatty() and not _confirm(call, terminal):
        terminal.print_info("nothing was sent.")
        return Exit.DONE
    last: list[ProbeReport] = []

    def show(step: ProbeStep) -> None:
        if step.report is not None:
            last[:] = [step.report]
        terminal.print_note(_describe(step, call.most))

    try:
        with Client() as client:
            report = client.probe(arguments.base_url, on_progress=show, **options)
    except KeyboardInterrupt:
        if last:
            _print_report(last[0], arguments, terminal)
        terminal.print_note("(interrupted: partial results)")
        return Exit.INTERRUPTED
    _print_report(report, arguments, terminal)
    if report.row is None:
        terminal.print_error(f"no provider entry: {escape_controls(name_options(report.problem))}.")
    elif report.problem:
        terminal.print_note(f"({escape_controls(name_options(report.problem))})")
    return _CODES[report.state]


def _read_options(arguments: Namespace) -> ProbeOptions:
    options: ProbeOptions = {
        "model": arguments.model,
        "api_key": arguments.api_key,
        "key_env": arguments.key_env,
        "dialect": arguments.dialect,
        "name": arguments.name,
        "max_requests": arguments.max_requests,
        "max_tokens": arguments.max_tokens,
        "timeout": arguments.timeout,
    }
    options["extent"] = "quick" if arguments.quick else "thorough" if arguments.thorough else "usual"
    return options


def _warn(arguments: Namespace, call: ProbeCall, terminal: Terminal) -> None:
    if arguments.api_key:
        terminal.print_note(
            "others on this machine can read a key on the command line; --key-env with the name of an environment "
            "variable is safer"
        )
    if call.key is not None and call.base_url.startswith("http://") and not is_loopback(call.base_url):
        terminal.print_note("warning: the key goes to another machine without encryption (http); https is safer")


def _confirm(call: ProbeCall, terminal: Terminal) -> bool:
    terminal.print_info(
        f"at most {call.most} small requests go to {escape_controls(call.base_url)}"
        f"{'' if call.counts_all else ', not counting those that find no endpoint'}, each with at most "
        f"{call.max_tokens} tokens of output or somewhat more; they may cost a little. --dry-run shows them. "
        "send them? [y]es, [n]o"
    )
    with suppress(EOFError):
        return input().strip().lower() in ("y", "yes")
    return False


def _describe(step: ProbeStep, most: int) -> str:
    if step.outcome is not None:
        return f"       {escape_controls(_cut(step.outcome))}"
    body = "" if step.body is None else f" {_write_body(step.body)}"
    return escape_controls(
        f"{step.number:2}/{max(most, step.number)} {step.purpose}: {step.method} {step.url}{_cut(body)}"
    )


def _write_body(body: Any) -> str:
    return msgspec.json.encode(body).decode()


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _print_plan(call: ProbeCall, arguments: Namespace, terminal: Terminal) -> int:
    steps = preview(call)
    if arguments.json:
        fields = ("number", "purpose", "method", "url", "body")
        print_json(terminal, [{name: getattr(step, name) for name in fields} for step in steps])
        return Exit.DONE
    for step in steps:
        terminal.write_answer(f"{step.number}. {step.purpose}\n{step.method} {escape_controls(step.url)}\n")
        if step.body is not None:
            terminal.write_answer(f"{_write_body(step.body)}\n")
    terminal.print_note(
        "(nothing was sent. These requests are for a server that has chat completions, thinks by default, and refuses "
        "nothing; other answers lead to other requests, but never to more than "
        f"{call.most} that are answered)"
    )
    return Exit.DONE


def _print_report(report: ProbeReport, arguments: Namespace, terminal: Terminal) -> None:
    if arguments.json:
        print_json(terminal, report.to_dict())
        return
    terminal.write_answer(report.to_text())
    terminal.end_answer()
