"""`asides batch`: runs the questions of a file with a ledger, says how far it is, goes on with it, and cancels it.

Not here: how a batch works (batch).
"""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Coroutine
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from asides.batch.batch_status import BatchStatus
from asides.batch.batches import AsyncBatch
from asides.batch.check_rows import BatchCheck
from asides.batch.read_status import list_statuses
from asides.cli.exit_codes import Exit
from asides.cli.render import describe_error, name_options, print_json, print_lines
from asides.cli.request import read_call_options
from asides.cli.terminal import LiveLine, Terminal
from asides.cli.trust import read_settings
from asides.database.postgres_url import is_postgres_url
from asides.values.errors import AsidesError, ConfigError
from asides.values.json_form import to_json_value
from asides.values.notices import escape_controls

_STDIN = "-"
_LEDGER = ".ledger"
_MOST_PROBLEMS = 20


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the action."""
    _check_arguments(arguments)
    if arguments.action == "status" and arguments.path is None:
        return _show_all(arguments, terminal)
    view = _View(terminal)
    batch = _open(arguments, terminal, view)
    match arguments.action:
        case "status":
            return _show(asyncio.run(batch.status()), arguments, terminal)
        case "cancel":
            status = asyncio.run(batch.cancel())
            done = f"cancelled; what is under way is finished. {_advise(arguments, 'to go on')}"
            terminal.print_note("nothing to cancel: every request has an answer." if status.is_finished else done)
            return _show(status, arguments, terminal) if arguments.json else Exit.DONE
        case "run" if arguments.dry_run:
            return _show_check(asyncio.run(batch.check()), arguments, terminal)
        case _:
            return _run(batch, view, arguments, terminal)


def _check_arguments(arguments: Namespace) -> None:
    action = arguments.action
    if action == "run":
        if arguments.path is None:
            raise ConfigError("`asides batch run` takes the file of the questions; `-` reads standard input.")
        if arguments.output is None:
            raise ConfigError("`asides batch run` needs -o FILE: the answers go there, and the ledger beside it.")
    else:
        if arguments.output is not None and arguments.path is not None:
            raise ConfigError(f"`asides batch {action}` takes the output of the batch once, without -o.")
        arguments.path = arguments.path or arguments.output
        if arguments.path is None and action != "status":
            raise ConfigError(f"`asides batch {action}` takes the output of the batch.")
        if arguments.dry_run:
            raise ConfigError("--dry-run belongs to `asides batch run`.")
    if arguments.output == _STDIN:
        raise ConfigError("-o names a file: a batch writes it anew when more is answered.")
    if arguments.file:
        raise ConfigError("a batch takes its questions from its file, without -f. To do: leave it out.")


def _open(arguments: Namespace, terminal: Terminal, view: _View) -> AsyncBatch:
    settings = read_settings(terminal, show_reasoning_thinking=arguments.show_thinking)
    if arguments.template is not None or arguments.param:
        from asides.cli.templates import apply_template  # Few batches use one.

        apply_template(arguments, settings)
    options: dict[str, Any] = {**read_call_options(arguments)}
    schema = options.pop("output", None)
    is_run = arguments.action == "run"
    rows: Any = None
    if is_run:
        rows = _open_stdin() if arguments.path == _STDIN else arguments.path
    model = None if arguments.model is None else [arguments.model, *arguments.fallback]
    return AsyncBatch(
        rows,
        output=arguments.output if is_run else arguments.path,
        model=model,
        via=arguments.via,
        schema=schema,
        concurrency=arguments.concurrency,
        rpm=arguments.rpm,
        tpm=arguments.tpm,
        max_cost=arguments.max_cost,
        ledger=arguments.ledger,
        name=arguments.name,
        actors=arguments.actors,
        ray_address=arguments.ray_address,
        keep_thinking=False if arguments.show_thinking is False else settings.show_reasoning_thinking or None,
        settings=settings,
        on_progress=view.take,
        on_note=lambda text: terminal.print_note(f"note: {text}"),
        replace=arguments.replace,
        fill_prompt=getattr(arguments, "fill_prompt", None),
        **options,
    )


def _open_stdin() -> Any:
    if sys.stdin is None or sys.stdin.isatty():
        raise ConfigError("`asides batch run -` reads questions from standard input, and nothing is piped in.")
    return sys.stdin.buffer


# --- run and resume ---------------------------------------------------------------------------------------------------


def _run(batch: AsyncBatch, view: _View, arguments: Namespace, terminal: Terminal) -> int:
    live = LiveLine(terminal, view.status_line)
    live.start()
    stopped: list[Exit] = []
    work = batch.resume if arguments.action == "resume" else batch.run
    try:
        status = asyncio.run(_run_with_signals(work, batch, stopped, live, terminal))
    except AsidesError:
        live.stop()
        if view.status is not None:
            terminal.print_error(f"stopped; {_summarise(view.status)} {_advise(arguments)}")
        raise
    finally:
        live.stop()
    if arguments.json:
        print_json(terminal, _encode(status))
    if stopped:
        terminal.print_error(f"stopped; {_summarise(status)} {_advise(arguments)}")
        return stopped[0]
    if status.has_reached_max_cost:
        terminal.print_error(
            f"stopped before the limit of cost: the next request might pass --max-cost. {_summarise(status)} "
            f"{_advise(arguments, 'with a higher --max-cost')}"
        )
        return Exit.SOME_FAILED
    if status.state == "cancelled":
        terminal.print_error(f"cancelled; {_summarise(status)} {_advise(arguments)}")
        return Exit.SOME_FAILED
    rest = f" {_advise(arguments, 'to ask these again')}" if status.failed else ""
    terminal.print_note(f"{_summarise(status)}{rest}")
    return Exit.DONE if status.is_finished else Exit.SOME_FAILED


async def _run_with_signals(
    work: Callable[[], Coroutine[Any, Any, BatchStatus]],
    batch: AsyncBatch,
    stopped: list[Exit],
    live: LiveLine,
    terminal: Terminal,
) -> BatchStatus:
    """Run it. The first Ctrl-C lets what is under way end, since it is paid for; the second drops it."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work())
    codes = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}

    def stop(number: signal.Signals) -> None:
        is_first = not stopped
        stopped.append(codes[number])
        if is_first and number == signal.SIGINT and batch.stop():
            live.stop()
            terminal.print_note("stopping: what is under way is finished first. Ctrl-C again drops it.")
        else:
            task.cancel()

    for number in codes:
        with suppress(NotImplementedError, RuntimeError):  # Windows, or not the main thread.
            loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not stopped:
            raise
        return await batch.status()
    finally:
        for number in codes:
            with suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(number)


def _advise(arguments: Namespace, why: str = "to go on") -> str:
    words = ["asides", "batch", "resume", arguments.path if arguments.output is None else arguments.output]
    for option in ("ledger", "name"):
        if (value := getattr(arguments, option)) is not None:
            # A URL may have a password in it.
            words += [f"--{option}", "URL" if option == "ledger" and is_postgres_url(value) else value]
    return f"To do: run `{shlex.join(words)}` {why}."


class _View:
    """The live line of a run: counts, rate, tokens, cost and time left, and nothing of the content."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._began = time.monotonic()
        self.status: BatchStatus | None = None

    def take(self, status: BatchStatus) -> None:
        self.status = status

    def status_line(self) -> str:
        status = self.status
        if status is None:
            return f"reading the rows, {int(time.monotonic() - self._began)} s"
        parts = [f"{status.done + status.failed}/{status.requests} requests"]
        if status.failed:
            parts.append(f"{status.failed} failed")
        parts += [f"{status.rate:.1f}/s", *_describe_figures(status)]
        if status.seconds_left is not None:
            parts.append(f"{_describe_seconds(status.seconds_left)} left")
        return ", ".join(parts)


# --- texts ------------------------------------------------------------------------------------------------------------


def _summarise(status: BatchStatus) -> str:
    parts = [f"{status.done} of {status.requests} requests answered"]
    if status.rows != status.requests:
        parts.append(f"for {status.rows} rows")
    if status.failed:
        parts.append(f"{status.failed} failed")
    if status.left:
        parts.append(f"{status.left} not answered yet")
    first = "" if status.first_error is None else f" The first error: {name_options(status.first_error)}"
    return ", ".join([*parts, *_describe_figures(status)]) + "." + first


def _describe_figures(status: BatchStatus) -> list[str]:
    figures = [f"{status.input_tokens} tokens in", f"{status.output_tokens} out"]
    if status.thinking_tokens:
        figures[-1] += f" ({status.thinking_tokens} thinking)"
    if status.cost or (status.done and not status.unpriced):
        more = f" (and {status.unpriced} replies without a known price)" if status.unpriced else ""
        figures.append(f"${_format_dollars(status.cost)}{more}")
    return figures


def _format_dollars(amount: Decimal) -> str:
    return f"{amount:.2f}" if amount >= 1 else f"{amount:.4f}"


def _describe_seconds(seconds: float) -> str:
    whole = int(seconds)
    if whole < 100:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 6000 else f"{whole / 3600:.1f} h"


def _encode(value: msgspec.Struct) -> Any:
    return to_json_value(value)


def _show(status: BatchStatus, arguments: Namespace, terminal: Terminal) -> int:
    if arguments.json:
        print_json(terminal, _encode(status))
    else:
        print_lines(terminal, _describe(status))
    return Exit.DONE


def _describe(status: BatchStatus) -> list[str]:
    is_named = status.name not in (status.output, Path(status.output).name)
    named = f" (--name {escape_controls(status.name)})" if is_named else ""
    lines = [f"{status.output}{named}: {status.state}, {_summarise(status)}"]
    lines.append(f"  {status.model or 'each row its own model'}, via {status.via}")
    if status.state == "running":
        left = "" if status.seconds_left is None else f", {_describe_seconds(status.seconds_left)} left"
        lines.append(f"  {status.running} under way, {status.rate:.1f} requests a second{left}")
    for batch in status.vendor_batches:
        done = "" if batch.done is None else f"{batch.done} of "
        lines.append(f"  at the vendor: {batch.id or 'no id yet'}, {batch.state}, {done}{batch.requests} requests")
    return lines


def _show_all(arguments: Namespace, terminal: Terminal) -> int:
    """The batches of the ledger that is named; otherwise those of this folder, and of the database that is set."""
    places = [arguments.ledger] if arguments.ledger else [str(path) for path in sorted(Path().glob(f"*{_LEDGER}"))]
    store = read_settings(terminal).store
    if store is not None and not arguments.ledger:
        places.append(store)
    if not places:
        raise ConfigError("no batch has its ledger in this folder. To do: name the output of a batch.")
    if arguments.ledger and not is_postgres_url(arguments.ledger) and not Path(arguments.ledger).exists():
        raise ConfigError(f"there is no ledger {arguments.ledger}. To do: check the name.")
    found: list[BatchStatus] = []
    for place in places:
        try:
            found += list_statuses(place)
        except AsidesError as error:
            if len(places) == 1:
                raise
            terminal.print_note(f"warning: {describe_error(error)}")
    if arguments.name is not None:
        found = [status for status in found if status.name == arguments.name]
        if not found:
            raise ConfigError(f"no batch has the name {arguments.name!r}. To do: leave out --name to see all.")
    if arguments.json:
        print_json(terminal, [_encode(status) for status in found])
    elif found:
        print_lines(terminal, [line for status in found for line in _describe(status)])
    else:
        terminal.print_note("no batch yet.")
    return Exit.DONE


def _show_check(check: BatchCheck, arguments: Namespace, terminal: Terminal) -> int:
    code = Exit.USAGE if check.failed else Exit.DONE
    if arguments.json:
        print_json(terminal, _encode(check))
        return code
    for problem in check.problems[:_MOST_PROBLEMS]:
        terminal.print_error(problem)
    if check.failed > _MOST_PROBLEMS:
        terminal.print_error(f"and {check.failed - _MOST_PROBLEMS} more rows that cannot be asked; --json has them.")
    most = "no limit is known" if check.most_output_tokens is None else f"at most {check.most_output_tokens} tokens"
    cost = "no bound is known" if check.most_cost is None else f"at most ${_format_dollars(check.most_cost)}"
    lines = [
        f"rows       {check.rows}, {check.requests} different requests",
        f"input      about {check.input_tokens} tokens" + _describe_cost(check.input_cost),
        f"output     {most}",
        f"cost       {cost}",
        "Nothing was sent.",
    ]
    print_lines(terminal, lines)
    return code


def _describe_cost(cost: Decimal | None) -> str:
    return ", the price is not known" if cost is None else f", about ${_format_dollars(cost)}"
