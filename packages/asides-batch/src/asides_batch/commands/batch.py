"""`asides batch`: run the questions in a file with a ledger, show the progress, resume, and cancel."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Coroutine
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.render import describe_error, print_json, print_lines
from asides.cli.request import read_call_options
from asides.cli.signals import run_async
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.database.postgres_url import is_postgres_url
from asides.values.errors import AsidesError, ConfigError
from asides.values.json_form import to_json_value
from asides_batch.batch_status import BatchStatus
from asides_batch.batches import AsyncBatch
from asides_batch.check_rows import BatchCheck
from asides_batch.commands.batch_progress import BatchProgress
from asides_batch.commands.batch_texts import advise, describe, format_dollars, summarise
from asides_batch.read_status import list_statuses

_STDIN = "-"
_LEDGER = ".ledger"
_MOST_PROBLEMS = 20


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Run the action."""
    _check_arguments(arguments)
    if arguments.action == "status" and arguments.path is None:
        return _show_all(arguments, terminal)
    progress = BatchProgress(arguments, terminal)
    batch = _open(arguments, terminal, progress)
    match arguments.action:
        case "status":
            return _show(run_async(batch.status()), arguments, terminal)
        case "cancel":
            status = run_async(batch.cancel())
            done = f"cancelled; what is under way is finished. {advise(arguments, 'to continue', status)}"
            terminal.print_note("nothing to cancel: every request has an answer." if status.is_finished else done)
            return _show(status, arguments, terminal) if arguments.json else Exit.DONE
        case "run" if arguments.dry_run:
            return _show_check(run_async(batch.check()), arguments, terminal)
        case _:
            return _run(batch, progress, arguments, terminal)


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
        raise ConfigError("-o names a file: a batch rewrites it when more is answered.")
    if arguments.file:
        raise ConfigError("a batch takes its questions from its file, without -f. Leave it out.")


def _open(arguments: Namespace, terminal: Terminal, progress: BatchProgress) -> AsyncBatch:
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
        on_progress=progress.take,
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


def _run(batch: AsyncBatch, progress: BatchProgress, arguments: Namespace, terminal: Terminal) -> int:
    progress.start()
    stopped: list[Exit] = []
    work = batch.resume if arguments.action == "resume" else batch.run
    try:
        status = run_async(_run_with_signals(work, batch, stopped, progress, terminal))
    except AsidesError:
        progress.stop()
        if progress.status is not None:
            terminal.print_error(f"stopped; {summarise(progress.status)} {advise(arguments)}")
        raise
    finally:
        progress.stop()
    if status is None:
        terminal.print_error("stopped before anything was loaded or asked.")
        return stopped[0]
    if arguments.json:
        print_json(terminal, _encode(status))
    if stopped:
        terminal.print_error(f"stopped; {summarise(status)} {advise(arguments, status=status)}")
        return stopped[0]
    if status.has_reached_max_cost:
        terminal.print_error(
            f"stopped before the limit of cost: the next request might pass --max-cost. {summarise(status)} "
            f"{advise(arguments, 'with a higher --max-cost')}"
        )
        return Exit.SOME_FAILED
    if status.state == "cancelled":
        terminal.print_error(f"cancelled; {summarise(status)} {advise(arguments, status=status)}")
        return Exit.SOME_FAILED
    rest = f" {advise(arguments, 'to ask these again')}" if status.failed else ""
    terminal.print_note(f"{summarise(status)}{rest}")
    return Exit.DONE if status.is_finished else Exit.SOME_FAILED


async def _run_with_signals(
    work: Callable[[], Coroutine[Any, Any, BatchStatus]],
    batch: AsyncBatch,
    stopped: list[Exit],
    progress: BatchProgress,
    terminal: Terminal,
) -> BatchStatus | None:
    """Run it. The first Ctrl-C lets what is under way end, since it is paid for; the second drops it. None: it was
    stopped before there was a batch.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work())
    codes = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}

    def stop(number: signal.Signals) -> None:
        is_first = not stopped
        stopped.append(codes[number])
        if is_first and number == signal.SIGINT and batch.stop():
            progress.stop()
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
        with suppress(ConfigError):
            return await batch.status()
        return None
    finally:
        for number in codes:
            with suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(number)


def _encode(value: msgspec.Struct) -> Any:
    return to_json_value(value)


def _show(status: BatchStatus, arguments: Namespace, terminal: Terminal) -> int:
    if arguments.json:
        print_json(terminal, _encode(status))
    else:
        print_lines(terminal, describe(status))
    return Exit.DONE


def _show_all(arguments: Namespace, terminal: Terminal) -> int:
    """The batches of the ledger that is named; otherwise those of this folder, and of the database that is set."""
    places = [arguments.ledger] if arguments.ledger else [str(path) for path in sorted(Path().glob(f"*{_LEDGER}"))]
    store = read_settings(terminal).store
    if store is not None and not arguments.ledger:
        places.append(store)
    if not places:
        raise ConfigError("no batch has its ledger in this folder. Name the output of a batch.")
    if arguments.ledger and not is_postgres_url(arguments.ledger) and not Path(arguments.ledger).exists():
        raise ConfigError(f"there is no ledger {arguments.ledger}. Check the name.")
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
            raise ConfigError(f"no batch has the name {arguments.name!r}. Leave out --name to see all.")
    if arguments.json:
        print_json(terminal, [_encode(status) for status in found])
    elif found:
        print_lines(terminal, [line for status in found for line in describe(status)])
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
    cost = "no bound is known" if check.most_cost is None else f"at most ${format_dollars(check.most_cost)}"
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
    return ", the price is not known" if cost is None else f", about ${format_dollars(cost)}"
